"""Tampering with one place of a record, and the finding that must name it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from rvvbench.record.build import seal_of
from rvvbench.record.identity import digest
from rvvbench.record.schema import Record
from rvvbench.record.verify import Finding, verify

from . import sample

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
        (_environment, {"identity"}),
        (_pin_of_a_process, {"events", "validity"}),
        (_expected, {"validity"}),
        (_validity, {"validity"}),
        (_agreement, {"agreement"}),
        (_exit, {"exit-status", "validity"}),
    ],
)
def test_tampering_is_found_even_where_the_seal_was_made_anew(change: Callable[[Plain], None], ids: set[str]) -> None:
    assert {finding.id for finding in tampered(change, resealed=True)} == ids
    assert {finding.id for finding in tampered(change)} == ids | {"seal"}


@pytest.mark.parametrize("field", ["title", "created", "replay", "run_id"])
def test_what_nothing_derives_from_is_kept_by_the_seal(field: str) -> None:
    def change(plain: Plain) -> None:
        plain[field] = "2026-01-01T00:00:00Z"[: 4 if field == "run_id" else None]

    assert [finding.id for finding in tampered(change)] == ["seal"]


def test_an_event_changed_with_its_digest_shows_in_the_figures() -> None:
    def change(plain: Plain) -> None:
        _event_time(plain)
        process(plain)["events_sha256"] = digest(process(plain)["events"])

    assert {finding.id for finding in tampered(change, resealed=True)} == {"figure"}
