"""Giving compiled regions to a model that was just loaded.

A layer's `quant_method` is replaced as for the other linears (`sglang_rvv.linear`); the head, tied or not, is computed
by `linear.compute_lm_head`, which asks `Regions` first. Packed weights belong to the modules' `PackedWeight`.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod

from sglang_rvv import packed_weight
from sglang_rvv.linear import CountedLinear
from sglang_rvv.regional import compiled
from sglang_rvv.regional.adapters import adapter_of
from sglang_rvv.regional.callables import Callables, Key
from sglang_rvv.regional.gate import EXPLICIT_PACKED, HEAD, ROW_MAJOR, Call, Choice, choose
from sglang_rvv.regional.policy import RegionalPolicy
from sglang_rvv.upstream import IntegrationError

PATHS = {ROW_MAJOR: "inductor_row_major", EXPLICIT_PACKED: "inductor_packed"}
"""Names of the paths in the routing table."""

NOT_COMPILED = "not a plain linear"
"""Why a layer of another library's quantisation, or one that adapters wrap, is left as it is."""


class Regions:
    """The regions of one model."""

    def __init__(self, policy: RegionalPolicy, callables: Callables) -> None:
        self.policy = policy
        self.callables = callables
        self.compiled: list[str] = []
        self.kept: dict[str, str] = {}
        self._choices: dict[tuple[Any, ...], Choice] = {}

    def compute(
        self, projection: str, layer: Any, x: torch.Tensor, bias: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, str, str, int]:
        """`x` [..., K] times the layer's weight -> [..., N], the path, the reason and the bucket (0: none).

        No tensor where torch is to do it.
        """
        weight = layer.weight
        owner = packed_weight.owner_of(layer) if self.policy.packs else None
        packed = None if owner is None else owner.current()
        mode = ROW_MAJOR if packed is None else EXPLICIT_PACKED
        n, k = weight.shape
        rows = x.numel() // k
        choice = self.choice(projection, rows, n, k, mode, x.dtype, weight.dtype, x.device.type, bias is not None)
        if choice.bucket is None:
            return None, "torch", str(choice.reason), 0
        key = Key("bfloat16", "cpu", projection, choice.bucket, n, k, mode)
        out = self.callables.run(key, x.reshape(-1, k), weight.data if packed is None else packed)
        return out.reshape(*x.shape[:-1], n), PATHS[mode], "", choice.bucket

    def choice(
        self,
        projection: str,
        rows: int,
        n: int,
        k: int,
        mode: str,
        input_type: torch.dtype,
        weight_type: torch.dtype,
        device: str,
        biased: bool,
    ) -> Choice:
        """The gate's answer, kept: a model asks for few different calls."""
        asked = (projection, rows, n, k, mode, input_type, weight_type, device, biased)
        kept = self._choices.get(asked)
        if kept is None:
            inputs, weights = (str(dtype).removeprefix("torch.") for dtype in (input_type, weight_type))
            call = Call(projection, rows, n, k, mode, inputs, weights, device, biased)
            kept = choose(call, small_batch=self.policy.small_batch, refuses_row_major=refuses_row_major)
            self._choices[asked] = kept
        return kept

    def report(self) -> dict[str, Any]:
        """The resolved policy, the names of what is compiled and what is not and why, and the regions there are."""
        return self.policy.report() | {
            "compiled": list(self.compiled),
            "kept": dict(self.kept),
            "regions": self.callables.report(),
        }


class RegionalLinear(CountedLinear):
    """A layer that a region computes where the gate lets it."""

    def __init__(self, projection: str, stock: Any, regions: Regions) -> None:
        super().__init__(projection, stock)
        self.regions = regions

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if x.numel() == 0:
            return self.in_torch(layer, x, bias)
        out, path, reason, bucket = self.regions.compute(self.projection, layer, x, bias)
        if out is None:
            return self.in_torch(layer, x, bias, reason)
        self.count(x, path, bucket=bucket)
        return out


def prepare(model: torch.nn.Module, policy: RegionalPolicy, *, debug: bool) -> Regions:
    """Put regions into a loaded model that `linear.prepare` has prepared; nothing is compiled or packed yet.

    Raises IntegrationError for a model that is not known, or where `rvv_inductor` is not there.
    """
    from sglang_rvv.linear import is_plain_head

    linears = list(adapter_of(model).linears(model))
    install_inductor()
    regions = Regions(policy, Callables())
    compiled.add(regions.callables)
    for projection, name, layer in linears:
        if projection == HEAD:
            is_plain = is_plain_head(layer) and getattr(layer, "weight", None) is not None
        else:
            is_plain = take(layer, projection, regions)
        if not is_plain:
            regions.kept[name] = NOT_COMPILED
            continue
        regions.compiled.append(name)
        if policy.packs:
            packed_weight.own(layer, name, debug=debug)
    return regions


def take(layer: Any, projection: str, regions: Regions) -> bool:
    """Route a layer through `regions`; False where its linear is not plain, and stays."""
    stock = getattr(layer, "quant_method", None)
    if isinstance(stock, CountedLinear):
        stock = stock.stock
    if hasattr(layer, "set_lora") or type(stock) is not UnquantizedLinearMethod:
        return False
    layer.quant_method = RegionalLinear(projection, stock, regions)
    return True


def install_inductor() -> None:
    """The lowerings, in this process. Raises IntegrationError."""
    try:
        from rvv_inductor.install import install
    except ImportError as error:
        raise IntegrationError(
            f"regional compilation needs rvv_inductor, which cannot be imported: {error}",
            mend="install its wheel beside this one",
        ) from error
    install()


def refuses_row_major(m: int, n: int, k: int) -> str | None:
    """Why Inductor would not lower a product of BF16 matrices to the microkernel."""
    from rvv_inductor.gate import Product, refusal

    reason: str | None = refusal(Product(m, n, k))
    return reason
