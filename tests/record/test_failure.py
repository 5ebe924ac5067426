"""A server that fails is one cause: said first, and once for all its rows."""

from __future__ import annotations

import json

from rvvbench.record.failure import SHOWN, failures, mends
from rvvbench.record.render import render_json, render_markdown
from rvvbench.record.schema import Record, Row
from rvvbench.record.table import comparison_table

from . import sample, serving_sample
from .sample import Event
from .serving_sample import events, expected, ran, row
from .test_render import terminal

LATE = "nothing answered on port 30000 within 900 s (timeouts_s.startup)"


def failed(until: str, *, load: str | None = None, pid: int = 100, **error: str) -> list[Event]:
    """The events of a server that failed at the first event of that name (and load)."""
    happened = events(pid=pid)
    end = next(i for i, e in enumerate(happened) if e["event"] == until and load in (None, e.get("load")))
    last = happened[end - 1]["t_ns"]
    said = {"type": "startup-timeout", "message": LATE, "phase": "startup", **error}
    return [
        *happened[:end],
        {"event": "error", "t_ns": last, "pid": pid, "traceback": None, "log_tail": [], **said},
        {"event": "process_end", "t_ns": last, "pid": pid, "exit_code": 1, "signal": None},
    ]


def never_came_up() -> Record:
    broken = [ran(failed("server_listening"))]
    return serving_sample.record(row(1, processes=broken), row(2, processes=broken), *row_pair())


def row_pair() -> tuple[Row, Row]:
    """Of a server that ran."""
    return row(1, packed=True), row(2, packed=True)


def test_a_server_that_never_came_up_is_one_failure_with_its_cause_first() -> None:
    (one,) = failures(never_came_up())
    assert one.rows == "torch-native/none/c1 and c2"
    assert one.reasons == (
        f"error: startup-timeout: {LATE}",
        "and what follows from it: 7 more, in the record",
        "mend: where the machine was only busy, give it longer: --set timeouts_s.startup=1800",
    )


def test_what_mends_it_is_told_once() -> None:
    assert mends(never_came_up()) == ("where the machine was only busy, give it longer: --set timeouts_s.startup=1800",)
    assert mends(serving_sample.record()) == ()


def test_all_its_nulls_have_one_note() -> None:
    table = comparison_table(never_came_up())
    assert table.notes[0] == "torch-native/none: the server never came up"
    assert not any(note.startswith("torch-native") for note in table.notes[1:])
    assert {cell.text for cell in table.lines[1].cells if cell.text.startswith("n/a")} == {"n/a [1]"}


def test_the_terminal_and_markdown_say_it_once_and_json_says_everything() -> None:
    record = never_came_up()
    for text in (" ".join(terminal(record, 120).split()), render_markdown(record).replace("\\", "")):
        assert text.count(LATE) == 1
        assert "timeouts_s.startup=1800" in text
        assert "events-incomplete" not in text
    first = json.loads(render_json(record))["rows"][0]
    assert len(first["reasons"]) == 8
    assert first["cells"]["ttft_median_s"]["reason"] == "no request"


def test_a_server_that_died_in_its_first_load_takes_the_second_with_it() -> None:
    died = {"type": "server-died", "message": "exit code 1", "phase": "c1"}
    broken = [ran(failed("load_end", load="c1", **died))]
    first, second = failures(serving_sample.record(row(1, processes=broken), row(2, processes=broken)))
    assert (first.rows, first.reasons[0]) == ("torch-native/none/c1", "error: server-died: exit code 1")
    assert any(reason.startswith("load-incomplete") for reason in first.reasons)
    assert "process-failed: the process ended with 1" in first.reasons
    assert second.rows == "torch-native/none/c2"
    assert second.reasons == ("error: server-died: exit code 1", "and what follows from it: 4 more, in the record")
    table = comparison_table(serving_sample.record(row(1), row(2, processes=broken)))
    assert "torch-native/none: the server failed before this load" in table.notes


def test_what_does_not_follow_from_the_failure_is_kept() -> None:
    happened = failed("server_listening")
    next(e for e in happened if e["event"] == "pin")["observed"] = "x86_64"
    (one,) = failures(serving_sample.record(row(1, processes=[ran(happened)])))
    assert one.reasons[:2] == (f"error: startup-timeout: {LATE}", "pin: machine: expected riscv64, observed x86_64")


def test_of_several_servers_only_the_failed_one_is_folded() -> None:
    processes = [ran(events(pid=1)), ran(failed("server_listening", pid=2)), ran(events(pid=3))]
    record = serving_sample.record(row(1, expects=expected(1, processes=3), processes=processes))
    (one,) = failures(record)
    assert one.reasons[0].endswith("(timeouts_s.startup) (process 1)")
    assert "never came up" not in " ".join(comparison_table(record).notes)


def test_rows_with_other_reasons_are_failures_of_their_own() -> None:
    expects = sample.expected(threads=2)
    record = sample.record(
        sample.row(expects=expects, processes=sample.ran(sample.events())), sample.row("rvv-kernels")
    )
    assert [one.rows for one in failures(record)] == ["torch-native/none"]
    assert failures(record)[0].reasons == ("threads: torch ran with 1 threads, declared 2",)


def test_more_reasons_than_fit_are_counted() -> None:
    expects = expected(1, input_len=65, output_len=9)
    (one,) = failures(serving_sample.record(row(1, expects=expects, processes=[ran(events())])))
    assert len(one.reasons) == SHOWN + 1
    assert one.reasons[-1].endswith("more, in the record")
