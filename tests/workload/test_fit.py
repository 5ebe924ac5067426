"""A model that cannot fit is refused before the kernel kills it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench import project
from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.models import PROJECTIONS, Projection, Variant
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.workload.fit import check_memory, need

GIB = 1 << 30


@pytest.fixture(scope="module")
def llama() -> Resolved:
    return resolve(project.manifests_dir(), "llama-serve", "board")


def provision(size: int) -> Any:
    """Provision of a BF16 checkpoint of this size, and of a quantised one of half of it."""

    def checkpoint_of(variant: Variant) -> Any:
        weights = size // 2 if variant.linear == "w8a8" else size
        return SimpleNamespace(files={"model.safetensors": ("a", weights), "x.json": ("b", 9)})

    return SimpleNamespace(checkpoint_of=checkpoint_of)


def w8a8(resolved: Resolved, *projections: Projection) -> Variant:
    return resolved.variants[0].model_copy(update={"name": "w8a8", "linear": "w8a8", "projections": list(projections)})


def test_packed_copies_come_beside_the_checkpoint(llama: Resolved) -> None:
    native, kernels = (need(llama, variant, GIB) for variant in llama.variants)
    assert (native.bytes, kernels.bytes) == (GIB, GIB + 2_471_493_632)


def test_of_a_w8a8_checkpoint_codes_are_packed_as_codes_and_the_head_as_bf16(llama: Resolved) -> None:
    layers = 16 * (3072 * 2048 + 2048 * 2048 + 16384 * 2048 + 2048 * 8192)
    assert need(llama, w8a8(llama, *PROJECTIONS[:-1]), GIB).bytes == GIB + layers
    assert need(llama, w8a8(llama, *PROJECTIONS), GIB).bytes == GIB + layers + 128256 * 2048 * 2


def test_each_variant_needs_the_checkpoint_that_it_loads(llama: Resolved) -> None:
    resolved: Any = SimpleNamespace(**{**vars(llama), "variants": [w8a8(llama, *PROJECTIONS)]})
    check_memory(resolved, provision(2 * GIB), int(2.5 * GIB))
    with pytest.raises(EnvironmentLacks, match="1,024 MiB checkpoint"):
        check_memory(resolved, provision(2 * GIB), 2 * GIB)


def test_a_budget_of_packed_weights_is_kept_by_what_is_needed(llama: Resolved) -> None:
    budgets = resolve(project.manifests_dir(), "llama-memory-budget", "board").variants
    needed = [need(llama, variant, GIB).packed_bytes for variant in budgets]
    assert (needed[0], needed[1], needed[4]) == (0, 0, 2_471_493_632)
    assert 0 < needed[2] <= 2_471_493_632 // 4 < needed[3] <= 2_471_493_632 // 2


def test_a_packed_w8a8_layer_takes_half_of_a_bfloat16_one(llama: Resolved) -> None:
    names = ["rvv-kernels", "rvv-w8a8"]
    kernels, w8a8 = resolve(project.manifests_dir(), "llama-one-batch", "board", variants=names).variants
    head = 128_256 * 2048 * 2
    layers = need(llama, kernels, 0).packed_bytes - head
    assert need(llama, w8a8, 0).packed_bytes == layers // 2 + head


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
