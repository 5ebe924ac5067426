"""The small Llama through SGLang's ModelRunner, on the kernels and on torch; weights that change while it is loaded.

The checks share what is loaded, and run in this order.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from one_batch import Generated, OneBatch, prompt
from safetensors.torch import load_file, save_file
from sglang_rvv import elementwise, linear, packed_weight, routing, startup
from sglang_rvv.linear import STATE
from sglang_rvv.policy import Policy
from sglang_rvv.settings import PROJECTIONS
from small_model import gone, memory_of
from torch.multiprocessing.reductions import StorageWeakRef

MODEL = os.environ["CHECKS_MODEL"]
CHANGED = "/tmp/changed"
BROKEN = "/tmp/broken"

PROMPTS = [prompt(64), prompt(7, seed=6)]
STEPS = 5

SHAPES = {
    "qkv_proj": (1536, 1024),
    "o_proj": (1024, 1024),
    "gate_up_proj": (2048, 1024),
    "down_proj": (1024, 1024),
    "lm_head": (10240, 1024),
}
"""Of the small Llama; all features are whole blocks."""

CLOSE = 0.06
"""Of the largest logit: what BF16 of torch and of the kernels may differ by after two layers (measured: 0.01)."""


def weights(folder: str = MODEL) -> dict[str, torch.Tensor]:
    """A checkpoint by its own names."""
    return load_file(f"{folder}/model.safetensors")


def changed(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Other weights of the same shapes: every matrix upside down, every norm half as large again."""
    return {name: (t.flip(0) if t.dim() == 2 else t * 1.5).contiguous() for name, t in tensors.items()}


def write(folder: str, tensors: dict[str, torch.Tensor]) -> None:
    shutil.copytree(MODEL, folder)
    save_file(tensors, f"{folder}/model.safetensors", {"format": "pt"})


@functools.cache
def torch_native() -> tuple[Generated, Generated]:
    """What plain torch gives: with the checkpoint's weights, and freshly loaded with the changed ones."""
    write(CHANGED, changed(weights()))
    results = []
    for folder in (MODEL, CHANGED):
        one = OneBatch(folder, attention_backend="torch_native")
        assert "torch_native, nothing else asked for" in startup.report()["lines"][-1]
        results.append(one.generate(PROMPTS, STEPS))
        one.end()
    return results[0], results[1]


@functools.cache
def ours() -> OneBatch:
    """The same checkpoint on the kernels."""
    torch_native()
    return OneBatch(MODEL, attention_backend="rvv", cpu_rvv_memory_budget_mib=64.0)


def same(got: Generated, expected: Generated, what: str) -> None:
    """The same tokens, and logits near each other."""
    for step, (mine, other) in enumerate(zip(got.logits, expected.logits, strict=True)):
        off = float((mine - other).abs().max() / other.abs().max())
        assert off < CLOSE, f"{what}: logits of step {step} are off by {off} of the largest"
    assert got.ids == expected.ids, f"{what}: {got.ids} instead of {expected.ids}"


def other(first: Generated, second: Generated) -> bool:
    return float((first.logits[0] - second.logits[0]).abs().max() / second.logits[0].abs().max()) > 5 * CLOSE


def packed_paths() -> dict[str, set[str]]:
    """Paths of each projection since the last reset."""
    found: dict[str, set[str]] = {}
    for line in routing.snapshot():
        if line["projection"] in PROJECTIONS:
            found.setdefault(line["projection"], set()).add(line["path"])
    return found


def generated(path: str = "packed") -> Generated:
    """What our model gives now, with every projection by that path."""
    routing.reset()
    result = ours().generate(PROMPTS, STEPS)
    assert packed_paths() == {projection: {path} for projection in PROJECTIONS}, packed_paths()
    return result


@contextmanager
def on_torch() -> Iterator[None]:
    """Within, linears, head, norms and activations of our model compute in torch, with the weights that are there."""
    model = ours().model
    policy = model.__dict__[STATE].policy
    linear.prepare(model, Policy())
    elementwise.prepare(model, ours=False)
    try:
        yield
    finally:
        linear.prepare(model, policy)
        elementwise.prepare(model, ours=True)


def check_tokens_and_logits_are_those_of_torch_native() -> None:
    native, _ = torch_native()
    same(generated(), native, "kernels")
    assert len({token for step in native.ids for token in step}) > 4
    for sequence, ids in enumerate(PROMPTS):
        alone = ours().generate([ids], STEPS)
        assert alone.of(0) == native.of(sequence), f"sequence {sequence} alone"


def check_the_start_up_line_tells_what_is_ours_with_bytes() -> None:
    ours()
    line = startup.report()["lines"][-1]
    for part in (
        "sglang_rvv: LlamaForCausalLM on ",
        "ours: attention, 9 linears packed (44040192 bytes, budget 67108864)",
        "1 x rotary_embedding",
        "2 x gated_activation",
        "5 x norm",
        "torch: nothing",
    ):
        assert part in line, line


def check_every_call_is_counted_and_attested() -> None:
    """Two sequences of 64 and 7 tokens, then one token each, as docs/ and the contract of variants have it."""
    ours()
    sgl_kernel = sys.modules["sgl_kernel"]
    sgl_kernel.reset_attestation()
    generated()
    steps = STEPS - 1
    expected = {
        **{(name, 71, "packed"): 2 for name in PROJECTIONS[:4]},
        **{(name, 2, "packed"): 2 * steps for name in PROJECTIONS[:4]},
        ("lm_head", 2, "packed"): 1 + steps,
        ("extend_attention", 71, "kernels"): 2,
        ("decode_attention", 2, "kernels"): 2 * steps,
        ("norm", 71, "kernels"): 5,
        ("norm", 2, "kernels"): 5 * steps,
        ("gated_activation", 71, "kernels"): 2,
        ("gated_activation", 2, "kernels"): 2 * steps,
        ("rotary_embedding", 71, "kernels"): 2,
        ("rotary_embedding", 2, "kernels"): 2 * steps,
    }
    assert {(line["projection"], line["m"], line["path"]): line["calls"] for line in routing.snapshot()} == expected
    calls = {op: counted["calls"] for op, counted in sgl_kernel.attestation()["ops"].items()}
    assert calls == {
        "weight_packed_linear_out": 4 * 2 * STEPS + STEPS,
        "extend_attention_cpu": 2,
        "decode_attention_cpu": 2 * steps,
        "rmsnorm_cpu": STEPS,
        "fused_add_rmsnorm_cpu": 4 * STEPS,
        "silu_and_mul_cpu": 2 * STEPS,
        "rotary_embedding_cpu": 2 * STEPS,
    }, calls


def check_packed_weights_are_in_no_state_dict_and_the_tied_head_is_one_module() -> None:
    model = ours().model
    assert not [name for name in model.state_dict() if packed_weight.BUFFER in name]
    assert not [name for name, _ in model.named_parameters() if packed_weight.BUFFER in name]
    assert len([name for name, _ in model.named_buffers() if packed_weight.BUFFER in name]) == 9
    assert model.lm_head is model.model.embed_tokens and model.lm_head.weight.shape == SHAPES["lm_head"]


def check_budgets_of_all_five_kinds_are_spent_to_the_byte() -> None:
    """0, 25, 50, 75 and 100 % of what is packed, and one byte less than all."""
    native, _ = torch_native()
    model = ours().model
    names = [
        f"model.layers.{index}.{'mlp' if projection in ('gate_up_proj', 'down_proj') else 'self_attn'}.{projection}"
        for index in (0, 1)
        for projection in PROJECTIONS[:4]
    ]
    costs = {name: 2 * SHAPES[name.rpartition(".")[2]][0] * 1024 for name in names} | {"lm_head": 2 * 10240 * 1024}
    total = sum(costs.values())
    assert total == 44_040_192
    for limit in (0, total // 4, total // 2, total * 3 // 4, total - 1, total):
        state = linear.prepare(model, Policy(linears=PROJECTIONS, memory_budget_mib=limit / (1 << 20)))
        left, packed = limit, {}
        for name, cost in costs.items():
            if cost <= left:
                packed[name] = cost
                left -= cost
        assert state.budget.limit_bytes == limit
        assert list(state.budget.packed.items()) == list(packed.items()), f"{limit}: {state.budget.packed}"
        assert state.budget.left_out == {name: cost for name, cost in costs.items() if name not in packed}
        assert held_bytes(model) == sum(packed.values())
        routing.reset()
        same(ours().generate(PROMPTS, STEPS), native, f"budget of {limit}")
        for line in routing.snapshot():
            if line["projection"] in PROJECTIONS and line["m"] == 2:
                steps = STEPS if line["projection"] == "lm_head" else STEPS - 1
                kinds = [name in packed for name in costs if name.endswith(line["projection"])]
                expected = kinds.count(line["path"] == "packed")
                assert line["path"] in ("packed", "row_major") and line["calls"] == steps * expected, line
    restore_policy()


def held_bytes(model: Any) -> int:
    buffers = dict(model.named_buffers()).items()
    return sum(buffer.numel() * 2 for name, buffer in buffers if packed_weight.BUFFER in name)


def restore_policy() -> None:
    model = ours().model
    linear.prepare(model, Policy(attention=True, linears=PROJECTIONS, elementwise=True, memory_budget_mib=64.0))


def back() -> None:
    """The checkpoint's weights again."""
    assert ours().runner.update_weights_from_tensor(list(weights().items()))[0]


def check_update_weights_from_tensor() -> None:
    """By SGLang's names, directly into parameters, and as one flat tensor."""
    before, after = torch_native()
    assert other(before, after)
    runner = ours().runner
    new = changed(weights())
    old = memory_of(ours().model)
    assert runner.update_weights_from_tensor(list(new.items())) == (True, "Success")
    assert gone(old), "copies of the old weights are still there"
    same(generated(), after, "update_weights_from_tensor")
    back()
    same(generated(), before, "and back")

    fused = {name: (p.flip(0) if p.dim() == 2 else p * 1.5).clone() for name, p in runner.model.named_parameters()}
    for name in fused:  # each part upside down by itself
        for merged, sizes in (("qkv_proj", (1024, 256, 256)), ("gate_up_proj", (1024, 1024))):
            if merged in name:
                parameter = dict(runner.model.named_parameters())[name]
                fused[name] = torch.cat([part.flip(0) for part in parameter.split(list(sizes))])
    assert runner.update_weights_from_tensor(list(fused.items()), load_format="direct")[0]
    same(generated(), after, "load_format=direct")
    back()

    from sglang.srt.weight_sync.tensor_bucket import FlattenedTensorBucket

    bucket = FlattenedTensorBucket(named_tensors=list(new.items()))
    flat = {"flattened_tensor": bucket.get_flattened_tensor(), "metadata": bucket.get_metadata()}
    assert runner.update_weights_from_tensor(flat, load_format="flattened_bucket")[0]
    same(generated(), after, "load_format=flattened_bucket")
    back()


def check_update_weights_from_disk() -> None:
    before, after = torch_native()
    runner = ours().runner
    assert runner.update_weights_from_disk(CHANGED, "auto")[0]
    same(generated(), after, "update_weights_from_disk")
    assert runner.update_weights_from_disk(MODEL, "auto")[0]
    same(generated(), before, "and back")


def half_new(update: Callable[[], Any]) -> None:
    """An update that fails half way: whatever weights are there then are computed with, and packed."""
    before, after = torch_native()
    try:
        said = update()
    except Exception as error:
        said = (False, str(error))
    assert not said[0], "the update did not fail"
    mixed = generated()
    assert other(mixed, before) and other(mixed, after), "nothing, or everything, was written"
    with on_torch():
        same(mixed, ours().generate(PROMPTS, STEPS), f"after {said[1][:200]}")


def check_an_update_from_tensors_that_fails_half_way() -> None:
    new = list(changed(weights()).items())
    half = [item for item in new if "layers.1" in item[0]]
    spoiled = [*half, ("model.layers.0.mlp.down_proj.weight", torch.zeros(3, 3)), *new]
    half_new(lambda: ours().runner.update_weights_from_tensor(spoiled))
    back()
    same(generated(), torch_native()[0], "back")


def check_an_update_from_disk_that_fails_half_way() -> None:
    """SGLang rolls back from the path that has just failed: the weights stay half new, and the error comes out."""
    new = changed(weights())
    new["model.layers.1.self_attn.o_proj.weight"] = torch.zeros(3, 3, dtype=torch.bfloat16)
    write(BROKEN, new)
    half_new(lambda: ours().runner.update_weights_from_disk(BROKEN, "auto"))
    ours().runner.update_weights_from_disk(MODEL, "auto")
    same(generated(), torch_native()[0], "back")


def check_a_path_that_is_not_there_changes_nothing() -> None:
    runner = ours().runner
    updated, said = runner.update_weights_from_disk("/tmp/nothing-here", "auto")
    assert not updated, said
    same(generated(), torch_native()[0], "after a path that is not there")
    runner.model_config.model_path = MODEL


def check_weights_replaced_behind_everybodys_back() -> None:
    """Parameters of the real model are replaced, turned into another type and loaded: never a stale copy."""
    model = ours().model
    before, _ = torch_native()
    attention = model.model.layers[0].self_attn
    stock = attention.o_proj.weight
    attention.o_proj.weight = torch.nn.Parameter(stock.data.flip(0), requires_grad=False)
    routing.reset()
    mine = ours().generate(PROMPTS, STEPS)
    assert packed_paths()["o_proj"] == {"packed", "row_major"}
    assert other(mine, before)
    with on_torch():
        same(mine, ours().generate(PROMPTS, STEPS), "replaced parameter")
    attention.o_proj.weight = stock
    linear.repack(model)
    same(generated(), before, "and back")
    model.load_state_dict(model.state_dict())
    same(generated("row_major"), before, "load_state_dict")
    linear.repack(model)


def check_a_retied_head_of_the_real_model_is_an_error() -> None:
    import copy

    model = ours().model
    tied = model.lm_head
    model.lm_head = copy.deepcopy(tied)
    try:
        ours().generate(PROMPTS, 1)
    except RuntimeError as error:
        assert str(error) == "tied lm_head and embed_tokens must remain the same module"
    else:
        raise AssertionError("a retied head passed")
    finally:
        model.lm_head = tied
    same(generated(), torch_native()[0], "tied again")


def check_deleting_the_model_frees_the_packed_memory() -> None:
    one = ours()
    packed, row_major = memory_of(one.model), [StorageWeakRef(p.untyped_storage()) for p in one.model.parameters()]
    assert len(packed) == 9
    ours.cache_clear()
    one.end()
    del one
    gc.collect()
    assert gone(row_major), "the model itself is still there"
    assert gone(packed)


def check_an_int8_cache_gives_the_same_tokens() -> None:
    native, _ = torch_native()
    one = OneBatch(MODEL, attention_backend="rvv", kv_cache_dtype="int8")
    pool = one.runner.token_to_kv_pool
    assert type(pool).__name__ == "Int8KVPool" and pool.k_buffer[0].dtype == torch.int8
    assert "attention (INT8 cache)" in startup.report()["lines"][-1]
    routing.reset()
    result = one.generate(PROMPTS, STEPS)
    assert result.ids == native.ids
    differences = [float((a - b).abs().max()) for a, b in zip(result.logits, native.logits, strict=True)]
    print("INT8 cache: largest differences of logits", json.dumps(differences))
    assert max(differences) < 2 * CLOSE * float(native.logits[0].abs().max())
    one.end()


@contextmanager
def nothing_pinned() -> Iterator[None]:
    """Within, memory is not pinned: SGLang 0.5.15 does so for adapters, which takes an accelerator."""
    makers = {name: getattr(torch, name) for name in ("tensor", "zeros", "empty")}
    pin = torch.Tensor.pin_memory
    for name, make in makers.items():
        setattr(torch, name, lambda *args, make=make, pin_memory=False, **kwargs: make(*args, **kwargs))
    torch.Tensor.pin_memory = lambda self, *args: self  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.Tensor.pin_memory = pin  # type: ignore[method-assign]
        for name, make in makers.items():
            setattr(torch, name, make)


def check_layers_wrapped_for_adapters_are_sglangs() -> None:
    """All linears, the embedding and the tied head are wrapped; no adapter is loaded, so the result is the model's."""
    native, _ = torch_native()
    with nothing_pinned():
        wrapped_for_adapters(native)


def wrapped_for_adapters(native: Generated) -> None:
    targets = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj", "embed_tokens", "lm_head"]
    one = OneBatch(
        MODEL,
        attention_backend="rvv",
        enable_lora=True,
        lora_target_modules=targets,
        max_lora_rank=8,
        max_loras_per_batch=4,
        lora_backend="torch_native",
    )
    assert hasattr(one.model.lm_head, "set_lora"), type(one.model.lm_head)
    routing.reset()
    same(one.generate(PROMPTS, STEPS), native, "wrapped for adapters")
    assert packed_paths() == {projection: {"torch"} for projection in PROJECTIONS}, packed_paths()
    assert one.runner.update_weights_from_tensor([])[0]
    same(one.generate(PROMPTS, STEPS), native, "wrapped for adapters, after an update")
    one.end()
