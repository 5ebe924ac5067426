"""One request whose connection is driven by hand: what counts when several things happen at one time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rvvbench.record.events import read_events
from rvvbench.runner.events import Events
from rvvbench.runner.exchange import Exchange

from .play import TIMEOUTS, ask
from .scripted_server import DONE, HEAD, generated, message
from .virtual_time import START_NS, VirtualLoop, clock, run

SECOND = 10**9


class _Wire(asyncio.Transport):
    def write(self, data: Any) -> None:
        pass

    def close(self) -> None:
        pass


def drive(
    tmp_path: Path, steps: Callable[[list[Exchange]], Coroutine[Any, Any, None]], *, count: int = 1, write_ns: int = 0
) -> list[dict[str, Any]]:
    """The events of `count` requests that were sent; `write_ns` is the time that writing one event takes."""
    path = tmp_path / "events.jsonl"

    class Slow(Events):
        def write(self, event: str, *, t_ns: int | None = None, **fields: Any) -> None:
            super().write(event, t_ns=t_ns, **fields)
            virtual().pass_ns(write_ns)

    async def main() -> None:
        with Slow(path, clock=clock) as events:
            made = [
                Exchange(ask(i), incremental=False, timeouts=TIMEOUTS, events=events, clock=clock) for i in range(count)
            ]
            for exchange in made:
                exchange.connection_made(_Wire())
                exchange.send(b"")
            await steps(made)

    run(main())
    return [event for event in read_events(path).events if event["event"] != "request_sent"]


def virtual() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def named(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def test_tokens_that_arrive_together_on_two_connections_have_times_free_of_each_others_work(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        for exchange in made:
            virtual().call_soon(exchange.data_received, HEAD + message(generated([1])))
        await asyncio.sleep(1)

    events = drive(tmp_path, steps, count=2, write_ns=SECOND // 1000)
    assert [(event["event"], event["request"]) for event in events] == [("chunk", "r0"), ("chunk", "r1")]
    assert events[0]["t_ns"] == events[1]["t_ns"]


def test_a_refusal_that_is_read_with_the_close_is_the_error(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        made[0].data_received(b"HTTP/1.1 503 Busy\r\n\r\nlater")
        made[0].connection_lost(None)

    (error,) = drive(tmp_path, steps)
    assert (error["kind"], error["message"]) == ("http", "the server answered 503: later")


def test_an_answer_that_is_read_with_a_reset_is_whole(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        made[0].data_received(HEAD + message(generated([1])) + DONE)
        made[0].connection_lost(ConnectionResetError(104, "reset"))

    assert named(drive(tmp_path, steps)) == ["chunk", "request_end"]


def test_a_reset_says_what_it_was(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        made[0].connection_lost(ConnectionResetError(104, "reset"))

    assert drive(tmp_path, steps)[0]["message"] == "the server closed the connection: [Errno 104] reset"


def test_what_was_read_before_a_failure_counts(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        made[0].data_received(HEAD + message(generated([1])))
        made[0].fail("cancelled", "the run was ended")

    events = drive(tmp_path, steps)
    assert named(events) == ["chunk", "request_error"]
    assert events[1]["tokens"] == 1


def test_a_token_that_is_read_when_its_time_is_up_is_in_time(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        await asyncio.sleep(29.5)
        virtual().call_soon(made[0].data_received, HEAD + message(generated([1])))
        virtual().pass_ns(SECOND)
        await asyncio.sleep(5)
        assert not made[0].done.done()

    events = drive(tmp_path, steps)
    assert named(events) == ["chunk"]
    assert events[0]["t_ns"] == START_NS + 30_500_000_000


def test_nothing_is_written_of_an_answer_after_its_end(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        made[0].data_received(HEAD + message(generated([1])) + DONE)
        made[0].data_received(message(generated([1, 2])))
        await asyncio.sleep(1)

    assert named(drive(tmp_path, steps)) == ["chunk", "request_end"]


def test_the_finish_reason_is_kept_when_a_later_message_has_none(tmp_path: Path) -> None:
    async def steps(made: list[Exchange]) -> None:
        last = message(generated([1], finish_reason={"type": "length", "length": 1}))
        made[0].data_received(HEAD + last + message(generated([1])) + DONE)
        await asyncio.sleep(1)

    assert drive(tmp_path, steps)[-1]["finish_reason"] == {"type": "length", "length": 1}
