"""Builders of exact serving runs: a request alone has its first token after 3 s and then one every 0.5 s (2.00 tok/s);
two at once wait 6 s for it and decode at 1.60 tok/s each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rvvbench.record.build import Ran, build_row
from rvvbench.record.events import EventsRead
from rvvbench.record.operators import PACKED_LINEAR_OP, norm_calls, served
from rvvbench.record.plain_model import PlainModel, calls_of_pass
from rvvbench.record.schema import Expected, ExpectedLoad, Record, Route, Row

from . import sample
from .sample import KERNELS, MIB, Event, S

LAYERS = 2
REQUESTS = 4
PROJECTIONS = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head")
TTFT_S = {1: 3.0, 2: 6.0, 4: 12.0}
STEP_S = {1: 0.5, 2: 0.625, 4: 0.75}
SERVER_ARGS = {
    "model_path": "/rvvbench/model",
    "device": "cpu",
    "dtype": "bfloat16",
    "tp_size": 1,
    "attention_backend": "torch_native",
    "disable_radix_cache": True,
    "disable_overlap_schedule": True,
    "sleep_on_idle": True,
    "skip_tokenizer_init": True,
    "stream_interval": 1,
    "random_seed": 0,
}

Whole = tuple[PlainModel, Mapping[str, Any]]
"""A model, and a variant of it as a manifest has it."""


def load(concurrency: int | None = 1, **changes: Any) -> ExpectedLoad:
    """The closed load of that concurrency; `changes` replace fields."""
    fields = {
        "name": f"c{concurrency}",
        "mode": "closed",
        "concurrency": concurrency,
        "arrivals": None,
        "rate_per_s": None,
        "requests": REQUESTS,
        "layers": LAYERS,
    }
    return ExpectedLoad.model_validate({**fields, **changes})


def routes(in_flight: int, packed: Sequence[str] = (), input_len: int = 64) -> tuple[Route, ...]:
    """Every route that up to `in_flight` requests may take."""
    together = range(1, in_flight + 1)
    return tuple(
        Route(projection=name, m=m, path="packed" if name in packed else "torch", calls=None)
        for name in PROJECTIONS
        for m in sorted({*together, *(k if name == "lm_head" else k * input_len for k in together)})
    )


def expected(concurrency: int = 1, *, packed: bool = False, **changes: Any) -> Expected:
    """What a serving row of that concurrency expects on an emulated K1."""
    return sample.expected(
        **{
            "server_args": SERVER_ARGS,
            "routing": routes(concurrency, PROJECTIONS if packed else ()),
            "kernels_sha256": KERNELS if packed else None,
            "ops": {PACKED_LINEAR_OP: None} if packed else {},
            "load": load(concurrency),
            **changes,
        }
    )


def events(
    concurrencies: Sequence[int] = (1, 2),
    *,
    packed: bool = False,
    faster: float = 1.0,
    pid: int = 100,
    first_token: int = 11,
    emulated: bool = True,
    vlen_bits: int | None = 256,
    whole: Whole | None = None,
) -> list[Event]:
    """The events of a server that ran the loads of these concurrencies as declared, `faster` times as fast as said.
    With `whole` it attests the operators of that model and variant too.
    """
    made = _Run(packed, faster, pid, first_token, sample.expected(emulated=emulated, vlen_bits=vlen_bits), whole)
    made.start()
    for concurrency in concurrencies:
        made.load(concurrency, f"c{concurrency}-warmup", measured=False)
        made.load(concurrency, f"c{concurrency}", measured=True)
    made.write("server_end", exit_code=None, signal=15, sent=["SIGTERM"], seconds=0.5)
    made.write("process_end", exit_code=0, signal=None)
    return made.events


class _Run:
    def __init__(
        self, packed: bool, faster: float, pid: int, first_token: int, expects: Expected, whole: Whole | None
    ) -> None:
        self.packed, self.faster, self.pid, self.first_token = packed, faster, pid, first_token
        self.expects, self.whole = expects, whole
        self.now_ns = 10 * S
        self.peak = 700 * MIB
        self.prompt = 0
        self.routed: Counter[tuple[str, int, str]] = Counter()
        self.ops: Counter[str] = Counter()
        self.events: list[Event] = []

    def write(self, event_name: str, **fields: Any) -> None:
        self.events.append({"event": event_name, "t_ns": self.now_ns, "pid": self.pid, **fields})

    def start(self) -> None:
        self.write("supervisor_start", schema="rvvbench/events/1", unix_s=1.0, machine="riscv64", argv=[])
        for name, value in (("machine", "riscv64"), *sample.CHECKPOINT.items()):
            self.write("pin", name=name, expected=value, observed=value, ok=True)
        self.write("process_start", unix_s=2.0, server_pid=self.pid + 1, port=30000, argv=[])
        self.now_ns += 20 * S
        self.write("server_listening", seconds=20.0)
        # However fast the loads are: the server is ready 25 s after its start, in time for them at 38.5 s.
        faster, self.faster = self.faster, 2.0
        self.now_ns -= S // 4
        self.load(1, "ready", measured=False)
        self.write("server_ready", seconds=25.0)
        self.faster = faster
        self.now_ns += 7 * S // 2
        vlen = self.expects.vlen_bits
        self.write(
            "environment",
            packages=dict(sample.PACKAGES),
            torch_threads=1,
            vlen_bits=vlen,
            isa={"v": True} if vlen else None,
            isa_source="hwprobe" if vlen else "no RISC-V processor",
            env={"OMP_NUM_THREADS": "1"},
            server_args=SERVER_ARGS,
        )
        self.memory("ready")

    def memory(self, phase: str) -> None:
        emulated = self.expects.emulated
        for role, share in (("server", 4), ("scheduler", 1), ("detokenizer", 7)):
            size = self.peak // share
            pss = size - 2 * MIB
            fields = {"vm_hwm_bytes": size, "rss_bytes": size - MIB, "pss_bytes": pss, "emulated": emulated}
            self.write("memory", phase=phase, role=role, **fields)
        self.write("memory", phase=phase, role="runner", vm_hwm_bytes=9000 * MIB, pss_bytes=9, emulated=emulated)
        self.write("memory_tree", rss_sum_bytes=self.peak + 50 * MIB, processes=3)

    def attest(self, load: str, moment: str) -> None:
        self.write(
            "attestation",
            load=load,
            moment=moment,
            library_sha256=KERNELS if self.packed else None,
            ops={name: sample.op(calls, "packed_linear_bf16_rvv") for name, calls in self.ops.items()},
            routing=[
                {"projection": name, "m": m, "path": path, "calls": count}
                for (name, m, path), count in self.routed.items()
            ],
        )

    def load(self, concurrency: int, name: str, *, measured: bool) -> None:
        count = REQUESTS if measured else concurrency
        load = {"mode": "closed", "concurrency": concurrency, "arrivals": None, "rate_per_s": None, "seed": None}
        if measured:
            self.attest(name, "before")
        self.now_ns += S
        self.write("load_start", load=name, measured=measured, requests=count, **load)
        for first in range(0, count, concurrency):
            self.together(name, [f"{name}-{first + index}" for index in range(min(concurrency, count - first))])
        self.write("load_end", load=name, complete=True)
        self.now_ns += S
        if measured:
            self.attest(name, "after")
        self.peak += 10 * MIB
        if name != "ready":
            self.memory(name)

    def together(self, load: str, ids: Sequence[str]) -> None:
        """Requests that are sent at once, prefilled together and decoded together."""
        sent_ns, together = self.now_ns, len(ids)
        ttft_ns, step_ns = (round(times[together] * S / self.faster) for times in (TTFT_S, STEP_S))
        for id_ in ids:
            self.prompt += 1
            self.write(
                "request_start",
                load=load,
                request=id_,
                scheduled_ns=sent_ns,
                input_tokens=64,
                input_sha256=f"{self.prompt:064x}",
                output_len=8,
            )
            self.write("request_sent", request=id_)
        self.passed(64 * together, together)
        for position in range(8):
            self.now_ns = sent_ns + ttft_ns + position * step_ns
            if position:
                self.passed(together, together)
            for id_ in ids:
                self.write(
                    "chunk",
                    request=id_,
                    token_ids=[self.first_token + position],
                    total_tokens=position + 1,
                    prompt_tokens=64,
                    cached_tokens=0,
                    has_text=None,
                )
        for id_ in ids:
            self.write("request_end", request=id_, tokens=8, completion_tokens=8, finish_reason={"type": "length"})

    def passed(self, rows: int, head_rows: int) -> None:
        path = "packed" if self.packed else "torch"
        calls = Counter(
            {
                (name, head_rows if name == "lm_head" else rows, path): 1 if name == "lm_head" else LAYERS
                for name in PROJECTIONS
            }
        )
        if self.whole is not None:
            model, variant = self.whole
            calls = calls_of_pass(model, variant, tokens=rows, sequences=head_rows, decodes=rows == head_rows)
            if variant["elementwise"] == "kernels":
                self.ops += Counter(norm_calls(LAYERS, 1, qk_norms=bool(model.qk_norm_heads)))
        self.routed += calls
        lines = [(name, path, count) for (name, _, path), count in calls.items()]
        for one in served(lines, int8_cache=bool(self.whole and self.whole[1]["kv_cache_dtype"] == "int8")):
            if len(one.ops) == 1:
                self.ops[one.ops[0]] += one.calls


def row(concurrency: int = 1, *, packed: bool = False, processes: Sequence[Ran] | None = None, **of: Any) -> Row:
    """A row of torch-native, or of rvv-kernels where it is packed; `of` goes to `events`."""
    expects = of.pop("expects", None) or expected(concurrency, packed=packed)
    if processes is None:
        pids = range(100, 100 + expects.processes)
        seen = sample.OBSERVED if expects.on_board else None
        processes = [ran(events(packed=packed, pid=pid, emulated=expects.emulated, **of), seen) for pid in pids]
    assert expects.load is not None
    return build_row(
        variant="rvv-kernels" if packed else "torch-native",
        cache_state="none",
        concurrency=expects.load.concurrency,
        rate_per_s=expects.load.rate_per_s,
        expected=expects,
        processes=processes,
    )


def ran(happened: Sequence[Mapping[str, Any]], observation: Mapping[str, Any] | None = None) -> Ran:
    return Ran(EventsRead(tuple(dict(event) for event in happened)), observation=observation)


def rows() -> tuple[Row, ...]:
    """Both variants at concurrency 1 and 2; the kernels are twice as fast."""
    return (row(1), row(2), row(1, packed=True, faster=2.0), row(2, packed=True, faster=2.0))


def manifest(rows: Sequence[Row]) -> dict[str, Any]:
    """The manifest that rows like these come from."""
    variants = {row.variant: row for row in rows}
    plain = sample.manifest(tuple(variants.values()))
    loads = {row.expected.load.name: row.expected.load for row in rows if row.expected.load}
    plain["experiment"]["name"] = "llama-serve"
    plain["experiment"]["title"] = "Llama, served to one and to two"
    plain["experiment"]["workload"] = {
        "kind": "serving",
        "concurrency": [load.concurrency for load in loads.values() if load.concurrency],
        "open_loops": [
            {"arrivals": load.arrivals, "rate_per_s": load.rate_per_s, "seed": 0}
            for load in loads.values()
            if load.rate_per_s
        ],
        "requests": rows[0].expected.load.requests if rows[0].expected.load else None,
        "input_len": 64,
        "output_len": 8,
        "seed": 1,
        "server": {name: SERVER_ARGS[name] for name in list(SERVER_ARGS)[5:10]},
    }
    plain["experiment"]["timeouts_s"] = {"process": 3600.0, "startup": 900.0, "compile": 600.0, "request": 300.0}
    for variant in plain["variants"]:
        variant["projections"] = list(PROJECTIONS) if variant["linear"] == "packed" else []
    return plain


def record(*of_rows: Row, **changes: Any) -> Record:
    """A record of the rows, by default those of `rows()`."""
    of_rows = of_rows or rows()
    fields: dict[str, Any] = {
        "run_id": "20261201T101500-llama-serve-1a2b3c",
        "experiment": "llama-serve",
        "title": "Llama, served to one and to two",
        "manifest": manifest(of_rows),
        "replay": "rvvbench serve llama-serve --target emulated",
    }
    return sample.record(*of_rows, **{**fields, **changes})
