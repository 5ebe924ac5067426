"""The steps of a serving run, from a server that was just started to the last load. Each raises what ends the run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from . import client, compiled, cross_check, environment, memory, pins, server_info, server_processes
from .child import Child
from .exchange import Asked, Outcome, Timeouts
from .failure import RunnerError, ServingFailed
from .hardware import Hardware
from .http_get import get
from .server_arguments import HOST
from .serving_run import Run
from .serving_spec import READY, Load

_POLL_S = 0.05
_CONNECT_S = 10.0
# A load of warm-ups is given a moment more than each of its requests, so that the request says what it waited for.
_MOMENT_S = 1.0


async def steps(run: Run, server: Child, environ: Mapping[str, str], found: Hardware, ready: Asked) -> None:
    """All of them. `environ` is the server's; `ready` is the request of the first generation."""
    await start_up(run, server)
    await first_generation(run, server, ready)
    scheduler = await prove(run, environ, found)
    roles = server_processes.roles(server.pid, scheduler)
    run.workers = {pid: role for pid, role in roles.items() if role in server_processes.WORKERS}
    remember_memory(run, server, scheduler, READY)
    for load in run.spec.loads:
        run.phase = load.name
        if load.measured:
            await attest(run, load, "before")
        await one_load(run, load)
        if load.measured:
            await attest(run, load, "after")
        remember_memory(run, server, scheduler, load.name)
    if run.spec.variant.compiles:
        await tell_compiled(run)
    if run.spec.cross_check is not None:
        run.phase = "cross_check"
        await cross_check.measure(run, run.spec.cross_check, environ)


async def start_up(run: Run, server: Child) -> None:
    """Wait for the first answer over HTTP, whatever it is."""
    run.phase, limit_s = "startup", run.spec.limits.startup_s
    try:
        async with asyncio.timeout(limit_s):
            while await _status(run.port) is None:
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        said = f"nothing answered on port {run.port} within {limit_s:g} s (timeouts_s.startup)"
        raise ServingFailed("startup-timeout", said) from None
    run.came("server_listening", server)


async def first_generation(run: Run, server: Child, ready: Asked) -> None:
    """Wait until SGLang's own start-up request is done, then generate once: only that proves a server to be ready."""
    run.phase, limit_s = "compile", run.spec.limits.compile_s
    listening_s = server.age_s()
    status = None
    try:
        async with asyncio.timeout(limit_s):
            while (status := await _status(run.port)) != 200:
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        said = f"/health answered {status}, not 200, for {limit_s:g} s (timeouts_s.compile)"
        raise ServingFailed("not-ready", said) from None
    left_s = max(_POLL_S, limit_s - (server.age_s() - listening_s))
    load = Load(READY, False, 1, None, (ready,))
    failed = failure(load, await _send(run, load, left_s))
    if failed is not None:
        if failed.type == "compile-timeout":
            said = f"no first generation within {limit_s:g} s of the first answer (timeouts_s.compile)"
            raise ServingFailed(failed.type, said)
        raise ServingFailed("not-ready", str(failed)) if failed.type == "request-failed" else failed
    run.came("server_ready", server)


async def prove(run: Run, environ: Mapping[str, str], found: Hardware) -> int:
    """Hold what the server says of itself against the spec, and record it. The scheduler's pid."""
    spec = run.spec
    info = await server_info.fetch(HOST, run.port, spec.limits.request_s)
    ran = server_info.ran(info)
    given = {name: info.get(name) for name in spec.server_args}
    run.events.write(
        "environment",
        **environment.fields(
            spec,
            found,
            environ=environ,
            torch_threads=ran.torch_threads,
            platform_class=ran.platform_class,
            server_args=given,
        ),
    )
    server_info.check({**spec.server_args, "host": HOST, "port": run.port}, info)
    checked = [pins.equal("torch_threads", spec.threads, ran.torch_threads)]
    if spec.expect.kernels_sha256 is not None:
        checked.append(pins.equal("loaded_kernels_sha256", spec.expect.kernels_sha256, ran.library_sha256))
    pins.check(iter(checked), run.events)
    if ran.platform_class != environment.PLATFORM_CLASS:
        raise RunnerError(f"the scheduler's platform is {ran.platform_class}, not {environment.PLATFORM_CLASS}")
    return ran.pid


async def one_load(run: Run, load: Load) -> None:
    """Send a load. A warm-up that fails ends the run; failed measured requests are told, and the run goes on."""
    limits = run.spec.limits
    if load.measured:
        failed = failure(load, await _send(run, load, limits.request_s))
    else:
        try:
            async with asyncio.timeout(limits.compile_s + _MOMENT_S):
                failed = failure(load, await _send(run, load, limits.compile_s))
        except TimeoutError:
            said = f"load {load.name} did not end within {limits.compile_s:g} s (timeouts_s.compile)"
            failed = ServingFailed("compile-timeout", said)
    if failed is None:
        return
    if not load.measured:
        raise failed
    await asyncio.sleep(run.death_shows_s)  # of a server that died the watch tells, and ends this
    run.failed = True
    run.error(failed.type, str(failed))


def failure(load: Load, outcomes: Sequence[Outcome]) -> ServingFailed | None:
    """What to say of the requests of a load that failed; None where none did."""
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if not failed:
        return None
    timed_out = any(outcome.error == "timeout" for outcome in failed)
    kind = ("request-timeout" if load.measured else "compile-timeout") if timed_out else "request-failed"
    told = "; ".join(f"{outcome.request}: {outcome.message}" for outcome in failed)
    limit = f" (timeouts_s.{kind.removesuffix('-timeout')})" if timed_out else ""
    return ServingFailed(kind, f"{len(failed)} of {len(outcomes)} requests of load {load.name} failed: {told}{limit}")


async def attest(run: Run, load: Load, moment: str) -> None:
    """Write what the scheduler counted up to now."""
    ran = server_info.ran(await server_info.fetch(HOST, run.port, run.spec.limits.request_s))
    run.events.write("attestation", load=load.name, moment=moment, **ran.event_fields())


async def tell_compiled(run: Run) -> None:
    """Write what the scheduler compiled, or took from its cache, since it started. How many graphs there were before
    and after each load, its attestations say.
    """
    told = server_info.ran(await server_info.fetch(HOST, run.port, run.spec.limits.request_s)).compiled
    if told is not None:
        run.events.write("compiled", **compiled.fields(told, None))


def remember_memory(run: Run, server: Child, scheduler: int, phase: str) -> None:
    """Write the memory of every process of the server."""
    for pid, role in server_processes.roles(server.pid, scheduler).items():
        run.events.write("memory", **memory.event(pid, phase, role, is_emulated=run.emulated))


async def _send(run: Run, load: Load, limit_s: float) -> tuple[Outcome, ...]:
    timeouts = Timeouts(min(_CONNECT_S, limit_s), limit_s, limit_s, limit_s)
    incremental = bool(run.spec.server_args.get("incremental_streaming_output"))
    server = client.Server(HOST, run.port, timeouts, run.events, incremental)
    if load.arrivals is not None:
        return await client.open_loop(server, load.name, load.requests, arrivals=load.arrivals, measured=load.measured)
    return await client.closed_loop(
        server, load.name, load.requests, concurrency=load.concurrency or 1, measured=load.measured
    )


async def _status(port: int) -> int | None:
    """The status of `/health`, None where nothing answers. It does not generate: see `environment.of_server`."""
    try:
        return (await get(HOST, port, "/health"))[0]
    except OSError:
        return None
