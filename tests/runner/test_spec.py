import json

import pytest

from rvvbench.runner import spec as specs
from rvvbench.runner.failure import SpecError


def test_the_documented_spec_is_read(document):
    spec = specs.parse(document)
    assert spec.input_ids == ((1, 2, 3),)
    assert spec.input_tokens == 3
    assert spec.variant.linear == "torch"
    assert spec.expect.vlen == 256


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("schema", "rvvbench/spec/2", "this runner reads rvvbench/spec/1"),
        ("kind", "serving", "kind 'serving'"),
        ("tensor_parallel", 2, "tensor_parallel 2"),
        ("batch_size", 2, "1 prompts for batch_size 2"),
        ("input_ids", [[]], "an empty one"),
        ("warmup_input_ids", [[4, 5]], "shape of input_ids"),
        ("warmup_input_ids", [[1, 2, 3]], "a warm-up prompt equals the measured one"),
        ("output_len", 0, "must be positive"),
        ("sample_interval_s", 0, "must be positive"),
        ("variant.linear", "int8", "linear 'int8'"),
        ("variant.linear", "packed", "linear packed needs projections"),
        ("variant.linear", "w8a8", "linear w8a8 needs projections"),
        ("variant.attention_backend", "rvv", "a variant that uses kernels needs expect.kernels_sha256"),
        ("variant.elementwise", "kernels", "a variant that uses kernels needs expect.kernels_sha256"),
        ("variant.attention_backend", "intel_amx", "attention_backend 'intel_amx' is not one of torch_native, rvv"),
        ("variant.elementwise", "rvv", "elementwise 'rvv' is not one of torch, kernels"),
        ("variant.kv_cache_dtype", "fp8", "kv_cache_dtype 'fp8' is not one of auto, int8"),
        ("variant.compile", "inductor", "compile 'inductor'"),
    ],
)
def test_what_this_runner_cannot_measure_is_refused_in_words(document, path, value, said):
    *parents, last = path.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    place[last] = value
    with pytest.raises(SpecError, match=said.replace("(", r"\(")):
        specs.parse(document)


def test_a_spec_that_does_not_speak_of_attention_and_the_rest_leaves_them_to_torch(document):
    for name in ("elementwise", "kv_cache_dtype", "memory_budget_mib"):
        del document["variant"][name]
    variant = specs.parse(document).variant
    assert (variant.elementwise, variant.kv_cache_dtype, variant.memory_budget_mib) == ("torch", "auto", None)
    assert not variant.uses_kernels


def test_a_missing_field_is_named_with_the_file(document, tmp_path):
    del document["threads"]
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(document))
    with pytest.raises(SpecError, match=r"spec\.json lacks a field.*threads"):
        specs.load(str(path))


def test_a_file_that_is_no_json_is_an_error_of_the_spec(tmp_path):
    (tmp_path / "spec.json").write_text("{")
    with pytest.raises(SpecError, match="cannot read the spec"):
        specs.load(str(tmp_path / "spec.json"))
