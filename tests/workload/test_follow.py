from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rvvbench.progress import Silent
from rvvbench.workload import follow
from rvvbench.workload.follow import Say, following
from rvvbench.workload.one_batch import _Story
from rvvbench.workload.serving import Story


def test_a_person_hears_of_loading_warming_up_and_every_token() -> None:
    told = _Story(8)
    assert told({"event": "model_loaded", "seconds": 12.34}) == Say("model loaded in 12.3 s; warming up")
    assert told({"event": "pass", "step": 0}) == Say("measuring: token 1 of 8")
    assert told({"event": "memory_tree"}) is None


def asked(name: str, *tokens: tuple[int, list[int]]) -> list[dict[str, Any]]:
    """The events of a request that is sent at 0 s; `tokens` are the seconds and ids of its chunks."""
    common = {"request": name, "load": name.partition("-")[0]}
    last_ns = tokens[-1][0] * 1_000_000
    return [
        {"event": "request_start", **common, "t_ns": 0, "scheduled_ns": 0, "input_tokens": 64, "output_len": 3},
        {"event": "request_sent", **common, "t_ns": 0},
        *({"event": "chunk", **common, "token_ids": ids, "t_ns": ms * 1_000_000} for ms, ids in tokens),
        {"event": "request_end", **common, "t_ns": last_ns, "tokens": sum(len(ids) for _, ids in tokens)},
    ]


def test_of_a_server_every_measured_request_stays_to_be_read() -> None:
    told = Story(requests=1, output_len=3)
    events: list[dict[str, Any]] = [
        {"event": "load_start", "load": "c1-warmup", "measured": False, "requests": 1},
        *asked("w", (10, [1])),
        {"event": "load_start", "load": "c1", "measured": True, "requests": 1},
        *asked("c1-0", (1000, []), (2000, [7]), (2500, [8]), (3000, [9])),
    ]
    said = [one for one in map(told, events) if one is not None]
    stayed = [one.text for one in said if one.stays]
    assert stayed == ["c1-0: TTFT 2.000 s, 3 tokens in 3.000 s, then 2.00 tok/s (1 of 1)"]
    assert [one.text for one in said if "token " in one.text][-1] == "c1-0: token 3 of 3"


def test_a_request_whose_tokens_came_at_once_has_no_rate() -> None:
    told = Story(requests=2, output_len=3)
    events = [{"event": "load_start", "load": "c1", "measured": True, "requests": 2}, *asked("c1-0", (1500, [7, 8, 9]))]
    stayed = [said.text for said in map(told, events) if said is not None and said.stays]
    assert stayed == ["c1-0: TTFT 1.500 s, 3 tokens in 1.500 s (1 of 2)"]


def test_a_request_that_failed_stays_to_be_read_with_its_reason() -> None:
    said = Story(1, 8)({"event": "request_error", "request": "c1-0", "message": "no first token within 5 s"})
    assert said == Say("c1-0: failed: no first token within 5 s", stays=True)


def test_events_are_told_as_they_are_appended_and_a_torn_line_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "POLL_S", 0.001)
    heard: list[str] = []
    news = threading.Event()

    class Ear:
        def phase(self, title: str) -> None:
            raise AssertionError(title)

        def line(self, text: str) -> None:
            heard.append(text)
            news.set()

        def result(self, text: str) -> None:
            raise AssertionError(text)

    path = tmp_path / "events.jsonl"
    first, second = (json.dumps({"event": "pass", "step": step}).encode() + b"\n" for step in (0, 1))
    with following(path, _Story(2), Ear()):
        path.write_bytes(first + second[:9])
        assert news.wait(5)
        news.clear()
        with path.open("ab") as stream:
            stream.write(second[9:])
        assert news.wait(5)
    assert heard == ["measuring: token 1 of 2", "measuring: token 2 of 2"]


def test_what_came_after_the_last_look_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_S", 3600.0)
    stayed: list[str] = []

    class Ear(Silent):
        def result(self, text: str) -> None:
            stayed.append(text)

    path = tmp_path / "events.jsonl"
    with following(path, Story(1, 8), Ear()):
        path.write_text(json.dumps({"event": "error", "message": "killed"}) + "\n")
    assert stayed == ["failed: killed"]
