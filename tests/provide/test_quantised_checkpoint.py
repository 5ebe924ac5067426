"""W8A8 checkpoints in their folder: quantised once, proven at every use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rvvbench.errors import ManifestError, RvvbenchError
from rvvbench.provide import file_hash, quantise, safetensors
from rvvbench.provide.checkpoint import CheckpointDir, PinnedFile, ensure_w8a8
from rvvbench.provide.file_hash import sha256_of
from rvvbench.provide.quantise.source import linear_names
from rvvbench.provide.safetensors import Tensor

Make = Callable[..., CheckpointDir]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A verified checkpoint of one layer, its weights drawn from a seed."""

    def checkpoint(seed: int = 1, name: str = "tiny-hub-0123456789ab") -> CheckpointDir:
        folder = tmp_path / "checkpoints" / name
        folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(seed)
        config: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1}
        (folder / "config.json").write_text(json.dumps(config))
        tensors = {weight: Tensor("F16", (16, 8)) for weight in linear_names(config)}
        safetensors.write(
            folder / "model.safetensors",
            tensors,
            lambda _: [generator.standard_normal((16, 8)).astype(np.float16).tobytes()],
        )
        files = {path.name: (sha256_of(path), path.stat().st_size) for path in folder.iterdir()}
        return CheckpointDir(folder, files, "hub")

    return checkpoint


def pins(checkpoint: CheckpointDir) -> dict[str, PinnedFile]:
    return {name: PinnedFile(*file) for name, file in checkpoint.files.items()}


def folders(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "checkpoints").iterdir() if path.is_dir())


def test_a_checkpoint_is_quantised_beside_its_source(make: Make, tmp_path: Path) -> None:
    source = make()
    made = ensure_w8a8(source)
    assert made.kind == source.kind
    assert made.path.parent == source.path.parent
    assert made.path.name.startswith("tiny-hub-0123456789ab-w8a8-")
    assert dict(made.files) == {p.name: (sha256_of(p), p.stat().st_size) for p in made.path.iterdir()}
    assert made.files["model.safetensors"] != source.files["model.safetensors"]
    receipt = json.loads((made.path.parent / f"{made.path.name}.receipt.json").read_text())
    assert (receipt["algorithm"], receipt["source"]) == ("rvvbench-w8a8/1", source.sha256s)


def test_the_second_use_quantises_and_reads_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make()
    first = ensure_w8a8(source)
    monkeypatch.setattr(quantise, "quantise", lambda *arguments: pytest.fail("quantised again"))
    monkeypatch.setattr(file_hash, "sha256_of", lambda path: pytest.fail(f"read {path} again"))
    assert ensure_w8a8(source, pins(first)) == first


def test_another_source_is_another_folder(make: Make, tmp_path: Path) -> None:
    first = ensure_w8a8(make(seed=1))
    second = ensure_w8a8(make(seed=2))
    assert first.path != second.path
    assert first.files["config.json"] == second.files["config.json"]
    assert first.files["model.safetensors"] != second.files["model.safetensors"]


@pytest.mark.parametrize("there_already", [False, True])
def test_one_changed_digit_of_a_pin_names_the_file_both_hashes_and_the_line(
    make: Make, tmp_path: Path, there_already: bool
) -> None:
    pinned = pins(ensure_w8a8(make()))
    right = pinned["model.safetensors"]
    wrong = replace(right, sha256=("0" if right.sha256[0] != "0" else "1") + right.sha256[1:])
    changed = {**pinned, "model.safetensors": wrong}
    source = make() if there_already else make(name="another")
    before = folders(tmp_path)
    with pytest.raises(ManifestError) as caught:
        ensure_w8a8(source, changed, where=lambda name: f"models/tiny.yaml:{len(name)}")
    assert "model.safetensors" in caught.value.cause
    assert right.sha256 in caught.value.cause
    assert wrong.sha256 in caught.value.cause
    assert caught.value.where == "models/tiny.yaml:17"
    assert folders(tmp_path) == before


@pytest.mark.parametrize("pinned", [False, True])
def test_a_damaged_file_is_found_even_where_its_size_is_the_same(make: Make, pinned: bool) -> None:
    source = make()
    made = ensure_w8a8(source)
    weights = made.path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(1, 1))
    with pytest.raises(RvvbenchError, match=r"model\.safetensors with sha256 .*as it was quantised") as caught:
        ensure_w8a8(source, pins(made) if pinned else None)
    assert f"remove {made.path}" in str(caught.value.mend)


def test_a_file_too_many_and_a_file_too_few_are_named(make: Make) -> None:
    source = make()
    made = ensure_w8a8(source)
    (made.path / "model-2.safetensors").write_bytes(b"")
    with pytest.raises(RvvbenchError, match=r"model-2\.safetensors"):
        ensure_w8a8(source)
    (made.path / "model-2.safetensors").unlink()
    (made.path / "config.json").unlink()
    with pytest.raises(RvvbenchError, match=r"no config\.json"):
        ensure_w8a8(source)


def test_a_folder_without_its_receipt_or_with_that_of_another_source_is_not_taken(make: Make) -> None:
    source = make()
    made = ensure_w8a8(source)
    receipt = made.path.parent / f"{made.path.name}.receipt.json"
    content = json.loads(receipt.read_text())
    receipt.write_text(json.dumps({**content, "source": {"model.safetensors": "0" * 64}}))
    with pytest.raises(RvvbenchError, match=r"holds algorithm rvvbench-w8a8/1, source \{'model\.safetensors': '000"):
        ensure_w8a8(source)
    receipt.unlink()
    with pytest.raises(RvvbenchError, match="nothing says what was quantised"):
        ensure_w8a8(source)


def test_a_quantisation_that_stops_leaves_no_folder(make: Make, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    source = make()
    with pytest.raises(KeyboardInterrupt):
        ensure_w8a8(source, progress=stop)
    assert folders(tmp_path) == [source.path.name]
