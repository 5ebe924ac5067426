from __future__ import annotations

from typing import Any

import pytest

from rvvbench.observe.stretch import window_of

ONE_BATCH = [{"event": "measured_start", "t_ns": 5}, {"event": "pass"}, {"event": "measured_end", "t_ns": 9}]
LOADS = [
    {"event": f"load_{end}", "load": load, "t_ns": t_ns}
    for load, end, t_ns in (("c1", "start", 1), ("c1", "end", 4), ("c2", "start", 6), ("c2", "end", 9))
]


def test_the_window_of_one_batch_is_its_measured_pass() -> None:
    assert window_of(ONE_BATCH) == (5, 9)


def test_the_window_of_a_load_is_its_own() -> None:
    assert window_of(LOADS, "c2") == (6, 9)
    assert window_of(LOADS, "c4") is None
    assert window_of(LOADS) is None


@pytest.mark.parametrize(
    "events",
    [
        [],
        ONE_BATCH[:2],
        [*ONE_BATCH, ONE_BATCH[0]],
        [{"event": "measured_start", "t_ns": 9}, {"event": "measured_end", "t_ns": 5}],
        [{"event": "measured_start", "t_ns": "5"}, {"event": "measured_end", "t_ns": 9}],
        [{"event": "measured_start"}, {"event": "measured_end", "t_ns": 9}],
    ],
)
def test_ends_that_are_missing_twice_there_or_out_of_order_make_no_window(events: list[dict[str, Any]]) -> None:
    assert window_of(events) is None
