"""A package repository on loopback, small enough to build in a test: one package, in the version one likes."""

from __future__ import annotations

import functools
import hashlib
import http.server
import struct
import subprocess
import threading
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

SUITE = "toy"


def uname_program() -> bytes:
    """A riscv64 program that writes "riscv64" and a line end: all of `uname` that a check needs."""
    text = b"riscv64\n"
    code = struct.pack(
        "<9I",
        0x00100513,  # li a0, 1
        0x00000597,  # auipc a1, 0
        0x02058593,  # addi a1, a1, 32 (from here to the text behind the code)
        0x00800613,  # li a2, 8
        0x04000893,  # li a7, 64 (write)
        0x00000073,  # ecall
        0x00000513,  # li a0, 0
        0x05D00893,  # li a7, 93 (exit)
        0x00000073,  # ecall
    )
    base, header = 0x10000, 64 + 56
    size = header + len(code) + len(text)
    elf = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    elf += struct.pack("<HHIQQQIHHHHHH", 2, 243, 1, base + header, 64, 0, 5, 64, 56, 1, 0, 0, 0)
    elf += struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return elf + code + text


class ToyRepository:
    """The repository in `root`. `publish` replaces what it serves."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.was_asked = threading.Event()
        self._may_answer = threading.Event()
        self._may_answer.set()
        handler = functools.partial(_Holding, self.was_asked, self._may_answer, directory=str(root))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def mirror(self) -> str:
        """The line for sources.list."""
        return f"deb [trusted=yes] http://127.0.0.1:{self._server.server_port} {SUITE} main"

    def publish(self, version: str, *, name: str = "hello", valid_until: datetime | None = None) -> None:
        """Serve the package `name` in this version and nothing else."""
        arch = "riscv64"
        stanzas = [self._package(name, version, arch)]
        packages = "\n".join(stanzas).encode()
        binary = self.root / "dists" / SUITE / "main" / f"binary-{arch}"
        binary.mkdir(parents=True, exist_ok=True)
        (binary / "Packages").write_bytes(packages)
        index = f"main/binary-{arch}/Packages"
        lines = [f"Suite: {SUITE}", f"Codename: {SUITE}", f"Architectures: {arch}", "Components: main"]
        lines.append(f"Date: {_date(datetime(2026, 1, 1, tzinfo=UTC))}")
        if valid_until is not None:
            lines.append(f"Valid-Until: {_date(valid_until)}")
        lines += ["SHA256:", f" {hashlib.sha256(packages).hexdigest()} {len(packages)} {index}"]
        (self.root / "dists" / SUITE / "Release").write_text("\n".join(lines) + "\n")

    def hold(self) -> None:
        """Answer nobody until `release`; `was_asked` is set when somebody asks."""
        self.was_asked.clear()
        self._may_answer.clear()

    def release(self) -> None:
        self._may_answer.set()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _package(self, name: str, version: str, arch: str) -> str:
        tree = self.root / "build" / version
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        control = [
            f"Package: {name}",
            f"Version: {version}",
            f"Architecture: {arch}",
            "Maintainer: nobody <nobody@example.invalid>",
            "Description: nothing to speak of",
        ]
        (tree / "DEBIAN" / "control").write_text("\n".join(control) + "\n")
        (tree / "usr/bin").mkdir(parents=True, exist_ok=True)
        (tree / "usr/bin/uname").write_bytes(uname_program())
        (tree / "usr/bin/uname").chmod(0o755)
        (tree / "usr/share").mkdir(parents=True, exist_ok=True)
        (tree / "usr/share/version").write_text(version + "\n")
        pool = self.root / "pool"
        pool.mkdir(exist_ok=True)
        deb = pool / f"{name}_{version}_{arch}.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(deb)], check=True, capture_output=True
        )
        data = deb.read_bytes()
        found = [f"Filename: pool/{deb.name}", f"Size: {len(data)}", f"SHA256: {hashlib.sha256(data).hexdigest()}"]
        return "\n".join(control + found) + "\n"


class _Holding(http.server.SimpleHTTPRequestHandler):
    def __init__(self, asked: threading.Event, may_answer: threading.Event, *args: Any, **options: Any) -> None:
        self._asked, self._may_answer = asked, may_answer
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        self._asked.set()
        self._may_answer.wait()
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is the test's."""


def _date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True).replace("GMT", "UTC")
