"""What a process compiled, as the plugin reports it and the runner tells it."""

from __future__ import annotations

import copy
import hashlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rvvbench.runner import compiled, spec
from rvvbench.runner.failure import SpecError

REPORT: dict[str, Any] = {
    "graphs": 2,
    "inductor": {"fxgraph_cache_miss": 2},
    "aot_autograd": {"autograd_cache_miss": 2},
    "compile_seconds": 41.5,
    "artifacts": [
        {
            "projection": "o_proj",
            "rows": 1,
            "out_features": 1024,
            "in_features": 1024,
            "mode": "explicit_packed",
            "so": "/rvvbench/cache/ab/x.main.so",
        }
    ],
}


@pytest.fixture
def regional(document: dict[str, Any]) -> dict[str, Any]:
    document["variant"] |= {"compile": "regional", "packed_weight_mode": "off", "small_batch": True}
    return document


def plugin(monkeypatch: pytest.MonkeyPatch, report: Any) -> None:
    package, module = ModuleType("sglang_rvv"), ModuleType("sglang_rvv.regional")
    package.regional = module  # type: ignore[attr-defined]
    module.report = lambda: report  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sglang_rvv", package)
    monkeypatch.setitem(sys.modules, "sglang_rvv.regional", module)


def test_the_plugin_is_asked_where_regions_are_compiled(
    regional: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(monkeypatch, REPORT)
    told = compiled.report(spec.parse(regional))
    assert told == REPORT and compiled.graphs(told) == 2


def test_the_plugin_is_not_asked_where_nothing_is_compiled(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(monkeypatch, REPORT)
    assert compiled.report(spec.parse(document)) is None and compiled.graphs(None) is None


def test_a_plugin_without_regions_reports_nothing(regional: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sglang_rvv", ModuleType("sglang_rvv"))
    monkeypatch.delitem(sys.modules, "sglang_rvv.regional", raising=False)
    assert compiled.report(spec.parse(regional)) is None


def test_an_artifact_is_told_by_its_place_in_the_cache_and_hashed_as_it_is(tmp_path: Path) -> None:
    report = copy.deepcopy(REPORT)
    report["artifacts"][0]["so"] = str(tmp_path / "ab" / "x.main.so")
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "x.main.so").write_bytes(b"library")
    found = compiled.fields(report, 1, tmp_path)
    assert (found["graphs"], found["graphs_before"], found["compile_seconds"]) == (2, 1, 41.5)
    assert found["inductor"] == {"fxgraph_cache_miss": 2}
    [artifact] = found["artifacts"]
    assert (artifact["so"], artifact["bucket"]) == ("ab/x.main.so", 1) and "rows" not in artifact
    assert artifact["sha256"] == hashlib.sha256(b"library").hexdigest()
    assert artifact["vector_instructions"] is None


@pytest.mark.parametrize("so", [None, "/elsewhere/x.so", "ab/not_there.so"])
def test_an_artifact_that_is_not_in_the_cache_has_no_hash(tmp_path: Path, so: str | None) -> None:
    report = copy.deepcopy(REPORT)
    report["artifacts"][0]["so"] = so
    [artifact] = compiled.fields(report, None, tmp_path)["artifacts"]
    assert (artifact["so"], artifact["sha256"]) == (so, None)


@pytest.mark.parametrize(
    ("changes", "args"),
    [
        ({}, {"enable_cpu_rvv_inductor": True, "cpu_rvv_packed_weight_mode": "off"}),
        (
            {"packed_weight_mode": "off", "small_batch": False},
            {"cpu_compile_mode": "regional", "cpu_rvv_packed_weight_mode": "off"},
        ),
        ({"compile": "none"}, {}),
    ],
)
def test_sglang_is_given_the_flags_of_the_variant(
    regional: dict[str, Any], changes: dict[str, Any], args: dict[str, Any]
) -> None:
    from rvvbench.runner.sglang_batch import server_arguments

    regional["variant"] |= changes
    given = server_arguments(spec.parse(regional))
    assert {name: value for name, value in given.items() if name.startswith(("cpu_", "enable_cpu"))} == args


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compile": "whole"}, "compile 'whole'"),
        ({"packed_weight_mode": None}, "packed_weight_mode None"),
        ({"linear": "packed", "projections": ["o_proj"]}, "left to torch"),
        ({"packed_weight_mode": "explicit"}, "kernels_sha256"),
    ],
)
def test_what_this_runner_cannot_do_is_refused(regional: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    regional["variant"] |= changes
    with pytest.raises(SpecError, match=words):
        spec.parse(regional)
