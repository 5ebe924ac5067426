from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from rvvbench.record.render import render_json, render_markdown, render_terminal
from rvvbench.record.schema import Image, PackageDifference, Record, Relocked

from . import sample

RELOCKED = Image(
    name="rvvbench-runtime",
    digest="sha256:" + "ef" * 32,
    arch="riscv64",
    relocked=Relocked(
        reason="the suite moved",
        differences=(PackageDifference(name="libc6", locked="2.42-1", used="2.42-2"),),
    ),
)


def terminal(record: Record, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    render_terminal(record, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def invalid() -> Record:
    expects = sample.expected(threads=2)
    return sample.record(sample.row(), sample.row("rvv-kernels", expects, sample.ran(sample.events())))


def long_names() -> Record:
    return sample.record(sample.row(), sample.kernel_row(), sample.row("inductor-packed-rvv-attention"))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("record", [sample.record(), invalid(), long_names(), sample.record(image=RELOCKED)])
def test_no_line_is_wider_than_the_console_and_no_cell_is_cut(record: Record, width: int) -> None:
    text = terminal(record, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text


def test_at_100_columns_each_row_is_a_line() -> None:
    lines = terminal(sample.record(), 100).splitlines()
    (line,) = [line for line in lines if line.strip().startswith("rvv-kernels")]
    assert " ".join(line.split()) == "rvv-kernels none 1.00 1.00 6.40 3.2x 34.4 700 equal 0 valid"


def test_at_80_columns_each_figure_is_a_line() -> None:
    lines = terminal(sample.record(), 80).splitlines()
    (line,) = [line for line in lines if line.strip().startswith("Decode tok/s")]
    assert line.split() == ["Decode", "tok/s", "2.00", "6.40"]


@pytest.mark.parametrize("width", [80, 100])
def test_emulated_is_said_on_the_terminal_and_in_markdown(width: int) -> None:
    record = sample.record()
    assert "EMULATED: not board timings" in terminal(record, width)
    assert "EMULATED: not board timings" in render_markdown(record)
    board = sample.record(sample.row(expects=sample.expected(emulated=False)))
    assert "EMULATED" not in terminal(board, width) + render_markdown(board)


def test_an_invalid_row_is_marked_and_its_reasons_stand_below() -> None:
    for text in (terminal(invalid(), 100), render_markdown(invalid()).replace("\\", "")):
        assert "INVALID" in text
        assert "rvv-kernels/none: INVALID" in text
        assert "threads: torch ran with 1 threads, declared 2" in text


def test_a_relocked_image_is_said_with_what_differs() -> None:
    record = sample.record(image=RELOCKED)
    for text in (terminal(record, 200), render_markdown(record).replace("\\", "")):
        assert "RELOCKED: not the image of the lock (the suite moved): libc6 2.42-1 -> 2.42-2" in text


def test_text_from_a_manifest_is_never_markup() -> None:
    record = sample.record(title="[bold]x[/nope] | y", notes=["[red]*z*"])
    assert "[bold]x[/nope] | y" in terminal(record, 100)
    assert "[red]*z*" in terminal(record, 100)
    assert "\\[bold\\]x\\[/nope\\] \\| y" in render_markdown(record)


def test_the_markdown_table_is_whole() -> None:
    table = [line for line in render_markdown(sample.record()).splitlines() if line.startswith("|")]
    assert table[0] == (
        "| Variant | Cache | Prefill s | TTFT s | Decode tok/s | Ratio emulated "
        "| Total tok/s | Peak RSS MiB | Tokens | Logprob diff nats | Validity |"
    )
    assert table[3] == "| rvv-kernels | none | 1.00 | 1.00 | 6.40 | 3.2x | 34.4 | 700 | equal | 0 (mean 0) | valid |"
    assert len({line.count("|") for line in table}) == 1


def test_json_has_exact_values_with_their_definitions() -> None:
    table = json.loads(render_json(sample.record()))
    assert (table["schema"], table["emulated"], table["valid"]) == ("rvvbench/table/1", True, True)
    columns = {column["key"]: column for column in table["columns"]}
    assert columns["decode_rate_tokens_per_s"]["definition"] == "decode_rate.tokens_after_first_emulated/1"
    assert columns["peak_rss_bytes"]["unit"] == "bytes"
    row = table["rows"][1]
    assert (row["name"], row["valid"], row["reasons"]) == ("rvv-kernels/none", True, [])
    assert row["cells"]["decode_rate_tokens_per_s"] == {"value": 6.4, "min": 6.4, "max": 6.4, "n": 1, "reason": None}
    assert row["cells"]["peak_rss_bytes"]["value"] == 700 * sample.MIB


def test_json_has_null_with_the_reason() -> None:
    record = sample.record(sample.row(expects=sample.expected(output_len=1), tokens=(11,)))
    cell = json.loads(render_json(record))["rows"][0]["cells"]["decode_rate_tokens_per_s"]
    assert cell["value"] is None
    assert cell["reason"] == "one output token: there is no interval between tokens"
