"""Run inside the riscv64 image: lowered linears against the operators of the kernels, bit by bit; one line of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import sgl_kernel
import torch
from rvv_inductor.install import install
from torch._dynamo.utils import counters

N, K = 1056, 1024


def main() -> None:
    install()
    ops = torch.ops.rvv_inductor
    torch.manual_seed(0)
    weight = torch.randn(N, K).bfloat16()
    packed = ops.rvv_pack_bf16_weight(weight)

    def explicit(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return ops.rvv_packed_bf16_linear(x, w, N)

    def row_major(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, w)

    equal = {}
    for m in (1, 4, 16):
        x = torch.randn(m, K).bfloat16()
        with torch.no_grad():
            torch._dynamo.reset()
            out = torch.compile(explicit, fullgraph=True, dynamic=False)(x, packed)
            equal[f"packed {m}"] = torch.equal(out, explicit(x, packed))
            torch._dynamo.reset()
            out = torch.compile(row_major, fullgraph=True, dynamic=False)(x, weight)
            equal[f"row_major {m}"] = torch.equal(out, torch.ops.sgl_kernel.linear_rowmajor(x, weight, None))
    told = {
        "vlen_bits": sgl_kernel.describe()["vlen_bits"],
        "equal": equal,
        "lowered": dict(counters["rvv_inductor"]),
        "misses": counters["inductor"]["fxgraph_cache_miss"],
        "libraries": len(list(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).glob("*/*.main.so"))),
    }
    print(f"\nTOLD {json.dumps(told)}", flush=True)


main()
