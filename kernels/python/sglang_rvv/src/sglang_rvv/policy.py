"""What a process does with the kernels: decided from SGLang's arguments, the environment and what the kernels can do.

The process that reads the command line decides first, and may change the attention backend; every worker then decides
again from the arguments that it was sent, and finds the same.
"""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import dataclass, field
from typing import Any

from sglang_rvv import kernels
from sglang_rvv.kernels import Capability
from sglang_rvv.regional import policy as regional
from sglang_rvv.regional.policy import RegionalPolicy
from sglang_rvv.settings import AUTO, Settings
from sglang_rvv.upstream import IntegrationError

ATTENTION = "rvv"
"""Name of our attention backend."""

FALLBACK = "torch_native"
SGLANG_CPU_DEFAULT = "intel_amx"
"""What `ServerArgs._handle_cpu_backends` fills in on a CPU that is not arm64 where nobody chose a backend."""

GRAMMAR = "xgrammar"
"""SGLang's own default (`ServerArgs._handle_grammar_backend`); it has no wheel for riscv64."""

NOBODY_CHOSE = (None, SGLANG_CPU_DEFAULT)


@dataclass(frozen=True)
class Policy:
    """`linears`: the projections that our kernels compute; none where regions are compiled. `memory_budget_mib`: for
    packed weights, None: by what is available. `reasons`: why something is not ours, for the start-up line.
    """

    attention: bool = False
    int8_cache: bool = False
    linears: tuple[str, ...] = ()
    elementwise: bool = False
    memory_budget_mib: float | None = None
    debug_weights: bool = False
    reasons: tuple[str, ...] = ()
    regional: RegionalPolicy = field(default_factory=RegionalPolicy)

    @property
    def uses_kernels(self) -> bool:
        return self.attention or bool(self.linears) or self.elementwise or self.regional.packs


def choose_attention(chosen: str | None, capability: Any = kernels.capability, machine: str | None = None) -> str:
    """The attention backend that runs where `chosen` was asked for (None or SGLang's default: nobody asked).

    Ours by default on riscv64 with V, elsewhere only where it is asked for. What cannot run falls back to
    torch_native. `capability` is asked only where it matters.
    """
    if chosen in NOBODY_CHOSE:
        return ATTENTION if is_ours_by_default(machine) and capability().usable else FALLBACK
    if chosen == ATTENTION and not capability().usable:
        return FALLBACK
    return chosen


def is_fallback(chosen: str | None, active: str, machine: str | None = None) -> bool:
    """Whether ours was asked for, or is the default here, and another backend is active."""
    wanted = chosen == ATTENTION or (chosen in NOBODY_CHOSE and is_ours_by_default(machine))
    return wanted and active != ATTENTION


def choose_grammar(chosen: str | None, find: Any = importlib.util.find_spec) -> str | None:
    """The grammar backend where `chosen` was asked for: none where nobody chose and SGLang's default is not installed.

    A server with a tokenizer would end otherwise, after its weights were loaded. `find` is `importlib.util.find_spec`.
    """
    return "none" if chosen is None and find(GRAMMAR) is None else chosen


def is_ours_by_default(machine: str | None = None) -> bool:
    """Whether a machine of this type (by default this one) runs our backend where nobody chose one."""
    return (os.uname().machine if machine is None else machine) == "riscv64"


def backends(server_args: Any) -> tuple[str, str]:
    """The attention backends that prefill and decode."""
    both: str = server_args.attention_backend
    return server_args.prefill_attention_backend or both, server_args.decode_attention_backend or both


def decide(settings: Settings, server_args: Any, capability: Any = kernels.capability) -> Policy:
    """The policy of this process; `capability` is asked only where something of ours is wanted."""
    attention = ATTENTION in backends(server_args)
    regions = regional.resolve(server_args)
    packed = settings.linear == "packed" or (settings.linear == AUTO and attention and not regions.active)
    elementwise = settings.elementwise == "kernels" or (settings.elementwise == AUTO and attention)
    budget = getattr(server_args, "cpu_rvv_memory_budget_mib", None)
    if not (attention or packed or elementwise or regions.packs):
        if regions.active:
            return Policy(regional=regions, debug_weights=settings.debug_weights)
        return Policy(reasons=(f"attention backend {server_args.attention_backend}, nothing else asked for",))
    found: Capability = capability()
    if not found.usable:
        return Policy(reasons=(str(found.why_not),))
    return Policy(
        attention=attention,
        int8_cache=server_args.kv_cache_dtype == "int8",
        linears=settings.projections if packed else (),
        elementwise=elementwise,
        memory_budget_mib=budget,
        debug_weights=settings.debug_weights,
        regional=regions,
    )


def check(server_args: Any, settings: Settings) -> None:
    """Raise IntegrationError for arguments that cannot be served here, before anything is loaded."""
    check_regions(server_args, settings)
    active = backends(server_args)
    attention = next((name for name in active if name != ATTENTION), ATTENTION)
    if server_args.enable_torch_compile:
        raise IntegrationError(
            "--enable-torch-compile captures CPU graphs, which this platform does not have",
            upstream="sglang.srt.model_executor.model_runner.ModelRunner.init_decode_cuda_graph",
            mend="leave it off",
        )
    if server_args.kv_cache_dtype == "int8" and attention != ATTENTION:
        raise IntegrationError(
            f"--kv-cache-dtype int8 is read by the attention backend {ATTENTION} only, and {attention} is active"
            + _because(attention),
            mend=f"--attention-backend {ATTENTION}, or another --kv-cache-dtype",
        )
    if server_args.kv_cache_dtype == "int8" and getattr(server_args, "enable_hierarchical_cache", False):
        raise IntegrationError("an INT8 KV cache has no copy on the host", mend="drop --enable-hierarchical-cache")
    if ATTENTION in active and server_args.speculative_algorithm is not None:
        raise IntegrationError(
            f"the attention backend {ATTENTION} does not verify drafts",
            mend=f"drop --speculative-algorithm, or --attention-backend {FALLBACK}",
        )
    if server_args.quantization == "w8a8_int8" and not decide(settings, server_args, kernels.capability).linears:
        raise IntegrationError(
            "--quantization w8a8_int8 is computed by our kernels only, and they are not active" + _because(attention),
            mend=f"--attention-backend {ATTENTION}, or SGLANG_RVV_LINEAR=packed",
        )
    budget = getattr(server_args, "cpu_rvv_memory_budget_mib", None)
    if budget is not None and not 0 <= budget < math.inf:
        raise IntegrationError(f"--cpu-rvv-memory-budget-mib {budget} is no amount of memory", mend="0 or more MiB")


def check_regions(server_args: Any, settings: Settings) -> None:
    """Raise IntegrationError for regional compilation that is contradictory, or that packs without kernels to pack."""
    regions = regional.resolve(server_args)
    regional.check(regions, server_args, settings)
    if regions.packs and not kernels.capability().usable:
        raise IntegrationError(
            f"explicit packed weights are packed by our kernels: {kernels.capability().why_not}",
            mend=f"install sgl_kernel_rvv, or {regional.PACKED_WEIGHT_MODE} {regional.OFF}",
        )


def _because(attention: str) -> str:
    found = kernels.capability()
    return "" if found.usable or attention == ATTENTION else f" ({found.why_not})"
