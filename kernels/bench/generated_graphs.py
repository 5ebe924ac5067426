"""Run inside a runtime image of any architecture: C++ that TorchInductor generates for riscv64, to OUT.

    python3 generated_graphs.py OUT

Each graph twice: `NAME-scalar.cpp`, torch's own code for a machine without a vector ISA, and `NAME-rvv.cpp`, what it
generates for VecRVV. Nothing is compiled here: a compiler that fails stands in for one. `cases.json` says what
`generated_driver` calls them with.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

COMPILER = """#!/bin/sh
case "$*" in *--version*|*-v*) exec g++ "$@" ;; esac
exit 1
"""

sources = Path(tempfile.mkdtemp())
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(sources)
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch  # noqa: E402
import torch._inductor.config as config  # noqa: E402
import torch._inductor.cpu_vec_isa as cpu_vec_isa  # noqa: E402

F = torch.nn.functional
ROWS, HIDDEN, INTERMEDIATE, HEADS, HEAD, CONTEXT = 4, 2048, 8192, 32, 64, 1000
"""Four tokens of Llama-3.2-1B; CONTEXT ends in a tail."""


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return F.silu(x[..., :half]) * x[..., half:]


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def graphs() -> list[tuple[str, Callable[..., torch.Tensor], list[torch.Tensor]]]:
    """Name, function, arguments."""
    found: list[tuple[str, Callable[..., torch.Tensor], list[torch.Tensor]]] = []
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        made = [
            ("silu_and_mul", silu_and_mul, [(ROWS, 2 * INTERMEDIATE)]),
            ("rms_norm", rms_norm, [(ROWS, HIDDEN), (HIDDEN,)]),
            ("softmax", softmax, [(HEADS, CONTEXT)]),
            ("rope", rope, [(ROWS, HEADS, HEAD), (ROWS, 1, HEAD), (ROWS, 1, HEAD)]),
            ("gelu", gelu, [(ROWS, INTERMEDIATE)]),
            ("gelu_tanh", gelu_tanh, [(ROWS, INTERMEDIATE)]),
        ]
        found += [
            (f"{graph}_{name}", function, [torch.zeros(shape, dtype=dtype) for shape in shapes])
            for graph, function, shapes in made
        ]
    return found


def generated(function: Callable[..., torch.Tensor], arguments: list[torch.Tensor]) -> str:
    """The C++ of a graph that is one kernel."""
    before = set(sources.rglob("*.main.cpp"))
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=True, dynamic=False)(*arguments)
    except Exception as error:  # the compiler that fails
        said = str(error)
    new = [path.read_text() for path in set(sources.rglob("*.main.cpp")) - before]
    if len(new) != 1:
        raise SystemExit(f"{len(new)} kernels were generated, not one: {said[-2000:]}")
    # What follows is the binding to Python.
    return new[0].partition("// Python bindings")[0]


def pointers(source: str) -> list[str]:
    """The element types of the kernel's arguments: bf16 or fp32."""
    found = re.search(r"void\s+kernel\(([^)]*)\)", source)
    assert found is not None, "the source has a function named kernel"
    types = {"at::BFloat16": "bf16", "float": "fp32"}
    return [types[argument.replace("const", "").split("*")[0].strip()] for argument in found[1].split(",")]


def main(out: Path) -> None:
    compiler = sources / "c++"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    config.cpp.cxx = (str(compiler),)
    config.cpp.threads = 1
    torch.set_num_threads(1)
    scalar = lambda: []  # noqa: E731
    cases = []
    for name, function, arguments in graphs():
        cpu_vec_isa.valid_vec_isa_list = scalar
        sides = {"scalar": generated(function, arguments)}
        from rvv_inductor import hwprobe, vec_isa

        hwprobe.has_vector = lambda: True
        vec_isa.register()
        sides["rvv"] = generated(function, arguments)
        for side, source in sides.items():
            (out / f"{name}-{side}.cpp").write_text(source)
        elements = max(argument.numel() for argument in arguments)
        shapes = " ".join("x".join(map(str, argument.shape)) for argument in arguments)
        arguments_of = {side: f"{','.join(pointers(source))}:{elements}" for side, source in sides.items()}
        cases.append({"graph": name, "shapes": shapes, "arguments": arguments_of})
    from rvv_inductor.cache_key import sources_digest

    told = {"torch": torch.__version__, "sources": sources_digest(), "cases": cases}
    (out / "cases.json").write_text(json.dumps(told, indent=1))


main(Path(sys.argv[1]))
