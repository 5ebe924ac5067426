"""Who owns packed weights, when they are used, and that no stale one ever is."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.linear import ReplicatedLinear
from sglang_rvv import packed_weight
from sglang_rvv.linear import STATE, TIED, CountedLinear, KernelLinear, prepare, release, repack
from sglang_rvv.policy import Policy
from sglang_rvv.settings import PROJECTIONS
from small_model import (
    COSTS,
    HEAD_COST,
    HIDDEN,
    Decoder,
    Head,
    gone,
    head_holds,
    holds,
    memory_of,
    near,
    packed_of,
    prepared,
    rows,
)

Change = Callable[[Any], None]


def check_every_linear_and_the_tied_head_are_packed_and_right() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        decoder = prepared(dtype=dtype)
        for name, linear in decoder.linears().items():
            holds(linear, "packed", name)
            holds(linear, "packed", f"{name}, 3 dimensions", rows(dtype, 6).view(2, 3, HIDDEN))
        head_holds(decoder, "packed", "tied head")
        assert packed_of(decoder.model.embed_tokens) is not None
        head_holds(prepared(dtype=dtype, tied=False), "packed", "head of its own")


def check_what_kernels_do_not_compute_stays_torchs() -> None:
    """A model in FP32, rows of another type, no rows at all."""
    wide = prepared(dtype=torch.float32)
    for name, linear in wide.linears().items():
        holds(linear, "torch", name)
    head_holds(wide, "torch", "head in FP32")
    assert memory_of(wide) == []
    linear = prepared().linears()["model.layers.0.self_attn.o_proj"]
    holds(linear, "torch", "no rows", rows(torch.bfloat16, 0))


def check_packed_weights_are_in_no_state_dict_and_no_parameter() -> None:
    decoder, plain = prepared(), Decoder()
    assert set(decoder.state_dict()) == set(plain.state_dict())
    assert {name for name, _ in decoder.named_parameters()} == {name for name, _ in plain.named_parameters()}
    buffers = [name for name, _ in decoder.named_buffers()]
    assert len(buffers) == 9 and all(name.endswith(packed_weight.BUFFER) for name in buffers), buffers
    decoder.load_state_dict(plain.state_dict(), strict=True)
    plain.load_state_dict(decoder.state_dict(), strict=True)


def check_deleting_the_model_or_a_layer_frees_the_packed_memory() -> None:
    decoder = prepared()
    memory = memory_of(decoder)
    assert len(memory) == 9 and not any(reference.expired() for reference in memory)
    del decoder
    assert gone(memory)
    decoder = prepared()
    memory = memory_of(decoder.model.layers[1])
    del decoder.model.layers[1]
    assert gone(memory)
    memory = memory_of(decoder)
    packed_weight.invalidate(decoder)
    assert gone(memory) and memory_of(decoder) == []


def check_load_state_dict_invalidates_whatever_it_is_called_on() -> None:
    other = {name: torch.randn(value.shape).to(value.dtype) for name, value in Decoder().state_dict().items()}
    decoder = prepared()
    memory = memory_of(decoder)
    decoder.load_state_dict(other)
    assert gone(memory), "the copies of the old weights are still there"
    for name, linear in decoder.linears().items():
        holds(linear, "row_major", name)
    head_holds(decoder, "row_major", "head")
    repack(decoder)
    for name, linear in decoder.linears().items():
        holds(linear, "packed", name)
    head_holds(decoder, "packed", "head")
    first, second = (decoder.linears()[f"model.layers.{index}.mlp.down_proj"] for index in (0, 1))
    first.load_state_dict({"weight": torch.randn(33, HIDDEN)})
    holds(first, "row_major", "one layer loaded")
    holds(second, "packed", "another layer")
    decoder.load_state_dict({"lm_head.weight": other["lm_head.weight"] * 2}, strict=False)
    head_holds(decoder, "row_major", "head loaded alone")


def new_parameter(linear: Any) -> None:
    linear.weight = torch.nn.Parameter(torch.randn_like(linear.weight), requires_grad=False)


def pointed_elsewhere(linear: Any) -> None:
    linear.weight.data = torch.randn_like(linear.weight)


def pointed_there_and_back(linear: Any) -> None:
    """The second time the allocator gives the memory that the first weight had, unless it is somebody's by then."""
    for factor in (2, 3):
        linear.weight.data = linear.weight.data * factor


def part_of_something_larger(linear: Any) -> None:
    linear.weight.data = torch.randn(2, *linear.weight.shape).to(linear.weight.dtype)[1]


def transposed_twice(linear: Any) -> None:
    linear.weight.data = torch.randn_like(linear.weight).t().contiguous().t()


def fewer_features(linear: Any) -> None:
    linear.weight.data = linear.weight.data[:-1]
    if linear.bias is not None:
        linear.bias = torch.nn.Parameter(linear.bias.data[:-1], requires_grad=False)


def other_type(module: Any) -> None:
    dtype = next(module.parameters()).dtype
    module.to(torch.float16 if dtype == torch.bfloat16 else torch.bfloat16)


def other_type_and_back(linear: Any) -> None:
    """What a weight loses in another type is lost in the copy too, or the copy is gone."""
    linear.weight.data.mul_(1e-6)
    packed_weight.owner_of(linear).pack()
    other_type(linear)
    other_type(linear)


def check_a_changed_weight_is_computed_with_at_once_and_packed_again_when_asked() -> None:
    changes: tuple[Change, ...] = (
        new_parameter,
        pointed_elsewhere,
        part_of_something_larger,
        transposed_twice,
        fewer_features,
        other_type,
    )
    for dtype in (torch.bfloat16, torch.float16):
        for change in changes:
            for name, linear in prepared(layers=1, dtype=dtype).linears().items():
                memory = memory_of(linear)
                change(linear)
                holds(linear, "row_major", f"{change.__name__} of {name}")
                assert gone(memory), f"{change.__name__} of {name}: the old copy is still there"
                packed_weight.owner_of(linear).pack()
                holds(linear, "packed", f"{change.__name__} of {name}, packed again")
        decoder = prepared(dtype=dtype)
        other_type(decoder)
        head_holds(decoder, "row_major", "head of another type")
        repack(decoder)
        head_holds(decoder, "packed", "head of another type, packed again")
        decoder.lm_head.weight = torch.nn.Parameter(decoder.lm_head.weight.data * 3, requires_grad=False)
        head_holds(decoder, "row_major", "head with another weight")


def check_a_weight_that_came_back_to_the_old_address_is_another_weight() -> None:
    """Of 32 MiB and more, every weight is mapped anew, and the address of the first one is free by the third."""
    large = ReplicatedLinear(HIDDEN, (33 << 20) // HIDDEN // 2, bias=False, params_dtype=torch.bfloat16)
    large.weight.requires_grad_(False)
    large.weight.data.normal_()
    large.quant_method = KernelLinear("down_proj", large.quant_method)
    owner = packed_weight.own(large, "large")
    met = 0
    for change in (pointed_there_and_back, other_type_and_back):
        owner.pack()
        pointer = large.weight.data_ptr()
        change(large)
        met += pointer == large.weight.data_ptr()
        x = rows(torch.bfloat16)
        near(large(x)[0], x, large.weight, None, change.__name__)
    assert met, "the address did not come back: nothing was tried"


def check_a_deleted_weight_is_no_reason_to_use_its_copy() -> None:
    linear = prepared(layers=1).linears()["model.layers.0.mlp.down_proj"]
    del linear.weight
    owner = packed_weight.owner_of(linear)
    assert owner.current() is None and packed_of(linear) is None


def check_writing_in_place_needs_the_documented_call() -> None:
    decoder = prepared()
    linear = decoder.linears()["model.layers.0.mlp.gate_up_proj"]
    linear.weight.data.mul_(2)
    packed_weight.invalidate(linear)
    holds(linear, "row_major", "invalidated layer")
    holds(decoder.linears()["model.layers.1.mlp.gate_up_proj"], "packed", "another layer")
    linear.weight.data.mul_(2)
    packed_weight.invalidate(decoder)
    for name, each in decoder.linears().items():
        holds(each, "row_major", f"{name} of an invalidated model")
    head_holds(decoder, "row_major", "head of an invalidated model")
    repack(decoder)
    holds(linear, "packed", "packed again")


def check_in_debug_mode_the_version_counter_tells() -> None:
    for debug in (False, True):
        linear = prepared(debug=debug).linears()["model.layers.0.mlp.gate_up_proj"]
        before = linear.weight.clone()
        with torch.no_grad():
            linear.weight.mul_(2)
        if debug:
            holds(linear, "row_major", "written in place")
        else:
            x = rows(torch.bfloat16)
            near(linear(x)[0], x, before, None, "not in debug mode: as documented, the copy of before")
    with torch.inference_mode():
        linear = prepared(debug=True).linears()["model.layers.0.mlp.gate_up_proj"]
        linear.weight = torch.nn.Parameter(torch.randn_like(linear.weight), requires_grad=False)
        assert linear.weight.is_inference()  # it has no counter
        packed_weight.owner_of(linear).pack()
        holds(linear, "packed", "a weight of inference mode")


def check_a_deep_copy_never_uses_the_copy_of_the_original() -> None:
    decoder = prepared()
    linear = decoder.linears()["model.layers.0.mlp.gate_up_proj"]
    twin = copy.deepcopy(linear)
    assert packed_weight.owner_of(twin) is None
    twin.weight.data.mul_(2)
    holds(twin, "row_major", "deep copy")
    holds(linear, "packed", "original")
    packed_weight.own(twin, "twin").pack()
    holds(twin, "packed", "deep copy with an owner of its own")
    assert packed_of(twin).data_ptr() != packed_of(linear).data_ptr()
    holds(linear, "packed", "original, after its copy was packed")
    del linear, decoder
    gc.collect()
    holds(twin, "packed", "deep copy, the original gone")


def check_a_deep_copy_of_a_model_is_a_model_of_its_own() -> None:
    decoder = prepared()
    twin = copy.deepcopy(decoder)
    for parameter in twin.parameters():
        parameter.data.mul_(2)
    for name, linear in twin.linears().items():
        holds(linear, "row_major", f"{name} of a deep copy")
    x = rows(torch.bfloat16)
    near(twin.logits_processor.logits(x, twin.lm_head), x, twin.lm_head.weight, None, "head of a deep copy")
    for name, linear in decoder.linears().items():
        holds(linear, "packed", f"{name} of the original")
    head_holds(decoder, "packed", "head of the original")


def check_a_module_that_is_gone_takes_its_owner_along() -> None:
    linear = prepared(layers=1).linears()["model.layers.0.mlp.down_proj"]
    owner = packed_weight.owner_of(linear)
    del linear
    gc.collect()
    assert owner.held_bytes == 0
    try:
        owner.pack()
    except ReferenceError as error:
        assert "down_proj" in str(error)
    else:
        raise AssertionError("packed a weight of a module that is gone")
    owner.invalidate()


def check_the_budget_is_spent_layer_by_layer_with_the_head_last_and_first_fit() -> None:
    order = [
        f"model.layers.{index}.{part}"
        for index in (0, 1)
        for part in ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj")
    ]
    costs = {name: COSTS[name.rpartition(".")[2]] for name in order} | {"lm_head": HEAD_COST}
    total = sum(costs.values())
    for limit in (0, 1, COSTS["down_proj"], 96 * 128 * 2 + COSTS["down_proj"], 60_000, total - 1, total, total + 1):
        decoder = prepared(limit)
        spent = decoder.__dict__[STATE].budget
        left, expected = limit, []
        for name, cost in costs.items():
            if cost <= left:
                expected.append(name)
                left -= cost
        assert list(spent.packed) == expected, f"{limit}: {list(spent.packed)}"
        assert spent.packed == {name: costs[name] for name in expected}
        assert spent.left_out == {name: cost for name, cost in costs.items() if name not in expected}
        assert list(spent.left_out) == [name for name in costs if name not in expected]
        held = sum(packed.numel() * 2 for m in decoder.modules() if (packed := packed_of(m)) is not None)
        assert held == spent.taken_bytes == limit - left <= limit
        for name, linear in decoder.linears().items():
            holds(linear, "packed" if name in expected else "row_major", f"{name} of {limit} bytes")
        head_holds(decoder, "packed" if "lm_head" in expected else "row_major", f"head of {limit} bytes")
        repack(decoder)
        assert list(decoder.__dict__[STATE].budget.packed) == expected


def check_projections_that_were_not_named_stay_torchs_and_cost_nothing() -> None:
    decoder = Decoder()
    prepare(decoder, Policy(linears=("o_proj", "lm_head"), memory_budget_mib=64))
    for name, linear in decoder.linears().items():
        holds(linear, "packed" if name.endswith("o_proj") else "torch", name)
        assert type(linear.quant_method) is (KernelLinear if name.endswith("o_proj") else CountedLinear)
    assert decoder.__dict__[STATE].budget.taken_bytes == 2 * COSTS["o_proj"] + HEAD_COST
    prepare(decoder, Policy())
    for name, linear in decoder.linears().items():
        holds(linear, "torch", f"{name}, prepared again without kernels")
        assert not isinstance(linear.quant_method.stock, CountedLinear), "wrapped twice"
    head_holds(decoder, "torch", "head, prepared again without kernels")


def check_a_retied_head_is_an_error_wherever_it_is_met() -> None:
    decoder = prepared()
    decoder.lm_head = Head(torch.bfloat16)
    x = rows(torch.bfloat16)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: decoder.logits_processor.logits(x, decoder.lm_head),
        lambda: repack(decoder),
        lambda: prepare(decoder, Policy(linears=PROJECTIONS)),
        lambda: prepare(decoder, Policy()),
    )
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            assert str(error) == TIED == "tied lm_head and embed_tokens must remain the same module"
        else:
            raise AssertionError("a head of its own in a tied model passed")
    decoder.lm_head = decoder.model.embed_tokens
    repack(decoder)
    head_holds(decoder, "packed", "tied again")


def check_the_embedding_of_a_tied_head_keeps_its_rows() -> None:
    decoder = prepared()
    weight = decoder.model.embed_tokens.weight
    tokens = torch.tensor([0, 7, 320])
    before = torch.nn.functional.embedding(tokens, weight)
    head_holds(decoder, "packed", "head")
    assert decoder.lm_head is decoder.model.embed_tokens and decoder.lm_head.weight is weight
    assert torch.equal(torch.nn.functional.embedding(tokens, weight), before) and weight.shape == (321, HIDDEN)


class Wrapper(torch.nn.Module):
    """What SGLang puts in the place of a layer for adapters."""

    set_lora = False

    def __init__(self, base_layer: Any) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.weight = base_layer.weight
        release(base_layer)  # as the hook around SGLang's own wrapper does

    def apply_lora(self) -> None: ...


def check_a_lora_wrapped_head_keeps_sglangs_path() -> None:
    """SGLang unties the head of a tied model before it wraps it: a module of its own, over the embedding's weight."""
    for tied in (True, False):
        decoder = prepared(tied=tied)
        untied = Head(torch.bfloat16) if tied else decoder.lm_head
        untied.weight = decoder.lm_head.weight
        decoder.lm_head = wrapped = Wrapper(untied)
        head_holds(decoder, "torch", "wrapped head", wrapped)
        repack(decoder)
        head_holds(decoder, "torch", "wrapped head, packed again", wrapped)
        assert all(packed_of(module) is None for module in (wrapped, untied, decoder.model.embed_tokens))
        if tied:
            untied.weight = torch.nn.Parameter(untied.weight.data.clone(), requires_grad=False)
            try:
                repack(decoder)
            except RuntimeError as error:
                assert str(error) == TIED
            else:
                raise AssertionError("a wrapped head with a weight of its own in a tied model passed")


def check_a_wrapped_embedding_leaves_the_tied_head_where_it_is() -> None:
    decoder = prepared()
    decoder.model.embed_tokens = Wrapper(decoder.lm_head)
    head_holds(decoder, "row_major", "bare head")
    repack(decoder)
    head_holds(decoder, "packed", "bare head, packed again")


def check_linears_in_a_lora_wrapper_are_sglangs_and_cost_nothing() -> None:
    decoder = prepared()
    for block in decoder.model.layers:
        block.mlp.down_proj = Wrapper(block.mlp.down_proj)
    inner = decoder.model.layers[0].mlp.down_proj.base_layer
    for _ in range(2):
        holds(inner, "torch", "wrapped")
        assert packed_of(inner) is None
        holds(decoder.model.layers[0].mlp.gate_up_proj, "packed", "beside it")
        repack(decoder)
    assert not any("down_proj" in name for name in decoder.__dict__[STATE].budget.packed)


def check_other_quantisations_keep_sglangs_path() -> None:
    decoder = Decoder(layers=1)
    linear = decoder.model.layers[0].mlp.down_proj
    other = linear.quant_method = SimpleNamespace(apply=lambda layer, x, bias: x)
    prepare(decoder, Policy(linears=PROJECTIONS, memory_budget_mib=64))
    assert linear.quant_method is other and packed_weight.owner_of(linear) is None
    assert "model.layers.0.mlp.down_proj" in decoder.__dict__[STATE].kept
