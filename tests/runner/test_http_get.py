"""A GET against a server of one canned answer."""

import asyncio

import pytest

from rvvbench.runner.http_get import get


def got(answer):
    async def run():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await asyncio.wait_for(get(*server.sockets[0].getsockname(), "/health"), 5)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        b"HTTP/1.1 503 No\r\n\r\nno",
    ],
)
def test_status_and_body_are_given_however_the_body_ends(answer):
    assert got(answer) == (503, b"no")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nno"])
def test_an_answer_that_ends_early_is_a_broken_connection(answer):
    with pytest.raises(ConnectionError, match="the answer to /health ended early"):
        got(answer)


def test_what_is_no_http_is_a_broken_connection_too():
    with pytest.raises(ConnectionError, match=r"no HTTP/1\.1 response"):
        got(b"SSH-2.0\r\n\r\n")
