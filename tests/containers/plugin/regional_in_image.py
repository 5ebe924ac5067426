"""Regions of a small decoder: the artifact that computes each call, or why none does, and that padding is not seen.

On a machine without RVV the generated code has the kernels' portable form; all else is as on a board. Projections of
one shape share what they compile, so that these are 32 small C++ files.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.linear import ReplicatedLinear
from sglang_rvv import linear, routing
from sglang_rvv.linear import STATE, prepare
from sglang_rvv.policy import Policy
from sglang_rvv.regional.gate import EXPLICIT_PACKED, ROW_MAJOR, buckets
from sglang_rvv.regional.policy import RegionalPolicy
from sglang_rvv.settings import PROJECTIONS
from small_model import Processor, counting, gone, memory_of, packed_of

Tensor = torch.Tensor

K = 1024
SIZES = {"qkv_proj": 1056, "o_proj": 1024, "gate_up_proj": 1056, "down_proj": 1056}
VOCABULARY = 1056

M = (1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 64, 100, 128, 129)
ARTIFACTS = dict(zip(M, (1, 2, 4, 4, 8, 8, 16, 16, 16, 32, 64, 128, 128, None), strict=True))

PATHS = {ROW_MAJOR: "inductor_row_major", EXPLICIT_PACKED: "inductor_packed"}
POLICIES = {
    ROW_MAJOR: RegionalPolicy("regional", "off", True),
    EXPLICIT_PACKED: RegionalPolicy("regional", "explicit", True),
}


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(VOCABULARY, K).bfloat16(), requires_grad=False)


class LlamaForCausalLM(torch.nn.Module):
    """The projections of one layer and a tied head, under the names and the class's name that the adapter knows."""

    def __init__(self, *, biased: tuple[str, ...] = ()) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.config = SimpleNamespace(tie_word_embeddings=True)
        self.model = torch.nn.Module()
        self.model.embed_tokens = Head()
        layer = torch.nn.Module()
        layer.self_attn, layer.mlp = torch.nn.Module(), torch.nn.Module()
        for name, features in SIZES.items():
            made = ReplicatedLinear(K, features, bias=name in biased, params_dtype=torch.bfloat16)
            for parameter in made.parameters():
                parameter.data.copy_(torch.randn(parameter.shape))
                parameter.requires_grad_(False)
            setattr(layer.self_attn if name in ("qkv_proj", "o_proj") else layer.mlp, name, made)
        self.model.layers = torch.nn.ModuleList([layer])
        self.lm_head = self.model.embed_tokens
        self.logits_processor = Processor()

    def weight(self, projection: str) -> Any:
        return self.lm_head if projection == "lm_head" else self.layer(projection)

    def layer(self, projection: str) -> Any:
        part = self.model.layers[0].self_attn if projection in ("qkv_proj", "o_proj") else self.model.layers[0].mlp
        return getattr(part, projection)

    def compute(self, projection: str, x: Tensor) -> Tensor:
        with torch.no_grad():
            if projection == "lm_head":
                return self.logits_processor.logits(x, self.lm_head)
            out: Tensor = self.layer(projection)(x)[0]
            return out


@functools.cache
def regional(mode: str) -> LlamaForCausalLM:
    model = LlamaForCausalLM()
    prepare(model, Policy(regional=POLICIES[mode], memory_budget_mib=64.0))
    return model


@functools.cache
def rows(count: int) -> Tensor:
    torch.manual_seed(count)
    return torch.randn(count, K).bfloat16()


def exact(model: LlamaForCausalLM, projection: str, x: Tensor, mode: str) -> Tensor:
    """What the operators of the kernels give, for all rows at once."""
    weight = model.weight(projection).weight.data
    if mode == ROW_MAJOR:
        return torch.ops.sgl_kernel.linear_rowmajor(x, weight, None)
    packed = torch.ops.sgl_kernel.convert_weight_packed(weight)
    return torch.ops.sgl_kernel.weight_packed_linear_out(x, packed, None, weight.shape[0], True, 1)


def expected(projection: str, m: int) -> int | None:
    return None if projection == "lm_head" and m >= 16 else ARTIFACTS[m]


def holds_table(mode: str) -> None:
    model = regional(mode)
    for projection in PROJECTIONS:
        for m in M:
            before = {region["name"] for region in regions(model)}
            routing.reset()
            out = model.compute(projection, rows(m))
            (line,) = routing.snapshot()
            bucket = expected(projection, m)
            path = "torch" if bucket is None else PATHS[mode]
            assert (line["projection"], line["m"], line["path"], line["calls"]) == (projection, m, path, 1), line
            assert ("reason" in line) == (bucket is None), line
            assert line.get("bucket") == bucket, line
            n = model.weight(projection).weight.shape[0]
            name = f"rvv_{projection}_{mode}_{bucket}x{n}x{K}"
            new = {region["name"] for region in regions(model)} - before
            assert new <= {name}, f"{projection} at {m} rows compiled {new}"
            if bucket is not None:
                assert name in before | new, f"{projection} at {m} rows: no {name}"
                assert torch.equal(out, exact(model, projection, rows(m), mode)), f"{projection}, {m} rows: other bits"


def regions(model: LlamaForCausalLM) -> list[dict[str, Any]]:
    return model.__dict__[STATE].regions.report()["regions"]


def check_routing_table_of_packed_weights() -> None:
    holds_table(EXPLICIT_PACKED)


def check_routing_table_of_row_major_weights() -> None:
    holds_table(ROW_MAJOR)


def check_padding_never_changes_a_result() -> None:
    """Rows are bits of the same, in whatever number they come; the artifact of their bucket is used, also strided."""
    from torch._dynamo.utils import counters

    model = regional(EXPLICIT_PACKED)
    for projection in PROJECTIONS:
        whole = model.compute(projection, rows(8))
        for m in (1, 2, 3, 5, 7):
            assert torch.equal(model.compute(projection, rows(8)[:m]), whole[:m]), f"{projection}, {m} of 8 rows"
        strided = torch.zeros(8, 2 * K, dtype=torch.bfloat16)[:, :K].copy_(rows(8))
        before = len(regions(model)), counters["stats"]["unique_graphs"]
        assert torch.equal(model.compute(projection, strided), whole), f"{projection}, strided"
        assert torch.equal(model.compute(projection, strided[-1:]), whole[-1:]), f"{projection}, a row of strided ones"
        assert (len(regions(model)), counters["stats"]["unique_graphs"]) == before, "compiled anew"


def check_each_region_was_compiled_once_and_lowered_to_a_kernel() -> None:
    from torch._dynamo.utils import counters

    for mode in POLICIES:
        made = regions(regional(mode))
        assert len(made) == 4 * len(buckets(small_batch=True)) + 5, [region["name"] for region in made]
        assert all(region["fxgraph_misses"] + region["fxgraph_hits"] == 1 for region in made), made
    assert counters["stats"]["unique_graphs"] == 2 * 37, counters["stats"]
    lowered = set(counters["rvv_inductor"])
    assert lowered == {"packed", "row_major"}, counters["rvv_inductor"]


def check_packed_weights_belong_to_their_owner() -> None:
    model = regional(EXPLICIT_PACKED)
    expected_bytes = sum(-(-n // 32) * 32 * K * 2 for n in (*SIZES.values(), VOCABULARY))
    held = [packed_of(model.weight(projection)) for projection in PROJECTIONS]
    assert sum(part.numel() * part.element_size() for part in held if part is not None) == expected_bytes
    assert model.__dict__[STATE].budget.taken_bytes == expected_bytes
    assert memory_of(regional(ROW_MAJOR)) == []


def check_a_changed_weight_is_packed_again_and_without_room_it_is_row_major() -> None:
    model = LlamaForCausalLM()
    prepare(model, Policy(regional=POLICIES[EXPLICIT_PACKED], memory_budget_mib=2.0))
    wanted = {"qkv_proj": "row_major", "o_proj": "packed", "gate_up_proj": "row_major", "down_proj": "row_major"}
    for projection, way in wanted.items():
        with counting() as counted:
            out = model.compute(projection, rows(2))
        assert counted() == {f"inductor_{way}"}, f"{projection}: {counted()}"
        mode = ROW_MAJOR if way == "row_major" else EXPLICIT_PACKED
        assert torch.equal(out, exact(model, projection, rows(2), mode)), projection
    before = memory_of(model)
    model.layer("o_proj").weight.data = model.layer("o_proj").weight.data * 2
    linear.repack(model)
    assert torch.equal(model.compute("o_proj", rows(2)), exact(model, "o_proj", rows(2), EXPLICIT_PACKED)), (
        "not the weight that is there"
    )
    assert gone(before)


def check_a_bias_goes_to_torch_and_says_so() -> None:
    model = LlamaForCausalLM(biased=("qkv_proj",))
    prepare(model, Policy(regional=POLICIES[EXPLICIT_PACKED], memory_budget_mib=64.0))
    routing.reset()
    model.compute("qkv_proj", rows(1))
    model.compute("o_proj", rows(1))
    assert [(line["projection"], line["path"], line.get("reason")) for line in routing.snapshot()] == [
        ("o_proj", "inductor_packed", None),
        ("qkv_proj", "torch", "bias"),
    ]


def check_without_the_flag_nothing_is_compiled() -> None:
    model = LlamaForCausalLM()
    prepare(model, Policy())
    assert model.__dict__[STATE].regions is None
    for projection in PROJECTIONS:
        with counting() as counted:
            model.compute(projection, rows(1))
        assert counted() == {"torch"}


def check_a_model_that_no_adapter_knows_is_refused() -> None:
    class Other(LlamaForCausalLM):
        pass

    try:
        prepare(Other(), Policy(regional=POLICIES[ROW_MAJOR]))
    except RuntimeError as error:
        assert "does not know the model Other" in str(error), error
    else:
        raise AssertionError("a model that is not known was taken")
