"""W8A8 variants load the quantised form of what the other variants of the same run load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerSpec
from rvvbench.errors import ManifestError
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.provide.checkpoint import CheckpointDir
from rvvbench.provide.synthetic import generate
from rvvbench.target.select import Target
from rvvbench.workload import process
from rvvbench.workload.provision import Provision, w8a8_checkpoint, w8a8_pins
from rvvbench.workload.run import pins_of

PROGRESS: Any = SimpleNamespace(phase=lambda text: None, line=lambda text: None)
FILES = {"config.json": ("a" * 64, 10), "model.safetensors": ("b" * 64, 20)}
QUANTISED = {"config.json": ("c" * 64, 11), "model.safetensors": ("d" * 64, 12)}


@pytest.fixture
def resolved() -> Resolved:
    """torch-native, rvv-kernels and a W8A8 variant, of synthetic weights."""
    found = resolve(project.manifests_dir(), "llama-one-batch", "host")
    w8a8 = found.variants[1].model_copy(update={"name": "w8a8", "linear": "w8a8"})
    return replace(found, variants=[*found.variants[:2], w8a8])


def generated(resolved: Resolved, folder: Path) -> CheckpointDir:
    assert resolved.model.synthetic is not None
    folder.mkdir()
    files = generate(resolved.model.config, resolved.model.synthetic.seed, folder)
    return CheckpointDir(folder, {name: (file.sha256, file.size) for name, file in files.items()}, "synthetic")


def test_the_quantised_checkpoint_is_made_where_a_variant_computes_with_it(resolved: Resolved, tmp_path: Path) -> None:
    checkpoint = generated(resolved, tmp_path / "mini")
    assert w8a8_checkpoint(replace(resolved, variants=resolved.variants[:2]), checkpoint, PROGRESS) is None
    made, pinned = w8a8_checkpoint(resolved, checkpoint, PROGRESS), w8a8_pins(resolved)
    assert made is not None and pinned is not None
    assert dict(made.files) == {name: (file.sha256, file.size) for name, file in pinned.items()}


def test_a_pin_that_does_not_hold_is_named_with_its_line(resolved: Resolved, tmp_path: Path) -> None:
    checkpoint = generated(resolved, tmp_path / "mini")
    assert resolved.model.synthetic is not None and resolved.model.synthetic.w8a8 is not None
    plain = resolved.model.model_dump(by_alias=True)
    right = plain["synthetic"]["w8a8"]["files"]["model.safetensors"]["sha256"]
    plain["synthetic"]["w8a8"]["files"]["model.safetensors"]["sha256"] = "0" * 64
    changed = replace(resolved, model=type(resolved.model).model_validate(plain))
    with pytest.raises(ManifestError) as caught:
        w8a8_checkpoint(changed, checkpoint, PROGRESS)
    assert right in caught.value.cause and "0" * 64 in caught.value.cause
    path, line = str(caught.value.where).rsplit(":", 1)
    assert right in (project.manifests_dir().parent / path).read_text().splitlines()[int(line) - 1]


def test_the_manifest_pins_the_quantised_form_of_synthetic_weights_only(resolved: Resolved) -> None:
    assert w8a8_pins(resolved) is not None
    hub = resolved.experiment.model_copy(update={"weights": "hub"})
    assert w8a8_pins(replace(resolved, experiment=hub)) is None


def test_each_variant_is_given_its_own_checkpoint(resolved: Resolved, tmp_path: Path) -> None:
    native, kernels, w8a8 = resolved.variants
    provision = provided(tmp_path)
    source, made = provision.checkpoint, provision.w8a8
    assert [provision.checkpoint_of(variant) for variant in (native, kernels, w8a8)] == [source, source, made]
    pins = pins_of(provision)
    given = [pins.checkpoint_of(variant)["model.safetensors"] for variant in (native, kernels, w8a8)]
    assert given == ["b" * 64, "b" * 64, "d" * 64]
    with pytest.raises(ValueError, match="needs the quantised checkpoint"):
        replace(provision, w8a8=None).checkpoint_of(w8a8)


def test_each_variant_has_its_own_checkpoint_mounted(
    resolved: Resolved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted: list[Path] = []

    def run_container(engine: Any, container: ContainerSpec, *, observe: Any) -> Any:
        mounted.extend(mount.source for mount in container.mounts if mount.target == "/rvvbench/model")

    monkeypatch.setattr(process, "run_container", run_container)
    provision = replace(provided(tmp_path), sites={variant.name: tmp_path for variant in resolved.variants})
    target = Target("host", "amd64", emulated=False)
    place = process.Place(resolved, target, provision, SimpleNamespace(), PROGRESS)  # type: ignore[arg-type]
    for variant in resolved.variants:
        spec = {"kind": "one-batch", "run_id": "r"}
        process.run_process(place, variant, spec, tmp_path / variant.name, told=lambda event: None, observe=None)
    assert mounted == [tmp_path / "a", tmp_path / "a", tmp_path / "b"]


def test_a_record_pins_both_and_tells_where_no_manifest_pins_the_quantised_one(tmp_path: Path) -> None:
    provision = provided(tmp_path)
    pins = provision.pins()
    assert pins["checkpoint"] == {"kind": "hub", "files": {name: sha256 for name, (sha256, _) in FILES.items()}}
    files = {name: sha256 for name, (sha256, _) in QUANTISED.items()}
    assert pins["checkpoint_w8a8"] == {"algorithm": "rvvbench-w8a8/1", "files": files}
    assert "checkpoint_w8a8" not in replace(provision, w8a8=None).pins()
    (note,) = provision.notes
    assert "rvvbench-w8a8/1" in note and "nothing pins its files" in note
    assert replace(provision, w8a8_pinned=True).notes == replace(provision, w8a8=None).notes == []


def provided(folder: Path) -> Provision:
    """A Hub checkpoint and its quantised form; of all else only what pins and notes ask for."""
    ref = SimpleNamespace(name="i", arch="amd64", digest="d")
    image: Any = SimpleNamespace(ref=ref, reference="i", packages={}, relocked=None)
    plugin: Any = SimpleNamespace(version="1", sha256="e" * 64)
    source, made = CheckpointDir(folder / "a", FILES, "hub"), CheckpointDir(folder / "b", QUANTISED, "hub")
    return Provision(image, source, plugin, None, {}, w8a8=made)
