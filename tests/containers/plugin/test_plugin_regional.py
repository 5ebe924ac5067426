"""Compiled regions: each check of the modules a test, each module in a container of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.provide.plugin import build_plugin
from rvvbench.provide.site import ensure_site
from tests.containers.plugin.bench import Bench, Checked, checks_of

pytestmark = [pytest.mark.container, pytest.mark.long]

MODULES = ("primitives_in_image", "regional_in_image", "regional_model_in_image")
# Headers made ready for reuse would lie outside the cache's folder.
ENVIRONMENT = {"TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}


@pytest.fixture(scope="module")
def site(plugin_bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin, the kernels and rvv_inductor."""
    folder = tmp_path_factory.mktemp("regional")
    inductor = build_plugin(project.root() / "kernels" / "python" / "rvv_inductor", folder)
    provision = plugin_bench.provision
    assert provision.kernels is not None
    return ensure_site([provision.plugin, provision.kernels, inductor], folder, print)


@pytest.fixture(scope="module")
def checked(plugin_bench: Bench, site: Path) -> dict[str, Checked]:
    return {
        module: Checked.of(plugin_bench.run("/checks/checks_in_image.py", module, site=site, env=ENVIRONMENT))
        for module in MODULES
    }


@pytest.mark.parametrize("check", checks_of(*MODULES))
def test_regional(checked: dict[str, Checked], check: str) -> None:
    checked[check.partition(".")[0]].hold(check)
