"""A key, and a directory as a cold process leaves it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rvvbench.cache.key import CacheKey

KEY = CacheKey(
    stack={"name": "debian-rvv", "image": "sha256:" + "a" * 64},
    isa="riscv64 rv64,v=true,zvfh=true",
    vlen=256,
    march=None,
    compiler={"name": "g++", "version": "4:16.1"},
    threads=1,
    headers={"rvv_inductor": "b" * 64, "sglang_rvv": "c" * 64},
    policy={"compile": "regional", "packed_weight_mode": "explicit", "small_batch": True},
    model={"dtype": "bfloat16", "shapes": {"o_proj": [1024, 1024]}},
    artifacts=("o_proj 1024x1024 M=1 explicit_packed",),
    environment={"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"},
)


def key(**changes: Any) -> CacheKey:
    return replace(KEY, **changes)


FILES = {
    "ab/cab.py": "wrapper",
    "ab/cab.main.cpp": "source",
    "ab/cab.main.so": "library",
    "fxgraph/x/y": "graph",
    "locks/cab.lock": "",
}


def fill(folder: Path, files: dict[str, str] | None = None) -> Path:
    for name, content in (FILES if files is None else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder
