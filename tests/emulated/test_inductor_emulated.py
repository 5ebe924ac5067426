"""Lowered linears on riscv64 under QEMU: compiled once at VLEN 256, right at 128, 256 and 512. Six compilations."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount
from rvvbench.engine.service import Engine
from rvvbench.manifest.resolve import resolve
from rvvbench.progress import Silent
from rvvbench.provide.plugin import build_plugin
from rvvbench.provide.site import ensure_site
from rvvbench.target.select import select
from rvvbench.workload.provision import provide

from .told import told_at

pytestmark = [pytest.mark.emulated, pytest.mark.long]

EQUAL = {f"{mode} {m}": True for m in (1, 4, 16) for mode in ("packed", "row_major")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Gives a function that runs the script at a VLEN, with one cache for all calls, and gives what it told."""
    folder = tmp_path_factory.mktemp("inductor")
    cache = tmp_path_factory.mktemp("cache")
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "emulated", variants=["rvv-kernels"])
    target = select("emulated", machine=platform.machine(), has_vector=False)
    with Engine(project.state_dir()) as engine:
        provision = provide(resolved, target, engine, state_dir=project.state_dir(), progress=Silent())
        assert provision.kernels is not None
        inductor = build_plugin(project.root() / "kernels" / "python" / "rvv_inductor", folder)
        site = ensure_site([provision.kernels, inductor], folder, print)
        spec = ContainerSpec(
            image=provision.image.reference,
            command=("python3", "/checks/inductor_in_image.py"),
            env={
                "OMP_NUM_THREADS": "1",
                "TORCHINDUCTOR_CACHE_DIR": "/cache",
                "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
            },
            mounts=(
                Mount(site, "/rvvbench/site"),
                Mount(Path(__file__).parent, "/checks"),
                Mount(cache, "/cache", writable=True),
            ),
            timeout_s=1800.0,
        )

        yield lambda vlen: told_at(engine, spec, vlen, "zfh", "zvfh")


def test_compiled_once_right_at_every_vector_length(run: Any) -> None:
    cold = run(256)
    assert cold["vlen_bits"] == 256
    assert cold["equal"] == EQUAL
    assert cold["lowered"] == {"packed": 3, "row_major": 3}
    for vlen in (128, 512):
        told = run(vlen)
        assert told["vlen_bits"] == vlen
        assert told["equal"] == EQUAL
