"""What does concurrency 2 gain, and what does it cost each request? The table that says so."""

from __future__ import annotations

import json

import pytest

from rvvbench.record.answer import share
from rvvbench.record.render import render_json, render_markdown
from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table

from . import sample, serving_sample
from .sample import MIB
from .serving_sample import events, expected, load, ran, routes, row
from .test_render import terminal
from .test_table import cells, shown


def board() -> Record:
    return serving_sample.record(*(row(expects=expected(c, emulated=False)) for c in (1, 2)))


def test_the_sample_has_these_cells() -> None:
    record = serving_sample.record()
    assert shown(record, 1) == {
        "variant": "torch-native",
        "concurrency": "2",
        "ttft_median_s": "6.00",
        "itl_median_s": "0.625",
        "tpot_median_s": "0.625",
        "decode_rate_median_tokens_per_s": "1.60",
        "decode_rate_global_tokens_per_s": "3.20",
        "throughput_output_tokens_per_s": "1.54",
        "gain": "1.25x",
        "e2e_median_s": "10.4",
        "peak_rss_bytes": "750",
        "decoded_at_full_batch_percent": "100",
        "tokens": "reference",
        "validity": "valid",
    }
    # The gain is to the first concurrency of the same variant, not to another variant.
    assert [shown(record, index)["gain"] for index in range(4)] == ["1.00x", "1.25x", "1.00x", "1.25x"]
    assert [shown(record, index)["tokens"] for index in range(4)] == ["reference", "reference", "equal", "equal"]
    assert cells(record, 1)["gain"].value == (32 / 20.75) / (32 / 26)


def test_each_variant_has_a_sentence_that_answers() -> None:
    assert comparison_table(serving_sample.record()).answers == tuple(
        f"EMULATED: {variant}: concurrency 2 gives 1.25x the output throughput of concurrency 1; a request (medians of "
        "4 requests, one server) waits 2.00x the time for its first token, decodes at 80 % of the rate, and is "
        "answered in 1.60x the time."
        for variant in ("torch-native", "rvv-kernels")
    )


def test_a_board_is_not_called_emulated() -> None:
    table = comparison_table(board())
    assert [line.reasons for line in table.lines] == [(), ()]
    assert table.answers[0].startswith("torch-native: concurrency 2 gives 1.25x")
    assert {column.key: column.unit for column in table.columns}["gain"] == "to first"
    ours = {column.definition for column in table.columns if column.definition}
    theirs = {column.definition for column in comparison_table(serving_sample.record()).columns if column.definition}
    assert len(ours) == len(theirs) == 9 and not ours & theirs


def test_an_invalid_row_has_no_gain_and_no_answer() -> None:
    broken = [e for e in events() if not (e["event"] == "load_end" and e["load"] == "c2")]
    record = serving_sample.record(row(1), row(2, processes=[ran(broken)]))
    assert (cells(record, 1)["gain"].text, cells(record, 1)["gain"].reason) == ("-", "a ratio needs two valid rows")
    (answer,) = comparison_table(record).answers
    text = "torch-native: what concurrency 2 gains over concurrency 1 is not known, for that needs two valid rows."
    assert answer == f"EMULATED: {text}"


def test_what_is_not_measured_is_left_out_of_the_answer() -> None:
    rows = [row(expects=expected(c, output_len=1)) for c in (1, 2)]
    valid = {"validity": rows[0].validity.of(())}
    null = dict.fromkeys(("decode_rate_median_tokens_per_s", "e2e_median_s"), rows[0].figures["ttft_p99_s"])
    rows = [one.model_copy(update={**valid, "figures": {**one.figures, **rows[0].figures, **null}}) for one in rows]
    answer = comparison_table(serving_sample.record(*rows)).answers[0]
    assert answer.endswith("(medians of 4 requests, one server) waits 1.00x the time for its first token.")


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.25, "1.25x the"),
        (0.9996, "1.00x the"),
        (0.994, "99 % of the"),
        (0.333, "33 % of the"),
        (0.02, "2.0 % of the"),
    ],
)
def test_a_ratio_below_one_is_said_as_a_share(ratio: float, said: str) -> None:
    assert share(ratio) == said


def test_several_servers_are_said_in_the_answer() -> None:
    processes = [ran(events(pid=pid)) for pid in (1, 2, 3)]
    several = [row(expects=expected(c, processes=3), processes=processes) for c in (1, 2)]
    assert "(medians of 4 requests, and of 3 servers)" in comparison_table(serving_sample.record(*several)).answers[0]


def test_start_up_is_said_apart() -> None:
    remarks = comparison_table(serving_sample.record()).remarks
    text = "in no other figure: torch-native 25.0 s, rvv-kernels 25.0 s."
    assert [remark for remark in remarks if remark.endswith(text)]


def test_start_up_and_memory_that_are_not_known_are_said_to_be_unknown() -> None:
    happened = [e for e in events() if e["event"] not in ("server_ready", "memory")]
    remarks = comparison_table(serving_sample.record(row(1, processes=[ran(happened)]))).remarks
    assert [one for one in remarks if one.endswith("torch-native unknown (no server_ready event).")]
    assert [one for one in remarks if one.endswith("of all together: torch-native unknown.")]


def test_of_many_remarks_on_tokens_the_first_are_said_and_the_rest_counted() -> None:
    happened = events()
    for e in happened:
        if e["event"] == "chunk" and e["total_tokens"] in (1, 4):
            e["token_ids"] = [11, 12]
    remarks = comparison_table(serving_sample.record(row(1, processes=[ran(happened)]))).remarks
    assert len([one for one in remarks if "torch-native/none/c1, process 0, request" in one]) == 4
    assert "4 more remarks on tokens that came together." in remarks


def test_a_first_chunk_of_several_tokens_is_said() -> None:
    happened = events()
    first = next(e for e in happened if e["event"] == "chunk" and e["request"] == "c1-0")
    first["token_ids"] = [11, 12]
    remarks = comparison_table(serving_sample.record(row(1, processes=[ran(happened)]))).remarks
    text = "request c1-0: TTFT is an upper bound, its first chunk brought 2 tokens"
    assert f"torch-native/none/c1, process 0, {text}." in remarks


def test_tokens_of_chunks_that_came_in_one_read_are_said_to_be_of_the_read() -> None:
    happened = events()
    chunks = [e for e in happened if e["event"] == "chunk" and e["request"] == "c1-0"]
    chunks[1]["t_ns"] = chunks[0]["t_ns"]
    for chunk in chunks[3:5]:
        chunk["t_ns"] = chunks[2]["t_ns"]
    record = serving_sample.record(row(1, processes=[ran(happened)]))
    remarks = comparison_table(record).remarks
    place = "torch-native/none/c1, process 0, request c1-0:"
    assert f"{place} TTFT is an upper bound, its first read brought 2 tokens." in remarks
    assert f"{place} 1 later read brought 3 tokens together." in remarks
    # One read that holds several tokens leaves no ITL, but the decode rate and its inverse are known.
    assert shown(record, 0)["itl_median_s"] == "n/a [1]"
    assert shown(record, 0)["tpot_median_s"] == "0.500"


def test_an_open_loop_shows_its_rate() -> None:
    open_loop = load(None, name="fixed-0.5", mode="open", arrivals="fixed", rate_per_s=0.5)
    rows = (row(1), row(expects=expected(1, load=open_loop, routing=routes(4))))
    record = serving_sample.record(*rows)
    assert (shown(record, 0)["concurrency"], shown(record, 0)["rate"]) == ("1", "-")
    assert (shown(record, 1)["concurrency"], shown(record, 1)["rate"]) == ("-", "0.5")
    assert "what 0.5 requests/s (fixed) gains over concurrency 1" in comparison_table(record).answers[0]


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    processes = [ran(events(pid=pid, faster=faster)) for pid, faster in ((1, 1.0), (2, 1.5), (3, 2.0))]
    several = [row(expects=expected(c, processes=3), processes=processes) for c in (1, 2)]
    for record in (serving_sample.record(), serving_sample.record(*several)):
        text = terminal(record, width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert "…" not in text


def test_at_120_columns_each_row_is_a_line() -> None:
    lines = [" ".join(line.split()) for line in terminal(serving_sample.record(), 120).splitlines()]
    assert "rvv-kernels 2 3.00 0.312 0.312 3.20 6.40 3.08 1.25x 5.19 750 100 equal valid" in lines
    assert any(line.startswith("Answer EMULATED: torch-native: concurrency 2 gives 1.25x") for line in lines)


def test_three_servers_fit_160_columns() -> None:
    processes = [ran(events(pid=pid, faster=faster)) for pid, faster in ((1, 1.0), (2, 1.5), (3, 2.0))]
    several = [row(expects=expected(c, processes=3), processes=processes) for c in (1, 2)]
    lines = [" ".join(line.split()) for line in terminal(serving_sample.record(*several), 160).splitlines()]
    assert any(line.startswith("torch-native 2 4.00 0.417 0.417 2.40") for line in lines)
    assert any(line.startswith("3.00-6.00") for line in lines)


def test_markdown_has_the_same_answers() -> None:
    text = render_markdown(serving_sample.record())
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[0] == (
        "| Variant | Conc. | TTFT s | ITL s | TPOT s | Decode tok/s | Global tok/s | Output tok/s | Gain emulated "
        "| E2E s | Peak RSS MiB | Full batch % | Tokens | Validity |"
    )
    assert len({line.count("|") for line in table}) == 1
    assert "- EMULATED: torch-native: concurrency 2 gives 1.25x the output throughput of concurrency 1;" in text


def test_json_has_every_figure_of_a_row_with_percentiles_that_say_what_they_lack() -> None:
    table = json.loads(render_json(serving_sample.record()))
    assert table["answers"][0].startswith("EMULATED: torch-native")
    figures = table["rows"][1]["figures"]
    assert figures["ttft_p90_s"]["median"] is None
    assert figures["ttft_p90_s"]["reason"] == "4 samples: the 90th percentile needs 29"
    assert figures["ready_s"]["median"] == 25.0
    assert figures["peak_rss_sum_bytes"]["median"] == 750 * MIB // 4 + 750 * MIB + 750 * MIB // 7


def test_a_one_batch_table_has_nothing_of_it() -> None:
    table = json.loads(render_json(sample.record()))
    assert "answers" not in table and "figures" not in table["rows"][0]
    assert comparison_table(sample.record()).answers == ()


def test_every_column_with_figures_says_what_it_means() -> None:
    record = serving_sample.record()
    text = " ".join(terminal(record, 120).split())
    assert "Gain: Output over that of the variant's first load." in text
    assert "Full batch: Of the tokens after the first of each request, those that were decoded in passes" in text
    assert "batch.decoded_at_full_emulated/1" in text
    markdown = render_markdown(record).replace("\\", "")
    assert "- ITL `itl.received_of_requests_median_emulated/1`: Median over all tokens after first chunks" in markdown
    columns = {column["key"]: column for column in json.loads(render_json(record))["columns"]}
    assert columns["decode_rate_global_tokens_per_s"]["text"].endswith("not board timing.")
    assert all(column["text"] for column in columns.values() if column["definition"] or column["key"] == "gain")
