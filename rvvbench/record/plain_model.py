"""What a manifest, as plain JSON data, says of the model and of what a variant does with it: derived once more, so that
a record can be checked without the code that predicted its routes. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.record.operators import NORM
from rvvbench.record.plain_manifest import HEAD
from rvvbench.record.way import way

Variant = Mapping[str, Any]
"""A variant of a manifest."""

LAYER_PROJECTIONS = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
MIB = 1024**2
_BLOCK = 32
"""Output features of a packed weight come in blocks of so many."""


class NotDeclaredError(Exception):
    """The manifest does not hold what has to be derived from it."""


@dataclass(frozen=True)
class PlainModel:
    """A decoder: its layers, the heads of each, and [N, K] of its linears. `qk_norm_heads`: see `ExpectedLoad`.
    `biased`: the linears that have a bias.
    """

    layers: int
    qk_norm_heads: tuple[int, ...]
    sizes: Mapping[str, tuple[int, int]]
    biased: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Packed:
    """What is packed of the modules that a variant lists: numbers by projection, and bytes. `budget_bytes` None: no
    budget; `left_bytes` is what packing the others, of numbers `left`, would take.
    """

    modules: Counter[str]
    bytes: int
    left: Counter[str]
    left_bytes: int
    budget_bytes: int | None


def plain_model(config: Any) -> PlainModel:
    """The model of a Hugging Face configuration. Raises NotDeclaredError."""
    if not isinstance(config, Mapping):
        raise NotDeclaredError("the manifest has no configuration of the model")
    hidden, inner, heads = (
        _count(config, name) for name in ("hidden_size", "intermediate_size", "num_attention_heads")
    )
    kv_heads = _count(config, "num_key_value_heads", heads)
    head = _count(config, "head_dim", hidden // heads)
    sizes = {
        "qkv_proj": ((heads + 2 * kv_heads) * head, hidden),
        "o_proj": (hidden, heads * head),
        "gate_up_proj": (2 * inner, hidden),
        "down_proj": (hidden, inner),
        HEAD: (_count(config, "vocab_size"), hidden),
    }
    qk_norms = config.get("architectures") == ["Qwen3ForCausalLM"]
    qk_norm_heads = (heads, kv_heads) if qk_norms else ()
    return PlainModel(_count(config, "num_hidden_layers"), qk_norm_heads, sizes, _biased(config))


def describes_operators(variant: Variant) -> bool:
    """Whether the variant is of a manifest that speaks of more than linears; the first ones did not."""
    return "elementwise" in variant


def uses_kernels(variant: Variant) -> bool:
    """Whether a part of the variant is computed by our kernels."""
    ours = (variant.get("attention_backend") == "rvv", variant.get("elementwise") == "kernels", _packs_regions(variant))
    return variant.get("linear") in ("packed", "w8a8") or any(ours)


def packed_of(model: PlainModel, variant: Variant) -> Packed:
    """What `variant` packs: layer by layer, lm_head last, each module that fits into what is left of the budget.

    Raises NotDeclaredError.
    """
    listed = _listed(model, variant)
    order = [name for _ in range(model.layers) for name in LAYER_PROJECTIONS if name in listed]
    order += [HEAD] if HEAD in listed else []
    sizes = {name: _packed_bytes(model, variant, name) for name in listed}
    every = sum(sizes[name] for name in order)
    percent = variant.get("packed_budget_percent")
    if percent is not None and (type(percent) is not int or not 0 <= percent <= 100):
        raise NotDeclaredError(f"the variant's packed_budget_percent is {percent}")
    budget = None if percent is None else every * percent // 100
    room = every if budget is None else budget
    fitting: Counter[str] = Counter()
    for name in order:
        if sizes[name] <= room:
            fitting[name] += 1
            room -= sizes[name]
    taken = sum(sizes[name] * count for name, count in fitting.items())
    return Packed(fitting, taken, Counter(order) - fitting, every - taken, budget)


def calls_of_pass(
    model: PlainModel, variant: Variant, *, tokens: int, sequences: int, decodes: bool
) -> Counter[tuple[str, int, str]]:
    """Calls by (projection or operator, rows, path) of a forward pass of `tokens` rows, of which the last of each of
    `sequences` goes through lm_head. Raises NotDeclaredError.
    """
    calls: Counter[tuple[str, int, str]] = Counter()
    for name, paths in _paths(model, variant).items():
        m = sequences if name == HEAD else tokens
        if compiles(variant):
            paths = Counter({compiled_way(model, variant, name, m): paths.total()})
        for path, modules in paths.items():
            calls[name, m, path] += modules
    attention = "kernels" if variant.get("attention_backend") == "rvv" else "torch"
    others = "kernels" if variant.get("elementwise") == "kernels" else "torch"
    calls["decode_attention" if decodes else "extend_attention", tokens, attention] += model.layers
    calls["gated_activation", tokens, others] += model.layers
    calls["rotary_embedding", tokens, others] += model.layers
    calls[NORM, tokens, others] += 2 * model.layers + 1
    for heads in model.qk_norm_heads:
        calls[NORM, tokens * heads, others] += model.layers
    return calls


def compiles(variant: Variant) -> bool:
    """Whether the variant's linears are compiled; manifests of before say nothing else than that nothing is."""
    return variant.get("compile") == "regional"


def compiled_way(model: PlainModel, variant: Variant, name: str, m: int) -> str:
    """The way (`Route.way`) of `m` rows of a linear: the least power of two that holds them, or torch's own linear."""
    small = variant.get("small_batch") is True
    bucket = max(1 if small else 16, 1 << (m - 1).bit_length())
    n, k = model.sizes[name]
    left_to_torch = (
        name in model.biased,
        bucket > 128,
        name == HEAD and m > 15,
        1 < m < 16 and not small,
        not _packs_regions(variant) and (min(n, k) < 1024 or bucket * n * k < 10**6),
    )
    if any(left_to_torch):
        return "torch"
    return way("inductor_packed" if _packs_regions(variant) else "inductor_row_major", bucket)


def _packs_regions(variant: Variant) -> bool:
    return compiles(variant) and variant.get("packed_weight_mode") == "explicit"


def _biased(config: Mapping[str, Any]) -> frozenset[str]:
    kind, attention = config.get("architectures"), bool(config.get("attention_bias"))
    found = {
        "qkv_proj": attention or kind == ["Qwen2ForCausalLM"],
        "o_proj": attention and kind == ["LlamaForCausalLM"],
        "gate_up_proj": bool(config.get("mlp_bias")),
        "down_proj": bool(config.get("mlp_bias")),
    }
    return frozenset(name for name, biased in found.items() if biased)


def _paths(model: PlainModel, variant: Variant) -> dict[str, Counter[str]]:
    """By projection, how many of its modules take which path."""
    packed, listed = packed_of(model, variant), _listed(model, variant)
    paths: dict[str, Counter[str]] = {}
    for name in model.sizes:
        modules = 1 if name == HEAD else model.layers
        if name not in listed or compiles(variant):
            paths[name] = Counter({"torch": modules})
        elif variant.get("linear") == "w8a8" and name != HEAD:
            paths[name] = Counter({"w8a8": modules})
        else:
            paths[name] = +Counter({"packed": packed.modules[name], "row_major": packed.left[name]})
    return paths


def _listed(model: PlainModel, variant: Variant) -> list[str]:
    if _packs_regions(variant):
        return [name for name in model.sizes if name not in model.biased]
    named = variant.get("projections") if variant.get("linear") in ("packed", "w8a8") else []
    return [name for name in (*LAYER_PROJECTIONS, HEAD) if isinstance(named, list) and name in named]


def _packed_bytes(model: PlainModel, variant: Variant, name: str) -> int:
    n, k = model.sizes[name]
    element = 1 if variant.get("linear") == "w8a8" and name != HEAD else 2
    return -(-n // _BLOCK) * _BLOCK * k * element


def _count(config: Mapping[str, Any], name: str, otherwise: int | None = None) -> int:
    value = config.get(name)
    if value is None and otherwise:
        return otherwise
    if type(value) is not int or value <= 0:
        raise NotDeclaredError(f"the model's {name} is {value}")
    return value
