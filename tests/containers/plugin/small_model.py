"""A tied decoder in outline: SGLang's linears under the names that SGLang's models give them, and its logits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.linear import ReplicatedLinear
from sglang_rvv import packed_weight, routing
from sglang_rvv.hooks import around_lm_head
from sglang_rvv.linear import prepare
from sglang_rvv.policy import Policy
from sglang_rvv.settings import PROJECTIONS
from torch.multiprocessing.reductions import StorageWeakRef

Tensor = torch.Tensor

HIDDEN = 64
SIZES = {"qkv_proj": 96, "o_proj": 70, "gate_up_proj": 128, "down_proj": 33}
"""Output features; two are no multiple of a packed block."""

VOCABULARY = 321
COSTS = {"qkv_proj": 96 * 128, "o_proj": 96 * 128, "gate_up_proj": 128 * 128, "down_proj": 64 * 128}
"""Bytes when packed: features in whole blocks of 32, times 64 inputs, times 2 bytes."""

HEAD_COST = 352 * 128


class Head(torch.nn.Module):
    """Embeds tokens, and is the head where they are tied."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(VOCABULARY, HIDDEN).to(dtype), requires_grad=False)


class Processor(torch.nn.Module):
    """SGLang's LogitsProcessor, as far as its head is concerned."""

    use_fp32_lm_head = False

    def logits(self, hidden: Tensor, head: Any) -> Tensor:
        logits: Tensor = around_lm_head(Processor.plain, self, hidden, head)
        return logits

    def plain(self, hidden: Tensor, head: Any, embedding_bias: Any = None) -> Tensor:
        return torch.matmul(hidden.to(head.weight.dtype), head.weight.T)


class Decoder(torch.nn.Module):
    """`model.layers.I.{self_attn,mlp}.PROJECTION`, `model.embed_tokens`, and `lm_head`, which is the same."""

    def __init__(self, layers: int = 2, dtype: torch.dtype = torch.bfloat16, tied: bool = True) -> None:
        super().__init__()
        self.config = SimpleNamespace(tie_word_embeddings=tied)
        self.model = torch.nn.Module()
        self.model.embed_tokens = Head(dtype)
        self.model.layers = torch.nn.ModuleList(layer(dtype) for _ in range(layers))
        self.lm_head = self.model.embed_tokens if tied else Head(dtype)
        self.logits_processor = Processor()

    def linears(self) -> dict[str, Any]:
        """{full name: layer} of the four projections of every layer."""
        return {name: part for name, part in self.named_modules() if name.rpartition(".")[2] in SIZES}


def layer(dtype: torch.dtype) -> torch.nn.Module:
    made = torch.nn.Module()
    made.self_attn, made.mlp = torch.nn.Module(), torch.nn.Module()
    for name, features in SIZES.items():
        part = made.self_attn if name in ("qkv_proj", "o_proj") else made.mlp
        linear = ReplicatedLinear(HIDDEN, features, bias=name == "qkv_proj", params_dtype=dtype)
        for parameter in linear.parameters():
            parameter.data.copy_(torch.randn(parameter.shape))
            parameter.requires_grad_(False)
        setattr(part, name, linear)
    return made


def prepared(budget_bytes: int | None = None, debug: bool = False, **kinds: Any) -> Decoder:
    """A decoder whose projections are all on our kernels, packed as far as a budget in bytes goes."""
    torch.manual_seed(3)
    decoder = Decoder(**kinds)
    mib = 64.0 if budget_bytes is None else budget_bytes / (1 << 20)
    prepare(decoder, Policy(linears=PROJECTIONS, memory_budget_mib=mib, debug_weights=debug))
    return decoder


def holds(linear: Any, path: str, what: str, x: Tensor | None = None) -> None:
    """The layer computes with the weight that it has, by this path."""
    x = rows(linear.weight.dtype) if x is None else x
    with counting() as counted:
        out = linear(x)[0]
    near(out, x, linear.weight, getattr(linear, "bias", None), what)
    assert counted() == {path}, f"{what}: {counted()}, not {path}"


def head_holds(decoder: Decoder, path: str, what: str, head: Any = None) -> None:
    """The same of the head."""
    head = decoder.lm_head if head is None else head
    x = rows(head.weight.dtype)
    with counting() as counted:
        out = decoder.logits_processor.logits(x, head)
    near(out, x, head.weight, None, what)
    assert counted() == {path}, f"{what}: {counted()}, not {path}"


def near(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, what: str) -> None:
    """One rounding to the type and FP32 within, of x times weight plus bias."""
    exact = x.double() @ weight.double().T + (0 if bias is None else bias.double())
    magnitude = x.double().abs() @ weight.double().abs().T + 8
    unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}[out.dtype]
    off = (out.double() - exact).abs() - unit * exact.abs() - 70 * 2.0**-24 * magnitude
    assert out.shape == exact.shape and bool((off <= 0).all()), f"{what}: not x times the weight that is there"


def rows(dtype: torch.dtype, count: int = 3) -> Tensor:
    return torch.randn(count, HIDDEN).to(dtype)


@contextmanager
def counting() -> Iterator[Any]:
    """Gives a function that tells the paths of the calls within."""
    routing.reset()
    yield lambda: {line["path"] for line in routing.snapshot()}


def packed_of(module: torch.nn.Module) -> Tensor | None:
    """The packed copy that a module holds."""
    buffer: Tensor | None = dict(module.named_buffers(recurse=False)).get(packed_weight.BUFFER)
    return buffer


def memory_of(model: torch.nn.Module) -> list[StorageWeakRef]:
    """References to the memory of every packed copy, which do not keep it."""
    found = [packed_of(module) for module in model.modules()]
    return [StorageWeakRef(packed.untyped_storage()) for packed in found if packed is not None]


def gone(memory: list[StorageWeakRef]) -> bool:
    """Whether nothing keeps that memory; SGLang's layers are in cycles of their own."""
    if not all(reference.expired() for reference in memory):
        gc.collect()
    return all(reference.expired() for reference in memory)
