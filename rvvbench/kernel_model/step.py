"""A whole decode step and a whole prefill of a model: what its operators cost one after the other.

What is between the operators is left out: Python, torch's dispatch, barriers, the lookup of the embedding, sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.kernel_model import attention_cases, linear_cases
from rvvbench.kernel_model.attention_cases import CONTEXTS, NEW_TOKENS, PROMPT, attention
from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.elementwise_cases import (
    FUSED_ADD_RMSNORM,
    HEADS,
    HIDDEN,
    RMSNORM,
    gated_activation,
    has_head_norms,
    norm,
    rotary_embedding,
)
from rvvbench.kernel_model.heads import Heads
from rvvbench.kernel_model.linear_cases import linear
from rvvbench.kernel_model.report import Row, StepRow
from rvvbench.kernel_model.roofline import BANDWIDTHS_BYTES_PER_S, CLOCK_HZ, CORES
from rvvbench.manifest.shapes import projection_shapes

KIND = "bf16"
DIVIDED_ROW = 4096
"""From this length on, a single row of an elementwise operator is divided among the cores."""
LEAST_SPLIT = 64
"""Tokens of context that a core takes in decode at least (kLeastSplit)."""


@dataclass(frozen=True)
class Precision:
    """What a model computes in: the operation of its projections (the head stays BF16) and the types of its cache."""

    name: str
    projections: str
    int8_cache: bool

    @property
    def decode(self) -> str:
        """The operation of decode attention."""
        return attention_cases.DECODE_INT8 if self.int8_cache else attention_cases.DECODE

    @property
    def extend(self) -> str:
        """The operation of extend attention."""
        return attention_cases.EXTEND_INT8 if self.int8_cache else attention_cases.EXTEND


PRECISIONS = (
    Precision("BF16", linear_cases.PACKED, False),
    Precision("BF16, INT8 cache", linear_cases.PACKED, True),
    Precision("W8A8", linear_cases.INT8, False),
    Precision("W8A8, INT8 cache", linear_cases.INT8, True),
)


@dataclass(frozen=True)
class Part:
    """`times` calls of one operator, each divided among `cores`."""

    case: Case
    times: int
    cores: int


CyclesOf = Callable[[Case], float | None]
"""Cycles of one core that does all of an operator; None where they are not known."""


def steps_of_rows(models: Mapping[str, Mapping[str, Any]], rows: Iterable[Row]) -> list[StepRow]:
    """The steps whose operators are all among the modelled rows."""
    cycles = {(row.model, row.case): row.modelled.cycles_in_order for row in rows if row.modelled}
    return steps_of(models, lambda case: cycles.get((case.model, case.whole)))


def decode_step(model: str, config: Mapping[str, Any], precision: Precision, context: int) -> list[Part]:
    """One token of one sequence that has `context` tokens with it."""
    heads = Heads.of(config)
    case = attention(precision.decode, KIND, model, heads, context=context)
    splits = min(-(-CORES // heads.kv_heads), -(-context // LEAST_SPLIT))
    return _parts(model, config, precision, 1, case, min(CORES, heads.kv_heads * splits))


def prefill(model: str, config: Mapping[str, Any], precision: Precision) -> list[Part]:
    """A prompt of 64 tokens; the head computes its last token only."""
    case = attention(precision.extend, KIND, model, Heads.of(config), context=PROMPT, new=NEW_TOKENS)
    return _parts(model, config, precision, NEW_TOKENS, case, CORES)


def steps_of(models: Mapping[str, Mapping[str, Any]], cycles_of: CyclesOf) -> list[StepRow]:
    """Every step of every model of which all operators have known cycles."""
    steps = []
    for name, config in models.items():
        for precision in PRECISIONS:
            for context in CONTEXTS:
                parts = decode_step(name, config, precision, context)
                steps.append(_sum(name, precision, f"decode, context {context}", 1, parts, cycles_of))
            parts = prefill(name, config, precision)
            steps.append(_sum(name, precision, f"prefill, {NEW_TOKENS} tokens", NEW_TOKENS, parts, cycles_of))
    return [step for step in steps if step is not None]


def _parts(
    model: str, config: Mapping[str, Any], precision: Precision, rows: int, attended: Case, attending: int
) -> list[Part]:
    """Norms as SGLang fuses them: the first of the first layer alone, every other with the addition before it."""
    heads, hidden = Heads.of(config), int(config["hidden_size"])
    layers = int(config["num_hidden_layers"])
    parts = [
        _elementwise(norm(RMSNORM, KIND, model, HIDDEN, rows=rows, n=hidden), 1, hidden),
        _elementwise(norm(FUSED_ADD_RMSNORM, KIND, model, HIDDEN, rows=rows, n=hidden), 2 * layers, hidden),
        _elementwise(rotary_embedding(KIND, model, heads, rows=rows), layers, heads.head),
        _elementwise(
            gated_activation(KIND, model, rows=rows, n=int(config["intermediate_size"])),
            layers,
            int(config["intermediate_size"]),
        ),
        Part(attended, layers, attending),
    ]
    if has_head_norms(config):
        every = rows * (heads.heads + heads.kv_heads)
        parts.append(_elementwise(norm(RMSNORM, KIND, model, HEADS, rows=every, n=heads.head), layers, heads.head))
    for shape in projection_shapes(config):
        head = shape.projection == "lm_head"
        operation = linear_cases.PACKED if head else precision.projections
        m = 1 if head else rows
        kind = linear_cases.INT8_KIND if operation == linear_cases.INT8 else KIND
        case = linear(operation, kind, model, shape.projection, m=m, n=shape.n, k=shape.k)
        parts.append(Part(case, shape.count, CORES))
    return parts


def _elementwise(case: Case, times: int, row: int) -> Part:
    return Part(case, times, CORES if row >= DIVIDED_ROW else min(CORES, case.units))


def _sum(
    model: str, precision: Precision, phase: str, tokens: int, parts: list[Part], cycles_of: CyclesOf
) -> StepRow | None:
    cycles, moved = 0.0, 0
    seconds = dict.fromkeys(BANDWIDTHS_BYTES_PER_S, 0.0)
    for part in parts:
        alone = cycles_of(part.case)
        if alone is None:
            return None
        share = alone / part.cores
        cycles += part.times * share
        moved += part.times * part.case.moved_bytes
        for bandwidth in seconds:
            seconds[bandwidth] += part.times * max(share / CLOCK_HZ, part.case.moved_bytes / bandwidth)
    return StepRow(
        model=model,
        precision=precision.name,
        phase=phase,
        tokens=tokens,
        cycles=round(cycles, 2),
        moved_bytes=moved,
        tokens_per_s={str(bandwidth): round(tokens / s, 6) for bandwidth, s in seconds.items()},
    )
