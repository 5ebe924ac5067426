"""Processes of another run, row or server in a record, hidden as well as can be: every digest and figure fits."""

from __future__ import annotations

from typing import Any

import pytest

from rvvbench.record.schema import Record
from rvvbench.record.verify import verify

from . import sample, serving_sample
from .sample import Event
from .serving_sample import ran, row

RUN = "20261201T101500-llama-serve-1a2b3c"
OWN = {"run_id": RUN, "row": "torch-native/none", "process_index": 0}


def saying(happened: list[Event], **fields: Any) -> list[Event]:
    """The events with more said in their `supervisor_start`."""
    happened[0].update(fields)
    return happened


def serving(*starts: dict[str, Any], faster: tuple[float, float] = (1.0, 1.0)) -> Record:
    """A row at c1 and one at c2 of torch-native, whose servers say `starts` of themselves."""
    happened = [saying(serving_sample.events(faster=one), **start) for one, start in zip(faster, starts, strict=True)]
    return serving_sample.record(*(row(c, processes=[ran(one)]) for c, one in zip((1, 2), happened, strict=True)))


def told(record: Record) -> list[tuple[str, str]]:
    return [(finding.id, finding.text) for finding in verify(record)]


@pytest.mark.parametrize("start", [{}, OWN])
def test_a_server_of_this_run_has_no_findings_whether_it_says_so_or_is_older(start: dict[str, Any]) -> None:
    assert told(serving(start, start)) == []


def test_rows_of_one_variant_that_met_other_servers_are_found() -> None:
    assert told(serving({}, {}, faster=(1.0, 2.0))) == [
        ("origin", "its events are not those of torch-native/none/c1, of which it is another load")
    ]


@pytest.mark.parametrize(
    ("field", "other"),
    [("run_id", "another"), ("row", "rvv-kernels/none"), ("run_id", None), ("row", 3)],
)
def test_a_server_that_names_another_run_or_row_is_found(field: str, other: Any) -> None:
    start = {**OWN, field: other}
    found = told(serving(start, start))
    assert [id_ for id_, _ in found] == ["origin", "origin"]
    assert found[0][1] == f"its events say {field} {other}, the record {OWN[field]}"


def test_a_server_that_says_only_a_part_is_found() -> None:
    start = {"run_id": RUN}
    assert ("origin", "its events say row None, the record torch-native/none") in told(serving(start, start))


def test_a_process_of_before_among_those_that_name_their_run_is_found() -> None:
    found = told(serving(OWN, {}))
    assert ("origin", "1 of 2 processes do not say which run they are of") in found


@pytest.mark.parametrize("index", [1, True, None, "0", 0.0])
def test_a_process_counted_under_another_number_makes_the_row_invalid(index: Any) -> None:
    one = row(processes=[ran(saying(serving_sample.events(), **{**OWN, "process_index": index}))])
    assert [(reason.id, reason.text) for reason in one.validity.reasons] == [
        ("process-count", f"process 0 says of itself that it is process {index}")
    ]


def test_one_batch_is_compared_too() -> None:
    happened = saying(sample.events(), **{**OWN, "run_id": "another"})
    other = sample.record(sample.row(processes=sample.ran(happened)))
    assert [text for id_, text in told(other) if id_ == "origin"] == [
        f"its events say run_id another, the record {other.run_id}"
    ]
