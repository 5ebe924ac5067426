"""SGLang's norms, gated activations and rotary embeddings on our kernels against their own `forward_native`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.layers.activation import GeluAndMul, QuickGELU, SiluAndMul
from sglang.srt.layers.layernorm import Gemma3RMSNorm, GemmaRMSNorm, RMSNorm
from sglang.srt.layers.rotary_embedding.factory import get_rope
from sglang_rvv import elementwise, routing

Tensor = torch.Tensor
UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}
TYPES = (torch.bfloat16, torch.float16)


def on_kernels(module: Any) -> Any:
    """The module as a loaded model has it."""
    elementwise.prepare(torch.nn.ModuleList([module]), ours=True)
    return module


def close(got: Tensor, exact: Tensor, slack: Tensor | float, what: str) -> None:
    """One rounding of the exact value, and `slack`."""
    bound = UNIT[got.dtype] * exact.abs() * 1.001 + slack + 2.0**-26
    worst = float(((got.double() - exact).abs() - bound).max())
    assert got.shape == exact.shape and worst <= 0, f"{what}: {worst} above the bound"


def counted(operation: str, m: int, path: str, call: Callable[[], Any]) -> Any:
    routing.reset()
    result = call()
    assert routing.snapshot() == [{"projection": operation, "m": m, "path": path, "calls": 1}], routing.snapshot()
    return result


def norm(width: int, dtype: torch.dtype, **kinds: Any) -> Any:
    made = RMSNorm(width, eps=1e-5, **kinds).to(dtype)
    made.weight.data = (1 + torch.randn(width) / 4).to(dtype)
    return on_kernels(made)


def check_rms_norm_with_and_without_a_residual() -> None:
    torch.manual_seed(1)
    for dtype in TYPES:
        for shape in ((1, 64), (7, 1024), (33, 100), (2, 3, 128)):
            module = norm(shape[-1], dtype)
            x, residual = (3 * torch.randn(*shape).to(dtype) for _ in range(2))
            rows = x.numel() // shape[-1]
            for other in (None, residual):
                what = f"{dtype} {shape} residual {other is not None}"
                total = x.double() + (0 if other is None else other.double())
                weight = module.weight.double()
                exact = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-5) * weight
                given = (x.clone(),) if other is None else (x.clone(), other.clone())
                native = module.forward_native(*(t.clone() for t in given))
                got = counted("norm", rows, "kernels", lambda given=given: module(*given))  # type: ignore[misc]
                got, kept = (got, None) if other is None else got
                native, native_kept = (native, None) if other is None else native
                slack = (shape[-1] + 8) * 2.0**-24 * exact.abs()
                close(got, exact, slack, what)
                close(got, native.double(), UNIT[dtype] * exact.abs() + slack, f"{what}, against native")
                if kept is not None:
                    assert torch.equal(kept, native_kept), f"{what}: another residual"


def check_rms_norm_of_parts_of_a_projection() -> None:
    """Query heads as Qwen3 norms them: rows with gaps; and a last dimension with gaps, which kernels do not take."""
    module = norm(64, torch.bfloat16)
    wide = torch.randn(5, 8 * 64 + 100).to(torch.bfloat16)
    part = (
        wide[:, : 8 * 64].view(5, 8, 64)
        if wide[:, : 8 * 64].is_contiguous()
        else wide[:, : 8 * 64].unflatten(1, (8, 64))
    )
    got = counted("norm", 40, "kernels", lambda: module(part))
    assert torch.equal(got, module(part.contiguous()))
    gaps = torch.randn(5, 128).to(torch.bfloat16)[:, ::2]
    got = counted("norm", 5, "torch", lambda: module(gaps))
    assert torch.equal(got, module.forward_native(gaps))


def check_an_addition_after_the_residual_and_other_types_are_sglangs() -> None:
    module = norm(64, torch.bfloat16)
    x, residual, more = (torch.randn(5, 64).to(torch.bfloat16) for _ in range(3))
    got = counted("norm", 5, "torch", lambda: module(x.clone(), residual.clone(), more))
    for mine, native in zip(got, module.forward_native(x, residual, more), strict=True):
        assert torch.equal(mine, native)
    half = x.half()
    assert torch.equal(counted("norm", 5, "torch", lambda: module(half)), module.forward_native(half))
    wide = residual.float()
    got = counted("norm", 5, "torch", lambda: module(x, wide))
    assert torch.equal(got[0], module.forward_native(x, wide)[0])
    assert module(x[:0]).shape == (0, 64)


def check_norms_that_differ_keep_sglangs_path() -> None:
    """Each gives exactly its own `forward_native`, is counted, and nothing of it is called on our kernels."""
    differing = (
        RMSNorm(64, var_hidden_size=32),
        RMSNorm(64, cast_x_before_out_mul=True),
        RMSNorm(64, fp32_residual=True),
        RMSNorm(64, has_weight=False),
        RMSNorm(64, override_orig_dtype=torch.float32),
        type("SubclassOfRMSNorm", (RMSNorm,), {})(64),
    )
    x = torch.randn(5, 64).to(torch.bfloat16)
    for stock in differing:
        module = stock.to(torch.bfloat16)
        found = elementwise.prepare(torch.nn.ModuleList([module]), ours=True)
        assert found == {"norm": (0, 1)}, found
        got = counted("norm", 5, "torch", lambda module=module: module(x.clone()))  # type: ignore[misc]
        assert torch.equal(got, module.forward_native(x.clone()))
    for stock in (GemmaRMSNorm(64), Gemma3RMSNorm(64), QuickGELU()):
        before = stock._forward_method
        assert elementwise.prepare(torch.nn.ModuleList([stock]), ours=True) == {}
        assert stock._forward_method == before


def check_silu_and_gelu_and_mul() -> None:
    torch.manual_seed(2)
    gates: tuple[tuple[Callable[[], Any], Callable[[Tensor], Tensor]], ...] = (
        (SiluAndMul, torch.nn.functional.silu),
        (lambda: GeluAndMul(approximate="tanh"), lambda g: torch.nn.functional.gelu(g, approximate="tanh")),
        (lambda: GeluAndMul(approximate="none"), torch.nn.functional.gelu),
    )
    for dtype in TYPES:
        for make, gate in gates:
            module = on_kernels(make())
            for shape in ((1, 64), (7, 2048), (2, 3, 66)):
                x = (3 * torch.randn(*shape)).to(dtype)
                first, second = x.double().chunk(2, dim=-1)
                exact = gate(first) * second
                got = counted("gated_activation", x.numel() // shape[-1], "kernels", lambda: module(x))
                slack = 2.0**-20 * (exact.abs() + second.abs())
                close(got, exact, slack, f"{module} {dtype} {shape}")
                rounded = UNIT[dtype] * exact.abs() * 1.01 + slack + torch.finfo(dtype).tiny * second.abs()
                close(got, module.forward_native(x).double(), rounded, f"{module} {dtype} {shape}, against native")
            gaps = torch.randn(5, 128).to(dtype)[:, ::2]
            got = counted("gated_activation", 5, "torch", lambda: module(gaps))
            assert torch.equal(got, module.forward_native(gaps))


def check_activations_that_differ_keep_sglangs_path() -> None:
    module = type("SubclassOfSiluAndMul", (SiluAndMul,), {})()
    assert elementwise.prepare(torch.nn.ModuleList([module]), ours=True) == {"gated_activation": (0, 1)}
    x = torch.randn(5, 64).to(torch.bfloat16)
    assert torch.equal(counted("gated_activation", 5, "torch", lambda: module(x)), module.forward_native(x))


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 2048,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}


def turned(module: Any, positions: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Exact rotation of x [tokens, heads * head] by the module's table, and the sum of magnitudes; float64."""
    rotary = module.cos_sin_cache.shape[-1]
    cos, sin = module.cos_sin_cache[positions].double()[:, None].chunk(2, dim=-1)
    heads = x.double().view(len(positions), -1, module.head_size)
    part = heads[..., :rotary]
    a, b = part.chunk(2, dim=-1) if module.is_neox_style else (part[..., ::2], part[..., 1::2])
    first, second = a * cos - b * sin, b * cos + a * sin
    sizes = a.abs() * cos.abs() + b.abs() * sin.abs(), b.abs() * cos.abs() + a.abs() * sin.abs()
    result, magnitude = heads.clone(), heads.abs()
    for into, halves in ((result, (first, second)), (magnitude, sizes)):
        into[..., :rotary] = torch.cat(halves, -1) if module.is_neox_style else torch.stack(halves, -1).flatten(-2)
    return result.view(x.shape), magnitude.view(x.shape)


def check_rotary_embeddings_that_differ_in_their_table_only() -> None:
    torch.manual_seed(4)
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"rope_scaling": LLAMA3},
        {"rope_scaling": YARN},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"is_neox_style": False},
        {"partial_rotary_factor": 0.5},
    )
    positions = torch.tensor([0, 1, 77, 4000, 5, 1])
    for dtype in TYPES:
        for kind in kinds:
            for head in (64, 128):
                module = on_kernels(get_rope(head, head, 4096, 10000, dtype=dtype, **kind))
                widths = [8 * head, 2 * head, 2 * head]
                q, k, _ = torch.randn(len(positions), sum(widths)).to(dtype).split(widths, dim=-1)
                native = module.forward_native(positions, q.contiguous(), k.contiguous())
                before = q.clone(), k.clone()
                got = counted("rotary_embedding", 6, "kernels", lambda module=module, q=q, k=k: module(positions, q, k))  # type: ignore[misc]
                for mine, plain, x in zip(got, native, before, strict=True):
                    exact, magnitude = turned(module, positions, x)
                    what = f"{dtype} {kind} head {head}"
                    close(mine, exact, 8 * 2.0**-24 * magnitude, what)
                    close(mine, plain.double(), 2 * UNIT[dtype] * magnitude, f"{what}, against native")


def check_rotary_calls_that_differ_are_sglangs() -> None:
    module = on_kernels(get_rope(64, 64, 4096, 10000, dtype=torch.bfloat16))
    positions = torch.tensor([3, 9])
    q, k = torch.randn(2, 8 * 64).to(torch.bfloat16), torch.randn(2, 2 * 64).to(torch.bfloat16)
    offsets = torch.tensor([5, 6])
    got = counted("rotary_embedding", 2, "torch", lambda: module(positions, q.clone(), k.clone(), offsets))
    for mine, native in zip(got, module.forward_native(positions, q, k, offsets), strict=True):
        assert torch.equal(mine, native)
    got = module(positions + offsets, q.clone(), k.clone())
    for mine, native in zip(got, module.forward_native(positions, q, k, offsets), strict=True):
        close(mine, native.double(), 2.0**-6, "offsets added before")


def check_rotary_embeddings_that_compute_otherwise_keep_sglangs_path() -> None:
    deepseek = {"rope_type": "deepseek_yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
    mrope = {"rope_type": "default", "mrope_section": [8, 12, 12]}
    for scaling in (deepseek, mrope):
        module = get_rope(64, 64, 4096, 10000, dtype=torch.bfloat16, rope_scaling=scaling)
        found = elementwise.prepare(torch.nn.ModuleList([module]), ours=True)
        assert found == {"rotary_embedding": (0, 1)}, (type(module).__name__, found)


def check_modules_without_kernels_are_counted_and_prepared_again() -> None:
    model = torch.nn.ModuleList([RMSNorm(64), SiluAndMul()]).to(torch.bfloat16)
    x = torch.randn(4, 64).to(torch.bfloat16)
    for ours, path in ((False, "torch"), (True, "kernels"), (True, "kernels"), (False, "torch")):
        found = elementwise.prepare(model, ours=ours)
        assert found == dict.fromkeys(("norm", "gated_activation"), (1, 0) if ours else (0, 1))
        counted("norm", 4, path, lambda: model[0](x.clone()))
        counted("gated_activation", 4, path, lambda: model[1](x))
