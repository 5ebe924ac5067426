"""The client of a serving run: a closed loop at a concurrency, or an open loop at a request rate.

Every request has a time at which the load wanted it sent (`scheduled_ns`): in an open loop the arrival that was
drawn, in a closed loop the moment its slot became free. What passes from there to the sending is the client's own
queue and is told apart from the server's time. Failed requests do not stop the others.

Events: `load_start` .. `load_end` around a load; per request `request_start`, `request_sent`, a `chunk` for each
message, and `request_end` or `request_error`; of a prompt in words an `answer` before its `request_end`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .arrivals import Arrivals
from .events import Events
from .exchange import Asked, Exchange, Outcome, Request, TextRequest, Timeouts
from .loop_lag import LoopLag

__all__ = ["Arrivals", "Outcome", "Request", "Server", "TextRequest", "Timeouts", "closed_loop", "open_loop"]

_NS_PER_S = 1e9

Connect = Callable[[Callable[[], asyncio.Protocol], str, int], Awaitable[Any]]


async def _connect(protocol: Callable[[], asyncio.Protocol], host: str, port: int) -> None:
    await asyncio.get_running_loop().create_connection(protocol, host, port)


@dataclass(frozen=True)
class Server:
    """Where and how to ask, and where to write what comes. `incremental`: it streams new tokens only
    (`--incremental-streaming-output`). `clock` is the one that the events' times are in and the event loop sleeps by.
    """

    host: str
    port: int
    timeouts: Timeouts
    events: Events
    incremental: bool = False
    clock: Callable[[], int] = time.monotonic_ns
    connect: Connect = _connect


@dataclass(frozen=True)
class _Prepared:
    """A request whose bytes are made before any clock runs."""

    request: Asked
    wire: bytes
    input_sha256: str


async def closed_loop(
    server: Server, load: str, requests: Sequence[Asked], *, concurrency: int, measured: bool = True
) -> tuple[Outcome, ...]:
    """Keep `concurrency` requests in flight until all were sent; the outcomes in the order of `requests`.

    `load` names this load in the events; `measured` False for a warm-up. Raises: ValueError for a concurrency below
    1 or an id used twice. Cancelling ends every request with an event that says so.
    """
    if concurrency < 1:
        raise ValueError(f"a concurrency of {concurrency}")
    prepared = _prepare(server, requests)
    waiting = iter(prepared)
    outcomes: dict[str, Outcome] = {}

    async def slot(free_ns: int) -> None:
        for one in waiting:
            outcome = await _exchange(server, load, one, free_ns)
            outcomes[outcome.request] = outcome
            free_ns = outcome.end_ns

    with _Load(server, load, len(prepared), mode="closed", concurrency=concurrency, measured=measured) as start_ns:
        async with asyncio.TaskGroup() as slots:
            for _ in range(min(concurrency, len(prepared))):
                slots.create_task(slot(start_ns))
    return tuple(outcomes[request.id] for request in requests)


async def open_loop(
    server: Server, load: str, requests: Sequence[Asked], *, arrivals: Arrivals, measured: bool = True
) -> tuple[Outcome, ...]:
    """Send each request when it is due, however many are in flight; else as `closed_loop`."""
    prepared = _prepare(server, requests)
    offsets_ns = arrivals.offsets_ns(len(prepared))
    with _Load(server, load, len(prepared), mode="open", arrivals=arrivals, measured=measured) as start_ns:
        async with asyncio.TaskGroup() as tasks:
            running = []
            for one, offset_ns in zip(prepared, offsets_ns, strict=True):
                due_ns = start_ns + offset_ns
                await _sleep_until(due_ns, server.clock)
                running.append(tasks.create_task(_exchange(server, load, one, due_ns)))
    return tuple(task.result() for task in running)


class _Load:
    """Writes `load_start` and, whatever happens, `load_end`; gives the time of the start."""

    def __init__(
        self,
        server: Server,
        load: str,
        requests: int,
        *,
        mode: str,
        measured: bool,
        concurrency: int | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._server = server
        self._fields = {
            "load": load,
            "mode": mode,
            "measured": measured,
            "requests": requests,
            "concurrency": concurrency,
            "arrivals": arrivals.kind if arrivals else None,
            "rate_per_s": arrivals.rate_per_s if arrivals else None,
            "seed": arrivals.seed if arrivals and arrivals.kind == "poisson" else None,
        }

    def __enter__(self) -> int:
        start_ns = self._server.clock()
        self._server.events.write("load_start", t_ns=start_ns, **self._fields)
        self._lag = LoopLag(self._server.clock)
        return start_ns

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        lag = self._lag.stop()
        self._server.events.write(
            "load_end", t_ns=self._server.clock(), load=self._fields["load"], complete=kind is None, **lag
        )


async def _exchange(server: Server, load: str, one: _Prepared, scheduled_ns: int) -> Outcome:
    request = one.request
    exchange = Exchange(
        request,
        incremental=server.incremental,
        timeouts=server.timeouts,
        events=server.events,
        clock=server.clock,
    )
    server.events.write(
        "request_start",
        t_ns=server.clock(),
        load=load,
        request=request.id,
        scheduled_ns=scheduled_ns,
        **request.size,
        input_sha256=one.input_sha256,
        output_len=request.output_len,
    )
    limit_s = server.timeouts.connect_s
    try:
        try:
            async with asyncio.timeout(limit_s):
                await server.connect(lambda: exchange, server.host, server.port)
        except TimeoutError:
            exchange.fail("timeout", f"no connection within {limit_s:g} s", phase="connect", limit_s=limit_s)
        except OSError as error:
            exchange.fail("connect", f"no connection to {server.host}:{server.port}: {error}")
        exchange.send(one.wire)
        await asyncio.wait([exchange.done])  # not awaited itself: cancelling would take it from under the exchange
        return exchange.done.result()
    except asyncio.CancelledError:
        exchange.fail("cancelled", "the run was ended")
        raise


def _prepare(server: Server, requests: Sequence[Asked]) -> list[_Prepared]:
    ids = [request.id for request in requests]
    if len(set(ids)) != len(ids):
        raise ValueError("two requests have the same id")
    return [_Prepared(one, one.encode(server.host, server.port), one.input_sha256) for one in requests]


async def _sleep_until(due_ns: int, clock: Callable[[], int]) -> None:
    # A timer may fire a clock tick early; a request never goes out before it is due.
    while (left_ns := due_ns - clock()) > 0:
        await asyncio.sleep(left_ns / _NS_PER_S)
