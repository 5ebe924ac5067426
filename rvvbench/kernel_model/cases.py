"""What is modelled: the linears and the attention of real models, and what each must compute and move at least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.manifest.shapes import projection_shapes

MODELS = ("llama-3.2-1b", "qwen3-0.6b", "qwen2.5-1.5b-instruct")
ROWS = (1, 2, 4, 6, 8, 16, 64)
CONTEXTS = (72, 512, 2048)
NEW_TOKENS = 64

LINEARS = ("packed_linear", "row_major_linear")
DECODE = "decode_attention"
EXTEND = "extend_attention"
ELEMENTWISE = ("norm", "gated_activation", "rotary_embedding")
"""Operators that compute each element by itself, or by its row: their work is counted in elements."""
ELEMENTWISE_ROWS = (1, 64)

# Output columns in one unit of a linear: a multiple of every kernel's block, and a divisor of every N modelled.
UNIT_COLUMNS = 64
ELEMENT_BYTES = 2


@dataclass(frozen=True)
class Case:
    """One operator at one shape of one model.

    The work comes in `units` equal parts: `UNIT_COLUMNS` output columns of a linear, one KV head with its group of
    query heads of an attention, one row (token) of an elementwise operator. `fixed` are the other sizes, as the traced
    program takes them; `form` is which of an operation's operators it is, where there are several.
    """

    operation: str
    type: str
    model: str
    layer: str
    units: int
    fixed: tuple[tuple[str, int], ...]
    form: str = ""

    def text(self, units: int) -> str:
        """The case for the traced program, with `units` in place of all units."""
        sizes = dict(self.fixed)
        if self.operation in LINEARS:
            sizes["n"] = units * UNIT_COLUMNS
        elif self.operation in ELEMENTWISE:
            sizes["m"] = units
        else:
            sizes["kv_heads"] = units
            sizes["heads"] = units * sizes.pop("group")
        form = f"form={self.form}," if self.form else ""
        return f"{self.operation}:type={self.type},{form}" + ",".join(f"{key}={value}" for key, value in sizes.items())

    @property
    def whole(self) -> str:
        """The case with all its units."""
        return self.text(self.units)

    @property
    def macs(self) -> int:
        """Multiply-adds: M N K of a linear; of attention the products with keys and values that the mask leaves.

        0 of an elementwise operator: see `elements`.
        """
        size = dict(self.fixed)
        if self.operation in ELEMENTWISE:
            return 0
        if self.operation in LINEARS:
            return size["m"] * self.units * UNIT_COLUMNS * size["k"]
        new = size.get("new", 1)
        before = size["context"] - new
        pairs = new * before + new * (new + 1) // 2
        return self.units * size["group"] * pairs * 2 * size["head"]

    @property
    def elements(self) -> int:
        """Elements that an elementwise operator writes as its output; 0 of the others."""
        size = dict(self.fixed)
        if self.operation == "rotary_embedding":
            return self.units * (size["heads"] + size["kv_heads"]) * size["head"]
        return self.units * size["n"] if self.operation in ELEMENTWISE else 0

    @property
    def moved_bytes(self) -> int:
        """Bytes between memory and core if every operand is moved once.

        Linear: (N K + M K + M N) elements. Attention with C tokens of context, T new: keys and values of all C tokens
        (the new ones are read where they come from), queries and outputs of T, and for decode the new keys and values
        written to the cache. Elementwise operators: input and output; with a residual that as well, both ways; of a
        norm the weight, of a gated activation two inputs, of a rotary embedding cosines and sines.
        """
        size = dict(self.fixed)
        if self.operation in LINEARS:
            n = self.units * UNIT_COLUMNS
            elements = n * size["k"] + size["m"] * size["k"] + size["m"] * n
        elif self.operation == "norm":
            elements = self.elements * (4 if self.form.startswith("fused_add") else 2) + size["n"]
        elif self.operation == "gated_activation":
            elements = 3 * self.elements
        elif self.operation == "rotary_embedding":
            elements = 2 * self.elements + self.units * size["head"]
        else:
            new = size.get("new", 1)
            token = 2 * self.units * size["head"]
            elements = size["context"] * token + 2 * new * self.units * size["group"] * size["head"]
            elements += token if self.operation == DECODE else 0
        return elements * ELEMENT_BYTES


def cases_of(models: Mapping[str, Mapping[str, Any]], available: Iterable[tuple[str, str]]) -> list[Case]:
    """Every case for models {name: Hugging Face configuration} that some (operation, type) in `available` computes."""
    cases = []
    for operation, kind in dict.fromkeys(available):
        for name, config in models.items():
            if operation in LINEARS:
                cases += _linears(operation, kind, name, config)
            elif operation in ELEMENTWISE:
                cases += _elementwise(operation, kind, name, config)
            else:
                cases += _attention(operation, kind, name, config)
    return cases


def _linears(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    return [
        Case(operation, kind, model, shape.projection, shape.n // UNIT_COLUMNS, (("m", rows), ("k", shape.k)))
        for shape in projection_shapes(config)
        for rows in ROWS
    ]


def _attention(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    heads = int(config["num_attention_heads"])
    kv_heads = int(config["num_key_value_heads"])
    head = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
    new = (("new", NEW_TOKENS),) if operation == EXTEND else ()
    return [
        Case(
            operation,
            kind,
            model,
            f"{heads} heads, {kv_heads} KV heads, head {head}",
            kv_heads,
            (("group", heads // kv_heads), ("head", head), ("context", context), *new),
        )
        for context in CONTEXTS
    ]


def _elementwise(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    """Norms of the hidden state, the gate of the MLP, rotation of queries and keys; FP32 is not what models run."""
    heads, kv_heads = int(config["num_attention_heads"]), int(config["num_key_value_heads"])
    hidden = int(config["hidden_size"])
    head = int(config.get("head_dim") or hidden // heads)
    shapes: list[tuple[str, str, tuple[tuple[str, int], ...]]]
    if operation == "norm":
        shapes = [(form, "hidden state", (("n", hidden),)) for form in ("rmsnorm", "fused_add_rmsnorm")]
    elif operation == "gated_activation":
        shapes = [("silu", "MLP", (("n", int(config["intermediate_size"])),))]
    else:
        layer = f"{heads} heads, {kv_heads} KV heads, head {head}"
        shapes = [("neox", layer, (("heads", heads), ("kv_heads", kv_heads), ("head", head)))]
    return [
        Case(operation, kind, model, layer, rows, fixed, form)
        for form, layer, fixed in shapes
        for rows in ELEMENTWISE_ROWS
        if kind != "fp32"
    ]
