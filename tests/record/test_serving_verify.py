"""Tampering with a serving record, and the finding that must name it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvvbench.record.build import seal_of
from rvvbench.record.finding import Finding
from rvvbench.record.identity import identity
from rvvbench.record.operators import PACKED_LINEAR_OP
from rvvbench.record.schema import Record
from rvvbench.record.tokens import agreement_of
from rvvbench.record.validity import assess
from rvvbench.record.verify import verify

from . import serving_sample
from .serving_sample import events, expected, load, ran, routes, row
from .test_metrics import json_values
from .test_verify import Plain, put

SAMPLE = serving_sample.record().plain()


def sealed_anew(*path: Any, value: Any) -> list[Finding]:
    """Findings after a change that was hidden well: identity, validity and seal fit again."""
    plain = copy.deepcopy(SAMPLE)
    put(*path, value=value)(plain)
    plain["identity"] = identity(plain["manifest"], plain["pins"], plain["environment"])
    record = Record.model_validate(plain)
    rows = tuple(row.model_copy(update={"validity": assess(row)}) for row in record.rows)
    record = record.model_copy(update={"rows": rows})
    return verify(record.model_copy(update={"seal": seal_of(record)}))


def test_an_untouched_record_has_no_findings() -> None:
    record = serving_sample.record()
    assert record.valid
    assert verify(record) == []
    assert verify(Record.model_validate(record.plain())) == []


def test_an_open_loop_has_no_findings_either() -> None:
    open_loop = load(None, name="fixed-0.5", mode="open", arrivals="fixed", rate_per_s=0.5)
    one = row(expects=expected(1, load=open_loop, routing=routes(4)))
    assert not one.validity.valid
    assert verify(serving_sample.record(one)) == []


@pytest.mark.parametrize(
    ("drawn", "declared", "where"),
    [
        (0, None, []),
        (0, 0, []),
        (5, None, ["row torch-native/none/poisson-0.5, load_start of poisson-0.5"]),
        (0, 5, ["row torch-native/none/poisson-0.5, expected.load.seed"]),
    ],
)
def test_poisson_arrivals_are_drawn_from_the_manifests_seed(drawn: int, declared: int | None, where: list[str]) -> None:
    poisson = {"name": "poisson-0.5", "mode": "open", "arrivals": "poisson", "rate_per_s": 0.5, "seed": declared}
    start = {"event": "load_start", "t_ns": 10**12, "pid": 1, "load": "poisson-0.5", "seed": drawn}
    one = row(expects=expected(1, load=load(None, **poisson), routing=routes(4)), processes=[ran([*events(), start])])
    assert [finding.where for finding in verify(serving_sample.record(one))] == where


def test_an_honestly_invalid_record_has_no_findings() -> None:
    record = serving_sample.record(*(row(c, processes=[ran(events()[:70])]) for c in (1, 2)))
    assert not record.valid
    assert verify(record) == []


def test_figures_are_derived_again() -> None:
    where = ("rows", 1, "processes", 0, "figures", "throughput_output_tokens_per_s", "value")
    (finding,) = sealed_anew(*where, value=1.6)
    assert finding.where == "row torch-native/none/c2, process 0, throughput_output_tokens_per_s"


WORKLOAD = ("manifest", "experiment", "workload")
ROW = ("rows", 3, "expected")


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ((*WORKLOAD, "concurrency"), [1], "row torch-native/none/c2"),
        ((*WORKLOAD, "concurrency"), [1, 2, 4], "rows"),
        ((*WORKLOAD, "concurrency"), None, "row torch-native/none/c1"),
        ((*WORKLOAD, "open_loops"), [{"arrivals": "fixed", "rate_per_s": 1.0}], "rows"),
        ((*WORKLOAD, "requests"), 5, "heading.requests"),
        ((*WORKLOAD, "kind"), "one-batch", "heading.workload"),
        ((*WORKLOAD, "input_len"), 63, "heading.input_len"),
        ((*WORKLOAD, "server", "disable_radix_cache"), False, "{row}, expected.server_args.disable_radix_cache"),
        ((*WORKLOAD, "server"), 3, "{row}, expected.server_args"),
        (("manifest", "model", "config", "num_hidden_layers"), 3, "{row}, expected.load.layers"),
        (("manifest", "variants", 1, "server_args"), {"x": 1}, "{row}, expected.server_args.x"),
        (("manifest", "variants", 1, "linear"), "torch", "{row}, expected.routing"),
        (("manifest", "variants", 1, "projections"), ["qkv_proj"], "{row}, expected.routing"),
        ((*ROW, "ops"), {}, "{row}, expected.ops"),
        ((*ROW, "ops"), {PACKED_LINEAR_OP: 144}, "{row}, expected.ops"),
        ((*ROW, "load", "layers"), None, "{row}, expected.load.layers"),
        ((*ROW, "load", "name"), "c3", "{none}"),
        ((*ROW, "routing", 0, "calls"), 7, "{row}, expected.routing"),
        ((*ROW, "routing", 0, "m"), 3, "{row}, expected.routing"),
        ((*ROW, "routing", 0, "path"), "torch", "{row}, expected.routing"),
        ((*ROW, "server_args", "stream_interval"), 8, "{row}, expected.server_args.stream_interval"),
        ((*ROW, "threads"), 8, "{row}, expected.threads"),
        (("agreement", "rows", 0, "reference"), "torch-native/none/c2", "agreement"),
    ],
)
def test_what_a_row_expects_must_be_what_the_manifest_says(path: tuple[Any, ...], value: Any, where: str) -> None:
    found = [finding.where for finding in sealed_anew(*path, value=value)]
    assert found
    if where != "{none}":
        assert where.format(row="row rvv-kernels/none/c2") in found


@pytest.mark.parametrize(("row", "projection"), [(1, "lm_head"), (3, "lm_head"), (3, "o_proj")])
def test_a_projection_that_has_no_route_is_found(row: int, projection: str) -> None:
    routing = [route for route in SAMPLE["rows"][row]["expected"]["routing"] if route["projection"] != projection]
    found = [finding.text for finding in sealed_anew("rows", row, "expected", "routing", value=routing)]
    assert f"{projection} is not there, and the model has it" in found


def test_a_variant_that_the_server_settings_overrule_is_no_damage() -> None:
    # The workload's settings come last; they are what the server is given, and the variant's own is not.
    assert sealed_anew("manifest", "variants", 1, "server_args", value={"stream_interval": 4}) == []


@settings(max_examples=60)
@given(
    st.sampled_from(
        [
            WORKLOAD,
            (*WORKLOAD, "concurrency"),
            (*WORKLOAD, "open_loops"),
            (*WORKLOAD, "server"),
            ("manifest", "experiment", "cache_states"),
            ("manifest", "variants", 1),
        ]
    ),
    json_values,
)
def test_whatever_stands_in_the_manifest_it_is_compared(path: tuple[Any, ...], value: Any) -> None:
    sealed_anew(*path, value=value)


def test_each_row_is_compared_with_the_first_row_of_its_load() -> None:
    other = {"packed": True, "first_token": 12}
    found = agreement_of([row(1), row(2), row(1, packed=True), row(2, **other)])
    assert found.reference == "torch-native/none/c1"
    assert [(one.row, one.reference, one.tokens_equal) for one in found.rows] == [
        ("rvv-kernels/none/c1", "torch-native/none/c1", True),
        ("rvv-kernels/none/c2", "torch-native/none/c2", False),
    ]
    parted = found.rows[1].first_difference
    assert parted is not None
    assert (parted.sequence, parted.position, parted.token, parted.reference_token) == (0, 0, 12, 11)
    assert found.rows[1].logprob_reason == "the server was not asked for log-probabilities"


def test_a_request_that_got_fewer_tokens_leaves_the_agreement_unknown() -> None:
    short = [e for e in events() if not (e["event"] == "chunk" and e["request"] == "c1-2" and e["total_tokens"] == 8)]
    found: Plain = agreement_of([row(1), row(1, packed=True, processes=[ran(short)])]).rows[0].model_dump()
    assert found["tokens_equal"] is None
    assert found["reason"] == "the events of rvv-kernels/none/c1 do not hold every token"
