"""Play scripted answers to the real client, and read what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.record.events import read_events
from rvvbench.record.request_timeline import RequestTimeline, requests
from rvvbench.runner import client
from rvvbench.runner.events import Events

from .scripted_server import Script, ScriptedServer
from .virtual_time import clock, run

TIMEOUTS = client.Timeouts(connect_s=1, first_token_s=30, token_s=10, request_s=100)


@dataclass(frozen=True)
class Played:
    """What came of it."""

    outcomes: tuple[client.Outcome, ...]
    events: tuple[dict[str, Any], ...]
    server: ScriptedServer

    @property
    def requests(self) -> tuple[RequestTimeline, ...]:
        return requests(self.events)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]


def ask(index: int, output_len: int = 8, input_len: int = 4) -> client.Request:
    """Request `r<index>`, with a prompt of its own."""
    return client.Request(f"r{index}", [1000 * (index + 1) + position for position in range(input_len)], output_len)


def play(
    tmp_path: Path,
    script: Callable[[int], Script],
    *,
    count: int = 1,
    output_len: int = 8,
    concurrency: int = 1,
    arrivals: client.Arrivals | None = None,
    incremental: bool = False,
    asked: Sequence[client.Request | client.TextRequest] | None = None,
) -> Played:
    """A closed loop, or an open one where there are `arrivals`; one load, "measured"."""
    server = ScriptedServer(script)
    path = tmp_path / "events.jsonl"
    path.unlink(missing_ok=True)
    all_requests = asked or [ask(index, output_len) for index in range(count)]

    async def main() -> tuple[client.Outcome, ...]:
        with Events(path, clock=clock) as events:
            one = client.Server(
                "127.0.0.1", 30000, TIMEOUTS, events, incremental=incremental, clock=clock, connect=server.connect
            )
            if arrivals is None:
                return await client.closed_loop(one, "measured", all_requests, concurrency=concurrency)
            return await client.open_loop(one, "measured", all_requests, arrivals=arrivals)

    outcomes = run(main())
    found = read_events(path)
    assert not found.problems
    return Played(outcomes, found.events, server)
