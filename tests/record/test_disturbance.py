"""A machine that others worked at: valid rows on a host, and timings that nobody should quote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.conditions import snapshot
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import Waited
from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.validity import assess, rules_for
from rvvbench.record.disturbance import NOTED, disturbances, ranged
from rvvbench.record.render import render_json, render_markdown
from rvvbench.record.schema import Record, Row
from rvvbench.record.table import comparison_table

from . import sample, serving_sample
from .serving_sample import events, expected, ran, row
from .test_render import terminal


def seen(*notes: str) -> dict[str, Any]:
    """An observation that found these (id, then text) and made none a reason."""
    return {**sample.OBSERVED, "notes": [note.replace(": ", NOTED, 1) for note in notes]}


def used(cores: str) -> str:
    return f"disturbed: others used {cores} CPUs over 2.1 s, at most 0.10 may be"


def busy(cores: str) -> str:
    return f"not-ready: {cores} CPUs were at work, at most 0.25 may be (waited 29 s)"


def observed(concurrency: int, *notes: str, packed: bool = False) -> Row:
    happened = ran(events(packed=packed), seen(*notes))
    return row(concurrency, packed=packed, processes=[happened])


def disturbed() -> Record:
    quiet = [observed(1), observed(2)]
    kernels = [
        observed(1, busy("1.99"), used("1.28"), packed=True),
        observed(2, busy("1.99"), used("1.77"), packed=True),
    ]
    return serving_sample.record(*quiet, *kernels)


SAID = (
    "Disturbed: others used 1.28 to 1.77 CPUs while rvv-kernels c1 and c2 were measured; the machine was not at rest "
    "before (1.99 CPUs were at work). No reason on target emulated, but do not quote these timings."
)


def test_others_work_is_said_once_with_its_rows_and_its_range() -> None:
    assert disturbances(disturbed()) == (SAID,)


def test_it_is_said_on_the_terminal_in_markdown_and_in_json() -> None:
    record = disturbed()
    assert SAID in " ".join(terminal(record, 120).split())
    assert f"> **{SAID}**" in render_markdown(record)
    plain = json.loads(render_json(record))
    assert plain["disturbances"] == [SAID]
    assert [one["disturbed"] for one in plain["rows"]] == [False, False, True, True]
    assert [one["valid"] for one in plain["rows"]] == [True] * 4


def test_the_answer_of_a_disturbed_row_is_marked_and_no_other() -> None:
    quiet, marked = comparison_table(disturbed()).answers
    assert "disturbed" not in quiet
    assert marked.startswith("EMULATED: rvv-kernels: on a disturbed machine, concurrency 2 gives")


def test_a_machine_at_rest_is_not_mentioned() -> None:
    record = serving_sample.record(observed(1), observed(2))
    assert disturbances(record) == ()
    assert "Caution" not in terminal(record, 120)
    assert json.loads(render_json(record))["disturbances"] == []


def test_unrest_only_before_a_row_is_said_and_marks_no_answer() -> None:
    record = serving_sample.record(observed(1, busy("1.00")), observed(2, busy("2.00")))
    (line,) = disturbances(record)
    assert line.startswith(
        "Not at rest: the machine was not at rest before (1.00 to 2.00 CPUs were at work). No reason"
    )
    assert "disturbed" not in comparison_table(record).answers[0]


def test_swapping_and_throttling_have_lines_of_their_own() -> None:
    swapped = "swapped: the machine swapped 5 pages in and 3 out, at most 0 may be"
    throttled = "throttled: cooling0 (cpu) slowed CPUs in 2 looks, up to state 1 of 4; 0 belongs"
    record = serving_sample.record(observed(1, swapped), observed(2, throttled, used("0.50")))
    lines = disturbances(record)
    assert [line.split(":")[0] for line in lines] == ["Disturbed", "Throttled", "Swapped"]
    assert (
        lines[1]
        == "Throttled: cooling0 (cpu) slowed CPUs in 2 looks, up to state 1 of 4 while torch-native c2 was measured."
    )
    assert lines[2].startswith(
        "Swapped: the machine swapped 5 pages in and 3 out while torch-native c1 was measured. No"
    )


def test_a_one_batch_row_is_named_by_its_variant() -> None:
    one = sample.row(processes=sample.ran(sample.events(), observation=seen(used("0.61"))))
    record = sample.record(one)
    assert disturbances(record)[0].startswith("Disturbed: others used 0.61 CPUs while torch-native was measured. No")
    assert (
        "while every row was measured" in disturbances(sample.record(one, one.model_copy(update={"variant": "b"})))[0]
    )


def test_what_was_not_observed_or_does_not_concern_timing_is_no_disturbance() -> None:
    notes = ["not observed: cooling devices (none)", f"not-at-top-frequency{NOTED}policy0 was 75.0% at 1600 MHz"]
    watched = ran(events(), {**sample.OBSERVED, "notes": [*notes, None, 3]})
    assert disturbances(serving_sample.record(row(1, processes=[watched]))) == ()
    assert disturbances(serving_sample.record(row(1, processes=[ran(events(), {"notes": "damaged"})]))) == ()


def test_on_a_board_it_is_a_reason_and_stands_there() -> None:
    watched = {**sample.OBSERVED, "reasons": [{"id": "disturbed", "text": "others used 1.00 CPUs"}]}
    of_board = [ran(events(emulated=False), watched)]
    record = serving_sample.record(row(expects=expected(1, emulated=False), processes=of_board))
    assert disturbances(record) == ()
    table = comparison_table(record)
    assert table.failures[0].reasons == ("disturbed: others used 1.00 CPUs",)
    assert table.lines[0].disturbed


def test_texts_that_differ_in_numbers_only_become_a_range() -> None:
    assert ranged(["others used 10.5 CPUs over 2.0 s", "others used 9.25 CPUs over 90.0 s", "policy0 is 1"]) == [
        "others used 9.25 to 10.5 CPUs",
        "policy0 is 1",
    ]


@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_a_range_holds_every_number(hundredths: list[int]) -> None:
    (text,) = ranged(f"others used {number / 100:.2f} CPUs over 2.0 s" for number in hundredths)
    ends = [f"{end(hundredths) / 100:.2f}" for end in (min, max)]
    assert text == f"others used {' to '.join(dict.fromkeys(ends))} CPUs"


def test_observing_writes_its_notes_as_they_are_read_here(tmp_path: Path) -> None:
    bare = Roots(proc=tmp_path, sys=tmp_path)
    unready = Waited(29.0, 30, (), (Finding("load", "1.25 CPUs were at work, at most 0.25 may be"),), ())
    found = assess(snapshot(bare), snapshot(bare), [], rules_for("host"), waited=unready)
    watched = ran(events(), {**sample.OBSERVED, **found.plain()})
    record = serving_sample.record(row(1, processes=[watched]))
    assert "(1.25 CPUs were at work)" in disturbances(record)[0]
