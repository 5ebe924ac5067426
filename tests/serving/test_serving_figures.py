"""The definitions of a serving run, and its figures over several requests."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.metrics import DEFINITIONS, emulated_id
from rvvbench.record.other_tools import OTHER_DEFINITIONS
from rvvbench.record.request_figures import REQUEST_NAMES, derive_request
from rvvbench.record.request_timeline import Chunk, RequestTimeline
from rvvbench.record.serving import LOAD_NAMES, SERVING_DEFINITIONS, derive_load

S = 10**9


def request(id_: str, sent_s: float, *token_s: float, prompt: int | None = 64) -> RequestTimeline:
    """One token at each of `token_s`, all in seconds of one clock."""
    chunks = tuple(Chunk(round(at * S), 1) for at in token_s)
    return RequestTimeline(
        id=id_,
        load="measured",
        scheduled_ns=round(sent_s * S),
        input_tokens=64,
        output_len=len(token_s),
        sent_ns=round(sent_s * S),
        chunks=chunks,
        end_ns=chunks[-1].t_ns if chunks else None,
        finish_reason="length",
        prompt_tokens=prompt,
        cached_tokens=0,
        completion_tokens=len(token_s),
    )


def values(*requests: RequestTimeline) -> dict[str, float | None]:
    return {name: figure.value for name, figure in derive_load(requests, emulated=False).items()}


def test_prefills_between_requests_one_after_the_other_are_not_decoding_time() -> None:
    found = values(request("a", 0, 3, 4, 5), request("b", 5, 8, 9, 10))
    assert found["decode_rate_global_tokens_per_s"] == 1.0
    assert found["wall_s"] == 10.0
    assert found["throughput_output_tokens_per_s"] == 0.6
    assert found["in_flight_peak"] == 1


def test_overlapping_decodes_count_their_time_once() -> None:
    found = values(request("a", 0, 1, 2, 3, 4), request("b", 0, 2, 3, 4, 5))
    assert found["decode_rate_global_tokens_per_s"] == 6 / 4
    assert found["in_flight_peak"] == 2


def test_a_decode_within_another_adds_tokens_and_no_time() -> None:
    found = values(request("a", 0, 1, 9), request("b", 0, 2, 3), request("c", 0, 4, 5))
    assert found["decode_rate_global_tokens_per_s"] == 3 / 8


def test_the_tokens_of_first_chunks_are_in_no_global_decode_rate() -> None:
    one = request("a", 0, 1, 2, 3)
    several = replace(one, chunks=(replace(one.chunks[0], tokens=5), *one.chunks[1:]))
    assert values(several)["decode_rate_global_tokens_per_s"] == values(one)["decode_rate_global_tokens_per_s"] == 1.0


def test_the_statistics_of_requests_are_theirs() -> None:
    found = values(request("a", 0, 1, 2), request("b", 0, 2, 4), request("c", 0, 6, 9))
    assert [found[f"ttft_{name}_s"] for name in ("median", "min", "max")] == [2.0, 1.0, 6.0]
    assert [found[f"e2e_{name}_s"] for name in ("median", "min", "max")] == [4.0, 2.0, 9.0]
    assert [found[f"decode_rate_{name}_tokens_per_s"] for name in ("min", "max")] == [1 / 3, 1.0]


def test_enough_requests_have_percentiles() -> None:
    found = values(*(request(f"r{index}", 0, index + 1, index + 2) for index in range(59)))
    assert (found["ttft_p90_s"], found["ttft_p95_s"], found["ttft_p99_s"]) == (54.0, 57.0, None)


def test_a_prompt_that_was_not_counted_leaves_total_throughput_null_and_output_throughput_not() -> None:
    figures = derive_load([request("a", 0, 1, 2, prompt=None)], emulated=False)
    assert figures["throughput_total_tokens_per_s"].reason == "request a: the server did not count its prompt"
    assert figures["throughput_output_tokens_per_s"].value == 1.0


def test_no_request_at_all_is_null_with_a_reason() -> None:
    assert {figure.reason for figure in derive_load([], emulated=False).values()} == {"no request"}


def test_a_request_that_is_cut_off_names_itself_in_every_figure_that_needs_it() -> None:
    figures = derive_load([request("a", 0, 1, 2), replace(request("b", 0, 1, 2), end_ns=None)], emulated=False)
    assert figures["wall_s"].reason == "request b: no request_end event"
    assert figures["ttft_median_s"].value == 1.0


def test_every_definition_is_one_of_its_own() -> None:
    native = [one for one in SERVING_DEFINITIONS.values() if not one.emulated]
    assert len(native) == len(REQUEST_NAMES) + len(LOAD_NAMES)
    assert len(SERVING_DEFINITIONS) == 2 * len(native)
    assert not set(SERVING_DEFINITIONS) & (set(DEFINITIONS) | set(OTHER_DEFINITIONS))
    for one in SERVING_DEFINITIONS.values():
        assert re.fullmatch(r"[a-z0-9_.]+/[0-9]+", one.id)
        assert one.unit and one.text.endswith(".") and one.formula and one.title
    assert len(set(REQUEST_NAMES)) == len(REQUEST_NAMES) and len(set(LOAD_NAMES)) == len(LOAD_NAMES)


@pytest.mark.parametrize("of", ["request", "load"])
def test_an_emulated_figure_never_has_the_id_of_a_native_one(of: str) -> None:
    one = request("a", 0, 1, 2)
    native, emulated = (
        derive_request(one, emulated=flag) if of == "request" else derive_load([one], emulated=flag)
        for flag in (False, True)
    )
    for name, figure in native.items():
        assert emulated[name].value == figure.value
        assert emulated[name].definition == emulated_id(figure.definition)
        assert {figure.definition, emulated[name].definition} <= set(SERVING_DEFINITIONS)


@given(st.lists(st.integers(1, 10**10), min_size=2, max_size=40))
def test_decode_rate_tpot_and_the_mean_gap_say_the_same(gaps: list[int]) -> None:
    times = [sum(gaps[: index + 1]) / S for index in range(len(gaps))]
    figures = {name: f.value for name, f in derive_request(request("a", 0, *times), emulated=False).items()}
    rate, tpot, e2e = (figures[name] for name in ("decode_rate_tokens_per_s", "tpot_s", "e2e_s"))
    assert rate is not None and tpot is not None and e2e is not None
    assert rate * tpot == pytest.approx(1)
    assert tpot * (len(gaps) - 1) == pytest.approx(sum(gaps[1:]) / S)
    assert e2e == pytest.approx(sum(gaps) / S)
