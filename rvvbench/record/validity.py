"""Is what was declared what ran? Pure: what a row expects, against the events of its processes.

What is not proven is not valid: a missing event is a reason like a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rvvbench.record.attestation import Event, Found, kernel_reasons, routing_reasons
from rvvbench.record.cache_checks import cache_reasons
from rvvbench.record.events import named
from rvvbench.record.identity import canonical_json
from rvvbench.record.phases import once, ordered
from rvvbench.record.schema import Expected, Process, Reason, Row, Validity
from rvvbench.record.server_checks import SERVING_CHECKS, errors_of
from rvvbench.record.task_checks import TASK_CHECKS
from rvvbench.record.tokens import generation

OBSERVATION_SCHEMA = "rvvbench/observation/1"


def assess(row: Row) -> Validity:
    """Validity of the row from what it expects and its processes' events; what is stored of it is not looked at."""
    return assess_processes(row.expected, row.cache_state, row.processes)


def assess_processes(expected: Expected, cache_state: str, processes: Sequence[Process]) -> Validity:
    """As `assess`, before there is a row."""
    reasons = [Reason(id=id_, text=text) for id_, text in _row_reasons(expected, processes)]
    for process in processes:
        for check in _checks(expected):
            reasons += [Reason(id=id_, text=text, process=process.index) for id_, text in check(expected, process)]
        of_cache = cache_reasons(expected, cache_state, process)
        reasons += [Reason(id=id_, text=text, process=process.index) for id_, text in of_cache]
    return Validity.of(tuple(reasons))


def _checks(expected: Expected) -> tuple[Check, ...]:
    if expected.task is not None:
        return _OF_A_TASK
    return _OF_ONE_BATCH if expected.load is None else _OF_A_LOAD


def _row_reasons(expected: Expected, processes: Sequence[Process]) -> Found:
    if len(processes) != expected.processes:
        yield "process-count", f"{len(processes)} fresh processes ran, {expected.processes} are declared"
    if [process.index for process in processes] != list(range(len(processes))):
        yield "process-count", f"the processes are numbered {[process.index for process in processes]}"
    for process in processes:
        for start in named(process.events, "supervisor_start"):
            if "process_index" in start and canonical_json(start["process_index"]) != canonical_json(process.index):
                said = start["process_index"]
                yield "process-count", f"process {process.index} says of itself that it is process {said}"
    starts = [tuple((e.get("pid"), e.get("t_ns"), e.get("unix_s")) for e in _starts(process)) for process in processes]
    if any(start and starts.count(start) > 1 for start in starts):
        yield "process-not-fresh", "two of the processes have the same start: one process is counted twice"
    # Answers to questions that are asked together may depend on who came when: a pass has as many rows as requests.
    alone = expected.task is None or (expected.load is not None and expected.load.in_flight == 1)
    compared = processes if alone else ()
    generations = [generation(process.events, expected.load).token_ids for process in compared]
    for process, tokens in zip(compared[1:], generations[1:], strict=True):
        if tokens != generations[0]:
            yield "tokens-differ", f"process {process.index} generated other tokens than process {processes[0].index}"


def _starts(process: Process) -> list[Event]:
    return named(process.events, "process_start")


def _ended(expected: Expected, process: Process) -> Found:
    for problem in process.damage:
        yield "events-damaged", problem
    errors = errors_of(expected, process.events)
    # The runner ends with 1 for a request that failed, of whichever load: then it is that load's rows that are invalid.
    elsewhere = not errors and process.exit_code == 1 and bool(named(process.events, "error"))
    for error in errors:
        yield "error", f"{error.get('type')}: {error.get('message')}"
    if process.exit_code is None and process.signal is None:
        yield "process-not-ended", "the supervisor did not see the process end"
    elif process.signal:
        yield "process-failed", f"the process was ended by signal {process.signal}"
    elif process.exit_code != 0 and not elsewhere:
        yield "process-failed", f"the process ended with {process.exit_code}"
    if process.container_exit_code not in (None, 0) and not (elsewhere and process.container_exit_code == 1):
        yield "container-failed", f"the container ended with {process.container_exit_code}"


def _observed(expected: Expected, process: Process) -> Found:
    """What was found disturbed is taken over from whoever watched; on a board somebody must have watched."""
    observation = process.observation
    if observation is None:
        if expected.on_board:
            yield "not-observed", "the conditions of the board were not observed while it ran"
        return
    reasons = observation.get("reasons")
    if observation.get("schema") != OBSERVATION_SCHEMA or not isinstance(reasons, list):
        yield (
            "observation",
            f"the observation is {observation.get('schema')} or has no reasons, not {OBSERVATION_SCHEMA}",
        )
        return
    for reason in reasons:
        known = isinstance(reason, dict) and isinstance(reason.get("id"), str) and isinstance(reason.get("text"), str)
        yield (reason["id"], reason["text"]) if known else ("observation", f"a reason of it cannot be read: {reason}")


def _phases(_: Expected, process: Process) -> Found:
    names = ("supervisor_start", "process_start", "environment", "model_loaded", "warmup", "measured_start", "prefill")
    yield from once(process, *names, "measured_end", "attestation")
    yield from _order(process)


def _order(process: Process) -> Found:
    """The measured pass lies between its two marks, and the warm-up before it."""
    passes = [*named(process.events, "prefill"), *named(process.events, "decode")]
    moments = [
        *((name, event.get("t_ns")) for name in ("warmup", "measured_start") for event in named(process.events, name)),
        *(("the prefill's start", event.get("start_ns")) for event in passes[:1]),
        *(("the last pass's end", event.get("end_ns")) for event in passes[-1:]),
        *(("measured_end", event.get("t_ns")) for event in named(process.events, "measured_end")),
    ]
    yield from ordered(moments)


def _pins(expected: Expected, process: Process) -> Found:
    pins = named(process.events, "pin")
    if not pins:
        yield "pins-unproven", "the process checked no pin"
    for pin in pins:
        if pin.get("ok") is not True or pin.get("expected") != pin.get("observed"):
            yield "pin", f"{pin.get('name')}: expected {pin.get('expected')}, observed {pin.get('observed')}"
    for file, sha256 in expected.checkpoint_files.items():
        if not any(_holds(pin.get("observed"), file, sha256) for pin in pins):
            yield "pins-unproven", f"no pin shows that the checkpoint's {file} is {sha256}"


def _holds(observed: Any, file: str, sha256: str) -> bool:
    return bool(observed == sha256 or (isinstance(observed, dict) and observed.get(file) == sha256))


def _environment(expected: Expected, process: Process) -> Found:
    for start in named(process.events, "supervisor_start"):
        if start.get("machine") != expected.machine:
            yield "machine", f"ran on {start.get('machine')}, declared {expected.machine}"
    for environment in named(process.events, "environment"):
        if environment.get("torch_threads") != expected.threads:
            yield "threads", f"torch ran with {environment.get('torch_threads')} threads, declared {expected.threads}"
        if expected.vlen_bits is not None:
            yield from _vectors(expected.vlen_bits, environment)
        yield from _differences("package", expected.packages, environment.get("packages"))
        yield from _differences("environment", expected.environment, environment.get("env"))
        yield from _differences("server-args", expected.server_args, environment.get("server_args"))
    for memory in named(process.events, "memory"):
        if memory.get("emulated") is not expected.emulated:
            said = memory.get("emulated")
            yield "emulation", f"the memory of {memory.get('role')} says emulated {said}, declared {expected.emulated}"
            break


def _vectors(vlen_bits: int, environment: Event) -> Found:
    if environment.get("vlen_bits") != vlen_bits:
        yield "vlen", f"VLEN was {environment.get('vlen_bits')} bits, declared {vlen_bits}"
    isa = environment.get("isa")
    has_v = isa.get("v") if isinstance(isa, dict) else None
    if has_v is not True:
        yield "isa", f"extension v was {has_v} ({environment.get('isa_source')}), declared is VLEN {vlen_bits}"


def _differences(id_: str, declared: Mapping[str, Any], observed: Any) -> Found:
    seen = observed if isinstance(observed, dict) else {}
    for name, value in declared.items():
        # As JSON: Python takes true for 1, SGLang does not.
        if name not in seen or canonical_json(seen[name]) != canonical_json(value):
            yield id_, f"{name} was {seen.get(name, 'not there')}, declared {value}"


def _shape(expected: Expected, process: Process) -> Found:
    tokens_in = expected.batch_size * expected.input_len
    for prefill in named(process.events, "prefill"):
        if prefill.get("input_tokens") != tokens_in:
            yield "shape", f"{prefill.get('input_tokens')} input tokens, declared {tokens_in}"
    one = generation(process.events, None)
    if len(one.token_ids) != expected.output_len:
        yield "shape", f"{len(one.token_ids)} output tokens for each sequence, declared {expected.output_len}"
    for position, (ids, logprobs) in enumerate(zip(one.token_ids, one.logprobs, strict=True), start=1):
        if len(ids) != expected.batch_size or None in ids:
            yield "shape", f"token {position}: {len(ids)} sequences with integer ids, declared {expected.batch_size}"
        if len(logprobs) != expected.batch_size or None in logprobs:
            yield "logprobs", f"token {position}: no finite log-probability for every sequence"
    steps = [event.get("step") for event in named(process.events, "decode")]
    if steps != list(range(1, len(steps) + 1)):
        yield "shape", f"the decode steps are numbered {steps}"


def _attested(expected: Expected, process: Process) -> Found:
    for attestation in named(process.events, "attestation"):
        yield from kernel_reasons(expected, attestation)
        yield from routing_reasons(expected, attestation)


Check = Callable[[Expected, Process], Found]

_OF_ONE_BATCH: tuple[Check, ...] = (_ended, _observed, _phases, _pins, _environment, _shape, _attested)
_OF_A_LOAD: tuple[Check, ...] = (_ended, _observed, _pins, _environment, *SERVING_CHECKS)
_OF_A_TASK: tuple[Check, ...] = (_ended, _observed, _pins, _environment, *TASK_CHECKS)
