"""The headers of rvv_inductor, compiled by both compilers as TorchInductor does it, at every vector length."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from rvvbench.kernel_model.correctness import VECTOR_LENGTHS, Machine, Run
from rvvbench.kernel_model.execute import execute
from rvvbench.provide.kernels import Build, Compiler, build_kernel_program

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(
        platform.machine() == "riscv64", reason="cross-compiling needs a toolchain image for this machine"
    ),
]

# Of elementary.h, whose comments say where they come from; division and root are correctly rounded.
WORST_ULP = {
    **{"exp": 1.02, "exp_u20": 2.27, "fexp_u20": 2.27, "log": 0.87, "tanh": 2.62, "erf": 1.30, "rsqrt": 1.5},
    **{"sqrt": 0.5, "reciprocal": 0.5, "neg": 0, "abs": 0, "floor": 0, "ceil": 0, "trunc": 0, "round": 0},
}


@pytest.fixture(scope="module", params=["clang", pytest.param("gcc", marks=pytest.mark.long)])
def program(
    request: pytest.FixtureRequest, build_of: Callable[[str], Build], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    compiler: Compiler = request.param
    return build_kernel_program("inductor", build_of("riscv64"), print, compiler, tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("vlen", VECTOR_LENGTHS)
def test_every_function_is_within_its_bound_with_agnostic_tails_of_ones(program: Path, vlen: int) -> None:
    cpu = f"rv64,v=true,vlen={vlen},rvv_ta_all_1s=true,rvv_ma_all_1s=true"
    ended = execute(Run("clang", Machine(f"VLEN {vlen}", cpu, vlen, False), program), ())
    assert ended.exit_code == 0, ended.errors[-4000:]
    said = json.loads(ended.output)
    assert said["vlen_bits"] == vlen
    assert said["failures"] == 0 and said["cases"] > 1_000_000
    assert set(said["worst_ulp"]) == set(WORST_ULP)
    for name, bound in WORST_ULP.items():
        assert said["worst_ulp"][name] <= bound, name
