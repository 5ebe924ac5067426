"""Calls operators of any library that registers `torch.ops.sgl_kernel`, between marks, as model_driver.cpp calls ours.

    library_driver.py LIBRARY.so CALLS CASES     per case: mark, CALLS calls, mark, 2 * CALLS calls, mark

CASES is a file, a case in each line: were they arguments, their length would move the library in memory.

A line of JSON that says where the library is in memory, {"base"}, then one per case: {"case", "kernel", "macs",
"elements"}, or {"case", "error"} and no marks. One thread. It runs under the emulator in the runtime image and needs
torch alone. The cases are those of workload.h; every operand is contiguous.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

MARK = 0x7000_0000
"""Address of the mark, a function of one instruction that only this program calls."""

BESIDE = MARK + 0x10
"""Another one, which is called after each call: in a log of the library alone, that is where a call ends."""

_RETURN = (0x8082).to_bytes(2, "little")  # c.ret
_MAP_FIXED_NOREPLACE = 0x100000  # mmap(2)
_SPLITS = 8  # as SGLang's --triton-attention-num-kv-splits has it by default
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

Call = Callable[[], object]
Sizes = dict[str, int]


def mark_functions() -> tuple[Call, Call]:
    """Puts both functions at their addresses; raises OSError where something else is there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    page = libc.mmap(MARK, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, flags, -1, 0)
    if page != MARK:
        raise OSError(ctypes.get_errno(), f"no page at {MARK:#x}")
    for address in (MARK, BESIDE):
        ctypes.memmove(address, _RETURN, len(_RETURN))
    function = ctypes.CFUNCTYPE(None)
    return function(MARK), function(BESIDE)


def base_of(library: str) -> int:
    """Where the library's address 0 is."""
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, _, offset, _, _, *path = line.split(maxsplit=5)
        if path == [library] and int(offset, 16) == 0:
            return int(addresses.split("-")[0], 16)
    raise LookupError(f"{library} is not in /proc/self/maps")


def packed_linear(dtype: torch.dtype, size: Sizes) -> tuple[Call, int]:
    operators = torch.ops.sgl_kernel
    packed = operators.convert_weight_packed(torch.randn(size["n"], size["k"]).to(dtype))
    rows = torch.randn(size["m"], size["k"]).to(dtype)
    return lambda: operators.weight_packed_linear(rows, packed, None, True), size["m"] * size["n"] * size["k"]


def row_major_linear(dtype: torch.dtype, size: Sizes) -> tuple[Call, int]:
    operators = torch.ops.sgl_kernel
    weight = torch.randn(size["n"], size["k"]).to(dtype)
    rows = torch.randn(size["m"], size["k"]).to(dtype)
    return lambda: operators.linear_rowmajor(rows, weight, None), size["m"] * size["n"] * size["k"]


def decode_attention(dtype: torch.dtype, size: Sizes) -> tuple[Call, int]:
    heads, kv_heads, head, context = (size[name] for name in ("heads", "kv_heads", "head", "context"))
    cache = _cache(dtype, context, kv_heads, head)
    query, output = torch.randn(1, heads, head).to(dtype), torch.empty(1, heads, head, dtype=dtype)
    new = [torch.randn(1, kv_heads, head).to(dtype) for _ in range(2)]
    logits = torch.zeros(1, heads, _SPLITS, head + 1)
    slots = torch.arange(context)
    operands = (query, *cache, output, *new, slots[-1:], logits, slots.to(torch.int32)[None])
    lengths = (torch.zeros(1, dtype=torch.int64), torch.tensor([context]))
    call = torch.ops.sgl_kernel.decode_attention_cpu
    return lambda: call(*operands, *lengths, head**-0.5, 0.0), heads * context * 2 * head


def extend_attention(dtype: torch.dtype, size: Sizes) -> tuple[Call, int]:
    heads, kv_heads, head, context, new = (size[name] for name in ("heads", "kv_heads", "head", "context", "new"))
    query, output = torch.randn(new, heads, head).to(dtype), torch.empty(new, heads, head, dtype=dtype)
    keys, values = (torch.randn(new, kv_heads, head).to(dtype) for _ in range(2))
    slots = torch.arange(context, dtype=torch.int32)[None]
    one = torch.zeros(1, dtype=torch.int64)
    operands = (query, keys, values, output, *_cache(dtype, context, kv_heads, head), slots, one, one + context)
    lengths = (torch.tensor([new], dtype=torch.int32), torch.zeros(1, dtype=torch.int32), new)
    call = torch.ops.sgl_kernel.extend_attention_cpu
    before = context - new
    macs = heads * (new * before + new * (new + 1) // 2) * 2 * head
    return lambda: call(*operands, *lengths, head**-0.5, 0.0), macs


def _cache(dtype: torch.dtype, context: int, kv_heads: int, head: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(context, kv_heads, head).to(dtype), torch.randn(context, kv_heads, head).to(dtype)


OPERATIONS = {
    "packed_linear": packed_linear,
    "row_major_linear": row_major_linear,
    "decode_attention": decode_attention,
    "extend_attention": extend_attention,
}


def prepared(case: str) -> tuple[Call, int]:
    """The call of a case, made once so that what happens once has happened, and its multiply-adds."""
    operation, _, text = case.partition(":")
    values = dict(part.split("=") for part in text.split(","))
    torch.manual_seed(0)
    if operation not in OPERATIONS:
        raise ValueError(f"how torch calls {operation} is not known here")
    dtype = _TYPES[values.pop("type")]
    call, macs = OPERATIONS[operation](dtype, {name: int(value) for name, value in values.items()})
    call()
    return call, macs


def run(library: str, calls: int, cases: Path) -> None:
    mark, beside = mark_functions()
    print(json.dumps({"base": base_of(library)}), flush=True)
    for case in cases.read_text().splitlines():
        said: dict[str, Any] = {"case": case}
        try:
            call, macs = prepared(case)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            said["error"] = str(error).splitlines()[0]
        else:
            mark()
            for times in (calls, 2 * calls):
                for _ in range(times):
                    call()
                    beside()
                mark()
            said |= {"kernel": Path(library).name, "macs": macs, "elements": 0}
        print(json.dumps(said), flush=True)


def main() -> None:
    library, calls, cases = sys.argv[1:]
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.ops.load_library(library)
    run(library, int(calls), Path(cases))


if __name__ == "__main__":
    main()
