"""Start-up where something is missing: the kernels, their library, a function of SGLang that is hooked."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.engine.container import ContainerExit, Mount
from tests.containers.plugin.bench import Bench, Checked, checks_of, without_library

pytestmark = pytest.mark.container


@pytest.fixture(scope="module")
def without_kernels(plugin_bench: Bench) -> Checked:
    ended = plugin_bench.run(
        "/checks/checks_in_image.py",
        "fallback_in_image",
        site=plugin_bench.plugin,
        env={"CHECKS_WHY": "sgl_kernel cannot be loaded: No module named 'sgl_kernel'"},
    )
    return Checked.of(ended)


@pytest.mark.parametrize("check", checks_of("fallback_in_image"))
def test_without_the_package_of_the_kernels(without_kernels: Checked, check: str) -> None:
    without_kernels.hold(check)


def test_the_package_without_its_library_is_no_kernels_either(plugin_bench: Bench, tmp_path: Path) -> None:
    chosen = [name for name in checks_of("fallback_in_image") if not name.endswith("tokens_come_out")][:3]
    ended = plugin_bench.run(
        "/checks/checks_in_image.py",
        *chosen,
        site=plugin_bench.plugin,
        mounts=(Mount(without_library(plugin_bench.kernels, tmp_path / "broken"), "/broken"),),
        env={"CHECKS_WHY": "_ops.so", "PYTHONPATH": "/broken"},
    )
    for check in chosen:
        Checked.of(ended).hold(check)


def serve(plugin_bench: Bench, *flags: str) -> ContainerExit:
    return plugin_bench.run(
        "-m", "sglang.launch_server", "--model-path", "/model", "--device", "cpu", *flags, site=plugin_bench.plugin
    )


def test_a_server_that_cannot_have_its_int8_cache_does_not_start(plugin_bench: Bench) -> None:
    ended = serve(plugin_bench, "--attention-backend", "rvv", "--kv-cache-dtype", "int8")
    assert ended.exit_code != 0
    assert "attention backend rvv is not active, torch_native is" in ended.output
    assert "--kv-cache-dtype int8 is read by the attention backend rvv only" in ended.output
    assert "No module named 'sgl_kernel'" in ended.output
    assert "Load weight begin" not in ended.output


def test_what_is_hooked_and_not_there_is_named(plugin_bench: Bench) -> None:
    checked = Checked.of(plugin_bench.run("/checks/renamed_in_image.py"))
    assert len(checked.problems) == 10, checked.output[-4000:]
    for check in checked.problems:
        checked.hold(check)
