"""Which BF16 products of matrices are lowered to the row-major microkernel. Pure; imports nothing."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_N = 1024
LEAST_K = 1024
LEAST_WORK = 1_000_000
MOST_ROWS = 128

BF16 = "bfloat16"


@dataclass(frozen=True)
class Product:
    """A product [M, K] x [N, K]^T: M, N, K (None where the graph leaves one open), both operands' types and devices.

    Types are torch's names without `torch.`; `plain`: both operands are matrices of rows that lie one element apart,
    which is what the microkernel reads.
    """

    m: int | None
    n: int | None
    k: int | None
    input_type: str = BF16
    weight_type: str = BF16
    device: str = "cpu"
    input_dims: int = 2
    weight_dims: int = 2
    biased: bool = False
    plain: bool = True


def refusal(product: Product) -> str | None:
    """Why the stock lowering computes it, in a few words; None where ours does."""
    if product.device != "cpu":
        return f"device {product.device}"
    if (product.input_type, product.weight_type) != (BF16, BF16):
        return f"{product.input_type} x {product.weight_type}"
    if (product.input_dims, product.weight_dims) != (2, 2):
        return f"{product.input_dims}-D x {product.weight_dims}-D"
    if product.biased:
        return "bias"
    if product.m is None or product.n is None or product.k is None:
        return "open shape"
    if not product.plain:
        return "operands are not row-major"
    if product.n < LEAST_N:
        return f"N < {LEAST_N}"
    if product.k < LEAST_K:
        return f"K < {LEAST_K}"
    if not 1 <= product.m <= MOST_ROWS:
        return f"M not in 1..{MOST_ROWS}"
    # Implied by the others as they stand; a limit of its own, should one of them move.
    if product.m * product.n * product.k < LEAST_WORK:
        return f"M x N x K < {LEAST_WORK}"
    return None
