"""Knowing what the emulator of this host can do."""

from __future__ import annotations

import shutil
import struct

import pytest

from rvvbench.engine.binfmt import K1_CPU, _knows_cpu, parse_registration, parse_version, probe_program

ENTRY = "enabled\ninterpreter /usr/libexec/qemu-binfmt/riscv64-binfmt-P\nflags: {}\noffset 0\nmagic 7f454c46\n"


def test_an_entry_works_in_containers_only_with_flag_f() -> None:
    assert parse_registration(ENTRY.format("POF")).works_in_containers
    assert not parse_registration(ENTRY.format("PO")).works_in_containers
    assert not parse_registration(ENTRY.format("POF").replace("enabled", "disabled")).works_in_containers
    assert parse_registration(ENTRY.format("F")).interpreter == "/usr/libexec/qemu-binfmt/riscv64-binfmt-P"


def test_versions_are_read_from_what_qemu_says() -> None:
    assert parse_version("qemu-riscv64 version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)") == (10, 0, 2)
    assert parse_version("nothing") is None


def test_the_probe_is_a_riscv64_program() -> None:
    program = probe_program()
    assert program[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", program, 18) == (243,)
    assert len(program) == 64 + 56 + 20


QEMU = shutil.which("qemu-riscv64-static") or shutil.which("qemu-riscv64")


@pytest.mark.skipif(QEMU is None, reason="needs QEMU user emulation")
def test_the_probe_tells_vector_lengths_and_half_precision() -> None:
    assert QEMU is not None
    assert _knows_cpu(QEMU, K1_CPU)
    assert _knows_cpu(QEMU, "rv64,v=true,vlen=512,zvfh=true", vlen_bits=512)
    assert not _knows_cpu(QEMU, K1_CPU, vlen_bits=128)
    assert not _knows_cpu(QEMU, "rv64,v=true,vlen=256")
    assert not _knows_cpu(QEMU, "rv64")
    assert not _knows_cpu(QEMU, "rv64,v=true,nosuchextension=true")
