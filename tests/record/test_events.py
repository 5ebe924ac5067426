from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.events import parse_events, read_events
from rvvbench.record.identity import canonical_json

from . import sample


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_whole_lines_are_read_verbatim_and_without_problems() -> None:
    events = sample.events()
    read = parse_events(lines(*events))
    assert list(read.events) == events
    assert read.problems == ()


def test_a_torn_last_line_is_reported_and_everything_before_it_kept() -> None:
    events = sample.events()
    read = parse_events(lines(*events)[:-20])
    assert list(read.events) == events[:-1]
    assert len(read.problems) == 1
    assert read.problems[0].startswith(f"line {len(events)}: the last line is torn")


def test_a_last_line_that_only_lacks_its_newline_is_whole() -> None:
    read = parse_events(lines({"event": "a"}, {"event": "b"})[:-1])
    assert [event["event"] for event in read.events] == ["a", "b"]
    assert read.problems == ()


def test_a_line_torn_by_one_writer_before_another_went_on_costs_only_itself() -> None:
    read = parse_events(lines({"event": "a"}) + b'{"event": "b", "t_' + lines({"event": "c"}, {"event": "d"}))
    assert [event["event"] for event in read.events] == ["a", "d"]
    assert read.problems == ("line 2: the line is damaged, 32 bytes left out",)


def test_lines_that_are_no_events_are_reported() -> None:
    read = parse_events(b'[1]\n{"t_ns": 1}\n\xff\xfe\n{"event": "\\ud800"}\n\n{"event": "a"}\n')
    assert [event["event"] for event in read.events] == ["a"]
    assert [problem.split(":")[0] for problem in read.problems] == ["line 1", "line 2", "line 3", "line 4"]


def test_numbers_that_json_lacks_become_texts_so_that_they_stay_visible() -> None:
    (event,) = parse_events(b'{"event": "prefill", "logprobs": [NaN, -Infinity, 1e999, 1.5]}\n').events
    assert event["logprobs"] == ["NaN", "-Infinity", "1e999", 1.5]
    canonical_json(event)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    read = read_events(tmp_path / "events.jsonl")
    assert read.events == ()
    assert read.problems == ("no events: events.jsonl was never written",)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(lines({"event": "a", "t_ns": 1}))
    assert read_events(path).events == ({"event": "a", "t_ns": 1},)


@given(st.integers(0, 10_000))
def test_wherever_the_file_is_cut_the_whole_lines_before_are_kept(cut: int) -> None:
    events = sample.events()
    data = lines(*events)
    cut %= len(data)
    read = parse_events(data[:cut])
    whole = data[:cut].count(b"\n")
    assert list(read.events[:whole]) == events[:whole]
    assert len(read.events) - whole in (0, 1)
    assert len(read.problems) <= 1


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_the_reader(data: bytes) -> None:
    for event in parse_events(data).events:
        canonical_json(event)
