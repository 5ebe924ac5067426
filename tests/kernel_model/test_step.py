"""A model's step as the sum of its operators."""

from __future__ import annotations

import pytest

from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.model_cases import cases_of
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.step import PRECISIONS, decode_step, prefill, steps_of

MODELS = model_configs(("llama-3.2-1b", "qwen3-0.6b", "qwen2.5-1.5b-instruct"))
LLAMA = MODELS["llama-3.2-1b"]
BF16, INT8 = PRECISIONS[0], PRECISIONS[3]
OPERATIONS = (
    "packed_linear", "int8_linear", "decode_attention", "extend_attention", "decode_attention_int8",
    "extend_attention_int8", "norm", "gated_activation", "rotary_embedding",
)  # fmt: skip
KINDS = {"int8_linear": "int8"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda p: p.name)
def test_every_operator_of_a_step_is_one_that_is_modelled(model: str, precision) -> None:  # type: ignore[no-untyped-def]
    modelled = {
        case.whole
        for case in cases_of({model: MODELS[model]}, [(name, KINDS.get(name, "bf16")) for name in OPERATIONS])
    }
    for parts in (decode_step(model, MODELS[model], precision, 512), prefill(model, MODELS[model], precision)):
        assert {part.case.whole for part in parts} <= modelled


def test_a_decode_step_of_llama_has_each_operator_as_often_as_the_model() -> None:
    parts = {
        (part.case.operation, part.case.form, part.case.layer): part for part in decode_step("l", LLAMA, BF16, 512)
    }
    assert {key: part.times for key, part in parts.items() if key[0] == "norm"} == {
        ("norm", "rmsnorm", "hidden state"): 1,
        ("norm", "fused_add_rmsnorm", "hidden state"): 32,
    }
    assert parts["packed_linear", "", "gate_up_proj"].times == 16
    assert parts["packed_linear", "", "lm_head"].times == 1
    # A row of 2048 has one core, one of 8192 all.
    assert parts["norm", "fused_add_rmsnorm", "hidden state"].cores == 1
    assert parts["gated_activation", "silu", "MLP"].cores == 8


def test_the_head_of_a_prefill_computes_one_row_and_stays_bf16() -> None:
    (head,) = [part for part in prefill("l", LLAMA, INT8) if part.case.layer == "lm_head"]
    assert head.case.operation == "packed_linear" and dict(head.case.fixed)["m"] == 1
    (qkv,) = [part for part in prefill("l", LLAMA, INT8) if part.case.layer == "qkv_proj"]
    assert qkv.case.operation == "int8_linear" and dict(qkv.case.fixed)["m"] == 64


def test_few_kv_heads_use_all_cores_only_when_the_context_can_be_split() -> None:
    def cores(context: int) -> int:
        parts = decode_step("q", MODELS["qwen2.5-1.5b-instruct"], BF16, context)
        return next(part.cores for part in parts if part.case.operation == "decode_attention")

    assert (cores(64), cores(72), cores(512)) == (2, 4, 8)


def test_an_operator_takes_the_longer_of_its_cycles_and_its_bytes() -> None:
    def cycles_of(case: Case) -> float:
        return 8 * 1.6e9 if case.layer == "lm_head" else 0.0

    steps = {step.phase: step for step in steps_of({"l": LLAMA}, cycles_of) if step.precision == "BF16"}
    parts = decode_step("l", LLAMA, BF16, 512)
    head = next(part.case.moved_bytes for part in parts if part.case.layer == "lm_head")
    others = sum(part.times * part.case.moved_bytes for part in parts) - head
    decode = steps["decode, context 512"]
    assert (decode.cycles, decode.moved_bytes) == (1.6e9, others + head)
    # The head is busy for a second, in which it could move more than it has to; the others only move.
    assert head < 5.7e9
    assert decode.tokens_per_s["5700000000"] == pytest.approx(1 / (1 + others / 5.7e9), abs=1e-6)
    assert decode.tokens_per_s["10660000000"] == pytest.approx(1 / (1 + others / 10.66e9), abs=1e-6)
    prompt = prefill("l", LLAMA, BF16)
    others = sum(part.times * part.case.moved_bytes for part in prompt) - head
    assert steps["prefill, 64 tokens"].tokens_per_s["5700000000"] == pytest.approx(64 / (1 + others / 5.7e9), abs=1e-6)


def test_a_step_of_which_one_operator_has_no_cycles_is_not_summed() -> None:
    def cycles_of(case: Case) -> float | None:
        return None if case.operation.endswith("int8") else 1.0

    assert {step.precision for step in steps_of({"l": LLAMA}, cycles_of)} == {"BF16", "W8A8"}
