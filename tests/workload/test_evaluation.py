"""GSM8K from a local file of a few questions to a record: prompts, spec, a scripted server, row, and verification."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rvvbench import project
from rvvbench.errors import ManifestError, UsageError
from rvvbench.manifest.models import Eval
from rvvbench.manifest.resolve import resolve
from rvvbench.provide.dataset import Entry, TaskData, local_dataset
from rvvbench.record.build import build_record
from rvvbench.record.events import named, read_events
from rvvbench.record.schema import Image, Record
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.verify import verify
from rvvbench.runner import eval_spec
from rvvbench.runner.pins import file_sha256
from rvvbench.target.select import Target, environment, host_arch
from rvvbench.workload.evaluation import EvalJob, Story
from rvvbench.workload.follow import Say
from rvvbench.workload.gsm8k import READY_QUESTION, prompt, task
from rvvbench.workload.job import Measured
from rvvbench.workload.spec import Identity, Pins, variant_environment

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("scripted_sums.py")
EXAMPLES = [("One hen?", "It is 1.\n#### 1"), ("Two hens?", "1 + 1 = <<1+1=2>>2.\n#### 2")]
QUESTIONS = [("Three hens?", "#### 3"), ("A thousand hens?", "#### 1,000"), ("No hens?", "#### 0"), ("Five?", "#### 5")]


def jsonl(path: Path, entries: list[tuple[str, str]]) -> Path:
    path.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in entries))
    return path


@pytest.fixture
def data(tmp_path: Path) -> TaskData:
    return local_dataset(jsonl(tmp_path / "few.jsonl", [*EXAMPLES, *QUESTIONS]))


def test_a_prompt_is_the_examples_with_their_answers_and_the_question_with_none() -> None:
    entries = [Entry(*one) for one in EXAMPLES]
    assert prompt(entries, "Three hens?") == (
        "Question: One hen?\nAnswer: It is 1.\n#### 1\n\n"
        "Question: Two hens?\nAnswer: 1 + 1 = <<1+1=2>>2.\n#### 2\n\n"
        "Question: Three hens?\nAnswer:"
    )
    assert prompt([], "Three hens?") == "Question: Three hens?\nAnswer:"


def test_the_first_questions_are_asked_in_the_order_of_the_file(data: TaskData) -> None:
    asked = task(data, 2, 3)
    assert [(one.id, one.gold) for one in asked.questions] == [("q0", "3"), ("q1", "1000"), ("q2", "0")]
    examples = data.train[:2]
    assert [one.prompt for one in asked.questions] == [prompt(examples, q) for q, _ in QUESTIONS[:3]]
    assert asked.ready_prompt == prompt(examples, READY_QUESTION)


def test_a_question_without_a_right_answer_or_that_stands_twice_is_refused(tmp_path: Path) -> None:
    none = local_dataset(jsonl(tmp_path / "none.jsonl", [*QUESTIONS, ("Six?", "six")]))
    with pytest.raises(ManifestError, match="its answer has no number") as caught:
        task(none, 0, 5)
    assert caught.value.where == "none.jsonl, question 5"
    example = local_dataset(jsonl(tmp_path / "example.jsonl", [("Six?", "six"), *QUESTIONS]))
    with pytest.raises(ManifestError, match="its answer has no number") as caught:
        task(example, 1, 2)
    assert caught.value.where == "example.jsonl, example 1"
    twice = local_dataset(jsonl(tmp_path / "twice.jsonl", [*QUESTIONS, QUESTIONS[1]]))
    with pytest.raises(ManifestError, match="is also question 2"):
        task(twice, 0, 5)
    with pytest.raises(UsageError, match="5 questions are wanted"):
        task(twice, 1, 5)


def job(data: TaskData, folder: Path, *settings: str) -> EvalJob:
    """The job of the project's experiment on this machine, with a checkpoint of one small file and no packages."""
    (folder / "config.json").write_text("{}")
    options = ["workload.shots=2", f"workload.questions={len(QUESTIONS)}", "workload.max_new_tokens=6", *settings]
    resolved = resolve(project.manifests_dir(), "llama-gsm8k", "host", settings=options)
    resolved = dataclasses.replace(resolved, stack=resolved.stack.model_copy(update={"packages": {}}))
    target = Target("host", host_arch(platform.machine()), emulated=False)
    workload = resolved.experiment.workload
    assert isinstance(workload, Eval)
    pins = Pins({"config.json": str(file_sha256(folder / "config.json"))}, "b" * 64)
    return EvalJob(resolved, target, pins, workload, data)


def test_the_runner_reads_what_the_harness_writes(data: TaskData, tmp_path: Path) -> None:
    made = job(data, tmp_path)
    for variant in made.resolved.variants:
        document = json.loads(json.dumps(made.spec(variant, Identity("r", "r/none", 0))))
        spec = eval_spec.parse(document)
        (load,) = spec.loads
        assert [one.prompt for one in load.requests] == [one.prompt for one in made.task.questions]
        assert (spec.output_len, load.concurrency, load.name) == (6, 1, "gsm8k")
        assert spec.server_args == made.expected(variant).server_args
        assert (spec.server_args["disable_radix_cache"], spec.server_args["skip_tokenizer_init"]) == (False, False)
        assert spec.server_args["max_total_tokens"] >= 2 * (4096 + 6)


def test_a_row_expects_each_projection_on_its_path_at_any_number_of_rows(data: TaskData, tmp_path: Path) -> None:
    made = job(data, tmp_path)
    native, kernels = (made.expected(variant) for variant in made.resolved.variants)
    projections = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head")
    operators = ("decode_attention", "extend_attention", "norm", "gated_activation", "rotary_embedding")
    assert [(route.projection, route.path) for route in native.routing] == [
        (name, "torch") for name in (*projections, *operators)
    ]
    assert [(route.projection, route.path) for route in kernels.routing] == [
        *((name, "packed") for name in projections),
        *((name, "kernels") for name in operators),
    ]
    assert (native.ops, kernels.ops) == (
        {},
        dict.fromkeys(
            [
                *("decode_attention_cpu", "extend_attention_cpu", "fused_add_rmsnorm_cpu", "rmsnorm_cpu"),
                *("rotary_embedding_cpu", "silu_and_mul_cpu", "weight_packed_linear_out"),
            ]
        ),
    )
    assert native.load is not None and (native.load.requests, native.load.layers) == (4, 2)


def run(made: EvalJob, script: dict[str, str], folder: Path) -> Record:
    """The record of torch-native, asked by the real runner of a server that answers by the script."""
    variant = made.resolved.variants[0]
    spec = made.spec(variant, Identity("r", "torch-native/none", 0))
    spec |= {"model_path": str(folder), "events_path": str(folder / "events.jsonl"), "sample_interval_s": 0.05}
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "script.json").write_text(json.dumps(script))
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from rvvbench.runner import eval_spec, serving
sys.exit(serving.main(eval_spec.load({str(folder / "spec.json")!r}), [sys.executable, {str(SERVER)!r}]))
"""
    files = {"SPEC": str(folder / "spec.json"), "SCRIPT": str(folder / "script.json")}
    env = {**os.environ, **variant_environment(made.resolved, made.target, variant), **files}
    ended = subprocess.run([sys.executable, "-c", code], env=env, check=False, timeout=60).returncode
    measured = Measured(read_events(folder / "events.jsonl"), ended, _Unwatched())  # type: ignore[arg-type]
    experiment = made.resolved.experiment.model_copy(update={"variants": ["torch-native"]})
    resolved = dataclasses.replace(made.resolved, experiment=experiment, variants=[variant])
    image = Image(name="runtime", digest="sha256:" + "c" * 64, arch=made.target.arch)
    return build_record(
        run_id="r",
        created="2026-12-01T10:15:00Z",
        experiment=experiment.name,
        title=experiment.title,
        heading=made.heading(),
        target=RecordTarget(kind="host", name=resolved.board.name),
        manifest=resolved.plain(),
        pins={
            "image": image.model_dump(exclude={"relocked"}),
            "checkpoint": {"kind": "synthetic", "files": dict(made.pins.checkpoint_files)},
            "kernels": None,
            "dataset": made.data.pins(),
        },
        environment=environment(made.target, resolved.board),
        machine={},
        conditions_before={},
        conditions_after={},
        image=image,
        rows=made.rows(variant, [measured]),
        replay="",
    )


class _Unwatched:
    def observation(self, _: object) -> None:
        return None


SCRIPT = {
    "Three hens?\nAnswer:": " #### 3",
    "A thousand hens?\nAnswer:": " I count and count and never end",
    "No hens?\nAnswer:": " It is $0.00",
    "Five?\nAnswer:": " #### 6",
}


def test_a_few_questions_become_a_valid_row_whose_score_can_be_derived_again(data: TaskData, tmp_path: Path) -> None:
    record = run(job(data, tmp_path), SCRIPT, tmp_path)
    (row,) = record.rows
    assert row.validity.valid, row.validity
    figures = {name: figure.median for name, figure in row.figures.items()}
    assert (figures["accuracy_percent"], figures["right"], figures["invalid"], figures["cut"]) == (50.0, 2.0, 1.0, 1.0)
    assert figures["cached_tokens"]
    answers = named(row.processes[0].events, "answer")
    assert [answer["request"] for answer in answers] == ["ready", "q0", "q1", "q2", "q3"]
    # The checkpoint of this test is not the synthetic one of the manifest; nothing else is to be found.
    assert [finding.where for finding in verify(record)] == ["pins.checkpoint.files"]
    assert record.heading.dataset == f"local few.jsonl, sha256 {data.test_file[1][:12]}"


def test_questions_that_are_asked_together_give_a_valid_row_too(data: TaskData, tmp_path: Path) -> None:
    record = run(job(data, tmp_path, "workload.concurrency=2"), SCRIPT, tmp_path)
    (row,) = record.rows
    assert row.concurrency == 2
    assert row.figures["accuracy_percent"].median == 50.0
    # Two that never were in flight together would be a reason, and this server is quick.
    assert {reason.id for reason in row.validity.reasons} <= {"concurrency"}


def test_a_server_that_hides_what_its_cache_gave_is_found(data: TaskData, tmp_path: Path) -> None:
    record = run(job(data, tmp_path, "workload.server.disable_radix_cache=true"), SCRIPT, tmp_path)
    reasons = [reason.text for reason in record.rows[0].validity.reasons if reason.id == "cached-tokens"]
    assert len(reasons) == 4
    assert "came from the server's cache, which is declared off" in reasons[0]


def test_a_person_hears_how_many_answers_are_right_so_far() -> None:
    story = Story({f"q{index}": "18" for index in range(20)})
    assert story({"event": "answer", "request": "ready", "text": "18"}) is None
    said: list[Say | None] = []
    for index in range(20):
        event: dict[str, Any] = {"event": "answer", "request": f"q{index}", "text": "#### 18" if index % 2 else "no"}
        said.append(story(event))
    assert said[0] == Say("1 of 20 questions answered, 0 right", stays=False)
    assert said[-1] == Say("20 of 20 questions answered, 10 right", stays=True)
    assert sum(one is not None and one.stays for one in said) == 10
