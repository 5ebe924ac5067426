"""A record of a task holds against itself, and every change of it is found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rvvbench.record.build import seal_of
from rvvbench.record.finding import Finding
from rvvbench.record.identity import digest, identity
from rvvbench.record.schema import Record
from rvvbench.record.verify import verify

from . import task_sample

SAMPLE = task_sample.record().plain()
WORKLOAD = ("manifest", "experiment", "workload")
ROW = ("rows", 1, "expected")


def changed(*path: Any, value: Any, at: str = "") -> Record:
    """The sample record with something else at `path`, and an identity and a seal that fit it."""
    plain = json.loads(json.dumps(SAMPLE))
    node: Any = plain
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    plain["identity"] = identity(plain["manifest"], plain["pins"], plain["environment"])
    record = Record.model_validate(plain)
    return record.model_copy(update={"seal": seal_of(record)})


def found(*path: Any, value: Any) -> list[Finding]:
    return verify(changed(*path, value=value))


def test_the_sample_holds() -> None:
    assert verify(Record.model_validate(SAMPLE)) == []


def test_a_score_that_does_not_follow_from_the_answers_is_found() -> None:
    (finding,) = found("rows", 0, "figures", "accuracy_percent", "median", value=75.0)
    assert finding.where == "row torch-native/none/gsm8k, accuracy_percent"
    assert finding.text.startswith("stored 75.0")


def test_an_answer_that_was_rewritten_is_found_by_the_digest_of_the_events_and_by_the_score() -> None:
    events = SAMPLE["rows"][0]["processes"][0]["events"]
    index = next(i for i, event in enumerate(events) if event["event"] == "answer" and event["request"] == "q1")
    path = ("rows", 0, "processes", 0, "events", index, "text")
    ids = {(finding.id, finding.where) for finding in found(*path, value="#### 8")}
    assert ("events", "row torch-native/none/gsm8k, process 0") in ids
    assert ("figure", "row torch-native/none/gsm8k, accuracy_percent") in ids
    assert ("agreement", "agreement") in ids


def test_a_right_answer_that_was_rewritten_is_found_by_the_score() -> None:
    where = {finding.where for finding in found(*ROW, "task", "questions", 1, "gold", value="7")}
    assert "row rvv-kernels/none/gsm8k, accuracy_percent" in where
    assert "row rvv-kernels/none/gsm8k, expected.task" in where


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ((*WORKLOAD, "questions"), 5, "heading.requests"),
        ((*WORKLOAD, "shots"), 4, "heading.shots"),
        ((*WORKLOAD, "task"), "other", "heading.task"),
        ((*WORKLOAD, "kind"), "serving", "heading.workload"),
        ((*WORKLOAD, "dataset"), "other", "manifest.experiment.workload.dataset"),
        ((*WORKLOAD, "max_prompt_tokens"), 127, "heading.input_len"),
        ((*WORKLOAD, "max_new_tokens"), 9, "{row}, expected.output_len"),
        ((*WORKLOAD, "concurrency"), 2, "{row}, expected.task"),
        ((*WORKLOAD, "server", "disable_radix_cache"), True, "{row}, expected.server_args.disable_radix_cache"),
        ((*WORKLOAD, "server"), None, "{row}, expected.server_args"),
        (("manifest", "dataset", "hub", "revision"), "f" * 40, "pins.dataset.revision"),
        (("manifest", "dataset", "hub", "repo"), "openai/other", "pins.dataset.repo"),
        (("manifest", "dataset", "splits", "test"), "main/other.parquet", "pins.dataset.test"),
        (("manifest", "dataset"), None, "pins.dataset.repo"),
        (("pins", "dataset", "files"), {}, "heading.dataset"),
        (("pins", "dataset", "kind"), "local", "heading.dataset"),
        (("pins", "dataset"), 3, "heading.dataset"),
        (("heading", "dataset"), "openai/gsm8k", "heading.dataset"),
        (("manifest", "experiment", "cache_states"), ["none", "cold"], "rows"),
        (("manifest", "variants", 1, "projections"), ["qkv_proj"], "{row}, expected.routing"),
        ((*ROW, "routing", 0, "path"), "torch", "{row}, expected.routing"),
        ((*ROW, "routing", 0, "calls"), 3, "{row}, expected.routing"),
        ((*ROW, "routing"), SAMPLE["rows"][1]["expected"]["routing"] * 2, "{row}, expected.routing"),
        ((*ROW, "routing"), SAMPLE["rows"][1]["expected"]["routing"][:4], "{row}, expected.routing"),
        ((*ROW, "routing", 7, "modules"), 3, "{row}, expected.routing"),
        ((*ROW, "routing", 7, "m"), 3, "{row}, expected.routing"),
        ((*ROW, "routing", 7, "path"), "torch", "{row}, expected.routing"),
        ((*ROW, "ops"), {"weight_packed_linear_out": None}, "{row}, expected.ops"),
        ((*ROW, "load", "qk_norm_heads"), [], "{row}, expected.load.qk_norm_heads"),
        ((*ROW, "accuracy"), None, "{row}, expected.accuracy"),
        ((*ROW, "environment", "SGLANG_RVV_ELEMENTWISE"), "torch", "{row}, expected.environment"),
        (("manifest", "variants", 1, "elementwise"), "torch", "{row}, expected.routing"),
        (("manifest", "variants", 1, "kv_cache_dtype"), "int8", "{row}, expected.ops"),
        (("manifest", "variants", 1, "packed_budget_percent"), 50, "{row}, expected.routing"),
        ((*ROW, "task", "shots"), 7, "{row}, expected.task"),
        ((*ROW, "load", "layers"), 3, "{row}, expected.load.layers"),
        (("agreement", "rows", 0, "answers_differ"), 0, "agreement"),
    ],
)
def test_what_the_record_says_twice_must_agree(path: tuple[Any, ...], value: Any, where: str) -> None:
    places = [finding.where for finding in found(*path, value=value)]
    assert where.format(row="row rvv-kernels/none/gsm8k") in places


def test_the_routes_of_a_variant_that_says_nothing_of_operators_cannot_be_derived() -> None:
    variant = {name: value for name, value in SAMPLE["manifest"]["variants"][1].items() if name != "elementwise"}
    where = [finding.where for finding in found("manifest", "variants", 1, value=variant)]
    assert "row rvv-kernels/none/gsm8k, expected.routing" in where


def test_data_of_this_machine_is_named_by_file_and_hash() -> None:
    data = {**task_sample.DATA, "kind": "local", "repo": None, "revision": None, "train": "a.jsonl", "test": "a.jsonl"}
    data["files"] = {"a.jsonl": digest("a")}
    plain = json.loads(json.dumps(SAMPLE))
    plain["pins"]["dataset"] = data
    plain["heading"]["dataset"] = f"local a.jsonl, sha256 {digest('a')[:12]}"
    plain["identity"] = identity(plain["manifest"], plain["pins"], plain["environment"])
    record = Record.model_validate(plain)
    assert verify(record.model_copy(update={"seal": seal_of(record)})) == []
