"""Operators that compute each element by itself, or by its row: norms, gated activations, rotary embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvvbench.kernel_model.cases import ELEMENT_BYTES, Case, Sizes
from rvvbench.kernel_model.heads import Heads

NORM = "norm"
GATED_ACTIVATION = "gated_activation"
ROTARY = "rotary_embedding"
ELEMENTWISE = (NORM, GATED_ACTIVATION, ROTARY)
ROWS = (1, 64)

RMSNORM = "rmsnorm"
FUSED_ADD_RMSNORM = "fused_add_rmsnorm"
HIDDEN = "hidden state"
HEADS = "queries and keys"


def norm(form: str, kind: str, model: str, layer: str, *, rows: int, n: int) -> Case:
    """`rows` rows of `n`. Bytes: input and output, with a residual that as well both ways, and the weight."""
    elements = rows * n
    moved = (elements * (4 if form.startswith("fused_add") else 2) + n) * ELEMENT_BYTES
    return _case(NORM, form, kind, model, layer, rows, (("n", n),), elements, moved)


def gated_activation(kind: str, model: str, *, rows: int, n: int) -> Case:
    """`n` outputs from twice as many inputs, in each of `rows` rows."""
    moved = 3 * rows * n * ELEMENT_BYTES
    return _case(GATED_ACTIVATION, "silu", kind, model, "MLP", rows, (("n", n),), rows * n, moved)


def rotary_embedding(kind: str, model: str, heads: Heads, *, rows: int) -> Case:
    """Queries and keys of `rows` tokens, read and written, and the cosines and sines of their positions."""
    elements = rows * (heads.heads + heads.kv_heads) * heads.head
    moved = (2 * elements + rows * heads.head) * ELEMENT_BYTES
    fixed = (("heads", heads.heads), ("kv_heads", heads.kv_heads), ("head", heads.head))
    return _case(ROTARY, "neox", kind, model, str(heads), rows, fixed, elements, moved)


def has_head_norms(config: Mapping[str, Any]) -> bool:
    """Whether queries and keys are normalised head by head."""
    return bool(config["architectures"][0] == "Qwen3ForCausalLM")


def elementwise(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    """Every such operator of the model; FP32 is not what models run."""
    if kind == "fp32":
        return []
    hidden, heads = int(config["hidden_size"]), Heads.of(config)
    cases = []
    for rows in ROWS:
        if operation == NORM:
            cases += [norm(form, kind, model, HIDDEN, rows=rows, n=hidden) for form in (RMSNORM, FUSED_ADD_RMSNORM)]
            if has_head_norms(config):
                every = rows * (heads.heads + heads.kv_heads)
                cases.append(norm(RMSNORM, kind, model, HEADS, rows=every, n=heads.head))
        elif operation == GATED_ACTIVATION:
            cases.append(gated_activation(kind, model, rows=rows, n=int(config["intermediate_size"])))
        else:
            cases.append(rotary_embedding(kind, model, heads, rows=rows))
    return cases


def _case(
    operation: str, form: str, kind: str, model: str, layer: str, rows: int, fixed: Sizes, elements: int, moved: int
) -> Case:
    unit = (("m", 1),)
    return Case(operation, kind, model, layer, rows, unit, fixed, moved_bytes=moved, elements=elements, form=form)
