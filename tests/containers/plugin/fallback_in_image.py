"""A process whose kernels cannot be loaded: what it says, what it refuses, and that it generates all the same.

CHECKS_WHY is what it must give as the reason.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from typing import Any

from one_batch import OneBatch, arguments, prompt
from sglang_rvv import kernels, routing, startup
from sglang_rvv.upstream import IntegrationError

MODEL = os.environ["CHECKS_MODEL"]
WHY = os.environ["CHECKS_WHY"]
PROMPTS = [prompt(64), prompt(7, seed=6)]


def refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except IntegrationError as error:
        return str(error)
    raise AssertionError("it was not refused")


def check_why_there_are_no_kernels() -> None:
    found = kernels.capability()
    assert not found.usable and WHY in str(found.why_not), found.why_not


def check_rvv_falls_back_and_says_so() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        args = arguments(MODEL, attention_backend="rvv")
    assert args.attention_backend == "torch_native"
    assert "attention backend rvv is not active, torch_native is" in said.getvalue() and WHY in said.getvalue(), said
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert arguments(MODEL, attention_backend="torch_native").attention_backend == "torch_native"
    assert "attention backend rvv" not in said.getvalue(), f"nobody asked for kernels: {said.getvalue()}"


def check_an_int8_cache_and_w8a8_are_refused_before_anything_is_loaded() -> None:
    said = refusal(lambda: arguments(MODEL, attention_backend="rvv", kv_cache_dtype="int8"))
    assert "--kv-cache-dtype int8" in said and "torch_native is active" in said and WHY in said, said
    said = refusal(lambda: arguments(MODEL, attention_backend="rvv", quantization="w8a8_int8"))
    assert "--quantization w8a8_int8" in said and "not active" in said and WHY in said, said


def check_the_same_tokens_come_out() -> None:
    lines, results = [], []
    for backend in ("rvv", "torch_native"):
        one = OneBatch(MODEL, attention_backend=backend)
        lines.append(startup.report()["lines"][-1])
        routing.reset()
        results.append(one.generate(PROMPTS, 6))
        assert {line["path"] for line in routing.snapshot()} == {"torch"}
        one.end()
    assert results[0].ids == results[1].ids
    for part in ("kernels off", "ours: nothing", "torch: attention, 9 linears", "5 x norm", "because"):
        assert part in lines[0], lines[0]
    print(f"IDS {results[0].ids}")


def check_linears_that_were_asked_for_by_name_stay_torchs_and_the_line_says_why() -> None:
    os.environ["SGLANG_RVV_LINEAR"] = "packed"
    try:
        one = OneBatch(MODEL, attention_backend="torch_native")
        line = startup.report()["lines"][-1]
        assert "ours: nothing" in line and WHY in line, line
        one.end()
    finally:
        del os.environ["SGLANG_RVV_LINEAR"]
