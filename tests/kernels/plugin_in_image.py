# ruff: noqa: E402 - SGLang cannot be imported before the plugin's hook is there
"""Run inside the runtime image, with `sgl_kernel` and `sglang_rvv` on the path: a layer's way to a packed linear."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import sglang_rvv.importing
import torch

# What sglang_rvv.pth does where the package is installed.
sglang_rvv.importing.install()

from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang_rvv import kernels
from sglang_rvv.linear import PACKED, PackedLinear, check_packable
from sglang_rvv.upstream import IntegrationError


def layer_of(dtype: torch.dtype, *shape: int) -> Any:
    return SimpleNamespace(weight=torch.randn(*shape).to(dtype), quant_method=UnquantizedLinearMethod())


def refusal(layer: Any) -> str:
    try:
        check_packable("model.layers.0.mlp.down_proj", layer)
    except IntegrationError as error:
        return str(error)
    return ""


def main() -> None:
    kernels.load()
    torch.manual_seed(0)
    for dtype in (torch.bfloat16, torch.float16):
        layer = layer_of(dtype, 70, 96)
        assert not refusal(layer), refusal(layer)
        setattr(layer, PACKED, kernels.pack(layer.weight))
        rows = torch.randn(3, 96).to(dtype)
        out = PackedLinear("down_proj", layer.quant_method).apply(layer, rows)
        exact = rows.double() @ layer.weight.double().T
        assert out.dtype == dtype and out.shape == (3, 70)
        assert (out.double() - exact).abs().max() <= 2.0**-8 * exact.abs().max()
    for dtype, shape in ((torch.float32, (70, 96)), (torch.bfloat16, (70, 96, 1))):
        said = refusal(layer_of(dtype, *shape))
        assert "packed linears take BF16 or FP16 matrices" in said and "down_proj" in said, said
    other = layer_of(torch.float16, 70, 96)
    other.quant_method = SimpleNamespace()
    assert "SimpleNamespace" in refusal(other)
    print("as they should be")


main()
