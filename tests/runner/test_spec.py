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
        ("variant.linear", "packed", "needs projections and expect.kernels_sha256"),
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
