"""A budget sweep has a table of its own: budget and packed bytes beside speed, and what stayed row-major below."""

from __future__ import annotations

import json

import pytest

from rvvbench.record.render import render_json, render_markdown
from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table
from rvvbench.record.verify import verify

from . import sample, whole_model

BUDGETS = ["torch-native", *(f"rvv-kernels-budget-{percent}" for percent in (0, 25, 50, 100))]


@pytest.fixture(scope="module")
def sweep() -> Record:
    return whole_model.record(*(whole_model.row(name) for name in BUDGETS))


def test_every_row_shows_its_budget_and_what_it_packed(sweep: Record) -> None:
    table = comparison_table(sweep)
    keys = [column.key for column in table.columns]
    budget, packed = keys.index("memory_budget"), keys.index("packed_bytes")
    assert [(line.cells[budget].text, line.cells[budget].spread) for line in table.lines] == [
        ("-", None),
        ("0", "0 %"),
        ("10.5", "25 %"),
        ("21.0", "50 %"),
        ("42.0", "100 %"),
    ]
    assert [(line.cells[packed].text, line.cells[packed].spread) for line in table.lines] == [
        ("0", None),
        ("0", "0 of 9"),
        ("9.00", "3 of 9"),
        ("20.0", "7 of 9"),
        ("42.0", "9 of 9"),
    ]
    assert verify(sweep) == [] and sweep.valid


def test_what_stays_row_major_is_listed_with_its_bytes(sweep: Record) -> None:
    [remark] = [remark for remark in comparison_table(sweep).remarks if remark.startswith("Packed weights")]
    assert (
        "rvv-kernels-budget-50 20.0 MiB in 7 modules (down_proj, lm_head, 22.0 MiB, stay row-major); "
        "rvv-kernels-budget-100 42.0 MiB in 9 modules." in remark
    )
    assert "torch-native" not in remark


def test_the_sweep_is_the_same_in_markdown_and_exact_in_json(sweep: Record) -> None:
    assert "| 10.5 (25 %) | 9.00 (3 of 9) |" in render_markdown(sweep)
    plain = json.loads(render_json(sweep))
    columns = {column["key"]: column["unit"] for column in plain["columns"]}
    assert (columns["memory_budget"], columns["packed_bytes"]) == ("bytes", "bytes")
    assert plain["rows"][3]["cells"]["memory_budget"]["value"] == 22_020_096
    assert plain["rows"][3]["cells"]["packed_bytes"]["value"] == 20_971_520
    assert plain["rows"][0]["cells"]["memory_budget"]["reason"] == "the variant has no budget"


def test_without_a_budget_there_are_no_columns_and_one_remark() -> None:
    table = comparison_table(whole_model.record(whole_model.row("torch-native"), whole_model.row("rvv-w8a8")))
    assert not {"memory_budget", "packed_bytes"} & {column.key for column in table.columns}
    assert "Packed weights lie beside the row-major ones: rvv-w8a8 31.0 MiB in 9 modules." in table.remarks


def test_records_that_do_not_describe_operators_say_nothing_of_packing() -> None:
    table = comparison_table(sample.record())
    assert not [remark for remark in table.remarks if remark.startswith("Packed weights")]
