"""Every pitfall as the exact timeline that a server plays to the client, and the exact figures that come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.record.request_figures import derive_request, flags
from rvvbench.record.request_timeline import RequestTimeline, loads
from rvvbench.record.serving import derive_load
from rvvbench.record.serving_validity import assess_load

from .play import Played, ask, play
from .scripted_server import DONE, HEAD, LAST, Script, answer, generated, message

EVEN = [(3000 + 500 * index, 1) for index in range(8)]  # 8 tokens at 3.0, 3.5 ... 6.5 s


def one(tmp_path: Path, script: Script, output_len: int = 8) -> RequestTimeline:
    return play(tmp_path, lambda _: script, output_len=output_len).requests[0]


def values(request: RequestTimeline) -> dict[str, float | None]:
    return {name: figure.value for name, figure in derive_request(request, emulated=False).items()}


def reason(request: RequestTimeline, name: str) -> str | None:
    return derive_request(request, emulated=False)[name].reason


def invalid(played: Played, *, requests: int = 1, input_len: int = 4, output_len: int = 8) -> list[tuple[str, str]]:
    load = loads(played.events)[0]
    reasons = assess_load(load, played.requests, requests=requests, input_len=input_len, output_len=output_len)
    return [(one.id, one.text) for one in reasons]


def test_eight_tokens_half_a_second_apart_are_exactly_two_tokens_a_second(tmp_path: Path) -> None:
    assert values(one(tmp_path, answer(EVEN))) == {
        "ttft_s": 3.0,
        "decode_rate_tokens_per_s": 2.0,
        "tpot_s": 0.5,
        "itl_median_s": 0.5,
        "itl_max_s": 0.5,
        "e2e_s": 6.5,
        "queue_s": 0.0,
    }


def test_an_answer_as_it_should_be_is_valid_and_not_flagged(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN))
    assert invalid(played) == []
    assert flags(played.requests[0]) == ()


def test_new_tokens_only_give_the_same_timeline_as_all_tokens_so_far(tmp_path: Path) -> None:
    cumulative = play(tmp_path, lambda _: answer(EVEN))
    incremental = play(tmp_path, lambda _: answer(EVEN, incremental=True), incremental=True)
    assert incremental.requests == cumulative.requests
    ids = [event["token_ids"] for event in incremental.named("chunk")]
    assert ids == [event["token_ids"] for event in cumulative.named("chunk")] == [[100 + i] for i in range(8)]


def test_a_first_chunk_of_several_tokens_makes_decode_no_faster_and_ttft_an_upper_bound(tmp_path: Path) -> None:
    request = one(tmp_path, answer([(3000, 3), (3500, 1), (4000, 1), (4500, 1), (5000, 1), (5500, 1)]))
    found = values(request)
    assert found["decode_rate_tokens_per_s"] == 2.0  # 5 tokens in 2.5 s; counting all 8 would say 2.8
    assert (found["tpot_s"], found["itl_median_s"], found["ttft_s"]) == (0.5, 0.5, 3.0)
    assert [(flag.id, flag.text) for flag in flags(request)] == [
        ("ttft-upper-bound", "request r0: TTFT is an upper bound, its first chunk brought 3 tokens")
    ]


def test_chunks_that_arrive_in_one_read_are_one_arrival(tmp_path: Path) -> None:
    both = HEAD + message(generated([100])) + message(generated([100, 101]))
    last = message(generated([100, 101, 102], finish_reason={"type": "length", "length": 3})) + DONE + LAST
    request = one(tmp_path, Script([(1000, both), (1500, last)]), output_len=3)
    assert [chunk.tokens for chunk in request.chunks] == [1, 1, 1]
    assert values(request)["decode_rate_tokens_per_s"] == 2.0
    assert flags(request)[0].id == "ttft-upper-bound"


def test_an_answer_in_one_chunk_has_no_decode_rate_and_says_why(tmp_path: Path) -> None:
    request = one(tmp_path, answer([(6500, 8)]))
    found = values(request)
    assert (found["ttft_s"], found["e2e_s"]) == (6.5, 6.5)
    for name in ("decode_rate_tokens_per_s", "tpot_s", "itl_median_s", "itl_max_s"):
        assert found[name] is None
        assert reason(request, name) == "all 8 tokens came in one chunk: nothing tells when they were made"


def test_one_token_has_no_interval(tmp_path: Path) -> None:
    request = one(tmp_path, answer([(3000, 1)]), output_len=1)
    assert values(request)["ttft_s"] == 3.0
    assert reason(request, "decode_rate_tokens_per_s") == "one output token: there is no interval between tokens"


def test_later_chunks_of_several_tokens_keep_the_rate_and_leave_the_latency_between_tokens_unknown(
    tmp_path: Path,
) -> None:
    request = one(tmp_path, answer([(3000, 1), (4500, 3), (6000, 3), (6500, 1)]))
    found = values(request)
    assert (found["decode_rate_tokens_per_s"], found["itl_max_s"]) == (2.0, 1.5)
    assert found["itl_median_s"] is None
    assert reason(request, "itl_median_s") == (
        "6 of the 8 tokens came in a chunk with others: their own times are not known"
    )
    assert [flag.id for flag in flags(request)] == ["tokens-together"]


def test_empty_chunks_are_no_tokens_first_in_the_middle_or_last(tmp_path: Path) -> None:
    request = one(tmp_path, answer([(1000, 0), *EVEN[:3], (4200, 0), *EVEN[3:], (7000, 0)]))
    assert len(request.chunks) == 11
    assert values(request) == values(one(tmp_path, answer(EVEN)))


def test_a_short_answer_invalidates_and_names_the_request(tmp_path: Path) -> None:
    played = play(tmp_path, lambda index: answer(EVEN if index == 0 else EVEN[:5]), count=2)
    assert invalid(played, requests=2) == [("output-length", "request r1: 5 tokens came, declared 8")]
    assert values(played.requests[1])["decode_rate_tokens_per_s"] == 2.0


def test_an_answer_that_a_stop_token_ended_is_named(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN, finish_reason={"type": "stop", "matched": 2}))
    assert invalid(played) == [("finish-reason", "request r0: finished by stop, not by its length")]


def test_an_aborted_request_is_named(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN[:2], finish_reason={"type": "abort", "message": "out of memory"}))
    assert ("finish-reason", "request r0: finished by abort, not by its length") in invalid(played)
    assert played.named("request_end")[0]["finish_reason"] == {"type": "abort", "message": "out of memory"}


def test_an_error_in_mid_stream_keeps_what_came_and_invalidates(tmp_path: Path) -> None:
    pieces = [*answer(EVEN).pieces[:3], (4200, message({"error": {"message": "the scheduler died"}}) + DONE)]
    played = play(tmp_path, lambda _: Script(pieces))
    request = played.requests[0]
    assert [event["token_ids"] for event in played.named("chunk")] == [[100], [101], [102]]
    assert values(request)["ttft_s"] == 3.0
    assert reason(request, "decode_rate_tokens_per_s") == "it failed after 3 tokens (server: the scheduler died)"
    assert ("request-error", "request r0: failed after 3 tokens: server: the scheduler died") in invalid(played)
    assert played.outcomes[0].error == "server"


def test_cached_prompt_tokens_invalidate(tmp_path: Path) -> None:
    assert invalid(play(tmp_path, lambda _: answer(EVEN, cached_tokens=3))) == [
        ("cached-tokens", "request r0: 3 prompt tokens came from the server's cache, not from a prefill")
    ]


def test_a_server_that_does_not_tell_what_was_cached_proves_nothing(tmp_path: Path) -> None:
    assert [id_ for id_, _ in invalid(play(tmp_path, lambda _: answer(EVEN, cached_tokens=None)))] == [
        "cached-tokens-unproven"
    ]


def test_a_prompt_that_the_server_counts_otherwise_invalidates(tmp_path: Path) -> None:
    assert invalid(play(tmp_path, lambda _: answer(EVEN, prompt_tokens=5))) == [
        ("prompt-length", "request r0: the server counted 5 of 4 prompt tokens")
    ]


def test_token_ids_that_the_server_counts_otherwise_invalidate(tmp_path: Path) -> None:
    assert invalid(play(tmp_path, lambda _: answer(EVEN, completion_tokens=9))) == [
        ("token-count", "request r0: 8 token ids came, the server counted 9")
    ]


def test_tokens_that_the_server_does_not_count_prove_nothing(tmp_path: Path) -> None:
    assert invalid(play(tmp_path, lambda _: answer(EVEN, completion_tokens=None))) == [
        ("token-count-unproven", "request r0: the server did not count its tokens")
    ]


def test_a_prompt_that_the_server_does_not_count_proves_nothing(tmp_path: Path) -> None:
    assert invalid(play(tmp_path, lambda _: answer(EVEN, prompt_tokens=None))) == [
        ("prompt-length-unproven", "request r0: the server did not count its prompt")
    ]


def test_fewer_requests_than_declared_are_found(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN), count=2)
    assert invalid(played, requests=4) == [("request-count", "load measured: 2 requests were started, 4 are declared")]


def test_a_prompt_without_a_digest_is_not_proven_to_be_new(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN))
    events = [{key: value for key, value in event.items() if key != "input_sha256"} for event in played.events]
    assert invalid(Played(played.outcomes, tuple(events), played.server)) == [
        ("prompt-unproven", "request r0: the digest of its prompt is not known")
    ]


def test_a_shape_other_than_the_declared_one_invalidates(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN))
    assert invalid(played, input_len=64, output_len=9) == [
        ("prompt-length", "request r0: 4 prompt tokens were sent, declared 64"),
        ("output-length", "request r0: 8 tokens were asked for, declared 9"),
        ("output-length", "request r0: 8 tokens came, declared 9"),
    ]


def test_the_warm_up_prompt_measured_again_is_found(tmp_path: Path) -> None:
    first = ask(0)
    again = type(first)("again", first.input_ids, first.output_len)
    played = play(tmp_path, lambda _: answer(EVEN), asked=[first, again])
    assert [text for id_, text in invalid(played, requests=2) if id_ == "prompt-repeated"] == [
        "request r0: its prompt is also that of again",
        "request again: its prompt is also that of r0",
    ]


def test_the_clients_own_queue_is_told_apart_from_ttft(tmp_path: Path) -> None:
    slow = answer(EVEN)
    request = one(tmp_path, Script(slow.pieces, connect_ms=250))
    found = values(request)
    assert (found["queue_s"], found["ttft_s"], found["e2e_s"]) == (0.25, 3.0, 6.5)


def test_two_requests_at_a_time_have_exact_global_figures(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN), count=4, concurrency=2)
    assert invalid(played, requests=4) == []
    found = {name: figure.value for name, figure in derive_load(played.requests, emulated=False).items()}
    assert found["wall_s"] == 13.0
    assert found["decode_rate_global_tokens_per_s"] == 4.0  # 28 tokens in two stretches of 3.5 s
    assert found["throughput_total_tokens_per_s"] == 4 * 12 / 13.0
    assert found["throughput_output_tokens_per_s"] == 4 * 8 / 13.0
    assert found["in_flight_peak"] == 2
    assert (found["ttft_median_s"], found["ttft_max_s"], found["itl_median_s"]) == (3.0, 3.0, 0.5)


def test_a_percentile_of_too_few_requests_is_null_and_says_how_many_it_needs(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN), count=4)
    found = derive_load(played.requests, emulated=False)
    assert found["ttft_p90_s"].reason == "4 samples: the 90th percentile needs 29"
    assert found["itl_p90_s"].reason == "28 samples: the 90th percentile needs 29"
    found = derive_load([*played.requests, played.requests[0]], emulated=False)
    assert (found["itl_p90_s"].value, found["itl_p95_s"].value) == (0.5, None)


def test_a_load_with_a_failed_request_has_no_throughput_and_names_it(tmp_path: Path) -> None:
    refused = Script(refused=True)
    played = play(tmp_path, lambda index: refused if index == 1 else answer(EVEN), count=3)
    found = derive_load(played.requests, emulated=False)
    for name in ("wall_s", "throughput_total_tokens_per_s", "decode_rate_global_tokens_per_s", "ttft_median_s"):
        assert found[name].value is None
        assert (found[name].reason or "").startswith("request r1: it was never sent (connect: ")
    assert "concurrency-unproven" in dict(invalid(played, requests=3))
    assert [outcome.error for outcome in played.outcomes] == [None, "connect", None]


@pytest.mark.parametrize("concurrency", [1, 2, 3])
def test_as_many_requests_are_in_flight_as_declared(tmp_path: Path, concurrency: int) -> None:
    played = play(tmp_path, lambda _: answer(EVEN), count=5, concurrency=concurrency)
    assert invalid(played, requests=5) == []
    assert derive_load(played.requests, emulated=False)["in_flight_peak"].value == concurrency


def test_fewer_requests_in_flight_than_declared_is_found(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(EVEN), count=2)
    events = [{**event, "concurrency": 2} if event["event"] == "load_start" else event for event in played.events]
    assert invalid(Played(played.outcomes, tuple(events), played.server), requests=2) == [
        ("concurrency", "load measured: 1 requests were in flight at most, not 2")
    ]
