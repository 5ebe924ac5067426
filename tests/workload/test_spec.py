"""What the harness writes is what the runner reads, and what the record expects is what the plugin is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rvvbench import project
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.record.build import build_record, build_row
from rvvbench.record.schema import Image
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.verify import verify
from rvvbench.runner.environment import recorded
from rvvbench.runner.sglang_batch import server_arguments
from rvvbench.runner.spec import parse
from rvvbench.target.select import Target, environment
from rvvbench.workload.one_batch import heading, prompts
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


def test_the_server_arguments_that_a_row_expects_are_those_that_the_runner_gives(resolved: Resolved) -> None:
    for variant in resolved.variants:
        own = variant.model_copy(update={"server_args": {"disable_cuda_graph": True}})
        given = given_server_args(resolved, own)
        want = expected(resolved, EMULATED, own, PINS).server_args
        assert {name: given.get(name) for name in want} == want
        assert (want["dtype"], want["tp_size"], want["attention_backend"]) == ("bfloat16", 1, "torch_native")
        assert want["device"] == "cpu" and want["disable_cuda_graph"] is True


def test_a_variant_cannot_overrule_what_the_heading_says(resolved: Resolved) -> None:
    own = resolved.variants[0].model_copy(update={"server_args": {"dtype": "float32"}})
    assert given_server_args(resolved, own)["dtype"] == "float32"
    assert expected(resolved, EMULATED, own, PINS).server_args["dtype"] == "bfloat16"


def given_server_args(resolved: Resolved, variant: Variant) -> dict[str, Any]:
    """What the runner would give to SGLang."""
    document = one_batch_spec(
        resolved, EMULATED, variant, prompts(resolved), PINS, run_id="r", row="r/none", process_index=0
    )
    return server_arguments(parse(json.loads(json.dumps(document))))


@pytest.mark.parametrize("target", [EMULATED, HOST, Target("board", "riscv64", emulated=False)], ids=lambda t: t.kind)
@pytest.mark.parametrize("name", sorted(path.stem for path in (project.manifests_dir() / "experiments").glob("*.yaml")))
def test_what_a_row_expects_is_what_verify_derives_from_the_manifest_of_the_record(name: str, target: Target) -> None:
    """Of every experiment that we ship; the rows have no processes, which is invalid but nothing to find."""
    resolved = resolve(project.manifests_dir(), name, target.kind)
    synthetic = resolved.model.synthetic
    generated = resolved.experiment.weights == "synthetic" and synthetic is not None
    files = {file: one.sha256 for file, one in synthetic.files.items()} if generated and synthetic else {"a": "a" * 64}
    pins = Pins(files, "b" * 64)
    image = Image(name="runtime", digest="sha256:" + "c" * 64, arch=target.arch)
    rows = [
        build_row(
            variant=variant.name,
            cache_state="none",
            expected=expected(resolved, target, variant, pins),
            processes=[],
        )
        for variant in resolved.variants
    ]
    record = build_record(
        run_id="r",
        created="2026-11-30T22:15:00Z",
        experiment=resolved.experiment.name,
        title=resolved.experiment.title,
        heading=heading(resolved),
        target=RecordTarget(kind=target.kind, name=resolved.board.name),
        manifest=resolved.plain(),
        pins={
            "image": image.model_dump(exclude={"relocked"}),
            "checkpoint": {"kind": resolved.experiment.weights, "files": files},
            "kernels": {"library_sha256": "b" * 64},
        },
        environment=environment(target, resolved.board),
        machine={},
        conditions_before={},
        conditions_after={},
        image=image,
        rows=rows,
        replay="",
    )
    assert verify(record) == []


def test_every_variable_that_a_row_expects_is_one_that_the_runner_records(resolved: Resolved) -> None:
    for variant in resolved.variants:
        declared = variant_environment(resolved, EMULATED, variant)
        assert recorded(declared) == dict(sorted(declared.items()))
