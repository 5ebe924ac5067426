"""Reading what the timing driver says."""

from __future__ import annotations

import json

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.linear_cases import linear
from rvvbench.kernel_model.timing import Count, parse_timed

CASE = linear("packed_linear", "bf16", "m", "o_proj", m=4, n=2048, k=2048)
NONE = {"per_call": None, "reason": "perf_event_open: No such file or directory"}


def line(cycles: dict[str, object]) -> str:
    return json.dumps(
        {
            "case": CASE.whole,
            "kernel": "one",
            "macs": 1,
            "calls": 10,
            "ns": [300, 100, 200, 400],
            "counters": {"cycles": cycles},
        }
    )


def test_times_are_for_one_call_and_the_median_is_a_measured_one() -> None:
    timed = parse_timed(CASE, line({"per_call": 2048.0, "reason": None}))
    assert timed.seconds_per_call == pytest.approx((30e-9, 10e-9, 20e-9, 40e-9))
    assert timed.median_s == pytest.approx(20e-9)
    assert timed.macs_per_cycle == Count(4 * 2048 * 2048 / 2048.0, None)


def test_a_counter_that_counts_nothing_is_null_with_its_reason() -> None:
    timed = parse_timed(CASE, line(NONE))
    assert timed.macs_per_cycle == Count(None, NONE["reason"])
    assert timed.as_data()["counters"]["cycles"] == NONE
    assert timed.as_data()["macs_per_cycle"]["per_call"] is None


def test_a_case_that_the_driver_refuses_is_an_error() -> None:
    with pytest.raises(RvvbenchError, match="refuses a case: no kernel"):
        parse_timed(CASE, json.dumps({"case": "x", "error": "no kernel"}))
