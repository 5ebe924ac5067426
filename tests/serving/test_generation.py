"""What `/generate` says, from the bytes of its body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.runner.generation import Chunk, Generation, Messages, StreamError

from .scripted_server import generated


def read(document: Any, *, incremental: bool = False) -> Chunk | None:
    return Generation(incremental=incremental).read(json.dumps(document).encode())


@given(st.integers(1, 60))
def test_messages_are_whole_however_the_bytes_are_cut(size: int) -> None:
    body = b'data: {"a": 1}\n\n: a comment\n\nevent: x\ndata:{"b": 2}\r\n\r\ndata: one\ndata: two\n\ndata: [DONE]\n\n'
    messages = Messages()
    found = [one for start in range(0, len(body), size) for one in messages.feed(body[start : start + size])]
    assert found == [b'{"a": 1}', b'{"b": 2}', b"one\ntwo", b"[DONE]"]


def test_a_message_without_its_empty_line_is_not_complete() -> None:
    assert Messages().feed(b"data: {}\n") == []


def test_all_tokens_so_far_give_the_new_ones() -> None:
    generation = Generation(incremental=False)
    chunks = [generation.read(json.dumps(generated(ids)).encode()) for ids in ([5], [5], [5, 6, 7])]
    assert [chunk.token_ids for chunk in chunks if chunk] == [[5], [], [6, 7]]


def test_new_tokens_are_taken_as_they_are() -> None:
    generation = Generation(incremental=True)
    chunks = [generation.read(json.dumps(generated(ids)).encode()) for ids in ([5], [5], [5, 6])]
    assert [chunk.token_ids for chunk in chunks if chunk] == [[5], [5], [5, 6]]


def test_done_is_the_end() -> None:
    assert Generation(incremental=False).read(b"[DONE]") is None


def test_counts_that_are_not_given_or_are_no_counts_are_unknown() -> None:
    chunk = read({"output_ids": [1], "meta_info": {"completion_tokens": True, "prompt_tokens": "4"}})
    assert chunk == Chunk([1], None, None, None, None, None)


@pytest.mark.parametrize(("text", "has_text"), [("", False), ("a", True)])
def test_a_text_is_told_to_be_there_or_empty(text: str, has_text: bool) -> None:
    chunk = read({**generated([1]), "text": text})
    assert chunk is not None and chunk.has_text is has_text


def test_a_finish_reason_that_is_a_word_is_kept() -> None:
    chunk = read(generated([1], finish_reason="length"))
    assert chunk is not None and chunk.finish_reason == {"type": "length"}


@pytest.mark.parametrize(
    ("document", "kind", "text"),
    [
        ({"error": {"message": "no memory"}}, "server", "no memory"),
        ({"error": "no memory"}, "server", "no memory"),
        ({"meta_info": {}}, "protocol", "output_ids is no list of whole numbers"),
        ({"output_ids": [1.5], "meta_info": {}}, "protocol", "output_ids is no list of whole numbers"),
        ({"output_ids": [True], "meta_info": {}}, "protocol", "output_ids is no list of whole numbers"),
        ({"output_ids": [1]}, "protocol", "no meta_info"),
        (7, "protocol", "no JSON object"),
    ],
)
def test_a_message_that_is_none_is_refused(document: Any, kind: str, text: str) -> None:
    with pytest.raises(StreamError, match=text) as caught:
        read(document)
    assert caught.value.kind == kind
