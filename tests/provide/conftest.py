"""The three small checkpoints, generated once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from generated_checkpoint import Generated

from rvvbench import project
from rvvbench.provide.synthetic import generate


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Generated]:
    """From the name of a model manifest to its generated checkpoint."""
    made: dict[str, Generated] = {}

    def get(name: str) -> Generated:
        if name not in made:
            manifest = yaml.safe_load((project.manifests_dir() / "models" / f"{name}.yaml").read_text())
            folder = tmp_path_factory.mktemp(name)
            made[name] = Generated(
                manifest, folder, generate(manifest["config"], manifest["synthetic"]["seed"], folder)
            )
        return made[name]

    return get
