"""What the client itself costs per token, against a server that says when it sent each.

    python -m tests.serving.bench_client [--concurrency 8] [--tokens 64] [--interval-ms 20] [--requests 32]

The server is another process on this machine; both read CLOCK_MONOTONIC, so a token's delay is the time in the client's
event minus the time at which the server began to send it, which stands in the token's id. All requests of a round get
their tokens at once, as from a server that decodes a batch. The delay holds the server's system calls, the kernel, and
waking a client; `floor` is the delay of a client that does nothing but read the clock. What ours adds to it is its
error in time; `handling` is its work per token, from the first look at it to the event in the file, after the clock was
read. CPU is the client process, without its start-up, over its tokens. Prints one JSON object; no test, because a busy
machine would fail it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rvvbench.record.events import read_events
from rvvbench.record.percentile import nearest_rank
from rvvbench.runner import client, exchange
from rvvbench.runner.events import Events
from rvvbench.runner.generation import Generation, Messages
from rvvbench.runner.http_response import Response

from .scripted_server import DONE, HEAD, LAST, generated, message


async def _serve(tokens: int, interval_s: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(HEAD)
        ids: list[int] = []
        for index in range(tokens):
            await asyncio.sleep(interval_s)
            ids.append(time.monotonic_ns())
            finish = {"type": "length", "length": tokens} if index + 1 == tokens else None
            writer.write(message(generated(ids, finish_reason=finish)))
        writer.write(DONE + LAST)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _time_handling(handling_ns: list[int]) -> None:
    digest = exchange.Exchange._digest

    def timed(self: exchange.Exchange, data: bytes, t_ns: int) -> None:
        start_ns = time.perf_counter_ns()
        digest(self, data, t_ns)
        handling_ns.append(time.perf_counter_ns() - start_ns)

    exchange.Exchange._digest = timed  # type: ignore[method-assign]


class _Bare(asyncio.Protocol):
    """Reads the clock when bytes come, and keeps them for later."""

    def __init__(self) -> None:
        self.arrived: list[tuple[int, bytes]] = []
        self.closed = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.arrived.append((time.monotonic_ns(), data))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set_result(None)

    def delays_ns(self) -> list[int]:
        response, messages, generation = Response(), Messages(), Generation(incremental=False)
        found = [(t_ns, one) for t_ns, data in self.arrived for one in messages.feed(response.feed(data))]
        chunks = [(t_ns, chunk) for t_ns, one in found if (chunk := generation.read(one))]
        return [t_ns - sent_ns for t_ns, chunk in chunks for sent_ns in chunk.token_ids]


async def _floor_ns(port: int, concurrency: int, requests: int, tokens: int) -> list[int]:
    wire = client.Request("bare", range(64), tokens).encode("127.0.0.1", port)
    left, done = iter(range(requests)), []

    async def slot() -> None:
        for _ in left:
            transport, bare = await asyncio.get_running_loop().create_connection(_Bare, "127.0.0.1", port)
            transport.write(wire)
            await bare.closed
            done.append(bare)

    await asyncio.gather(*(slot() for _ in range(concurrency)))
    return [delay for bare in done for delay in bare.delays_ns()]


async def _measure(port: int, path: Path, concurrency: int, requests: int, tokens: int) -> None:
    limits = client.Timeouts(connect_s=5, first_token_s=30, token_s=30, request_s=300)
    asked = [client.Request(f"r{index}", range(index, index + 64), tokens) for index in range(requests)]
    with Events(path) as events:
        server = client.Server("127.0.0.1", port, limits, events)
        outcomes = await client.closed_loop(server, "bench", asked, concurrency=concurrency)
    if any(outcome.error for outcome in outcomes):
        raise SystemExit(f"failed: {outcomes}")


def _milliseconds(values_ns: list[int]) -> dict[str, float]:
    values_ms = [value / 1e6 for value in values_ns]
    return {
        "median_ms": round(statistics.median(values_ms), 4),
        "p99_ms": round(nearest_rank(values_ms, 99), 4),
        "max_ms": round(max(values_ms), 4),
    }


def main() -> None:
    """Start the server, run the load, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--interval-ms", type=float, default=20)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.tokens, options.interval_ms / 1e3))
    arguments = [f"--tokens={options.tokens}", f"--interval-ms={options.interval_ms}", "--serve"]
    with subprocess.Popen([sys.executable, "-m", "tests.serving.bench_client", *arguments], stdout=-1) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            print(json.dumps(_run(port, options)))
        finally:
            process.terminate()


def _run(port: int, options: argparse.Namespace) -> dict[str, Any]:
    handling_ns: list[int] = []
    _time_handling(handling_ns)
    floor_ns = asyncio.run(_floor_ns(port, options.concurrency, options.requests, options.tokens))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        cpu_s = time.process_time()
        asyncio.run(_measure(port, path, options.concurrency, options.requests, options.tokens))
        cpu_s = time.process_time() - cpu_s
        chunks = [event for event in read_events(path).events if event["event"] == "chunk"]
    delays_ns = [chunk["t_ns"] - sent_ns for chunk in chunks for sent_ns in chunk["token_ids"]]
    return {
        "concurrency": options.concurrency,
        "tokens": len(delays_ns),
        "chunks": len(chunks),
        "floor": _milliseconds(floor_ns),
        "delay": _milliseconds(delays_ns),
        "handling": _milliseconds(handling_ns),
        "cpu_ms_per_token": round(cpu_s * 1e3 / len(delays_ns), 4),
    }


if __name__ == "__main__":
    main()
