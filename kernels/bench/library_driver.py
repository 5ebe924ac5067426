"""Calls operators of any library that registers `torch.ops.sgl_kernel`, between marks, as model_driver.cpp calls ours.

    library_driver.py LIBRARY.so CALLS CASES     per case: mark, CALLS calls, mark, 2 * CALLS calls, mark

CASES is a file, a case in each line: were they arguments, their length would move the library in memory.

A line of JSON that says where the library is in memory, {"base"}, then one per case: {"case", "kernel", "macs",
"elements"}, or {"case", "error"} and no marks. One thread. It runs under the emulator in the runtime image and needs
torch alone. The cases are those of workload.h; every operand is contiguous.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from marks import MARK, STRIDE, functions_at

BESIDE = MARK + STRIDE
"""Another mark, which is called after each call: in a log of the library alone, that is where a call ends."""

_SPLITS = 8  # as SGLang's --triton-attention-num-kv-splits has it by default
_EPS = 1e-6
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.int8}

operators = torch.ops.sgl_kernel

Call = Callable[[], object]
Sizes = dict[str, int]


@dataclass(frozen=True)
class Work:
    """A call and what it computes: multiply-adds, or the elements that it writes."""

    call: Call
    macs: int = 0
    elements: int = 0


def base_of(library: str) -> int:
    """Where the library's address 0 is."""
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, _, offset, _, _, *path = line.split(maxsplit=5)
        if path == [library] and int(offset, 16) == 0:
            return int(addresses.split("-")[0], 16)
    raise LookupError(f"{library} is not in /proc/self/maps")


def random(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def packed_linear(dtype: torch.dtype, size: Sizes) -> Work:
    m, n, k = size["m"], size["n"], size["k"]
    packed = operators.convert_weight_packed(random(dtype, n, k))
    rows = random(dtype, m, k)
    return Work(lambda: operators.weight_packed_linear(rows, packed, None, True), macs=m * n * k)


def row_major_linear(dtype: torch.dtype, size: Sizes) -> Work:
    m, n, k = size["m"], size["n"], size["k"]
    rows, weight = random(dtype, m, k), random(dtype, n, k)
    return Work(lambda: operators.linear_rowmajor(rows, weight, None), macs=m * n * k)


def int8_linear(dtype: torch.dtype, size: Sizes) -> Work:
    """Of BF16 activations; `extreme`: all of one magnitude, so that every code is 127 or -127."""
    m, n, k = size["m"], size["n"], size["k"]
    packed = operators.convert_weight_packed(torch.randint(-127, 128, (n, k), dtype=torch.int8))
    rows = torch.randn(m, k)
    rows = (rows.sign() if size.get("extreme") else rows).to(torch.bfloat16)
    scales = torch.rand(n) + 0.5
    call = operators.int8_scaled_mm_with_quant
    return Work(lambda: call(rows, packed, scales, None, torch.bfloat16, True), macs=m * n * k)


def token_quant(dtype: torch.dtype, size: Sizes) -> Work:
    rows = random(dtype, size["m"], size["k"])
    return Work(lambda: operators.per_token_quant_int8_cpu(rows), elements=rows.numel())


def decode_attention(dtype: torch.dtype, size: Sizes) -> Work:
    call, (operands, macs) = operators.decode_attention_cpu, _decoding(dtype, dtype, size)
    return Work(lambda: call(*operands), macs=macs)


def decode_attention_int8(dtype: torch.dtype, size: Sizes) -> Work:
    call, (operands, macs) = operators.decode_attention_int8_cpu, _decoding(dtype, torch.int8, size)
    scales = _scales(size)
    return Work(lambda: call(*operands, *scales), macs=macs)


def extend_attention(dtype: torch.dtype, size: Sizes) -> Work:
    call, (operands, macs) = operators.extend_attention_cpu, _extending(dtype, dtype, size)
    return Work(lambda: call(*operands), macs=macs)


def extend_attention_int8(dtype: torch.dtype, size: Sizes) -> Work:
    call, (operands, macs) = operators.extend_attention_int8_cpu, _extending(dtype, torch.int8, size)
    scales = _scales(size)
    return Work(lambda: call(*operands, *scales), macs=macs)


def _decoding(dtype: torch.dtype, stored: torch.dtype, size: Sizes) -> tuple[tuple[Any, ...], int]:
    heads, kv_heads, head, context = (size[name] for name in ("heads", "kv_heads", "head", "context"))
    query, output = random(dtype, 1, heads, head), torch.empty(1, heads, head, dtype=dtype)
    new = [random(dtype, 1, kv_heads, head) for _ in range(2)]
    logits = torch.zeros(1, heads, _SPLITS, head + 1)
    slots = torch.arange(context)
    operands = (query, *_cache(stored, size), output, *new, slots[-1:], logits, slots.to(torch.int32)[None])
    lengths = (torch.zeros(1, dtype=torch.int64), torch.tensor([context]))
    return (*operands, *lengths, head**-0.5, 0.0), heads * context * 2 * head


def _extending(dtype: torch.dtype, stored: torch.dtype, size: Sizes) -> tuple[tuple[Any, ...], int]:
    heads, kv_heads, head, context, new = (size[name] for name in ("heads", "kv_heads", "head", "context", "new"))
    query, output = random(dtype, new, heads, head), torch.empty(new, heads, head, dtype=dtype)
    keys, values = (random(dtype, new, kv_heads, head) for _ in range(2))
    slots = torch.arange(context, dtype=torch.int32)[None]
    one = torch.zeros(1, dtype=torch.int64)
    operands = (query, keys, values, output, *_cache(stored, size), slots, one, one + context)
    lengths = (torch.tensor([new], dtype=torch.int32), torch.zeros(1, dtype=torch.int32), new)
    before = context - new
    macs = heads * (new * before + new * (new + 1) // 2) * 2 * head
    return (*operands, *lengths, head**-0.5, 0.0), macs


def _cache(stored: torch.dtype, size: Sizes) -> list[torch.Tensor]:
    shape = (size["context"], size["kv_heads"], size["head"])
    if stored == torch.int8:
        return [torch.randint(-127, 128, shape, dtype=torch.int8) for _ in range(2)]
    return [random(stored, *shape) for _ in range(2)]


def _scales(size: Sizes) -> tuple[Any, ...]:
    """Dynamic ones."""
    shape = (size["context"], size["kv_heads"])
    return torch.full(shape, 0.01), torch.full(shape, 0.01), math.nan, math.nan


def rmsnorm(dtype: torch.dtype, size: Sizes) -> Work:
    rows, weight = random(dtype, size["m"], size["n"]), random(dtype, size["n"])
    return Work(lambda: operators.rmsnorm_cpu(rows, weight, _EPS), elements=rows.numel())


def fused_add_rmsnorm(dtype: torch.dtype, size: Sizes) -> Work:
    rows, residual = (random(dtype, size["m"], size["n"]) for _ in range(2))
    weight = random(dtype, size["n"])
    return Work(lambda: operators.fused_add_rmsnorm_cpu(rows, residual, weight, _EPS), elements=rows.numel())


def silu(dtype: torch.dtype, size: Sizes) -> Work:
    rows = random(dtype, size["m"], 2 * size["n"])
    return Work(lambda: operators.silu_and_mul_cpu(rows), elements=size["m"] * size["n"])


def neox(dtype: torch.dtype, size: Sizes) -> Work:
    m, head = size["m"], size["head"]
    query, key = (random(dtype, m, size[name] * head) for name in ("heads", "kv_heads"))
    positions, table = torch.arange(m), random(dtype, m, head)
    call = operators.rotary_embedding_cpu
    return Work(lambda: call(positions, query, key, head, table, True), elements=query.numel() + key.numel())


OPERATIONS = {
    "packed_linear": packed_linear,
    "row_major_linear": row_major_linear,
    "int8_linear": int8_linear,
    "token_quant": token_quant,
    "decode_attention": decode_attention,
    "decode_attention_int8": decode_attention_int8,
    "extend_attention": extend_attention,
    "extend_attention_int8": extend_attention_int8,
    "norm rmsnorm": rmsnorm,
    "norm fused_add_rmsnorm": fused_add_rmsnorm,
    "gated_activation silu": silu,
    "rotary_embedding neox": neox,
}


def prepared(case: str) -> Work:
    """The work of a case, done once so that what happens once has happened."""
    operation, _, text = case.partition(":")
    values = dict(part.split("=") for part in text.split(","))
    kind = values.pop("type")
    name = " ".join(filter(None, (operation, values.pop("form", ""))))
    if name not in OPERATIONS or kind not in _TYPES:
        raise ValueError(f"how torch calls {name} of {kind} is not known here")
    torch.manual_seed(0)
    work = OPERATIONS[name](_TYPES[kind], {name: int(value) for name, value in values.items()})
    work.call()
    return work


def run(library: str, calls: int, cases: Path) -> None:
    mark, beside = functions_at([MARK, BESIDE])
    print(json.dumps({"base": base_of(library)}), flush=True)
    for case in cases.read_text().splitlines():
        said: dict[str, Any] = {"case": case}
        try:
            work = prepared(case)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            said["error"] = str(error).splitlines()[0]
        else:
            mark()
            for times in (calls, 2 * calls):
                for _ in range(times):
                    work.call()
                    beside()
                mark()
            said |= {"kernel": Path(library).name, "macs": work.macs, "elements": work.elements}
        print(json.dumps(said), flush=True)


def main() -> None:
    library, calls, cases = sys.argv[1:]
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.ops.load_library(library)
    run(library, int(calls), Path(cases))


if __name__ == "__main__":
    main()
