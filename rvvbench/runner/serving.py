"""A serving run: one fresh server, supervised, asked by the client, and always ended.

This process is supervisor and client in one: an event loop that mostly sleeps. The server is a child in a group of its
own. Whatever happens, the events so far are in the file, an `error` says what went wrong with the end of the server's
log, nothing of the server is left, and `process_end` has the verdict.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Coroutine, Sequence
from typing import Any, NoReturn

from . import environment, hardware, memory, pins, supervisor
from .child import Child
from .events import Events
from .exchange import Asked
from .failure import RunnerError, Terminated
from .free_port import free_port
from .log_tail import log_tail
from .server_arguments import flags
from .server_death import died
from .serving_run import Run
from .serving_spec import ServingSpec, readiness
from .serving_steps import steps

LAUNCH = (sys.executable, "-m", "sglang.launch_server")
LOG_NAME = "server.log"
ENDING = (signal.SIGTERM, signal.SIGINT)
# How long the server is given when this process was told to stop: podman itself waits ten seconds.
HURRIED_S = 5.0
# SGLang's own watchdog ends the server when a worker has died, and logs how it died.
SAYS_WHY_S = 1.2
# The workers are looked at every time, whenever they came (`Run.workers`).
LOOKS_A_TREE = 8


def main(spec: ServingSpec, launch: Sequence[str] = LAUNCH) -> int:
    """Run, and return the exit code. `launch` starts the server, but for its arguments."""
    with Events(spec.events_path) as events:
        events.write("supervisor_start", **supervisor.start_fields(spec))
        run = Run(spec, events, log=spec.out / LOG_NAME)
        code = supervise(run, launch)
        events.write("process_end", exit_code=code, signal=None)
        return code


def supervise(run: Run, launch: Sequence[str]) -> int:
    """All of the run; the exit code. Whatever fails was told in an `error` event."""
    try:
        for number in ENDING:
            signal.signal(number, _terminate)
        ready = readiness(run.spec)
        found = hardware.probe()
        pins.check(pins.before_import(run.spec, found.vlen_bits), run.events)
        environ = environment.of_server(run.spec, os.environ, environment.sglang_model_files())
        run.port = free_port(run.spec.port)
        return asyncio.run(serve(run, [*launch, *flags(run.spec.server_args, run.port)], environ, found, ready))
    except BaseException as error:
        return tell(run, error)


def _terminate(number: int, _: object) -> NoReturn:
    raise Terminated(number)


async def serve(run: Run, argv: list[str], environ: dict[str, str], found: hardware.Hardware, ready: Asked) -> int:
    """Start the server, go through the steps, end the server. The exit code."""
    stopped_by = end_on_signals()
    server = Child(argv, environ=environ, log=run.log)
    try:
        run.emulated = memory.emulated(server.pid)
        run.events.write("process_start", t_ns=server.started_ns, **run.start_fields(server))
        await unless_it_dies(run, server, steps(run, server, environ, found, ready))
        code = 1 if run.failed else 0
    except BaseException as error:
        code = tell(run, Terminated(stopped_by[0]) if stopped_by else error)
    finally:
        run.phase = "shutdown"
        ended = await server.stop(HURRIED_S if stopped_by else run.spec.limits.shutdown_s)
        run.events.write("server_end", **ended)
    return code


def end_on_signals() -> list[int]:
    """Let SIGTERM and SIGINT cancel the calling task, once; the list then has the signal."""
    task, received = asyncio.current_task(), list[int]()

    def end(number: int) -> None:
        if not received and task is not None:
            received.append(number)
            task.cancel()

    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    return received


async def unless_it_dies(run: Run, server: Child, work: Coroutine[Any, Any, None]) -> None:
    """Do `work`. Raises what it raises, or ServingFailed when the server dies, which explains all else."""
    tasks = [asyncio.create_task(work), asyncio.create_task(watch(run, server))]
    working, watching = tasks
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done() and working.exception():
            await asyncio.wait([watching], timeout=run.death_shows_s)
        if watching.done():
            watching.result()
        working.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def watch(run: Run, server: Child) -> NoReturn:
    """Sample the memory of the server's tree until the server, or a worker that it needs, is gone: ServingFailed.

    Runs in the loop that takes the tokens' times, so a look reads one small file for each process, and who belongs to
    the tree is asked only at some of them.
    """
    tree: list[int] = []
    looks = 0
    while True:
        if looks % LOOKS_A_TREE == 0:
            tree = memory.descendants(server.pid, memory.parents())
        looks += 1
        seen = memory.statuses({*tree, *run.workers})
        if seen:
            run.events.write("memory_tree", **memory.tree_fields(seen))
        missing = [f"the {role} (pid {pid})" for pid, role in run.workers.items() if pid not in seen]
        if missing:
            await server.ended_within(SAYS_WHY_S)
        code = server.code()
        if code is not None or missing:
            raise died(code, missing, log_tail(run.log), run.port)
        await asyncio.sleep(run.look_s)


def tell(run: Run, error: BaseException) -> int:
    """Write the `error` event; the exit code."""
    error = cause(error)
    if isinstance(error, RunnerError):
        run.error(error.type, str(error))
        return error.exit_code
    trace = "".join(traceback.format_exception(error))
    run.error(RunnerError.type, f"{type(error).__name__}: {error}", trace)
    return RunnerError.exit_code


def cause(error: BaseException) -> BaseException:
    """The first error of a group, however deep: the others are cancellations, or the same again."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
