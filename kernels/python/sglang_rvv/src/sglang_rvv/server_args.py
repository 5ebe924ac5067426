"""SGLang's arguments with ours among them: on the command line, in Python and in `/server_info`.

Workers are sent the arguments as a pickle, so the class must be importable by this name.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, get_args, get_type_hints

from sglang.srt.arg_groups.arg_utils import Arg
from sglang.srt.server_args import ServerArgs as Stock

INT8 = "int8"
REGIONS = "qkv_proj, o_proj, gate_up_proj, down_proj and lm_head"


def _kv_cache_dtype() -> Arg:
    """SGLang's own description of the argument, with one choice more."""
    hint = get_type_hints(Stock, include_extras=True)["kv_cache_dtype"]
    stock = next(item for item in get_args(hint) if isinstance(item, Arg))
    return dataclasses.replace(
        stock,
        choices=[*(stock.choices or []), INT8],
        help=stock.help + f' "{INT8}" (attention backend rvv) has a scale for each token and KV head.',
    )


# Now: where the class below takes the place of the stock one, it does so under every name that the stock one has,
# `Stock` too.
KV_CACHE_DTYPE = _kv_cache_dtype()


@dataclasses.dataclass
class RvvServerArgs(Stock):  # type: ignore[misc]
    """`sglang.srt.server_args.ServerArgs` with the arguments of this package."""

    kv_cache_dtype: Annotated[str, KV_CACHE_DTYPE] = "auto"
    cpu_rvv_memory_budget_mib: Annotated[
        float | None,
        Arg(
            help="Memory for packed weights, in MiB (attention backend rvv). Modules are packed layer by layer, "
            "lm_head last; what does not fit stays row-major. By default three quarters of the memory that is free "
            "when the model is loaded, by /proc/meminfo and cgroups.",
            type_parser=float,
        ),
    ] = None
    enable_cpu_rvv_inductor: Annotated[
        bool,
        Arg(
            help=f"Compile {REGIONS} by TorchInductor, each by itself (no graph of the whole model), on explicitly "
            "packed BF16 weights, small batches too. Attention stays as --attention-backend says.",
        ),
    ] = False
    cpu_compile_mode: Annotated[
        str | None,
        Arg(
            help=f'"regional": compile {REGIONS} by TorchInductor; "off": nothing. Regional with '
            "--enable-cpu-rvv-inductor, else off.",
            choices=["regional", "off"],
        ),
    ] = None
    cpu_rvv_packed_weight_mode: Annotated[
        str | None,
        Arg(
            help='What compiled regions read: "explicit", a packed copy of each weight where it fits into memory; '
            '"off", the weight as it is. Explicit with --enable-cpu-rvv-inductor, else off.',
            choices=["explicit", "off"],
        ),
    ] = None
    cpu_rvv_small_batch: Annotated[
        bool,
        Arg(help="Compile regions for 2 to 15 rows too. Implied by --enable-cpu-rvv-inductor."),
    ] = False
