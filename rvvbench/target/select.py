"""Which kind of target a run gets, and what that means for architecture and environment. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from rvvbench.errors import EnvironmentLacks, UsageError
from rvvbench.manifest.models import Arch, Board, TargetKind

Choice = Literal["auto", "board", "emulated", "host"]

ARCH_OF_MACHINE: dict[str, Arch] = {"riscv64": "riscv64", "x86_64": "amd64", "aarch64": "arm64"}
MACHINE_OF_ARCH: dict[Arch, str] = {arch: machine for machine, arch in ARCH_OF_MACHINE.items()}


@dataclass(frozen=True)
class Target:
    """A kind of target with the image architecture that it runs."""

    kind: TargetKind
    arch: Arch
    emulated: bool

    @property
    def machine(self) -> str:
        """What `uname -m` must print inside."""
        return MACHINE_OF_ARCH[self.arch]


def host_arch(machine: str) -> Arch:
    """Debian's name for the architecture of this machine; raises EnvironmentLacks for one that no recipe knows."""
    try:
        return ARCH_OF_MACHINE[machine]
    except KeyError:
        raise EnvironmentLacks(f"no image recipe knows the architecture {machine!r}", where="uname -m") from None


def select(choice: str, *, machine: str, has_vector: bool) -> Target:
    """The target that `choice` means on a machine of type `machine` (uname -m).

    `auto` is `board` on riscv64, else `emulated`. Raises UsageError for an unknown choice, EnvironmentLacks for
    `board` on a machine that is none and for `emulated` on riscv64 itself.
    """
    if choice not in get_args(Choice):
        raise UsageError(f"unknown target {choice!r}", where="--target", mend=f"one of {', '.join(get_args(Choice))}")
    if choice == "auto":
        choice = "board" if machine == "riscv64" else "emulated"
    if choice == "board":
        if machine != "riscv64":
            raise EnvironmentLacks(
                f"this machine is no board: it is {machine}, a board is riscv64 with the vector extension",
                where="--target board",
                mend="--target emulated runs the same riscv64 image under QEMU; --target host runs this machine's own",
            )
        if not has_vector:
            raise EnvironmentLacks(
                "this riscv64 machine reports no vector extension (AT_HWCAP bit 21 is clear)",
                where="--target board",
                mend="use a kernel with RVV 1.0 support, or --target host",
            )
        return Target("board", "riscv64", emulated=False)
    if choice == "emulated":
        if machine == "riscv64":
            raise EnvironmentLacks(
                "emulating riscv64 on riscv64 measures nothing",
                where="--target emulated",
                mend="--target board, or --target host without vectors",
            )
        return Target("emulated", "riscv64", emulated=True)
    return Target("host", host_arch(machine), emulated=False)


def environment(target: Target, board: Board) -> dict[str, str]:
    """The whole environment of a measured process besides the image's own PATH: the allow-list of its identity."""
    result = {
        "HOME": "/tmp",
        "HF_HUB_OFFLINE": "1",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(board.threads),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": "/rvvbench/runner",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_OFFLINE": "1",
        "USE_LIBUV": "0",
    }
    if board.omp.places:
        result["OMP_PLACES"] = board.omp.places
    if board.omp.proc_bind:
        result["OMP_PROC_BIND"] = board.omp.proc_bind
    if target.emulated and board.qemu_cpu:
        result["QEMU_CPU"] = board.qemu_cpu
    return result
