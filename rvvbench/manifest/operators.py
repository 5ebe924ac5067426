"""The operators of our kernels that a variant calls, and how often: what `torch.ops.sgl_kernel` counts. Pure.

One call of a projection or operator calls these (kernels/csrc/torch, where `count_call` stands).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rvvbench.manifest.models import OneBatch, Serving, Variant
from rvvbench.manifest.routing import Route, allowed_routes, predicted_routes
from rvvbench.manifest.shapes import layers_of

OF_LINEARS = {
    "packed": ("weight_packed_linear_out",),
    "row_major": ("linear_rowmajor",),
    "w8a8": ("int8_scaled_mm_with_quant", "per_token_quant_int8_cpu"),
}
"""By path. W8A8 quantises its activations in the same call, and counts that apart."""

OF_ATTENTION = {
    ("decode_attention", "auto"): ("decode_attention_cpu",),
    ("extend_attention", "auto"): ("extend_attention_cpu",),
    ("decode_attention", "int8"): ("decode_attention_int8_cpu", "store_kv"),
    ("extend_attention", "int8"): ("extend_attention_int8_cpu", "store_kv"),
}
"""By operator and `kv_cache_dtype`. Quantising the new keys and values counts once for both."""

OF_OTHERS = {"gated_activation": ("silu_and_mul_cpu",), "rotary_embedding": ("rotary_embedding_cpu",)}
"""Every model that we know has SiLU."""

NORM, ADDING_NORM = "rmsnorm_cpu", "fused_add_rmsnorm_cpu"


def expected_ops(config: Mapping[str, Any], variant: Variant, workload: OneBatch) -> dict[str, int]:
    """Calls of each operator in one measured one-batch run; no other may be called."""
    calls: Counter[str] = Counter()
    for route in predicted_routes(config, variant, workload):
        for op in _ops_of(route, variant):
            calls[op] += route.calls or 0
    for op, times in _norms_of_a_pass(config, variant).items():
        calls[op] += times * workload.output_len
    return dict(sorted(calls.items()))


def allowed_ops(config: Mapping[str, Any], variant: Variant, workload: Serving) -> dict[str, None]:
    """The operators that a server must call, and no other; how often depends on which request arrives when."""
    routes = allowed_routes(config, variant, workload, 1)
    named = {op for route in routes for op in _ops_of(route, variant)} | set(_norms_of_a_pass(config, variant))
    return dict.fromkeys(sorted(named))


def _ops_of(route: Route, variant: Variant) -> tuple[str, ...]:
    """What one call of the route calls, but norms: which of the two they call is no matter of their rows."""
    if route.path == "kernels":
        attention = OF_ATTENTION.get((route.projection, variant.kv_cache_dtype), ())
        return attention or OF_OTHERS.get(route.projection, ())
    return OF_LINEARS.get(route.path, ())


def _norms_of_a_pass(config: Mapping[str, Any], variant: Variant) -> dict[str, int]:
    """Calls of the two norms in a forward pass: all but the first of a pass, and those of queries and keys, add the
    residual first.
    """
    if variant.elementwise == "torch":
        return {}
    layers = layers_of(config)
    return {NORM: 1 + (2 * layers.count if layers.qk_norms else 0), ADDING_NORM: 2 * layers.count}
