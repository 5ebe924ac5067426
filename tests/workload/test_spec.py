"""What the harness writes is what the runner reads, and what the record expects is what the plugin is told."""

from __future__ import annotations

import json

import pytest

from rvvbench import project
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.runner.environment import recorded
from rvvbench.runner.spec import parse
from rvvbench.target.select import Target
from rvvbench.workload.one_batch import prompts
from rvvbench.workload.spec import Pins, expected, one_batch_spec, variant_environment

EMULATED = Target("emulated", "riscv64", emulated=True)
HOST = Target("host", "amd64", emulated=False)
PINS = Pins({"model.safetensors": "a" * 64}, "b" * 64)


@pytest.fixture(scope="module")
def resolved() -> Resolved:
    return resolve(project.manifests_dir(), "llama-one-batch", "emulated")


def test_the_runner_reads_what_the_harness_writes(resolved: Resolved) -> None:
    wanted = prompts(resolved)
    for variant in resolved.variants:
        document = one_batch_spec(
            resolved, EMULATED, variant, wanted, PINS, run_id="r", row=f"{variant.name}/none", process_index=0
        )
        spec = parse(json.loads(json.dumps(document)))
        assert (spec.batch_size, spec.output_len, len(spec.input_ids[0])) == (1, 8, 64)
        assert spec.expect.vlen == 256
        assert spec.expect.machine == "riscv64"
        assert (spec.expect.kernels_sha256 is None) == (variant.linear == "torch")


def test_the_warm_up_prompt_has_the_shape_of_the_measured_one_and_other_tokens(resolved: Resolved) -> None:
    wanted = prompts(resolved)
    assert [len(ids) for ids in wanted.warmup] == [len(ids) for ids in wanted.measured] == [64]
    assert wanted.warmup != wanted.measured
    assert wanted == prompts(resolved)


def test_a_row_expects_kernels_only_where_the_variant_uses_them(resolved: Resolved) -> None:
    native, kernels = (expected(resolved, EMULATED, variant, PINS) for variant in resolved.variants)
    assert native.kernels_sha256 is None
    assert kernels.kernels_sha256 == "b" * 64
    assert {route.path for route in native.routing} == {"torch"}
    assert {route.path for route in kernels.routing} == {"packed"}
    assert (native.ops, native.kernel_suffix) == ({}, None)
    assert sum(route.calls for route in kernels.routing) == 72
    assert (kernels.ops, kernels.kernel_suffix) == ({"weight_packed_linear_out": 72}, "_rvv")


def test_on_the_host_the_portable_kernels_are_expected() -> None:
    host = resolve(project.manifests_dir(), "llama-one-batch", "host")
    native, kernels = (expected(host, HOST, variant, PINS) for variant in host.variants)
    assert (native.kernel_suffix, kernels.kernel_suffix) == (None, "_portable")


def test_every_variable_that_a_row_expects_is_one_that_the_runner_records(resolved: Resolved) -> None:
    for variant in resolved.variants:
        declared = variant_environment(resolved, EMULATED, variant)
        assert recorded(declared) == dict(sorted(declared.items()))
