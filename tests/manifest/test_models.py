"""What models refuse, and that the refusal is placed at the line of the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.errors import ManifestError
from rvvbench.manifest.load import KINDS, load_manifest
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import resolve
from rvvbench.manifest.server_args import HARNESS_ARGS


def edited(path: Path, old: str, new: str) -> int:
    """Replace the line `old`; returns its number."""
    lines = path.read_text().splitlines()
    at = next(index for index, line in enumerate(lines) if line.strip() == old)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines[at] = indent + new
    path.write_text("\n".join(lines) + "\n")
    return at + 1


def refused(manifests: Path, kind: str, name: str) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        load_manifest(manifests, kind, name, KINDS[kind])
    return caught.value


@pytest.mark.parametrize("key", sorted(HARNESS_ARGS | {"load-format", "speculative_algorithm", "lora_paths"}))
def test_server_args_cannot_override_what_the_manifest_declares(manifests: Path, key: str) -> None:
    path = manifests / "variants" / "torch-native.yaml"
    line = edited(path, "linear: torch", f"linear: torch\nserver_args:\n  max_total_tokens: 64\n  {key}: x") + 3
    error = refused(manifests, "variants", "torch-native")
    assert error.where == f"{path}:{line}"
    assert f"server_args.{key}" in error.cause


def test_server_args_may_say_what_nothing_else_declares(manifests: Path) -> None:
    path = manifests / "variants" / "torch-native.yaml"
    edited(path, "linear: torch", "linear: torch\nserver_args: {max_total_tokens: 64}")
    variant, _ = load_manifest(manifests, "variants", "torch-native", KINDS["variants"])
    assert variant.model_dump()["server_args"] == {"max_total_tokens": 64}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hidden_size: 1024", "hidden_size: abc"),
        ("hidden_size: 1024", "hidden_size: 0"),
        ("hidden_size: 1024", "hidden_size: 1025"),
        ("hidden_size: 1024", "hidden_size: 1024.0"),
        ("hidden_size: 1024", "hidden_size: true"),
        ("num_attention_heads: 8", "num_attention_heads: -8"),
        ("num_key_value_heads: 2", "num_key_value_heads: 3"),
        ("intermediate_size: 1024", "intermediate_size: [1024]"),
        ("num_hidden_layers: 2", "num_hidden_layers: null"),
        ("max_position_embeddings: 8192", "max_position_embeddings: 0"),
        ("architectures: [Qwen2ForCausalLM]", "architectures: [GPT2LMHeadModel]"),
        ("architectures: [Qwen2ForCausalLM]", "architectures: []"),
        ("architectures: [Qwen2ForCausalLM]", "architectures: Qwen2ForCausalLM"),
    ],
)
def test_a_configuration_without_usable_shapes_is_refused_at_its_line(manifests: Path, old: str, new: str) -> None:
    path = manifests / "models" / "qwen2-mini.yaml"
    line = edited(path, old, new)
    assert refused(manifests, "models", "qwen2-mini").where == f"{path}:{line}"


def test_a_configuration_without_a_vocabulary_is_refused_at_the_configuration(manifests: Path) -> None:
    path = manifests / "models" / "qwen2-mini.yaml"
    edited(path, "vocab_size: 10240", "")
    error = refused(manifests, "models", "qwen2-mini")
    assert "config.vocab_size" in error.cause
    at = path.read_text().splitlines().index("config:") + 1
    assert error.where == f"{path}:{at}"


@pytest.mark.parametrize("cpus", ["abc", "''", "0-", "-1", "0,,1", "7-0", "0 - 7", "0-7;x", "0-7\u0663"])
def test_cpus_that_are_no_cpuset_are_refused(manifests: Path, cpus: str) -> None:
    path = manifests / "boards" / "bpi-f3.yaml"
    line = edited(path, "cpus: 0-7", f"cpus: {cpus}")
    assert refused(manifests, "boards", "bpi-f3").where == f"{path}:{line}"


@pytest.mark.parametrize("cpus", ["'0'", "0-3,5,7-7", "0-7"])
def test_cpus_that_are_a_cpuset_are_taken(manifests: Path, cpus: str) -> None:
    edited(manifests / "boards" / "bpi-f3.yaml", "cpus: 0-7", f"cpus: {cpus}")
    load_manifest(manifests, "boards", "bpi-f3", KINDS["boards"])


@pytest.mark.parametrize(
    "setting",
    [
        "fresh_processes=true",
        "fresh_processes=1.0",
        'fresh_processes="1"',
        "tensor_parallel=true",
        "tensor_parallel=1.0",
        "tensor_parallel=2",
        "workload.seed=false",
        "sample_interval_s=true",
        'timeouts_s.process="600"',
        "title=1",
        "cache_states=[none, none]",
        "variants=[torch-native, torch-native]",
        "cache_states=[artifact-cold]",
        "cache_states=[hot, warm]",
        "workload.input_len=9000",
        "workload.input_len=8185",
    ],
)
def test_a_value_of_another_type_or_reach_is_refused_at_its_place(manifests: Path, setting: str) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "host", settings=[setting])
    assert caught.value.where == f"--set {setting}"


def test_the_last_position_of_the_model_can_be_used(manifests: Path) -> None:
    resolve(manifests, "llama-one-batch", "host", settings=["workload.input_len=8184"])


def test_a_variant_that_compiles_has_a_cache_and_says_so_at_its_line(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edited(path, "cache_states: [cold, warm]", "cache_states:\n  - warm\n  - none") + 2
    assert resolve(manifests, "llama-one-batch", "host").experiment.cache_states == ["warm", "none"]
    with pytest.raises(ManifestError, match=r"'none'.*inductor-packed") as caught:
        resolve(manifests, "llama-one-batch", "host", variants=["torch-native", "inductor-packed"])
    assert caught.value.where == f"{path}:{line}"
    assert "--cache both" in str(caught.value.mend)


def test_cold_comes_before_warm_and_what_compiles_nothing_has_no_cache(manifests: Path) -> None:
    names = ["torch-native", "inductor-packed"]
    resolved = resolve(manifests, "llama-one-batch", "host", variants=names, settings=["cache_states=[warm, cold]"])
    assert [resolved.cache_states(variant) for variant in resolved.variants] == [("none",), ("cold", "warm")]


def test_a_task_refuses_variants_that_compile(manifests: Path) -> None:
    with pytest.raises(ManifestError, match="inductor-packed"):
        settings = ["cache_states=[cold]"]
        resolve(manifests, "llama-gsm8k", "host", variants=["inductor-packed"], settings=settings)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("packed_weight_mode: explicit", "", "needs it"),
        ("small_batch: true", "", "needs it"),
        ("compile: regional", "", "goes with `compile: regional`"),
        ("small_batch: true", "small_batch: 1", "small_batch"),
        ("linear: torch", "linear: packed\nprojections: [o_proj]", "`linear: torch`"),
    ],
)
def test_a_variant_says_all_of_how_it_compiles(manifests: Path, old: str, new: str, words: str) -> None:
    edited(manifests / "variants" / "inductor-packed.yaml", old, new)
    assert words in refused(manifests, "variants", "inductor-packed").cause


def test_a_projection_that_stands_twice_is_refused(manifests: Path) -> None:
    path = manifests / "variants" / "rvv-kernels.yaml"
    old = "projections: [qkv_proj, o_proj, gate_up_proj, down_proj, lm_head]"
    line = edited(path, old, "projections: [o_proj, o_proj]")
    error = refused(manifests, "variants", "rvv-kernels")
    assert (error.where, "twice" in error.cause) == (f"{path}:{line}", True)


def test_projections_without_packed_linears_are_refused_at_their_line(manifests: Path) -> None:
    path = manifests / "variants" / "torch-native.yaml"
    line = edited(path, "linear: torch", "linear: torch\nprojections: [o_proj]") + 1
    assert refused(manifests, "variants", "torch-native").where == f"{path}:{line}"


ALL = "projections: [qkv_proj, o_proj, gate_up_proj, down_proj, lm_head]"


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("rvv-kernels-int8-kv", "attention_backend: rvv", "attention_backend: torch_native", "kv_cache_dtype: only"),
        ("rvv-kernels-budget-25", "linear: packed", "linear: w8a8", "packed_budget_percent: a budget"),
        ("rvv-w8a8", ALL, "projections: [qkv_proj, down_proj, lm_head]", "o_proj, gate_up_proj must be here"),
        ("rvv-w8a8", "linear: w8a8", "linear: torch", "projections: `projections` goes with"),
        ("rvv-kernels", "mean_logprob_difference: 0.03", "mean_logprob_difference: 0.11", "no mean is above"),
    ],
)
def test_what_does_not_go_together_in_a_variant_is_refused_at_the_line_of_what_depends_on_the_other(
    manifests: Path, name: str, old: str, new: str, said: str
) -> None:
    path = manifests / "variants" / f"{name}.yaml"
    edited(path, old, new)
    error = refused(manifests, "variants", name)
    assert said in error.cause
    key = error.cause.partition(":")[0].rpartition(".")[2]
    lines = path.read_text().splitlines()
    assert error.where == f"{path}:{1 + next(i for i, line in enumerate(lines) if line.strip().startswith(f'{key}:'))}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("packed_budget_percent: 25", "packed_budget_percent: 101"),
        ("packed_budget_percent: 25", "packed_budget_percent: -1"),
        ("packed_budget_percent: 25", "packed_budget_percent: 25.5"),
        ("greedy_agreement: 1.0", "greedy_agreement: 1.01"),
        ("max_logprob_difference: 0.1", "max_logprob_difference: -0.1"),
        ("max_logprob_difference: 0.1", "max_logprob_difference: .nan"),
        ("elementwise: kernels", "elementwise: rvv"),
        ("attention_backend: rvv", "attention_backend: intel_amx"),
    ],
)
def test_a_value_of_a_variant_that_means_nothing_is_refused_at_its_line(manifests: Path, old: str, new: str) -> None:
    path = manifests / "variants" / "rvv-kernels-budget-25.yaml"
    line = edited(path, old, new)
    assert refused(manifests, "variants", "rvv-kernels-budget-25").where == f"{path}:{line}"


def test_thresholds_that_are_incomplete_are_refused_where_they_stand(manifests: Path) -> None:
    path = manifests / "variants" / "rvv-kernels.yaml"
    edited(path, "mean_logprob_difference: 0.03", "")
    line = path.read_text().splitlines().index("accuracy:") + 1
    error = refused(manifests, "variants", "rvv-kernels")
    assert (error.where, "mean_logprob_difference" in error.cause) == (f"{path}:{line}", True)


@pytest.mark.parametrize(
    ("fields", "uses"),
    [
        ({"linear": "torch", "attention_backend": "torch_native"}, False),
        ({"linear": "torch", "attention_backend": "rvv"}, True),
        ({"linear": "torch", "attention_backend": "torch_native", "elementwise": "kernels"}, True),
        ({"linear": "packed", "attention_backend": "torch_native", "projections": ["o_proj"]}, True),
        ({"compile": "regional", "packed_weight_mode": "off", "small_batch": True}, False),
        ({"compile": "regional", "packed_weight_mode": "explicit", "small_batch": True}, True),
    ],
)
def test_a_variant_uses_kernels_where_any_of_its_parts_does(fields: dict[str, object], uses: bool) -> None:
    plain = {"linear": "torch", "attention_backend": "torch_native"}
    variant = Variant.model_validate({"schema": "rvvbench/variant/1", "name": "v", "title": "v", **plain, **fields})
    assert variant.uses_kernels is uses


def test_a_variant_that_is_asked_for_twice_is_named_in_variants(manifests: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "host", variants=["torch-native", "torch-native"])
    assert caught.value.where == "--variant torch-native,torch-native"
    assert caught.value.cause == "variants.1: stands twice (got 'torch-native')"


def test_an_error_of_a_whole_manifest_has_no_path_and_no_dump(manifests: Path) -> None:
    path = manifests / "models" / "qwen2-mini.yaml"
    text = path.read_text()
    path.write_text(text[: text.index("# Made by")])
    error = refused(manifests, "models", "qwen2-mini")
    assert error.cause == "a model needs `hub` or `synthetic`"


def test_a_serving_workload_needs_the_timeouts_of_a_server(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-serve.yaml"
    path.write_text(path.read_text().replace("  startup: 900\n", ""))
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-serve", "emulated")
    assert "`startup`" in caught.value.cause


def test_a_one_batch_workload_has_no_timeouts_of_a_server(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edited(path, "process: 1800", "process: 1800\n  startup: 5") + 1
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "emulated")
    assert caught.value.where == f"{path}:{line}"


def test_a_concurrency_that_the_requests_never_reach_is_refused(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-serve.yaml"
    line = edited(path, "concurrency: [1, 2]", "concurrency: [1, 8]")
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-serve", "host")
    assert caught.value.where == f"{path}:{line}"
    assert "never are 8 at once" in caught.value.cause


def test_a_mistyped_key_of_a_workload_names_the_key_that_was_meant(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-serve.yaml"
    line = edited(path, "requests: 4", "requets: 4")
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-serve", "host")
    assert (caught.value.where, caught.value.mend) == (f"{path}:{line}", "did you mean 'requests'?")


def test_a_cross_check_needs_a_server_with_a_tokenizer(manifests: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-serve", "host", settings=["workload.cross_check={}"])
    assert "skip_tokenizer_init: false" in caught.value.cause
    settings = ["workload.cross_check={}", "workload.server.skip_tokenizer_init=false"]
    assert resolve(manifests, "llama-serve", "host", settings=settings).experiment.workload.cross_check is not None


def test_a_variant_that_is_still_to_come_is_refused_as_such(manifests: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        settings = ["coming_variants=[inductor-packed]"]
        resolve(manifests, "llama-serve", "host", variants=["torch-native", "inductor-packed"], settings=settings)
    assert "cannot run it yet" in caught.value.cause


def test_no_variant_that_there_is_counts_as_still_to_come(manifests: Path) -> None:
    there = {path.stem for path in (manifests / "variants").glob("*.yaml")}
    for path in (manifests / "experiments").glob("*.yaml"):
        assert not there & set(resolve(manifests, path.stem, "host").experiment.coming_variants)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("workload.input_len=2", "prompts must be longer"),
        ("timeouts_s.process=1.0e+300", "timeouts_s.process"),
        ("workload.open_loops=[{arrivals: fixed, rate_per_s: 0.0001}]", "requests last"),
        ("workload.open_loops=[{arrivals: fixed, rate_per_s: 1}, {arrivals: poisson, rate_per_s: 1}]", "stands twice"),
        ("workload.concurrency=[1, 1]", "stands twice"),
        ("workload.concurrency=[]", "names no load"),
    ],
)
def test_loads_that_cannot_be_run_or_told_apart_are_refused(manifests: Path, setting: str, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-serve", "host", settings=[setting])
    assert words in caught.value.cause
