"""The figures of a server's load, and what a row and a record of them are."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rvvbench.record.figure_set import ALL_DEFINITIONS, SERVING_NAMES, definition_of, derive, names
from rvvbench.record.metrics import NAMES
from rvvbench.record.schema import ExpectedLoad, Figure, Record

from . import sample, serving_sample
from .sample import MIB, Event
from .serving_sample import events, expected, load, ran, row


def figures(of: list[Event] | None = None, concurrency: int = 2, **changes: Any) -> dict[str, Figure]:
    return derive(of or events(), expected(concurrency, **changes))


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("ttft_median_s", 3.0, 6.0),
        ("itl_median_s", 0.5, 0.625),
        ("decode_rate_median_tokens_per_s", 2.0, 1.6),
        ("decode_rate_global_tokens_per_s", 2.0, 3.2),
        ("e2e_median_s", 6.5, 10.375),
        ("wall_s", 26.0, 20.75),
        ("throughput_output_tokens_per_s", 32 / 26, 32 / 20.75),
        ("throughput_total_tokens_per_s", 288 / 26, 288 / 20.75),
        ("in_flight_peak", 1, 2),
        ("startup_s", 20.0, 20.0),
        ("ready_s", 25.0, 25.0),
        ("decoded_at_full_batch_percent", 100.0, 100.0),
        # The server's memory grows by 10 MiB in each load, and ready, c1-warmup, c1, c2-warmup and c2 are loads.
        ("peak_rss_bytes", 730 * MIB // 4 * 4, 750 * MIB // 4 * 4),
        ("peak_rss_tree_bytes", 770 * MIB, 790 * MIB),
    ],
)
def test_each_figure_of_the_sample_is_exact(name: str, one: float, two: float) -> None:
    assert figures(concurrency=1)[name].value == one
    assert figures(concurrency=2)[name].value == two


def test_sums_are_over_the_servers_processes_and_not_over_the_runner() -> None:
    found, size = figures(), 750 * MIB
    rss = [size // 4, size, size // 7]
    assert found["peak_rss_sum_bytes"].value == sum(rss)
    assert found["pss_sum_bytes"].value == sum(rss) - 3 * 2 * MIB


def test_a_server_of_which_no_memory_was_read_has_none() -> None:
    found = figures([e for e in events() if e["event"] not in ("memory", "memory_tree") or e.get("role") == "runner"])
    assert found["peak_rss_bytes"].reason == "no memory event of a measured process"
    assert found["peak_rss_sum_bytes"].reason == "no memory event of the server"
    assert found["pss_sum_bytes"].reason == "no memory event of the server"
    assert found["peak_rss_tree_bytes"].reason == "no sample of the process tree's memory"


def test_a_process_whose_pss_is_not_known_leaves_the_sum_unknown() -> None:
    happened = events()
    reading = next(e for e in happened if e["event"] == "memory" and e["phase"] == "c1")
    reading.update(pss_bytes=None, reason="no smaps_rollup")
    assert figures(happened)["pss_sum_bytes"].reason == "no smaps_rollup"
    assert figures(happened)["peak_rss_sum_bytes"].value is not None


def test_a_load_that_did_not_end_has_no_memory() -> None:
    cut = [e for e in events() if e["event"] != "load_end"]
    assert figures(cut)["peak_rss_bytes"].reason == "load c2 did not end"
    assert figures(cut)["startup_s"].value == 20.0


def test_the_share_of_full_batches_counts_tokens_not_passes() -> None:
    happened = events()
    for e in happened:
        if e["event"] == "attestation" and (e["load"], e["moment"]) == ("c2", "after"):
            for line in e["routing"]:
                if line["projection"] != "lm_head" and line["m"] == 2:
                    line["calls"] -= 2 * 7  # 14 steps of two rows were; 7 remain
                elif line["projection"] != "lm_head" and line["m"] == 1:
                    line["calls"] += 2 * 7
    # 14 of 21 tokens: 7 steps of two rows and 7 of one.
    assert figures(happened)["decoded_at_full_batch_percent"].value == 100 * 14 / 21


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"output_len": 1}, "one output token: nothing is decoded after the first"),
        ({"input_len": 2}, "a prefill of 2 tokens looks like a decode step of as many requests"),
        (
            {"load": load(None, name="c2", mode="open", arrivals="fixed", rate_per_s=0.5)},
            "an open loop has no number of requests that are meant to be in flight",
        ),
    ],
)
def test_full_batches_that_cannot_be_told_are_null(changes: dict[str, Any], reason: str) -> None:
    assert figures(**changes)["decoded_at_full_batch_percent"].reason == reason


def test_every_figure_of_a_row_has_a_definition_and_an_emulated_twin() -> None:
    emulated, native = (expected(1, emulated=flag) for flag in (True, False))
    assert names(native) == SERVING_NAMES and names(sample.expected()) == NAMES
    assert len(set(SERVING_NAMES)) == len(SERVING_NAMES)
    for name in SERVING_NAMES:
        ours, twin = definition_of(name, native), definition_of(name, emulated)
        assert ours.name == twin.name == name
        assert (ours.emulated, twin.emulated) == (False, True)
        assert ours.id != twin.id and {ours.id, twin.id} <= ALL_DEFINITIONS.keys()
        assert figures()[name].definition == twin.id
    with pytest.raises(KeyError):
        definition_of("made_up", native)


def test_a_rows_figure_is_the_median_over_its_servers() -> None:
    processes = [ran(events(pid=pid, faster=faster)) for pid, faster in ((1, 1.0), (2, 2.0), (3, 1.0))]
    one = row(expects=expected(2, processes=3), processes=processes)
    figure = one.figures["ttft_median_s"]
    assert (figure.median, figure.min, figure.max, figure.n) == (6.0, 3.0, 6.0, 3)
    assert one.validity.valid


def test_rows_are_named_after_their_load() -> None:
    assert [one.name for one in serving_sample.rows()[:2]] == ["torch-native/none/c1", "torch-native/none/c2"]
    open_loop = load(None, name="r0.5", mode="open", arrivals="fixed", rate_per_s=0.5)
    one = row(expects=expected(1, load=open_loop))
    assert (one.name, one.concurrency, one.rate_per_s) == ("torch-native/none/r0.5", None, 0.5)


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency": None},
        {"mode": "open"},
        {"arrivals": "fixed"},
        {"mode": "open", "concurrency": None, "arrivals": "fixed", "rate_per_s": 0.0},
        {"requests": 0},
        {"seed": 1},
        {"mode": "open", "concurrency": None, "arrivals": "fixed", "rate_per_s": 1.0, "seed": 1},
    ],
)
def test_a_load_is_closed_or_open(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExpectedLoad.model_validate({**load().model_dump(), **fields})


def test_a_row_has_the_concurrency_of_its_load() -> None:
    plain = serving_sample.record().plain()
    plain["rows"][0]["concurrency"] = 3
    with pytest.raises(ValidationError, match="is not that of its load c1"):
        Record.model_validate(plain)


def test_the_heading_says_how_many_requests() -> None:
    plain = serving_sample.record().plain()
    for requests, said in ((5, "its requests are not those in the heading"), (None, "a serving run has a number")):
        plain["heading"]["requests"] = requests
        with pytest.raises(ValidationError, match=said):
            Record.model_validate(plain)
    with pytest.raises(ValidationError, match="its requests are not those in the heading"):
        serving_sample.record(serving_sample.row(), sample.row())
