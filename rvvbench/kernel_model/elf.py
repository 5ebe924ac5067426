"""What an ELF file is for, read from its header (elf(5)) before anything else is done with it."""

from __future__ import annotations

from pathlib import Path

from rvvbench.errors import UsageError

SHARED_OBJECT = 3
_MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
_HEADER_BYTES = 20


def header(path: Path) -> tuple[int, str] | None:
    """Type and machine of an ELF file; None where it is none. Machines that are not known here are numbers."""
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    if len(start) < _HEADER_BYTES or start[:4] != b"\x7fELF":
        return None
    order = "little" if start[5] == 1 else "big"
    kind, machine = (int.from_bytes(start[at : at + 2], order) for at in (16, 18))  # type: ignore[arg-type]
    return kind, _MACHINES.get(machine, f"machine {machine}")


def check_library(path: Path, option: str) -> None:
    """Raises UsageError unless `path` is a shared object for riscv64."""
    found = header(path)
    if found is None:
        raise UsageError(f"{path.name} is no ELF file", where=option, mend="give a shared object, such as _ops.so")
    kind, machine = found
    if machine != "riscv64":
        raise UsageError(f"{path.name} is for {machine}", where=option, mend="build it for riscv64")
    if kind != SHARED_OBJECT:
        raise UsageError(f"{path.name} is no shared object", where=option, mend="link it with -shared")


def check_program(path: Path, machine: str, option: str) -> None:
    """Raises UsageError where `path` is a program for another machine, which an emulator might run unasked."""
    found = header(path)
    if found is not None and found[1] != machine:
        raise UsageError(
            f"{path.name} is for {found[1]}, this machine is {machine}", where=option, mend="build it here"
        )
