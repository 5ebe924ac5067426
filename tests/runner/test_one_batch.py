"""Whole measured processes on toy models, wherever SGLang can be imported (a runtime image, a virtual environment).

The plugin is put on a site path as a mounted wheel is in the container; the kernels are the double of its tests.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if not all(map(importlib.util.find_spec, ("torch", "sglang", "transformers"))):
    pytest.skip("needs SGLang", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "kernels" / "python" / "sglang_rvv" / "src"
DOUBLE = ROOT / "tests" / "sglang_rvv" / "double"
ALL = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"]
VOCABULARY = 1000  # neither it nor the sums of heads are multiples of 32 in every projection


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """Random two-layer checkpoints by name, made once: a tied Llama, and an untied Qwen2 with biases."""
    import torch
    import transformers

    common = {
        "hidden_size": 128, "intermediate_size": 200, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 1, "vocab_size": VOCABULARY, "max_position_embeddings": 256, "torch_dtype": "bfloat16",
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    configs = {
        "llama": transformers.LlamaConfig(**common, head_dim=20, tie_word_embeddings=True),
        "qwen2": transformers.Qwen2Config(**common, tie_word_embeddings=False),
    }

    @functools.cache
    def make(name):
        from tokenizers import Tokenizer, models

        folder = tmp_path_factory.mktemp(name)
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(configs[name]).to(torch.bfloat16)
        with torch.no_grad():
            for weight in model.parameters():
                weight.normal_(0, 0.1)
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({f"t{index}": index for index in range(VOCABULARY)}, unk_token="t0"))
        transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="t2").save_pretrained(folder)
        return folder

    return make


class Site:
    """A site folder as the harness mounts one: the plugin with metadata and .pth, perhaps the double of the kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(PLUGIN, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        metadata = folder / "sglang_rvv-0.1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang_rvv\nVersion: 0.1.0\n")
        (metadata / "entry_points.txt").write_text("[sglang.srt.platforms]\nrvv = sglang_rvv.platform:activate\n")
        (folder / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(folder)!r})\n")

    def add_kernels(self) -> str:
        """The double's SHA-256."""
        shutil.copytree(DOUBLE, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "sgl_kernel" / "double.so").write_bytes(b"double")
        return hashlib.sha256(b"double").hexdigest()


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


@pytest.fixture
def run(document, site, tmp_path):
    """Run a spec; (exit code, events by name, the log)."""

    def start(model: Path, expect: dict[str, Any] | None = None, **variant: Any):
        events = tmp_path / "events.jsonl"
        events.unlink(missing_ok=True)
        document.update(
            model_path=str(model),
            output_len=5,
            batch_size=2,
            input_ids=[[7 * i % VOCABULARY for i in range(16)], [11 * i % VOCABULARY for i in range(16)]],
            warmup_input_ids=[[3] * 16, [5] * 16],
            events_path=str(events),
        )
        document["expect"].update(
            machine=os.uname().machine,
            packages={"sglang": "0.5.15"},
            checkpoint_files={
                path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in model.iterdir() if path.is_file()
            },
            vlen=None,
        )
        document["expect"].update(expect or {})
        document["variant"].update(variant)
        (tmp_path / "spec.json").write_text(json.dumps(document))
        path = ":".join(filter(None, (str(site.folder), str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-m", "rvvbench.runner", "one-batch", str(tmp_path / "spec.json")],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        found: dict[str, list[dict[str, Any]]] = {}
        for line in events.read_text().splitlines():
            event = json.loads(line)
            found.setdefault(event["event"], []).append(event)
        return done.returncode, found, done.stderr

    return start


def tokens(events):
    return [one["token_ids"] for one in events["prefill"] + events["decode"]]


@pytest.mark.parametrize(("model", "projections"), [("llama", ALL), ("qwen2", ALL), ("qwen2", ["qkv_proj", "lm_head"])])
def test_packed_linears_choose_the_tokens_that_torch_chooses(toys, run, site, document, model, projections):
    code, torch_events, log = run(toys(model))
    assert code == 0, log
    document["expect"]["kernels_sha256"] = site.add_kernels()
    code, packed_events, log = run(toys(model), linear="packed", projections=projections)
    assert code == 0, log
    assert tokens(packed_events) == tokens(torch_events)
    assert len(tokens(packed_events)) == 5
    [proof] = packed_events["attestation"]
    assert proof["library_sha256"] == document["expect"]["kernels_sha256"]
    layers = {"lm_head": 1}
    expected = {
        (name, m, "packed" if name in projections else "torch"): calls * layers.get(name, 2)
        for name in ALL
        for m, calls in (((2, 5),) if name == "lm_head" else ((32, 1), (2, 4)))
    }
    linears = [route for route in proof["routing"] if route["projection"] in ALL]
    assert {(r["projection"], r["m"], r["path"]): r["calls"] for r in linears} == expected
    packed_calls = sum(calls for (_, _, path), calls in expected.items() if path == "packed")
    assert proof["ops"] == {"weight_packed_linear_out": {"kernel": "double", "calls": packed_calls}}


def test_events_come_in_the_order_of_the_run_and_times_never_overlap(toys, run):
    code, events, log = run(toys("llama"))
    assert code == 0, log
    assert [len(events[name]) for name in ("prefill", "decode", "measured_end", "process_end")] == [1, 4, 1, 1]
    passes = events["prefill"] + events["decode"]
    times = [t for one in passes for t in (one["start_ns"], one["end_ns"])]
    bounds = [events["measured_start"][0]["t_ns"], *times, events["measured_end"][0]["t_ns"]]
    assert bounds == sorted(bounds)
    assert events["prefill"][0]["input_tokens"] == 32
    assert all(len(one["logprobs"]) == 2 and max(one["logprobs"]) < 0 <= min(one["top2_margin"]) for one in passes)
    assert events["environment"][0]["platform_class"] == "sglang_rvv.platform.RvvPlatform"


def test_a_wrong_checkpoint_ends_the_run_before_anything_is_loaded(toys, run, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(toys("llama"), model)
    with (model / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    expected = {"model.safetensors": hashlib.sha256((toys("llama") / "model.safetensors").read_bytes()).hexdigest()}
    code, events, _ = run(model, expect={"checkpoint_files": expected})
    assert code == 3
    assert [pin["name"] for pin in events["pin"] if not pin["ok"]] == ["checkpoint:model.safetensors"]
    assert events["error"][0]["type"] == "PinFailed"
    assert "model_loaded" not in events


def test_packed_linears_without_the_library_are_an_error_and_never_torch(toys, run, document):
    document["expect"]["kernels_sha256"] = "0" * 64
    code, events, _ = run(toys("llama"), linear="packed", projections=ALL)
    assert code == 3
    assert [pin["name"] for pin in events["pin"] if not pin["ok"]] == ["kernels_sha256"]


def test_an_argument_that_sglang_does_not_know_is_an_error_of_the_spec(toys, run):
    code, events, _ = run(toys("llama"), server_args={"no_such_argument": 1})
    assert code == 2
    assert "no_such_argument" in events["error"][0]["message"]
