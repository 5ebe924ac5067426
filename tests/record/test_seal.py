"""An older record holds under a newer schema."""

from __future__ import annotations

import json

from rvvbench.record.build import seal_of
from rvvbench.record.identity import digest
from rvvbench.record.schema import Record
from rvvbench.record.verify import verify

from . import sample


def test_a_record_that_was_written_before_a_field_was_added_holds() -> None:
    plain = sample.record().plain()
    for row in plain["rows"]:
        del row["rate_per_s"], row["expected"]["load"]
        for process in row["processes"]:
            del process["observation"]
    for field in ("workload", "requests"):
        del plain["heading"][field]
    del plain["seal"]
    plain["seal"] = digest(plain)
    record = Record.model_validate(json.loads(json.dumps(plain)))
    assert record.rows[0].expected.load is None
    assert verify(record) == []
    assert record.plain() == plain


def test_a_new_record_has_every_field_in_its_file() -> None:
    record = sample.record()
    assert record.plain() == record.whole()
    assert record.plain()["rows"][0]["expected"]["load"] is None


def test_a_default_that_is_put_into_a_file_or_taken_from_it_breaks_the_seal() -> None:
    plain = sample.record().plain()
    del plain["notes"]
    record = Record.model_validate(plain)
    assert record == sample.record()
    assert seal_of(record) != record.seal
