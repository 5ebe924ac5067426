"""Judging what the kernels' test program said on many machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.correctness import (
    Ended,
    Machine,
    Run,
    Verdict,
    disagreements,
    judge,
    machines,
    run_all,
    untested,
)

K1 = Machine("K1", "rv64", 256, True)


def said(**changes: Any) -> str:
    verdict = {
        "vlen_bits": 256, "rvv": True, "zvfh": True, "cases": 3, "failures": 0,
        "hashes": {"linear": "aa"}, "kernels": {"one": 2, "two": 1}, "dispatch": {},
    }  # fmt: skip
    return "words\n" + json.dumps({**verdict, **changes}) + "\n"


def verdict(output: str, exit_code: int = 0, listed: tuple[str, ...] = ("one", "two"), errors: str = "") -> Verdict:
    return judge("clang", K1, exit_code=exit_code, output=output, errors=errors, listed=listed, seconds=1.0)


def test_every_vector_length_is_tried_with_and_without_zvfh_and_agnostic_ones() -> None:
    tried = machines("amd64")
    ones = {(m.vlen_bits, m.zvfh) for m in tried if m.cpu and "rvv_ta_all_1s=true,rvv_ma_all_1s=true" in m.cpu}
    assert ones == {(vlen, zvfh) for vlen in (128, 256, 512, 1024) for zvfh in (True, False)}
    assert [m.cpu for m in tried if m.vlen_bits == 0] == ["rv64,v=false", None]


def test_a_good_run_has_no_problem() -> None:
    found = verdict(said())
    assert (found.problem, found.cases, found.kernels, found.hashes) == (
        None,
        3,
        {"one": 2, "two": 1},
        {"linear": "aa"},
    )


@pytest.mark.parametrize(
    ("output", "exit_code", "problem"),
    [
        (said(failures=2), 1, "2 failures (exit code 1): FAIL tail"),
        (said(vlen_bits=128), 0, "ran as VLEN 128, zvfh True"),
        (said(zvfh=False), 0, "ran as VLEN 256, zvfh False"),
        (said(kernels={"one": 2}), 0, "not tested: two"),
        (said(kernels={"one": 2, "two": 0}), 0, "not tested: two"),
        ("", -11, "ended with -11 and no verdict: FAIL tail"),
        ("[1, 2]\n", 0, "ended with 0 and no verdict: FAIL tail"),
    ],
)
def test_what_is_wrong_is_said(output: str, exit_code: int, problem: str) -> None:
    assert verdict(output, exit_code, errors="FAIL tail\n").problem == problem


def test_results_that_differ_between_machines_are_named() -> None:
    same, other = verdict(said()), verdict(said(hashes={"linear": "bb"}))
    assert disagreements([same, same]) == []
    assert disagreements([same, same, other]) == ["linear: K1, clang (2) against K1, clang (1)"]


def test_a_kernel_that_no_machine_tested_is_named() -> None:
    assert untested([verdict(said())], ["one", "two", "three"]) == ["three"]


def test_runs_come_back_in_order_and_are_told() -> None:
    def execute(run: Run, arguments: tuple[str, ...]) -> Ended:
        listing = "one rvv available\ntwo rvv available\nthree rvv unavailable\n"
        return Ended(0, listing if arguments else said(), "", 2.04)

    told: list[str] = []
    runs = [Run(compiler, K1, Path("program")) for compiler in ("clang", "gcc")]
    verdicts = run_all(runs, execute, jobs=2, told=told.append)
    assert [(v.compiler, v.problem, v.seconds) for v in verdicts] == [("clang", None, 2.0), ("gcc", None, 2.0)]
    assert sorted(told) == ["K1, clang: ok", "K1, gcc: ok"]


def test_a_run_that_takes_too_long_is_a_problem_and_no_crash() -> None:
    def execute(run: Run, arguments: tuple[str, ...]) -> Ended:
        return Ended(0, "one rvv available\n", "", 0.1) if arguments else Ended(None, "", "", 900.0)

    (found,) = run_all([Run("clang", K1, Path("program"))], execute, jobs=1, told=lambda _: None)
    assert found.problem == "ended with -1 and no verdict: stopped for taking too long"


def test_a_program_that_lists_nothing_is_refused() -> None:
    with pytest.raises(RvvbenchError, match="lists no kernels: cannot execute"):
        run_all(
            [Run("clang", K1, Path("program"))],
            lambda run, arguments: Ended(1, "", "cannot execute", 0.1),
            jobs=1,
            told=lambda _: None,
        )
