"""Every committed record holds, and every committed table is what its record says, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.record.render import render_markdown
from rvvbench.record.store import read_record
from rvvbench.record.verify import verify

RESULTS = Path(__file__).resolve().parents[2] / "results"
RECORDS = sorted(path for path in RESULTS.rglob("*.json") if path.parent.name != "kernels")


def test_there_are_records() -> None:
    assert RECORDS


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_record_holds_and_its_table_is_its_own(path: Path) -> None:
    record = read_record(path)
    assert verify(record) == []
    assert record.valid
    assert path.with_suffix(".md").read_text() == render_markdown(record).rstrip("\n") + "\n"
