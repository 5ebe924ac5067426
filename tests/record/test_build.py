from __future__ import annotations

from rvvbench.record.build import exit_status

from . import sample


def test_a_rows_figure_is_the_median_over_its_processes_with_the_extremes() -> None:
    expects = sample.expected(processes=3)
    processes = sample.ran(
        *(sample.events(pid=pid, prefill_s=seconds) for pid, seconds in ((1, 3.0), (2, 2.0), (3, 7.0)))
    )
    row = sample.row(expects=expects, processes=processes)
    figure = row.figures["prefill_s"]
    assert (figure.median, figure.min, figure.max, figure.n, figure.unit) == (3.0, 2.0, 7.0, 3, "s")
    assert row.validity.valid


def test_one_process_without_the_figure_makes_the_rows_figure_null_and_is_named() -> None:
    expects = sample.expected(processes=2)
    lacking = [event for event in sample.events(pid=2) if event["event"] != "warmup"]
    row = sample.row(expects=expects, processes=sample.ran(sample.events(pid=1), lacking))
    figure = row.figures["warmup_s"]
    assert (figure.median, figure.n, figure.reason) == (None, 1, "process 1: no warmup event")


def test_nobody_saw_the_process_end_is_no_exit_code() -> None:
    assert exit_status([]) == (None, None)
    assert exit_status([{"event": "process_end", "exit_code": True, "signal": "9"}]) == (None, None)
    assert exit_status([{"event": "process_end", "exit_code": None, "signal": 9}]) == (None, 9)


def test_the_record_says_emulated_exactly_for_the_emulated_target() -> None:
    assert sample.record().emulated
    assert not sample.record(sample.row(expects=sample.expected(emulated=False))).emulated
