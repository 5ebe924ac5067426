"""A server that answers `/generate` with scripted bytes at scripted times, in the place of a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def framed(body: bytes) -> bytes:
    """One chunk of HTTP's chunked coding."""
    return b"%x\r\n%s\r\n" % (len(body), body)


def message(document: Any) -> bytes:
    """One server-sent event in a chunk of its own."""
    return framed(b"data: " + json.dumps(document).encode() + b"\n\n")


DONE = framed(b"data: [DONE]\n\n")


def generated(ids: Sequence[int], **meta: Any) -> dict[str, Any]:
    """What SGLang says of `ids`, all so far; `meta` changes its meta_info."""
    info = {"id": "x", "finish_reason": None, "prompt_tokens": 4, "completion_tokens": len(ids), "cached_tokens": 0}
    return {"output_ids": list(ids), "meta_info": {**info, **meta}}


@dataclass(frozen=True)
class Script:
    """`pieces` are (milliseconds after the request, bytes), at times that differ. `ending` in ms: the server closes
    the connection then; None: never. `refused`: no connection comes about. `connect_ms`: how long it takes.
    """

    pieces: Sequence[tuple[float, bytes]] = ()
    ending_ms: float | None = None
    refused: bool = False
    connect_ms: float = 0


def answer(
    arrivals: Sequence[tuple[float, int]], *, end_ms: float | None = None, incremental: bool = False, **meta: Any
) -> Script:
    """An answer whose chunks are (milliseconds, new tokens), of ids 100, 101, ...; `[DONE]` comes with the last, or
    at `end_ms`. `meta` changes what every message says.
    """
    pieces: list[tuple[float, bytes]] = []
    total = 0
    for index, (at_ms, tokens) in enumerate(arrivals):
        last = index == len(arrivals) - 1
        seen, total = total, total + tokens
        finish = {"type": "length", "length": total} if last else None
        ids = range(100 + (seen if incremental else 0), 100 + total)
        told = {"completion_tokens": total, "finish_reason": finish, **meta}
        data = message(generated(list(ids), **told))
        pieces.append((at_ms, (HEAD if not index else b"") + data))
    if end_ms is None:
        at_ms, data = pieces.pop()
        pieces.append((at_ms, data + DONE + LAST))
    else:
        pieces.append((end_ms, DONE + LAST))
    return Script(pieces)


@dataclass
class ScriptedServer:
    """`script` gives the answer to the k-th request, from 0. `asked` are the requests' bodies, in order of arrival;
    `open` counts connections that nobody closed.
    """

    script: Callable[[int], Script]
    asked: list[dict[str, Any]] = field(default_factory=list)
    open: int = 0
    connections: int = 0

    async def connect(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> None:
        script = self.script(self.connections)
        self.connections += 1
        if script.connect_ms:
            await asyncio.sleep(script.connect_ms / 1e3)
        if script.refused:
            raise ConnectionRefusedError(111, "Connection refused")
        protocol = factory()
        self.open += 1
        protocol.connection_made(_Transport(self, protocol, script))


class _Transport(asyncio.Transport):
    def __init__(self, server: ScriptedServer, protocol: asyncio.Protocol, script: Script) -> None:
        super().__init__()
        self._server, self._protocol, self._script = server, protocol, script
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._closed = False

    def write(self, data: Any) -> None:
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        assert head.startswith(b"POST /generate HTTP/1.1\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        self._server.asked.append(json.loads(body))
        for at_ms, piece in self._script.pieces:
            self._timers.append(self._loop.call_later(at_ms / 1e3, self._protocol.data_received, piece))
        if self._script.ending_ms is not None:
            self._timers.append(self._loop.call_later(self._script.ending_ms / 1e3, self._lost))

    def close(self) -> None:
        if not self._closed:
            self._loop.call_soon(self._lost)
        self._closed = True

    def is_closing(self) -> bool:
        return self._closed

    def _lost(self) -> None:
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        self._server.open -= 1
        self._protocol.connection_lost(None)
