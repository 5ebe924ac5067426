from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rvvbench.record.schema import Figure, Record, RowFigure, Validity

from . import sample


def plain() -> dict[str, Any]:
    return sample.record().plain()


def test_a_record_as_json_data_is_the_same_record_again() -> None:
    record = sample.record()
    assert Record.model_validate(record.plain()) == record
    assert record.plain()["schema"] == "rvvbench/record/1"


@pytest.mark.parametrize(
    "path", [(), ("heading",), ("rows", 0), ("rows", 0, "processes", 0), ("rows", 0, "figures", "ttft_s"), ("image",)]
)
def test_an_unknown_field_is_refused_wherever_it_stands(path: tuple[Any, ...]) -> None:
    data = plain()
    place: Any = data
    for part in path:
        place = place[part]
    place["extra"] = 1
    with pytest.raises(ValidationError, match="Extra inputs"):
        Record.model_validate(data)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"created": "yesterday"}, "not an ISO 8601 time"),
        ({"created": "2026-11-30T22:15:00"}, "not in UTC"),
        ({"created": "2026-11-30T22:15:00+02:00"}, "not in UTC"),
        ({"emulated": False}, "emulated is False, the target is emulated"),
        ({"emulated": 1}, "valid boolean"),
        ({"run_id": "../escape"}, "pattern"),
        ({"identity": "abc"}, "pattern"),
        ({"rows": []}, "at least 1"),
        ({"machine": {"load": float("nan")}}, "no JSON number"),
        ({"pins": {"a": {1, 2}}}, "no JSON data"),
    ],
)
def test_a_field_that_cannot_be_true_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Record.model_validate({**plain(), **fields})


def test_two_rows_of_the_same_name_are_refused() -> None:
    with pytest.raises(ValidationError, match="two rows are the same"):
        sample.record(sample.row(), sample.row())


def test_a_row_of_another_shape_than_the_heading_is_refused() -> None:
    other = sample.expected(input_len=65)
    with pytest.raises(ValidationError, match="its shape is not the one in the heading"):
        sample.record(sample.row(), sample.row("rvv-kernels", other))


def test_board_and_emulated_rows_cannot_share_a_record() -> None:
    with pytest.raises(ValidationError, match="emulated is False"):
        sample.record(sample.row(), sample.row("rvv-kernels", sample.expected(emulated=False)))


@pytest.mark.parametrize(
    "fields",
    [
        {"value": None, "reason": None},
        {"value": None, "reason": ""},
        {"value": 1.0, "reason": "but"},
        {"value": float("nan")},
        {"value": "1.0"},
        {"value": 1.0, "definition": "no version"},
    ],
)
def test_a_figure_is_a_number_or_null_with_a_reason(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Figure.model_validate({"unit": "s", "definition": "a.b/1", **fields})


def test_a_rows_figure_is_whole_or_null_with_a_reason() -> None:
    good = {"unit": "s", "definition": "a/1", "n": 1}
    RowFigure.model_validate({**good, "median": 1.0, "min": 1.0, "max": 1.0})
    RowFigure.model_validate({**good, "median": None, "min": None, "max": None, "reason": "why"})
    for bad in ({"median": 1.0, "min": None, "max": 1.0}, {"median": None, "min": None, "max": None}):
        with pytest.raises(ValidationError):
            RowFigure.model_validate({**good, **bad})


def test_validity_has_reasons_exactly_when_it_is_invalid() -> None:
    with pytest.raises(ValidationError):
        Validity(status="invalid")
    with pytest.raises(ValidationError):
        Validity.model_validate({"status": "valid", "reasons": [{"id": "a", "text": "b"}]})


def test_a_concurrency_is_part_of_a_rows_name() -> None:
    row = sample.row()
    assert row.name == "torch-native/none"
    assert row.model_copy(update={"concurrency": 4}).name == "torch-native/none/c4"
