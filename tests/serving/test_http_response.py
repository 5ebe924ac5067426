"""One response's body from bytes in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.runner.http_response import HttpError, Response

from .scripted_server import HEAD, LAST, framed


def fed(pieces: list[bytes]) -> tuple[Response, bytes]:
    response = Response()
    return response, b"".join(response.feed(piece) for piece in pieces)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.data())
def test_however_the_bytes_are_cut_the_body_is_the_same(chunks: list[bytes], data: st.DataObject) -> None:
    wire = HEAD + b"".join(map(framed, chunks)) + LAST
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=10)))
    pieces = [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    response, body = fed(pieces)
    assert body == b"".join(chunks)
    assert response.complete and response.status == 200


def test_body_bytes_are_given_out_before_their_chunk_is_whole() -> None:
    assert fed([HEAD + b"a\r\n12345"])[1] == b"12345"


def test_a_chunk_extension_and_a_trailer_are_passed_over() -> None:
    response, body = fed([HEAD + b"2;x=1\r\nab\r\n0\r\nTrailer: 1\r\n\r\n"])
    assert (body, response.complete) == (b"ab", True)


def test_an_interim_response_is_not_the_response() -> None:
    assert fed([b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD])[0].status == 200


@pytest.mark.parametrize("length", [0, 3])
def test_a_body_of_a_given_length_ends_there(length: int) -> None:
    response, body = fed([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nabcdef" % length])
    assert (body, response.complete) == (b"abcdef"[:length], True)


def test_a_body_without_length_ends_when_the_connection_closes() -> None:
    response, body = fed([b"HTTP/1.1 200 OK\r\n\r\nab", b"cd"])
    assert (body, response.complete) == (b"abcd", False)
    response.close()
    assert response.complete


def test_a_body_that_ended_stays_ended_when_the_connection_closes() -> None:
    response, _ = fed([HEAD + LAST])
    response.close()
    assert response.complete


def test_a_chunked_body_does_not_end_when_the_connection_closes() -> None:
    response, _ = fed([HEAD + framed(b"ab")])
    response.close()
    assert not response.complete


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        HEAD + b"-5\r\n",
        HEAD + b"0x5\r\n",
        HEAD + b"\r\n",
        HEAD + b"1\r\nabc\r\n",
        HEAD + b"1\r\nabc5\r\nabcde\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"x" * 70_000,
        HEAD + b"1" * 70_000,
    ],
)
def test_what_is_no_http_response_is_refused(wire: bytes) -> None:
    with pytest.raises(HttpError):
        fed([wire])
