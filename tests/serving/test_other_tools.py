"""One timeline under four tools' definitions: exactly what each would print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rvvbench.record.other_tools import OTHER_DEFINITIONS, TOOLS, definitions, medians_s
from rvvbench.record.request_timeline import Chunk, RequestTimeline

MS = 10**6


def timeline(chunks: list[tuple[int, int]], *, end_ms: int) -> RequestTimeline:
    """Chunks are (milliseconds after the sending, tokens)."""
    tokens = sum(count for _, count in chunks)
    return RequestTimeline(
        id="r0",
        load="measured",
        scheduled_ns=0,
        input_tokens=64,
        output_len=tokens,
        sent_ns=1000 * MS,
        chunks=tuple(Chunk((1000 + at) * MS, count) for at, count in chunks),
        end_ns=(1000 + end_ms) * MS,
        finish_reason="length",
        prompt_tokens=64,
        cached_tokens=0,
        completion_tokens=tokens,
    )


EVEN = timeline([(3000 + 500 * index, 1) for index in range(8)], end_ms=6500)


def table(request: RequestTimeline) -> dict[str, tuple[float | None, float | None, float | None]]:
    return {tool: (one.ttft.value, one.tpot.value, one.itl.value) for tool, one in definitions(request).items()}


def test_an_even_timeline_differs_only_where_the_first_token_is_divided_in() -> None:
    assert table(EVEN) == {
        "sglang": (3.0, 0.5, 0.5),
        "vllm": (3.0, 0.5, 0.5),
        "guidellm": (3.0, 6.5 / 8, 0.5),
        "mlperf": (3.0, 0.5, None),
    }


def test_empty_chunks_first_and_last_are_seen_by_vllm_only() -> None:
    request = timeline([(1000, 0), (3000, 1), (4000, 1), (5000, 1), (6000, 0)], end_ms=7000)
    assert table(request) == {
        "sglang": (3.0, (7.0 - 3.0) / 2, 1.0),
        "vllm": (1.0, (6.0 - 1.0) / 2, (2.0 + 1.0 + 1.0 + 1.0) / 4),
        "guidellm": (3.0, 5.0 / 3, 1.0),
        "mlperf": (3.0, (7.0 - 3.0) / 2, None),
    }


def test_a_chunk_of_several_tokens_is_split_by_sglang_and_one_gap_for_vllm() -> None:
    request = timeline([(3000, 1), (4500, 3), (6000, 3), (6500, 1)], end_ms=6500)
    found = definitions(request)
    assert found["sglang"].itl_samples_s == (0.5,) * 7
    assert found["vllm"].itl_samples_s == (1.5, 1.5, 0.5)
    assert found["guidellm"].itl_samples_s == (0.5,)
    assert table(request)["vllm"] == (3.0, 0.5, pytest.approx(3.5 / 3))


def test_a_first_chunk_of_several_tokens_makes_the_other_tools_faster_than_the_server_is() -> None:
    request = timeline([(3000, 3), (3500, 1), (4000, 1), (4500, 1), (5000, 1), (5500, 1)], end_ms=5500)
    assert table(request) == {
        "sglang": (3.0, 2.5 / 7, 0.5),
        "vllm": (3.0, 2.5 / 7, 0.5),
        "guidellm": (3.0, 5.5 / 8, 2.5 / 7),
        "mlperf": (3.0, 2.5 / 7, None),
    }


def test_sglang_does_not_look_at_tokens_without_visible_text() -> None:
    chunks = (Chunk(2000 * MS, 1, False), Chunk(3000 * MS, 1, True), Chunk(4000 * MS, 1, True))
    request = replace(timeline([(0, 3)], end_ms=3000), chunks=chunks)
    assert table(request)["sglang"] == (2.0, 0.5, 1.0)
    assert table(request)["guidellm"][0] == 1.0


def test_the_time_before_a_chunk_without_text_is_in_the_next_gap_of_sglang() -> None:
    chunks = (Chunk(2000 * MS, 1, True), Chunk(3000 * MS, 0, True), Chunk(5000 * MS, 1, True))
    request = replace(timeline([(0, 2)], end_ms=4000), chunks=chunks)
    assert definitions(request)["sglang"].itl_samples_s == (3.0,)
    assert definitions(request)["vllm"].itl_samples_s == (1.0, 2.0)


def test_the_servers_count_is_divided_by_where_there_is_one() -> None:
    assert table(replace(EVEN, completion_tokens=15))["sglang"][1] == 3.5 / 14
    assert table(replace(EVEN, completion_tokens=None))["sglang"][1] == 0.5


def test_one_token_has_no_tpot_but_for_guidellm() -> None:
    request = timeline([(3000, 1)], end_ms=3000)
    found = definitions(request)
    for tool in ("sglang", "vllm", "mlperf"):
        assert found[tool].tpot.reason == "one output token: there is no interval between tokens"
    assert found["guidellm"].tpot.value == 3.0
    assert found["sglang"].itl.reason == "the tool takes no inter-token latency of this request"


def test_a_failed_request_has_no_figures_of_any_tool_but_a_first_token() -> None:
    failed = replace(EVEN, error="server: died", end_ns=None)
    for tool, one in definitions(failed).items():
        assert one.tpot.value is one.itl.value is None
        assert (one.ttft.value is None) == (tool in ("sglang", "vllm"))


def test_no_tool_shares_an_id_with_another_and_each_is_defined() -> None:
    ids = [figure.definition for one in definitions(EVEN).values() for figure in (one.ttft, one.tpot, one.itl)]
    assert len(set(ids)) == 3 * len(TOOLS)
    assert set(ids) == set(OTHER_DEFINITIONS)


def test_an_emulated_timeline_has_the_emulated_ids() -> None:
    assert definitions(EVEN, emulated=True)["vllm"].itl.definition == "itl.as_vllm_emulated/1"


def test_medians_are_over_requests_and_itl_over_all_gaps_together() -> None:
    slow = timeline([(5000, 1), (7000, 1)], end_ms=7000)
    found = medians_s([EVEN, slow])
    assert found["sglang"] == {"ttft": 4.0, "tpot": 1.25, "itl": 0.5}
    assert found["guidellm"] == {"ttft": 4.0, "tpot": (6.5 / 8 + 3.5) / 2, "itl": 1.25}
    assert found["mlperf"]["itl"] is None


def test_a_request_without_a_figure_leaves_no_median() -> None:
    assert medians_s([EVEN, timeline([(3000, 1)], end_ms=3000)])["vllm"] == {"ttft": 3.0, "tpot": None, "itl": None}
    assert medians_s([])["vllm"] == {"ttft": None, "tpot": None, "itl": None}
