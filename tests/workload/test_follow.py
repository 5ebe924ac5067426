from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from rvvbench.workload import follow
from rvvbench.workload.follow import following, told


def test_a_person_hears_of_loading_warming_up_and_every_token() -> None:
    assert told({"event": "model_loaded", "seconds": 12.34}, 8) == "model loaded in 12.3 s; warming up"
    assert told({"event": "pass", "step": 0}, 8) == "measuring: token 1 of 8"
    assert told({"event": "memory_tree"}, 8) is None


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

    path = tmp_path / "events.jsonl"
    first, second = (json.dumps({"event": "pass", "step": step}).encode() + b"\n" for step in (0, 1))
    with following(path, 2, Ear()):
        path.write_bytes(first + second[:9])
        assert news.wait(5)
        news.clear()
        with path.open("ab") as stream:
            stream.write(second[9:])
        assert news.wait(5)
    assert heard == ["measuring: token 1 of 2", "measuring: token 2 of 2"]
