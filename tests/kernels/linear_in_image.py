"""Run inside the runtime image, with the package `sgl_kernel` on the path: the linear operators as torch sees them.

Holds them against torch in float64, against torch.library.opcheck, and against arguments that must be refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sgl_kernel
import torch

TYPES = (torch.bfloat16, torch.float16)
BIASES = (None, torch.float32, torch.bfloat16, torch.float16, torch.float64)
ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
LEAST = {torch.bfloat16: 2.0**-133, torch.float16: 2.0**-24}

Tensor = torch.Tensor


def operands(m: int, n: int, k: int, dtype: torch.dtype, bias: torch.dtype | None) -> tuple[Tensor, Tensor, Any]:
    """mat1 [m, k], weight [n, k], bias [n] or None."""
    torch.manual_seed(m * 7919 + n * 31 + k)
    offsets = None if bias is None else (3 * torch.randn(n)).to(bias)
    return torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), offsets


def check(what: str, out: Tensor, mat1: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Within one rounding of the exact value, plus K + 1 roundings to FP32 of the sum of magnitudes."""
    a, b = mat1.double(), weight.double()
    offsets = torch.zeros(len(weight)) if bias is None else bias
    exact = a @ b.T + offsets.double()
    magnitude = a.abs() @ b.abs().T + offsets.double().abs()
    terms = (mat1.shape[1] + 2) * 2.0**-24  # a float64 bias is rounded to FP32 once more
    accumulation = terms / (1 - terms) * magnitude
    rounding = torch.clamp((exact.abs() + accumulation) * ROUNDOFF[mat1.dtype], min=LEAST[mat1.dtype])
    assert out.dtype == mat1.dtype and out.shape == exact.shape and out.is_contiguous(), what
    worst = ((out.double() - exact).abs() - rounding - accumulation).max().item()
    assert worst <= 0, f"{what}: {worst} above the bound"


def check_results() -> None:
    for dtype in TYPES:
        for m, n, k in ((1, 1, 1), (1, 33, 65), (2, 100, 7), (6, 64, 128), (7, 31, 300), (64, 48, 192), (140, 5, 33)):
            for bias in BIASES:
                what = f"{dtype} {m} x {n} x {k}, bias {bias}"
                mat1, weight, offsets = operands(m, n, k, dtype, bias)
                packed = sgl_kernel.convert_weight_packed(weight)
                out = sgl_kernel.weight_packed_linear_out(mat1, packed, offsets, n, True)
                check(f"packed {what}", out, mat1, weight, offsets)
                assert torch.equal(out, sgl_kernel.weight_packed_linear(mat1, weight, offsets, False)), what
                check(f"row-major {what}", sgl_kernel.linear_rowmajor(mat1, weight, offsets), mat1, weight, offsets)


def check_layout() -> None:
    """Element (n, k) lies at [n // 32, k, n % 32]; a packed weight's every column is an output without out_features."""
    mat1, weight, _ = operands(3, 70, 9, torch.bfloat16, None)
    packed = sgl_kernel.convert_weight_packed(weight)
    assert packed.shape == (3, 9, 32)
    padded = torch.zeros(96, 9, dtype=torch.bfloat16)
    padded[:70] = weight
    assert torch.equal(packed, padded.view(3, 32, 9).transpose(1, 2))
    out = sgl_kernel.weight_packed_linear(mat1, packed, None, True)
    assert out.shape == (3, 96) and not out[:, 70:].any()


def check_independence(dtype: torch.dtype) -> None:
    """Bits depend neither on M nor on the number of threads."""
    mat1, weight, bias = operands(135, 257, 300, dtype, torch.float32)
    packed = sgl_kernel.convert_weight_packed(weight)
    linears: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda rows: sgl_kernel.weight_packed_linear_out(rows, packed, bias, 257, True),
        lambda rows: sgl_kernel.linear_rowmajor(rows, weight, bias),
    )
    for linear in linears:
        whole = linear(mat1)
        for rows in (1, 2, 3, 4, 5, 6, 7, 64):
            assert torch.equal(linear(mat1[:rows]), whole[:rows]), f"{dtype} M={rows}"
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        assert torch.equal(linear(mat1), whole), dtype
        torch.set_num_threads(threads)


def check_strides() -> None:
    """Operands that are views give what their copies give."""
    for dtype in TYPES:
        mat1, weight, bias = operands(5, 40, 64, dtype, torch.float32)
        expected = sgl_kernel.linear_rowmajor(mat1, weight, bias)
        views = {
            "transposed": lambda t: t.T.contiguous().T,
            "rows with gaps": lambda t: torch.cat([t, t], 1)[:, : t.shape[1]],
            "at an odd offset": lambda t: torch.cat([t.new_zeros(1), t.flatten()])[1:].view(t.shape),
        }
        for name, view in views.items():
            left, right = view(mat1), view(weight)
            assert torch.equal(sgl_kernel.linear_rowmajor(left, right, bias), expected), name
            out = sgl_kernel.weight_packed_linear(left, right, bias, False)
            packed = sgl_kernel.convert_weight_packed(weight)
            shifted = torch.cat([packed.new_zeros(1), packed.flatten()])[1:].view(packed.shape)
            assert torch.equal(sgl_kernel.weight_packed_linear_out(left, shifted, bias, 40, True), out), name
        column = torch.full((40, 2), 2.0)[:, 0]
        check("strided bias", sgl_kernel.linear_rowmajor(mat1, weight, column), mat1, weight, column)
        none = sgl_kernel.linear_rowmajor(mat1[:0], weight, bias)
        assert none.shape == (0, 40)
        assert sgl_kernel.weight_packed_linear(mat1[:0], weight, bias, False).shape == (0, 40)
        # One row used for all, and no copy of it.
        same = mat1[:1].expand(9, -1)
        assert torch.equal(sgl_kernel.linear_rowmajor(same, weight, bias), expected[:1].expand(9, -1))


def check_schemas() -> None:
    for dtype in TYPES:
        mat1, weight, bias = operands(3, 40, 16, dtype, torch.float32)
        packed = sgl_kernel.convert_weight_packed(weight)
        calls = (
            (sgl_kernel.convert_weight_packed, (weight,)),
            (sgl_kernel.weight_packed_linear, (mat1, packed, None, True)),
            (sgl_kernel.weight_packed_linear, (mat1, weight, bias, False)),
            (sgl_kernel.weight_packed_linear_out, (mat1, packed, bias, 40, True)),
            (sgl_kernel.linear_rowmajor, (mat1, weight, bias)),
            (sgl_kernel.linear_rowmajor, (mat1, weight, None)),
        )
        for operator, arguments in calls:
            torch.library.opcheck(operator.default, arguments)


def check_refusals() -> None:
    """Each wrong argument is refused by name, and nothing crashes."""
    mat1, weight, bias = operands(3, 40, 16, torch.bfloat16, torch.float32)
    packed = sgl_kernel.convert_weight_packed(weight)
    out, pack, rows = (
        sgl_kernel.weight_packed_linear_out,
        sgl_kernel.convert_weight_packed,
        sgl_kernel.linear_rowmajor,
    )
    wrong: tuple[tuple[type[Exception], str, Callable[[], Any]], ...] = (
        (TypeError, "weight must be bfloat16, float16 or int8, but is Float", lambda: pack(weight.float())),
        (ValueError, "weight must have 2 dimensions", lambda: pack(weight[0])),
        (ValueError, "weight must not be empty", lambda: pack(weight[:0])),
        (ValueError, "weight must have K > 0", lambda: pack(weight[:, :0])),
        (TypeError, "mat1 must be bfloat16 or float16, but is Int", lambda: rows(mat1.int(), weight, None)),
        (ValueError, "mat1 must have 2 dimensions", lambda: rows(mat1[None], weight, None)),
        (TypeError, "weight is Half but mat1 is BFloat16", lambda: rows(mat1, weight.half(), None)),
        (ValueError, "weight has K = 15 but mat1 has K = 16", lambda: rows(mat1, weight[:, :15], None)),
        (ValueError, r"bias must have shape \[40\]", lambda: rows(mat1, weight, bias[:39])),
        (ValueError, r"bias must have shape \[40\]", lambda: rows(mat1, weight, bias[None])),
        (TypeError, "bias must be of a floating type", lambda: rows(mat1, weight, bias.int())),
        (TypeError, "mat2 is Half but mat1 is BFloat16", lambda: out(mat1, packed.half(), None, 40, True)),
        (ValueError, "mat2 has K = 16 but mat1 has K = 15", lambda: out(mat1[:, :15], packed, None, 40, True)),
        (ValueError, "a packed mat2 must have shape", lambda: out(mat1, weight, None, 40, True)),
        (ValueError, "a packed mat2 must have shape", lambda: out(mat1, packed[:, :, :16], None, 40, True)),
        (ValueError, "an unpacked mat2 must have shape", lambda: out(mat1, packed, None, 40, False)),
        (ValueError, "mat2 must not be empty", lambda: out(mat1, packed[:0], None, 40, True)),
        (ValueError, "out_features = 65 does not fit mat2", lambda: out(mat1, packed, None, 65, True)),
        (ValueError, "out_features = 32 does not fit mat2", lambda: out(mat1, packed, None, 32, True)),
        (ValueError, "out_features must be positive", lambda: out(mat1, packed, None, -1, True)),
        (ValueError, "out_features = 39 but mat2 has N = 40", lambda: out(mat1, weight, None, 39, False)),
        (ValueError, "mat2 has layout_version 2", lambda: out(mat1, packed, None, 40, True, 2)),
    )
    for kind, message, call in wrong:
        try:
            call()
        except kind as error:
            assert re.search(message, str(error)), f"{message!r} is not in {error}"
        else:
            raise AssertionError(f"not refused: {message}")


def check_attestation() -> None:
    """Counts, kernel names, and the ranges that a profiler shows."""
    mat1, weight, _ = operands(2, 40, 16, torch.float16, None)
    sgl_kernel.reset_attestation()
    with torch.profiler.profile() as profile:
        packed = sgl_kernel.convert_weight_packed(weight)
        for _ in range(3):
            sgl_kernel.weight_packed_linear_out(mat1, packed, None, 40, True)
        sgl_kernel.linear_rowmajor(mat1, weight, None)
        sgl_kernel.weight_packed_linear(mat1, packed, None, True)
    proof = sgl_kernel.attestation()
    assert proof["library_sha256"] == sgl_kernel.library_sha256()
    assert {op: counted["calls"] for op, counted in proof["ops"].items()} == {
        "convert_weight_packed": 1,
        "weight_packed_linear_out": 3,
        "linear_rowmajor": 1,
        "weight_packed_linear": 1,
    }
    available = {kernel["name"] for kernel in sgl_kernel.describe()["kernels"] if kernel["available"]}
    for op in ("weight_packed_linear_out", "linear_rowmajor"):
        assert set(proof["ops"][op]["kernels"]) <= available, proof
    ranges = {event.key for event in profile.key_averages()}
    assert {f"sgl-kernel::{op}" for op in proof["ops"]} <= ranges, ranges


def main() -> None:
    check_results()
    check_layout()
    for dtype in TYPES:
        check_independence(dtype)
    check_strides()
    check_schemas()
    check_refusals()
    check_attestation()
    print("linears are as they should be")


if __name__ == "__main__":
    main()
