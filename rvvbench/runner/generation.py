"""What a streaming answer of SGLang's `/generate` says, from the bytes of its body, without sockets or clocks.

The body is server-sent events: `data: {json}`, an empty line, and so on to `data: [DONE]`. Each JSON object has
`output_ids` (all tokens so far, or only the new ones under `--incremental-streaming-output`) and `meta_info` with the
server's own counts. Checked against SGLang 0.5.15. No token is judged here: what came is told as it came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DONE = b"[DONE]"
_SHOWN = 300


class StreamError(Exception):
    """The stream tells of a failure (`kind` "server"), or is not what `/generate` sends (`kind` "protocol")."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Chunk:
    """One message. `token_ids` are the new ones; counts are the server's, None where it gives none.

    `has_text` tells whether the message's (cumulative) text is not empty; None where it carries no text at all, as
    without a tokenizer. `text` is all text so far, None before the first that carries one.
    """

    token_ids: list[int]
    total_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    has_text: bool | None
    finish_reason: Mapping[str, Any] | None
    text: str | None = None


class Messages:
    """The `data` of server-sent events, from bytes in pieces of any size. Lines end with LF or CR LF."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, body: bytes) -> list[bytes]:
        """The data of each event that `body` completed; comments and other fields are passed over."""
        *lines, self._rest = (self._rest + body).split(b"\n")
        complete: list[bytes] = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                complete.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
        return complete


class Generation:
    """Reads the messages of one answer. `incremental` is how the server was started, it is not guessed."""

    def __init__(self, *, incremental: bool) -> None:
        self._incremental = incremental
        self._ids: list[int] = []
        self._text: str | None = None

    def read(self, message: bytes) -> Chunk | None:
        """The chunk in a message, or None for the end of the answer. Raises StreamError."""
        if message == _DONE:
            return None
        try:
            document = json.loads(message)
        except (ValueError, RecursionError) as error:
            raise StreamError("protocol", f"no JSON: {message[:_SHOWN]!r}") from error
        if not isinstance(document, dict):
            raise StreamError("protocol", f"no JSON object: {message[:_SHOWN]!r}")
        if "error" in document:
            raise StreamError("server", _error_text(document["error"]))
        meta = document.get("meta_info")
        if not isinstance(meta, dict):
            raise StreamError("protocol", f"no meta_info: {message[:_SHOWN]!r}")
        reason = meta.get("finish_reason")
        return Chunk(
            token_ids=self._new(document.get("output_ids")),
            total_tokens=_count(meta, "completion_tokens"),
            prompt_tokens=_count(meta, "prompt_tokens"),
            cached_tokens=_count(meta, "cached_tokens"),
            has_text=bool(document["text"]) if "text" in document else None,
            finish_reason=reason if reason is None or isinstance(reason, dict) else {"type": str(reason)},
            text=self._whole_text(document.get("text")),
        )

    def _whole_text(self, text: Any) -> str | None:
        if isinstance(text, str):
            self._text = (self._text or "") + text if self._incremental else text
        return self._text

    def _new(self, ids: Any) -> list[int]:
        if not isinstance(ids, list) or not all(type(token) is int for token in ids):
            raise StreamError("protocol", "output_ids is no list of whole numbers")
        if self._incremental:
            return ids
        seen = len(self._ids)
        if ids[:seen] != self._ids:
            raise StreamError("protocol", "output_ids do not go on from those before: is the server incremental?")
        self._ids = ids
        return ids[seen:]


def _count(meta: Mapping[str, Any], name: str) -> int | None:
    value = meta.get(name)
    return value if type(value) is int else None


def _error_text(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:_SHOWN]
