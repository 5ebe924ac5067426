from __future__ import annotations

from pathlib import Path

from rvvbench import project
from rvvbench.manifest.resolve import resolve
from rvvbench.provide.checkpoint import CheckpointDir
from rvvbench.workload.provision import unlocked_files

FILES = {"config.json": ("a" * 64, 10), "model.safetensors": ("b" * 64, 20)}


def test_a_hub_checkpoint_whose_hashes_nobody_locked_is_told() -> None:
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "board")
    assert unlocked_files(resolved, CheckpointDir(Path(), FILES, "hub")) == ("config.json", "model.safetensors")


def test_a_synthetic_checkpoint_is_pinned_by_its_manifest() -> None:
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "emulated")
    assert unlocked_files(resolved, CheckpointDir(Path(), FILES, "synthetic")) == ()
