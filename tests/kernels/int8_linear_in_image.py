"""Run inside the runtime image, with the package `sgl_kernel` on the path: the W8A8 operators as torch sees them.

Holds them against int64 and float64, against torch.library.opcheck, and against arguments that must be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sgl_kernel
import torch

FLOATING = (torch.bfloat16, torch.float16, torch.float32)
BIASES = (None, torch.float32, torch.bfloat16, torch.float16, torch.float64)
ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}
LEAST = {torch.bfloat16: 2.0**-133, torch.float16: 2.0**-24, torch.float32: 2.0**-149}
SHAPES = ((1, 1, 1), (1, 33, 65), (2, 100, 7), (4, 64, 300), (6, 64, 128), (7, 31, 300), (64, 48, 192), (140, 5, 33))

Tensor = torch.Tensor


def operands(m: int, n: int, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """mat1 [m, k] and weight [n, k] of any code, -128 included, and their scales."""
    torch.manual_seed(m * 7919 + n * 31 + k)
    codes = torch.randint(-128, 128, (m, k), dtype=torch.int8)
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    return codes, weight, torch.rand(m) * 0.01 + 0.001, torch.rand(n) * 0.01 + 0.001


def check(what: str, out: Tensor, codes: Tensor, weight: Tensor, scales: tuple[Tensor, Tensor], bias: Any) -> None:
    """Within one rounding of the exact value, plus five to FP32 (sum, two scales, bias, and a float64 bias itself)."""
    exact = (codes.long() @ weight.long().T).double() * scales[0].double()[:, None] * scales[1].double()
    offsets = torch.zeros(len(weight), dtype=torch.float64) if bias is None else bias.double()
    errors = 5 * 2.0**-24 * 1.001 * (exact.abs() + offsets.abs())
    exact = exact + offsets
    rounding = torch.clamp((exact.abs() + errors) * ROUNDOFF[out.dtype], min=LEAST[out.dtype])
    assert out.shape == exact.shape and out.is_contiguous(), what
    worst = ((out.double() - exact).abs() - rounding - errors).max().item()
    assert worst <= 0, f"{what}: {worst} above the bound"


def check_results() -> None:
    for m, n, k in SHAPES:
        codes, weight, left, right = operands(m, n, k)
        packed = sgl_kernel.convert_weight_packed(weight)
        for dtype in FLOATING:
            for kind in BIASES:
                what = f"{dtype} {m} x {n} x {k}, bias {kind}"
                bias = None if kind is None else (3 * torch.randn(n)).to(kind)
                out = sgl_kernel.int8_scaled_mm_cpu(codes, packed, left, right, bias, dtype, True)
                assert out.dtype == dtype, what
                check(what, out, codes, weight, (left, right), bias)
                columns = left[:, None], right[:, None]
                row_major = sgl_kernel.int8_scaled_mm_cpu(codes, weight, *columns, bias, dtype, False)
                assert torch.equal(out, row_major), what


def check_extremes() -> None:
    """Sums are exact where every operand is -128 or 127, at the largest K of the models."""
    ones = torch.ones
    for m in (1, 2, 3, 4, 5, 6, 9):
        for low_left, low_right in ((1.0, 1.0), (0.5, 0.5), (1.0, 0.5), (0.0, 1.0)):
            torch.manual_seed(m)
            codes = torch.where(torch.rand(m, 8960) < low_left, -128, 127).to(torch.int8)
            weight = torch.where(torch.rand(33, 8960) < low_right, -128, 127).to(torch.int8)
            exact = codes.long() @ weight.long().T
            out = sgl_kernel.int8_scaled_mm_cpu(codes, weight, ones(m), ones(33), None, torch.float32, False)
            assert torch.equal(out, exact.float()), (m, low_left, low_right)


def quantised(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Codes and scales of rows of finite numbers, by the definition."""
    largest = rows.float().abs().amax(1).clamp(min=2.0**-100)
    factor = (127.0 / largest.double()).float()
    codes = torch.round(rows.double() * factor.double()[:, None])
    return codes.to(torch.int8), (largest.double() / 127.0).float()


def check_quantisation() -> None:
    for dtype in FLOATING:
        for m, k in ((1, 1), (3, 33), (5, 2048), (64, 100)):
            torch.manual_seed(m * 31 + k)
            rows = (torch.randn(m, k) * torch.logspace(-3, 3, m)[:, None]).to(dtype)
            rows[m // 2] = 0
            for given in (rows, rows.T.contiguous().T, torch.cat([rows, rows], 1)[:, :k]):
                codes, scales = sgl_kernel.per_token_quant_int8_cpu(given)
                wanted_codes, wanted_scales = quantised(rows)
                assert torch.equal(codes, wanted_codes) and torch.equal(scales, wanted_scales), (dtype, m, k)
                assert codes.is_contiguous() and scales.shape == (m,)
        special = torch.ones(3, 5, dtype=dtype)
        special[0, 1], special[1, 2], special[1, 3] = torch.nan, torch.inf, -torch.inf
        codes, scales = sgl_kernel.per_token_quant_int8_cpu(special)
        assert codes.tolist() == [[0] * 5, [0, 0, 127, -127, 0], [127] * 5]
        assert scales[0].isnan() and scales[1] == torch.inf and scales[2] == torch.tensor(1 / 127)
    codes, scales = sgl_kernel.per_token_quant_int8_cpu(torch.zeros(0, 7, dtype=torch.bfloat16))
    assert codes.shape == (0, 7) and scales.shape == (0,)


def check_fused() -> None:
    """Quantising and multiplying in one operator is the two one after the other, at every M and number of threads."""
    threads = torch.get_num_threads()
    for dtype in FLOATING:
        torch.manual_seed(5)
        rows = torch.randn(135, 300).to(dtype)
        _, weight, _, right = operands(1, 257, 300)
        bias = torch.randn(257)
        packed = sgl_kernel.convert_weight_packed(weight)
        codes, left = sgl_kernel.per_token_quant_int8_cpu(rows)
        whole = sgl_kernel.int8_scaled_mm_cpu(codes, packed, left, right, bias, dtype, True)
        for number in (1, threads, 3):
            torch.set_num_threads(number)
            for m in (0, 1, 2, 3, 4, 5, 6, 7, 64, 135):
                out = sgl_kernel.int8_scaled_mm_with_quant(rows[:m], packed, right, bias, dtype, True)
                assert torch.equal(out, whole[:m]), (dtype, m, number)
                out = sgl_kernel.int8_scaled_mm_with_quant(rows[:m].T.contiguous().T, weight, right, bias, dtype, False)
                assert torch.equal(out, whole[:m]), (dtype, m, number)
        torch.set_num_threads(threads)


def check_special_values() -> None:
    """A row with a NaN is NaN; one with an infinity is infinite, or NaN where the weight has a zero there."""
    rows = torch.ones(3, 4)
    rows[0, 1], rows[1, 2] = torch.nan, -torch.inf
    weight = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 4]], dtype=torch.int8)
    out = sgl_kernel.int8_scaled_mm_with_quant(rows, weight, torch.ones(2), None, torch.bfloat16, False)
    assert out[0].isnan().all() and out[1, 0] == -torch.inf and out[1, 1].isnan() and out[2].isfinite().all(), out


def check_layout() -> None:
    """Element (n, k) lies at [n // 32, k, n % 32], whatever the weight's strides."""
    _, weight, _, _ = operands(1, 70, 9)
    padded = torch.zeros(96, 9, dtype=torch.int8)
    padded[:70] = weight
    for given in (weight, weight.T.contiguous().T, torch.cat([weight, weight], 1)[:, :9]):
        packed = sgl_kernel.convert_weight_packed(given)
        assert packed.dtype == torch.int8
        assert torch.equal(packed, padded.view(3, 32, 9).transpose(1, 2))
    shifted = torch.cat([packed.new_zeros(1), packed.flatten()])[1:].view(packed.shape)
    codes, _, left, right = operands(3, 70, 9)
    calls = [sgl_kernel.int8_scaled_mm_cpu(codes, w, left, right, None, torch.float32, True) for w in (packed, shifted)]
    assert torch.equal(*calls)


def check_schemas() -> None:
    codes, weight, left, right = operands(3, 40, 16)
    packed = sgl_kernel.convert_weight_packed(weight)
    rows, bias = torch.randn(3, 16).bfloat16(), torch.randn(40)
    calls: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (sgl_kernel.convert_weight_packed, (weight,)),
        (sgl_kernel.per_token_quant_int8_cpu, (rows,)),
        (sgl_kernel.int8_scaled_mm_cpu, (codes, packed, left, right, bias, torch.bfloat16, True)),
        (sgl_kernel.int8_scaled_mm_cpu, (codes, weight, left[:, None], right[:, None], None, torch.float16, False)),
        (sgl_kernel.int8_scaled_mm_with_quant, (rows, packed, right, bias, torch.float32, True)),
        (sgl_kernel.int8_scaled_mm_with_quant, (rows, weight, right[:, None], None, torch.bfloat16, False)),
    )
    for operator, arguments in calls:
        torch.library.opcheck(operator.default, arguments)


def check_refusals() -> None:
    """Each wrong argument is refused by name, and nothing crashes."""
    codes, weight, left, right = operands(3, 40, 16)
    packed, rows, bias = sgl_kernel.convert_weight_packed(weight), torch.randn(3, 16), torch.randn(40)

    def mm(**other: Any) -> Tensor:
        given = {"mat1": codes, "mat2": packed, "scales1": left, "scales2": right, "bias": bias}
        return sgl_kernel.int8_scaled_mm_cpu(**{**given, "out_dtype": torch.bfloat16, "is_packed": True, **other})

    def fused(**other: Any) -> Tensor:
        given = {"mat1": rows, "mat2": packed, "scales2": right, "bias": bias}
        return sgl_kernel.int8_scaled_mm_with_quant(**{**given, "out_dtype": torch.float16, "is_packed": True, **other})

    deep = torch.zeros(1, 131072, dtype=torch.int8)
    wrong: tuple[tuple[type[Exception], str, Callable[[], Any]], ...] = (
        (TypeError, "A must be bfloat16, float16 or float32, but is Double", lambda: quant(rows.double())),
        (ValueError, "A must have 2 dimensions", lambda: quant(rows[0])),
        (ValueError, "A must have K > 0", lambda: quant(rows[:, :0])),
        (TypeError, "mat1 must be int8, but is Float", lambda: mm(mat1=rows)),
        (TypeError, "mat1 must be int8, but is Byte", lambda: mm(mat1=codes.to(torch.uint8))),
        (ValueError, "mat1 must have 2 dimensions", lambda: mm(mat1=codes[0])),
        (TypeError, "mat2 must be int8, but is BFloat16", lambda: mm(mat2=packed.bfloat16())),
        (ValueError, "mat2 has K = 16 but mat1 has K = 15", lambda: mm(mat1=codes[:, :15])),
        (
            ValueError,
            "mat2 has K = 16 but mat1 has K = 15",
            lambda: mm(mat1=codes[:, :15], mat2=weight, is_packed=False),
        ),
        (ValueError, "a packed mat2 must have shape", lambda: mm(mat2=weight)),
        (ValueError, "a packed mat2 must have shape", lambda: mm(mat2=packed[:, :, :16])),
        (ValueError, "an unpacked mat2 must have shape", lambda: mm(is_packed=False)),
        (ValueError, "mat2 must not be empty", lambda: mm(mat2=packed[:0])),
        (TypeError, "scales1 must be float32, but is Double", lambda: mm(scales1=left.double())),
        (ValueError, r"scales1 must have shape \[3\] or \[3, 1\]", lambda: mm(scales1=left[:2])),
        (ValueError, r"scales1 must have shape \[3\] or \[3, 1\]", lambda: mm(scales1=left[None])),
        (TypeError, "scales2 must be float32, but is Half", lambda: mm(scales2=right.half())),
        (ValueError, "scales2 has 65 scales", lambda: mm(scales2=torch.ones(65), bias=None)),
        (ValueError, "scales2 has 32 scales", lambda: mm(scales2=right[:32], bias=None)),
        (ValueError, r"scales2 must have shape \[1\] or", lambda: mm(scales2=right[None])),
        (ValueError, r"scales2 must have shape \[40\]", lambda: mm(mat2=weight, is_packed=False, scales2=right[:39])),
        (ValueError, "scales2 must have shape", lambda: mm(scales2=torch.tensor(1.0))),
        (ValueError, r"bias must have shape \[40\]", lambda: mm(bias=bias[:39])),
        (TypeError, "bias must be of a floating type", lambda: mm(bias=bias.int())),
        (TypeError, "out_dtype must be bfloat16, float16 or float32", lambda: mm(out_dtype=torch.int8)),
        (TypeError, "mat1 must be bfloat16, float16 or float32, but is Char", lambda: fused(mat1=codes)),
        (ValueError, "mat2 has K = 16 but mat1 has K = 15", lambda: fused(mat1=rows[:, :15])),
        (ValueError, "scales2 has 65 scales", lambda: fused(scales2=torch.ones(65))),
        (
            ValueError,
            "mat1 has K = 131072, but int32 holds sums of 131071",
            lambda: mm(mat1=deep, mat2=deep, scales1=left[:1], scales2=right[:1], bias=None, is_packed=False),
        ),
    )
    for kind, message, call in wrong:
        try:
            call()
        except kind as error:
            assert re.search(message, str(error)), f"{message!r} is not in {error}"
        else:
            raise AssertionError(f"not refused: {message}")


quant = sgl_kernel.per_token_quant_int8_cpu


def check_attestation() -> None:
    """Counts, kernel names, and the ranges that a profiler shows."""
    codes, weight, left, right = operands(2, 40, 16)
    sgl_kernel.reset_attestation()
    with torch.profiler.profile() as profile:
        packed = sgl_kernel.convert_weight_packed(weight)
        quant(torch.randn(2, 16))
        for _ in range(3):
            sgl_kernel.int8_scaled_mm_cpu(codes, packed, left, right, None, torch.bfloat16, True)
        sgl_kernel.int8_scaled_mm_with_quant(torch.randn(2, 16), packed, right, None, torch.bfloat16, True)
    proof = sgl_kernel.attestation()
    assert {op: counted["calls"] for op, counted in proof["ops"].items()} == {
        "convert_weight_packed": 1,
        "per_token_quant_int8_cpu": 2,
        "int8_scaled_mm_cpu": 3,
        "int8_scaled_mm_with_quant": 1,
    }
    available = {kernel["name"] for kernel in sgl_kernel.describe()["kernels"] if kernel["available"]}
    for op in ("per_token_quant_int8_cpu", "int8_scaled_mm_cpu", "int8_scaled_mm_with_quant"):
        assert set(proof["ops"][op]["kernels"]) <= available, proof
    ranges = {event.key for event in profile.key_averages()}
    assert {f"sgl-kernel::{op}" for op in proof["ops"]} <= ranges, ranges


def main() -> None:
    check_results()
    check_extremes()
    check_quantisation()
    check_fused()
    check_special_values()
    check_layout()
    check_schemas()
    check_refusals()
    check_attestation()
    print("W8A8 is as it should be")


if __name__ == "__main__":
    main()
