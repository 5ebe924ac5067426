"""The small Llama through SGLang's ModelRunner with `--enable-cpu-rvv-inductor`: torch's tokens from regions."""

from __future__ import annotations

import os
from typing import Any

from one_batch import Generated, OneBatch, prompt
from sglang_rvv import routing, scheduler_state, startup
from sglang_rvv.settings import PROJECTIONS

MODEL = os.environ["CHECKS_MODEL"]
PROMPTS = [prompt(64), prompt(7, seed=6)]
STEPS = 4

CLOSE = 0.06
"""Of the largest logit: what BF16 of torch and of the kernels may differ by after two layers (measured: 0.01)."""

made: dict[str, Generated] = {}


def generate(name: str, **given: Any) -> Generated:
    one = OneBatch(MODEL, attention_backend="torch_native", **given)
    routing.reset()
    made[name] = one.generate(PROMPTS, STEPS)
    one.end()
    return made[name]


def close(name: str) -> None:
    """The tokens of plain torch, and logits near them."""
    mine, other = made[name], made["torch"]
    assert mine.ids == other.ids
    for step, (ours, plain) in enumerate(zip(mine.logits, other.logits, strict=True)):
        off = float((ours - plain).abs().max() / plain.abs().max())
        assert off < CLOSE, f"{name}: logits of step {step} are off by {off} of the largest"


def lines() -> set[tuple[str, int, str, int]]:
    return {
        (line["projection"], line["m"], line["path"], line["calls"])
        for line in routing.snapshot()
        if line["projection"] in PROJECTIONS
    }


def expected(path: str) -> set[tuple[str, int, str, int]]:
    """A prefill of 71 rows and decode steps of 2, in two layers; of each pass 2 rows go to lm_head."""
    inner = [name for name in PROJECTIONS if name != "lm_head"]
    found = {(name, m, path, calls) for name in inner for m, calls in ((71, 2), (2, 2 * (STEPS - 1)))}
    return found | {("lm_head", 2, path, STEPS)}


def check_nothing_is_compiled_without_the_flag() -> None:
    generate("torch")
    assert lines() == expected("torch")
    assert "regional" not in startup.report()["models"][-1]


def check_the_one_flag() -> None:
    generate("packed", enable_cpu_rvv_inductor=True)
    assert lines() == expected("inductor_packed")
    close("packed")
    told = scheduler_state.what_ran()["active"]["models"][-1]
    regional = told["regional"]
    assert (regional["compile_mode"], regional["packed_weight_mode"], regional["small_batch"]) == (
        "regional",
        "explicit",
        True,
    )
    assert len(regional["compiled"]) == len(told["packed"]) == 9
    assert {(region["projection"], region["rows"]) for region in regional["regions"]} == {
        ("lm_head", 2),
        *((name, rows) for name in PROJECTIONS if name != "lm_head" for rows in (2, 128)),
    }
    assert "9 linears compiled by region (explicit_packed, with small batches)" in startup.report()["lines"][-1]


def check_row_major_without_small_batches() -> None:
    generate("row_major", cpu_compile_mode="regional")
    by_rows = {(m, path) for _, m, path, _ in lines()}
    assert by_rows == {(71, "inductor_row_major"), (2, "torch")}
    assert {
        line.get("reason") for line in routing.snapshot() if line["m"] == 2 and line["projection"] in PROJECTIONS
    } == {"small batches are off"}
    close("row_major")
