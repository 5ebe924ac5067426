"""Builders of exact events, rows and records: tokens at 3.0, 3.5 ... 6.5 s, which is exactly 2.00 tok/s of decode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rvvbench.record.build import Ran, build_record, build_row
from rvvbench.record.events import EventsRead
from rvvbench.record.operators import PACKED_LINEAR_OP
from rvvbench.record.schema import Expected, Heading, Image, Record, Route, Row, Target

S = 1_000_000_000
MIB = 1024 * 1024
KERNELS = "ab" * 32
CHECKPOINT = {"model.safetensors": "cd" * 32}
PACKAGES = {"torch": "2.14.1", "sglang": "0.5.15"}
TOKENS = (11, 12, 13, 14, 15, 16, 17, 18)

TORCH_ROUTES = (
    Route(projection="qkv_proj", m=64, path="torch", calls=2),
    Route(projection="qkv_proj", m=1, path="torch", calls=14),
)
PACKED_ROUTES = (
    Route(projection="qkv_proj", m=64, path="packed", calls=2),
    Route(projection="qkv_proj", m=1, path="packed", calls=14),
)

IMAGE = Image(name="rvvbench-runtime", digest="sha256:" + "ef" * 32, arch="riscv64")

OBSERVED = {"schema": "rvvbench/observation/1", "reasons": []}
"""What a watcher leaves who saw nothing wrong."""

Event = dict[str, Any]


def expected(**changes: Any) -> Expected:
    """What a torch-native row on an emulated K1 expects; `changes` replace fields."""
    fields: dict[str, Any] = {
        "processes": 1,
        "batch_size": 1,
        "input_len": 64,
        "output_len": 8,
        "threads": 1,
        "emulated": True,
        "machine": "riscv64",
        "vlen_bits": 256,
        "packages": PACKAGES,
        "checkpoint_files": CHECKPOINT,
        "kernels_sha256": None,
        "routing": TORCH_ROUTES,
        "environment": {"OMP_NUM_THREADS": "1"},
        "server_args": {"device": "cpu", "dtype": "bfloat16", "tp_size": 1, "attention_backend": "torch_native"},
    }
    fields |= changes
    packed = sum(route.calls or 0 for route in fields["routing"] if route.path == "packed")
    suffix = ("_rvv" if fields["vlen_bits"] else "_portable") if fields["kernels_sha256"] else None
    return Expected(**{"ops": {PACKED_LINEAR_OP: packed} if packed else {}, "kernel_suffix": suffix, **fields})


def op(calls: int, kernel: str) -> dict[str, Any]:
    """An op of an attestation, all its calls served by one kernel."""
    return {"kernel": kernel, "calls": calls, "kernels": {kernel: calls}}


def events(
    *,
    expects: Expected | None = None,
    prefill_s: float = 3.0,
    step_s: float = 0.5,
    tokens: Sequence[int] = TOKENS,
    logprobs: Sequence[float] | None = None,
    pid: int = 100,
    vm_hwm_bytes: int = 700 * MIB,
) -> list[Event]:
    """The events of a process that did what `expects` says: prefill from 0 s, then a token every `step_s`."""
    expects = expects or expected()
    logs = logprobs or [-0.25] * len(tokens)
    batch = expects.batch_size
    first_end = round(prefill_s * S)
    kernels = expects.kernels_sha256

    def event(event_name: str, at_ns: int, **fields: Any) -> Event:
        return {"event": event_name, "t_ns": at_ns, "pid": pid, **fields}

    def made(index: int) -> dict[str, Any]:
        return {
            "token_ids": [tokens[index]] * batch,
            "logprobs": [logs[index]] * batch,
            "top2_margin": [1.5] * batch,
        }

    def memory(phase: str, hwm_bytes: int) -> Event:
        return event(
            "memory",
            last + 2,
            phase=phase,
            role="one_batch",
            vm_hwm_bytes=hwm_bytes,
            rss_bytes=hwm_bytes - MIB,
            pss_bytes=hwm_bytes - 2 * MIB,
            emulated=expects.emulated,
        )

    def pin(name: str, value: Any) -> Event:
        return event("pin", -20 * S, name=name, expected=value, observed=value, ok=True)

    ends = [first_end + round(step * step_s * S) for step in range(len(tokens))]
    last = ends[-1]
    return [
        event("supervisor_start", -30 * S, schema="rvvbench/events/1", unix_s=1.0, machine=expects.machine, argv=[]),
        event("process_start", -29 * S, unix_s=2.0),
        event(
            "environment",
            -21 * S,
            packages=dict(expects.packages),
            torch_threads=expects.threads,
            vlen_bits=expects.vlen_bits,
            isa={"v": True, "zvfh": True} if expects.vlen_bits else None,
            isa_source="hwprobe" if expects.vlen_bits else "no RISC-V processor: x86_64",
            env=dict(expects.environment),
            server_args={**expects.server_args, "random_seed": 0},
        ),
        pin("machine", expects.machine),
        *(pin(f"checkpoint:{name}", sha256) for name, sha256 in expects.checkpoint_files.items()),
        event("model_loaded", -18 * S, seconds=2.5, weight_bytes=200 * MIB),
        memory("loaded", vm_hwm_bytes - 100 * MIB),
        event("memory_tree", -17 * S, rss_sum_bytes=vm_hwm_bytes - MIB, processes=2),
        event("warmup", -1 * S, seconds=6.75),
        event("measured_start", -1),
        event("prefill", first_end, start_ns=0, end_ns=first_end, input_tokens=batch * expects.input_len, **made(0)),
        *(
            event("decode", end, step=step, start_ns=ends[step - 1], end_ns=end, **made(step))
            for step, end in enumerate(ends[1:], start=1)
        ),
        event("measured_end", last + 1),
        event("memory_tree", last + 1, rss_sum_bytes=vm_hwm_bytes + 50 * MIB, processes=2),
        memory("measured", vm_hwm_bytes),
        event(
            "attestation",
            last + 3,
            library_sha256=kernels,
            ops={name: op(calls, f"packed_linear_bf16{expects.kernel_suffix}") for name, calls in expects.ops.items()},
            routing=[route.model_dump(exclude={"reason"}) for route in expects.routing],
        ),
        {
            **memory("last_sample", vm_hwm_bytes - 3 * MIB),
            "pss_bytes": None,
            "reason": "sampled from outside, without PSS",
        },
        event("process_end", last + 4, exit_code=0, signal=None),
    ]


def ran(
    *processes: Sequence[Mapping[str, Any]], damage: Sequence[str] = (), observation: Mapping[str, Any] | None = None
) -> list[Ran]:
    read = [EventsRead(tuple(dict(event) for event in process), tuple(damage)) for process in processes]
    return [Ran(one, observation=observation) for one in read]


def row(
    variant: str = "torch-native", expects: Expected | None = None, processes: Sequence[Ran] | None = None, **of: Any
) -> Row:
    """A row of as many processes as it expects; `of` goes to `events`."""
    expects = expects or expected()
    if processes is None:
        happened = (events(expects=expects, pid=100 + index, **of) for index in range(expects.processes))
        processes = ran(*happened, observation=OBSERVED if expects.on_board else None)
    return build_row(variant=variant, cache_state="none", expected=expects, processes=processes)


def kernel_row(expects: Expected | None = None, **of: Any) -> Row:
    """A valid row of rvv-kernels, 3.2 times as fast at decode."""
    expects = expects or expected(kernels_sha256=KERNELS, routing=PACKED_ROUTES)
    return row("rvv-kernels", expects, **{"prefill_s": 1.0, "step_s": 0.15625, **of})


def manifest(rows: Sequence[Row]) -> dict[str, Any]:
    """The manifest that rows like these come from."""
    one = rows[0].expected
    variants = [row.variant for row in rows]
    board = "qemu-k1" if one.emulated else "bpi-f3"
    return {
        "experiment": {
            "name": "llama-one-batch",
            "title": "Llama, one batch, 64 in, 8 out",
            "workload": {
                "seed": 1,
                "batch_size": one.batch_size,
                "input_len": one.input_len,
                "output_len": one.output_len,
            },
            "model": "llama-mini",
            "weights": "synthetic",
            "board": board,
            "dtype": "bfloat16",
            "tensor_parallel": 1,
            "fresh_processes": one.processes,
            "variants": variants,
            "cache_states": ["none"],
        },
        "model": {
            "name": "llama-mini",
            "title": "llama-mini",
            "config": {"num_hidden_layers": 2},
            "synthetic": {"files": {name: {"sha256": sha256} for name, sha256 in CHECKPOINT.items()}},
        },
        "stack": {"packages": PACKAGES},
        "board": {"name": board, "vlen": one.vlen_bits, "threads": one.threads},
        "variants": [variant(row) for row in rows],
        "target": "emulated" if one.emulated else "board",
    }


def variant(row: Row) -> dict[str, Any]:
    """The variant that a row like this one comes from."""
    packed = row.expected.kernels_sha256 is not None
    return {
        "name": row.variant,
        "attention_backend": "torch_native",
        "linear": "packed" if packed else "torch",
        "projections": ["qkv_proj"] if packed else [],
        "server_args": {},
    }


def heading(one: Expected) -> Heading:
    """The heading of rows that expect this."""
    return Heading(
        model="llama-mini",
        weights="synthetic",
        input_len=one.input_len,
        output_len=one.output_len,
        batch_size=one.batch_size,
        dtype="bfloat16",
        tensor_parallel=1,
        workload="serving" if one.load else "one-batch",
        requests=one.load.requests if one.load else None,
    )


def record(*rows: Row, **changes: Any) -> Record:
    """A record of the rows, by default one of torch-native and one of rvv-kernels, emulated."""
    rows = rows or (row(), kernel_row())
    one = rows[0].expected
    fields: dict[str, Any] = {
        "run_id": "20261130T221500-llama-one-batch-1a2b3c",
        "created": "2026-11-30T22:15:00Z",
        "experiment": "llama-one-batch",
        "title": "Llama, one batch, 64 in, 8 out",
        "heading": heading(one),
        "target": Target(kind="emulated" if one.emulated else "board", name="qemu-k1" if one.emulated else "bpi-f3"),
        "manifest": manifest(rows),
        "pins": {
            "image": {"name": IMAGE.name, "arch": IMAGE.arch, "digest": IMAGE.digest},
            "packages": {"libc6": "2.42-1"},
            "checkpoint": {"kind": "synthetic", "files": CHECKPOINT},
            "kernels": {"library_sha256": KERNELS},
        },
        "environment": {"OMP_NUM_THREADS": "1"},
        "machine": {"kernel": "6.6.0", "cores": 8, "memory_bytes": 16 * 1024 * MIB},
        "conditions_before": {"swap_in_pages": 0},
        "conditions_after": {"swap_in_pages": 0},
        "image": IMAGE,
        "rows": rows,
        "replay": "rvvbench replay 20261130T221500-llama-one-batch-1a2b3c",
    }
    return build_record(**{**fields, **changes})
