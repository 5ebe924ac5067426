"""One thing wrong at a time, and the reason that must be found for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvvbench.record.build import Ran
from rvvbench.record.events import EventsRead
from rvvbench.record.operators import PACKED_LINEAR_OP
from rvvbench.record.schema import Expected, Validity
from rvvbench.record.validity import assess

from . import sample
from .test_metrics import json_values

Change = Callable[[list[sample.Event]], list[sample.Event]]


def kernels() -> Expected:
    return sample.expected(kernels_sha256=sample.KERNELS, routing=sample.PACKED_ROUTES)


def after(change: Change, expects: Expected | None = None) -> Validity:
    """Validity of a row of one process whose events were changed."""
    expects = expects or sample.expected()
    events = change(sample.events(expects=expects))
    return assess(sample.row(expects=expects, processes=sample.ran(events)))


def setting(event_name: str, nth: int = 0, **fields: Any) -> Change:
    def change(events: list[sample.Event]) -> list[sample.Event]:
        [event for event in events if event["event"] == event_name][nth].update(fields)
        return events

    return change


def dropping(name: str) -> Change:
    return lambda events: [event for event in events if event["event"] != name]


def said(validity: Validity) -> list[tuple[str, str]]:
    return [(reason.id, reason.text) for reason in validity.reasons]


@pytest.mark.parametrize(
    "expects",
    [
        sample.expected(),
        kernels(),
        sample.expected(batch_size=2),
        sample.expected(processes=3),
        sample.expected(emulated=False),
    ],
)
def test_a_row_that_did_what_was_declared_is_valid(expects: Expected) -> None:
    assert said(assess(sample.row(expects=expects))) == []
    assert sample.row(expects=expects).validity.valid


SHA = "cd" * 32
SERVER_ARGS = sample.expected().server_args
OP = PACKED_LINEAR_OP
RVV = "packed_linear_bf16_rvv"
PORTABLE = "packed_linear_bf16_portable"
WRONG: list[tuple[Change, str, str]] = [
    (setting("process_end", exit_code=3), "process-failed", "the process ended with 3"),
    (setting("process_end", exit_code=None, signal=9), "process-failed", "the process was ended by signal 9"),
    (dropping("process_end"), "process-not-ended", "the supervisor did not see the process end"),
    (
        setting("pin", 0, observed="x86_64", ok=False),
        "pin",
        "machine: expected riscv64, observed x86_64",
    ),
    (setting("pin", 0, ok=False), "pin", "machine: expected riscv64, observed riscv64"),
    (setting("pin", 0, observed="x86_64"), "pin", "machine: expected riscv64, observed x86_64"),
    (dropping("pin"), "pins-unproven", "the process checked no pin"),
    (
        setting("pin", 1, name="other", expected="a", observed="a"),
        "pins-unproven",
        f"no pin shows that the checkpoint's model.safetensors is {SHA}",
    ),
    (setting("supervisor_start", machine="x86_64"), "machine", "ran on x86_64, declared riscv64"),
    (
        setting("supervisor_start", schema="rvvbench/events/2"),
        "events-schema",
        "the events are rvvbench/events/2, rvvbench/events/1 is read",
    ),
    (setting("environment", torch_threads=8), "threads", "torch ran with 8 threads, declared 1"),
    (setting("environment", vlen_bits=128), "vlen", "VLEN was 128 bits, declared 256"),
    (setting("environment", vlen_bits=None), "vlen", "VLEN was None bits, declared 256"),
    (
        setting("environment", packages={"torch": "2.6.0", "sglang": "0.5.15"}),
        "package",
        "torch was 2.6.0, declared 2.14.1",
    ),
    (
        setting("environment", isa={"v": False}),
        "isa",
        "extension v was False (hwprobe), declared is VLEN 256",
    ),
    (
        setting("environment", isa=None, isa_source="hwprobe failed"),
        "isa",
        "extension v was None (hwprobe failed), declared is VLEN 256",
    ),
    (setting("environment", packages={"torch": "2.14.1"}), "package", "sglang was not there, declared 0.5.15"),
    (setting("environment", env={}), "environment", "OMP_NUM_THREADS was not there, declared 1"),
    (
        setting("environment", server_args={**SERVER_ARGS, "dtype": "float32"}),
        "server-args",
        "dtype was float32, declared bfloat16",
    ),
    (
        setting("environment", server_args={**SERVER_ARGS, "attention_backend": "flashinfer"}),
        "server-args",
        "attention_backend was flashinfer, declared torch_native",
    ),
    (
        setting("environment", server_args={**SERVER_ARGS, "tp_size": True}),
        "server-args",
        "tp_size was True, declared 1",
    ),
    (setting("environment", server_args=None), "server-args", "device was not there, declared cpu"),
    (
        setting("measured_start", t_ns=1),
        "order",
        "measured_start at 1 ns does not come before the prefill's start at 0 ns",
    ),
    (
        setting("measured_start", t_ns=None),
        "order",
        "warmup at -1000000000 ns does not come before measured_start at None ns",
    ),
    (setting("warmup", t_ns=0), "order", "warmup at 0 ns does not come before measured_start at -1 ns"),
    (
        setting("measured_end", t_ns=6_400_000_000),
        "order",
        "the last pass's end at 6500000000 ns does not come before measured_end at 6400000000 ns",
    ),
    (setting("prefill", input_tokens=63), "shape", "63 input tokens, declared 64"),
    (
        lambda events: [e for e in events if e.get("step") != 7],
        "shape",
        "7 output tokens for each sequence, declared 8",
    ),
    (
        lambda events: [e for e in events if e.get("step") != 3],
        "shape",
        "the decode steps are numbered [1, 2, 4, 5, 6, 7]",
    ),
    (setting("decode", 2, token_ids=[]), "shape", "token 4: 0 sequences with integer ids, declared 1"),
    (setting("decode", 2, token_ids=["14"]), "shape", "token 4: 1 sequences with integer ids, declared 1"),
    (setting("decode", 2, logprobs=["NaN"]), "logprobs", "token 4: no finite log-probability for every sequence"),
    (setting("attestation", library_sha256="11" * 32), "kernels", f"kernel library {'11' * 32}, declared none"),
    (
        setting("attestation", ops={OP: sample.op(1, RVV)}),
        "kernels",
        f"op {OP}: expected 0 calls, observed 1",
    ),
    (setting("attestation", ops=None), "kernels", "the attestation has no table of ops"),
    (setting("attestation", routing=None), "routing", "the attestation has no routing table"),
    (dropping("attestation"), "events-incomplete", "0 attestation events, 1 belongs"),
    (dropping("warmup"), "events-incomplete", "0 warmup events, 1 belongs"),
    (dropping("measured_end"), "events-incomplete", "0 measured_end events, 1 belongs"),
    (setting("memory", 1, emulated=False), "emulation", "the memory of one_batch says emulated False, declared True"),
    (
        lambda events: [*events, {"event": "error", "type": "ValueError", "message": "no"}],
        "error",
        "ValueError: no",
    ),
]


@pytest.mark.parametrize(("change", "id_", "text"), WRONG, ids=[f"{id_}-{n}" for n, (_, id_, _) in enumerate(WRONG)])
def test_one_wrong_thing_is_found_and_named(change: Change, id_: str, text: str) -> None:
    validity = after(change)
    assert not validity.valid
    assert (id_, text) in said(validity)


def test_a_kernel_row_without_its_library_is_invalid() -> None:
    text = f"kernel library none, declared {sample.KERNELS}"
    assert said(after(setting("attestation", library_sha256=None), kernels())) == [("kernels", text)]


def test_a_kernel_row_in_which_no_op_ran_is_invalid() -> None:
    assert attested({}) == [f"op {OP}: expected 16 calls, observed 0", NOT_SERVED.format(0)]


NOT_SERVED = "16 calls were routed as packed, the kernels attest {}"
NO_KERNELS = {"kernel": RVV, "calls": 16}


def attested(ops: Any, expects: Expected | None = None) -> list[str]:
    """Why a kernel row whose attestation says `ops` is invalid; all reasons are of the kernels."""
    found = said(after(setting("attestation", ops=ops), expects or kernels()))
    assert {id_ for id_, _ in found} <= {"kernels"}
    return [text for _, text in found]


@pytest.mark.parametrize(
    ("ops", "texts"),
    [
        ({OP: sample.op(16, RVV)}, []),
        ({OP: sample.op(8, RVV)}, [f"op {OP}: expected 16 calls, observed 8", NOT_SERVED.format(8)]),
        ({OP: sample.op(17, RVV)}, [f"op {OP}: expected 16 calls, observed 17", NOT_SERVED.format(17)]),
        (
            {"other": sample.op(16, RVV)},
            [
                f"op {OP}: expected 16 calls, observed 0",
                "op other: expected 0 calls, observed 16",
                NOT_SERVED.format(0),
            ],
        ),
        (
            {OP: sample.op(16, RVV), "convert_weight_packed": sample.op(3, RVV)},
            ["op convert_weight_packed: expected 0 calls, observed 3"],
        ),
        ({OP: NO_KERNELS}, [f"op {OP}: the attestation does not name its kernels"]),
        (
            {OP: {**NO_KERNELS, "kernels": {RVV: 8}}},
            [f"op {OP}: 16 calls, but its kernels are {{'{RVV}': 8}}"],
        ),
        (
            {OP: {**NO_KERNELS, "kernels": {RVV: 14, PORTABLE: 2}}},
            [f"op {OP} ran {PORTABLE}, declared are kernels *_rvv"],
        ),
    ],
)
def test_kernel_calls_must_be_those_that_were_routed_and_by_the_kernels_of_the_target(
    ops: Any, texts: list[str]
) -> None:
    assert attested(ops) == texts


def test_calls_that_are_no_number_are_no_calls() -> None:
    texts = attested({OP: {**NO_KERNELS, "calls": "16", "kernels": {RVV: 16}}})
    assert f"op {OP}: expected 16 calls, observed 16" in texts and NOT_SERVED.format(0) in texts


def test_without_vectors_the_kernels_are_the_portable_ones() -> None:
    expects = sample.expected(
        kernels_sha256=sample.KERNELS, routing=sample.PACKED_ROUTES, vlen_bits=None, machine="x86_64"
    )
    assert expects.kernel_suffix == "_portable"
    assert attested({OP: sample.op(16, PORTABLE)}, expects) == []
    assert attested({OP: sample.op(16, RVV)}, expects) == [f"op {OP} ran {RVV}, declared are kernels *_portable"]


def routing(*lines: tuple[str, int, str, int]) -> Change:
    return setting(
        "attestation", routing=[dict(zip(("projection", "m", "path", "calls"), x, strict=True)) for x in lines]
    )


AS_PREDICTED = (("qkv_proj", 64, "packed", 2), ("qkv_proj", 1, "packed", 14))


def test_the_order_of_the_routing_table_is_no_difference() -> None:
    assert said(after(routing(*reversed(AS_PREDICTED)), kernels())) == []


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        (
            (("qkv_proj", 64, "torch", 2), AS_PREDICTED[1]),
            "qkv_proj at M=64: expected packed x 2, observed torch x 2",
        ),
        (
            (("qkv_proj", 64, "packed", 1), ("qkv_proj", 64, "torch", 1), AS_PREDICTED[1]),
            "qkv_proj at M=64: expected packed x 2, observed packed x 1, torch x 1",
        ),
        (
            (AS_PREDICTED[0], ("qkv_proj", 1, "packed", 13)),
            "qkv_proj at M=1: expected packed x 14, observed packed x 13",
        ),
        ((AS_PREDICTED[1],), "qkv_proj at M=64: expected packed x 2, observed nothing"),
        (
            (*AS_PREDICTED, ("lm_head", 1, "torch", 8)),
            "lm_head at M=1: expected nothing, observed torch x 8",
        ),
    ],
)
def test_routing_that_was_not_predicted_is_named_by_projection_and_m(observed: Any, text: str) -> None:
    found = said(after(routing(*observed), kernels()))
    assert [reason for reason in found if reason[0] != "kernels"] == [("routing", text)]


def test_kernel_calls_are_also_compared_with_what_was_routed_in_fact() -> None:
    """The kernels did what the manifest says, the plugin's table tells of less: one of both is wrong."""
    found = said(after(routing(AS_PREDICTED[1]), kernels()))
    assert ("kernels", "14 calls were routed as packed, the kernels attest 16") in found


def test_an_expected_fallback_that_happened_is_valid() -> None:
    expects = sample.expected(kernels_sha256=sample.KERNELS, routing=(*sample.PACKED_ROUTES, *sample.TORCH_ROUTES[1:]))
    observed = routing(*AS_PREDICTED, ("qkv_proj", 1, "torch", 14))
    assert said(after(observed, expects)) == []


def test_too_few_fresh_processes_are_invalid() -> None:
    expects = sample.expected(processes=3)
    row = sample.row(expects=expects, processes=sample.ran(sample.events(pid=1), sample.events(pid=2)))
    assert said(row.validity) == [("process-count", "2 fresh processes ran, 3 are declared")]


def test_more_fresh_processes_than_declared_are_invalid_too() -> None:
    row = sample.row(processes=sample.ran(sample.events(pid=1), sample.events(pid=2)))
    assert said(row.validity) == [("process-count", "2 fresh processes ran, 1 are declared")]


def test_one_process_counted_twice_is_not_two_fresh_ones() -> None:
    events = sample.events()
    row = sample.row(expects=sample.expected(processes=2), processes=sample.ran(events, events))
    assert [id_ for id_, _ in said(row.validity)] == ["process-not-fresh"]


def test_fresh_processes_that_generate_other_tokens_are_invalid() -> None:
    other = (*sample.TOKENS[:-1], 99)
    processes = sample.ran(sample.events(pid=1), sample.events(pid=2, tokens=other))
    row = sample.row(expects=sample.expected(processes=2), processes=processes)
    assert said(row.validity) == [("tokens-differ", "process 1 generated other tokens than process 0")]


def test_a_row_without_processes_is_invalid_and_has_null_figures() -> None:
    row = sample.row(processes=[])
    assert said(row.validity) == [("process-count", "0 fresh processes ran, 1 are declared")]
    assert {figure.reason for figure in row.figures.values()} == {"no process ran"}


def test_damaged_events_and_a_failed_container_are_reasons() -> None:
    ran = Ran(
        EventsRead(tuple(sample.events()), ("line 9: the line is damaged, 3 bytes left out",)), container_exit_code=137
    )
    row = sample.row(processes=[ran])
    assert said(row.validity) == [
        ("events-damaged", "line 9: the line is damaged, 3 bytes left out"),
        ("container-failed", "the container ended with 137"),
    ]


def test_a_reason_says_in_which_process() -> None:
    expects = sample.expected(processes=2)
    bad = setting("environment", torch_threads=4)(sample.events(pid=2))
    row = sample.row(expects=expects, processes=sample.ran(sample.events(pid=1), bad))
    assert [(reason.id, reason.process) for reason in row.validity.reasons] == [("threads", 1)]


def test_a_board_that_nobody_watched_proves_nothing() -> None:
    board = sample.expected(emulated=False)
    row = sample.row(expects=board, processes=sample.ran(sample.events(expects=board)))
    assert [id_ for id_, _ in said(row.validity)] == ["not-observed"]
    host = sample.expected(emulated=False, vlen_bits=None)
    assert said(sample.row(expects=host, processes=sample.ran(sample.events(expects=host))).validity) == []


def test_what_a_watcher_found_wrong_is_a_reason_for_one_batch_too() -> None:
    observation = {**sample.OBSERVED, "reasons": [{"id": "swapped", "text": "3 pages were swapped out"}]}
    row = sample.row(processes=sample.ran(sample.events(), observation=observation))
    assert [(reason.id, reason.process) for reason in row.validity.reasons] == [("swapped", 0)]


def test_a_compile_cache_state_that_nothing_proves_is_invalid() -> None:
    row = sample.row().model_copy(update={"cache_state": "warm"})
    assert [id_ for id_, _ in said(assess(row))] == ["cache-unproven"]


@settings(max_examples=200)
@given(
    st.integers(0, 100),
    st.sampled_from(["event", "ops", "routing", "packages", "env", "token_ids", "logprobs", "step", "ok"]),
    json_values,
)
def test_whatever_stands_in_an_event_validity_is_assessed(index: int, field: str, value: Any) -> None:
    events = sample.events()
    events[index % len(events)][field] = value
    validity = assess(sample.row(processes=sample.ran(events)))
    assert validity.valid == (not validity.reasons)
