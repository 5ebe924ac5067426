"""The model from end to end: trace the driver, scale the counts, price the runs, put the rows together."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import RvvbenchError, UsageError
from rvvbench.kernel_model import emulator
from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.emulator import Traced, trace_program
from rvvbench.kernel_model.flow import Flow, flow_of, steps_of_case
from rvvbench.kernel_model.price import Prices, cycles, wanted
from rvvbench.kernel_model.price import Sequence as PricedSequence
from rvvbench.kernel_model.program import Program
from rvvbench.kernel_model.report import Modelled, Row, Share
from rvvbench.kernel_model.roofline import roofs
from rvvbench.kernel_model.scale import scaled, units_to_count
from rvvbench.kernel_model.tally import tally
from rvvbench.kernel_model.toolchain import Toolchain
from rvvbench.kernel_model.trace import Step, Trace
from rvvbench.progress import Progress

Units = tuple[int, ...]
"""Sizes that a case is counted at."""

MARK = "rvvbench_mark"
CALLS = 1
# Steps are kept to the digit, prices to the hundredth of a cycle; this many digits of a quotient are printed.
_DIGITS = 6
# A case whose counts do not scale is counted whole when it has at most this many multiply-adds: about a minute.
WHOLE_LIMIT_MACS = 400_000_000


@dataclass(frozen=True)
class Listed:
    """A kernel of the registry as the driver lists it."""

    name: str
    operation: str
    type: str
    available: bool


@dataclass(frozen=True)
class Counted:
    """The flow of a whole case and the sizes that it was counted at."""

    kernel: str
    flow: Flow
    units: Units


Results = dict[Case, Counted | str | None]
"""By case: what was counted, why it cannot be, or None where the counts do not scale."""


def listed_kernels(driver: Path, *, emulated: bool = True) -> list[Listed]:
    """The registry of a driver: under the emulated X60, or on this machine."""
    prefix = [emulator.qemu(), "-cpu", emulator.CPU] if emulated else []
    done = subprocess.run([*prefix, str(driver), "--list"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RvvbenchError(f"the driver does not list its kernels: {done.stderr.strip()[-500:]}", where=driver.name)
    fields = [line.split() for line in done.stdout.splitlines()]
    if not fields or any(len(line) != 4 for line in fields):
        raise UsageError("the driver lists no kernels", where=driver.name, mend="give a bench_driver of this checkout")
    return [Listed(name, operation, kind, said == "available") for name, operation, kind, said in fields]


def model(driver: Path, cases: Sequence[Case], toolchain: Toolchain, progress: Progress) -> list[Row]:
    """A row for every case, in their order."""
    progress.phase("disassembling the driver")
    program = toolchain.disassemble(driver)
    stripped = driver.with_name(driver.name + ".stripped")
    toolchain.strip(driver, stripped)
    return modelled_rows(cases, lambda sizes: _count(stripped, program, sizes, progress), toolchain, progress)


def modelled_rows(
    cases: Sequence[Case], count: Callable[[Mapping[Case, Units]], Results], toolchain: Toolchain, progress: Progress
) -> list[Row]:
    """A row for every case, in their order, from what `count` counts at the sizes that it is given."""
    progress.phase(f"counting executed blocks of {len(cases)} cases under QEMU")
    results = count({case: units_to_count(case.units, case.macs // case.units) for case in cases})
    again = [case for case, found in results.items() if found is None and case.macs <= WHOLE_LIMIT_MACS]
    if again:
        progress.phase(f"counting {len(again)} cases whole, whose counts do not grow evenly")
        results |= count({case: (case.units,) for case in again})
    progress.phase("pricing with llvm-mca")
    asked: dict[int, set[PricedSequence]] = {}
    for found in results.values():
        if isinstance(found, Counted):
            for iterations, sequences in wanted(found.flow).items():
                asked.setdefault(iterations, set()).update(sequences)
    prices = toolchain.price(asked)
    return [_row(case, results[case], prices) for case in cases]


def _count(driver: Path, program: Program, sizes: Mapping[Case, Units], progress: Progress) -> Results:
    """What is counted of each case at its sizes.

    A process for each processor: which of them counts a case has no part in the result.
    """
    shares = _shared_out(sizes, os.cpu_count() or 1)
    stop = threading.Event()
    with ThreadPoolExecutor(len(shares)) as pool:
        counting = [pool.submit(_count_share, driver, program, share, progress, stop) for share in shares]
        try:
            counted = [done.result() for done in as_completed(counting)]
        except BaseException:
            # Leaving the pool waits for its threads, which would otherwise count to the end: after Ctrl-C, and where
            # one of them failed, whose error is the first to come.
            stop.set()
            raise
    found = {case: result for share in counted for case, result in share.items()}
    return {case: found[case] for case in sizes}


def _shared_out(sizes: Mapping[Case, Units], parts: int) -> list[dict[Case, Units]]:
    """Cases in shares of about equal work; cases that the same texts count stay together."""
    together: dict[tuple[str, ...], list[Case]] = {}
    for case, units in sizes.items():
        together.setdefault(_texts(case, units), []).append(case)
    work = {
        texts: (cases[0].macs + cases[0].elements) / cases[0].units * sum(sizes[cases[0]])
        for texts, cases in together.items()
    }
    shares: list[dict[Case, Units]] = [{} for _ in range(parts)]
    loads = [0.0] * parts
    for texts in sorted(together, key=lambda t: (-work[t], t)):
        least = loads.index(min(loads))
        loads[least] += work[texts]
        shares[least] |= {case: sizes[case] for case in together[texts]}
    return [share for share in shares if share]


def _texts(case: Case, units: Units) -> tuple[str, ...]:
    return tuple(case.text(number) for number in units)


def _count_share(
    driver: Path, program: Program, sizes: Mapping[Case, Units], progress: Progress, stop: threading.Event
) -> Results:
    code = min(program.instructions), max(program.instructions) + 1
    traced = trace_program(
        driver,
        texts_of(sizes),
        calls=CALLS,
        mark=program.address_of(MARK),
        code=code,
        progress=progress.line,
        stop=stop,
    )
    return counted_cases(traced, sizes, program, _is_library)


def texts_of(sizes: Mapping[Case, Units]) -> list[str]:
    """What is to be executed to count cases at these sizes."""
    return sorted({text for case, units in sizes.items() for text in _texts(case, units)})


def counted_cases(
    traced: Traced, sizes: Mapping[Case, Units], program: Program, counts: Callable[[str], bool]
) -> Results:
    """What `traced` says of each case at its sizes.

    `traced` executed `texts_of(sizes)` of `program`, of which the functions count whose name `counts`.
    """
    places = dict(zip(texts_of(sizes), zip(traced.said, _stretches(traced), strict=True), strict=True))
    results: Results = {}
    same: dict[tuple[str, ...], Counted | str | None] = {}
    for case, units in sizes.items():
        key = (*_texts(case, units), case.whole)
        if key not in same:
            executed = [places[text] for text in key[:-1]]
            same[key] = _counted(case, units, executed, traced.trace, program, counts)
        results[case] = same[key]
    return results


def _stretches(traced: Traced) -> list[int | None]:
    """For what the driver said of each case, its number among those that were executed, None where it was not."""
    numbers: list[int | None] = []
    executed = 0
    for said in traced.said:
        numbers.append(None if "error" in said else executed)
        executed += "error" not in said
    return numbers


def _counted(
    case: Case,
    units: Units,
    executed: Sequence[tuple[Mapping[str, Any], int | None]],
    trace: Trace,
    program: Program,
    counts: Callable[[str], bool],
) -> Counted | str | None:
    """`executed`: at each size what the driver said, and the number of its steps in the trace."""
    kernels, steps = [], []
    try:
        for said, number in executed:
            if number is None:
                return str(said["error"])
            kernels.append(str(said["kernel"]))
            steps.append(steps_of_case(trace, number, program, counts))
        if len(set(kernels)) != 1:
            return f"smaller parts of it run other kernels: {', '.join(sorted(set(kernels)))}"
        if units == (case.units,):
            _check_work(case, executed[0][0])
            total: Mapping[Step, int] | None = steps[0]
        else:
            total = scaled(dict(zip(units, steps, strict=True)), case.units)
        if total is None:
            return None
        return Counted(kernels[0], flow_of(total, trace, program), units)
    except RvvbenchError as error:
        return str(error)


def _check_work(case: Case, said: Mapping[str, Any]) -> None:
    for name, number, what in (("macs", case.macs, "multiply-adds"), ("elements", case.elements, "elements")):
        if int(said[name]) != number:
            raise RvvbenchError(f"the driver computes {said[name]} {what} where {number} are meant", where=case.whole)


def _is_library(function: str) -> bool:
    """The operator, and what it calls of the C library; not the driver around it."""
    return function not in ("main", MARK) and "kernel_bench" not in function


def _row(case: Case, found: Counted | str | None, prices: Prices) -> Row:
    modelled, reason = None, None
    if isinstance(found, Counted):
        modelled = _modelled(case, found, prices)
    else:
        reason = found or "its counts do not grow evenly with its size, and it is too large to be counted whole"
    return Row(
        operation=case.operation,
        type=case.type,
        model=case.model,
        layer=case.layer,
        sizes=dict(case.fixed),
        case=case.whole,
        macs=case.macs,
        elements=case.elements,
        moved_bytes=case.moved_bytes,
        modelled=modelled,
        reason=reason,
    )


def _modelled(case: Case, found: Counted, prices: Prices) -> Modelled:
    cost = cycles(found.flow, prices)
    counts = tally(found.flow, emulator.VLEN_BITS)
    in_order, floor = float(cost.in_order), float(cost.floor)
    return Modelled(
        kernel=found.kernel,
        counted_units=list(found.units),
        instructions=counts.instructions,
        vector_instructions=counts.vector_instructions,
        l1_loaded_bytes=counts.loaded_bytes,
        l1_stored_bytes=counts.stored_bytes,
        cycles_in_order=round(in_order, 2),
        cycles_floor=round(floor, 2),
        macs_per_cycle=_quotient(case.macs, in_order),
        macs_per_cycle_floor=_quotient(case.macs, floor),
        peak_share=_quotient(case.macs, in_order * case.peak_macs_per_cycle),
        cycles_per_element=round(in_order / case.elements, _DIGITS) if case.elements else None,
        cycles_per_element_floor=round(floor / case.elements, _DIGITS) if case.elements else None,
        roofline=[
            Share(**{**asdict(roof), "modelled_s": round(roof.modelled_s, 9), "share": round(roof.share, _DIGITS)})
            for roof in roofs(case.macs, case.moved_bytes, in_order, case.peak_macs_per_cycle)
        ],
    )


def _quotient(macs: int, cycles: float) -> float | None:
    """Multiply-adds per cycle, None where multiply-adds do not describe the work."""
    return round(macs / cycles, _DIGITS) if macs else None
