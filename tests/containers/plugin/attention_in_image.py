"""The attention backend `rvv` against SGLang's torch_native and against float64, on SGLang's own pools."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from attention_world import (
    LAYER,
    START,
    UNIT,
    Batch,
    Exact,
    Kind,
    Tensor,
    World,
    attend,
    decode,
    extend,
    run,
    store,
    world,
)
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.memory_pool import KVWriteLoc
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang_rvv import routing
from sglang_rvv.upstream import IntegrationError

LENGTHS = (1, 31, 32, 33, 512, 2048)
FP32 = 2.0**-24


def kinds() -> Iterator[Kind]:
    """Both types, both caches, groups of 1, 4 and 8 query heads, heads of 64 and 128."""
    for dtype, int8, kv_heads, head in itertools.product(
        (torch.bfloat16, torch.float16), (False, True), (8, 2, 1), (64, 128)
    ):
        yield Kind(kv_heads=kv_heads, head=head, head_v=head, dtype=dtype, int8=int8, scaling=head**-0.5)


def close(got: Tensor, exact: Exact, kind: Kind, tokens: int, largest: float, what: str) -> None:
    """One rounding of the output, and FP32 within.

    A score is off by at most (head + 3) u sum |q k|, the sums over tokens by 2 tokens u and the exponential by the
    spread of the scores, u = 2^-24; twice the sum of these times the largest |value| bounds what that does.
    """
    inner = 2 * FP32 * (exact.largest_products * (kind.head + 3) + 2 * tokens + 4 * exact.largest_score + 8) * largest
    bound = UNIT[kind.dtype] * (exact.result.abs() + inner) * 1.001 + 2 * inner + 2.0**-25
    worst = float(((got.double() - exact.result).abs() - bound).max())
    assert worst <= 0, f"{what}: {worst} above the bound of {kind}"


def near_native(got: Tensor, native: Tensor, exact: Exact, kind: Kind, what: str) -> None:
    """Torch rounds scores and weights to the type too: e^(2 u |score|) - 1 and 4 u of the spread, with a unit u."""
    unit = UNIT[kind.dtype]
    bound = (math.expm1(2 * unit * exact.largest_score) + 6 * unit) * exact.spread + 2 * unit * exact.result.abs()
    worst = float(((got.double() - native.double()).abs() - bound).max())
    assert worst <= 0, f"{what}: {worst} further from torch_native than rounding of {kind}"


def near_unquantised(got: Tensor, exact: Exact, step_k: float, step_v: float, q: Tensor, kind: Kind, what: str) -> None:
    """An INT8 cache against the values that were quantised, within what half a step can do.

    A key is off by at most half its step, a score by e = scaling sum |q| step / 2; then a weight is off by a factor
    between e^-2e and e^2e, and a value by half its step. Capping does not widen a difference.
    """
    off = kind.scaling * q.double().abs().sum(-1) * step_k / 2 * 1.01
    bound = torch.expm1(2 * off)[..., None] * exact.spread + step_v / 2 * 1.01
    bound = bound + UNIT[kind.dtype] * (exact.result.abs() + bound) + 1e-5
    worst = float(((got.double() - exact.result).abs() - bound).max())
    assert worst <= 0, f"{what}: {worst} further from the unquantised than half a step explains, {kind}"


def held_against(
    got: Tensor, native: Tensor | None, after: World, batch: Batch, plain: World | None, what: str
) -> None:
    """`got` of a batch that ran, sequence by sequence; `plain`: the same tokens in a cache that is not quantised."""
    kind, forward = after.kind, batch.forward
    counts = getattr(forward, "extend_seq_lens_cpu", [1] * forward.batch_size)
    order = [after.rows.index(row) for row in forward.req_pool_indices.tolist()]
    first = 0
    for sequence, count in zip(order, counts, strict=True):
        part = slice(first, first + count)
        first += count
        slots = after.slots(sequence)
        keys, values = after.cached(slots)
        q = batch.q[part].view(-1, kind.heads, kind.head)
        out = got[part].view(-1, kind.heads, kind.head_v)
        said = f"{what}, sequence {sequence} of {len(slots)} tokens"
        exact = attend(kind, q, keys, values)
        close(out, exact, kind, len(slots), float(values.abs().max()), said)
        if native is not None and not kind.cap:
            near_native(out, native[part].view_as(out), exact, kind, said)
        if plain is not None:
            k, v = plain.cached(slots)
            steps = (float(t.abs().max()) / 127 for t in (k, v))
            near_unquantised(out, attend(kind, q, k, v), *steps, q, kind, said)


def compare(after: World, batch: Batch, before: World, plain: World | None, got: Tensor, what: str) -> None:
    """`got`, and the cache, against torch_native on a copy of the state before (with BF16 and FP16 caches)."""
    native = None
    if not after.kind.int8:
        native = run(TorchNativeAttnBackend(before.runner), before, batch)
        for mine, other in zip(
            after.pool.k_buffer + after.pool.v_buffer, before.pool.k_buffer + before.pool.v_buffer, strict=True
        ):
            assert torch.equal(mine.view(torch.int16), other.view(torch.int16)), f"{what}: the caches are not the same"
    held_against(got, native, after, batch, plain, what)


def unquantised(state: World) -> World | None:
    """A world with the same slots whose cache keeps what the INT8 one is given; None where nothing is quantised."""
    if not state.kind.int8:
        return None
    kind = replace(state.kind, int8=False)
    plain = world(kind, [0], [state.pool.size - 7])
    plain.rows, plain.lengths = state.rows, state.lengths
    plain.runner.req_to_token_pool = state.runner.req_to_token_pool
    return plain


def steps_of_decode(kind: Kind, lengths: Sequence[int], steps: int, what: str) -> None:
    """`steps` decode steps behind `lengths` tokens; in each the sequences come in another order."""
    state = world(kind, lengths, [steps] * len(lengths))
    backend = state.backend()
    for step in range(steps):
        order = torch.randperm(len(lengths)).tolist()
        before = state.copy()
        batch = decode(state, order)
        before.lengths = list(state.lengths)
        got = run(backend, state, batch)
        compare(state, batch, before, None, got, f"{what}, step {step}")


def check_decode_of_every_length_in_batches_of_1_2_7_and_16() -> None:
    """Lengths are those after the step."""
    before = [length - 1 for length in LENGTHS]
    for kind in kinds():
        steps_of_decode(kind, [*before[:-1], 127, 70], 1, "batch of 7")
        if kind.kv_heads == 2 and kind.head == 64:
            steps_of_decode(kind, [*before[:5] * 3, 2047], 1, "batch of 16")
            steps_of_decode(kind, [2047, 30], 2, "batch of 2")
            for length in before:
                steps_of_decode(kind, [length], 1, f"length {length} alone")


def steps_of_extend(kind: Kind, prefixes: Sequence[int], new: Sequence[int], what: str) -> None:
    state = world(kind, prefixes, new)
    before = state.copy()
    batch = extend(state, new)
    before.lengths = list(state.lengths)
    got = run(state.backend(), state, batch)
    compare(state, batch, before, None, got, what)


def check_extend_with_and_without_prefixes_mixed_in_a_batch() -> None:
    batches = (
        ([0], [1]),
        ([0, 0], [33, 31]),
        ([0, 31, 32, 1, 0, 33, 95], [32, 1, 33, 31, 1, 2, 1]),
    )
    for kind in kinds():
        for prefixes, new in batches:
            steps_of_extend(kind, prefixes, new, f"prefixes {prefixes}, new {new}")
    for int8 in (False, True):
        steps_of_extend(Kind(int8=int8), [0, 70, 1, 0] * 4, [3, 1, 33, 64] * 4, "batch of 16")
        small = Kind(heads=2, kv_heads=1, int8=int8)
        for length in LENGTHS:
            steps_of_extend(small, [0], [length], f"{length} new tokens")
        steps_of_extend(small, [600, 2047], [512, 1], "long prefixes")


def check_an_int8_cache_is_within_half_a_step_of_what_was_quantised() -> None:
    """All rows are quantised by our own store: the prompt in one extend, then decode steps."""
    for dtype, kv_heads in itertools.product((torch.bfloat16, torch.float16), (8, 1)):
        kind = Kind(kv_heads=kv_heads, dtype=dtype, int8=True)
        new = [1, 33, 200]
        state = world(kind, [0, 0, 0], [length + 4 for length in new])
        plain = unquantised(state)
        assert plain is not None
        backend = state.backend()
        batch = extend(state, new)
        store(plain, batch.forward.out_cache_loc, batch.k, batch.v)
        held_against(run(backend, state, batch), None, state, batch, plain, "extend")
        for step in range(4):
            batch = decode(state)
            store(plain, batch.forward.out_cache_loc, batch.k, batch.v)
            held_against(run(backend, state, batch), None, state, batch, plain, f"decode step {step}")


def check_int8_rows_are_written_at_the_slots_that_sglang_allocated_and_nowhere_else() -> None:
    for what in ("decode", "extend"):
        state = world(Kind(int8=True), [5, 33, 1], [4, 4, 4])
        pool = state.pool
        buffers = (*pool.k_buffer, *pool.v_buffer, *pool.k_scale_buffer, *pool.v_scale_buffer)
        before = [buffer.clone() for buffer in buffers]
        batch = decode(state) if what == "decode" else extend(state, [4, 1, 3])
        run(state.backend(), state, batch)
        for index, (buffer, old) in enumerate(zip(buffers, before, strict=True)):
            changed = {int(slot) for slot in (buffer != old).flatten(1).any(1).nonzero()}
            expected = set(batch.forward.out_cache_loc.tolist()) if index % 2 == LAYER - START else set()
            assert changed == expected, f"{what}: buffer {index} changed at {changed}, not at {expected}"


def check_scaling_and_logit_cap_reach_the_kernels() -> None:
    """torch_native ignores a cap: float64 does not."""
    for int8, scaling, cap in itertools.product((False, True), (0.125, 0.7), (0.0, 2.0, 30.0)):
        kind = Kind(int8=int8, scaling=scaling, cap=cap)
        steps_of_decode(kind, [70, 3], 1, f"scaling {scaling}, cap {cap}")
        steps_of_extend(kind, [70, 0], [3, 40], f"scaling {scaling}, cap {cap}")


def check_values_may_have_another_width_than_keys() -> None:
    for int8 in (False, True):
        kind = Kind(head=128, head_v=64, int8=int8)
        steps_of_decode(kind, [70, 3], 1, "values narrower than keys")
        steps_of_extend(kind, [70, 0], [3, 40], "values narrower than keys")


def check_a_mixed_batch_of_a_chunk_and_of_decoding_sequences() -> None:
    """`--enable-mixed-chunk`: sequences that decode come as extends of one token."""
    for int8 in (False, True):
        state = world(Kind(int8=int8), [20, 64, 7], [30, 1, 1])
        before = state.copy()
        batch = extend(state, [30, 1, 1], ForwardMode.MIXED)
        before.lengths = list(state.lengths)
        compare(state, batch, before, None, run(state.backend(), state, batch), "mixed")


def check_a_decode_step_of_a_sequence_does_not_depend_on_its_batch() -> None:
    """Bits, on one thread and on two: what two requests that run together are promised."""
    for int8 in (False, True):
        for threads in (1, 2):
            torch.set_num_threads(threads)
            state = world(Kind(int8=int8), [40, 512, 3], [1, 1, 1])
            alone = state.copy()
            together = decode(state)
            got = run(state.backend(), state, together)
            for sequence in range(3):
                single = decode(alone, [sequence])
                for name in ("q", "k", "v"):
                    setattr(single, name, getattr(together, name)[sequence : sequence + 1])
                out = run(alone.backend(), alone, single)
                assert torch.equal(out[0], got[sequence]), f"sequence {sequence}, INT8 {int8}, {threads} threads"


def check_the_logits_buffer_stays_where_it_is() -> None:
    """Address, shape and strides over steps of any batch size: what is captured holds them."""
    state = world(Kind(), [40, 512, 3], [9, 9, 9], spare=2)
    backend = state.backend()
    whole = backend.attn_logits
    stock = torch.ops.sgl_kernel.decode_attention_cpu
    passed: list[Tensor] = []

    def spy(*operands: Any) -> None:
        passed.append(operands[7])
        stock(*operands)

    with replaced(torch.ops.sgl_kernel, "decode_attention_cpu", spy):
        for order in ([0], [1, 2], [2, 1, 0], [0], [1]):
            run(backend, state, decode(state, order))
    assert backend.attn_logits is whole and whole.shape == (5, 8, torch.get_num_threads(), 65)
    assert {logits.data_ptr() for logits in passed} == {whole.data_ptr()}
    assert {logits.stride() for logits in passed} == {whole.stride()}
    assert [logits.shape[0] for logits in passed] == [1, 2, 3, 1, 1]


def check_a_batch_beyond_the_capacity_is_said_before_anything_is_computed() -> None:
    state = world(Kind(), [4, 4, 4], [2, 2, 2])
    backend = state.backend()
    assert backend.capacity == 3
    run(backend, state, decode(state))
    backend.attn_logits = backend.attn_logits[:2]
    batch = decode(state)
    said = refusal(lambda: backend.init_forward_metadata(batch.forward))
    assert "a batch of 3 sequences" in said and "made for 2" in said and "--max-running-requests" in said, said
    for mode in (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND_V2, ForwardMode.DLLM_EXTEND):
        batch.forward.forward_mode = mode
        assert mode.name in refusal(lambda: backend.init_forward_metadata(batch.forward))


def check_an_idle_batch_passes() -> None:
    state = world(Kind(), [4], [2])
    batch = decode(state)
    batch.forward.forward_mode, batch.forward.batch_size = ForwardMode.IDLE, 0
    batch.q = batch.q[:0]
    assert run(state.backend(), state, batch).shape == (0, 8 * 64)


def windowed(state: World, batch: Batch) -> dict[str, Any]:
    state.layer.sliding_window_size = 8
    return {}


def encoder_only(state: World, batch: Batch) -> dict[str, Any]:
    state.layer.attn_type = AttentionType.ENCODER_ONLY
    return {}


def cross(state: World, batch: Batch) -> dict[str, Any]:
    """The first tokens of every sequence are the encoder's, and are there already."""
    state.layer.is_cross_attention = True
    batch.forward.encoder_lens = torch.full((batch.forward.batch_size,), 3)
    batch.forward.encoder_out_cache_loc = None
    batch.k = batch.v = None  # type: ignore[assignment]
    return {}


def not_saved(state: World, batch: Batch) -> dict[str, Any]:
    """Somebody else has written the new rows."""
    state.pool.set_kv_buffer(state.layer, KVWriteLoc(batch.forward.out_cache_loc, None), batch.k, batch.v)
    return {"save_kv_cache": False}


def capped_otherwise(state: World, batch: Batch) -> dict[str, Any]:
    state.layer.logit_cap, state.layer.logit_capping_method = 5.0, "sigmoid"
    return {}


FALLBACKS = {
    "a sliding window": windowed,
    "attention that is not causal": encoder_only,
    "cross attention": cross,
    "save_kv_cache=False": not_saved,
    "logits capped by sigmoid": capped_otherwise,
}


def check_what_kernels_do_not_compute_is_torch_natives_said_once_and_counted() -> None:
    for why, prepare in FALLBACKS.items():
        for what in ("decode", "extend"):
            state = world(Kind(), [40, 12], [5, 5])
            batch = decode(state) if what == "decode" else extend(state, [3, 5])
            other = state.copy()
            more = prepare(state, batch)
            if why != "save_kv_cache=False":
                state_of = (other.layer.sliding_window_size, other.layer.attn_type, other.layer.is_cross_attention)
                assert state_of == (-1, AttentionType.DECODER, False)
            prepare(other, batch)
            expected = run(TorchNativeAttnBackend(other.runner), other, batch, **more)
            routing.reset()
            backend = state.backend()
            with contextlib.redirect_stderr(io.StringIO()) as said:
                for _ in range(3):
                    assert torch.equal(run(backend, state, batch, **more), expected), f"{what}, {why}"
            tokens = batch.q.shape[0]
            counted = [{"projection": f"{what}_attention", "m": tokens, "path": "torch", "calls": 3}]
            assert routing.snapshot() == counted, routing.snapshot()
            assert said.getvalue() == f"sglang_rvv: attention of SGLang's torch_native for {what}: {why}\n", said
    routing.reset()


def check_where_torch_cannot_read_an_int8_cache_it_is_an_error_and_nothing_is_written() -> None:
    for why, prepare in FALLBACKS.items():
        for what in ("decode", "extend"):
            state = world(Kind(int8=True), [40, 12], [5, 5])
            batch = decode(state) if what == "decode" else extend(state, [3, 5])
            more = {"save_kv_cache": False} if prepare is not_saved else prepare(state, batch)
            codes = state.pool.k_buffer[LAYER - START].clone()
            said = refusal(lambda: run(state.backend(), state, batch, **more))
            assert why.partition("=")[0] in said and "INT8 KV cache" in said and "--kv-cache-dtype auto" in said, said
            assert torch.equal(state.pool.k_buffer[LAYER - START], codes)


def check_what_nobody_computes_is_an_error() -> None:
    """torch_native knows no sinks: it must not be given the call without them."""
    for what in ("decode", "extend"):
        state = world(Kind(), [40], [5])
        batch = decode(state) if what == "decode" else extend(state, [3])
        sinks = torch.zeros(8)
        said = refusal(lambda: run(state.backend(), state, batch, sinks=sinks))
        assert "sinks" in said and "torch_native" in said, said
        assert run(state.backend(), state, batch, sinks=None).isfinite().all()


def check_what_ours_computes_is_counted_as_ours() -> None:
    for int8 in (False, True):
        state = world(Kind(int8=int8), [40, 12], [9, 9])
        backend = state.backend()
        routing.reset()
        run(backend, state, extend(state, [3, 5]))
        for _ in range(2):
            run(backend, state, decode(state))
        assert routing.snapshot() == [
            {"projection": "decode_attention", "m": 2, "path": "kernels", "calls": 2},
            {"projection": "extend_attention", "m": 8, "path": "kernels", "calls": 1},
        ]
    routing.reset()


def check_an_int8_pool_is_refused_to_whoever_knows_nothing_of_scales() -> None:
    state = world(Kind(int8=True), [4], [2])
    pool = state.pool
    for function in ("set_kv_buffer", "move_kv_cache", "get_cpu_copy", "load_cpu_copy", "get_contiguous_buf_infos"):
        said = refusal(lambda function=function: getattr(pool, function)())
        assert function in said and "scales" in said, said
    batch = decode(state)
    assert "set_kv_buffer" in refusal(lambda: run(TorchNativeAttnBackend(state.runner), state, batch))
    slots = pool.size + pool.page_size
    assert pool.get_kv_size_bytes() == (2 * slots * 2 * (64 + 4),) * 2
    assert pool.mem_usage == 2 * 2 * slots * 2 * (64 + 4) / 2**30


def refusal(call: Any) -> str:
    """What an IntegrationError said."""
    try:
        call()
    except IntegrationError as error:
        return str(error)
    raise AssertionError("it was not refused")


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    stock = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, stock)
