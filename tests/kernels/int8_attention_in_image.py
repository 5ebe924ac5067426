"""Run inside the runtime image, with the package `sgl_kernel` on the path: attention over an INT8 cache.

Holds it against torch in float64 on the dequantised caches, its codes and scales against torch, and the operators
against torch.library.opcheck and arguments that must be refused.
"""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import sgl_kernel
import torch
from attention_in_image import (
    Arguments,
    attend,
    decode_arguments,
    extend_arguments,
    refused,
    strided,
    with_value,
)

NAN = float("nan")
STATIC = (0.013, 0.021)
DECODE = torch.ops.sgl_kernel.decode_attention_int8_cpu
EXTEND = torch.ops.sgl_kernel.extend_attention_int8_cpu


def quantised(rows: torch.Tensor, scale: float = NAN) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of [tokens, kv_heads, width], and their scales [tokens, kv_heads], in plain torch."""
    wide = rows.float()
    if math.isnan(scale):
        largest = wide.abs().amax(-1)
        zeros = largest < 2.0**-100
        most = torch.full_like(largest, 127)  # a number divided by a tensor is not rounded once
        scales = torch.where(zeros, torch.ones_like(largest), largest / 127)
        inverse = torch.where(zeros, torch.zeros_like(largest), most / largest)
    else:
        scales = torch.full(rows.shape[:-1], scale, dtype=torch.float32)
        inverse = torch.ones_like(scales) / scales
    codes = torch.round(wide * inverse[..., None]).clamp(-127, 127)
    return codes.to(torch.int8), scales


def caches(arguments: Arguments, keys: str, values: str, scales: tuple[float, float]) -> Arguments:
    """The arguments of the floating form with INT8 caches; scales that no token has are NaN."""
    changed = dict(arguments)
    buffers = []
    for name, scale in zip((keys, values), scales, strict=True):
        changed[name], buffer = quantised(arguments[name], scale)
        buffers.append(buffer)
    return changed | {
        "k_scale_buf": buffers[0],
        "v_scale_buf": buffers[1],
        "k_scale": scales[0],
        "v_scale": scales[1],
    }


def int8_decode(scales: tuple[float, float] = (NAN, NAN), **kinds: Any) -> Arguments:
    arguments = caches(decode_arguments(**kinds), "k_cache", "v_cache", scales)
    for name in ("k_scale_buf", "v_scale_buf"):
        arguments[name][unread(arguments)] = NAN
        arguments[name][arguments["loc"]] = NAN  # what the new rows bring
    return arguments


def unread(arguments: Arguments) -> torch.Tensor:
    """Slots of the cache that no sequence of a decode step has."""
    table, pool, lengths = (arguments[name] for name in ("req_to_token", "req_pool_indices", "seq_lens"))
    free = torch.ones(arguments["k_cache"].shape[0], dtype=torch.bool)
    for row, length in zip(pool.tolist(), lengths.tolist(), strict=True):
        free[table[row, :length].long()] = False
    return free


def int8_extend(scales: tuple[float, float] = (NAN, NAN), **kinds: Any) -> Arguments:
    """The slots of new tokens are in `req_to_token`, behind those of the prefix."""
    arguments = extend_arguments(**kinds)
    lengths = arguments["extend_seq_lens"].tolist()
    slots = arguments["k_buffer"].shape[0]
    table = arguments["req_to_token"]
    for row, (total, new) in enumerate(zip(arguments["seq_lens"].tolist(), lengths, strict=True)):
        table[row, total - new : total] = torch.arange(slots, slots + new)
        slots += new
    for name in ("k_buffer", "v_buffer"):
        old = arguments[name]
        arguments[name] = torch.cat([old, torch.zeros(slots - old.shape[0], *old.shape[1:], dtype=old.dtype)])
    arguments = caches(arguments, "k_buffer", "v_buffer", scales)
    for row, (total, new) in enumerate(zip(arguments["seq_lens"].tolist(), lengths, strict=True)):
        for name in ("k_scale_buf", "v_scale_buf"):
            arguments[name][table[row, total - new : total].long()] = NAN
    return arguments


def dequantised(arguments: Arguments, keys: str, values: str) -> list[torch.Tensor]:
    """Both caches as float64."""
    dynamic = math.isnan(arguments["k_scale"])
    result = []
    for name, buffer, scale in ((keys, "k_scale_buf", "k_scale"), (values, "v_scale_buf", "v_scale")):
        by: torch.Tensor = arguments[buffer].double()[..., None] if dynamic else torch.tensor(arguments[scale]).double()
        result.append(arguments[name].double() * by)
    return result


def close(
    got: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, arguments: Arguments, what: str
) -> None:
    """Rounding of the output once, and FP32 within.

    The score of a token is off by at most (head + 3) u sum |q k| and the sums over tokens by 2 tokens u; with u = 2^-24
    and a spread of scores below 100, twice the sum of these times the largest |v| bounds the result's error.
    """
    exact = attend(q, k, v, arguments["sm_scale"], arguments["logit_cap"])
    group = q.shape[1] // k.shape[1]
    products = torch.einsum("qhd,thd->hqt", q.double().abs(), k.abs().repeat_interleave(group, dim=1))
    score = float(products.max()) * arguments["sm_scale"] * (q.shape[2] + 3) if k.shape[0] else 0.0
    inner = 2.0 * 2.0**-24 * (score + 2.0 * k.shape[0] + 200.0) * float(v.abs().max() if k.shape[0] else 0.0)
    half_place = 2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11
    bound = exact.abs() * half_place * 1.001 + 2.0 * inner + 2.0**-25
    assert ((got.double() - exact).abs() <= bound).all(), f"{what}: off by {(got.double() - exact).abs().max()}"


def check_stored(arguments: Arguments, new: str, cache: str, buffer: str, scale: str, slots: torch.Tensor) -> None:
    """New rows are in the cache with the codes of plain torch, and dynamic scales in the buffer."""
    rows = arguments[new]
    if rows.dtype == torch.int8:
        assert torch.equal(arguments[cache][slots], rows)
        return
    codes, scales = quantised(rows, arguments[scale])
    assert torch.equal(arguments[cache][slots], codes), f"codes of {new}"
    if math.isnan(arguments[scale]):
        assert torch.equal(arguments[buffer][slots], scales), f"scales of {new}"


def check_decode(arguments: Arguments) -> None:
    before = {name: arguments[name].clone() for name in ("k_scale_buf", "v_scale_buf", "k_cache", "v_cache")}
    DECODE(*arguments.values())
    loc = arguments["loc"].long()
    check_stored(arguments, "key", "k_cache", "k_scale_buf", "k_scale", loc)
    check_stored(arguments, "value", "v_cache", "v_scale_buf", "v_scale", loc)
    others = torch.ones(before["k_cache"].shape[0], dtype=torch.bool)
    others[loc] = False
    for name, old in before.items():
        kept = others if "cache" in name or math.isnan(arguments["k_scale"]) else slice(None)
        assert torch.equal(old[kept].nan_to_num(7.0), arguments[name][kept].nan_to_num(7.0)), f"{name} elsewhere"
    keys, values = dequantised(arguments, "k_cache", "v_cache")
    table, pool = arguments["req_to_token"], arguments["req_pool_indices"]
    for i, length in enumerate(arguments["seq_lens"].tolist()):
        slots = table[pool[i], :length].long()
        if length:
            close(
                arguments["output"][i : i + 1],
                arguments["query"][i : i + 1],
                keys[slots],
                values[slots],
                arguments,
                f"decode, sequence {i}",
            )
        else:
            assert (arguments["output"][i] == 0).all()


def check_extend(arguments: Arguments) -> None:
    EXTEND(*arguments.values())
    table, pool = arguments["req_to_token"], arguments["req_pool_indices"]
    starts, lengths = arguments["extend_start_loc"].tolist(), arguments["extend_seq_lens"].tolist()
    keys, values = dequantised(arguments, "k_buffer", "v_buffer")
    for i, total in enumerate(arguments["seq_lens"].tolist()):
        slots = table[pool[i], :total].long()
        new = slice(starts[i], starts[i] + lengths[i])
        part = arguments | {"k": arguments["k_extend"][new], "v": arguments["v_extend"][new]}
        check_stored(part, "k", "k_buffer", "k_scale_buf", "k_scale", slots[total - lengths[i] :])
        check_stored(part, "v", "v_buffer", "v_scale_buf", "v_scale", slots[total - lengths[i] :])
        close(
            arguments["o_extend"][new],
            arguments["q_extend"][new],
            keys[slots],
            values[slots],
            arguments,
            f"extend, sequence {i}",
        )


def already_quantised(arguments: Arguments, *names: str) -> Arguments:
    """New rows of int8, -128 among them."""
    changed = dict(arguments)
    for name in names:
        changed[name] = torch.randint(-128, 128, arguments[name].shape, dtype=torch.int8)
        changed[name][0, 0, 0] = -128
    return changed


def special_rows(arguments: Arguments, *names: str) -> Arguments:
    """Rows of zeros, of one large element, of the smallest number, and with ties."""
    changed = dict(arguments)
    for name in names:
        rows = arguments[name].clone()
        rows[0, 0] = 0
        rows[0, 1] = 0
        rows[0, 1, 3] = 1e4
        rows[1, 0] = torch.finfo(rows.dtype).tiny * 2.0**-5
        rows[1, 1] = torch.arange(rows.shape[2]) / 2 - 8
        rows[1, 1, 0] = 127
        changed[name] = rows
    return changed


def refuse_scales(operator: Any, good: Arguments, keys: str, buffer_slot: int, new: str) -> None:
    """What both forms refuse; `good` is dynamic."""
    infinity = float("inf")
    static = {"k_scale": 0.1, "v_scale": 0.1}
    cases: list[tuple[Arguments, type[Exception], str]] = [
        ({"k_scale": 0.1}, ValueError, "v_scale"),
        ({"v_scale": 0.1}, ValueError, "k_scale"),
        (static | {"k_scale": infinity}, ValueError, "k_scale"),
        (static | {"v_scale": -infinity}, ValueError, "v_scale"),
        (static | {"v_scale": 0.0}, ValueError, "v_scale"),
        (static | {"k_scale": -0.1}, ValueError, "k_scale"),
        (static | {"k_scale": 1e-60}, ValueError, "k_scale"),
        (static | {"v_scale": 1e60}, ValueError, "v_scale"),
        ({new: torch.zeros_like(good[new], dtype=torch.int8)}, ValueError, f"{new} is int8"),
        ({new: good[new].double()}, TypeError, new),
        ({keys: good[keys].to(torch.uint8)}, TypeError, keys),
        ({"k_scale_buf": good["k_scale_buf"].double()}, TypeError, "k_scale_buf"),
        ({"k_scale_buf": good["k_scale_buf"][:-1]}, ValueError, "k_scale_buf"),
        ({"v_scale_buf": good["v_scale_buf"][:, :1]}, ValueError, "v_scale_buf"),
        ({"v_scale_buf": good["k_scale_buf"]}, ValueError, "must not overlap"),
        ({new: with_value(good[new], (1, 1, 5), infinity)}, ValueError, f"{new}[1, 1]"),
        ({new: with_value(good[new], (0, 1, 63), NAN)}, ValueError, f"{new}[0, 1]"),
        (static | {new: with_value(good[new], (1, 0, 5), -infinity)}, ValueError, f"{new}[1, 0]"),
    ]
    for name in ("k_scale_buf", "v_scale_buf"):
        for bad in (NAN, infinity, -infinity):
            changed = with_value(good[name], (buffer_slot, 1), bad)
            cases.append(({name: changed}, ValueError, f"{name}[{buffer_slot}, 1]"))
    for changes, error, said in cases:
        refused(operator, good, changes, error, said)


def refuse() -> None:
    decode = int8_decode()
    row = int(decode["req_pool_indices"][1])
    refuse_scales(DECODE, decode, "k_cache", int(decode["req_to_token"][row, 3]), "key")
    refuse_scales(DECODE, decode, "v_cache", int(decode["req_to_token"][row, 3]), "value")
    for changes, error, name in (
        ({"query": decode["query"].float()}, TypeError, "query"),
        ({"output": decode["output"][:, :4]}, ValueError, "output"),
        ({"loc": with_value(decode["loc"], 1, 79)}, IndexError, "loc[1]"),
        ({"req_to_token": with_value(decode["req_to_token"], (row, 69), 79)}, IndexError, "req_to_token"),
        ({"seq_lens": with_value(decode["seq_lens"], 0, -1)}, IndexError, "seq_lens[0]"),
        ({"attn_logits": decode["attn_logits"][..., :64]}, ValueError, "attn_logits"),
        ({"logit_cap": -1.0}, ValueError, "logit_cap"),
    ):
        refused(DECODE, decode, changes, error, name)
    extend = int8_extend()
    refuse_scales(EXTEND, extend, "k_buffer", int(extend["req_to_token"][1, 2]), "k_extend")
    refuse_scales(EXTEND, extend, "v_buffer", int(extend["req_to_token"][1, 2]), "v_extend")
    for changes, error, name in (
        ({"o_extend": extend["q_extend"]}, ValueError, "o_extend must not overlap q_extend"),
        # A new token's slot, which the floating form does not look at.
        ({"req_to_token": with_value(extend["req_to_token"], (1, 35), 10**6)}, IndexError, "req_to_token[1, 35]"),
        ({"extend_seq_lens": with_value(extend["extend_seq_lens"], 2, 40)}, ValueError, "extend_seq_lens[2]"),
        ({"max_len_extend": 39}, ValueError, "max_len_extend"),
    ):
        refused(EXTEND, extend, changes, error, name)


def main() -> int:
    both = (torch.bfloat16, torch.float16)
    for threads, dtype, scales in itertools.product((1, 2, 8), both, ((NAN, NAN), STATIC)):
        torch.set_num_threads(threads)
        index = torch.int32 if threads == 2 else torch.int64
        check_decode(int8_decode(scales, dtype=dtype, index=index))
        check_decode(int8_decode(scales, dtype=dtype, lengths=(0, 300), heads=14, kv_heads=2, head_v=80, cap=5.0))
        check_extend(int8_extend(scales, dtype=dtype, index=index))
        check_extend(int8_extend(scales, dtype=dtype, heads=6, kv_heads=1, head=96, head_v=128, cap=5.0))
        check_decode(special_rows(int8_decode(scales, dtype=dtype), "key", "value"))
        check_extend(special_rows(int8_extend(scales, dtype=dtype), "k_extend", "v_extend"))
    check_decode(already_quantised(int8_decode(STATIC), "key", "value"))
    check_decode(already_quantised(int8_decode(STATIC), "value"))
    check_extend(already_quantised(int8_extend(STATIC), "k_extend", "v_extend"))
    names = ("query", "output", "key", "value", "k_scale_buf", "v_scale_buf")
    check_decode(strided(int8_decode(), *names))
    names = ("q_extend", "k_extend", "v_extend", "o_extend", "k_scale_buf", "v_scale_buf")
    check_extend(strided(int8_extend(), *names))
    refuse()
    torch.library.opcheck(DECODE.default, tuple(int8_decode().values()))
    torch.library.opcheck(DECODE.default, tuple(int8_decode(STATIC).values()))
    torch.library.opcheck(EXTEND.default, tuple(int8_extend().values()))

    sgl_kernel.reset_attestation()
    check_decode(int8_decode())
    check_extend(int8_extend(dtype=torch.float16))
    check_extend(already_quantised(int8_extend(STATIC), "k_extend", "v_extend"))
    ops = sgl_kernel.attestation()["ops"]
    assert ops["decode_attention_int8_cpu"]["calls"] == 1 and "bf16" in ops["decode_attention_int8_cpu"]["kernel"], ops
    assert ops["extend_attention_int8_cpu"]["calls"] == 2, ops
    assert ops["store_kv"]["calls"] == 2 and "store_kv_bf16" in ops["store_kv"]["kernel"], ops
    print("attention over an INT8 cache: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
