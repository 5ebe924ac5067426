"""Lowerings: BF16 `mm` through the row-major microkernel where the gate lets it, and the packed linear.

`register()` wraps torch's own lowering of `aten.mm`, which computes whatever the gate refuses.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._inductor.lowering as stock
from torch._inductor import ir
from torch._inductor.kernel.mm_common import mm_args
from torch._inductor.virtualized import V

from rvv_inductor import gate, primitives
from rvv_inductor.errors import InductorError
from rvv_inductor.gate import Product
from rvv_inductor.linear_template import PackedLinear, RowMajorLinear

COUNTER = "rvv_inductor"
"""Key of `torch._dynamo.utils.counters` under which lowerings count: `row_major`, `packed`, `packed_eager`, and
`stock: <reason>`. A graph that comes from a cache was not lowered, and counts nothing.
"""

MM = torch.ops.aten.mm.default
PACKED_LINEAR = torch.ops.rvv_inductor.rvv_packed_bf16_linear.default

_OURS = "_rvv_inductor"


def register() -> None:
    """Put the lowerings in place. Once per process; a second call changes nothing.

    Raises InductorError where torch has no lowering of `mm` to wrap.
    """
    before = stock.lowerings.get(MM)
    if not callable(before):
        raise InductorError("torch._inductor.lowering.lowerings has no aten.mm.default", mend="torch 2.14.1")
    if not hasattr(before, _OURS):
        stock.lowerings[MM] = wrapped_mm(before)
    if PACKED_LINEAR not in stock.lowerings:
        fall_back = stock.fallback_handler(PACKED_LINEAR, add_to_fallback_set=False)

        @stock.register_lowering(PACKED_LINEAR, type_promotion_kind=None)  # type: ignore[untyped-decorator]
        def packed(x: Any, weight: Any, out_features: Any, layout_version: int = primitives.LAYOUT_VERSION) -> Any:
            return packed_linear(fall_back, x, weight, out_features, layout_version)


def wrapped_mm(before: Any) -> Any:
    """`before`, with the row-major microkernel before it."""

    def mm(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        why = "arguments of another kind" if args or kwargs else gate.refusal(product(a, b))
        if why is None:
            _, _, _, layout, x, weight = mm_args(a, b)
            x.freeze_layout()
            weight.freeze_layout()
            why = gate.refusal(product(x, weight))
            if why is None:
                count("row_major")
                return RowMajorLinear.lower([x, weight], layout)
        count(f"stock: {why}")
        return before(a, b, *args, **kwargs)

    setattr(mm, _OURS, True)
    return mm


def product(a: Any, b: Any) -> Product:
    """What the gate asks about `a` [M, K] times `b` [K, N]. Strides are looked at where they are known yet."""
    m, k = (number(size) for size in a.get_size()) if len(a.get_size()) == 2 else (None, None)
    n = number(b.get_size()[1]) if len(b.get_size()) == 2 else None
    return Product(
        m,
        n,
        k,
        input_type=name_of(a.get_dtype()),
        weight_type=name_of(b.get_dtype()),
        device=a.get_device().type,
        input_dims=len(a.get_size()),
        weight_dims=len(b.get_size()),
        plain=has_unit_stride(a, 1, other=0) and has_unit_stride(b, 0, other=1),
    )


def has_unit_stride(node: Any, dimension: int, *, other: int) -> bool:
    """Whether elements along `dimension` are adjacent and the step along `other` is a number; or the layout is open."""
    stride = node.maybe_get_stride()
    return stride is None or (number(stride[dimension]) == 1 and number(stride[other]) is not None)


def packed_linear(fall_back: Any, x: Any, weight: Any, out_features: Any, layout_version: int) -> Any:
    """Lower the packed linear: `x` [..., K]. Rows that the graph leaves open go to the operator itself."""
    primitives.check_layout_version("rvv_packed_bf16_linear", layout_version)
    *batch, k = x.get_size()
    sizes = [number(size) for size in (*batch, k, out_features)]
    rows = 1
    for size in sizes[:-2]:
        rows = 0 if size is None else rows * size
    is_matrix_of_blocks = x.get_device().type == "cpu" and x.get_dtype() == weight.get_dtype() == torch.bfloat16
    if None in sizes or rows == 0 or not is_matrix_of_blocks:
        count("packed_eager")
        return fall_back(x, weight, out_features, layout_version)
    x = stock.view(x, [rows, k])
    x, weight = ir.ExternKernel.realize_input(x), ir.ExternKernel.realize_input(weight)
    x = ir.ExternKernel.require_contiguous(x)
    weight = ir.ExternKernel.require_contiguous(weight)
    layout = ir.FixedLayout(x.get_device(), x.get_dtype(), [rows, sizes[-1]])
    count("packed")
    return stock.view(PackedLinear.lower([x, weight], layout), [*batch, out_features])


def number(size: Any) -> int | None:
    """A size as a number; None where the graph leaves it open."""
    simple = V.graph.sizevars.simplify(size) if not isinstance(size, int) else size
    return int(simple) if isinstance(simple, int) or simple.is_number else None


def name_of(dtype: torch.dtype) -> str:
    """torch.bfloat16: bfloat16."""
    return str(dtype).removeprefix("torch.")


def count(what: str) -> None:
    torch._dynamo.utils.counters[COUNTER][what] += 1
