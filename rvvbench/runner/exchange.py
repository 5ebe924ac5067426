"""One request to `/generate` on a connection of its own, and the events of what came back.

The clock is read first thing when bytes arrive. They are looked at when every connection that was ready has been
read, so that a token's time does not hold the work on its neighbours' tokens: a server at concurrency c sends c of them
at once. Messages that arrived in one read share its time. Each chunk is then an event in the file before the loop
sleeps again, so that whatever ends the request, what came is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .events import Events
from .failure import NotWritten
from .generation import Chunk, Generation, Messages, StreamError
from .http_response import HttpError, Response

_NS_PER_S = 1e9
_SHOWN = 300


@dataclass(frozen=True)
class Timeouts:
    """Seconds. `first_token_s` and `request_s` run from the sending, `token_s` from the token before."""

    connect_s: float
    first_token_s: float
    token_s: float
    request_s: float


def _wire(host: str, port: int, document: Mapping[str, Any]) -> bytes:
    body = json.dumps({**document, "stream": True}, separators=(",", ":")).encode()
    head = (
        f"POST /generate HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True)
class Request:
    """`id` is unique in the whole run. `input_ids` are sent as they are; `output_len` tokens are asked for, greedily
    and past any end-of-sequence token.
    """

    id: str
    input_ids: Sequence[int]
    output_len: int

    def encode(self, host: str, port: int) -> bytes:
        """The bytes on the wire."""
        sampling = {"max_new_tokens": self.output_len, "temperature": 0, "ignore_eos": True}
        return _wire(host, port, {"input_ids": list(self.input_ids), "sampling_params": sampling})

    @property
    def prompt(self) -> tuple[int, ...]:
        """What is asked, to be compared."""
        return tuple(self.input_ids)

    @property
    def input_sha256(self) -> str:
        """Digest of the prompt, by which two equal prompts are found."""
        return hashlib.sha256(",".join(map(str, self.input_ids)).encode()).hexdigest()

    @property
    def size(self) -> dict[str, int | None]:
        """How long the prompt is, as the fields of a `request_start` event."""
        return {"input_tokens": len(self.input_ids)}


@dataclass(frozen=True)
class TextRequest:
    """A prompt in words, which the server turns into tokens; its answer comes as an `answer` event too. Greedy, at most
    `output_len` tokens; it ends before that at an end-of-sequence token or one of the texts of `stop`.
    """

    id: str
    prompt: str
    output_len: int
    stop: tuple[str, ...] = ()

    def encode(self, host: str, port: int) -> bytes:
        """The bytes on the wire."""
        sampling = {"max_new_tokens": self.output_len, "temperature": 0, "stop": list(self.stop)}
        return _wire(host, port, {"text": self.prompt, "sampling_params": sampling})

    @property
    def input_sha256(self) -> str:
        """Digest of the prompt in UTF-8."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def size(self) -> dict[str, int | None]:
        """As of `Request`: how many tokens it is only the server knows."""
        return {"input_tokens": None, "input_chars": len(self.prompt)}


Asked = Request | TextRequest


@dataclass(frozen=True)
class Outcome:
    """How a request ended: `error` is None, or the `kind` of its `request_error`: "connect" (none came about),
    "connection" (it broke, or the answer ended early), "http" (a status other than 200), "server" (an error in the
    stream), "protocol" (bytes that `/generate` does not send), "timeout" (with its phase) or "cancelled"; `message`
    then says it in words.
    """

    request: str
    end_ns: int
    tokens: int
    error: str | None
    message: str | None = None


class Exchange(asyncio.Protocol):
    """`done` gets the Outcome exactly once: at `[DONE]`, or at the first failure."""

    def __init__(
        self, request: Asked, *, incremental: bool, timeouts: Timeouts, events: Events, clock: Callable[[], int]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Outcome] = self._loop.create_future()
        self._request = request
        self._timeouts = timeouts
        self._events = events
        self._clock = clock
        self._transport: asyncio.WriteTransport | None = None
        self._arrived: list[tuple[int, bytes]] = []
        self._response = Response()
        self._messages = Messages()
        self._generation = Generation(incremental=incremental)
        self._refusal = b""
        self._timer: asyncio.TimerHandle | None = None
        self._sent_ns = 0
        self._last_token_ns: int | None = None
        self._tokens = 0
        self._total_tokens: int | None = None
        self._finish_reason: Mapping[str, Any] | None = None
        self._last: Chunk | None = None

    def send(self, wire: bytes) -> None:
        """Hand the request to the connection. The time is taken just before."""
        if self._transport is None or self.done.done():
            return
        self._sent_ns = self._clock()
        self._transport.write(wire)
        self._write("request_sent", t_ns=self._sent_ns)
        self._watch()

    def fail(self, kind: str, message: str, *, t_ns: int | None = None, **fields: Any) -> None:
        """End the request with a `request_error` event, unless it has ended already."""
        if t_ns is None:
            self._look()  # what came before the failure counts
        if self.done.done():
            return
        now_ns = self._clock() if t_ns is None else t_ns
        self._write(
            "request_error",
            t_ns=now_ns,
            kind=kind,
            message=message,
            tokens=self._tokens,
            **fields,
        )
        self._end(now_ns, kind, message)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._arrived.append((self._clock(), data))
        if len(self._arrived) == 1:
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        arrived, self._arrived = self._arrived, []
        for t_ns, data in arrived:
            if not self.done.done():
                self._digest(data, t_ns)

    def _digest(self, data: bytes, t_ns: int) -> None:
        try:
            body = self._response.feed(data)
            if self._response.status not in (None, 200):
                self._refused(body, t_ns)
                return
            for message in self._messages.feed(body):
                self._read(message, t_ns)
                if self.done.done():
                    return
        except StreamError as error:
            self.fail(error.kind, str(error), t_ns=t_ns)
        except HttpError as error:
            self.fail("protocol", f"no HTTP/1.1 response: {error}", t_ns=t_ns)
        if self._response.complete:
            self.fail("connection", "the answer ended without [DONE]", t_ns=t_ns)

    def connection_lost(self, error: Exception | None) -> None:
        self._look()
        self._response.close()
        if self._response.status not in (None, 200):
            self._refuse()
        else:
            self.fail("connection", f"the server closed the connection{f': {error}' if error else ''}")

    def _read(self, message: bytes, t_ns: int) -> None:
        chunk = self._generation.read(message)
        if chunk is None:
            if isinstance(self._request, TextRequest):
                self._write("answer", t_ns=t_ns, prompt_sha256=self._request.input_sha256, **self._answer())
            self._write(
                "request_end",
                t_ns=t_ns,
                tokens=self._tokens,
                completion_tokens=self._total_tokens,
                finish_reason=self._finish_reason,
            )
            self._end(t_ns, None)
            return
        self._write(
            "chunk",
            t_ns=t_ns,
            token_ids=chunk.token_ids,
            total_tokens=chunk.total_tokens,
            prompt_tokens=chunk.prompt_tokens,
            cached_tokens=chunk.cached_tokens,
            has_text=chunk.has_text,
        )
        self._last = chunk
        self._total_tokens = chunk.total_tokens
        self._finish_reason = chunk.finish_reason or self._finish_reason
        if chunk.token_ids:
            self._tokens += len(chunk.token_ids)
            first, self._last_token_ns = self._last_token_ns is None, t_ns
            if first:
                self._watch()

    def _answer(self) -> dict[str, Any]:
        last = self._last
        return {
            "text": last.text if last else None,
            "prompt_tokens": last.prompt_tokens if last else None,
            "cached_tokens": last.cached_tokens if last else None,
            "completion_tokens": self._total_tokens,
            "finish_reason": self._finish_reason,
        }

    def _refused(self, body: bytes, t_ns: int) -> None:
        self._refusal = (self._refusal + body)[:_SHOWN]
        if self._response.complete:
            self._refuse(t_ns)

    def _refuse(self, t_ns: int | None = None) -> None:
        text = self._refusal.decode("utf-8", "replace")
        status = self._response.status
        self.fail("http", f"the server answered {status}: {text}", t_ns=t_ns, status=status)

    def _watch(self) -> None:
        # One timer a request, not one a token: when it fires it looks at what has come since, and sleeps on.
        if self._timer is not None:
            self._timer.cancel()
        self._look()
        if self.done.done():
            return
        now_ns = self._clock()
        due_ns, phase, limit_s = self._deadline()
        if now_ns >= due_ns:
            self.fail("timeout", f"no {phase.replace('_', ' ')} within {limit_s:g} s", phase=phase, limit_s=limit_s)
        else:
            self._timer = self._loop.call_later((due_ns - now_ns) / _NS_PER_S, self._watch)

    def _deadline(self) -> tuple[int, str, float]:
        limits = self._timeouts
        whole = self._sent_ns + round(limits.request_s * _NS_PER_S), "end_of_request", limits.request_s
        if self._last_token_ns is None:
            token = self._sent_ns + round(limits.first_token_s * _NS_PER_S), "first_token", limits.first_token_s
        else:
            token = self._last_token_ns + round(limits.token_s * _NS_PER_S), "next_token", limits.token_s
        return min(whole, token)

    def _write(self, event: str, *, t_ns: int, **fields: Any) -> None:
        try:
            self._events.write(event, t_ns=t_ns, request=self._request.id, **fields)
        except NotWritten as error:  # what cannot be written was not measured: end the run, do not go on unseen
            if not self.done.done():
                self.done.set_exception(error)
                self._release()

    def _end(self, end_ns: int, error: str | None, message: str | None = None) -> None:
        if not self.done.done():
            self.done.set_result(Outcome(self._request.id, end_ns, self._tokens, error, message))
            self._release()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()
