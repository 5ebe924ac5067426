"""Run inside the riscv64 image: graphs that TorchInductor vectorises with VecRVV against float64; one line of JSON.

Rows of 250 end in a tail that fills no vector. References are computed by torch's eager operators in float64.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import torch
from rvv_inductor.install import install
from torch._dynamo.utils import counters
from torch._inductor import metrics

Graph = Callable[..., torch.Tensor]
F = torch.nn.functional
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
# Of the largest magnitude of a result: half a unit of the type's last place, doubled for what is rounded in between.
TOLERANCE = {BF16: 2.0**-8, FP16: 2.0**-11, FP32: 2.0**-20}


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return F.silu(x[..., :half]) * x[..., half:]


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (wide * weight).to(x.dtype)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def masked_softmax(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.where(keep, x, float("-inf")), -1)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    rotated = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + rotated * sin


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def log_of_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.log(1 + torch.exp(x)).clamp_min(0.125)


def cases() -> list[tuple[str, Graph, tuple[torch.Tensor, ...]]]:
    """Name, function, arguments."""
    generator = torch.Generator().manual_seed(0)

    def made(*shape: int, of: torch.dtype = BF16) -> torch.Tensor:
        return (3 * torch.randn(*shape, generator=generator)).to(of)

    angle = torch.randn(4, 1, 64, generator=generator)
    keep = torch.rand(4, 250, generator=generator) > 0.3
    return [
        ("silu_and_mul bf16", silu_and_mul, (made(4, 500),)),
        ("silu_and_mul fp16", silu_and_mul, (made(4, 512, of=FP16),)),
        ("rms_norm bf16", rms_norm, (made(4, 256), made(256))),
        ("rms_norm fp32", rms_norm, (made(4, 250, of=FP32), made(250, of=FP32))),
        ("softmax bf16", softmax, (made(4, 250),)),
        ("masked_softmax fp32", masked_softmax, (made(4, 250, of=FP32), keep)),
        ("rope bf16", rope, (made(4, 8, 64), angle.cos().to(BF16), angle.sin().to(BF16))),
        ("gelu bf16", gelu, (made(4, 250),)),
        ("gelu fp32", gelu, (made(4, 250, of=FP32),)),
        ("gelu_tanh fp32", gelu_tanh, (made(4, 256, of=FP32),)),
        ("log_of_sum fp32", log_of_sum, (made(4, 250, of=FP32),)),
    ]


def main() -> None:
    installed = install()
    chosen = os.environ.get("VECTORISED_ONLY", "")
    errors, vectorised = {}, {}
    for name, graph, arguments in cases():
        if chosen not in name:
            continue
        exact = graph(*(x.double() if x.is_floating_point() else x for x in arguments))
        torch._dynamo.reset()
        metrics.reset()
        with torch.no_grad():
            got = torch.compile(graph, fullgraph=True, dynamic=False)(*arguments)
        scale = exact.abs().max().item() * TOLERANCE[got.dtype]
        errors[name] = (got.double() - exact).abs().max().item() / scale
        vectorised[name] = metrics.generated_cpp_vec_kernel_count
    told = {
        "isa": installed.isa,
        "tag": installed.cache_key_tag,
        "errors": errors,
        "vectorised": vectorised,
        "misses": counters["inductor"]["fxgraph_cache_miss"],
        "hits": counters["inductor"]["fxgraph_cache_hit"],
        "libraries": len(list(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("*/*.main.so"))),
    }
    print(f"\nTOLD {json.dumps(told)}", flush=True)


main()
