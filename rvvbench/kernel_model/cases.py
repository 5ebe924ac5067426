"""What is modelled: the linears and the attention of real models, and what each must compute and move at least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.kernel_model.roofline import INT8_MACS_PER_CYCLE, MACS_PER_CYCLE
from rvvbench.manifest.shapes import projection_shapes

MODELS = ("llama-3.2-1b", "qwen3-0.6b", "qwen2.5-1.5b-instruct")
ROWS = (1, 2, 4, 6, 8, 16, 64)
QUANTISED_ROWS = (1, 64)
CONTEXTS = (72, 512, 2048)
NEW_TOKENS = 64

LINEARS = ("packed_linear", "row_major_linear", "int8_linear")
INT8_LINEAR = "int8_linear"
TOKEN_QUANT = "token_quant"
EXTREME_PROJECTION = "o_proj"
"""Where an INT8 linear is also modelled with the slowest activations that there are: all codes +-127."""
DECODE = "decode_attention"
EXTEND = "extend_attention"

# Output columns in one unit of a linear: a multiple of every kernel's block, and a divisor of every N modelled.
UNIT_COLUMNS = 64
ELEMENT_BYTES = 2
FP32_BYTES = 4


@dataclass(frozen=True)
class Case:
    """One operator at one shape of one model.

    The work comes in `units` equal parts: `UNIT_COLUMNS` output columns of a linear, one KV head with its group of
    query heads of an attention, one row of a quantisation. `fixed` are the other sizes, as the traced program takes
    them.
    """

    operation: str
    type: str
    model: str
    layer: str
    units: int
    fixed: tuple[tuple[str, int], ...]

    def text(self, units: int) -> str:
        """The case for the traced program, with `units` in place of all units."""
        sizes = dict(self.fixed)
        if self.operation in LINEARS:
            sizes["n"] = units * UNIT_COLUMNS
        elif self.operation == TOKEN_QUANT:
            sizes["m"] = units
        else:
            sizes["kv_heads"] = units
            sizes["heads"] = units * sizes.pop("group")
        return f"{self.operation}:type={self.type}," + ",".join(f"{key}={value}" for key, value in sizes.items())

    @property
    def whole(self) -> str:
        """The case with all its units."""
        return self.text(self.units)

    @property
    def macs(self) -> int:
        """Multiply-adds: M N K of a linear; of attention the products with keys and values that the mask leaves.

        Of a quantisation its M K multiplications, so that the rate is in elements.
        """
        size = dict(self.fixed)
        if self.operation in LINEARS:
            return size["m"] * self.units * UNIT_COLUMNS * size["k"]
        if self.operation == TOKEN_QUANT:
            return self.units * size["k"]
        new = size.get("new", 1)
        before = size["context"] - new
        pairs = new * before + new * (new + 1) // 2
        return self.units * size["group"] * pairs * 2 * size["head"]

    @property
    def peak_macs_per_cycle(self) -> int:
        """What a core could do at best."""
        return INT8_MACS_PER_CYCLE if self.operation == INT8_LINEAR else MACS_PER_CYCLE

    @property
    def moved_bytes(self) -> int:
        """Bytes between memory and core if every operand is moved once.

        Linear: (N K + M K + M N) elements. INT8 linear, which quantises its activations itself: N K codes of one byte,
        N scales in FP32, (M K + M N) elements. Quantisation: M K elements read, as many codes and M scales written.
        Attention with C tokens of context, T new: keys and values of all C tokens
        (the new ones are read where they come from), queries and outputs of T, and for decode the new keys and values
        written to the cache.
        """
        size = dict(self.fixed)
        if self.operation == INT8_LINEAR:
            n = self.units * UNIT_COLUMNS
            return n * size["k"] + n * FP32_BYTES + (size["m"] * size["k"] + size["m"] * n) * ELEMENT_BYTES
        if self.operation == TOKEN_QUANT:
            return self.units * (size["k"] * (ELEMENT_BYTES + 1) + FP32_BYTES)
        if self.operation in LINEARS:
            n = self.units * UNIT_COLUMNS
            elements = n * size["k"] + size["m"] * size["k"] + size["m"] * n
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
            elif operation == TOKEN_QUANT:
                cases += _quantisations(kind, name, config)
            else:
                cases += _attention(operation, kind, name, config)
    return cases


def _linears(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    cases = []
    for shape in projection_shapes(config):
        inputs: list[tuple[str, tuple[tuple[str, int], ...]]] = [(shape.projection, ())]
        if (operation, shape.projection) == (INT8_LINEAR, EXTREME_PROJECTION):
            inputs.append((f"{shape.projection}, all codes +-127", (("extreme", 1),)))
        cases += [
            Case(operation, kind, model, layer, shape.n // UNIT_COLUMNS, (("m", rows), ("k", shape.k), *more))
            for layer, more in inputs
            for rows in ROWS
        ]
    return cases


def _quantisations(kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    depths = dict.fromkeys(shape.k for shape in projection_shapes(config))
    return [Case(TOKEN_QUANT, kind, model, "activations", rows, (("k", k),)) for k in depths for rows in QUANTISED_ROWS]


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
