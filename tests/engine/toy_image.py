"""An image of one program, made without network: it writes a line, then waits for ever."""

from __future__ import annotations

import io
import platform
import struct
import tarfile
from pathlib import Path

from rvvbench.engine.service import Engine
from rvvbench.image.names import host_arch
from rvvbench.image.oci import archive, compose, write_layer

NAME = "localhost/rvvbench/test-waiting:1"


def waiting_program() -> bytes:
    """Writes "up" and pauses until it is killed; for this machine's architecture."""
    text = b"up\n"
    if platform.machine() == "x86_64":
        machine, flags = 62, 0
        code = bytes.fromhex(
            "b801000000"  # mov eax, 1 (write)
            "bf01000000"  # mov edi, 1
            "488d3510000000"  # lea rsi, [rip + 16] (the text)
            "ba03000000"  # mov edx, 3
            "0f05"  # syscall
            "b822000000"  # mov eax, 34 (pause)
            "0f05"  # syscall
            "ebf7"  # jmp back to pause
        )
    elif platform.machine() == "riscv64":
        machine, flags = 243, 5
        code = struct.pack(
            "<12I",
            0x00100513,  # li a0, 1
            0x00000597,  # auipc a1, 0
            0x02C58593,  # addi a1, a1, 44 (from the auipc to the text)
            0x00300613,  # li a2, 3
            0x04000893,  # li a7, 64 (write)
            0x00000073,  # ecall
            0x00000513,  # li a0, 0
            0x00000593,  # li a1, 0
            0x00000613,  # li a2, 0
            0x04900893,  # li a7, 73 (ppoll, without an end)
            0x00000073,  # ecall
            0xFF1FF06F,  # j -16
        )
    else:
        raise NotImplementedError(platform.machine())
    base, header = 0x10000, 64 + 56
    size = header + len(code) + len(text)
    elf = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    elf += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, base + header, 64, 0, flags, 64, 56, 1, 0, 0, 0)
    elf += struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return elf + code + text


def load(engine: Engine, folder: Path) -> str:
    """Import the image and return its name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("wait")
        data = waiting_program()
        info.size, info.mode = len(data), 0o755
        tar.addfile(info, io.BytesIO(data))
    buffer.seek(0)
    layer = write_layer(buffer, folder / "layer.tar")
    list(engine.client.images.load(data=archive(compose(layer, host_arch(), {}, 0), NAME)))
    return NAME
