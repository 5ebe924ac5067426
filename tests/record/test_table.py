from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table
from rvvbench.record.table_parts import Cell, significant

from . import sample


def cells(record: Record, row: int) -> dict[str, Cell]:
    table = comparison_table(record)
    return {column.key: cell for column, cell in zip(table.columns, table.lines[row].cells, strict=True)}


def shown(record: Record, row: int) -> dict[str, str]:
    return {key: cell.text for key, cell in cells(record, row).items()}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.00"),
        (11.0769, "11.1"),
        (0.15625, "0.156"),
        (0.9996, "1.00"),
        (999.6, "1000"),
        (1234.5, "1234"),
        (0.0, "0"),
        (0.000123, "0.000123"),
    ],
)
def test_three_significant_digits_and_no_exponent(value: float, text: str) -> None:
    assert significant(value) == text


@given(st.floats(1e-6, 1e12))
def test_what_is_shown_is_the_value_to_half_a_percent(value: float) -> None:
    assert float(significant(value)) == pytest.approx(value, rel=0.00501)


def test_the_emulated_sample_has_these_cells() -> None:
    record = sample.record()
    assert shown(record, 0) == {
        "variant": "torch-native",
        "cache": "none",
        "prefill_s": "3.00",
        "ttft_s": "3.00",
        "decode_rate_tokens_per_s": "2.00",
        "ratio": "1.00x",
        "throughput_total_tokens_per_s": "11.1",
        "peak_rss_bytes": "700",
        "tokens": "reference",
        "logprob_difference": "-",
        "validity": "valid",
    }
    second = shown(record, 1)
    assert (second["decode_rate_tokens_per_s"], second["ratio"], second["tokens"]) == ("6.40", "3.2x", "equal")


def test_values_are_exact_where_texts_are_rounded() -> None:
    cell = cells(sample.record(), 0)["peak_rss_bytes"]
    assert cell.value == 700 * sample.MIB
    assert cells(sample.record(), 0)["throughput_total_tokens_per_s"].value == 72 / 6.5


def test_emulated_figures_are_labelled_and_have_definitions_of_their_own() -> None:
    emulated = comparison_table(sample.record())
    board = comparison_table(sample.record(sample.row(expects=sample.expected(emulated=False))))
    assert emulated.banner == "EMULATED: not board timings; memory includes the emulator"
    assert board.banner is None
    ours = {column.definition for column in emulated.columns if column.definition}
    theirs = {column.definition for column in board.columns if column.definition}
    assert len(ours) == len(theirs) == 5 and not ours & theirs
    units = {column.key: column.unit for column in emulated.columns}
    assert units["ratio"] == "emulated"
    assert {column.key: column.unit for column in board.columns}["ratio"] == "to first"


def test_two_definitions_cannot_share_a_column() -> None:
    record = sample.record()
    native = sample.row("rvv-kernels", sample.expected(emulated=False))
    mixed = record.model_copy(update={"rows": (record.rows[0], native)})
    with pytest.raises(ValueError, match="cannot share a column"):
        comparison_table(mixed)


@pytest.mark.parametrize("broken", [0, 1])
def test_there_is_no_ratio_where_a_row_is_invalid(broken: int) -> None:
    rows = [sample.row(), sample.kernel_row()]
    expects = rows[broken].expected.model_copy(update={"threads": 2})
    events = sample.events(expects=rows[broken].expected)
    rows[broken] = sample.row(rows[broken].variant, expects, sample.ran(events))
    record = sample.record(*rows)
    cell = cells(record, 1)["ratio"]
    assert (cell.text, cell.value, cell.reason) == ("-", None, "a ratio needs two valid rows")
    assert shown(record, broken)["validity"] == "INVALID"
    assert comparison_table(record).lines[broken].reasons == ("threads: torch ran with 1 threads, declared 2",)


def test_a_null_figure_cites_a_note_that_says_why_and_equal_notes_are_one() -> None:
    expects = sample.expected(output_len=1)
    record = sample.record(sample.row(expects=expects, tokens=(11,)))
    cell = shown(record, 0)["decode_rate_tokens_per_s"]
    assert cell == "n/a [1]"
    assert comparison_table(record).notes == (
        "torch-native/none: one output token: there is no interval between tokens",
    )


def test_several_processes_show_their_extremes_and_one_shows_none() -> None:
    expects = sample.expected(processes=3)
    processes = sample.ran(*(sample.events(pid=pid, prefill_s=pid) for pid in (1, 2, 3)))
    record = sample.record(sample.row(expects=expects, processes=processes))
    assert cells(record, 0)["ttft_s"].spread == "1.00-3.00"
    assert comparison_table(record).remarks[0] == "Median (min-max) of 3 fresh processes."
    assert cells(sample.record(), 0)["ttft_s"].spread is None
    assert "no difference can be called significant" in comparison_table(sample.record()).remarks[0]


def test_different_tokens_are_shown_and_located() -> None:
    record = sample.record(sample.row(), sample.kernel_row(tokens=(11, 12, 99, 14, 15, 16, 17, 18)))
    assert shown(record, 1)["tokens"] == "DIFFER"
    remarks = " ".join(comparison_table(record).remarks)
    assert "part from torch-native/none at output token 3 of sequence 0: 99 for 13" in remarks


def test_memory_of_a_gibibyte_and_more_is_in_gib() -> None:
    record = sample.record(sample.row(vm_hwm_bytes=2560 * sample.MIB))
    (column,) = [column for column in comparison_table(record).columns if column.key == "peak_rss_bytes"]
    assert (column.unit, shown(record, 0)["peak_rss_bytes"]) == ("GiB", "2.50")


def test_the_heading_names_model_weights_shape_and_target() -> None:
    facts = dict(comparison_table(sample.record()).facts)
    assert facts["Model"] == "llama-mini, synthetic weights, bfloat16, TP 1"
    assert facts["Shape"] == "batch 1, 64 tokens in, 8 out"
    assert facts["Target"] == "emulated (qemu-k1), 1 thread"
