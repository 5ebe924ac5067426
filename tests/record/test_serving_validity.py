"""One thing wrong at a time in a server's events, and the reason that must be found for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvvbench.record.arrivals import offsets_ns
from rvvbench.record.build import Ran
from rvvbench.record.client_lag import lag_remarks
from rvvbench.record.events import EventsRead
from rvvbench.record.operators import PACKED_LINEAR_OP
from rvvbench.record.schema import Expected, Row, Validity
from rvvbench.runner.arrivals import Arrivals

from . import sample, serving_sample
from .sample import Event
from .serving_sample import events, expected, load, ran, row
from .test_metrics import json_values

Change = Callable[[list[Event]], list[Event]]


def after(change: Change, concurrency: int = 2, expects: Expected | None = None, *, packed: bool = False) -> Validity:
    """Validity of the row of that concurrency of a server whose events were changed."""
    expects = expects or expected(concurrency, packed=packed)
    return row(packed=packed, expects=expects, processes=[ran(change(events(packed=packed)))]).validity


def said(validity: Validity) -> list[tuple[str, str]]:
    return [(reason.id, reason.text) for reason in validity.reasons]


def setting(event_name: str, nth: int = 0, where: dict[str, Any] | None = None, **fields: Any) -> Change:
    """Set `fields` of the nth event of that name which has the fields `where`."""

    def change(of: list[Event]) -> list[Event]:
        fitting = [e for e in of if e["event"] == event_name and all(e.get(k) == v for k, v in (where or {}).items())]
        fitting[nth].update(fields)
        return of

    return change


def dropping(event_name: str, **where: Any) -> Change:
    return lambda of: [e for e in of if e["event"] != event_name or any(e.get(k) != v for k, v in where.items())]


def adding(**event: Any) -> Change:
    return lambda of: [*of, event]


def unchanged(of: list[Event]) -> list[Event]:
    return of


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_server_that_did_what_was_declared_gives_valid_rows(concurrency: int, packed: bool) -> None:
    assert said(after(unchanged, concurrency, packed=packed)) == []


OF_C2 = {"load": "c2"}
AFTER = {"load": "c2", "moment": "after"}
BEFORE = {"load": "c2", "moment": "before"}
WRONG: list[tuple[Change, str, str]] = [
    (dropping("server_ready"), "events-incomplete", "0 server_ready events, 1 belongs"),
    (dropping("environment"), "events-incomplete", "0 environment events, 1 belongs"),
    (dropping("process_start"), "events-incomplete", "0 process_start events, 1 belongs"),
    (dropping("pin"), "pins-unproven", "the process checked no pin"),
    (
        setting("supervisor_start", schema="rvvbench/events/2"),
        "events-schema",
        "the events are rvvbench/events/2, rvvbench/events/1 is read",
    ),
    (setting("supervisor_start", machine="x86_64"), "machine", "ran on x86_64, declared riscv64"),
    (setting("environment", torch_threads=8), "threads", "torch ran with 8 threads, declared 1"),
    (setting("environment", vlen_bits=128), "vlen", "VLEN was 128 bits, declared 256"),
    (
        setting("environment", server_args={**serving_sample.SERVER_ARGS, "disable_radix_cache": False}),
        "server-args",
        "disable_radix_cache was False, declared True",
    ),
    (
        setting("memory", where={"role": "scheduler"}, emulated=False),
        "emulation",
        "the memory of scheduler says emulated False, declared True",
    ),
    (setting("process_end", exit_code=3), "process-failed", "the process ended with 3"),
    (setting("process_end", exit_code=None, signal=9), "process-failed", "the process was ended by signal 9"),
    (dropping("process_end"), "process-not-ended", "the supervisor did not see the process end"),
    (
        adding(event="error", type="server-died", message="killed by signal 9"),
        "error",
        "server-died: killed by signal 9",
    ),
    (
        adding(event="error", type="request-failed", message="1 of 4", phase="c2"),
        "error",
        "request-failed: 1 of 4",
    ),
    (dropping("load_start", load="c2"), "load-missing", "there is no load c2 in the events"),
    (
        setting("load_start", where=OF_C2, concurrency=3),
        "load",
        "load c2 was closed, concurrency 3, arrivals None, rate None, declared closed, 2, None, None",
    ),
    (
        setting("load_start", where=OF_C2, arrivals="fixed"),
        "load",
        "load c2 was closed, concurrency 2, arrivals fixed, rate None, declared closed, 2, None, None",
    ),
    (setting("load_start", where=OF_C2, measured=False), "load", "load c2 was run as a warm-up"),
    (setting("load_end", where=OF_C2, complete=False), "load-incomplete", "load c2 did not come to its end"),
    (
        setting("chunk", where={"request": "c2-1"}, cached_tokens=63),
        "events-damaged",
        "request c2-1: the server gave several cached_tokens: 0, 63",
    ),
    (
        setting("request_start", where={"request": "c2-1"}, input_sha256=f"{1:064x}"),
        "prompt-repeated",
        "request c2-1: its prompt is also that of ready-0",
    ),
    (
        dropping("load_start", load="c2-warmup"),
        "warmup",
        "load c2 had no warm-up: there is no load c2-warmup",
    ),
    (
        setting("request_end", where={"request": "c2-warmup-1"}, event="request_error", kind="http", message="500"),
        "warmup",
        "request c2-warmup-1 of the warm-up did not end: http: 500",
    ),
    (
        setting("load_start", where={"load": "c2-warmup"}, requests=2, event="x"),
        "warmup",
        "load c2 had no warm-up: there is no load c2-warmup",
    ),
    (
        dropping("request_start", request="c2-warmup-1"),
        "warmup",
        "load c2-warmup had 1 requests, load c2 can have 2 at once",
    ),
    (
        dropping("chunk", request="c2-warmup-1", total_tokens=8),
        "warmup",
        "request c2-warmup-1 of the warm-up had 64 tokens in and 7 out, declared 64 and 8",
    ),
    (
        setting("load_end", where={"load": "c2-warmup"}, t_ns=10**15),
        "order",
        "the end of load c2-warmup at 1000000000000000 ns does not come before load c2 at 88375000000 ns",
    ),
    (
        setting("load_end", where=OF_C2, t_ns=90 * 10**9),
        "order",
        "the end of request c2-3 at 109125000000 ns does not come before the end of load c2 at 90000000000 ns",
    ),
    (
        setting("load_start", where=OF_C2, t_ns=89 * 10**9),
        "order",
        "load c2 at 89000000000 ns does not come before request c2-0 at 88375000000 ns",
    ),
    (
        setting("load_end", where={"load": "c2-warmup"}, t_ns=80 * 10**9),
        "order",
        "the end of request c2-warmup-1 at 86375000000 ns does not come before "
        "the end of load c2-warmup at 80000000000 ns",
    ),
    (
        setting("server_listening", seconds=19.7),
        "startup-time",
        "server_listening says 19.700 s after the start, its time is 20.000 s after it",
    ),
    (
        setting("server_ready", seconds=1.0),
        "startup-time",
        "server_ready says 1.000 s after the start, its time is 25.000 s after it",
    ),
    (setting("server_ready", seconds=None), "startup-time", "server_ready has no seconds: None"),
    (
        setting("request_end", where={"request": "c2-1"}, tokens=7),
        "events-damaged",
        "request c2-1: its request_end event says 7 tokens, 8 came",
    ),
    (
        setting("request_end", where={"request": "c2-1"}, tokens=8.0),
        "events-damaged",
        "request c2-1: its request_end event says 8.0 tokens, 8 came",
    ),
    (
        setting("chunk", 7, where={"request": "c2-1"}, total_tokens=8.0),
        "events-damaged",
        "request c2-1: the server gave total_tokens 8.0, which is no count",
    ),
    (dropping("attestation", **AFTER), "attestation", "0 attestations after load c2, 1 belongs"),
    (
        setting("attestation", where=BEFORE, t_ns=10**15),
        "attestation",
        "load c2 does not lie between its attestations",
    ),
    (
        setting("attestation", where=AFTER, library_sha256="11" * 32),
        "attestation",
        "the kernel library changed while load c2 ran",
    ),
    (
        setting("attestation", where=AFTER, ops=None),
        "attestation",
        "an attestation has no table of ops",
    ),
    (
        setting("attestation", where=AFTER, routing=[{"projection": "qkv_proj", "m": 1, "path": "torch"}]),
        "attestation",
        "an attestation has no routing table that can be read",
    ),
    (
        setting("attestation", where=AFTER, ops={"some_op": {"calls": "7"}}),
        "attestation",
        "an attestation has no number of calls of op some_op",
    ),
    (
        setting("load_end", where=OF_C2, t_ns=10**15),
        "attestation",
        "load c2 does not lie between its attestations",
    ),
]


@pytest.mark.parametrize(("change", "id_", "text"), WRONG, ids=[f"{id_}-{n}" for n, (_, id_, _) in enumerate(WRONG)])
def test_one_wrong_thing_is_found_and_named(change: Change, id_: str, text: str) -> None:
    assert (id_, text) in said(after(change))


def test_a_counter_that_falls_is_found_even_between_other_loads() -> None:
    def change(of: list[Event]) -> list[Event]:
        first = next(e for e in of if e["event"] == "attestation" and e["load"] == "c1" and e["moment"] == "after")
        first["routing"][0]["calls"] += 1000
        return of

    (reason,) = said(after(change))
    assert reason == (
        "attestation",
        "the counter of route qkv_proj 64 torch falls from after c1 to before c2: 1012 to 12",
    )
    assert said(after(unchanged, 1)) == []


def routed(calls: int, *, concurrency: int = 2, moment: str = "after", **line: Any) -> Change:
    """Count `calls` more of a route."""

    def change(of: list[Event]) -> list[Event]:
        for e in of:
            if e["event"] == "attestation" and (e["load"], e["moment"]) == (f"c{concurrency}", moment):
                e["routing"].append({**line, "calls": calls})
        return of

    return change


def test_rows_that_no_load_of_this_concurrency_brings_are_found() -> None:
    found = said(after(routed(2, projection="qkv_proj", m=3, path="torch")))
    assert ("routing", "qkv_proj at M=3: expected no such rows, observed torch x 2") in found


def test_a_path_that_the_variant_does_not_take_is_found() -> None:
    found = said(after(routed(2, projection="qkv_proj", m=2, path="packed")))
    assert ("routing", "qkv_proj at M=2: expected torch, observed packed x 2") in found


def test_rows_are_conserved() -> None:
    found = said(after(routed(2, projection="qkv_proj", m=2, path="torch")))
    assert ("routing", "qkv_proj computed 572 rows, 4 requests need 568") in found
    assert ("routing", "o_proj and qkv_proj of the same layers show different passes") in found


def test_a_head_that_was_called_too_often_is_found() -> None:
    found = said(after(routed(1, projection="lm_head", m=1, path="torch")))
    assert ("routing", "lm_head computed 33 rows, 4 requests need 32") in found
    assert ("routing", "qkv_proj was called 32 times, 2 layers in 17 passes need another count") in found


def test_the_number_of_layers_may_be_taken_from_what_is_shown() -> None:
    assert said(after(unchanged, expects=expected(2, load=load(2, layers=None)))) == []
    found = said(after(unchanged, expects=expected(2, load=load(2, layers=4))))
    assert ("routing", "qkv_proj computed 568 rows, 4 requests need 1136") in found
    # Another projection that has more rows than the first is not one of as many layers.
    unlike = routed(2, projection="o_proj", m=2, path="torch")
    found = said(after(unlike, expects=expected(2, load=load(2, layers=None))))
    assert ("routing", "o_proj computed 572 rows, 4 requests need 568") in found


def decoded_alone(of: list[Event]) -> list[Event]:
    """As if all but one pair of decode steps had been taken one request at a time."""
    for e in of:
        if e["event"] == "attestation" and (e["load"], e["moment"]) == ("c2", "after"):
            for line in e["routing"]:
                # 14 decode steps of two rows: 8 of them become 16 of one row.
                times = 1 if line["projection"] == "lm_head" else 2
                if line["m"] == 2:
                    line["calls"] -= 8 * times
                elif line["m"] == 1:
                    line["calls"] += 16 * times
    return of


def test_a_concurrency_that_was_in_flight_but_not_in_the_batches_is_unproven() -> None:
    assert said(after(decoded_alone)) == [
        ("concurrency-unproven", "load c2: 43 % of its tokens were decoded 2 at once, 50 % must be")
    ]


def test_projections_of_one_layer_that_show_different_passes_leave_the_concurrency_unproven() -> None:
    def change(of: list[Event]) -> list[Event]:
        for e in of:
            if e["event"] == "attestation" and (e["load"], e["moment"]) == ("c2", "after"):
                own = {line["m"]: line for line in e["routing"] if line["projection"] == "o_proj"}
                # As many rows as before, in other passes.
                own[2]["calls"] -= 2
                own[1]["calls"] += 4
        return of

    assert ("routing", "o_proj and qkv_proj of the same layers show different passes") in said(after(change))
    text = "load c2: the projections of a layer do not show the same passes"
    assert ("concurrency-unproven", text) in said(after(change))


def test_a_load_without_a_decode_step_has_not_shown_its_concurrency() -> None:
    def change(of: list[Event]) -> list[Event]:
        before, found = [e for e in of if e["event"] == "attestation" and e["load"] == "c2"]
        decoded = [line for line in before["routing"] if line["m"] <= 2]
        found["routing"] = [line for line in found["routing"] if line["m"] > 2] + decoded
        return of

    assert ("concurrency-unproven", "load c2: no decode step was attested") in said(after(change))


def test_prompts_as_short_as_the_batch_leave_the_concurrency_unproven() -> None:
    found = said(after(unchanged, expects=expected(2, input_len=2)))
    text = "load c2: a prefill of 2 tokens looks like a decode step of as many requests"
    assert ("concurrency-unproven", text) in found


def test_kernels_of_a_load_are_those_of_its_own_calls() -> None:
    def change(of: list[Event]) -> list[Event]:
        for e in of:
            if e["event"] == "attestation":
                e["ops"]["convert_weight_packed"] = sample.op(9, "convert_weight_packed_rvv")
        return of

    # The weights were packed before: not in the difference.
    assert said(after(change, packed=True)) == []


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        ({}, "the counter of op {op} falls from before c2 to after c2: 504 to 0"),
        ({PACKED_LINEAR_OP: sample.op(648, "x_rvv")}, "the counter of kernel {op} packed_linear_bf16_rvv falls"),
    ],
)
def test_kernels_that_disappear_are_found(ops: Any, text: str) -> None:
    found = said(after(setting("attestation", where=AFTER, ops=ops), packed=True))
    assert [id_ for id_, _ in found] == ["attestation"]
    assert found[0][1].startswith(text.format(op=PACKED_LINEAR_OP))


def test_a_route_that_torch_computed_in_fact_is_found() -> None:
    def change(of: list[Event]) -> list[Event]:
        before, found = [e for e in of if e["event"] == "attestation" and e["load"] == "c2"]
        found["ops"] = before["ops"]
        return of

    found = said(after(change, packed=True))
    assert ("kernels", f"op {PACKED_LINEAR_OP}: expected some calls, observed 0") in found
    assert ("kernels", "144 calls were routed as packed, the kernels attest 0") in found


def test_a_failed_request_of_another_load_leaves_the_row_valid() -> None:
    def change(of: list[Event]) -> list[Event]:
        error = {"event": "error", "type": "request-failed", "message": "1 of 4 requests of load c1", "phase": "c1"}
        of[-1]["exit_code"] = 1
        return [*of[:-1], error, of[-1]]

    assert said(after(change)) == []
    assert [id_ for id_, _ in said(after(change, 1))] == ["error", "process-failed"]
    ended = EventsRead(tuple(change(events())))
    assert said(row(2, processes=[Ran(ended, container_exit_code=1)]).validity) == []
    killed = said(row(2, processes=[Ran(ended, container_exit_code=137)]).validity)
    assert killed == [("container-failed", "the container ended with 137")]


RATE_PER_S = 200.0
DUE_NS = {"fixed": [0, 5_000_000, 10_000_000, 15_000_000], "poisson": [0, 721_455, 10_122_237, 17_337_081]}
"""At this rate; Poisson arrivals are those of seed 1."""


@pytest.mark.parametrize("type_", ["server-died", "request-failed", "runner"])
def test_whatever_ends_a_cross_check_leaves_complete_loads_valid(type_: str) -> None:
    def change(of: list[Event]) -> list[Event]:
        error = {"event": "error", "type": type_, "message": "the scheduler (pid 11) ended", "phase": "cross_check"}
        of[-1]["exit_code"] = 1
        return [*of[:-2], error, *of[-2:]]

    assert said(after(change)) == []
    ended = EventsRead(tuple(change(events())))
    assert said(row(2, processes=[Ran(ended, container_exit_code=1)]).validity) == []
    elsewhere = dropping("load_end", load="c2")
    assert ("load-incomplete", "load c2 did not come to its end") in said(after(lambda of: elsewhere(change(of))))


@pytest.mark.parametrize("lag_s", [0.0, 0.002, 0.624, 0.625])
def test_a_client_that_was_never_held_up_for_long_is_valid(lag_s: float) -> None:
    assert said(after(setting("load_end", where=OF_C2, client_lag_max_s=lag_s))) == []


def test_a_client_that_stood_still_for_a_twentieth_of_the_load_and_longer_than_the_median_itl_is_found() -> None:
    """Load c2 takes 20.75 s, a twentieth of which is 1.0375 s."""
    found = said(after(setting("load_end", where=OF_C2, client_lag_max_s=0.7, client_lag_sum_s=1.04)))
    text = "load c2: the client itself stood still for 0.700 s, longer than the median ITL of 0.625 s"
    assert found == [("client-stalled", f"{text}, and for 5 % of the load's time in all")]
    assert said(after(setting("load_end", where=OF_C2, client_lag_max_s=0.7, client_lag_sum_s=1.03))) == []
    assert said(after(setting("load_end", where=OF_C2, client_lag_max_s=0.6, client_lag_sum_s=5.0))) == []
    assert said(after(setting("load_end", where={"load": "c1"}, client_lag_max_s=5.0, client_lag_sum_s=5.0))) == []


def test_a_stall_counts_whole_where_the_sum_of_stalls_is_not_told() -> None:
    assert said(after(setting("load_end", where=OF_C2, client_lag_max_s=1.03))) == []
    assert [kind for kind, _ in said(after(setting("load_end", where=OF_C2, client_lag_max_s=1.04)))] == [
        "client-stalled"
    ]


def test_requests_of_one_token_are_compared_by_their_ttft() -> None:
    def change(of: list[Event]) -> list[Event]:
        of = [e for e in of if e["event"] != "chunk" or e["total_tokens"] == 1]
        for e in of:
            if e["event"] == "request_end":
                e.update(tokens=1, completion_tokens=1)
        return setting("load_end", where=OF_C2, client_lag_max_s=6.1)(of)

    text = "load c2: the client itself stood still for 6.100 s, longer than the median TTFT of 6.000 s"
    text += ", and for 29 % of the load's time in all"
    assert ("client-stalled", text) in said(after(change))


@pytest.mark.parametrize("value", [None, "0", True, -0.1, [0.1]])
def test_a_lag_that_is_no_time_is_unproven(value: Any) -> None:
    found = said(after(setting("load_end", where=OF_C2, client_lag_max_s=value)))
    assert found == [("client-lag-unproven", f"load c2: how long the client stood still is {value}")]


@pytest.mark.parametrize(
    ("lag_s", "lines"),
    [
        (0.06, []),
        (
            0.125,
            [
                "The client itself stood still for up to 125 ms while torch-native/none/c2 ran, 20 % of its median "
                "ITL: a part of that latency is the client's."
            ],
        ),
        (
            0.7,
            [
                "The client itself stood still for up to 700 ms while torch-native/none/c2 ran, 112 % of its median "
                "ITL: a part of that latency is the client's."
            ],
        ),
        (1.04, []),
        ("0.125", []),
    ],
)
def test_a_lag_that_is_a_part_of_the_latency_is_remarked(lag_s: Any, lines: list[str]) -> None:
    happened = setting("load_end", where=OF_C2, client_lag_max_s=lag_s)(events())
    record = serving_sample.record(*(row(c, processes=[ran(happened)]) for c in (1, 2)))
    assert list(lag_remarks(record)) == lines


def open_loop(arrivals: str, due_ns: list[int] | None = None, **start: Any) -> list[Event]:
    """As if load c4 had been an open one: its requests were due in the 20 ms before all were sent."""
    of = events((4,))
    begin = next(e for e in of if e["event"] == "load_start" and e["load"] == "c4")
    begin["t_ns"] -= 20_000_000
    seed = 1 if arrivals == "poisson" else None
    begin.update({"mode": "open", "concurrency": None, "arrivals": arrivals, "rate_per_s": RATE_PER_S, "seed": seed})
    own = [e for e in of if e["event"] == "request_start" and e["load"] == "c4"]
    for e, offset_ns in zip(own, due_ns or DUE_NS[arrivals], strict=True):
        e["scheduled_ns"] = begin["t_ns"] + offset_ns
    begin.update(start)
    return of


def of_open_loop(arrivals: str, happened: list[Event], **changes: Any) -> list[tuple[str, str]]:
    """What is found in the row of it."""
    fields = {"name": "c4", "mode": "open", "arrivals": arrivals, "rate_per_s": RATE_PER_S, **changes}
    expects = expected(load=load(None, **fields), routing=serving_sample.routes(4))
    return said(row(expects=expects, processes=[ran(happened)]).validity)


@pytest.mark.parametrize(("arrivals", "seed"), [("fixed", None), ("poisson", None), ("poisson", 1)])
def test_an_open_loop_with_the_arrivals_that_were_drawn_is_valid(arrivals: str, seed: int | None) -> None:
    assert of_open_loop(arrivals, open_loop(arrivals), seed=seed) == []


@pytest.mark.parametrize(
    ("arrivals", "due_ns", "text"),
    [
        ("fixed", [0, 0, 0, 0], "request c4-1 was due -0.005000000 s off its time by fixed arrivals at 200/s"),
        ("fixed", [0, 5_000_001, 10_000_000, 15_000_000], "request c4-1 was due +0.000000001 s off its time by fixed"),
        ("fixed", [9, 5_000_009, 10_000_009, 15_000_009], "request c4-0 was due +0.000000009 s off its time by fixed"),
        ("poisson", [0, 0, 0, 0], "request c4-1 was due -0.000721455 s off its time by poisson arrivals at 200/s"),
        ("poisson", DUE_NS["fixed"], "request c4-1 was due +0.004278545 s off its time by poisson"),
        ("poisson", [0, 721_455, 10_122_239, 17_337_081], "request c4-2 was due +0.000000002 s off its time by"),
    ],
)
def test_arrivals_that_were_not_drawn_so_are_found(arrivals: str, due_ns: list[int], text: str) -> None:
    found = of_open_loop(arrivals, open_loop(arrivals, due_ns))
    assert [id_ for id_, _ in found] == ["arrivals"]
    assert found[0][1].startswith(f"load c4: {text}")


@pytest.mark.parametrize(
    ("arrivals", "start", "text"),
    [
        ("poisson", {"seed": 2}, "drawn from seed 2, declared 1"),
        ("poisson", {"seed": None}, "its Poisson arrivals have no seed: None"),
        ("poisson", {"seed": True}, "its Poisson arrivals have no seed: True"),
        ("fixed", {"seed": 1}, "fixed arrivals have no seed, it says 1"),
        ("fixed", {"t_ns": None}, "when it began cannot be read"),
    ],
)
def test_a_start_with_another_seed_or_no_time_is_found(arrivals: str, start: dict[str, Any], text: str) -> None:
    found = of_open_loop(arrivals, open_loop(arrivals, **start), seed=1 if arrivals == "poisson" else None)
    assert ("arrivals", f"load c4: {text}") in found


def test_requests_that_were_held_back_and_sent_at_once_are_found() -> None:
    happened = open_loop("fixed")
    held = [e for e in happened if e["event"] == "load_start" and e["load"] == "c4"]
    held += [e for e in happened if e["event"] == "request_start" and e["load"] == "c4"]
    for e in held:
        e["scheduled_ns" if "scheduled_ns" in e else "t_ns"] -= 40_000_000
    assert of_open_loop("fixed", happened) == [("arrivals", "load c4: request c4-0 was sent 0.060 s after it was due")]


@settings(max_examples=100)
@given(
    st.sampled_from(["fixed", "poisson"]),
    st.floats(0.01, 1000, allow_nan=False),
    st.integers(0, 2**31),
    st.integers(0, 50),
)
def test_arrivals_are_drawn_again_as_the_runner_drew_them(kind: Any, rate_per_s: float, seed: int, count: int) -> None:
    assert offsets_ns(kind, rate_per_s, seed, count) == Arrivals(kind, rate_per_s, seed).offsets_ns(count)


def test_a_step_too_many_names_the_overlap_schedule_where_it_is_on() -> None:
    overlapping = {**serving_sample.SERVER_ARGS, "disable_overlap_schedule": False}
    change = routed(2, projection="qkv_proj", m=2, path="torch")
    found = dict(reversed(said(after(change, expects=expected(2, server_args=overlapping)))))
    assert found["routing"] == (
        "qkv_proj computed 572 rows, 4 requests need 568 "
        "(likely the overlap schedule, which runs a step too many: disable_overlap_schedule is false)"
    )


def test_a_chunk_without_its_cached_tokens_leaves_them_unproven() -> None:
    unproven = "request c2-1: the server did not say how many prompt tokens came from its cache"
    found = said(after(setting("chunk", 3, where={"request": "c2-1"}, cached_tokens=None)))
    assert found == [("cached-tokens-unproven", unproven)]


@pytest.mark.parametrize("value", [0.0, 1.0, True, "0", -1, [0]])
def test_cached_tokens_that_are_no_count_are_not_dropped(value: Any) -> None:
    found = said(after(setting("chunk", 3, where={"request": "c2-1"}, cached_tokens=value)))
    damaged = f"request c2-1: the server gave cached_tokens {value}, which is no count"
    unproven = "request c2-1: the server did not say how many prompt tokens came from its cache"
    assert ("events-damaged", damaged) in found
    assert ("cached-tokens-unproven", unproven) in found


def test_servers_that_generate_other_tokens_make_the_row_invalid() -> None:
    processes = [ran(events(pid=1)), ran(events(pid=2, first_token=12))]
    found = row(expects=expected(2, processes=2), processes=processes).validity
    assert said(found) == [("tokens-differ", "process 1 generated other tokens than process 0")]


def observed(observation: dict[str, Any] | None, *, board: bool = False) -> Row:
    happened = events(emulated=not board)
    return row(expects=expected(1, emulated=not board), processes=[ran(happened, observation)])


def test_what_an_observation_found_is_taken_over() -> None:
    reasons = [{"id": "throttled", "text": "the processor was slowed down"}]
    one = observed({"schema": "rvvbench/observation/1", "reasons": reasons})
    assert [(r.id, r.text, r.process) for r in one.validity.reasons] == [
        ("throttled", "the processor was slowed down", 0)
    ]
    assert one.processes[0].observation == {"schema": "rvvbench/observation/1", "reasons": reasons}


@pytest.mark.parametrize(
    "observation", [{}, {"schema": "other", "reasons": []}, {"schema": "rvvbench/observation/1", "reasons": [3]}]
)
def test_an_observation_that_cannot_be_read_is_a_reason(observation: dict[str, Any]) -> None:
    assert [id_ for id_, _ in said(observed(observation).validity)] == ["observation"]


def test_a_board_must_be_observed_and_another_target_need_not() -> None:
    assert said(observed(None).validity) == []
    assert [id_ for id_, _ in said(observed(None, board=True).validity)] == ["not-observed"]
    assert said(observed({"schema": "rvvbench/observation/1", "reasons": []}, board=True).validity) == []


def test_damaged_events_and_a_failed_container_are_reasons() -> None:
    one = Ran(EventsRead(tuple(events()), ("line 9: the line is damaged",)), container_exit_code=137)
    found = said(row(processes=[one]).validity)
    assert found == [
        ("events-damaged", "line 9: the line is damaged"),
        ("container-failed", "the container ended with 137"),
    ]


@settings(max_examples=100)
@given(
    st.integers(0, 10_000),
    st.sampled_from(
        ["event", "load", "request", "moment", "t_ns", "ops", "routing", "phase", "concurrency", "seconds"]
    ),
    json_values,
)
def test_whatever_stands_in_an_event_the_row_is_assessed(index: int, field: str, value: Any) -> None:
    happened = events()
    happened[index % len(happened)][field] = value
    found = row(2, processes=[ran(happened)]).validity
    assert found.valid == (not found.reasons)
