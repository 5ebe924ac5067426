"""The files of a synthetic checkpoint: what the manifests pin, and valid for whoever loads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from generated_checkpoint import Generated
from reference_llama import read_safetensors

from rvvbench import project
from rvvbench.errors import ManifestError
from rvvbench.provide.synthetic import dense, generate
from rvvbench.provide.synthetic.architecture import read_architecture
from rvvbench.provide.synthetic.generator import small_files
from rvvbench.provide.synthetic.tokenizer import byte_characters

MINIS = ("llama-mini", "qwen2-mini", "qwen3-mini")
MODELS = sorted(path.stem for path in (project.manifests_dir() / "models").glob("*.yaml"))
Get = Callable[[str], Generated]


@pytest.mark.parametrize("name", MINIS)
def test_the_generator_writes_what_the_manifest_pins(generated: Get, name: str) -> None:
    checkpoint = generated(name)
    written = {file: {"sha256": w.sha256, "size": w.size} for file, w in checkpoint.files.items()}
    assert written == checkpoint.manifest["synthetic"]["files"]
    assert sorted(path.name for path in checkpoint.folder.iterdir()) == sorted(written)
    assert all((checkpoint.folder / file).stat().st_size == w.size for file, w in checkpoint.files.items())


@pytest.mark.parametrize("name", MODELS)
def test_the_small_files_of_every_model_are_those_that_its_manifest_pins(name: str) -> None:
    import hashlib

    manifest = yaml.safe_load((project.manifests_dir() / "models" / f"{name}.yaml").read_text())
    files = small_files(read_architecture(manifest["config"]), manifest["config"])
    pinned = manifest["synthetic"]["files"]
    assert sorted(pinned) == sorted([*files, "model.safetensors"])
    for file, content in files.items():
        assert pinned[file] == {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


@pytest.mark.parametrize("name", MODELS)
def test_every_number_of_a_config_is_a_number(name: str) -> None:
    # YAML 1.1 reads 1e-05 as a text; a config must survive the way from YAML to JSON.
    config = yaml.safe_load((project.manifests_dir() / "models" / f"{name}.yaml").read_text())["config"]
    assert isinstance(config["rms_norm_eps"], float)
    assert config["rope_theta"] >= 10000
    assert all(isinstance(v, int) for k, v in config.items() if k.endswith(("_size", "_heads", "_layers")))


@pytest.mark.parametrize("name", MINIS)
def test_every_projection_of_a_mini_is_at_least_1024_wide_both_ways(name: str) -> None:
    arch = read_architecture(
        yaml.safe_load((project.manifests_dir() / "models" / f"{name}.yaml").read_text())["config"]
    )
    fused = [
        (arch.q_width + 2 * arch.kv_width, arch.hidden),
        (arch.hidden, arch.q_width),
        (2 * arch.intermediate, arch.hidden),
        (arch.hidden, arch.intermediate),
        (arch.vocab_size, arch.hidden),
    ]
    assert min(min(shape) for shape in fused) >= 1024
    assert arch.kv_heads < arch.heads
    assert arch.layers == 2
    assert arch.vocab_size >= 10240


@pytest.mark.parametrize("name", MINIS)
def test_the_weights_have_the_names_and_shapes_of_the_architecture(generated: Get, name: str) -> None:
    checkpoint = generated(name)
    tensors = read_safetensors(checkpoint.folder / "model.safetensors")
    arch = read_architecture(checkpoint.config)
    assert {key: tensor.shape for key, tensor in tensors.items()} == arch.tensors()
    assert ("lm_head.weight" in tensors) == (not checkpoint.config["tie_word_embeddings"])
    assert ("model.layers.0.self_attn.q_proj.bias" in tensors) == (name == "qwen2-mini")
    assert ("model.layers.1.self_attn.k_norm.weight" in tensors) == (name == "qwen3-mini")
    assert all(np.isfinite(tensor).all() for tensor in tensors.values())


def test_the_file_has_no_gap_and_its_tensors_are_aligned(generated: Get) -> None:
    raw = (generated("llama-mini").folder / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert list(header) == sorted(header)
    offsets = [entry["data_offsets"] for entry in header.values()]
    assert [begin for begin, _ in offsets] == [0, *(end for _, end in offsets[:-1])]
    assert 8 + length + offsets[-1][1] == len(raw)
    assert (8 + length) % 8 == 0


def test_the_size_of_the_pieces_changes_no_bit(generated: Get, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rvvbench.provide.synthetic import weights

    for module in (dense, weights):
        monkeypatch.setattr(module, "CHUNK_ELEMENTS", 50_000)
    checkpoint = generated("llama-mini")
    assert generate(checkpoint.config, checkpoint.seed, tmp_path) == checkpoint.files


def test_another_seed_gives_other_weights_and_the_same_tokenizer(generated: Get, tmp_path: Path) -> None:
    checkpoint = generated("llama-mini")
    other = generate(checkpoint.config, checkpoint.seed + 1, tmp_path)
    assert {name for name in other if other[name] != checkpoint.files[name]} == {"model.safetensors"}


def test_progress_ends_at_the_whole(tmp_path: Path, generated: Get) -> None:
    seen: list[tuple[int, int]] = []
    generate(generated("llama-mini").config, 1, tmp_path, lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 40_000_000


@pytest.mark.parametrize("name", MODELS)
def test_the_tokenizer_has_exactly_the_vocabulary_and_reaches_all_of_it(name: str) -> None:
    config = yaml.safe_load((project.manifests_dir() / "models" / f"{name}.yaml").read_text())["config"]
    arch = read_architecture(config)
    tokenizer = json.loads(small_files(arch, config)["tokenizer.json"])
    vocabulary, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    assert sorted(vocabulary.values()) == list(range(config["vocab_size"]))
    special = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    assert set(special.values()) == {config["bos_token_id"], config["eos_token_id"]}
    reached = {*byte_characters(), *special}
    for left, right in merges:
        assert left in reached and right in reached
        reached.add(left + right)
    assert reached == vocabulary.keys()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"vocab_size": 10241}, "multiples of 64"),
        ({"attention_bias": True}, "attention_bias"),
        ({"num_key_value_heads": 3}, "head groups"),
        ({"hidden_size": None}, "config"),
    ],
)
def test_a_config_that_cannot_be_written_is_refused(generated: Get, change: dict[str, Any], cause: str) -> None:
    with pytest.raises(ManifestError, match=cause):
        read_architecture({**generated("llama-mini").config, **change})
