"""The client's loops, its timeouts and its errors, in virtual time."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from rvvbench.record.events import read_events
from rvvbench.runner import client
from rvvbench.runner.events import Events
from rvvbench.runner.failure import NotWritten
from rvvbench.runner.loop_lag import LoopLag

from .play import TIMEOUTS, Played, ask, play
from .scripted_server import DONE, HEAD, LAST, Script, ScriptedServer, answer, framed, generated, message
from .virtual_time import START_NS, VirtualLoop, clock, run

SECOND = 10**9
QUICK = [(1000, 1), (1500, 1)]


def error(played: Played, index: int = 0) -> dict[str, Any]:
    return played.named("request_error")[index]


def at_s(events: list[dict[str, Any]]) -> list[float]:
    return [(event["t_ns"] - START_NS) / SECOND for event in events]


def test_the_request_on_the_wire_asks_for_greedy_tokens_past_any_end(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(QUICK), output_len=2)
    assert played.server.asked == [
        {
            "input_ids": [1000, 1001, 1002, 1003],
            "sampling_params": {"max_new_tokens": 2, "temperature": 0, "ignore_eos": True},
            "stream": True,
        }
    ]


def test_words_are_asked_for_greedily_up_to_a_stop_and_their_answer_is_the_last_text(tmp_path: Path) -> None:
    finish = {"type": "stop", "matched": "Question:"}
    said = [{**generated([5]), "text": " Eigh"}, {**generated([5, 6], finish_reason=finish), "text": " Eighteen."}]
    script = Script([(1000, HEAD + message(said[0])), (2000, message(said[1]) + DONE + LAST)])
    asked = client.TextRequest("q0", "Question: ä?\nAnswer:", 8, ("Question:",))
    played = play(tmp_path, lambda _: script, asked=[asked])
    assert played.server.asked == [
        {
            "text": "Question: ä?\nAnswer:",
            "sampling_params": {"max_new_tokens": 8, "temperature": 0, "stop": ["Question:"]},
            "stream": True,
        }
    ]
    (answer,) = played.named("answer")
    assert (answer["text"], answer["completion_tokens"], answer["finish_reason"]) == (" Eighteen.", 2, finish)
    assert answer["prompt_sha256"] == hashlib.sha256("Question: ä?\nAnswer:".encode()).hexdigest()
    (request,) = played.requests
    assert (request.problems, request.input_tokens, request.tokens) == ((), None, 2)


def test_an_answer_without_any_text_says_so(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(QUICK), asked=[client.TextRequest("q0", "a", 2)])
    assert [event["text"] for event in played.named("answer")] == [None]
    assert not play(tmp_path, lambda _: answer(QUICK), output_len=2).named("answer")


def test_each_chunk_is_an_event_with_the_time_of_its_arrival(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer(QUICK), output_len=2)
    names = [event["event"] for event in played.events]
    assert names == [
        "load_start",
        "request_start",
        "request_sent",
        "chunk",
        "chunk",
        "request_end",
        "load_end",
    ]
    assert at_s(played.named("chunk")) == [1.0, 1.5]
    chunk = {key: value for key, value in played.named("chunk")[1].items() if key not in ("t_ns", "pid")}
    assert chunk == {
        "event": "chunk",
        "request": "r0",
        "token_ids": [101],
        "total_tokens": 2,
        "prompt_tokens": 4,
        "cached_tokens": 0,
        "has_text": None,
    }
    end = played.named("request_end")[0]
    assert (end["tokens"], end["completion_tokens"]) == (2, 2)
    assert end["finish_reason"] == {"type": "length", "length": 2}
    assert played.outcomes == (client.Outcome("r0", START_NS + 1500_000_000, 2, None),)


def test_events_are_written_when_the_chunk_comes_not_when_the_request_ends(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    seen: list[int] = []

    async def main() -> None:
        server = ScriptedServer(lambda _: answer(QUICK))
        with Events(path, clock=clock) as events:
            one = client.Server("127.0.0.1", 1, TIMEOUTS, events, clock=clock, connect=server.connect)
            task = asyncio.create_task(client.closed_loop(one, "measured", [ask(0, 2)], concurrency=1))
            await asyncio.sleep(1.25)
            seen.append(sum(event["event"] == "chunk" for event in read_events(path).events))
            await task

    run(main())
    assert seen == [1]


def test_a_closed_loop_sends_the_next_request_when_a_slot_is_free(tmp_path: Path) -> None:
    long, short = answer([(1000, 1), (5000, 1)]), answer(QUICK)
    played = play(tmp_path, lambda index: long if index == 0 else short, count=4, concurrency=2, output_len=2)
    assert [
        (event["request"], at)
        for event, at in zip(played.named("request_sent"), at_s(played.named("request_sent")), strict=True)
    ] == [
        ("r0", 0.0),
        ("r1", 0.0),
        ("r2", 1.5),
        ("r3", 3.0),
    ]
    assert [outcome.request for outcome in played.outcomes] == ["r0", "r1", "r2", "r3"]
    assert [request.scheduled_ns for request in played.requests] == [request.sent_ns for request in played.requests]


def test_an_open_loop_sends_each_request_when_it_is_due_however_slow_the_server_is(tmp_path: Path) -> None:
    arrivals = client.Arrivals("fixed", 2.0)
    played = play(tmp_path, lambda _: answer([(9000, 2)]), count=4, arrivals=arrivals, output_len=2)
    assert at_s(played.named("request_sent")) == [0.0, 0.5, 1.0, 1.5]
    assert played.named("load_start")[0]["rate_per_s"] == 2.0
    assert [outcome.error for outcome in played.outcomes] == [None] * 4


def test_an_open_loop_never_sends_before_a_request_is_due_although_a_timer_fires_early(tmp_path: Path) -> None:
    def slow() -> int:
        return START_NS + (clock() - START_NS) // 2

    path = tmp_path / "events.jsonl"
    server = ScriptedServer(lambda _: answer(QUICK))

    async def main() -> None:
        with Events(path, clock=slow) as events:
            one = client.Server("127.0.0.1", 1, TIMEOUTS, events, clock=slow, connect=server.connect)
            await client.open_loop(one, "m", [ask(0, 2), ask(1, 2)], arrivals=client.Arrivals("fixed", 1.0))

    run(main())
    played = Played((), read_events(path).events, server)
    assert at_s(played.named("request_sent")) == pytest.approx([0.0, 1.0])
    assert at_s(played.named("request_sent"))[1] >= 1.0


def test_poisson_arrivals_are_the_same_for_the_same_seed_and_reach_the_wire(tmp_path: Path) -> None:
    arrivals = client.Arrivals("poisson", 2.0, seed=7)
    played = play(tmp_path, lambda _: answer([(9000, 2)]), count=5, arrivals=arrivals, output_len=2)
    sent = [event["t_ns"] - START_NS for event in played.named("request_sent")]
    assert sent == arrivals.offsets_ns(5)
    assert [request.scheduled_ns for request in played.requests] == [START_NS + offset for offset in sent]


@pytest.mark.parametrize(
    ("script", "phase", "limit_s", "at", "tokens"),
    [
        (Script(connect_ms=5000), "connect", 1, 1.0, 0),
        (Script(), "first_token", 30, 30.0, 0),
        (Script([(20_000, HEAD + message(generated([])))]), "first_token", 30, 30.0, 0),
        (Script(answer(QUICK).pieces[:1]), "next_token", 10, 11.0, 1),
        (Script([(9000 * i + 1, (HEAD if i == 0 else b"") + message(generated([7] * (i + 1)))) for i in range(12)]),
         "end_of_request", 100, 100.0, 12),
    ],
)  # fmt: skip
def test_a_timeout_says_what_did_not_come_and_keeps_what_did(
    tmp_path: Path, script: Script, phase: str, limit_s: float, at: float, tokens: int
) -> None:
    played = play(tmp_path, lambda _: script)
    found = error(played)
    assert (found["kind"], found["phase"], found["limit_s"], found["tokens"]) == ("timeout", phase, limit_s, tokens)
    assert at_s([found]) == [at]
    assert sum(len(event["token_ids"]) for event in played.named("chunk")) == tokens
    assert played.server.open == 0


def test_a_slow_answer_within_its_limits_is_no_timeout(tmp_path: Path) -> None:
    played = play(tmp_path, lambda _: answer([(29_000, 1), (38_900, 1), (48_800, 1)]), output_len=3)
    assert played.outcomes[0].error is None


@pytest.mark.parametrize(
    ("script", "kind", "message_", "tokens"),
    [
        (Script(refused=True), "connect", "no connection to 127.0.0.1:30000: [Errno 111] Connection refused", 0),
        (Script(ending_ms=2000), "connection", "the server closed the connection", 0),
        (Script(answer(QUICK).pieces[:1], ending_ms=2000), "connection", "the server closed the connection", 1),
        (Script([*answer(QUICK).pieces[:1], (1200, LAST)]), "connection", "the answer ended without [DONE]", 1),
        (Script([(5, b"HTTP/1.1 503 x\r\ncontent-length: 4\r\n\r\nbusy")]), "http", "the server answered 503: busy", 0),
        (Script([(5, b"HTTP/1.1 400 Bad\r\n\r\nno")], ending_ms=9), "http", "the server answered 400: no", 0),
        (Script([(5, HEAD + message({"error": {"message": "too long"}}))]), "server", "too long", 0),
        (Script([(5, HEAD + framed(b"data: {\n\n"))]), "protocol", "no JSON: b'{'", 0),
        (Script([(5, HEAD + framed(b"data: []\n\n"))]), "protocol", "no JSON object: b'[]'", 0),
        (Script([(5, b"SSH-2.0-x\r\n\r\n")]),
         "protocol", "no HTTP/1.1 response: no HTTP/1.1 status line: 'SSH-2.0-x'", 0),
        (Script([(5, HEAD + message(generated([1, 2]))), (9, message(generated([1, 3])))]),
         "protocol", "output_ids do not go on from those before: is the server incremental?", 2),
    ],
)  # fmt: skip
def test_an_error_is_classified_and_keeps_what_came(
    tmp_path: Path, script: Script, kind: str, message_: str, tokens: int
) -> None:
    played = play(tmp_path, lambda _: script)
    found = error(played)
    assert (found["kind"], found["message"], found["tokens"]) == (kind, message_, tokens)
    assert sum(len(event["token_ids"]) for event in played.named("chunk")) == tokens
    assert not played.named("request_end")
    assert played.outcomes[0].error == kind
    assert played.server.open == 0


def test_an_http_refusal_tells_its_status(tmp_path: Path) -> None:
    refusal = Script([(5, b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")])
    assert error(play(tmp_path, lambda _: refusal))["status"] == 503


def test_a_failed_request_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = Script(answer(QUICK).pieces[:1], ending_ms=1200)
    played = play(tmp_path, lambda index: broken if index == 1 else answer(QUICK), count=3, output_len=2)
    assert [outcome.error for outcome in played.outcomes] == [None, "connection", None]
    assert played.named("load_end")[0]["complete"] is True


def test_bytes_after_the_end_of_an_answer_change_nothing(tmp_path: Path) -> None:
    done = answer(QUICK).pieces
    late = Script([*done[:-1], (1500, done[-1][1] + message(generated([1])))])
    assert len(play(tmp_path, lambda _: late, output_len=2).named("chunk")) == 2


def test_a_run_that_is_cancelled_closes_every_connection_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    server = ScriptedServer(lambda _: answer([(1000, 1), (9000, 1)]))

    async def main() -> None:
        with Events(path, clock=clock) as events:
            one = client.Server("127.0.0.1", 1, TIMEOUTS, events, clock=clock, connect=server.connect)
            task = asyncio.create_task(client.closed_loop(one, "m", [ask(i, 2) for i in range(4)], concurrency=2))
            await asyncio.sleep(2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)

    run(main())
    played = Played((), read_events(path).events, server)
    assert [(event["kind"], event["tokens"]) for event in played.named("request_error")] == [("cancelled", 1)] * 2
    assert played.named("load_end")[0]["complete"] is False
    assert server.open == 0


def test_events_that_cannot_be_written_end_the_run(tmp_path: Path) -> None:
    class Full(Events):
        def write(self, event: str, *, t_ns: int | None = None, **fields: Any) -> None:
            if event == "chunk":
                raise NotWritten("cannot write: No space left on device")
            super().write(event, t_ns=t_ns, **fields)

    server = ScriptedServer(lambda _: answer(QUICK))

    async def main() -> None:
        with Full(tmp_path / "events.jsonl", clock=clock) as events:
            one = client.Server("127.0.0.1", 1, TIMEOUTS, events, clock=clock, connect=server.connect)
            await client.closed_loop(one, "m", [ask(0, 2)], concurrency=1)

    with pytest.raises(ExceptionGroup) as caught:
        run(main())
    assert [str(one) for one in caught.value.exceptions] == ["cannot write: No space left on device"]


def test_a_load_that_ran_freely_says_that_the_client_never_stood_still(tmp_path: Path) -> None:
    (end,) = play(tmp_path, lambda _: answer(QUICK), output_len=2).named("load_end")
    assert (end["client_lag_max_s"], end["client_lag_sum_s"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("stalls_s", "largest_s", "sum_s"),
    [
        ([(0.51, 0.24)], 0.2, 0.2),  # due at 0.55 s, and looked at when 0.75 s had come
        ([(0.51, 0.24), (1.01, 0.1)], 0.2, 0.26),  # then due every 50 ms from 0.75 s on
        ([(0.549, 0.004)], 0.003, 0.0),  # as late as a timer may be by itself
        ([(1.49, 0.2)], 0.19, 0.19),  # the load ends in it
    ],
)
def test_a_client_that_stands_still_says_for_how_long(
    tmp_path: Path, stalls_s: list[tuple[float, float]], largest_s: float, sum_s: float
) -> None:
    server = ScriptedServer(lambda _: answer(QUICK))
    path = tmp_path / "events.jsonl"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for at_s, for_s in stalls_s:
            loop.call_later(at_s, loop.pass_ns, round(for_s * SECOND))
        with Events(path, clock=clock) as events:
            one = client.Server("127.0.0.1", 1, TIMEOUTS, events, clock=clock, connect=server.connect)
            await client.closed_loop(one, "m", [ask(0, 2)], concurrency=1)

    run(main())
    end = read_events(path).events[-1]
    assert (end["event"], end["complete"]) == ("load_end", True)
    assert end["client_lag_max_s"] == pytest.approx(largest_s, abs=1e-6)
    assert end["client_lag_sum_s"] == pytest.approx(sum_s, abs=1e-6)


def test_a_stall_at_the_end_of_a_load_counts_although_the_timer_never_came() -> None:
    async def main() -> dict[str, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        lag = LoopLag(clock)
        await asyncio.sleep(0.01)
        loop.pass_ns(200_000_000)
        return lag.stop()

    found = run(main())
    assert found == {"client_lag_max_s": pytest.approx(0.16), "client_lag_sum_s": pytest.approx(0.16)}


def test_two_requests_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="same id"):
        play(tmp_path, lambda _: answer(QUICK), asked=[ask(0), ask(0)])


def test_a_concurrency_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="concurrency of 0"):
        play(tmp_path, lambda _: answer(QUICK), concurrency=0)


def test_over_a_real_socket_the_same_ids_arrive(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for _, piece in answer(QUICK).pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def main() -> tuple[client.Outcome, ...]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with Events(path) as events:
                one = client.Server("127.0.0.1", port, TIMEOUTS, events)
                return await client.closed_loop(one, "m", [ask(i, 2) for i in range(4)], concurrency=2)

    outcomes = asyncio.run(main())
    assert [(outcome.tokens, outcome.error) for outcome in outcomes] == [(2, None)] * 4
    chunks = [event for event in read_events(path).events if event["event"] == "chunk"]
    assert sorted(token for chunk in chunks for token in chunk["token_ids"]) == [100] * 4 + [101] * 4
