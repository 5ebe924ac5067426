"""What the harness writes is what the runner reads, and what the record expects is what the plugin is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rvvbench import project
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.provide.dataset import Entry, TaskData
from rvvbench.record.build import build_record
from rvvbench.record.declared_caches import COMPILE_ARGS, COMPILE_VARIABLES
from rvvbench.record.schema import Image, Record
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.verify import verify
from rvvbench.runner import eval_spec, serving_spec
from rvvbench.runner.environment import recorded
from rvvbench.runner.sglang_batch import server_arguments
from rvvbench.runner.spec import parse
from rvvbench.target.select import Target, environment
from rvvbench.workload.one_batch import OneBatchJob
from rvvbench.workload.run import job_of
from rvvbench.workload.spec import Identity, Pins, variant_environment

EMULATED = Target("emulated", "riscv64", emulated=True)
HOST = Target("host", "amd64", emulated=False)
PINS = Pins({"model.safetensors": "a" * 64}, "b" * 64, {"model.safetensors": "d" * 64})
IDENTITY = Identity("r", "r/none", 0)
ENTRIES = tuple(Entry(f"How many are {index}?", f"#### {index}") for index in range(100))
DATA = TaskData("local", ENTRIES, ENTRIES, ("train.jsonl", "d" * 64), ("test.jsonl", "e" * 64))


def job(name: str, target: Target, pins: Pins = PINS) -> Any:
    return job_of(resolve(project.manifests_dir(), name, target.kind), target, pins, DATA)


VARIANTS = sorted(path.stem for path in (project.manifests_dir() / "variants").glob("*.yaml"))
COMPILING = [name for name in VARIANTS if name.startswith("inductor-")]
"""No task takes these."""

OF_A_TASK = [name for name in VARIANTS if name not in COMPILING]


@pytest.fixture(scope="module")
def one_batch() -> OneBatchJob:
    made = job("llama-one-batch", EMULATED)
    assert isinstance(made, OneBatchJob)
    return made


def test_the_runner_reads_what_the_harness_writes(one_batch: OneBatchJob) -> None:
    for variant in one_batch.resolved.variants:
        spec = parse(json.loads(json.dumps(one_batch.spec(variant, IDENTITY))))
        assert (spec.batch_size, spec.output_len, len(spec.input_ids[0])) == (1, 8, 64)
        assert spec.expect.vlen == 256
        assert spec.expect.machine == "riscv64"
        assert (spec.expect.kernels_sha256 is None) == (variant.linear == "torch")


def test_the_warm_up_prompt_has_the_shape_of_the_measured_one_and_other_tokens(one_batch: OneBatchJob) -> None:
    wanted = one_batch.prompts()
    assert [len(ids) for ids in wanted.warmup] == [len(ids) for ids in wanted.measured] == [64]
    assert wanted.warmup != wanted.measured
    assert wanted == one_batch.prompts()


def test_a_row_expects_kernels_only_where_the_variant_uses_them(one_batch: OneBatchJob) -> None:
    native, kernels = (one_batch.expected(variant) for variant in one_batch.resolved.variants)
    assert native.kernels_sha256 is None
    assert kernels.kernels_sha256 == "b" * 64
    assert {route.path for route in native.routing} == {"torch"}
    assert {route.path for route in kernels.routing} == {"packed", "kernels"}
    assert (native.ops, native.kernel_suffix) == ({}, None)
    assert sum(route.calls or 0 for route in kernels.routing if route.path == "packed") == 72
    assert (kernels.ops["weight_packed_linear_out"], kernels.kernel_suffix) == (72, "_rvv")
    assert (kernels.ops["decode_attention_cpu"], kernels.ops["rmsnorm_cpu"]) == (14, 8)


@pytest.mark.parametrize("name", ["llama-one-batch", "llama-serve", "llama-gsm8k"])
def test_only_a_w8a8_variant_is_given_and_expected_to_have_the_quantised_checkpoint(name: str) -> None:
    made = job(name, HOST)
    kernels = made.resolved.variants[1]
    w8a8 = kernels.model_copy(update={"linear": "w8a8"})
    for variant, digit in ((kernels, "a"), (w8a8, "d")):
        files = {"model.safetensors": digit * 64}
        assert made.spec(variant, IDENTITY)["expect"]["checkpoint_files"] == files
        assert [row.checkpoint_files for row in expectations(made, variant)] == [files] * len(made.rows(variant, []))
    with pytest.raises(ValueError, match="rvv-kernels needs the quantised checkpoint"):
        Pins({}, None).checkpoint_of(w8a8)


@pytest.mark.parametrize("name", ["llama-one-batch", "llama-serve", "llama-gsm8k"])
def test_on_the_host_the_portable_kernels_are_expected(name: str) -> None:
    host = job(name, HOST)
    native, kernels = (expectations(host, variant)[0] for variant in host.resolved.variants)
    assert (native.kernel_suffix, kernels.kernel_suffix) == (None, "_portable")


def test_the_server_arguments_that_a_row_expects_are_those_that_the_runner_gives(one_batch: OneBatchJob) -> None:
    for variant in one_batch.resolved.variants:
        own = variant.model_copy(update={"server_args": {"disable_cuda_graph": True}})
        given = given_server_args(one_batch, own)
        want = one_batch.expected(own).server_args
        assert {name: given.get(name) for name in want} == want
        assert (want["dtype"], want["tp_size"]) == ("bfloat16", 1)
        assert want["attention_backend"] == variant.attention_backend
        assert want["device"] == "cpu" and want["disable_cuda_graph"] is True


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch-native", {}),
        ("rvv-kernels", {}),
        ("rvv-kernels-int8-kv", {"kv_cache_dtype": "int8"}),
        ("rvv-w8a8", {"quantization": "w8a8_int8"}),
        ("rvv-kernels-budget-0", {"cpu_rvv_memory_budget_mib": 0.0}),
        ("rvv-kernels-budget-25", {"cpu_rvv_memory_budget_mib": 10.5}),
        ("rvv-kernels-budget-100", {"cpu_rvv_memory_budget_mib": 42.0}),
        ("inductor-packed", {"enable_cpu_rvv_inductor": True}),
        ("inductor-packed-rvv-attention", {"enable_cpu_rvv_inductor": True}),
        ("inductor-row-major", {"enable_cpu_rvv_inductor": True, "cpu_rvv_packed_weight_mode": "off"}),
    ],
)
def test_what_only_some_variants_have_is_given_and_expected_of_those(name: str, args: dict[str, Any]) -> None:
    keys = {"kv_cache_dtype", "quantization", "cpu_rvv_memory_budget_mib", *COMPILE_ARGS}
    for experiment in ("llama-one-batch", "llama-serve", *(["llama-gsm8k"] if name in OF_A_TASK else [])):
        resolved = resolve(project.manifests_dir(), experiment, "emulated", variants=[name])
        made = job_of(resolved, EMULATED, PINS, DATA)
        [variant] = resolved.variants
        for expected in expectations(made, variant):
            assert {key: value for key, value in expected.server_args.items() if key in keys} == args
        given = (
            given_server_args(made, variant)
            if isinstance(made, OneBatchJob)
            else made.spec(variant, IDENTITY)["server_args"]
        )
        assert {key: value for key, value in given.items() if key in keys} == args


def test_without_small_batches_the_modes_are_given_one_by_one(one_batch: OneBatchJob) -> None:
    [found] = resolve(project.manifests_dir(), "llama-one-batch", "host", variants=["inductor-packed"]).variants
    given = given_server_args(one_batch, found.model_copy(update={"small_batch": False}))
    assert (given["cpu_compile_mode"], given["cpu_rvv_packed_weight_mode"]) == ("regional", "explicit")
    assert "enable_cpu_rvv_inductor" not in given


def test_a_process_that_compiles_is_told_where_and_with_what(one_batch: OneBatchJob) -> None:
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "emulated", variants=["torch-native", *COMPILING])
    for variant in resolved.variants:
        declared = variant_environment(resolved, EMULATED, variant)
        told = {name: declared[name] for name in COMPILE_VARIABLES if name in declared}
        assert told == (COMPILE_VARIABLES if variant.compiles else {})
        assert recorded(declared) == dict(sorted(declared.items()))
        assert one_batch.expected(variant).compiles is variant.compiles


def test_a_variant_cannot_overrule_what_the_heading_says(one_batch: OneBatchJob) -> None:
    own = one_batch.resolved.variants[0].model_copy(update={"server_args": {"dtype": "float32"}})
    assert given_server_args(one_batch, own)["dtype"] == "float32"
    assert one_batch.expected(own).server_args["dtype"] == "bfloat16"


def given_server_args(made: OneBatchJob, variant: Variant) -> dict[str, Any]:
    """What the runner would give to SGLang."""
    return server_arguments(parse(json.loads(json.dumps(made.spec(variant, IDENTITY)))))


def expectations(made: Any, variant: Variant) -> list[Any]:
    """What each row of `variant` expects."""
    return [row.expected for row in made.rows(variant, [])]


@pytest.mark.parametrize("target", [EMULATED, HOST, Target("board", "riscv64", emulated=False)], ids=lambda t: t.kind)
@pytest.mark.parametrize("name", sorted(path.stem for path in (project.manifests_dir() / "experiments").glob("*.yaml")))
def test_what_a_row_expects_is_what_verify_derives_from_the_manifest_of_the_record(name: str, target: Target) -> None:
    """Of every experiment that we ship."""
    assert verify(record_of(resolve(project.manifests_dir(), name, target.kind), target)) == []


def record_of(resolved: Resolved, target: Target) -> Record:
    """The record of a run of which nothing came back: its rows have no processes, which is invalid but no finding."""
    synthetic = resolved.model.synthetic
    generated = resolved.experiment.weights == "synthetic" and synthetic is not None
    files = {file: one.sha256 for file, one in synthetic.files.items()} if generated and synthetic else {"a": "a" * 64}
    pinned = synthetic.w8a8 if generated and synthetic else None
    w8a8 = {file: one.sha256 for file, one in pinned.files.items()} if pinned else {"a": "d" * 64}
    made = job_of(resolved, target, Pins(files, "b" * 64, w8a8), DATA)
    image = Image(name="runtime", digest="sha256:" + "c" * 64, arch=target.arch)
    return build_record(
        run_id="r",
        created="2026-11-30T22:15:00Z",
        experiment=resolved.experiment.name,
        title=resolved.experiment.title,
        heading=made.heading(),
        target=RecordTarget(kind=target.kind, name=resolved.board.name),
        manifest=resolved.plain(),
        pins={
            "image": image.model_dump(exclude={"relocked"}),
            "checkpoint": {"kind": resolved.experiment.weights, "files": files},
            "checkpoint_w8a8": {"algorithm": "rvvbench-w8a8/1", "files": w8a8},
            "kernels": {"library_sha256": "b" * 64},
            **({"dataset": DATA.pins()} if resolved.dataset else {}),
        },
        environment=environment(target, resolved.board),
        machine={},
        conditions_before={},
        conditions_after={},
        image=image,
        rows=[
            row
            for variant in resolved.variants
            for state in resolved.cache_states(variant)
            for row in made.rows(variant, [], state)
        ],
        replay="",
    )


@pytest.mark.parametrize("target", [EMULATED, HOST], ids=lambda t: t.kind)
@pytest.mark.parametrize("model", ["llama-mini", "qwen2-mini", "qwen3-mini"])
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        *((name, variant) for name in ("llama-one-batch", "llama-serve") for variant in VARIANTS),
        *(("llama-gsm8k", variant) for variant in OF_A_TASK),
    ],
)
def test_verify_derives_the_expectations_of_every_variant_and_kind_of_model(
    variant: str, model: str, name: str, target: Target
) -> None:
    settings = [] if name == "llama-gsm8k" else ["workload.input_len=16"]
    resolved = resolve(
        project.manifests_dir(), name, target.kind, settings=[f"model={model}", *settings], variants=[variant]
    )
    assert verify(record_of(resolved, target)) == []


@pytest.mark.parametrize("name", OF_A_TASK)
def test_the_spec_of_a_task_says_of_every_variant_what_that_of_a_server_says(name: str) -> None:
    def said(experiment: str) -> Any:
        of = resolve(project.manifests_dir(), experiment, "emulated", variants=[name])
        spec = json.loads(json.dumps(job_of(of, EMULATED, PINS, DATA).spec(of.variants[0], IDENTITY)))
        parsed = (eval_spec if experiment == "llama-gsm8k" else serving_spec).parse(spec)
        return parsed.variant, parsed.expect, parsed.threads

    assert said("llama-gsm8k") == said("llama-serve")


def test_every_variable_that_a_row_expects_is_one_that_the_runner_records(one_batch: OneBatchJob) -> None:
    for variant in one_batch.resolved.variants:
        declared = variant_environment(one_batch.resolved, EMULATED, variant)
        assert recorded(declared) == dict(sorted(declared.items()))


def test_no_prompt_of_a_serving_run_occurs_twice_and_each_load_is_warmed_up_at_its_own_concurrency() -> None:
    serving = job("llama-serve", EMULATED)
    spec = json.loads(json.dumps(serving.spec(serving.resolved.variants[0], IDENTITY)))
    prompts = [one["input_ids"] for load in spec["loads"] for one in load["requests"]]
    assert {len(prompt) for prompt in prompts} == {64}
    assert len({tuple(prompt) for prompt in prompts}) == len(prompts) == 1 + 4 + 2 + 4
    shapes = [(load["name"], load["measured"], load["concurrency"], len(load["requests"])) for load in spec["loads"]]
    assert shapes == [("c1-warmup", False, 1, 1), ("c1", True, 1, 4), ("c2-warmup", False, 2, 2), ("c2", True, 2, 4)]


def test_a_server_that_compiles_meets_every_number_of_rows_before_it_is_measured() -> None:
    settings = ["workload.concurrency=[1, 2, 4]", "workload.input_len=32"]
    resolved = resolve(
        project.manifests_dir(),
        "llama-serve",
        "emulated",
        settings=settings,
        variants=["torch-native", "inductor-packed"],
    )
    made = job_of(resolved, EMULATED, PINS, DATA)
    eager, compiling = (json.loads(json.dumps(made.spec(one, IDENTITY)))["loads"] for one in resolved.variants)
    assert [load for load in compiling if load["measured"]] == [load for load in eager if load["measured"]]
    others = {load["name"]: load for load in compiling if load not in eager}
    shapes = {name: [len(one["input_ids"]) for one in load["requests"]] for name, load in others.items()}
    assert shapes == {"c2-rows": [64], "c4-rows": [64, 96, 128], "c4-together2": [32, 32]}
    assert {name: load["concurrency"] for name, load in others.items()} == {
        "c2-rows": 1,
        "c4-rows": 1,
        "c4-together2": 2,
    }
    assert not any(load["measured"] for load in others.values())
    prompts = [tuple(one["input_ids"]) for load in compiling for one in load["requests"]]
    assert len(set(prompts)) == len(prompts)
    serving_spec.parse(json.loads(json.dumps(made.spec(resolved.variants[1], IDENTITY))))


def test_the_switches_of_the_server_are_given_and_expected() -> None:
    serving = job("llama-serve", EMULATED)
    variant = serving.resolved.variants[0]
    given = serving.spec(variant, IDENTITY)["server_args"]
    for row in serving.rows(variant, []):
        assert row.expected.server_args == given
    assert given["disable_radix_cache"] is given["disable_overlap_schedule"] is given["sleep_on_idle"] is True
    assert (given["stream_interval"], given["max_running_requests"], given["skip_tokenizer_init"]) == (1, 2, True)


def test_rows_at_concurrency_2_may_have_two_rows_where_those_at_1_may_not() -> None:
    serving = job("llama-serve", EMULATED)
    one, two = ({(r.projection, r.m) for r in e.routing} for e in expectations(serving, serving.resolved.variants[1]))
    assert {m for projection, m in one if projection == "lm_head"} == {1}
    assert {m for projection, m in one if projection == "o_proj"} == {1, 64}
    assert {m for projection, m in two if projection == "lm_head"} == {1, 2}
    assert {m for projection, m in two if projection == "o_proj"} == {1, 2, 64, 128}
