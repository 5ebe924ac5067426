"""`torch.ops.rvv_inductor` in eager mode, under fake tensors and compiled; and the lowering of `mm` at its gate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from rvv_inductor.install import install
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode

install()

Tensor = torch.Tensor

K, N = 1024, 1056
ops = torch.ops.rvv_inductor


def operands(*shape: int, n: int = N, k: int = K) -> tuple[Tensor, Tensor]:
    """`x` of that shape, and a weight."""
    torch.manual_seed(sum(shape))
    return torch.randn(*shape).bfloat16(), torch.randn(n, k).bfloat16()


def packed_linear(x: Tensor, packed: Tensor) -> Tensor:
    return ops.rvv_packed_bf16_linear(x, packed, N)


def plain_linear(x: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.linear(x, weight)


def row_major(x: Tensor, weight: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    return torch.ops.sgl_kernel.linear_rowmajor(rows, weight, None).reshape(*x.shape[:-1], weight.shape[0])


def compiled(function: Callable[..., Any], *arguments: Any, dynamic: bool = False) -> tuple[Any, dict[str, int]]:
    """The result of a function compiled anew, and what the lowerings counted."""
    torch._dynamo.reset()
    counters.clear()
    with torch.no_grad(), torch._inductor.utils.fresh_cache():
        result = torch.compile(function, fullgraph=True, dynamic=dynamic)(*arguments)
    return result, dict(counters["rvv_inductor"])


def raises(kind: type[Exception], said: str, function: Callable[..., Any], *arguments: Any) -> None:
    try:
        function(*arguments)
    except kind as error:
        assert said in str(error), f"{error} does not say {said!r}"
    else:
        raise AssertionError(f"no {kind.__name__} that says {said!r}")


def check_packing_eager_and_fake() -> None:
    for n, k in ((N, K), (1025, 7), (1, 1), (32, 3)):
        _, weight = operands(1, n=n, k=k)
        packed = ops.rvv_pack_bf16_weight(weight)
        assert tuple(packed.shape) == (math.ceil(n / 32), k, 32)
        back = packed.permute(0, 2, 1).reshape(-1, k)
        assert torch.equal(back[:n], weight)
        assert not back[n:].any()
        with FakeTensorMode() as mode:
            fake = ops.rvv_pack_bf16_weight(mode.from_tensor(weight))
        assert (fake.shape, fake.dtype, fake.stride()) == (packed.shape, packed.dtype, packed.stride())


def check_the_linear_eager_and_fake() -> None:
    for shape in ((1, K), (5, K), (2, 3, K), (K,)):
        x, weight = operands(*shape)
        packed = ops.rvv_pack_bf16_weight(weight)
        out = packed_linear(x, packed)
        exact = x.double() @ weight.double().T
        assert torch.allclose(out.double(), exact, rtol=2.0**-8, atol=1e-3)
        with FakeTensorMode() as mode:
            fake = packed_linear(mode.from_tensor(x), mode.from_tensor(packed))
        assert (fake.shape, fake.dtype, fake.stride()) == (out.shape, out.dtype, out.stride())


def check_the_compiled_linear_gives_the_operators_bits() -> None:
    for shape in ((1, K), (4, K), (7, K), (130, K), (1, 3, K)):
        x, weight = operands(*shape)
        packed = ops.rvv_pack_bf16_weight(weight)
        out, counted = compiled(packed_linear, x, packed)
        assert torch.equal(out, packed_linear(x, packed)), shape
        assert counted == {"packed": 1}, counted


def check_a_packed_weight_at_an_odd_address() -> None:
    x, weight = operands(3, K)
    packed = ops.rvv_pack_bf16_weight(weight)
    odd = torch.empty(packed.numel() + 1, dtype=torch.bfloat16)[1:].view(packed.shape).copy_(packed)
    assert odd.data_ptr() % 4 == 2
    out, _ = compiled(packed_linear, x, odd)
    assert torch.equal(out, packed_linear(x, packed))


def check_open_rows_go_to_the_operator() -> None:
    x, weight = operands(5, K)
    packed = ops.rvv_pack_bf16_weight(weight)
    out, counted = compiled(packed_linear, x, packed, dynamic=True)
    assert torch.equal(out, packed_linear(x, packed))
    assert counted == {"packed_eager": 1}, counted


def check_mm_is_lowered_where_the_gate_lets_it() -> None:
    for shape, weight_shape, counted in (
        ((1, K), (N, K), "row_major"),
        ((128, K), (N, K), "row_major"),
        ((2, 3, K), (N, K), "row_major"),
        ((129, K), (N, K), "stock: M not in 1..128"),
        ((4, K), (1023, K), "stock: N < 1024"),
        ((4, 1023), (N, 1023), "stock: K < 1024"),
    ):
        x, weight = operands(*shape, n=weight_shape[0], k=weight_shape[1])
        out, seen = compiled(plain_linear, x, weight)
        assert seen == {counted: 1}, f"{shape}: {seen}"
        if counted == "row_major":
            assert torch.equal(out, row_major(x, weight)), shape
        else:
            assert torch.equal(out, plain_linear(x, weight)), shape


def check_what_mm_the_gate_never_sees_or_refuses() -> None:
    x, weight = operands(4, K)
    for function, arguments, counted in (
        (plain_linear, (x.float(), weight.float()), {"stock: float32 x float32": 1}),
        (torch.nn.functional.linear, (x, weight, weight[:, 0].clone()), {}),
        (torch.mm, (x, weight.T.contiguous()), {"stock: operands are not row-major": 1}),
    ):
        out, seen = compiled(function, *arguments)
        assert seen == counted, f"{function}: {seen}"
        assert torch.equal(out, function(*arguments))


def check_strided_operands_and_what_is_fused_around() -> None:
    """A weight whose rows lie apart, an input that is computed in the graph, and users of the result."""
    x, weight = operands(4, K)
    wide = torch.randn(N, 2 * K).bfloat16()[:, :K].copy_(weight)
    out, counted = compiled(plain_linear, x, wide)
    assert counted == {"row_major": 1}
    assert torch.equal(out, row_major(x, weight))

    def around(x: Tensor, weight: Tensor) -> Tensor:
        return torch.nn.functional.silu(torch.nn.functional.linear(x * 2, weight)) + 1

    out, counted = compiled(around, x, weight)
    assert counted == {"row_major": 1}
    near = torch.nn.functional.silu(row_major(x * 2, weight)) + 1
    assert torch.allclose(out.float(), near.float(), rtol=2.0**-7, atol=2.0**-7)


def check_unknown_layouts_and_what_does_not_fit() -> None:
    x, weight = operands(4, K)
    packed = ops.rvv_pack_bf16_weight(weight)
    linear = ops.rvv_packed_bf16_linear
    unknown = "layout_version 2 is not known, only 1"
    raises(ValueError, unknown, ops.rvv_pack_bf16_weight, weight, 2)
    raises(ValueError, unknown, linear, x, packed, N, 2)
    raises(ValueError, "weight must be bfloat16", ops.rvv_pack_bf16_weight, weight.half())
    raises(ValueError, "weight must be [N, K]", ops.rvv_pack_bf16_weight, weight[0])
    raises(ValueError, "input must be bfloat16", linear, x.float(), packed, N)
    raises(ValueError, "the input's K make 5", linear, x[:, :5], packed, N)
    raises(ValueError, "ceil(1120 / 32) blocks make 35", linear, x, packed, N + 64)
    raises(ValueError, "out_features must be positive", linear, x, packed, 0)
    raises(ValueError, "packed_weight must be [ceil(N/32), K, 32]", linear, x, weight, N)
    for wrong, said in ((lambda: linear(x, packed, N, 2), unknown), (lambda: linear(x, packed, N + 64), "make 35")):
        raises(Exception, said, compiled, wrong)


def check_a_second_installation_changes_nothing() -> None:
    from torch._inductor.lowering import lowerings

    before = lowerings[torch.ops.aten.mm.default]
    install()
    assert lowerings[torch.ops.aten.mm.default] is before
