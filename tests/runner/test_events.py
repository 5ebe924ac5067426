import json
import multiprocessing
import os

import pytest

from rvvbench.runner.events import Events


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_carries_name_time_and_pid_and_is_there_before_the_file_is_closed(tmp_path):
    path = tmp_path / "events.jsonl"
    events = Events(path, clock=lambda: 42)
    events.write("warmup", seconds=1.5)
    assert lines(path) == [{"event": "warmup", "t_ns": 42, "pid": os.getpid(), "seconds": 1.5}]
    events.close()


def test_an_event_may_be_told_later_than_it_happened(tmp_path):
    with Events(tmp_path / "e", clock=lambda: 42) as events:
        events.write("measured_end", t_ns=7)
    assert lines(tmp_path / "e")[0]["t_ns"] == 7


def test_what_is_not_a_number_is_refused_rather_than_written_as_broken_json(tmp_path):
    with Events(tmp_path / "e") as events, pytest.raises(ValueError):
        events.write("decode", logprobs=[float("nan")])
    assert (tmp_path / "e").read_text() == ""


def _write_many(path):
    with Events(path) as events:
        for index in range(200):
            events.write("memory_tree", index=index, padding="x" * 500)


def test_two_processes_never_mix_their_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    writers = [multiprocessing.get_context("spawn").Process(target=_write_many, args=(path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    written = lines(path)
    assert len(written) == 400
    for writer in writers:
        assert [event["index"] for event in written if event["pid"] == writer.pid] == list(range(200))
