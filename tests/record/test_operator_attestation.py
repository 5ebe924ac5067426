"""Every operator of a layer is attested: its routes, and op by op the calls of the kernels that served them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rvvbench.record.build import build_row
from rvvbench.record.schema import Validity
from rvvbench.record.verify import verify

from . import sample, serving_sample, whole_model
from .sample import Event

MODELS = ("llama-mini", "qwen2-mini", "qwen3-mini")
UNLIKE = "qkv_proj of the same layers show different passes"
VARIANTS = ("torch-native", "rvv-kernels", "rvv-kernels-int8-kv", "rvv-w8a8", "rvv-kernels-budget-50")
Change = Callable[[Event], None]


def one_batch(variant: str, change: Change, model: str = "llama-mini") -> list[tuple[str, str]]:
    """Reasons of a row whose attestation was changed."""
    events = sample.events(expects=whole_model.expected(variant, model))
    change(next(event for event in events if event["event"] == "attestation"))
    return said(whole_model.row(variant, model, events).validity)


def serving(variant: str, change: Change, concurrency: int = 2, model: str = "qwen3-mini") -> list[tuple[str, str]]:
    """Reasons of a row at that concurrency, of whose load the attestation was changed."""
    events = whole_model.load_events(variant, model)
    for event in events:
        if event["event"] == "attestation" and (event["load"], event["moment"]) == ("c2", "after"):
            change(event)
    row = build_row(
        variant=variant,
        cache_state="none",
        concurrency=concurrency,
        expected=whole_model.load_expected(variant, concurrency, model),
        processes=[serving_sample.ran(events)],
    )
    return said(row.validity)


def said(validity: Validity) -> list[tuple[str, str]]:
    return [(reason.id, reason.text) for reason in validity.reasons]


def unchanged(_: Event) -> None:
    pass


def more(by: int, **place: Any) -> Change:
    """`by` more calls of a route."""

    def change(event: Event) -> None:
        [line] = [line for line in event["routing"] if place.items() <= line.items()]
        line["calls"] += by

    return change


def moved(projection: str, m: int, to: str, calls: int = 1) -> Change:
    """So many calls took another path."""

    def change(event: Event) -> None:
        line = next(line for line in event["routing"] if (line["projection"], line["m"]) == (projection, m))
        line["calls"] -= calls
        event["routing"].append({"projection": projection, "m": m, "path": to, "calls": calls})

    return change


def op_calls(name: str, by: int) -> Change:
    """`by` more calls of an op."""

    def change(event: Event) -> None:
        calls = event["ops"].get(name, {"calls": 0})["calls"] + by
        event["ops"][name] = sample.op(calls, "packed_linear_bf16_rvv")

    return change


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_process_that_did_what_was_predicted_is_valid(variant: str, model: str) -> None:
    assert one_batch(variant, unchanged, model) == []


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_server_that_did_what_may_be_done_is_valid(variant: str, model: str, concurrency: int) -> None:
    assert serving(variant, unchanged, concurrency, model) == []


@pytest.mark.parametrize(
    ("projection", "m"),
    [
        ("decode_attention", 1),
        ("extend_attention", 64),
        ("norm", 64),
        ("gated_activation", 1),
        ("rotary_embedding", 64),
    ],
)
def test_an_operator_that_fell_back_to_torch_is_found(projection: str, m: int) -> None:
    count = {"norm": 5}.get(projection, 14 if m == 1 else 2)
    found = one_batch("rvv-kernels", moved(projection, m, "torch"))
    left = ", torch x 1"
    assert (
        "routing",
        f"{projection} at M={m}: expected kernels x {count}, observed kernels x {count - 1}{left}",
    ) in found


@pytest.mark.parametrize(
    ("op", "what"),
    [
        ("decode_attention_cpu", "14 calls were routed decode_attention to kernels, the kernels attest 13 of {op}"),
        ("silu_and_mul_cpu", "16 calls were routed gated_activation to kernels, the kernels attest 15 of {op}"),
        ("rotary_embedding_cpu", "16 calls were routed rotary_embedding to kernels, the kernels attest 15 of {op}"),
        (
            "rmsnorm_cpu",
            "40 calls were routed norm to kernels, the kernels attest 39 of {op} and fused_add_rmsnorm_cpu",
        ),
        ("weight_packed_linear_out", "72 calls were routed as packed, the kernels attest 71"),
    ],
)
def test_a_call_that_torch_computed_in_fact_is_found_op_by_op(op: str, what: str) -> None:
    found = one_batch("rvv-kernels", op_calls(op, -1))
    assert found[0][1].startswith(f"op {op}: expected ")
    assert ("kernels", what.format(op=op)) in found


def test_a_norm_that_added_no_residual_where_one_belongs_is_found() -> None:
    def change(event: Event) -> None:
        op_calls("fused_add_rmsnorm_cpu", -1)(event)
        op_calls("rmsnorm_cpu", 1)(event)

    assert [text for _, text in one_batch("rvv-kernels", change)] == [
        "op fused_add_rmsnorm_cpu: expected 32 calls, observed 31",
        "op rmsnorm_cpu: expected 8 calls, observed 9",
    ]
    # Of a server the calls of each are not known before; of its passes they are.
    found = serving("rvv-kernels", change)
    assert len(found) == 1 and found[0][1].startswith("in 16 passes the norms need calls")


def test_quantised_linears_and_caches_have_a_second_operator_each() -> None:
    found = one_batch("rvv-w8a8", op_calls("per_token_quant_int8_cpu", -1))
    assert ("kernels", "64 calls were routed as w8a8, the kernels attest 63 of per_token_quant_int8_cpu") in found
    found = one_batch("rvv-kernels-int8-kv", op_calls("store_kv", -1))
    routed = "decode_attention to kernels and extend_attention to kernels"
    assert ("kernels", f"16 calls were routed {routed}, the kernels attest 15 of store_kv") in found


def test_packing_in_the_measured_pass_is_found() -> None:
    assert one_batch("rvv-kernels", op_calls("convert_weight_packed", 1)) == [
        ("kernels", "op convert_weight_packed: expected 0 calls, observed 1")
    ]


def test_a_module_that_was_packed_beyond_the_budget_is_found() -> None:
    found = one_batch("rvv-kernels-budget-50", more(7, projection="down_proj", m=1, path="packed"))
    text = "down_proj at M=1: expected packed x 7, row_major x 7, observed packed x 14, row_major x 7"
    assert ("routing", text) in found


def test_a_library_that_is_missing_is_named_with_its_reason_before_all_that_follows() -> None:
    def change(event: Event) -> None:
        event.update(library_sha256=None, library_reason="OSError: no such file", ops={})

    found = one_batch("rvv-kernels", change)
    assert found[0] == ("kernels", f"kernel library none (OSError: no such file), declared {whole_model.KERNELS}")
    assert len(found) > 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (more(2, projection="rotary_embedding", m=2), "rotary_embedding computed 572 rows, 4 requests need 568"),
        (more(-2, projection="extend_attention", m=128), "extend_attention computed 256 rows, 4 requests need 512"),
        (more(2, projection="decode_attention", m=2), "decode_attention computed 60 rows, 4 requests need 56"),
        (
            more(2, projection="decode_attention", m=2),
            "attention and qkv_proj of the same layers show different passes",
        ),
        (more(1, projection="norm", m=128), "norm at M=128 was called 11 times, the passes of qkv_proj need 10"),
        (more(-1, projection="norm", m=1024), "norm at M=1024 was called 3 times, the passes of qkv_proj need 4"),
        (more(1, projection="norm", m=8), "norm at M=8 was called 29 times, the passes of qkv_proj need 28"),
    ],
)
def test_operators_show_the_passes_that_projections_show(change: Change, text: str) -> None:
    assert ("routing", text) in serving("torch-native", change)


def test_passes_in_which_modules_were_apart_otherwise_are_found() -> None:
    def change(event: Event) -> None:
        more(2, projection="down_proj", m=2, path="packed")(event)
        more(-2, projection="down_proj", m=2, path="row_major")(event)

    found = serving("rvv-kernels-budget-50", change, model="llama-mini")
    text = "down_proj at M=2: observed packed x 16, row_major x 12, each pass has packed x 1, row_major x 1"
    assert ("routing", text) in found


def test_a_record_of_all_variants_holds() -> None:
    record = whole_model.record(*(whole_model.row(name) for name in VARIANTS))
    assert record.valid and verify(record) == []
