"""A row is as cold or as warm as it declares, or it is not valid and says what was observed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rvvbench.record.compile_figure import COMPILE
from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table
from rvvbench.record.verify import verify

from . import compiled_sample, sample, whole_model
from .compiled_sample import compiled, proof, row


def reasons(of: Any) -> list[tuple[str, str]]:
    return [(one.id, one.text) for one in of.validity.reasons]


@pytest.mark.parametrize("state", ["cold", "warm"])
def test_a_process_that_proves_its_state_makes_a_valid_row(state: str) -> None:
    assert reasons(row(state)) == []


def test_cold_that_hit_is_declared_cold_and_observed_warm() -> None:
    [(id_, text)] = reasons(row("cold", compiled("warm"), {**proof("warm"), "state": "cold", "origin": None}))
    assert id_ == "cache-state" and text.startswith("declared cold / observed warm: ")


def test_warm_that_missed_is_declared_warm_and_observed_cold() -> None:
    seen = {**proof("cold"), "state": "warm", "origin": proof("warm")["origin"]}
    [(id_, text)] = reasons(row("warm", compiled("cold"), seen))
    assert id_ == "cache-state" and text.startswith("declared warm / observed cold: the cache was empty before; ")
    assert "fxgraph: 0 hits and 9 misses of 9 graphs" in text


ONE_MISS = {"inductor": {"fxgraph_cache_hit": 8, "fxgraph_cache_miss": 1}}


@pytest.mark.parametrize(
    ("state", "event", "seen", "words"),
    [
        ("warm", ONE_MISS, {}, "fxgraph: 8 hits and 1 misses of 9 graphs"),
        ("warm", {"aot_autograd": {"autograd_cache_hit": 8}}, {}, "autograd: 8 hits and 0 misses"),
        ("warm", {"inductor": {"fxgraph_cache_hit": 9, "fxgraph_cache_bypass": 1}}, {}, "1 bypasses"),
        ("warm", {}, {"compiler_calls": proof("cold")["compiler_calls"][:2]}, "1 compilations"),
        ("warm", {}, {"added": ["cd/new.main.so"]}, "1 entries of the cache are new, cd/new.main.so the first"),
        ("warm", {}, {"changed": ["ab/x.main.so"]}, "1 entries of the cache are changed"),
        ("warm", {}, {"removed": ["ab/x.main.so"]}, "1 entries of the cache are gone"),
        ("cold", {"inductor": {"fxgraph_cache_hit": 1, "fxgraph_cache_miss": 8}}, {}, "1 hits and 8 misses"),
        ("cold", {}, {"before": {"entries": 3, "sha256": "0" * 64}}, "the cache had 3 entries before"),
        ("cold", {}, {"compiler_calls": []}, "0 compilations, 9 libraries are new"),
        ("cold", {}, {"added": []}, "nothing new is in the cache"),
    ],
)
def test_one_thing_that_does_not_fit_is_enough(
    state: str, event: dict[str, Any], seen: dict[str, Any], words: str
) -> None:
    [(id_, text)] = reasons(row(state, compiled(state, **event), proof(state, **seen)))
    assert id_ == "cache-state" and text.startswith(f"declared {state} / observed neither cold nor warm: ")
    assert words in text


def alike() -> list[dict[str, Any]]:
    """The artifacts with their sizes; o_proj and down_proj are of one: of nine graphs two are like another."""
    sizes = {"qkv_proj": 1536, "o_proj": 1024, "gate_up_proj": 2048, "down_proj": 1024, "lm_head": 10_240}
    return [
        one | {"out_features": sizes[one["projection"]], "in_features": 1024} for one in compiled_sample.artifacts()
    ]


def looked_up(hits: int, misses: int) -> dict[str, Any]:
    return {
        "inductor": {"fxgraph_cache_hit": hits, "fxgraph_cache_miss": misses},
        "aot_autograd": {"autograd_cache_hit": hits, "autograd_cache_miss": misses},
        "artifacts": alike(),
    }


def test_a_cold_cache_misses_once_for_graphs_that_are_alike() -> None:
    assert reasons(row("cold", compiled("cold", **looked_up(2, 7)))) == []
    assert reasons(row("warm", compiled("warm", **looked_up(9, 0)))) == []
    for hits, misses in ((0, 9), (3, 6), (2, 6)):
        [(id_, text)] = reasons(row("cold", compiled("cold", **looked_up(hits, misses))))
        assert id_ == "cache-state" and f"{hits} hits and {misses} misses of 9 graphs, 7 unlike" in text
    [(id_, text)] = reasons(row("warm", compiled("warm", **looked_up(2, 7))))
    assert id_ == "cache-state" and "2 hits and 7 misses of 9 graphs" in text


@pytest.mark.parametrize(
    ("event", "seen", "words"),
    [
        ({"graphs": 0}, {}, "0 graphs"),
        ({"graphs": None}, {}, "None graphs"),
        ({"inductor": None}, {}, "no counters of inductor"),
        ({"inductor": {"fxgraph_cache_hit": "9"}}, {}, "fxgraph_cache_hit is 9"),
        ({}, {"schema": "other/1"}, "other/1"),
        ({}, {"compiler_calls": None}, "no calls of the compiler"),
        ({}, {"added": None}, "what changed"),
        ({"graphs_before": None}, {}, "before the measured pass"),
        ({"artifacts": None}, {}, "no list of artifacts"),
        ({}, {"origin": None}, "whose origin is None"),
    ],
)
def test_what_cannot_be_read_proves_nothing(event: dict[str, Any], seen: dict[str, Any], words: str) -> None:
    found = reasons(row("warm", compiled("warm", **event), proof("warm", **seen)))
    assert any(id_ == "cache-unproven" and words in text for id_, text in found)


def test_without_the_event_or_the_look_from_outside_nothing_is_proven() -> None:
    assert ("cache-unproven", "0 compiled events, 1 belongs") in reasons(row("warm", event={}))
    looked = "nobody looked at the cache before and after the process"
    assert ("cache-unproven", looked) in reasons(row("warm", seen={}))


def test_a_library_that_is_another_than_the_process_saw_is_found() -> None:
    seen = proof("warm")
    name = next(iter(seen["libraries"]))
    seen["libraries"][name] = "0" * 64
    [(id_, text)] = reasons(row("warm", seen=seen))
    assert id_ == "cache-artifact" and name in text and "0" * 64 in text


def test_an_artifact_that_routes_take_and_nobody_lists_is_found() -> None:
    listed = compiled_sample.artifacts()
    found = reasons(row("cold", compiled("cold", artifacts=listed[1:])))
    first = listed[0]
    text = f"routes take {first['projection']} {first['bucket']} explicit_packed, which is no artifact of the process"
    assert found == [("cache-artifact", text)]


def test_an_artifact_of_no_library_is_found() -> None:
    listed = compiled_sample.artifacts()
    listed[0]["so"] = None
    [(id_, text)] = reasons(row("cold", compiled("cold", artifacts=listed)))
    assert id_ == "cache-artifact" and "None is not in the cache" in text


def test_what_was_compiled_while_it_was_measured_is_told() -> None:
    found = reasons(row("cold", compiled("cold", graphs_before=8)))
    assert found == [("compiled-while-measured", "1 graphs were made while it was measured")]


@pytest.mark.parametrize(("field", "value"), [("threads", 2), ("vlen", 512)])
def test_a_cache_of_another_machine_is_told(field: str, value: int) -> None:
    from rvvbench.record.identity import digest

    other = {**compiled_sample.key(), field: value}
    found = reasons(row("warm", seen=proof("warm", key=other, digest=digest(other)[:16])))
    assert [id_ for id_, _ in found] == ["cache-key"] and f"{field} {value}" in found[0][1]
    assert [id_ for id_, _ in reasons(row("warm", seen=proof("warm", key=other)))] == ["cache-key"]


def test_a_row_that_compiles_nothing_has_no_compiled_event_and_no_cache() -> None:
    happened = sample.events()
    happened.insert(-1, compiled("cold"))
    found = reasons(sample.row(processes=sample.ran(happened)))
    assert [id_ for id_, _ in found] == ["cache-state"] and "nothing compiles" in found[0][1]


def test_a_route_by_another_artifact_is_told() -> None:
    happened = [dict(event) for event in row("cold").processes[0].events]
    for event in happened:
        if event["event"] == "attestation":
            event["routing"] = [dict(line) for line in event["routing"]]
            [line] = [one for one in event["routing"] if (one["projection"], one["m"]) == ("o_proj", 1)]
            line["bucket"] = 2
    made = compiled_sample.whole_model.expected(compiled_sample.VARIANT)
    found = reasons(sample.row(compiled_sample.VARIANT, made, sample.ran(happened)))
    expected = "o_proj at M=1: expected inductor_packed[1] x 14, observed inductor_packed[2] x 14"
    assert ("routing", expected) in found


def test_a_record_of_cold_and_warm_holds_and_its_table_tells_what_was_left_to_compile() -> None:
    made = compiled_sample.record(row("cold"), row("warm"))
    assert verify(made) == [] and made.valid
    assert [one.name for one in made.rows] == ["torch-native/none", "inductor-packed/cold", "inductor-packed/warm"]
    table = comparison_table(made)
    [at] = [index for index, column in enumerate(table.columns) if column.key == COMPILE.name]
    assert [line.cells[at].text for line in table.lines] == ["-", "180", "2.50"]
    assert table.columns[at].definition == "compile.first_calls_emulated/1"


def test_a_warm_cache_that_is_not_what_the_cold_process_left_is_found() -> None:
    other = proof("warm", before={"entries": 18, "sha256": "0" * 64})
    found = verify(compiled_sample.record(row("cold"), row("warm", seen=other)))
    assert [(one.id, one.where) for one in found] == [("cache", "row inductor-packed/warm, process 0, cache")]


def test_a_warm_cache_of_a_process_that_is_not_there_is_found() -> None:
    origin = {"run_id": "r", "row": "inductor-packed/cold", "process": 1}
    found = verify(compiled_sample.record(row("cold"), row("warm", seen=proof("warm", origin=origin))))
    assert [one.id for one in found] == ["cache"] and "no such process" in found[0].text


def test_a_state_that_the_manifest_has_and_no_row_is_found() -> None:
    found = verify(compiled_sample.record(row("cold")))
    assert [one.text for one in found] == ["there is no row of inductor-packed/warm, which the manifest has"]


def test_a_row_that_says_that_it_compiles_nothing_is_found() -> None:
    plain = json.loads(json.dumps(compiled_sample.record(row("cold"), row("warm")).plain()))
    plain["rows"][1]["expected"]["compiles"] = False
    found = verify(Record.model_validate(plain))
    assert any(one.where == "row inductor-packed/cold, expected.compiles" for one in found)


def test_a_proof_that_was_changed_after_the_run_is_found() -> None:
    plain = json.loads(json.dumps(compiled_sample.record(row("cold"), row("warm")).plain()))
    plain["rows"][2]["processes"][0]["cache"]["added"] = ["cd/new.so"]
    found = {one.id for one in verify(Record.model_validate(plain))}
    assert found == {"seal", "validity"}


@pytest.mark.parametrize("variant", ["inductor-row-major", "inductor-packed-rvv-attention"])
def test_every_variant_derives_its_artifacts_from_its_manifest(variant: str) -> None:
    expects = whole_model.expected(variant)
    assert expects.compiles and any(route.bucket for route in expects.routing)
    assert (expects.kernels_sha256 is None) is (variant == "inductor-row-major")
