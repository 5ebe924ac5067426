"""Loads and requests from events, whole and damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rvvbench.record.other_tools import definitions
from rvvbench.record.request_figures import REQUEST_NAMES, derive_request
from rvvbench.record.request_timeline import loads, requests
from rvvbench.record.serving import LOAD_NAMES, derive_load
from rvvbench.record.serving_validity import assess_load

from .play import play
from .scripted_server import answer

Event = dict[str, Any]


@pytest.fixture
def events(tmp_path: Path) -> list[Event]:
    return list(play(tmp_path, lambda _: answer([(1000, 1), (1500, 1), (2000, 1)]), output_len=3).events)


def changed(events: list[Event], name: str, nth: int = 0, **fields: Any) -> list[Event]:
    [event for event in events if event["event"] == name][nth].update(fields)
    return events


def without(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["event"] != name]


def test_a_load_is_read_with_what_it_declared(events: list[Event]) -> None:
    (load,) = loads(events)
    assert (load.name, load.mode, load.measured, load.requests) == ("measured", "closed", True, 1)
    assert (load.concurrency, load.rate_per_s, load.complete) == (1, None, True)


def test_a_load_without_its_end_is_not_complete(events: list[Event]) -> None:
    assert loads(without(events, "load_end"))[0].complete is False
    assert loads(changed(events, "load_end", complete=False))[0].complete is False


def test_a_load_that_was_started_twice_is_not_complete(events: list[Event]) -> None:
    assert [load.complete for load in loads([*events, events[0]])] == [False]


def test_the_requests_of_one_load_are_those_that_it_started(events: list[Event]) -> None:
    assert len(requests(events, "measured")) == 1
    assert requests(events, "warmup") == ()


def test_a_killed_client_leaves_the_first_token_and_no_end(events: list[Event]) -> None:
    cut = [index for index, event in enumerate(events) if event["event"] == "chunk"][1]
    (request,) = requests(events[: cut + 1])
    found = derive_request(request, emulated=False)
    assert found["ttft_s"].value == 1.0
    assert found["decode_rate_tokens_per_s"].reason == "no request_end event"
    reasons = assess_load(loads(events[:cut])[0], [request], requests=1, input_len=4, output_len=3)
    assert {"load-incomplete", "request-not-ended", "output-length"} <= {reason.id for reason in reasons}


@pytest.mark.parametrize(
    ("name", "nth", "fields", "problem"),
    [
        ("chunk", 0, {"t_ns": None}, "its chunk event has no t_ns"),
        ("chunk", 1, {"t_ns": True}, "its chunk event has no t_ns"),
        ("chunk", 1, {"t_ns": 1}, "its clock runs backwards"),
        ("chunk", 0, {"t_ns": 10**12}, "its first chunk came when it was sent"),
        ("request_end", 0, {"t_ns": 1}, "its clock runs backwards"),
        ("request_sent", 0, {"t_ns": 2**70}, "its request_sent event has no t_ns"),
        ("chunk", 0, {"token_ids": [1.5]}, "a chunk's token_ids are no list of whole numbers"),
        ("chunk", 0, {"token_ids": None}, "a chunk's token_ids are no list of whole numbers"),
        ("chunk", 1, {"prompt_tokens": 5}, "the server gave several prompt_tokens: 4, 5"),
        ("chunk", 2, {"cached_tokens": 3}, "the server gave several cached_tokens: 0, 3"),
        ("request_start", 0, {"scheduled_ns": "0"}, "its request_start event has no scheduled_ns"),
    ],
)
def test_damage_leaves_no_figure_and_is_the_reason(
    events: list[Event], name: str, nth: int, fields: Event, problem: str
) -> None:
    (request,) = requests(changed(events, name, nth, **fields))
    assert problem in request.problems
    assert all(figure.value is None and figure.reason for figure in derive_request(request, emulated=False).values())
    reasons = assess_load(loads(events)[0], [request], requests=1, input_len=4, output_len=3)
    assert ("events-damaged", f"request r0: {problem}") in [(reason.id, reason.text) for reason in reasons]


@pytest.mark.parametrize("name", ["request_start", "request_sent", "request_end"])
def test_an_event_that_came_twice_is_damage(events: list[Event], name: str) -> None:
    doubled = next(event for event in events if event["event"] == name)
    assert f"2 {name} events" in requests([*events, doubled])[0].problems


def test_chunks_of_a_request_that_was_never_sent_are_damage(events: list[Event]) -> None:
    assert requests(without(events, "request_sent"))[0].problems == ("chunks, but no request_sent event",)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIELDS = {
    "t_ns": st.integers(0, 40),
    "scheduled_ns": st.integers(0, 5),
    "token_ids": st.lists(st.integers(0, 9), max_size=3),
    "total_tokens": st.integers(0, 5),
    "prompt_tokens": st.just(4),
    "cached_tokens": st.just(0),
    "has_text": st.booleans(),
    "input_tokens": st.just(4),
    "output_len": st.just(3),
    "concurrency": st.just(1),
    "requests": st.just(1),
    "finish_reason": st.just({"type": "length"}),
}
NAMES = ["load_start", "request_start", "request_sent", "chunk", "chunk", "chunk", "request_end", "request_error"]


@st.composite
def some_events(draw: st.DrawFn) -> list[Event]:
    found: list[Event] = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=9)):
        event: Event = {"event": name, "request": draw(st.sampled_from(["a", "b"])), "load": "m"}
        for field, values in FIELDS.items():
            event[field] = draw(values if draw(st.integers(0, 19)) else json_values)
        found.append(event)
    return found


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(some_events())
def test_whatever_stands_in_the_events_every_figure_is_a_number_or_has_a_reason(events: list[Event]) -> None:
    found = requests(events)
    for request in found:
        figures = derive_request(request, emulated=False)
        assert tuple(figures) == REQUEST_NAMES
        every = [
            *figures.values(),
            *(f for one in definitions(request).values() for f in (one.ttft, one.tpot, one.itl)),
        ]
        assert all((figure.value is None) == bool(figure.reason) for figure in every)
    figures = derive_load(found, emulated=False)
    assert tuple(figures) == LOAD_NAMES
    assert all((figure.value is None) == bool(figure.reason) for figure in figures.values())
    for load in loads(events):
        assess_load(load, found, requests=1, input_len=4, output_len=3)
