"""The kernels' own test program on every machine that it must hold on, and what the verdicts add up to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import RvvbenchError

VECTOR_LENGTHS = (128, 256, 512, 1024)

# What agnostic elements become: all ones, or what they were (as on an X60, which hides a mistake with them).
_ONES = "rvv_ta_all_1s=true,rvv_ma_all_1s=true"
_HALF = "zvfh=true,zfh=true"
_NO_HALF = "zvfh=false,zfh=false"
# The emulator executes Zvfbfwma, and its hwprobe says nothing of it.
_BRAIN = "zfbfmin=true,zvfbfmin=true,zvfbfwma=true"
_HAS_BRAIN = ("--zvfbfwma",)


@dataclass(frozen=True)
class Machine:
    """An emulated machine, or (`cpu` None) this one itself. `vlen_bits` 0: without V.

    `told` are arguments that tell the program what it cannot find out there.
    """

    name: str
    cpu: str | None
    vlen_bits: int
    zvfh: bool
    told: tuple[str, ...] = ()


def machines(host: str) -> list[Machine]:
    """Every machine: four vector lengths with zvfh and zvfbfwma and with neither, agnostic elements all ones; then the
    exceptions.
    """
    found = []
    for vlen in VECTOR_LENGTHS:
        cpu = f"rv64,v=true,vlen={vlen},{_ONES}"
        more = Machine(f"VLEN {vlen}, zvfh, zvfbfwma, agnostic ones", f"{cpu},{_HALF},{_BRAIN}", vlen, True, _HAS_BRAIN)
        found += [more, Machine(f"VLEN {vlen}, no zvfh, agnostic ones", f"{cpu},{_NO_HALF}", vlen, False)]
    found.append(Machine("VLEN 256, zvfh, agnostic undisturbed", f"rv64,v=true,vlen=256,{_HALF}", 256, True))
    found.append(Machine("riscv64 without V", "rv64,v=false", 0, False))
    found.append(Machine(f"this machine ({host})", None, 0, False))
    return found


@dataclass(frozen=True)
class Verdict:
    """What the program said on one machine. `problem` is None where nothing is wrong."""

    compiler: str
    machine: str
    seconds: float
    cases: int
    kernels: dict[str, int]
    hashes: dict[str, str]
    problem: str | None


def judge(
    compiler: str, machine: Machine, *, exit_code: int, output: str, errors: str, listed: Sequence[str], seconds: float
) -> Verdict:
    """The verdict of one run that ended with `exit_code`; `listed` are the kernels that the machine can run."""
    said = _said(output)
    if said is None:
        problem = f"ended with {exit_code} and no verdict: {_end(errors)}"
        return Verdict(compiler, machine.name, seconds, 0, {}, {}, problem)
    kernels = {str(name): int(count) for name, count in said["kernels"].items()}
    hashes = {str(group): str(value) for group, value in said["hashes"].items()}
    problems = []
    if exit_code != 0 or said["failures"]:
        problems.append(f"{said['failures']} failures (exit code {exit_code}): {_end(errors)}")
    if (int(said["vlen_bits"]), bool(said["zvfh"])) != (machine.vlen_bits, machine.zvfh):
        problems.append(f"ran as VLEN {said['vlen_bits']}, zvfh {said['zvfh']}")
    if missing := sorted(set(listed) - {name for name, count in kernels.items() if count > 0}):
        problems.append(f"not tested: {', '.join(missing)}")
    return Verdict(compiler, machine.name, seconds, int(said["cases"]), kernels, hashes, "; ".join(problems) or None)


def disagreements(verdicts: Sequence[Verdict]) -> list[str]:
    """Groups of kernels whose results must be the same bits everywhere and are not."""
    found = []
    for group in sorted({group for verdict in verdicts for group in verdict.hashes}):
        by_hash: dict[str, list[str]] = {}
        for verdict in verdicts:
            if group in verdict.hashes:
                by_hash.setdefault(verdict.hashes[group], []).append(f"{verdict.machine}, {verdict.compiler}")
        if len(by_hash) > 1:
            found.append(f"{group}: " + " against ".join(f"{places[0]} ({len(places)})" for places in by_hash.values()))
    return found


def listed_names(listing: str) -> list[str]:
    """Every kernel that `kernel_tests --list` names."""
    return [line.split()[0] for line in listing.splitlines()]


def untested(verdicts: Sequence[Verdict], registry: Sequence[str]) -> list[str]:
    """Kernels of the registry that no run tested."""
    tested = {name for verdict in verdicts for name, count in verdict.kernels.items() if count > 0}
    return sorted(set(registry) - tested)


@dataclass(frozen=True)
class Run:
    """One test program to run on one machine."""

    compiler: str
    machine: Machine
    program: Path


@dataclass(frozen=True)
class Ended:
    """How a process ended; `exit_code` None: it was stopped after `seconds`."""

    exit_code: int | None
    output: str
    errors: str
    seconds: float


def run_all(
    runs: Sequence[Run], execute: Callable[[Run, tuple[str, ...]], Ended], *, jobs: int, told: Callable[[str], None]
) -> list[Verdict]:
    """Every run, `jobs` at a time, in the order given. `execute` starts the run's program with arguments."""
    from concurrent.futures import ThreadPoolExecutor

    def one(run: Run) -> Verdict:
        listing = execute(run, ("--list",))
        listed = [line.split()[0] for line in listing.output.splitlines() if line.endswith(" available")]
        if listing.exit_code != 0 or not listed:
            raise RvvbenchError(
                f"the test program lists no kernels: {_end(listing.errors)}",
                where=f"{run.machine.name}, {run.compiler}",
            )
        ended = execute(run, ())
        code = -1 if ended.exit_code is None else ended.exit_code
        verdict = judge(
            run.compiler,
            run.machine,
            exit_code=code,
            output=ended.output,
            errors=ended.errors if ended.exit_code is not None else "stopped for taking too long",
            listed=listed,
            seconds=round(ended.seconds, 1),
        )
        told(f"{verdict.machine}, {verdict.compiler}: {verdict.problem or 'ok'}")
        return verdict

    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, runs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _said(output: str) -> dict[str, Any] | None:
    lines = output.splitlines()
    try:
        said = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    wanted = {"vlen_bits", "zvfh", "cases", "failures", "kernels", "hashes"}
    return said if isinstance(said, dict) and wanted <= said.keys() else None


def _end(errors: str) -> str:
    return " | ".join(errors.strip().splitlines()[-3:]) or "nothing on standard error"
