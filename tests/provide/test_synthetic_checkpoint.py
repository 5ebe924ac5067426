"""Synthetic checkpoints in their folder: generated once, proven at every use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from generated_checkpoint import Generated

from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.provide import file_hash, synthetic
from rvvbench.provide.checkpoint import PinnedFile, SyntheticModel, ensure_synthetic
from rvvbench.provide.file_hash import HashCache

# The smallest config that the generator takes: a test of folders needs no megabytes.
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": 1,
    "hidden_size": 256,
    "intermediate_size": 256,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 1,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vocab_size": 512,
}


@pytest.fixture
def model(tmp_path: Path) -> SyntheticModel:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    files = synthetic.generate(CONFIG, 1, scratch)
    pins = {name: PinnedFile(file.sha256, file.size) for name, file in files.items()}
    return SyntheticModel("tiny", CONFIG, synthetic.ALGORITHM, 1, pins)


def test_a_checkpoint_is_generated_with_the_files_that_are_pinned(model: SyntheticModel, tmp_path: Path) -> None:
    checkpoint = ensure_synthetic(model, tmp_path / "state" / "tiny")
    assert checkpoint.kind == "synthetic"
    assert dict(checkpoint.files) == {name: (file.sha256, file.size) for name, file in model.files.items()}
    assert sorted(path.name for path in checkpoint.path.iterdir()) == sorted(model.files)


def test_the_second_use_generates_and_reads_nothing(
    model: SyntheticModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ensure_synthetic(model, tmp_path / "state" / "tiny")
    monkeypatch.setattr(synthetic, "generate", lambda *arguments: pytest.fail("generated again"))
    monkeypatch.setattr(file_hash, "sha256_of", lambda path: pytest.fail(f"read {path} again"))
    assert ensure_synthetic(model, tmp_path / "state" / "tiny") == first


@pytest.mark.parametrize("there_already", [False, True])
def test_one_changed_digit_of_a_pin_names_the_file_both_hashes_and_the_line(
    model: SyntheticModel, tmp_path: Path, there_already: bool
) -> None:
    folder = tmp_path / "state" / "tiny"
    if there_already:
        ensure_synthetic(model, folder)
    right = model.files["model.safetensors"]
    wrong = replace(right, sha256=("0" if right.sha256[0] != "0" else "1") + right.sha256[1:])
    changed = replace(model, files={**model.files, "model.safetensors": wrong})
    with pytest.raises(ManifestError) as caught:
        ensure_synthetic(changed, folder, where=lambda name: f"models/tiny.yaml:{len(name)}")
    assert "model.safetensors" in caught.value.cause
    assert right.sha256 in caught.value.cause
    assert wrong.sha256 in caught.value.cause
    assert caught.value.where == "models/tiny.yaml:17"
    assert folder.exists() == there_already


def test_a_damaged_file_is_found_even_where_its_size_is_the_same(model: SyntheticModel, tmp_path: Path) -> None:
    checkpoint = ensure_synthetic(model, tmp_path / "state" / "tiny")
    weights = checkpoint.path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(1, 1))
    with pytest.raises(ManifestError, match=r"model\.safetensors with sha256"):
        ensure_synthetic(model, tmp_path / "state" / "tiny")


def test_a_file_too_many_and_a_file_too_few_are_named(model: SyntheticModel, tmp_path: Path) -> None:
    checkpoint = ensure_synthetic(model, tmp_path / "state" / "tiny")
    (checkpoint.path / "model-00002.safetensors").write_bytes(b"")
    with pytest.raises(ManifestError, match=r"model-00002\.safetensors .*not pinned"):
        ensure_synthetic(model, tmp_path / "state" / "tiny")
    (checkpoint.path / "model-00002.safetensors").unlink()
    (checkpoint.path / "config.json").unlink()
    with pytest.raises(ManifestError, match=r"no config\.json"):
        ensure_synthetic(model, tmp_path / "state" / "tiny")


def test_a_generation_that_stops_leaves_no_folder(
    model: SyntheticModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_synthetic(model, tmp_path / "state" / "tiny", stop)
    assert [path.name for path in (tmp_path / "state").iterdir() if path.is_dir()] == []


def test_other_algorithms_and_missing_pins_are_refused(model: SyntheticModel, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="rvvbench-synthetic/2"):
        ensure_synthetic(replace(model, algorithm="rvvbench-synthetic/2"), tmp_path / "tiny")
    with pytest.raises(ManifestError, match="no file of the synthetic checkpoint is pinned"):
        ensure_synthetic(replace(model, files={}), tmp_path / "tiny")


def test_the_hash_cache_forgets_what_changed(tmp_path: Path) -> None:
    cache, file = HashCache(tmp_path / "hashes.json"), tmp_path / "file"
    file.write_bytes(b"one")
    first = cache.sha256(file)
    assert cache.sha256(file) == first
    file.write_bytes(b"two")
    os.utime(file, ns=(5, 5))
    assert cache.sha256(file) != first


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"x": 1}'])
def test_a_damaged_hash_cache_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / "hashes.json").write_text(damage)
    (tmp_path / "file").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert HashCache(tmp_path / "hashes.json").sha256(tmp_path / "file") == expected
    assert HashCache(tmp_path / "hashes.json").sha256(tmp_path / "file") == expected


def test_llama_mini_goes_the_whole_way_from_its_manifest(generated: Callable[[str], Generated], tmp_path: Path) -> None:
    checkpoint = generated("llama-mini")
    section = checkpoint.manifest["synthetic"]
    pins = {name: PinnedFile(**file) for name, file in section["files"].items()}
    model = SyntheticModel("llama-mini", checkpoint.config, section["algorithm"], section["seed"], pins)
    assert ensure_synthetic(model, tmp_path / "llama-mini").files["model.safetensors"][1] == 44052656


def test_the_hash_cache_forgets_what_changed_and_got_its_time_back(tmp_path: Path) -> None:
    cache, file = HashCache(tmp_path / "hashes.json"), tmp_path / "file"
    file.write_bytes(b"one")
    before = file.stat()
    first = cache.sha256(file)
    deadline = time.monotonic() + 5
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of the file system ticks in milliseconds
        assert time.monotonic() < deadline
        file.write_bytes(b"two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert cache.sha256(file) != first


def test_a_hash_cache_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "hashes.json").mkdir()
    (tmp_path / "file").write_bytes(b"abc")
    with pytest.raises(EnvironmentLacks, match="RVVBENCH_HOME") as caught:
        HashCache(tmp_path / "hashes.json").sha256(tmp_path / "file")
    assert "hashes.json" in str(caught.value.where)


def test_a_home_that_is_a_file_is_told(model: SyntheticModel, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(EnvironmentLacks, match="RVVBENCH_HOME") as caught:
        ensure_synthetic(model, tmp_path / "state" / "checkpoints" / "tiny")
    assert str(tmp_path / "state") in str(caught.value.where)


def test_what_a_killed_generation_left_is_removed_by_the_next(model: SyntheticModel, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for name in (".tiny.a1b2c3_d", ".tiny.draft", ".tiny-other.a1b2c3_d"):
        (state / name).mkdir(parents=True)
        (state / name / "model.safetensors").write_bytes(b"half")
    ensure_synthetic(model, state / "tiny")
    assert sorted(path.name for path in state.iterdir() if path.is_dir()) == [".tiny-other.a1b2c3_d", "tiny"]
