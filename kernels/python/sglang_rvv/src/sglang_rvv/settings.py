"""What the environment asks of the plugin, beside SGLang's own arguments. The environment, because SGLang spawns its
workers and each must decide alike.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from sglang_rvv.upstream import IntegrationError

PROJECTIONS = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head")
"""The linears of a decoder that this package knows, in the order of a forward pass."""

LINEAR = "SGLANG_RVV_LINEAR"
CHOSEN = "SGLANG_RVV_PROJECTIONS"
ELEMENTWISE = "SGLANG_RVV_ELEMENTWISE"
DEBUG_WEIGHTS = "SGLANG_RVV_DEBUG_WEIGHTS"

AUTO = "auto"


@dataclass(frozen=True)
class Settings:
    """`linear`: auto, torch or packed. `elementwise` (norms, gated activations, rotary embeddings): auto, torch or
    kernels. Auto is ours where the attention backend is `rvv`, else torch. `projections`: those that may be packed.
    `debug_weights`: the version counter of a weight is checked too before its packed copy is used.
    """

    linear: str = AUTO
    projections: tuple[str, ...] = PROJECTIONS
    elementwise: str = AUTO
    debug_weights: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read SGLANG_RVV_LINEAR, SGLANG_RVV_PROJECTIONS (comma list; all five when unset), SGLANG_RVV_ELEMENTWISE and
        SGLANG_RVV_DEBUG_WEIGHTS (0 or 1).

        Raises IntegrationError for a value that is not known.
        """
        env = os.environ if environ is None else environ
        linear = _choice(env, LINEAR, (AUTO, "torch", "packed"))
        elementwise = _choice(env, ELEMENTWISE, (AUTO, "torch", "kernels"))
        debug = _choice(env, DEBUG_WEIGHTS, ("0", "1"))
        if linear == "torch":
            return cls(linear, (), elementwise, debug == "1")
        chosen = tuple(name.strip() for name in env.get(CHOSEN, ",".join(PROJECTIONS)).split(",") if name.strip())
        unknown = [name for name in chosen if name not in PROJECTIONS]
        if unknown or not chosen:
            raise IntegrationError(
                f"{CHOSEN} names {', '.join(unknown) or 'no projection'}; known are {', '.join(PROJECTIONS)}",
                mend=f"correct {CHOSEN}, or set {LINEAR}=torch",
            )
        return cls(linear, tuple(name for name in PROJECTIONS if name in chosen), elementwise, debug == "1")


def _choice(env: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    value = env.get(name, known[0])
    if value not in known:
        raise IntegrationError(f"{name}={value!r} is not one of {', '.join(known)}")
    return value
