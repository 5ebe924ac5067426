"""VecRVV: TorchInductor's vector ISA on riscv64, which makes it generate `at::vec` code, and our headers that make that
code RVV.

Torch 2.14 knows none for riscv64. `register()` puts ours where torch looks; nothing of torch changes on disk.
"""

from __future__ import annotations

import dataclasses
from types import CodeType
from typing import Any

import torch
import torch._inductor.config as inductor_config
import torch._inductor.cpu_vec_isa as stock

from rvv_inductor import cache_key, hwprobe
from rvv_inductor.errors import InductorError

TORCH_CHECKED = "2.14.1"
INCLUDE = cache_key.PACKAGE / "include"
HEADER = "rvv_inductor/vec_rvv.h"

# at::vec's vectors have 32 bytes on every machine that it does not know, at every VLEN.
VECTOR_BITS = 256


@dataclasses.dataclass
class VecRVV(stock.VecISA):  # type: ignore[misc]
    """RVV 1.0 at any VLEN from 128 on.

    CPU_CAPABILITY_NEON is what cpp_prefix.h includes at::vec for; nothing else there means Arm by it, which is
    `__aarch64__`. CPU_CAPABILITY names at::vec's inline namespace. The digest is in no code: it is there for the key of
    the compiled library.
    """

    _bit_width = VECTOR_BITS
    _macro = [  # noqa: RUF012
        "CPU_CAPABILITY_NEON",
        "CPU_CAPABILITY=RVV",
        "CPU_CAPABILITY_RVV_OOT",
        f"RVV_INDUCTOR_SOURCES={cache_key.sources_digest()}",
    ]
    _arch_flags = f"-march={cache_key.ISA} -I{INCLUDE} -include {HEADER}"
    _dtype_nelements = {  # noqa: RUF012
        torch.float: VECTOR_BITS // 32,
        torch.bfloat16: VECTOR_BITS // 16,
        torch.float16: VECTOR_BITS // 16,
    }

    def __str__(self) -> str:
        return "rvv"

    __hash__ = stock.VecISA.__hash__

    def __bool__(self) -> bool:
        return hwprobe.has_vector()


def register() -> None:
    """Let Inductor vectorise with VecRVV. Where the machine has no V nothing changes. A second call changes nothing.

    Raises InductorError where torch is not what this was checked against.
    """
    if not hwprobe.has_vector():
        return
    if getattr(stock.valid_vec_isa_list, "rvv_inductor", False):
        return
    check(stock)
    if any(character.isspace() for character in str(INCLUDE)):
        raise InductorError(
            f"{INCLUDE} has a space in its name, which Inductor's compiler flags cannot hold",
            mend="install rvv_inductor in a folder without",
        )
    isa = VecRVV()

    def valid_vec_isa_list() -> list[Any]:
        return [isa]

    valid_vec_isa_list.rvv_inductor = True  # type: ignore[attr-defined]
    stock.valid_vec_isa_list = valid_vec_isa_list
    # A precompiled header lies outside of the cache's folder, and would have to hold ours.
    inductor_config.cpp_cache_precompile_headers = False


def check(module: Any) -> None:
    """Raises InductorError unless `module`, torch._inductor.cpu_vec_isa, asks its `valid_vec_isa_list` for the ISA and
    has none for riscv64 of its own.
    """
    offered = getattr(module, "valid_vec_isa_list", None)
    pick = getattr(module, "pick_vec_isa", None)
    code = getattr(pick, "__code__", None)
    if not callable(offered) or not isinstance(code, CodeType) or "valid_vec_isa_list" not in code.co_names:
        raise _unexpected("pick_vec_isa does not ask valid_vec_isa_list for the ISA")
    fields = ("_bit_width", "_macro", "_arch_flags", "_dtype_nelements")
    declared = getattr(getattr(module, "VecISA", None), "__annotations__", {})
    if missing := [field for field in fields if field not in declared]:
        raise _unexpected(f"VecISA has no {', '.join(missing)}")
    if known := [str(isa) for isa in offered()]:
        raise _unexpected(f"it has a vector ISA of its own for this machine: {', '.join(known)}")


def _unexpected(what: str) -> InductorError:
    return InductorError(
        f"torch {torch.__version__} is not what VecRVV was checked against, {TORCH_CHECKED}: in "
        f"torch._inductor.cpu_vec_isa {what}",
        mend=f"use torch {TORCH_CHECKED}, or do without rvv_inductor",
    )
