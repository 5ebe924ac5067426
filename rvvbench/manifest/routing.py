"""The routing table: what manifest and model predict, projection or operator x M -> path, and how often. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rvvbench.manifest.models import LAYER_PROJECTIONS, PROJECTIONS, OneBatch, Projection, Serving, Variant
from rvvbench.manifest.packing import Packing, computes_in_int8, packing
from rvvbench.manifest.regional import PATHS, Artifact, artifact, mode_of, region
from rvvbench.manifest.shapes import Layers, ProjectionShape, layers_of, projection_shapes

Operator = Literal["decode_attention", "extend_attention", "norm", "gated_activation", "rotary_embedding"]
LINES: tuple[Projection | Operator, ...] = (*PROJECTIONS, *get_args(Operator))
Path = Literal["torch", "packed", "row_major", "w8a8", "kernels", "inductor_packed", "inductor_row_major"]
Taken = tuple[Path, str, int | None]
"""A path, why it is taken, and the rows of the artifact where one computes it."""


@dataclass(frozen=True)
class Route:
    """`calls` calls of `projection` (or operator) with `m` rows take `path`, because of `reason`.

    `calls` is None where they depend on which request arrives when; then the route is one that may be taken, and
    `modules` is how many modules of the model take it in each pass with such rows: None where passes differ in that.
    `bucket`: the rows of the compiled artifact that computes it, None where nothing compiled does.
    """

    projection: Projection | Operator
    m: int
    path: Path
    calls: int | None
    reason: str
    modules: int | None = None
    bucket: int | None = None


@dataclass(frozen=True)
class Pass:
    """A forward pass: `tokens` rows go through the layers, the last of each of `sequences` through lm_head."""

    tokens: int
    sequences: int
    decodes: bool


def passes(workload: OneBatch) -> Counter[Pass]:
    """The passes of one measured one-batch run: a prefill of all prompts, then output_len - 1 decode steps."""
    batch = workload.batch_size
    made = Counter({Pass(batch * workload.input_len, batch, decodes=False): 1})
    made[Pass(batch, batch, decodes=True)] += workload.output_len - 1
    return +made


def predicted_routes(config: Mapping[str, Any], variant: Variant, workload: OneBatch) -> list[Route]:
    """Routes of one measured one-batch run."""
    taken = _Model(config, variant)
    calls: Counter[_Key] = Counter()
    for one, count in passes(workload).items():
        for key, times in taken.calls_of(one).items():
            calls[key] += times * count
    return [Route(*key[:3], times, key[3], bucket=key[4]) for key, times in sorted(calls.items(), key=_place)]


def allowed_routes(config: Mapping[str, Any], variant: Variant, workload: Serving, in_flight: int) -> list[Route]:
    """Routes that a server may take with up to `in_flight` requests at once; how often each is taken depends on which
    request arrives when.

    A prefill takes the prompts of the requests that wait, whole: k x input_len rows for k of them, to lm_head the last
    token of each. A decode step takes one row of every request that is decoding. Both never share a pass
    (SGLang's mixed chunking and chunked prefill are off).
    """
    taken = _Model(config, variant)
    possible = [Pass(k * workload.input_len, k, decodes=False) for k in range(1, in_flight + 1)]
    if workload.output_len > 1:
        possible += [Pass(k, k, decodes=True) for k in range(1, in_flight + 1)]
    times: dict[_Key, set[int]] = {}
    for one in possible:
        for key, count in taken.calls_of(one).items():
            times.setdefault(key, set()).add(count)
    return [
        Route(*key[:3], None, key[3], modules=None if key[0] == "norm" else counts.pop(), bucket=key[4])
        for key, counts in sorted(times.items(), key=_place)
    ]


def artifacts_of(config: Mapping[str, Any], variant: Variant, routes: Iterable[Route]) -> tuple[Artifact, ...]:
    """The compiled artifacts that `routes` take, by projection and bucket."""
    shapes = {shape.projection: shape for shape in projection_shapes(config)}
    taken = {(route.projection, route.bucket) for route in routes}
    return tuple(
        artifact(shapes[name], bucket, variant)
        for name in PROJECTIONS
        for bucket in sorted(bucket for place, bucket in taken if place == name and bucket is not None)
    )


_Key = tuple[Projection | Operator, int, Path, str, int | None]
"""Projection or operator, rows, path, reason, rows of the artifact."""


def _place(item: tuple[_Key, object]) -> tuple[int, int, str]:
    projection, m, path = item[0][:3]
    return LINES.index(projection), m, path


class _Model:
    """The paths that `variant` sends a model's computations."""

    def __init__(self, config: Mapping[str, Any], variant: Variant) -> None:
        self.layers: Layers = layers_of(config)
        self.variant = variant
        self.shapes: dict[Projection, ProjectionShape] = {s.projection: s for s in projection_shapes(config)}
        packed = packing(config, variant)
        self.linears = {name: self._linear(name, packed) for name in PROJECTIONS}

    def _linear(self, projection: Projection, packed: Packing) -> Counter[Taken]:
        """How many modules of a projection take each path."""
        count = self.layers.count if projection in LAYER_PROJECTIONS else 1
        if projection not in self.variant.projections:
            return Counter({("torch", "the variant leaves it to torch", None): count})
        if computes_in_int8(self.variant, projection):
            return Counter({("w8a8", "quantised in the checkpoint", None): count})
        why = "packed by the variant" if packed.budget_bytes is None else "fits into the budget"
        found: Counter[Taken] = Counter()
        fitting = sum(module.projection == projection for module in packed.packed)
        found["packed", why, None] = fitting
        found["row_major", "does not fit into the budget", None] = count - fitting
        return +found

    def _taken(self, projection: Projection, m: int) -> Counter[Taken]:
        """How many modules of a projection take each path with `m` rows."""
        if not self.variant.compiles:
            return self.linears[projection]
        found = region(self.shapes[projection], m, self.variant)
        path: Path = "torch" if found.bucket is None else PATHS[mode_of(self.variant)]
        return Counter({(path, found.reason, found.bucket): self.shapes[projection].count})

    def calls_of(self, one: Pass) -> Counter[_Key]:
        """The calls of one forward pass.

        Each layer has one attention, one rotary embedding, one gated activation and two norms of all tokens, with
        `qk_norms` also one of each token's queries and one of its keys, head by head; behind the last layer comes one
        norm more.
        """
        calls: Counter[_Key] = Counter()
        for projection in PROJECTIONS:
            m = one.sequences if projection == "lm_head" else one.tokens
            for (path, reason, bucket), count in self._taken(projection, m).items():
                calls[projection, m, path, reason, bucket] += count
        layers = self.layers.count
        attention: Operator = "decode_attention" if one.decodes else "extend_attention"
        calls[attention, one.tokens, *self._attention] += layers
        calls["norm", one.tokens, *self._elementwise] += 2 * layers + 1
        if self.layers.qk_norms:
            for heads in (self.layers.heads, self.layers.kv_heads):
                calls["norm", one.tokens * heads, *self._elementwise] += layers
        for operator in ("gated_activation", "rotary_embedding"):
            calls[operator, one.tokens, *self._elementwise] += layers
        return calls

    @property
    def _attention(self) -> Taken:
        ours = self.variant.attention_backend == "rvv"
        return ("kernels", "attention backend rvv", None) if ours else ("torch", "attention backend torch_native", None)

    @property
    def _elementwise(self) -> Taken:
        ours = self.variant.elementwise == "kernels"
        return ("kernels", "elementwise kernels", None) if ours else ("torch", "the variant leaves it to torch", None)
