"""The environment of a build from source: what is set always, and what the caller may set."""

from __future__ import annotations

import os
from collections.abc import Mapping

JOB_BYTES = 2 << 30
"""Memory that one C++ compiler with PyTorch's headers is given room for."""

FIXED = {
    "HOME": "/tmp",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    # The sources belong to whoever started rvvbench, the container's user may be another.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}

OF_PART = {
    "pytorch": {"USE_CUDA": "0", "USE_ROCM": "0", "USE_XPU": "0", "BUILD_TEST": "0"},
    "sglang": {},
}
"""For a CPU: without it PyTorch's own build looks for what else the machine has."""

ALLOWED = (
    "BLAS",
    "CC",
    "CFLAGS",
    "CMAKE_ARGS",
    "CXX",
    "CXXFLAGS",
    "LDFLAGS",
    "PYTORCH_BUILD_NUMBER",
    "PYTORCH_BUILD_VERSION",
    "SETUPTOOLS_SCM_PRETEND_VERSION",
    "USE_DISTRIBUTED",
    "USE_FBGEMM",
    "USE_GLOO",
    "USE_KINETO",
    "USE_MKLDNN",
    "USE_NNPACK",
    "USE_OPENMP",
    "USE_PYTORCH_QNNPACK",
    "USE_TENSORPIPE",
    "USE_XNNPACK",
)
"""Variables of the caller that reach the build, and so its key. Nothing else of the caller's environment does."""


def settings(part: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the build of `part` (a stack's word) that its result depends on."""
    own = {name: environ[name] for name in ALLOWED if name in environ}
    return {**FIXED, **OF_PART.get(part, {}), **own}


def jobs(environ: Mapping[str, str]) -> int:
    """Compilers at once: the caller's MAX_JOBS, else a core each, fewer where memory is short. No part of a key."""
    asked = environ.get("MAX_JOBS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(os.cpu_count() or 1, memory_bytes // JOB_BYTES))
