"""SGLang's own serving benchmark against the server that is being measured, in a process of its own.

What it calls TTFT and ITL (`sglang.benchmark.serving` of 0.5.15, backend `sglang`): its clock starts when the request
is handed to its HTTP library, connecting included; a token's time is taken after its chunk was read and parsed as JSON;
only chunks with visible text count, so that TTFT runs to the first text, and an ITL is the time between two such
chunks, shared evenly among the tokens that they are apart. Its first prompt is also its warm-up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .child import Child
from .failure import ServingFailed
from .log_tail import log_tail
from .pins import package_version
from .server_arguments import HOST
from .serving_run import Run
from .serving_spec import CrossCheck
from .sglang_benchmark import LAUNCH

TOOL = "sglang.benchmark.serving"
LOG_NAME = "cross_check.log"
RESULT_NAME = "cross_check.jsonl"
STOP_S = 2.0
KEPT = ("input_lens", "output_lens", "ttfts", "itls", "errors")
# Not in the result, and not told by the tool at all.
LATENCIES_REASON = "the tool writes no latency of single requests"


def arguments(check: CrossCheck, port: int, model: str, result: Path) -> list[str]:
    """The tool's command line: prompts of random token ids, each of exactly the asked length; nothing is fetched."""
    fields = {
        "backend": "sglang",
        "host": HOST,
        "port": port,
        "model": model,
        "tokenizer": model,
        "dataset-name": "random-ids",
        "random-input-len": check.input_len,
        "random-output-len": check.output_len,
        "random-range-ratio": 1.0,
        "num-prompts": check.requests,
        "max-concurrency": check.concurrency,
        "seed": check.seed,
        "output-file": result,
    }
    line = [text for name, value in fields.items() for text in (f"--{name}", str(value))]
    return [*line, "--output-details", "--tokenize-prompt", "--disable-tqdm"]


async def measure(run: Run, check: CrossCheck, environ: Mapping[str, str]) -> None:
    """Run the tool to its end and write the `cross_check` event. Raises ServingFailed where it fails."""
    result, log = run.spec.out / RESULT_NAME, run.spec.out / LOG_NAME
    argv = arguments(check, run.port, run.spec.model_path, result)
    limits = run.spec.limits
    limit_s = limits.startup_s + limits.request_s * (check.requests + 1)
    tool = Child([*LAUNCH, *argv], environ=environ, log=log)
    try:
        if not await tool.ended_within(limit_s):
            raise ServingFailed("request-timeout", f"{TOOL} did not end within {limit_s:g} s")
    finally:
        seconds = tool.age_s()
        await tool.stop(STOP_S)
    if tool.code() != 0:
        tail = " | ".join(log_tail(log)[-5:])
        raise ServingFailed("request-failed", f"{TOOL} ended with {tool.code()}: {tail}")
    run.events.write(
        "cross_check",
        tool=TOOL,
        version=package_version("sglang"),
        argv=argv,
        requests=check.requests,
        seconds=seconds,
        raw=raw(result.read_text(encoding="utf-8")),
    )


def raw(text: str) -> dict[str, Any]:
    """What is kept of the tool's result (one JSON object on the last line): the lists of `KEPT`, the number of requests
    that it completed, and every figure in milliseconds. Raises ServingFailed where it is not that.
    """
    try:
        document = json.loads(text.splitlines()[-1])
        kept = {name: document[name] for name in (*KEPT, "completed")}
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise ServingFailed("request-failed", f"{TOOL} wrote no result: {type(error).__name__} {error}") from error
    figures = {name: value for name, value in document.items() if name.endswith("_ms")}
    return {**kept, **figures, "latencies": None, "latencies_reason": LATENCIES_REASON}
