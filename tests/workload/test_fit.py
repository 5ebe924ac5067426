"""A model that cannot fit is refused before the kernel kills it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench import project
from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.workload.fit import check_memory, need

GIB = 1 << 30


@pytest.fixture(scope="module")
def llama() -> Resolved:
    return resolve(project.manifests_dir(), "llama-serve", "board")


def provision(size: int) -> Any:
    return SimpleNamespace(checkpoint_dir=SimpleNamespace(files={"model.safetensors": ("a", size), "x.json": ("b", 9)}))


def test_packed_copies_come_beside_the_checkpoint(llama: Resolved) -> None:
    native, kernels = (need(llama, variant, GIB) for variant in llama.variants)
    assert (native.bytes, kernels.bytes) == (GIB, GIB + 2_471_493_632)


def test_too_little_memory_is_told_with_what_is_needed_and_what_there_is(llama: Resolved) -> None:
    check_memory(llama, provision(2 * GIB), 5 * GIB)
    with pytest.raises(EnvironmentLacks) as caught:
        check_memory(llama, provision(2 * GIB), 4 * GIB)
    assert "rvv-kernels needs at least 4,405 MiB" in caught.value.cause
    assert "4,096 MiB" in caught.value.cause


def test_the_limit_of_the_board_counts_too(llama: Resolved) -> None:
    small = llama.board.model_copy(update={"memory_limit_bytes": GIB})
    resolved = SimpleNamespace(**{**vars(llama), "board": small})
    with pytest.raises(EnvironmentLacks, match="memory limit of board"):
        check_memory(resolved, provision(2 * GIB), 100 * GIB)  # type: ignore[arg-type]


def test_memory_that_the_kernel_does_not_tell_of_is_not_judged(llama: Resolved) -> None:
    check_memory(llama, provision(2 * GIB), None)
