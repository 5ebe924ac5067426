"""The files of a W8A8 checkpoint: what the manifests pin, and what SGLang loads by these names."""

from __future__ import annotations

import hashlib
import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_checkpoint import Generated
from numpy.typing import NDArray
from reference_llama import read_safetensors

from rvvbench import project
from rvvbench.errors import RvvbenchError
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import Model
from rvvbench.provide import safetensors
from rvvbench.provide.quantise import quantise, source
from rvvbench.provide.quantise.__main__ import main
from rvvbench.provide.quantise.checkpoint import config_file, layout
from rvvbench.provide.safetensors import StoredTensor, Tensor, stored_tensors
from rvvbench.provide.synthetic.architecture import read_architecture

MODELS = sorted(path.stem for path in (project.manifests_dir() / "models").glob("*.yaml"))
MINIS = ("llama-mini", "qwen2-mini", "qwen3-mini")
NUMBERS = {"I8": "<i1", "F32": "<f4", "BF16": "<u2", "F16": "<f2"}
Get = Callable[[str], Generated]
Change = Callable[[dict[str, Any]], None]


def numbers(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of a file; BF16 as its bit patterns."""
    raw = path.read_bytes()
    return {
        name: np.frombuffer(raw[one.offset : one.offset + one.tensor.bytes], NUMBERS[one.tensor.dtype]).reshape(
            one.tensor.shape
        )
        for name, one in stored_tensors(path).items()
    }


def is_linear(name: str) -> bool:
    return name.startswith("model.layers.") and "_proj.weight" in name


@pytest.fixture(scope="module")
def quantised(generated: Get, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(f"{name}-w8a8")
            quantise(generated(name).folder, made[name])
        return made[name]

    return get


def small(folder: Path, dtype: str = "F16", change: Change | None = None, shards: int = 1) -> Path:
    """A checkpoint of one layer with random weights; `change` alters its config.json."""
    generator = np.random.default_rng(5)
    shapes = dict.fromkeys(source.linear_names({"num_hidden_layers": 1}), (8, 4))
    shapes |= {"model.embed_tokens.weight": (16, 4), "model.norm.weight": (4,), "lm_head.weight": (16, 4)}
    names = sorted(shapes)
    config: dict[str, Any] = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 1, "rms_norm_eps": 1e-06}
    if change is not None:
        change(config)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text('{"any":  "text"}')
    (folder / "notes.txt").write_text("no part of a checkpoint")
    (folder / "model.safetensors.index.json").write_text("{}")
    content = {name: generator.standard_normal(shapes[name]).astype(np.float16).tobytes() for name in names}
    for shard in range(shards):
        those = {name: Tensor(dtype, shapes[name]) for name in names[shard::shards]}
        safetensors.write(folder / f"model-{shard + 1}.safetensors", those, lambda name: [content[name]])
    return folder


def out(tmp_path: Path, name: str = "out") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", MINIS)
def test_the_quantiser_writes_what_the_manifest_pins(generated: Get, quantised: Any, name: str) -> None:
    model = load_manifest(project.manifests_dir(), "models", name, Model)[0]
    assert model.synthetic.w8a8.algorithm == "rvvbench-w8a8/1"
    assert sorted(path.name for path in quantised(name).iterdir()) == sorted(model.synthetic.w8a8.files)
    for file, pin in model.synthetic.w8a8.files.items():
        content = (quantised(name) / file).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (pin.sha256, pin.size)


@pytest.mark.parametrize("name", MODELS)
def test_what_every_manifest_pins_fits_its_config(name: str) -> None:
    """Without the weights themselves: the small files, and how long the big one is."""
    model = load_manifest(project.manifests_dir(), "models", name, Model)[0]
    pinned = dict(model.synthetic.w8a8.files)
    config, weights = pinned.pop("config.json"), pinned.pop("model.safetensors")
    content = config_file(model.config)
    assert (config.sha256, config.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert pinned.items() <= model.synthetic.files.items()
    assert pinned.keys() == model.synthetic.files.keys() - {"config.json", "model.safetensors"}
    shapes = read_architecture(model.config).tensors()
    stored = {name: StoredTensor(Tensor("BF16", shape), Path(), 0) for name, shape in shapes.items()}
    tensors = layout(source.Source(Path(), model.config, stored, ()))
    assert weights.size == len(safetensors.header(tensors)) + sum(tensor.bytes for tensor in tensors.values())


@pytest.mark.parametrize("name", MINIS)
def test_linears_become_codes_with_scales_and_everything_else_stays(generated: Get, quantised: Any, name: str) -> None:
    before = numbers(generated(name).folder / "model.safetensors")
    after = numbers(quantised(name) / "model.safetensors")
    assert list(after) == sorted(after)
    linears = [tensor for tensor in before if is_linear(tensor)]
    assert len(linears) == 2 * 7
    assert after.keys() == before.keys() | {f"{linear}_scale" for linear in linears}
    for tensor in before:
        if tensor in linears:
            assert (after[tensor].dtype, after[tensor].shape) == (np.int8, before[tensor].shape)
            scale = after[f"{tensor}_scale"]
            assert (scale.dtype, scale.shape) == (np.float32, (before[tensor].shape[0], 1))
        else:
            np.testing.assert_array_equal(after[tensor], before[tensor])


@pytest.mark.parametrize("name", MINIS)
def test_codes_times_scales_are_the_weights_within_half_a_scale(generated: Get, quantised: Any, name: str) -> None:
    before = read_safetensors(generated(name).folder / "model.safetensors")
    after = numbers(quantised(name) / "model.safetensors")
    for tensor, weights in before.items():
        if is_linear(tensor):
            codes, scales = after[tensor].astype(np.float64), after[f"{tensor}_scale"].astype(np.float64)
            # Products of 24 and 7 bits and their differences from 8 bits are exact in float64.
            assert (np.abs(weights - scales * codes) <= scales / 2).all()
            assert (np.abs(codes).max(axis=1) == 127).all()


@pytest.mark.parametrize("name", MINIS)
def test_the_config_says_how_the_weights_are_to_be_read_and_nothing_else_new(
    generated: Get, quantised: Any, name: str
) -> None:
    config = json.loads((quantised(name) / "config.json").read_text())
    assert config.pop("quantization_config") == {"quant_method": "w8a8_int8", "algorithm": "rvvbench-w8a8/1"}
    assert config == json.loads((generated(name).folder / "config.json").read_text())


def test_two_runs_write_the_same_bytes_and_so_do_pieces_of_another_size(
    generated: Get, quantised: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = generated("llama-mini").folder
    again, pieces = quantise(folder, out(tmp_path)), []
    monkeypatch.setattr(source, "PIECE_ELEMENTS", 50_000)
    assert quantise(folder, out(tmp_path, "pieces"), lambda done, total: pieces.append((done, total))) == again
    assert len(pieces) > 500
    assert pieces == sorted(pieces) and pieces[-1][0] == pieces[-1][1]
    for path in quantised("llama-mini").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_less_than_one_tensor_is_in_memory(generated: Get, tmp_path: Path) -> None:
    folder, target = generated("qwen2-mini").folder, out(tmp_path)
    largest = max(one.tensor.bytes for one in stored_tensors(folder / "model.safetensors").values())
    tracemalloc.start()
    try:
        quantise(folder, target)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert largest > 20_000_000
    assert peak < largest / 2


def test_weights_in_several_files_become_one_and_only_files_of_the_checkpoint_come_along(tmp_path: Path) -> None:
    one, several = small(tmp_path / "one"), small(tmp_path / "several", shards=3)
    written = quantise(one, out(tmp_path, "of-one"))
    assert quantise(several, out(tmp_path, "of-several")) == written
    assert sorted(written) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert (tmp_path / "of-one" / "tokenizer.json").read_text() == '{"any":  "text"}'


def test_fp16_weights_are_quantised_as_they_are(tmp_path: Path) -> None:
    before = numbers(small(tmp_path / "from") / "model-1.safetensors")
    quantise(tmp_path / "from", out(tmp_path))
    after = numbers(tmp_path / "out" / "model.safetensors")
    assert after["lm_head.weight"].dtype == np.float16
    for tensor, weights in before.items():
        if is_linear(tensor):
            scales = (np.abs(weights.astype(np.float32)).max(axis=1) / np.float32(127))[:, None]
            np.testing.assert_array_equal(after[f"{tensor}_scale"], scales)
            np.testing.assert_array_equal(after[tensor], np.rint(weights.astype(np.float64) / scales))


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda config: config.update(architectures=["MixtralForCausalLM"]), "MixtralForCausalLM"),
        (lambda config: config.update(num_hidden_layers=2), "no model.layers.1.self_attn.q_proj.weight"),
        (lambda config: config.update(quantization_config={"quant_method": "fp8"}), "quantised already"),
        (lambda config: config.clear(), "no config.json that says"),
    ],
)
def test_a_checkpoint_that_cannot_be_quantised_is_refused(tmp_path: Path, change: Change, cause: str) -> None:
    with pytest.raises(RvvbenchError, match=cause):
        quantise(small(tmp_path / "from", change=change), out(tmp_path))


def test_weights_that_are_not_bf16_or_fp16_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RvvbenchError, match=r"is I16 \[8, 4\], not a matrix of BF16 or F16"):
        quantise(small(tmp_path / "from", dtype="I16"), out(tmp_path))


def test_a_name_that_is_in_two_files_is_refused(tmp_path: Path) -> None:
    shutil.copy(small(tmp_path / "from") / "model-1.safetensors", tmp_path / "from" / "model-2.safetensors")
    with pytest.raises(RvvbenchError, match=r"lm_head\.weight is also in model-1\.safetensors"):
        quantise(tmp_path / "from", out(tmp_path))


def test_a_weight_that_is_not_finite_is_named(tmp_path: Path) -> None:
    path = small(tmp_path / "from") / "model-1.safetensors"
    stored = stored_tensors(path)["model.layers.0.mlp.up_proj.weight"]
    content = bytearray(path.read_bytes())
    content[stored.offset + 8 * 3 : stored.offset + 8 * 3 + 2] = np.float16(np.inf).tobytes()
    path.write_bytes(content)
    with pytest.raises(RvvbenchError, match="row 3 has a number that is not finite") as caught:
        quantise(tmp_path / "from", out(tmp_path))
    assert "mlp.up_proj.weight" in str(caught.value.where)


@pytest.mark.parametrize("kept", [0, 4, 12, 500, -1])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, kept: int) -> None:
    path = small(tmp_path / "from") / "model-1.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RvvbenchError, match=r"model-1\.safetensors has"):
        quantise(tmp_path / "from", out(tmp_path))


def test_the_printed_pins_are_those_of_the_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = project.manifests_dir() / "models" / "llama-mini.yaml"
    main([str(manifest), str(tmp_path / "new")])
    printed = capsys.readouterr().out
    assert printed in manifest.read_text()
    assert sorted(path.name for path in (tmp_path / "new").iterdir())[-1] == "tokenizer_config.json"
