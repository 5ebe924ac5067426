"""A GET over HTTP on a connection of its own."""

from __future__ import annotations

import asyncio

from .http_response import HttpError, Response

_PIECE_BYTES = 65536


async def get(host: str, port: int, path: str) -> tuple[int, bytes]:
    """Status and body. Raises OSError when there is no connection, it breaks, or what comes is no HTTP. Takes as long
    as it takes: the caller sets the limit.
    """
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        response, body = Response(), b""
        while not response.complete and (data := await reader.read(_PIECE_BYTES)):
            body += response.feed(data)
        response.close()
    except HttpError as error:
        raise ConnectionError(f"no HTTP/1.1 response: {error}") from error
    finally:
        writer.close()
    if not response.complete or response.status is None:
        raise ConnectionError(f"the answer to {path} ended early")
    return response.status, body
