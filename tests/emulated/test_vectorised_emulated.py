"""Graphs vectorised by VecRVV on riscv64 under QEMU: compiled once at VLEN 256, right at 128, 256 and 512."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount
from rvvbench.engine.service import Engine
from rvvbench.image.recipe import load_recipe
from rvvbench.image.verify import look_up
from rvvbench.provide.plugin import build_plugin
from rvvbench.provide.site import ensure_site

from .told import told_at

pytestmark = [pytest.mark.emulated, pytest.mark.long]

GRAPHS = {
    *(
        "silu_and_mul bf16",
        "silu_and_mul fp16",
        "rms_norm bf16",
        "rms_norm fp32",
        "softmax bf16",
        "masked_softmax fp32",
    ),
    *("rope bf16", "gelu bf16", "gelu fp32", "gelu_tanh fp32", "log_of_sum fp32"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Runs the script at a VLEN, with one cache for all calls, and gives what it told."""
    folder, cache = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("cache")
    wheel = build_plugin(project.root() / "kernels" / "python" / "rvv_inductor", folder)
    with Engine(project.state_dir()) as engine:
        image = look_up(engine, load_recipe("runtime").image_name("riscv64"))
        assert image is not None, "no runtime image: rvvbench image build runtime --arch riscv64"
        spec = ContainerSpec(
            image=image.image_id,
            command=("python3", "/checks/vectorised_in_image.py"),
            env={
                "PYTHONPATH": "/rvvbench/site",
                "OMP_NUM_THREADS": "1",
                "TORCHINDUCTOR_CACHE_DIR": "/cache",
                "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
            },
            mounts=(
                Mount(ensure_site([wheel], folder / "sites", print), "/rvvbench/site"),
                Mount(Path(__file__).parent, "/checks"),
                Mount(cache, "/cache", writable=True),
            ),
            timeout_s=1800.0,
        )

        yield lambda vlen: told_at(engine, spec, vlen)


@pytest.mark.skipif(platform.machine() == "riscv64", reason="a machine has one vector length")
def test_compiled_once_right_at_every_vector_length(run: Callable[[int], dict[str, Any]]) -> None:
    cold = run(256)
    assert cold["isa"] == "rv64gcv_zicbop"
    assert set(cold["errors"]) == GRAPHS
    assert all(count >= 1 for count in cold["vectorised"].values()), cold["vectorised"]
    assert all(error <= 1 for error in cold["errors"].values()), cold["errors"]
    assert (cold["misses"], cold["hits"], cold["libraries"]) == (len(GRAPHS), 0, len(GRAPHS))
    for vlen in (128, 512):
        warm = run(vlen)
        assert (warm["misses"], warm["hits"], warm["libraries"]) == (0, len(GRAPHS), len(GRAPHS))
        assert warm["errors"] == cold["errors"], vlen
