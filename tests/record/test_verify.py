"""Tampering with one place of a record, and the finding that must name it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvvbench.record.build import seal_of
from rvvbench.record.finding import Finding
from rvvbench.record.identity import digest, identity
from rvvbench.record.schema import Record
from rvvbench.record.validity import assess
from rvvbench.record.verify import verify

from . import sample
from .test_metrics import json_values

Plain = dict[str, Any]


def tampered(change: Callable[[Plain], None], *, resealed: bool = False) -> list[Finding]:
    plain = copy.deepcopy(sample.record().plain())
    change(plain)
    record = Record.model_validate(plain)
    if resealed:
        record = record.model_copy(update={"seal": seal_of(record)})
    return verify(record)


def process(plain: Plain) -> Plain:
    found: Plain = plain["rows"][1]["processes"][0]
    return found


def event(plain: Plain, name: str, nth: int = 0) -> Plain:
    return [event for event in process(plain)["events"] if event["event"] == name][nth]


def test_an_untouched_record_has_no_findings() -> None:
    assert verify(sample.record()) == []


def test_an_honestly_invalid_record_has_no_findings() -> None:
    broken = sample.row(
        "rvv-kernels", processes=sample.ran(sample.events()[:5], damage=["line 6: the last line is torn"])
    )
    record = sample.record(sample.row(), broken)
    assert not record.valid
    assert verify(record) == []


def test_a_figure_changed_in_the_last_bit_is_found() -> None:
    def change(plain: Plain) -> None:
        process(plain)["figures"]["decode_rate_tokens_per_s"]["value"] = 6.400000000000001

    (finding,) = tampered(change, resealed=True)
    assert finding.id == "figure"
    assert finding.where == "row rvv-kernels/none, process 0, decode_rate_tokens_per_s"
    assert "stored 6.400000000000001 tok/s" in finding.text and "derived 6.4 tok/s" in finding.text


def test_a_figure_changed_everywhere_it_is_derived_to_is_still_found() -> None:
    def change(plain: Plain) -> None:
        process(plain)["figures"]["ttft_s"]["value"] = 0.5
        for field in ("median", "min", "max"):
            plain["rows"][1]["figures"]["ttft_s"][field] = 0.5

    where = [finding.where for finding in tampered(change, resealed=True)]
    assert where == ["row rvv-kernels/none, process 0, ttft_s", "row rvv-kernels/none, ttft_s"]


def _relabel(plain: Plain) -> None:
    process(plain)["figures"]["ttft_s"]["definition"] = "ttft.one_batch/1"


def _drop_figure(plain: Plain) -> None:
    del plain["rows"][1]["figures"]["ttft_s"]


def _add_figure(plain: Plain) -> None:
    plain["rows"][1]["figures"]["made_up"] = plain["rows"][1]["figures"]["ttft_s"]


def _event_time(plain: Plain) -> None:
    event(plain, "decode", 6)["end_ns"] -= 1_000_000


def _unused_field(plain: Plain) -> None:
    event(plain, "supervisor_start")["argv"] = ["other"]


def _token(plain: Plain) -> None:
    event(plain, "decode", 6)["token_ids"] = [99]


def _pin_of_the_record(plain: Plain) -> None:
    plain["pins"]["packages"]["torch"] = "2.6.0"


def _manifest(plain: Plain) -> None:
    plain["manifest"]["experiment"]["workload"]["seed"] = 2


def _environment(plain: Plain) -> None:
    plain["environment"]["OMP_NUM_THREADS"] = "8"


def _pin_of_a_process(plain: Plain) -> None:
    event(plain, "pin")["observed"] = "x86_64"


def _expected(plain: Plain) -> None:
    plain["rows"][1]["expected"]["threads"] = 8


def _validity(plain: Plain) -> None:
    plain["rows"][1]["validity"] = {"status": "invalid", "reasons": [{"id": "a", "text": "b", "process": None}]}


def _agreement(plain: Plain) -> None:
    plain["agreement"]["rows"][0]["max_logprob_difference"] = 0.5


def _exit(plain: Plain) -> None:
    process(plain)["exit_code"] = 1


@pytest.mark.parametrize(
    ("change", "ids"),
    [
        (_relabel, {"figure"}),
        (_drop_figure, {"figure"}),
        (_add_figure, {"figure"}),
        (_event_time, {"events", "figure"}),
        (_unused_field, {"events"}),
        (_token, {"events", "agreement"}),
        (_pin_of_the_record, {"identity"}),
        (_manifest, {"identity"}),
        (_environment, {"identity", "expected"}),
        (_pin_of_a_process, {"events", "validity"}),
        (_expected, {"validity", "expected"}),
        (_validity, {"validity"}),
        (_agreement, {"agreement"}),
        (_exit, {"exit-status", "validity"}),
    ],
)
def test_tampering_is_found_even_where_the_seal_was_made_anew(change: Callable[[Plain], None], ids: set[str]) -> None:
    assert {finding.id for finding in tampered(change, resealed=True)} == ids
    assert {finding.id for finding in tampered(change)} == ids | {"seal"}


@pytest.mark.parametrize("field", ["created", "replay", "run_id"])
def test_what_nothing_derives_from_is_kept_by_the_seal(field: str) -> None:
    def change(plain: Plain) -> None:
        plain[field] = "2026-01-01T00:00:00Z"[: 4 if field == "run_id" else None]

    assert [finding.id for finding in tampered(change)] == ["seal"]


def test_an_event_changed_with_its_digest_shows_in_the_figures() -> None:
    def change(plain: Plain) -> None:
        _event_time(plain)
        process(plain)["events_sha256"] = digest(process(plain)["events"])

    assert {finding.id for finding in tampered(change, resealed=True)} == {"figure"}


def put(*path: Any, value: Any) -> Callable[[Plain], None]:
    """A change of the place at `path` to `value`."""

    def change(plain: Plain) -> None:
        place: Any = plain
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return change


def sealed_anew(*changes: Callable[[Plain], None]) -> list[Finding]:
    """Findings after changes that were hidden well: identity, validity and seal fit again."""
    plain = copy.deepcopy(sample.record().plain())
    for change in changes:
        change(plain)
    plain["identity"] = identity(plain["manifest"], plain["pins"], plain["environment"])
    record = Record.model_validate(plain)
    rows = tuple(row.model_copy(update={"validity": assess(row)}) for row in record.rows)
    record = record.model_copy(update={"rows": rows})
    return verify(record.model_copy(update={"seal": seal_of(record)}))


KERNEL_ROW = ("rows", 1, "expected")
ROUTE = {"projection": "qkv_proj", "m": 64, "path": "packed", "calls": 2, "reason": ""}
DECODE_ROUTE = {**ROUTE, "m": 1, "calls": 14}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("experiment",), "other", "experiment"),
        (("title",), "other", "title"),
        (("heading", "model"), "Llama-3.2-1B", "heading.model"),
        (("heading", "weights"), "hub", "heading.weights"),
        (("heading", "dtype"), "float32", "heading.dtype"),
        (("heading", "tensor_parallel"), 2, "heading.tensor_parallel"),
        (("manifest", "experiment", "workload", "input_len"), 128, "heading.input_len"),
        (("manifest", "experiment", "workload", "output_len"), 9, "heading.output_len"),
        (("manifest", "experiment", "workload", "batch_size"), 2, "heading.batch_size"),
        (("target", "name"), "bpi-f3", "target.name"),
        (("manifest", "target"), "board", "target.kind"),
        (("manifest", "experiment", "board"), "bpi-f3", "manifest.experiment.board"),
        (("manifest", "experiment", "model"), "llama-3.2-1b", "manifest.experiment.model"),
        (("manifest", "experiment", "variants"), ["torch-native"], "manifest.variants"),
        (("rows", 0, "cache_state"), "cold", "row torch-native/cold"),
        (("manifest", "variants", 0, "name"), "other", "rows"),
        (("manifest", "variants"), [], "rows"),
        (("image", "name"), "other", "image.name"),
        (("image", "arch"), "amd64", "image.arch"),
        (("image", "digest"), "sha256:" + "11" * 32, "image.digest"),
        (("pins", "image"), None, "image.digest"),
        (("pins", "checkpoint", "kind"), "hub", "heading.weights"),
        (("pins", "checkpoint", "files"), {"model.safetensors": "11" * 32}, "pins.checkpoint.files"),
    ],
)
def test_what_the_record_says_of_itself_must_be_what_manifest_and_pins_say(
    path: tuple[Any, ...], value: Any, where: str
) -> None:
    assert ("declared", where) in [(finding.id, finding.where) for finding in sealed_anew(put(*path, value=value))]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ((*KERNEL_ROW, "processes"), 3, "processes"),
        ((*KERNEL_ROW, "threads"), 8, "threads"),
        ((*KERNEL_ROW, "vlen_bits"), None, "vlen_bits"),
        ((*KERNEL_ROW, "machine"), "x86_64", "machine"),
        ((*KERNEL_ROW, "packages"), {}, "packages"),
        ((*KERNEL_ROW, "packages", "torch"), "2.6.0", "packages"),
        ((*KERNEL_ROW, "checkpoint_files"), {}, "checkpoint_files"),
        ((*KERNEL_ROW, "environment"), {}, "environment"),
        ((*KERNEL_ROW, "kernels_sha256"), "11" * 32, "kernels_sha256"),
        ((*KERNEL_ROW, "kernels_sha256"), None, "kernels_sha256"),
        (("pins", "kernels"), None, "kernels_sha256"),
        ((*KERNEL_ROW, "kernel_suffix"), "_portable", "kernel_suffix"),
        ((*KERNEL_ROW, "kernel_suffix"), None, "kernel_suffix"),
        ((*KERNEL_ROW, "ops"), {"weight_packed_linear_out": 8}, "ops"),
        ((*KERNEL_ROW, "ops"), {"other": 16}, "ops"),
        ((*KERNEL_ROW, "ops"), {}, "ops"),
        ((*KERNEL_ROW, "server_args", "dtype"), "float32", "server_args.dtype"),
        ((*KERNEL_ROW, "server_args"), {}, "server_args.attention_backend"),
        ((*KERNEL_ROW, "server_args", "tp_size"), True, "server_args.tp_size"),
        (("manifest", "variants", 1, "server_args"), {"disable_cuda_graph": True}, "server_args.disable_cuda_graph"),
        ((*KERNEL_ROW, "routing"), [], "routing"),
        ((*KERNEL_ROW, "routing"), [ROUTE, {**DECODE_ROUTE, "path": "torch"}], "routing"),
        ((*KERNEL_ROW, "routing"), [ROUTE], "routing"),
        ((*KERNEL_ROW, "routing"), [ROUTE, {**DECODE_ROUTE, "calls": 13}], "routing"),
        ((*KERNEL_ROW, "routing"), [{**ROUTE, "m": 63}, DECODE_ROUTE], "routing"),
        (("manifest", "variants", 1, "projections"), ["qkv_proj", "lm_head"], "routing"),
        (("manifest", "variants", 1, "linear"), "torch", "routing"),
    ],
)
def test_what_a_row_expects_must_be_what_manifest_and_pins_say(path: tuple[Any, ...], value: Any, field: str) -> None:
    where = f"row rvv-kernels/none, expected.{field}"
    assert ("expected", where) in [(finding.id, finding.where) for finding in sealed_anew(put(*path, value=value))]


def test_expectations_that_pins_and_manifest_leave_as_empty_prove_nothing() -> None:
    def emptied(plain: Plain) -> None:
        plain["pins"]["checkpoint"]["files"] = {}
        for row in plain["rows"]:
            row["expected"]["checkpoint_files"] = {}

    found = [(one.id, one.where) for one in sealed_anew(emptied) if one.text.startswith("is empty")]
    assert found == [
        ("expected", f"row {row}, expected.checkpoint_files") for row in ("torch-native/none", "rvv-kernels/none")
    ]


def test_a_row_that_was_left_out_is_found() -> None:
    def without(plain: Plain) -> None:
        del plain["rows"][0]
        plain["agreement"] = {"reference": "rvv-kernels/none", "rows": []}

    assert [(finding.id, finding.where) for finding in sealed_anew(without)] == [("declared", "rows")]


def test_a_variant_that_overrules_the_heading_is_an_honestly_invalid_row() -> None:
    assert sealed_anew(put("manifest", "variants", 0, "server_args", value={"dtype": "float32"})) == []


@pytest.mark.parametrize("path", [("manifest",), ("pins",)])
@pytest.mark.parametrize("value", [{}, {"variants": 3, "experiment": []}])
def test_a_record_without_its_manifest_or_pins_is_found(path: tuple[str], value: Plain) -> None:
    assert "declared" in {finding.id for finding in sealed_anew(put(*path, value=value))}


@settings(max_examples=100)
@given(
    st.sampled_from(
        [
            ("manifest", "experiment"),
            ("manifest", "experiment", "cache_states"),
            ("manifest", "variants"),
            ("manifest", "variants", 1),
            ("manifest", "variants", 1, "projections"),
            ("manifest", "variants", 1, "server_args"),
            ("manifest", "model", "synthetic", "files"),
            ("manifest", "model", "config"),
            ("pins", "checkpoint"),
            ("pins", "kernels"),
        ]
    ),
    json_values,
)
def test_whatever_stands_in_manifest_and_pins_they_are_compared(path: tuple[Any, ...], value: Any) -> None:
    sealed_anew(put(*path, value=value))
