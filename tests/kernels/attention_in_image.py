"""Run inside the runtime image, with the package `sgl_kernel` on the path: the attention operators as torch sees them.

Holds them against torch in float64, against torch.library.opcheck, and against arguments that must be refused.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import sgl_kernel
import torch

Arguments = dict[str, Any]


def decode_arguments(
    *,
    lengths: tuple[int, ...] = (5, 70, 1),
    heads: int = 8,
    kv_heads: int = 2,
    head: int = 64,
    head_v: int = 64,
    dtype: torch.dtype = torch.bfloat16,
    index: torch.dtype = torch.int32,
    splits: int = 4,
    cap: float = 0.0,
) -> Arguments:
    """A decode step; the slot of each new token is the last of its sequence, as SGLang has it."""
    torch.manual_seed(1)
    batch, slots = len(lengths), sum(lengths) + 3
    order = torch.randperm(slots)
    table = torch.full((batch + 1, max(lengths) + 2), -7, dtype=index)  # what is not used is out of range
    rows = torch.randperm(batch + 1)[:batch]
    first = 0
    for row, length in zip(rows.tolist(), lengths, strict=True):
        table[row, :length] = order[first : first + length].to(index)
        first += length
    ends = list(itertools.accumulate(lengths))
    return {
        "query": torch.randn(batch, heads, head).to(dtype),
        "k_cache": torch.randn(slots, kv_heads, head).to(dtype),
        "v_cache": torch.randn(slots, kv_heads, head_v).to(dtype),
        "output": torch.full((batch, heads, head_v), float("nan"), dtype=dtype),
        "key": torch.randn(batch, kv_heads, head).to(dtype),
        "value": torch.randn(batch, kv_heads, head_v).to(dtype),
        "loc": order[torch.tensor([end - 1 for end in ends])].clone(),
        "attn_logits": torch.full((batch, heads, splits, head_v + 1), float("nan")),
        "req_to_token": table,
        "req_pool_indices": rows,
        "seq_lens": torch.tensor(lengths),
        "sm_scale": head**-0.5,
        "logit_cap": cap,
    }


def extend_arguments(
    *,
    prefixes: tuple[int, ...] = (0, 33, 4),
    lengths: tuple[int, ...] = (40, 3, 1),
    heads: int = 8,
    kv_heads: int = 2,
    head: int = 64,
    head_v: int = 64,
    dtype: torch.dtype = torch.bfloat16,
    index: torch.dtype = torch.int64,
    cap: float = 0.0,
) -> Arguments:
    """An extend step of several sequences behind their prefixes."""
    torch.manual_seed(2)
    batch, tokens, slots = len(lengths), sum(lengths), sum(prefixes) + 3
    order = torch.randperm(slots)
    table = torch.full((batch, max(prefixes) + max(lengths)), 10**6, dtype=index)
    first = 0
    for row, prefix in enumerate(prefixes):
        table[row, :prefix] = order[first : first + prefix].to(index)
        first += prefix
    starts = [0, *itertools.accumulate(lengths)][:-1]
    return {
        "q_extend": torch.randn(tokens, heads, head).to(dtype),
        "k_extend": torch.randn(tokens, kv_heads, head).to(dtype),
        "v_extend": torch.randn(tokens, kv_heads, head_v).to(dtype),
        "o_extend": torch.full((tokens, heads, head_v), float("nan"), dtype=dtype),
        "k_buffer": torch.randn(slots, kv_heads, head).to(dtype),
        "v_buffer": torch.randn(slots, kv_heads, head_v).to(dtype),
        "req_to_token": table,
        "req_pool_indices": torch.arange(batch),
        "seq_lens": torch.tensor([p + n for p, n in zip(prefixes, lengths, strict=True)]),
        "extend_seq_lens": torch.tensor(lengths),
        "extend_start_loc": torch.tensor(starts),
        "max_len_extend": max(lengths),
        "sm_scale": head**-0.5,
        "logit_cap": cap,
    }


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, cap: float) -> torch.Tensor:
    """[queries, heads, head] over [tokens, kv_heads, head] in float64; query i not the last queries - 1 - i."""
    group = q.shape[1] // k.shape[1]
    keys, values = (t.double().repeat_interleave(group, dim=1) for t in (k, v))
    scores = torch.einsum("qhd,thd->hqt", q.double(), keys) * scale
    if cap > 0:
        scores = cap * torch.tanh(scores / cap)
    queries, tokens = q.shape[0], k.shape[0]
    hidden = torch.ones(queries, tokens, dtype=torch.bool).triu(tokens - queries + 1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return torch.einsum("hqt,thd->qhd", weights, values)


def close(got: torch.Tensor, exact: torch.Tensor, what: str) -> None:
    """Within one rounding and a little: the derived bounds are held by kernel_tests."""
    unit = 2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-11
    error = (got.double() - exact).abs() - 0.5 * unit * 1.01 * 2 * exact.abs()
    assert float(error.max()) < 1e-4, f"{what}: off by {float(error.max())}"


def check_decode(arguments: Arguments) -> None:
    """Runs decode, holds output, cache and marks against what they should be."""
    before = {name: value.clone() for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    torch.ops.sgl_kernel.decode_attention_cpu(*arguments.values())
    for cache, new in (("k_cache", "key"), ("v_cache", "value")):
        want = before[cache].clone()
        want[before["loc"]] = before[new]
        assert torch.equal(arguments[cache], want), f"{cache} is not what it was with the new rows in it"
    for i, length in enumerate(arguments["seq_lens"].tolist()):
        slots = arguments["req_to_token"][arguments["req_pool_indices"][i], :length].long()
        if length == 0:
            assert not arguments["output"][i].any(), "an empty sequence gives 0"
            assert torch.isneginf(arguments["attn_logits"][i, ..., -1]).all(), "empty splits are marked"
            continue
        exact = attend(
            arguments["query"][i : i + 1],
            arguments["k_cache"][slots],
            arguments["v_cache"][slots],
            arguments["sm_scale"],
            arguments["logit_cap"],
        )
        close(arguments["output"][i : i + 1], exact, f"decode, sequence {i}")


def check_extend(arguments: Arguments) -> None:
    """Runs extend and holds the output against float64."""
    torch.ops.sgl_kernel.extend_attention_cpu(*arguments.values())
    for i, length in enumerate(arguments["extend_seq_lens"].tolist()):
        first = int(arguments["extend_start_loc"][i])
        prefix = int(arguments["seq_lens"][i]) - length
        slots = arguments["req_to_token"][arguments["req_pool_indices"][i], :prefix].long()
        new = slice(first, first + length)
        exact = attend(
            arguments["q_extend"][new],
            torch.cat([arguments["k_buffer"][slots], arguments["k_extend"][new]]),
            torch.cat([arguments["v_buffer"][slots], arguments["v_extend"][new]]),
            arguments["sm_scale"],
            arguments["logit_cap"],
        )
        close(arguments["o_extend"][new], exact, f"extend, sequence {i}")


def refused(operator: Any, arguments: Arguments, changes: Arguments, error: type[Exception], name: str) -> None:
    """The call with `changes` raises `error` that names the argument and writes nothing."""
    changed = arguments | changes
    tensors = {key: value for key, value in changed.items() if isinstance(value, torch.Tensor) and value.is_cpu}
    before = {key: value.clone() for key, value in tensors.items()}
    try:
        operator(*changed.values())
    except error as raised:
        assert name in str(raised), f"{raised} does not name {name}"
    else:
        raise AssertionError(f"{name} = {changes} was accepted")
    for key, value in before.items():
        assert torch.equal(value.nan_to_num(), changed[key].nan_to_num()), f"{key} was written in spite of the error"


def with_value(tensor: torch.Tensor, index: int | tuple[int, ...], value: int) -> torch.Tensor:
    changed = tensor.clone()
    changed[index] = value
    return changed


def refuse_decode() -> None:
    op = torch.ops.sgl_kernel.decode_attention_cpu
    good = decode_arguments()
    row = int(good["req_pool_indices"][1])
    query, output = good["query"], good["output"]
    wide = torch.randn(*good["k_cache"].shape[:-1], 96).to(query.dtype)
    cases: list[tuple[Arguments, type[Exception], str]] = [
        ({"query": query.float()}, TypeError, "query"),
        ({"k_cache": good["k_cache"].half()}, TypeError, "k_cache"),
        ({"v_cache": good["v_cache"][1:]}, ValueError, "v_cache"),
        ({"output": output[:, :4]}, ValueError, "output"),
        ({"output": query}, ValueError, "output must not overlap query"),
        ({"output": output[:1].expand(3, 8, 64)}, ValueError, "output must not overlap itself"),
        ({"key": good["key"][..., :32]}, ValueError, "key"),
        ({"value": good["value"][:1]}, ValueError, "value"),
        ({"loc": with_value(good["loc"], 1, -1)}, IndexError, "loc[1]"),
        ({"loc": with_value(good["loc"], 2, 79)}, IndexError, "loc[2]"),
        ({"loc": good["loc"].float()}, TypeError, "loc"),
        ({"attn_logits": good["attn_logits"][..., :64]}, ValueError, "attn_logits"),
        ({"attn_logits": good["attn_logits"].double()}, TypeError, "attn_logits"),
        ({"attn_logits": good["attn_logits"][:, :, :0]}, ValueError, "attn_logits"),
        ({"req_to_token": with_value(good["req_to_token"], (row, 3), -1)}, IndexError, "req_to_token"),
        ({"req_to_token": with_value(good["req_to_token"], (row, 69), 79)}, IndexError, "req_to_token"),
        ({"req_to_token": good["req_to_token"][0]}, ValueError, "req_to_token"),
        ({"req_pool_indices": with_value(good["req_pool_indices"], 0, 4)}, IndexError, "req_pool_indices[0]"),
        ({"req_pool_indices": with_value(good["req_pool_indices"], 0, -1)}, IndexError, "req_pool_indices[0]"),
        ({"seq_lens": with_value(good["seq_lens"], 0, 73)}, IndexError, "seq_lens[0]"),
        ({"seq_lens": with_value(good["seq_lens"], 0, -1)}, IndexError, "seq_lens[0]"),
        ({"seq_lens": good["seq_lens"][:2]}, ValueError, "seq_lens"),
        ({"k_cache": wide[..., :64], "v_cache": wide[..., 32:]}, ValueError, "k_cache must not overlap v_cache"),
        ({"seq_lens": good["seq_lens"].to("meta")}, ValueError, "one device"),
        ({"attn_logits": torch.tensor(1.0)}, ValueError, "attn_logits must have shape"),
        ({"logit_cap": -1.0}, ValueError, "logit_cap"),
        ({"logit_cap": 1e-50}, ValueError, "logit_cap"),
        ({"logit_cap": 1e10}, ValueError, "logit_cap"),
        ({"sm_scale": 1e39}, ValueError, "sm_scale"),
        ({"sm_scale": float("nan")}, ValueError, "sm_scale"),
        ({"query": query[:, :7], "output": output[:, :7]}, ValueError, "7 heads"),
    ]
    for changes, error, name in cases:
        refused(op, good, changes, error, name)


def refuse_extend() -> None:
    op = torch.ops.sgl_kernel.extend_attention_cpu
    good = extend_arguments()
    fused = torch.randn(44, 12, 64).bfloat16()
    inside = {"q_extend": fused[:, :8], "k_extend": fused[:, 8:10], "v_extend": fused[:, 10:]}
    cases: list[tuple[Arguments, type[Exception], str]] = [
        ({"o_extend": good["q_extend"]}, ValueError, "o_extend must not overlap q_extend"),
        (inside | {"o_extend": fused[:, 1:9]}, ValueError, "o_extend must not overlap q_extend"),
        (inside | {"q_extend": good["q_extend"], "o_extend": fused[:, 2:10]}, ValueError, "overlap k_extend"),
        ({"k_extend": good["k_extend"].half()}, TypeError, "k_extend"),
        ({"v_buffer": good["v_buffer"][:, :1]}, ValueError, "v_buffer"),
        ({"req_to_token": with_value(good["req_to_token"], (1, 32), 40)}, IndexError, "req_to_token[1, 32]"),
        ({"extend_seq_lens": with_value(good["extend_seq_lens"], 2, 40)}, ValueError, "extend_seq_lens[2]"),
        ({"extend_start_loc": with_value(good["extend_start_loc"], 1, 39)}, ValueError, "extend_start_loc"),
        ({"extend_start_loc": with_value(good["extend_start_loc"], 2, 44)}, IndexError, "tokens"),
        ({"seq_lens": with_value(good["seq_lens"], 1, 10**4)}, IndexError, "seq_lens[1]"),
        ({"max_len_extend": 39}, ValueError, "max_len_extend"),
        ({"req_pool_indices": with_value(good["req_pool_indices"], 2, 3)}, IndexError, "req_pool_indices[2]"),
    ]
    for changes, error, name in cases:
        refused(op, good, changes, error, name)


def strided(arguments: Arguments, *names: str) -> Arguments:
    """The same values in views with gaps, as slices of a fused projection are."""
    changed = dict(arguments)
    for name in names:
        old = arguments[name]
        wide = torch.full((*old.shape[:-1], 2 * old.shape[-1] + 1), float("nan"), dtype=old.dtype)
        view = wide[..., 1 : 1 + old.shape[-1]]
        view.copy_(old)
        changed[name] = view
    return changed


def one_buffer(arguments: Arguments) -> None:
    """Queries, keys, values and the output lie in between each other's rows and do not overlap."""
    names = ("q_extend", "o_extend", "k_extend", "v_extend")
    fused = torch.cat([arguments[name] for name in names], 1)
    heads = [arguments[name].shape[1] for name in names]
    check_extend(arguments | dict(zip(names, fused.split(heads, 1), strict=True)))


def main() -> int:
    both = (torch.bfloat16, torch.float16)
    for threads, dtype, index in itertools.product((1, 2, 8), both, (torch.int32, torch.int64)):
        torch.set_num_threads(threads)
        check_decode(decode_arguments(dtype=dtype, index=index))
        check_decode(decode_arguments(dtype=dtype, lengths=(0, 300), heads=14, kv_heads=2, head_v=80, cap=5.0))
        check_extend(extend_arguments(dtype=dtype, index=index))
        check_extend(extend_arguments(dtype=dtype, heads=6, kv_heads=1, head=96, head_v=128, cap=5.0))
    check_decode(strided(decode_arguments(), "query", "k_cache", "v_cache", "output", "key", "value"))
    names = ("q_extend", "k_extend", "v_extend", "o_extend", "k_buffer", "v_buffer")
    check_extend(strided(extend_arguments(), *names))
    one_buffer(extend_arguments())
    refuse_decode()
    refuse_extend()
    torch.library.opcheck(torch.ops.sgl_kernel.decode_attention_cpu.default, tuple(decode_arguments().values()))
    torch.library.opcheck(torch.ops.sgl_kernel.extend_attention_cpu.default, tuple(extend_arguments().values()))

    sgl_kernel.reset_attestation()
    check_decode(decode_arguments())
    check_extend(extend_arguments(dtype=torch.float16))
    ops = sgl_kernel.attestation()["ops"]
    assert ops["decode_attention_cpu"]["calls"] == 1 and "bf16" in ops["decode_attention_cpu"]["kernel"], ops
    assert ops["extend_attention_cpu"]["calls"] == 1 and "fp16" in ops["extend_attention_cpu"]["kernel"], ops
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        check_decode(decode_arguments())
        check_extend(extend_arguments())
    ranges = {event.key for event in profile.key_averages()}
    assert {"sgl-kernel::decode_attention_cpu", "sgl-kernel::extend_attention_cpu"} <= ranges
    print("attention operators: as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
