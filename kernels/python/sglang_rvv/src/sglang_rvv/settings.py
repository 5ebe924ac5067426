"""What the environment asks of the plugin. The environment, because SGLang spawns its workers and each must decide
alike.
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


@dataclass(frozen=True)
class Settings:
    """`packed`: the projections that go to the packed kernels; empty means that every linear stays with torch."""

    packed: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read SGLANG_RVV_LINEAR (`torch` or `packed`) and SGLANG_RVV_PROJECTIONS (comma list; all five when unset)."""
        env = os.environ if environ is None else environ
        linear = env.get(LINEAR, "torch")
        if linear not in ("torch", "packed"):
            raise IntegrationError(f"{LINEAR}={linear!r} is not one of torch, packed")
        if linear == "torch":
            return cls()
        chosen = tuple(name.strip() for name in env.get(CHOSEN, ",".join(PROJECTIONS)).split(",") if name.strip())
        unknown = [name for name in chosen if name not in PROJECTIONS]
        if unknown or not chosen:
            raise IntegrationError(
                f"{CHOSEN} names {', '.join(unknown) or 'no projection'}; known are {', '.join(PROJECTIONS)}",
                mend=f"correct {CHOSEN}, or set {LINEAR}=torch",
            )
        return cls(packed=tuple(name for name in PROJECTIONS if name in chosen))
