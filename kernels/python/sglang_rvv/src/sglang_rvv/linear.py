"""Which linears of a loaded model go to the packed kernels, and the counting of every call either way.

A linear of SGLang 0.5.15 computes in its `quant_method.apply(layer, x, bias)`; each layer has a `quant_method` of its
own, so replacing it on the layer is enough and survives everything that calls `layer.forward`. The head is different:
logits are made by `LogitsProcessor._compute_lm_head` from `lm_head.weight`, tied or not, without `lm_head.forward`;
see `hooks.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod

from sglang_rvv import kernels, routing
from sglang_rvv.settings import PROJECTIONS, Settings
from sglang_rvv.upstream import IntegrationError

PACKED = "rvv_packed_weight"
"""Name of the non-persistent buffer [ceil(N/32), K, 32] that lies beside a layer's row-major weight."""

PACKABLE = (torch.bfloat16, torch.float16)
"""What the packed kernels compute in."""


class CountedLinear(UnquantizedLinearMethod):  # type: ignore[misc]
    """SGLang's own unquantised linear, counted."""

    path = "torch"

    def __init__(self, projection: str, stock: UnquantizedLinearMethod) -> None:
        super().__init__()
        self.projection = projection
        self.stock = stock

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        routing.count(self.projection, x.numel() // x.shape[-1], self.path)
        return self.compute(layer, x, bias)

    def compute(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out: torch.Tensor = self.stock.apply(layer, x, bias)
        return out


class PackedLinear(CountedLinear):
    """The same linear on the packed weight."""

    path = "packed"

    def compute(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out: torch.Tensor = kernels.linear(x, layer.rvv_packed_weight, bias, layer.weight.shape[0])
        return out


def prepare(model: torch.nn.Module, settings: Settings) -> int:
    """Route the projections of a loaded model; pack those that `settings` names. Returns the bytes of packed weights.

    Raises IntegrationError when a projection that was asked for is not in the model, or its weight is not plain BF16
    or FP16.
    """
    layers = find(model)
    missing = [name for name in settings.packed if not layers[name]]
    if missing:
        raise IntegrationError(
            f"{type(model).__name__} has no {', '.join(missing)} to pack",
            mend="leave it out of SGLANG_RVV_PROJECTIONS",
        )
    for projection, found in layers.items():
        packed = projection in settings.packed
        for name, layer in found:
            if packed:
                check_packable(name, layer)
                layer.register_buffer(PACKED, kernels.pack(layer.weight), persistent=False)
            if projection != "lm_head":
                method = PackedLinear if packed else CountedLinear
                stock = layer.quant_method
                if isinstance(stock, UnquantizedLinearMethod):
                    layer.quant_method = method(projection, stock)
    if settings.packed:
        follow_reloads(model, [layer for name in settings.packed for _, layer in layers[name]])
    return packed_bytes(model)


def find(model: Any) -> dict[str, list[tuple[str, Any]]]:
    """The layers of each projection by their names in the model: {projection: [(full name, layer)]}."""
    layers: dict[str, list[tuple[str, Any]]] = {name: [] for name in PROJECTIONS}
    for name, module in model.named_modules():
        projection = name.rpartition(".")[2]
        if projection in layers and projection != "lm_head" and isinstance(module, LinearBase):
            layers[projection].append((name, module))
    # By attribute: a tied head is the embedding, which named_modules lists under the embedding's name only.
    head = getattr(model, "lm_head", None)
    if getattr(head, "weight", None) is not None:
        layers["lm_head"].append(("lm_head", head))
    return layers


def check_packable(name: str, layer: Any) -> None:
    """Raise IntegrationError unless the layer's weight is an unquantised BF16 or FP16 matrix on the CPU."""
    weight = layer.weight
    unquantised = weight.dim() == 2 and weight.dtype in PACKABLE and weight.device.type == "cpu"
    if not unquantised:
        raise IntegrationError(
            f"{name} has a weight {tuple(weight.shape)} of {weight.dtype}; packed linears take BF16 or FP16 matrices",
            mend="load the model with dtype bfloat16 or float16, or leave the projection out of SGLANG_RVV_PROJECTIONS",
        )
    if type(layer.quant_method).__name__ not in ("UnquantizedLinearMethod", "UnquantizedEmbeddingMethod"):
        raise IntegrationError(
            f"{name} computes through {type(layer.quant_method).__name__}, which packed linears do not replace",
            upstream="sglang.srt.layers.quantization.unquant",
        )


def follow_reloads(model: Any, layers: list[Any]) -> None:
    """Pack again whenever weights are loaded into the live model; every `ModelRunner.update_weights_*` ends in
    `model.load_weights`.
    """
    load = model.load_weights

    def load_and_pack(*args: Any, **kwargs: Any) -> Any:
        result = load(*args, **kwargs)
        for layer in layers:
            layer.rvv_packed_weight.copy_(kernels.pack(layer.weight))
        return result

    model.load_weights = load_and_pack


def packed_bytes(model: torch.nn.Module) -> int:
    """Bytes of all packed weights of a model."""
    return sum(
        buffer.numel() * buffer.element_size()
        for name, buffer in model.named_buffers()
        if name.rpartition(".")[2] == PACKED
    )


def compute_lm_head(
    original: Any, processor: Any, hidden_states: torch.Tensor, lm_head: Any, embedding_bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Around `LogitsProcessor._compute_lm_head`: count, and use the packed weight of a head that has one. -> [M, N]."""
    packed = getattr(lm_head, PACKED, None)
    routing.count("lm_head", hidden_states.numel() // hidden_states.shape[-1], "torch" if packed is None else "packed")
    logits: torch.Tensor
    if packed is None:
        logits = original(processor, hidden_states, lm_head, embedding_bias)
    else:
        # As SGLang's own branch for a plain head: no bias, and the hidden states in the weight's type.
        weight = lm_head.weight
        logits = kernels.linear(hidden_states.to(weight.dtype), packed, None, weight.shape[0])
    return logits
