"""The same requests under other tools' definitions, and SGLang's own tool beside ours."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from rvvbench.record.cross_check import note
from rvvbench.record.definitions_table import CrossLine, definitions_table
from rvvbench.record.other_tools import OTHER_DEFINITIONS
from rvvbench.record.render import render_json, render_markdown, render_terminal
from rvvbench.record.schema import Record

from . import sample, serving_sample
from .sample import Event
from .serving_sample import events, expected, ran, row
from .test_metrics import json_values

RAW = {
    "completed": 30,
    "median_ttft_ms": 3060.0,
    "median_tpot_ms": 500.0,
    "median_itl_ms": 495.0,
    "median_e2e_latency_ms": 6500.0,
}


def checked(concurrency: int = 1, raw: Any = RAW, requests: int = 30) -> list[Event]:
    """A server that SGLang's tool asked after the loads."""
    happened = events()
    event = {
        "event": "cross_check",
        "t_ns": 10**15,
        "tool": "sglang.benchmark.serving",
        "version": "0.5.15",
        "argv": ["--backend", "sglang", "--max-concurrency", str(concurrency), "--random-output-len", "8"],
        "requests": requests,
        "seconds": 200.0,
        "raw": raw,
    }
    return [*happened[:-2], event, *happened[-2:]]


def record(happened: list[Event]) -> Record:
    return serving_sample.record(*(row(c, processes=[ran(happened)]) for c in (1, 2)))


def terminal(of: Record, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    render_terminal(of, console, definitions=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_even_timeline_differs_where_a_definition_does() -> None:
    lines = {
        (line.row, line.tool): {metric: time.value_s for metric, time in line.times.items()}
        for line in definitions_table(record(events())).lines
    }
    assert len(lines) == 10
    one, two = "torch-native/none/c1", "torch-native/none/c2"
    assert lines[one, "ours"] == lines[one, "sglang"] == lines[one, "vllm"] == {"ttft": 3.0, "tpot": 0.5, "itl": 0.5}
    assert lines[one, "guidellm"] == {"ttft": 3.0, "tpot": 6.5 / 8, "itl": 0.5}
    assert lines[one, "mlperf"] == {"ttft": 3.0, "tpot": 0.5, "itl": None}
    assert lines[two, "ours"] == {"ttft": 6.0, "tpot": 0.625, "itl": 0.625}


def test_every_time_has_the_definition_of_its_target() -> None:
    table = definitions_table(record(events()))
    used = {time.definition for line in table.lines for time in line.times.values()}
    assert used == {id_ for id_, _ in table.texts}
    assert len(table.texts) == len(OTHER_DEFINITIONS) + 3
    assert [text.startswith("Ours. Median over") for _, text in table.texts[:4]] == [True, True, True, False]
    assert all("_emulated/" in id_ for id_, _ in table.texts)
    assert table.lines[0].times["ttft"].definition == "ttft.first_token_of_requests_median_emulated/1"


def test_several_servers_give_the_median_of_their_medians() -> None:
    processes = [ran(events(pid=pid, faster=faster)) for pid, faster in ((1, 1.0), (2, 2.0), (3, 4.0))]
    one = row(expects=expected(1, processes=3), processes=processes)
    lines = definitions_table(serving_sample.record(one)).lines
    assert [line.times["ttft"].value_s for line in lines] == [1.5] * 5


def test_a_request_that_failed_leaves_every_median_null_with_its_name() -> None:
    cut = [e for e in events() if not (e["event"] == "request_end" and e["request"] == "c1-2")]
    lines = definitions_table(record(cut)).lines
    assert {line.times["tpot"].reason for line in lines[:5]} == {"request c1-2: no request_end event"}
    assert lines[5].times["tpot"].reason is None


def cross(of: Record) -> dict[str, CrossLine]:
    return {line.metric: line for line in definitions_table(of).cross_check}


def test_sglangs_tool_stands_beside_the_row_of_its_concurrency() -> None:
    found = cross(record(checked(1)))
    assert {line.row for line in found.values()} == {"torch-native/none/c1"}
    assert (found["ttft"].ours.value_s, found["ttft"].tool.value_s) == (3.0, 3.06)
    assert found["ttft"].difference_percent == pytest.approx(2.0)
    assert found["itl"].difference_percent == pytest.approx(-1.0)
    assert found["tpot"].difference_percent == found["e2e"].difference_percent == 0
    assert found["itl"].tool.definition == "sglang.benchmark.serving 0.5.15 median_itl_ms"
    assert found["ttft"].as_tool.value_s == 3.0
    assert {line.row for line in cross(record(checked(2))).values()} == {"torch-native/none/c2"}
    assert cross(record(checked(4))) == {}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "the cross-check left no result"),
        ({**RAW, "completed": 29}, "it completed 29 of 30 requests"),
        ({**RAW, "errors": [*[""] * 29, "HTTP 500"]}, "1 of its 30 requests failed: HTTP 500"),
        ({**RAW, "completed": 29, "errors": ["HTTP 500"]}, "1 of its 30 requests failed: HTTP 500"),
        ({**RAW, "ttfts": [3.06] * 29}, "its ttfts are not of 30 requests"),
        ({**RAW, "output_lens": 30}, "its output_lens are not of 30 requests"),
        ({**RAW, "output_lens": [*[8] * 29, 7]}, "its answers did not all have 8 tokens"),
        ({**RAW, "ttfts": [3.0] * 30}, "its median_ttft_ms is 3060, of its own ttfts it is 3000"),
        ({**RAW, "itls": [[0.5] * 7] * 30}, "its median_itl_ms is 495, of its own itls it is 500"),
        ({**RAW, "ttfts": ["3.06"] * 30}, "its ttfts are no times"),
        ({**RAW, "completed": True}, "it completed True of 30 requests"),
        ({"completed": 30}, "its result has no median_ttft_ms"),
        ({**RAW, "median_ttft_ms": "NaN"}, "its result has no median_ttft_ms"),
        ({**RAW, "median_ttft_ms": 0.0}, "its result has no median_ttft_ms"),
    ],
)
def test_what_the_tool_did_not_measure_is_null_with_a_reason(raw: Any, reason: str) -> None:
    line = cross(record(checked(raw=raw)))["ttft"]
    assert (line.tool.value_s, line.tool.reason, line.difference_percent) == (None, reason, None)
    failed = f"The cross-check failed: {reason}" in definitions_table(record(checked(raw=raw))).remarks
    assert failed != reason.startswith("its result has no")


def test_a_count_of_requests_that_the_tool_was_not_asked_for_is_a_failure() -> None:
    happened = checked()
    happened[-3]["argv"] += ["--num-prompts", "31"]
    assert cross(record(happened))["ttft"].tool.reason == "it was asked for 31 requests, and 30 are recorded"


def test_a_result_whose_lists_agree_with_its_medians_is_shown() -> None:
    lists = {"ttfts": [3.06] * 30, "itls": [[0.495] * 7] * 30, "errors": [""] * 30, "output_lens": [8] * 30}
    assert cross(record(checked(raw={**RAW, **lists})))["ttft"].tool.value_s == 3.06


@pytest.mark.parametrize(
    ("difference_percent", "ours", "tools", "said"),
    [
        (2.9, 30, 30, ""),
        (-2.9, 30, 30, ""),
        (None, 4, 4, ""),
        (3.1, 30, 30, "not explained by definition alone; "),
        (-60.0, 100, 30, "not explained by definition alone; "),
        (1.0, 29, 30, "too few to judge (n = 29 and 30, 30 each needed); "),
        (1.0, 30, True, "too few to judge (n = 30 and True, 30 each needed); "),
        (9.0, 4, 30, "too few to judge (n = 4 and 30, 30 each needed); not explained by definition alone; "),
    ],
)
def test_a_difference_is_never_explained_away(
    difference_percent: float | None, ours: int, tools: Any, said: str
) -> None:
    assert note("tpot", difference_percent, ours, tools) == f"{said}its latency runs to the end of the answer"


def test_four_requests_of_ours_are_too_few_and_the_table_says_so() -> None:
    notes = {metric: line.note for metric, line in cross(record(checked(1))).items()}
    assert notes["e2e"].startswith("too few to judge (n = 4 and 30, 30 each needed); from before it connects")


def test_a_cross_check_that_failed_is_said_and_leaves_the_rows_valid() -> None:
    happened = events()
    error = {"event": "error", "type": "request-failed", "message": "it ended with 1", "phase": "cross_check"}
    happened[-1]["exit_code"] = 1
    of = record([*happened[:-2], error, *happened[-2:]])
    assert [one.validity.valid for one in of.rows] == [True, True]
    assert definitions_table(of).remarks[-1] == "The cross-check failed: it ended with 1"


@settings(max_examples=60)
@given(st.sampled_from(["argv", "raw", "requests", "tool", "version"]), json_values)
def test_whatever_stands_in_a_cross_check_it_is_shown(field: str, value: Any) -> None:
    happened = checked()
    happened[-3][field] = value
    definitions_table(record(happened))


@pytest.mark.parametrize("width", [80, 120, 160])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    text = terminal(record(checked()), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text


def test_on_the_terminal_and_in_markdown_both_tables_stand() -> None:
    lines = [" ".join(line.split()) for line in terminal(record(checked()), 160).splitlines()]
    assert "torch-native/none/c1 guidellm 3.00 0.812 0.500" in lines
    assert any(line.startswith("torch-native/none/c1 TTFT 3.00 3.00 3.06 +2.0 too few to judge") for line in lines)
    text = render_markdown(record(checked()), definitions=True)
    assert "| torch-native/none/c1 | guidellm | 3.00 | 0.812 | 0.500 |" in text
    assert "| torch-native/none/c1 | ITL | 0.500 | 0.500 | 0.495 | -1.0 |" in text
    assert "EMULATED" in text
    assert "#### The same server" not in render_markdown(record(events()), definitions=True)


def test_json_has_exact_times_with_their_definitions() -> None:
    plain = json.loads(render_json(record(checked()), definitions=True))["definitions"]
    guidellm = next(line for line in plain["lines"] if line["tool"] == "guidellm")
    assert guidellm["tpot"] == {
        "value": 0.8125,
        "unit": "s",
        "definition": "tpot.as_guidellm_emulated/1",
        "reason": None,
    }
    assert plain["cross_check"][0]["tool"]["value"] == 3.06
    assert "definitions" not in json.loads(render_json(record(checked())))


def test_one_batch_has_no_requests_and_says_so() -> None:
    table = definitions_table(sample.record())
    assert (table.lines, table.cross_check, table.texts) == ((), (), ())
    assert "other tools' definitions do not apply" in table.remarks[0]
    assert "do not apply" in render_markdown(sample.record(), definitions=True)
