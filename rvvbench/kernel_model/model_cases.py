"""All that is modelled of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rvvbench.kernel_model.attention_cases import ATTENTION, attentions
from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.elementwise_cases import ELEMENTWISE, elementwise
from rvvbench.kernel_model.linear_cases import LINEARS, TOKEN_QUANT, linears, quantisations

OPERATIONS = (*LINEARS, TOKEN_QUANT, *ATTENTION, *ELEMENTWISE)
TYPES = ("bf16", "fp16", "fp32", "int8")


def cases_of(models: Mapping[str, Mapping[str, Any]], available: Iterable[tuple[str, str]]) -> list[Case]:
    """Every case for models {name: Hugging Face configuration} that some (operation, type) in `available` computes.

    An operation that is a part of others has none of its own.
    """
    cases = []
    for operation, kind in dict.fromkeys(available):
        for name, config in models.items():
            if operation in LINEARS:
                cases += linears(operation, kind, name, config)
            elif operation in ATTENTION:
                cases += attentions(operation, kind, name, config)
            elif operation in ELEMENTWISE:
                cases += elementwise(operation, kind, name, config)
            elif operation == TOKEN_QUANT:
                cases += quantisations(kind, name, config)
    return cases
