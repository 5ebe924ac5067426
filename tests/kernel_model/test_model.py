"""From cases to rows, with a small program in place of the kernels and a double in place of the emulator."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model import model
from rvvbench.kernel_model.cases import UNIT_COLUMNS, Case
from rvvbench.kernel_model.emulator import Traced
from rvvbench.kernel_model.price import Price
from rvvbench.kernel_model.program import Program
from rvvbench.kernel_model.report import Row
from rvvbench.progress import Silent
from tests.kernel_model.small_program import PROGRAM, log, read

DRIVER = Path("driver")


class Tools:
    """Prices every sequence at one cycle for each instruction and repetition."""

    def disassemble(self, program: Path) -> Program:
        return PROGRAM

    def strip(self, program: Path, to: Path) -> None:
        """Nothing."""

    def price(self, wanted: Mapping[int, Any]) -> dict[tuple[str, int], Price]:
        return {
            (one.key, n): Price(n * sum(not line.startswith("#") for line in one.text.splitlines()), Fraction(1, 2))
            for n, sequences in wanted.items()
            for one in sequences
        }


def case(units: int, k: int = 2) -> Case:
    return Case("packed_linear", "bf16", "m", "layer", units, (("m", 1), ("k", k)))


def driven(monkeypatch: pytest.MonkeyPatch, rounds: Callable[[int], int], **said: Callable[[int], Any]) -> list[str]:
    """Let the kernel go `rounds(units)` times round its loop; the texts that were executed, as they come."""
    executed: list[str] = []

    def trace_program(driver: Path, texts: Sequence[str], **how: Any) -> Traced:
        assert (how["calls"], how["mark"], how["code"]) == (1, 0x1000, (0x1000, 0x2011))
        executed.extend(texts)
        logs, answers = [], []
        for text in texts:
            size = {key: int(value) for key, value in re.findall(r"(\w)=(\d+)", text)}
            units = size["n"] // UNIT_COLUMNS
            answer = {"kernel": "k", "macs": size["m"] * size["n"] * size["k"], "elements": 0}
            answers.append(answer | {key: value for key, tell in said.items() if (value := tell(units)) is not None})
            if "error" not in answers[-1]:
                logs.append(log(rounds(units)))
        return Traced(read("".join(logs)), answers)

    monkeypatch.setattr(model, "trace_program", trace_program)
    return executed


def rows(*cases: Case) -> list[Row]:
    return model.model(DRIVER, cases, Tools(), Silent())  # type: ignore[arg-type]


def counted(row: Row) -> tuple[list[int], int]:
    """The sizes that were executed, and the instructions of the whole: entry, four for each round, return."""
    assert row.modelled is not None, row.reason
    return row.modelled.counted_units, row.modelled.instructions


def test_counts_that_grow_evenly_are_scaled_and_few_units_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    driven(monkeypatch, lambda units: 3 * units)
    large, small = rows(case(1000), case(3))
    assert counted(large) == ([1, 2, 3], 1 + 4 * 3000 + 1)
    assert counted(small) == ([3], 1 + 4 * 9 + 1)
    assert large.modelled is not None
    # Entry, 2999 times round and return: each instruction once a cycle, whatever stands before it.
    assert large.modelled.cycles_in_order == 1 + 4 * 3000 + 1
    assert large.modelled.cycles_floor == Fraction(1 + 3000 + 1, 2)
    assert large.modelled.macs_per_cycle == pytest.approx(1000 * 64 * 2 / 12002, abs=1e-6)


def test_uneven_growth_is_counted_whole_where_that_takes_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    executed = driven(monkeypatch, lambda units: 2 + units * units)
    largest = model.WHOLE_LIMIT_MACS // (10 * UNIT_COLUMNS)
    row, too_large = rows(case(10, largest), case(10, largest + 1))
    assert counted(row) == ([10], 1 + 4 * 102 + 1)
    assert (too_large.modelled, too_large.reason) == (
        None,
        "its counts do not grow evenly with its size, and it is too large to be counted whole",
    )
    assert case(10, largest).whole in executed
    assert case(10, largest + 1).whole not in executed


def test_sizes_that_other_kernels_compute_stand_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    driven(monkeypatch, lambda units: units + 1, kernel=lambda units: "narrow" if units == 1 else "wide")
    (row,) = rows(case(10))
    assert (row.modelled, row.reason) == (None, "smaller parts of it run other kernels: narrow, wide")


def test_what_the_driver_refuses_has_its_words_and_does_not_shift_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    driven(monkeypatch, lambda units: units + 1, error=lambda units: "no kernel" if units == 2 else None)
    one, two, three = rows(case(1), case(2), case(3))
    assert (two.modelled, two.reason) == (None, "no kernel")
    assert (counted(one), counted(three)) == (([1], 1 + 4 * 2 + 1), ([3], 1 + 4 * 4 + 1))


def test_a_driver_that_computes_something_else_is_not_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    driven(monkeypatch, lambda units: units + 1, macs=lambda units: 5)
    (row,) = rows(case(3))
    assert row.modelled is None
    assert row.reason == f"the driver computes 5 multiply-adds where 384 are meant; at {case(3).whole}"


@pytest.mark.parametrize("processors", [1, 3])
def test_rows_come_in_the_order_of_the_cases_whoever_counts_them(
    monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    executed = driven(monkeypatch, lambda units: units + 1)
    monkeypatch.setattr(model.os, "cpu_count", lambda: processors)
    cases = [case(3), case(50, 4), case(20), case(50), case(1)]
    assert [counted(row)[1] for row in rows(*cases)] == [1 + 4 * (c.units + 1) + 1 for c in cases]
    # 20 and 50 units are told from the same small ones, which are counted once.
    assert len(executed) == len(set(executed)) == 3 + 3 if processors == 1 else len(executed) >= 6


def test_counting_ends_everywhere_when_it_fails_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []

    def trace_program(driver: Path, texts: Sequence[str], *, stop: threading.Event, **how: Any) -> Traced:
        if case(1).whole in texts:
            raise RvvbenchError("it broke")
        stopped.append(stop.wait(30))
        raise RvvbenchError("counting was stopped")

    monkeypatch.setattr(model, "trace_program", trace_program)
    monkeypatch.setattr(model.os, "cpu_count", lambda: 2)
    with pytest.raises(RvvbenchError, match="it broke"):
        rows(case(1), case(3))
    assert stopped == [True]
