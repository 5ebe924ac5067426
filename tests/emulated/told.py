"""What a script in the riscv64 image tells at a vector length: the JSON behind `TOLD ` in the last line that has it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rvvbench.engine.container import ContainerSpec, run_container
from rvvbench.engine.service import Engine


def told_at(engine: Engine, spec: ContainerSpec, vlen: int, *extensions: str) -> dict[str, Any]:
    """Run `spec` on a CPU of that VLEN with these extensions; on a riscv64 machine neither changes anything."""
    cpu = ",".join((f"rv64,v=true,vlen={vlen}", *(f"{name}=true" for name in (*extensions, "zba", "zbb", "zbs"))))
    ended = run_container(engine, dataclasses.replace(spec, env={**spec.env, "QEMU_CPU": cpu}))
    lines = [line for line in ended.output.splitlines() if line.startswith("TOLD ")]
    assert lines, ended.output[-4000:]
    told: dict[str, Any] = json.loads(lines[-1].removeprefix("TOLD "))
    return told
