"""Reading the emulator's log from a named pipe while a container writes it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from rvvbench.kernel_model.log_pipe import read
from rvvbench.kernel_model.trace import TraceReader

MARK = 0x1000


def lines(*addresses: int) -> bytes:
    return b"".join(b"Trace 0: 0x7f00 [0/%016x/1/2] \n" % address for address in addresses)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "log")
    return tmp_path / "log"


def test_what_is_written_is_read_though_the_writer_comes_late_and_leaves_early(pipe: Path) -> None:
    reader, told = TraceReader(MARK), []
    with read(pipe, reader, lambda: told.append(reader.stretches)), pipe.open("wb") as log:
        log.write(lines(MARK, 8, 9, MARK, 8, 9, 8, 9, MARK))
    trace = reader.close()
    assert [sum(steps.values()) for steps in trace.steps] == [2, 4]
    assert told[-1] == 2


def test_no_writer_at_all_is_no_reason_to_wait(pipe: Path) -> None:
    reader = TraceReader(MARK)
    with read(pipe, reader, lambda: None):
        pass
    assert reader.close().steps == []


def test_a_reader_that_fails_lets_the_writer_end_and_says_why(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = TraceReader(MARK)

    def feed(data: bytes) -> None:
        raise ValueError("not a log")

    monkeypatch.setattr(reader, "feed", feed)

    def write() -> None:
        with read(pipe, reader, lambda: None), pipe.open("wb") as log:
            log.write(lines(8) * 200_000)

    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            write()
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive() and [str(error) for error in failed] == ["not a log"]
