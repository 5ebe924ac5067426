"""The linears of a loaded model: which compute in our kernels, and the counting of every call whichever way it goes.

A linear of SGLang 0.5.15 computes in its `quant_method.apply(layer, x, bias)`; each layer has a `quant_method` of its
own, so replacing it on the layer is enough and survives everything that calls `layer.forward`. The head is different:
logits are made by `LogitsProcessor._compute_lm_head` from `lm_head.weight`, tied or not, without `lm_head.forward`;
see `hooks.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.quantization.base_config import LinearMethodBase
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.layers.quantization.w8a8_int8 import W8A8Int8LinearMethod

from sglang_rvv import budget, kernels, packed_weight, routing
from sglang_rvv.packed_weight import PackedWeight
from sglang_rvv.policy import Policy
from sglang_rvv.settings import PROJECTIONS
from sglang_rvv.upstream import IntegrationError

FLOATING = (torch.bfloat16, torch.float16)
"""What the floating-point kernels compute in."""

PLAIN_HEADS = ("UnquantizedEmbeddingMethod", "UnquantizedLinearMethod", "NoneType")
"""Types of a head's `quant_method` (None is one) that leave its product with the weight as it is."""

TIED = "tied lm_head and embed_tokens must remain the same module"

STATE = "rvv_linears"
"""Name of the model's plain attribute that holds its `Linears`."""


class CountedLinear(LinearMethodBase):  # type: ignore[misc]
    """SGLang's own linear of a layer, counted."""

    def __init__(self, projection: str, stock: Any) -> None:
        self.projection = projection
        self.stock = stock

    def create_weights(self, *args: Any, **kwargs: Any) -> None:
        self.stock.create_weights(*args, **kwargs)

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        self.stock.process_weights_after_loading(layer)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return self.in_torch(layer, x, bias)

    def in_torch(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None, reason: str = "") -> torch.Tensor:
        """SGLang's way, counted as such."""
        self.count(x, "torch", reason)
        out: torch.Tensor = self.stock.apply(layer, x, bias)
        return out

    def count(self, x: torch.Tensor, path: str, reason: str = "", bucket: int = 0) -> None:
        """Count a call with the rows of `x` [..., K]."""
        routing.count(self.projection, x.numel() // x.shape[-1], path, reason, bucket)


class KernelLinear(CountedLinear):
    """The same on our kernels: on the packed weight while there is one, else on the row-major one."""

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        weight = layer.weight
        if x.numel() == 0 or x.dtype != weight.dtype or weight.dtype not in FLOATING:
            return self.in_torch(layer, x, bias)
        out, path = floating(layer, x, bias)
        self.count(x, path)
        return out


class W8A8Linear(CountedLinear):
    """A linear with INT8 codes and one scale for each output channel; rows of `x` are quantised as they come."""

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Nothing: the weight stays [N, K], as it was loaded, so that it can be loaded again."""

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        owner = packed_weight.owner_of(layer)
        packed = None if owner is None else owner.current()
        self.count(x, "w8a8_row_major" if packed is None else "w8a8")
        weight = layer.weight.data if packed is None else packed
        out: torch.Tensor = kernels.w8a8_linear(x, weight, layer.weight_scale.data, bias, is_packed=packed is not None)
        return out


def floating(layer: Any, x: torch.Tensor, bias: torch.Tensor | None) -> tuple[torch.Tensor, str]:
    """`x` [..., K] times the layer's weight [N, K] plus `bias` -> [..., N], and the path: packed or row_major."""
    owner = packed_weight.owner_of(layer)
    packed = None if owner is None else owner.current()
    if packed is None:
        return kernels.row_major_linear(x, layer.weight.data, bias), "row_major"
    return kernels.packed_linear(x, packed, bias, layer.weight.shape[0]), "packed"


@dataclass
class Linears:
    """What was made of a model's linears: `wanted` is the order of packing; `budget` what fitted and what did not;
    `regions` what TorchInductor compiles (`regional.install.Regions`), None where that is off.
    """

    policy: Policy
    regions: Any = None
    wanted: list[PackedWeight] = field(default_factory=list)
    budget: budget.Budget = field(default_factory=lambda: budget.Budget(0))
    kept: list[str] = field(default_factory=list)

    def pack(self) -> None:
        """Pack what fits, from the weights as they are now."""
        self.budget = budget.Budget(self.budget.limit_bytes)
        packed_weight.pack_within(self.wanted, self.budget)

    def check_head(self, model: Any, head: Any) -> None:
        """Raise RuntimeError where the head of a tied model is another module than its embedding. For an adapter of the
        head SGLang wraps a module of its own that has the embedding's weight.
        """
        if not is_tied(model):
            return
        tied, own = unwrapped(embedding(model)), unwrapped(head)
        if own is not tied and (own is head or own.weight is not tied.weight):
            raise RuntimeError(TIED)


def prepare(model: torch.nn.Module, policy: Policy) -> Linears:
    """Route the projections of a loaded model and pack what `policy` names, as far as its budget goes.

    Layers that are LoRA-wrapped or quantised in another way keep SGLang's path. Raises RuntimeError where tied modules
    are not the same.
    """
    state = Linears(policy)
    found = dict(find(model))
    for projection in PROJECTIONS:
        for name, layer in found.get(projection, []):
            ours = projection in policy.linears
            if projection != "lm_head":
                layer.quant_method = method_of(layer, projection, ours=ours)
                ours = isinstance(layer.quant_method, KernelLinear | W8A8Linear)
            else:
                state.check_head(model, layer)
                ours = ours and is_plain_head(layer)
            if ours:
                packed_weight.own(layer, name, debug=policy.debug_weights)
            else:
                state.kept.append(name)
    if policy.regional.active:
        from sglang_rvv.regional import install

        state.regions = install.prepare(model, policy.regional, debug=policy.debug_weights)
        state.kept = list(state.regions.kept)
    state.wanted = in_packing_order(found)
    model.__dict__[STATE] = state
    processor = getattr(model, "logits_processor", None)
    if processor is not None:
        processor.__dict__["rvv_model"] = weakref.ref(model)
    if state.wanted:
        limit = budget.limit_of(policy.memory_budget_mib, budget.available_bytes())
        state.budget = budget.Budget(limit)
        state.pack()
    return state


def repack(model: torch.nn.Module) -> None:
    """Drop every packed copy of a prepared model, and pack again what fits; after its weights were changed."""
    state: Linears | None = model.__dict__.get(STATE)
    packed_weight.invalidate(model)
    if state is not None:
        for name, layer in dict(find(model)).get("lm_head", []):
            state.check_head(model, layer)
            packs = "lm_head" in state.policy.linears or state.policy.regional.packs
            if packed_weight.owner_of(layer) is None and packs and is_plain_head(layer):
                packed_weight.own(layer, name, debug=state.policy.debug_weights)
        state.wanted = in_packing_order(dict(find(model)))
        state.pack()


def release(layer: Any) -> None:
    """Give a layer back to SGLang, for whoever wraps it (LoRA): its own way from now on, counted, and no packed copy.

    W8A8 stays: SGLang has no way of its own here.
    """
    method = getattr(layer, "quant_method", None)
    if isinstance(method, W8A8Linear):
        return
    packed_weight.disown(layer)
    if isinstance(method, CountedLinear):
        layer.quant_method = CountedLinear(method.projection, method.stock)


def method_of(layer: Any, projection: str, *, ours: bool) -> Any:
    """What computes the layer from now on, and counts; another library's quantisation is left as it is."""
    stock = layer.quant_method
    if isinstance(stock, CountedLinear):
        stock = stock.stock
    if isinstance(stock, W8A8Int8LinearMethod):
        return W8A8Linear(projection, stock) if ours else CountedLinear(projection, stock)
    if type(stock) is UnquantizedLinearMethod:
        return KernelLinear(projection, stock) if ours else CountedLinear(projection, stock)
    return stock


def is_plain_head(head: Any) -> bool:
    """Whether logits are a product with `head.weight`: neither LoRA-wrapped nor quantised."""
    method = type(getattr(head, "quant_method", None)).__name__
    return not hasattr(head, "set_lora") and method in PLAIN_HEADS


def find(model: Any) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The layers of each projection by their names in the model: (projection, [(full name, layer)])."""
    layers: dict[str, list[tuple[str, Any]]] = {name: [] for name in PROJECTIONS}
    for name, module in model.named_modules():
        projection = name.rpartition(".")[2]
        if projection in layers and projection != "lm_head" and isinstance(module, LinearBase):
            layers[projection].append((name, module))
    # By attribute: a tied head is the embedding, which named_modules lists under the embedding's name only.
    head = getattr(model, "lm_head", None)
    if getattr(head, "weight", None) is not None:
        layers["lm_head"].append(("lm_head", head))
    yield from layers.items()


def in_packing_order(found: dict[str, list[tuple[str, Any]]]) -> list[PackedWeight]:
    """The owners in the order in which the budget is spent: layer by layer, in each qkv_proj, o_proj, gate_up_proj,
    down_proj, and lm_head last.
    """
    inner = [found.get(projection, []) for projection in PROJECTIONS if projection != "lm_head"]
    depth = max((len(layers) for layers in inner), default=0)
    ordered = [layers[index][1] for index in range(depth) for layers in inner if index < len(layers)]
    ordered += [layer for _, layer in found.get("lm_head", [])]
    return [owner for layer in ordered if (owner := packed_weight.owner_of(layer)) is not None]


def is_tied(model: Any) -> bool:
    """Whether the model's configuration makes the embedding its head."""
    return bool(getattr(getattr(model, "config", None), "tie_word_embeddings", False)) and embedding(model) is not None


def unwrapped(module: Any) -> Any:
    """The module that LoRA has wrapped, or the module itself."""
    return module.base_layer if hasattr(module, "set_lora") else module


def embedding(model: Any) -> Any:
    """The module that embeds tokens; None where the model has none of that name."""
    return getattr(getattr(model, "model", None), "embed_tokens", None)


def compute_lm_head(
    original: Any, processor: Any, hidden_states: torch.Tensor, lm_head: Any, embedding_bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Around `LogitsProcessor._compute_lm_head`: count, and use our kernels for a head that is prepared. -> [M, N].

    Raises RuntimeError where the head of a tied model is another module than its embedding.
    """
    model = processor.__dict__.get("rvv_model", lambda: None)()
    if getattr(model, "logits_processor", None) is not processor:
        model = None  # a deep copy of the processor of that model
    state: Linears | None = None if model is None else model.__dict__.get(STATE)
    rows = hidden_states.numel() // hidden_states.shape[-1]
    if state is not None:
        state.check_head(model, lm_head)
    weight: Any = getattr(lm_head, "weight", None)
    ours = (
        state is not None
        and (state.regions is not None or "lm_head" in state.policy.linears)
        and is_plain_head(lm_head)
        and weight is not None
        and weight.dtype in FLOATING
        and not processor.use_fp32_lm_head
        and rows > 0
    )
    logits: torch.Tensor | None = None
    path, reason, bucket = "torch", "", 0
    if state is not None and ours:
        # As SGLang's own branch for a plain head: no bias, and the hidden states in the weight's type.
        hidden = hidden_states.to(weight.dtype)
        if state.regions is None:
            logits, path = floating(lm_head, hidden, None)
        else:
            logits, path, reason, bucket = state.regions.compute("lm_head", lm_head, hidden, None)
    if logits is None:
        logits = original(processor, hidden_states, lm_head, embedding_bias)
    routing.count("lm_head", rows, path, reason, bucket)
    return logits


def check_w8a8_is_ours(model: Any) -> None:
    """Raise IntegrationError for a W8A8 layer that our kernels do not compute: SGLang has no other way on a CPU."""
    for name, module in model.named_modules():
        if isinstance(getattr(module, "quant_method", None), W8A8Int8LinearMethod):
            raise IntegrationError(
                f"{name} is quantised to W8A8, and nothing on this platform but our kernels computes that",
                mend="name its projection in SGLANG_RVV_PROJECTIONS, or load a checkpoint that is not quantised",
            )
