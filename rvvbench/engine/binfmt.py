"""QEMU user emulation: is it registered with the kernel, and does it know the vector extension."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rvvbench.errors import EnvironmentLacks

BINFMT = Path("/proc/sys/fs/binfmt_misc")
K1_CPU = "rv64,v=true,vlen=256,zvfh=true,zfh=true,zba=true,zbb=true,zbs=true"
FIRST_QEMU_WITH_ZVFH = (8, 0)
MEND = "make setup"


@dataclass(frozen=True)
class Registration:
    """An entry of binfmt_misc."""

    enabled: bool
    interpreter: str
    flags: str

    @property
    def works_in_containers(self) -> bool:
        """With F the kernel holds the interpreter open; without, it looks for it inside the container, in vain."""
        return self.enabled and "F" in self.flags


@dataclass(frozen=True)
class Emulator:
    """The QEMU of this host for an architecture. `version` is (major, minor, patch), None where none is installed."""

    arch: str
    registration: Registration | None
    version: tuple[int, ...] | None
    knows_rvv_zvfh: bool | None
    problem: str | None

    @property
    def ready(self) -> bool:
        return self.problem is None


def parse_registration(text: str) -> Registration:
    """The entry that the text of a file below /proc/sys/fs/binfmt_misc describes."""
    lines = text.splitlines()
    found = dict(line.split(maxsplit=1) for line in lines[1:] if " " in line)
    return Registration(lines[:1] == ["enabled"], found.get("interpreter", ""), found.get("flags:", ""))


def parse_version(text: str) -> tuple[int, ...] | None:
    """The version in the first line of `qemu-riscv64 --version`."""
    match = re.search(r"version (\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in match.groups()) if match else None


def inspect_emulator(arch: str = "riscv64") -> Emulator:
    """What this host has for `arch`. Starts QEMU twice, in milliseconds."""
    registration = _registration(arch)
    qemu = _qemu(arch, registration)
    if qemu is None:
        return Emulator(arch, registration, None, None, "QEMU user emulation is not installed")
    version = parse_version(_run(qemu, "--version"))
    knows = _knows_cpu(qemu, K1_CPU) if arch == "riscv64" else None
    problem = None
    if knows is False:
        problem = f"{qemu} {'.'.join(map(str, version or ()))} does not know RVV 1.0 with zvfh (QEMU 8 does)"
    elif registration is None:
        problem = f"programs of {arch} are not registered with the kernel (binfmt_misc)"
    elif not registration.works_in_containers:
        problem = f"{arch} is registered with the kernel, but not with flag F, so containers cannot use it"
    return Emulator(arch, registration, version, knows, problem)


def register(arch: str = "riscv64") -> Emulator:
    """Register QEMU with the kernel where it is not; returns what there is then. Raises EnvironmentLacks."""
    found = inspect_emulator(arch)
    if found.registration is not None and found.registration.works_in_containers:
        return found
    if not (BINFMT / "register").exists():
        _required("mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT))
    if found.registration is not None:
        (BINFMT / f"qemu-{arch}").write_text("-1")
    conf = Path(f"/usr/lib/binfmt.d/qemu-{arch}.conf")
    tool = Path("/usr/lib/systemd/systemd-binfmt")
    if conf.exists() and tool.exists():
        _required(str(tool), str(conf))
    elif shutil.which("update-binfmts"):
        _required("update-binfmts", "--enable", f"qemu-{arch}")
    else:
        raise EnvironmentLacks("nothing here can register QEMU with the kernel", where=str(conf), mend=MEND)
    found = inspect_emulator(arch)
    if not found.ready:
        raise EnvironmentLacks(found.problem or "QEMU is not ready", mend=MEND)
    return found


def require_emulator(arch: str = "riscv64") -> Emulator:
    """The emulator of this host, ready; raises EnvironmentLacks with the command that mends it."""
    found = inspect_emulator(arch)
    if not found.ready:
        raise EnvironmentLacks(found.problem or "QEMU is not ready", where=f"binfmt_misc/qemu-{arch}", mend=MEND)
    return found


def _registration(arch: str) -> Registration | None:
    try:
        return parse_registration((BINFMT / f"qemu-{arch}").read_text())
    except OSError:
        return None


def _qemu(arch: str, registration: Registration | None) -> str | None:
    """A QEMU to call by hand; the kernel's own entry may be a link that expects argv as the kernel passes it."""
    for name in (f"qemu-{arch}-static", f"qemu-{arch}"):
        found = shutil.which(name)
        if found is not None:
            return found
    if registration is not None and Path(registration.interpreter).exists():
        return str(Path(registration.interpreter).resolve())
    return None


def probe_program() -> bytes:
    """A riscv64 program of 5 instructions: a half-precision vector addition (Zvfh), then exit with VLEN in bytes.

    QEMU opens the program before it looks at the CPU's properties, so asking it without a program says nothing.
    """
    code = struct.pack(
        "<5I",
        0x0C8072D7,  # vsetvli t0, zero, e16, m1, ta, ma
        0x02841457,  # vfadd.vv v8, v8, v8
        0x0C007557,  # vsetvli a0, zero, e8, m1, ta, ma
        0x05D00893,  # li a7, 93 (exit)
        0x00000073,  # ecall
    )
    base, header = 0x10000, 64 + 56
    size = header + len(code)
    riscv, executable, load, read_execute = 243, 2, 1, 5
    elf = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    elf += struct.pack("<HHIQQQIHHHHHH", executable, riscv, 1, base + header, 64, 0, 5, 64, 56, 1, 0, 0, 0)
    elf += struct.pack("<IIQQQQQQ", load, read_execute, 0, base, base, size, size, 0x1000)
    return elf + code


def _knows_cpu(qemu: str, cpu: str, vlen_bits: int = 256) -> bool:
    """Whether this QEMU runs the probe on this CPU with the vector length that was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "probe"
        program.write_bytes(probe_program())
        program.chmod(0o755)
        done = subprocess.run([qemu, "-cpu", cpu, str(program)], capture_output=True, check=False)
    return done.returncode == vlen_bits // 8


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _required(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentLacks(f"{command[0]} failed: {done.stderr.strip()}", where=" ".join(command), mend=MEND)
