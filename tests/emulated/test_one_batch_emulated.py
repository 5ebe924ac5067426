"""The main job on the riscv64 image under QEMU."""

from __future__ import annotations

import pytest

from tests.containers.driver import newest_record, rvvbench, token_ids

pytestmark = pytest.mark.emulated


def test_riscv64_and_this_machine_choose_the_same_tokens_in_both_variants() -> None:
    outcome = rvvbench("run", "llama-one-batch", "--target", "emulated", timeout_s=1500)
    assert outcome.code == 0, outcome.err
    assert "EMULATED" in outcome.out
    emulated = newest_record()
    assert emulated.emulated
    assert emulated.image.arch == "riscv64"
    assert emulated.valid
    seen = [token_ids(emulated, row.name) for row in emulated.rows]
    assert len(seen) == 2
    assert seen[0] == seen[1]
    environment = [e for e in emulated.rows[1].processes[0].events if e["event"] == "environment"][-1]
    assert environment["vlen_bits"] == 256

    assert rvvbench("run", "llama-one-batch", "--target", "host", "--repeat", "1").code == 0
    host = newest_record()
    assert token_ids(host, "torch-native/none") == seen[0]
    assert token_ids(host, "rvv-kernels/none") == seen[0]
