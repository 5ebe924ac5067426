"""Builders of an exact task: four questions, of which two are answered right, one wrong and one without a number."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from rvvbench.manifest.models import Serving, Variant
from rvvbench.manifest.operators import allowed_ops
from rvvbench.manifest.routing import allowed_routes
from rvvbench.manifest.shapes import layers_of
from rvvbench.manifest.task_routing import at_any_rows
from rvvbench.record.build import Ran, build_row
from rvvbench.record.plain_model import plain_model
from rvvbench.record.schema import Accuracy, Expected, ExpectedQuestion, ExpectedTask, Heading, Record, Route, Row

from . import sample, serving_sample, whole_model
from .sample import KERNELS, Event, S
from .serving_sample import SERVER_ARGS, ran

MODEL = "qwen3-mini"
"""With norms of queries and keys, whose rows are heads of tokens."""

TEXTS = (" She sells 9 + 9 = 18.\n#### 18", " #### 7", " I do not know, nobody does", " It is $1,000.00.")
GOLD = ("18", "8", "5", "1000")
PROMPT_TOKENS, CACHED_TOKENS, TOKENS = (100, 101, 102, 103), (90, 90, 91, 92), (5, 3, 8, 4)
FINISHED = ("stop", "stop", "length", "stop")
EXTENDED_ROWS = 10 + 11 + 11 + 11
COMPUTED_ROWS = EXTENDED_ROWS + sum(TOKENS) - 4
TASK_SERVER_ARGS = {**SERVER_ARGS, "disable_radix_cache": False, "skip_tokenizer_init": False, "stream_interval": 16}
DATA = {
    "kind": "hub",
    "repo": "openai/gsm8k",
    "revision": "e" * 40,
    "train": "main/train.parquet",
    "test": "main/test.parquet",
    "files": {"main/test.parquet": "1" * 64, "main/train.parquet": "2" * 64},
}
DATA_TITLE = f"openai/gsm8k at {'e' * 12}, sha256 {'2' * 12} and {'1' * 12}"


def variant_of(packed: bool) -> Variant:
    return whole_model.resolved("rvv-kernels" if packed else "torch-native", MODEL).variants[0]


def config() -> dict[str, Any]:
    return dict(whole_model.resolved("torch-native", MODEL).model.config)


def switches(packed: bool) -> dict[str, str]:
    variant = variant_of(packed)
    return {
        "OMP_NUM_THREADS": "1",
        "SGLANG_RVV_LINEAR": variant.linear,
        "SGLANG_RVV_PROJECTIONS": ",".join(variant.projections),
        "SGLANG_RVV_ELEMENTWISE": variant.elementwise,
    }


def server_args(packed: bool) -> dict[str, Any]:
    return {**TASK_SERVER_ARGS, "attention_backend": variant_of(packed).attention_backend}


def digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()


def task(**changes: Any) -> ExpectedTask:
    questions = tuple(
        ExpectedQuestion(id=f"q{index}", prompt_sha256=digest(f"prompt {index}"), gold=gold)
        for index, gold in enumerate(GOLD)
    )
    return ExpectedTask(**{"name": "gsm8k", "shots": 8, "questions": questions, **changes})


def expected(*, packed: bool = False, **changes: Any) -> Expected:
    """What the row of the task expects on an emulated K1: at most 128 tokens in and 8 out, one question at once."""
    variant, layers = variant_of(packed), layers_of(config())
    most = Serving(kind="serving", concurrency=[1], requests=len(GOLD), input_len=128, output_len=8, seed=0)
    routes = at_any_rows(allowed_routes(config(), variant, most, 1))
    return serving_sample.expected(
        1,
        packed=packed,
        **{
            "input_len": 128,
            "routing": tuple(
                Route(projection=r.projection, m=r.m, path=r.path, calls=r.calls, reason=r.reason, modules=r.modules)
                for r in routes
            ),
            "ops": allowed_ops(config(), variant, most),
            "environment": switches(packed),
            "server_args": server_args(packed),
            "load": serving_sample.load(1, name="gsm8k", qk_norm_heads=(layers.heads, layers.kv_heads)),
            "task": task(),
            "accuracy": None if variant.accuracy is None else Accuracy(**variant.accuracy.model_dump()),
            **changes,
        },
    )


class _TaskRun(serving_sample._Run):
    texts: Sequence[str] = TEXTS

    def ask(self) -> None:
        load = {"mode": "closed", "concurrency": 1, "arrivals": None, "rate_per_s": None, "seed": None}
        self.attest("gsm8k", "before")
        self.now_ns += S
        self.write("load_start", load="gsm8k", measured=True, requests=len(self.texts), **load)
        for index in range(len(self.texts)):
            self.answer(index)
        self.write("load_end", load="gsm8k", complete=True)
        self.now_ns += S
        self.attest("gsm8k", "after")
        self.memory("gsm8k")

    def answer(self, index: int) -> None:
        """The first token after 2 s, then one every 0.5 s; in chunks of one and of all the others."""
        id_, tokens, finish = f"q{index}", TOKENS[index], {"type": FINISHED[index]}
        prompt, counts = digest(f"prompt {index}"), {"prompt_tokens": PROMPT_TOKENS[index]}
        counts["cached_tokens"] = CACHED_TOKENS[index]
        start = {"load": "gsm8k", "scheduled_ns": self.now_ns, "input_tokens": None, "input_chars": 400}
        self.write("request_start", request=id_, **start, input_sha256=prompt, output_len=8)
        self.write("request_sent", request=id_)
        self.now_ns += round(2 * S / self.faster)
        ids = [self.first_token + index + position for position in range(tokens)]
        self.write("chunk", request=id_, token_ids=ids[:1], total_tokens=1, has_text=True, **counts)
        self.now_ns += round((tokens - 1) * S / 2 / self.faster)
        self.write("chunk", request=id_, token_ids=ids[1:], total_tokens=tokens, has_text=True, **counts)
        said = {"text": self.texts[index], "completion_tokens": tokens, "finish_reason": finish}
        self.write("answer", request=id_, prompt_sha256=prompt, **counts, **said)
        self.write("request_end", request=id_, tokens=tokens, completion_tokens=tokens, finish_reason=finish)
        self.passed(PROMPT_TOKENS[index] - CACHED_TOKENS[index], 1)
        for _ in range(tokens - 1):
            self.passed(1, 1)


def events(
    *,
    packed: bool = False,
    faster: float = 1.0,
    pid: int = 100,
    texts: Sequence[str] = TEXTS,
    first_token: int = 11,
    emulated: bool = True,
    vlen_bits: int | None = 256,
) -> list[Event]:
    """The events of a server that was asked the task as declared."""
    whole = (plain_model(config()), variant_of(packed).model_dump(mode="json", by_alias=True))
    expects = sample.expected(emulated=emulated, vlen_bits=vlen_bits)
    made = _TaskRun(packed, faster, pid, first_token, expects, whole)
    made.texts = texts
    made.start()
    for event in made.events:
        if event["event"] == "environment":
            event |= {"server_args": server_args(packed), "env": switches(packed)}
    made.ask()
    made.write("server_end", exit_code=None, signal=15, sent=["SIGTERM"], seconds=0.5)
    made.write("process_end", exit_code=0, signal=None)
    return made.events


def row(*, packed: bool = False, processes: Sequence[Ran] | None = None, **of: Any) -> Row:
    """A row of torch-native, or of rvv-kernels where it is packed; `of` goes to `events`."""
    expects = of.pop("expects", None) or expected(packed=packed)
    if processes is None:
        pids = range(100, 100 + expects.processes)
        processes = [ran(events(packed=packed, pid=pid, emulated=expects.emulated, **of)) for pid in pids]
    return build_row(
        variant="rvv-kernels" if packed else "torch-native",
        cache_state="none",
        concurrency=expects.load.concurrency if expects.load else None,
        expected=expects,
        processes=processes,
    )


def rows() -> tuple[Row, ...]:
    """Both variants; the kernels are twice as fast and answer one question otherwise."""
    return (row(), row(packed=True, faster=2.0, texts=(*TEXTS[:1], " #### 8", *TEXTS[2:])))


def record(*of_rows: Row, **changes: Any) -> Record:
    """A record of the rows, by default those of `rows()`."""
    of_rows = of_rows or rows()
    manifest = serving_sample.manifest(of_rows)
    manifest["experiment"] |= {"name": "llama-gsm8k", "title": "Right answers"}
    manifest["experiment"]["workload"] = {
        "kind": "eval",
        "task": "gsm8k",
        "dataset": "gsm8k",
        "shots": 8,
        "questions": len(GOLD),
        "max_prompt_tokens": 128,
        "max_new_tokens": 8,
        "stop": ["Question:"],
        "concurrency": 1,
        "server": {name: TASK_SERVER_ARGS[name] for name in list(SERVER_ARGS)[5:10]},
    }
    manifest["model"]["config"] = config()
    manifest["variants"] = [
        variant_of(row.expected.kernels_sha256 == KERNELS).model_dump(mode="json", by_alias=True) for row in of_rows
    ]
    manifest["dataset"] = {
        "name": "gsm8k",
        "hub": {"repo": DATA["repo"], "revision": DATA["revision"]},
        "splits": {"train": DATA["train"], "test": DATA["test"]},
    }
    plain = sample.record(sample.row()).plain()
    heading = Heading(
        model="llama-mini",
        weights="synthetic",
        input_len=128,
        output_len=8,
        batch_size=1,
        dtype="bfloat16",
        tensor_parallel=1,
        workload="eval",
        requests=len(GOLD),
        task="gsm8k",
        shots=8,
        dataset=DATA_TITLE,
    )
    fields: dict[str, Any] = {
        "run_id": "20261201T101500-llama-gsm8k-1a2b3c",
        "experiment": "llama-gsm8k",
        "title": "Right answers",
        "heading": heading,
        "manifest": manifest,
        "pins": {**plain["pins"], "dataset": DATA},
        "replay": "rvvbench eval gsm8k llama-gsm8k --target emulated",
    }
    return sample.record(*of_rows, **{**fields, **changes})
