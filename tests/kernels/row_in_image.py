"""Run inside the runtime image, with the package `sgl_kernel` on the path: norms, gated activations, rotary embeddings.

Holds them against torch in float64, against torch.library.opcheck, and against arguments that must be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sgl_kernel
import torch
from torch.nn import functional

TYPES = (torch.bfloat16, torch.float16, torch.float32)
RELATIVE = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10, torch.float32: 2.0**-17}
EPS = 1e-5

Tensor = torch.Tensor


def close(what: str, got: Tensor, exact: Tensor, dtype: torch.dtype) -> None:
    """Within one rounding to the type; kernel_tests has the tight bounds."""
    assert got.dtype == dtype and got.shape == exact.shape, what
    torch.testing.assert_close(got.double(), exact, rtol=RELATIVE[dtype], atol=1e-5, msg=lambda m: f"{what}: {m}")


def rms(x: Tensor, factor: Tensor | float) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * factor


def views(shape: tuple[int, ...], dtype: torch.dtype) -> dict[str, Tensor]:
    """The same numbers: contiguous, rows with gaps, at an odd offset, outer dimensions exchanged."""
    torch.manual_seed(sum(shape))
    plain = torch.randn(shape).to(dtype)
    exchanged = plain.transpose(0, -2).contiguous().transpose(0, -2) if plain.dim() > 2 else plain
    return {
        "contiguous": plain,
        "gaps": torch.cat([plain, plain], -1)[..., : shape[-1]],
        "odd": torch.cat([plain.new_zeros(1), plain.flatten()])[1:].view(shape),
        "exchanged": exchanged,
    }


def check_norms() -> None:
    for dtype in TYPES:
        for shape in ((3, 64), (1, 4109), (2, 3, 2048), (2, 3, 4, 80), (1, 8192)):
            for name, x in views(shape, dtype).items():
                n, wide = shape[-1], x.double()
                w, b, g = torch.randn(n).to(dtype), torch.randn(n).to(dtype), views(shape, dtype)["gaps"] * 2
                what = f"{dtype} {shape} {name}"
                one = 1 + w.double()
                close(what, sgl_kernel.rmsnorm_cpu(x, w, EPS), rms(wide, w.double()), dtype)
                close(what, sgl_kernel.gemma_rmsnorm_cpu(x, w, EPS), rms(wide, one), dtype)
                close(what, sgl_kernel.gemma3_rmsnorm_cpu(x, w, EPS), rms(wide, one), dtype)
                close(what, sgl_kernel.l2norm_cpu(x, EPS), rms(wide, 1.0), dtype)
                gated = rms(wide, w.double()) * functional.silu(g.double())
                close(what, sgl_kernel.fused_rmsnorm_gated_cpu(x, w, g, EPS), gated, dtype)
                for bias in (None, b):
                    exact = functional.layer_norm(wide, (n,), w.double(), None if bias is None else bias.double(), EPS)
                    close(what, sgl_kernel.layernorm_cpu(x, w, bias, EPS), exact, dtype)
                    residual = (x * 3).clone()
                    total = wide + residual.double()
                    exact = functional.layer_norm(total, (n,), w.double(), None if bias is None else bias.double(), EPS)
                    close(what, sgl_kernel.fused_add_layernorm_cpu(x, residual, w, bias, EPS), exact, dtype)
                    close(what, residual, total, dtype)
                for fused, factor in (("fused_add_rmsnorm_cpu", w.double()), ("gemma_fused_add_rmsnorm_cpu", one)):
                    written, residual = views(shape, dtype)[name].clone(), (x * 3).clone()
                    total = written.double() + residual.double()
                    assert getattr(sgl_kernel, fused)(written, residual, w, EPS) is None
                    close(what, written, rms(total, factor), dtype)
                    close(what, residual, total, dtype)


def check_threads() -> None:
    """A row that is shared out is the same row."""
    x, w = torch.randn(1, 8192).bfloat16(), torch.randn(8192).bfloat16()
    threads = torch.get_num_threads()
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append((sgl_kernel.rmsnorm_cpu(x, w, EPS), sgl_kernel.layernorm_cpu(x, w, w, EPS)))
    torch.set_num_threads(threads)
    for one in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(one, results[0], strict=True))


def check_activations() -> None:
    acts: dict[str, Callable[[Tensor], Tensor]] = {
        "silu_and_mul_cpu": functional.silu,
        "gelu_and_mul_cpu": functional.gelu,
        "gelu_tanh_and_mul_cpu": lambda x: functional.gelu(x, approximate="tanh"),
    }
    for dtype in TYPES:
        for shape in ((1, 16384), (3, 130), (2, 3, 64), (46,)):
            for name, x in views(shape, dtype).items() if len(shape) > 1 else [("flat", torch.randn(shape).to(dtype))]:
                n = shape[-1] // 2
                for op, act in acts.items():
                    exact = act(x[..., :n].double()) * x[..., n:].double()
                    close(f"{op} {dtype} {shape} {name}", getattr(sgl_kernel, op)(x), exact, dtype)


def turned(x: Tensor, cos: Tensor, sin: Tensor, neox: bool) -> Tensor:
    if neox:
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def check_rotary() -> None:
    for dtype in TYPES:
        for cache_type in {dtype, torch.float32}:
            for neox in (True, False):
                for rotary in (64, 32):
                    positions = torch.tensor([5, 0, 39, 7])
                    cache = torch.randn(40, rotary).to(cache_type)
                    cos, sin = cache[positions].double()[:, None].chunk(2, -1)
                    for shape in ((4, 5 * 64), (4, 5, 64), (2, 2, 5, 64)):
                        query, key = torch.randn(shape).to(dtype), torch.randn((*shape[:-1], 64)).to(dtype)
                        got = sgl_kernel.rotary_embedding_cpu(positions, query, key, 64, cache, neox)
                        for x, out in zip((query, key), got, strict=True):
                            heads = x.reshape(4, -1, 64).double()
                            exact = torch.cat((turned(heads[..., :rotary], cos, sin, neox), heads[..., rotary:]), -1)
                            close(f"{dtype} {shape} {neox}", out, exact.view(x.shape), dtype)


def check_schemas() -> None:
    x, w = torch.randn(3, 64).bfloat16(), torch.randn(64).bfloat16()
    positions, cache = torch.arange(3), torch.randn(8, 32).bfloat16()
    for name in ("rmsnorm_cpu", "gemma_rmsnorm_cpu", "gemma3_rmsnorm_cpu"):
        torch.library.opcheck(getattr(sgl_kernel, name).default, (x, w, EPS))
    torch.library.opcheck(sgl_kernel.l2norm_cpu.default, (x, EPS))
    torch.library.opcheck(sgl_kernel.layernorm_cpu.default, (x, w, w.clone(), EPS))
    torch.library.opcheck(sgl_kernel.fused_rmsnorm_gated_cpu.default, (x, w, x.clone(), EPS))
    torch.library.opcheck(sgl_kernel.fused_add_layernorm_cpu.default, (x, x.clone(), w, None, EPS))
    for name in ("fused_add_rmsnorm_cpu", "gemma_fused_add_rmsnorm_cpu"):
        torch.library.opcheck(getattr(sgl_kernel, name).default, (x.clone(), x.clone(), w, EPS))
    for name in ("silu_and_mul_cpu", "gelu_and_mul_cpu", "gelu_tanh_and_mul_cpu"):
        torch.library.opcheck(getattr(sgl_kernel, name).default, (x,))
    for neox in (True, False):
        arguments = (positions, x, x.clone(), 32, cache, neox)
        torch.library.opcheck(sgl_kernel.rotary_embedding_cpu.default, arguments)


def check_refusals() -> None:
    """Each wrong argument is refused by name, and nothing crashes."""
    x, w = torch.randn(3, 64).bfloat16(), torch.randn(64).bfloat16()
    positions, cache = torch.arange(3), torch.randn(8, 32).bfloat16()
    norm, add, gate = sgl_kernel.rmsnorm_cpu, sgl_kernel.fused_add_rmsnorm_cpu, sgl_kernel.fused_rmsnorm_gated_cpu
    silu, turn = sgl_kernel.silu_and_mul_cpu, sgl_kernel.rotary_embedding_cpu
    layer, wide = sgl_kernel.fused_add_layernorm_cpu, torch.randn(3, 128).bfloat16()
    wrong: tuple[tuple[type[Exception], str, Callable[[], Any]], ...] = (
        (TypeError, "input must be bfloat16, float16 or float32, but is Int", lambda: norm(x.int(), w, EPS)),
        (TypeError, "weight is Float but input is BFloat16", lambda: norm(x, w.float(), EPS)),
        (ValueError, r"weight must have shape \[64\]", lambda: norm(x, w[:63], EPS)),
        (ValueError, "input must have at least 2 dimensions", lambda: norm(w, w, EPS)),
        (ValueError, "input must have adjacent elements", lambda: norm(x.T.contiguous().T, w, EPS)),
        (ValueError, "residual must not overlap input", lambda: add(x, x, w, EPS)),
        (ValueError, "residual must not overlap input", lambda: add(wide[:, :64], wide[:, 32:96], w, EPS)),
        (ValueError, "input must not overlap weight", lambda: add(wide[:, :64], x.clone(), wide[1, :64], EPS)),
        (ValueError, "must not overlap itself", lambda: add(x.clone(), wide.as_strided((3, 64), (32, 1)), w, EPS)),
        (ValueError, "residual must not overlap weight", lambda: layer(x, wide[:, :64], wide[0, :64], None, EPS)),
        (ValueError, "residual must not overlap bias", lambda: layer(x, wide[:, :64], w, wide[0, :64], EPS)),
        (ValueError, "one device", lambda: norm(x, w.to("meta"), EPS)),
        (ValueError, r"residual must have shape \[3, 64\]", lambda: add(x, x[:2].clone(), w, EPS)),
        (ValueError, "input must not overlap itself", lambda: add(x[:1].expand(3, -1), x.clone(), w, EPS)),
        (TypeError, "gate is Half but input is BFloat16", lambda: gate(x, w, x.half(), EPS)),
        (ValueError, "input must have an even last dimension", lambda: silu(x[:, :63])),
        (IndexError, "position -1 of token 1", lambda: turn(torch.tensor([0, -1, 2]), x, x, 32, cache, True)),
        (IndexError, "position 8 of token 2", lambda: turn(torch.tensor([0, 1, 8]), x, x, 32, cache, True)),
        (TypeError, "positions must be int32 or int64", lambda: turn(positions.float(), x, x, 32, cache, True)),
        (ValueError, "query must have 2 tokens", lambda: turn(positions[:2], x, x, 32, cache, True)),
        (ValueError, "query must have heads of 48", lambda: turn(positions, x, x, 48, cache, True)),
        (ValueError, "cos_sin_cache must have an even number", lambda: turn(positions, x, x, 16, cache, True)),
        (TypeError, "cos_sin_cache must be float32 or as query", lambda: turn(positions, x, x, 32, cache.half(), True)),
    )
    for kind, message, call in wrong:
        try:
            call()
        except kind as error:
            assert re.search(message, str(error)), f"{message!r} is not in {error}"
        else:
            raise AssertionError(f"not refused: {message}")


def main() -> None:
    check_norms()
    check_threads()
    check_activations()
    check_rotary()
    check_schemas()
    check_refusals()
    print("rows are as they should be")


if __name__ == "__main__":
    main()
