"""The body of one HTTP/1.1 response, from bytes as they arrive (RFC 9112), without sockets.

Only what one request on a connection of its own needs: no pipelining, no compression (none is asked for). It is not
a library's because a token's time is taken when its bytes arrive: between the socket and the clock stands nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LARGEST_HEAD_BYTES = 65536
_HEX = re.compile(rb"[0-9A-Fa-f]{1,15}")
_DIGITS = re.compile(r"[0-9]{1,15}")
_STATUS_LINE = re.compile(r"HTTP/1\.[01] ([0-9]{3})(?: .*)?")


class HttpError(Exception):
    """The bytes are no HTTP/1.1 response."""


class Response:
    """`feed` it bytes in pieces of any size; `status` is None until the head was read."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.complete = False
        self._buffer = bytearray()
        self._remaining = 0
        self._until_close = False
        self._step: Callable[[], bytes | None] = self._head

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body that `data` made readable. Raises HttpError. Bytes behind the body are left alone."""
        self._buffer += data
        body = b""
        while not self.complete and (piece := self._step()) is not None:
            body = body + piece if body else piece
        return body

    def close(self) -> None:
        """The peer closed the connection: `complete` then tells whether the body had ended."""
        self.complete = self.complete or self._until_close

    # Each step takes from the buffer and gives body bytes (b"" for none), or None where it needs more.

    def _head(self) -> bytes | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > _LARGEST_HEAD_BYTES:
            if len(self._buffer) > _LARGEST_HEAD_BYTES:
                raise HttpError(f"a head of more than {_LARGEST_HEAD_BYTES} bytes")
            return None
        first, *lines = self._take(end + 4)[:-4].decode("latin-1").split("\r\n")
        status = _STATUS_LINE.fullmatch(first)
        if status is None:
            raise HttpError(f"no HTTP/1.1 status line: {first[:80]!r}")
        if status[1].startswith("1"):
            return b""  # an interim response; the real head follows
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.status = int(status[1])
        self._choose_body(headers)
        return b""

    def _choose_body(self, headers: dict[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.lower() != "chunked":
                raise HttpError(f"transfer-encoding {coding!r}")
            self._step = self._size
        elif length is not None:
            if not _DIGITS.fullmatch(length):
                raise HttpError(f"content-length {length!r}")
            self._remaining = int(length)
            self.complete = self._remaining == 0
            self._step = self._plain
        else:
            self._until_close = True
            self._step = self._rest

    def _size(self) -> bytes | None:
        line = self._line()
        if line is None:
            return None
        digits = line.partition(b";")[0].strip()
        if not _HEX.fullmatch(digits):
            raise HttpError(f"no chunk size: {bytes(line[:40])!r}")
        self._remaining = int(digits, 16)
        self._step = self._data if self._remaining else self._trailer
        return b""

    def _data(self) -> bytes | None:
        if not self._buffer:
            return None
        piece = self._take(min(self._remaining, len(self._buffer)))
        self._remaining -= len(piece)
        if not self._remaining:
            self._step = self._data_end
        return piece

    def _data_end(self) -> bytes | None:
        if len(self._buffer) < 2:
            return None
        if self._take(2) != b"\r\n":
            raise HttpError("a chunk is longer than its size")
        self._step = self._size
        return b""

    def _trailer(self) -> bytes | None:
        line = self._line()
        if line is None:
            return None
        self.complete = not line
        return b""

    def _plain(self) -> bytes | None:
        if not self._buffer:
            return None
        piece = self._take(min(self._remaining, len(self._buffer)))
        self._remaining -= len(piece)
        self.complete = not self._remaining
        return piece

    def _rest(self) -> bytes | None:
        return self._take(len(self._buffer)) if self._buffer else None

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > _LARGEST_HEAD_BYTES:
                raise HttpError(f"a line of more than {_LARGEST_HEAD_BYTES} bytes")
            return None
        return self._take(end + 2)[:-2]

    def _take(self, count: int) -> bytes:
        piece = bytes(self._buffer[:count])
        del self._buffer[:count]
        return piece
