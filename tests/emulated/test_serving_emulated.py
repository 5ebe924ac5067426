"""Serving on the riscv64 image under QEMU: the RVV kernels behind a real server, at one row and at two."""

from __future__ import annotations

import pytest

from rvvbench.record.attestation import of_load
from tests.containers.driver import newest_record, rvvbench

pytestmark = pytest.mark.emulated


def test_a_server_on_riscv64_runs_the_rvv_kernels_with_two_rows_at_concurrency_2() -> None:
    # Short ones: under QEMU a pass of 64 tokens takes most of a minute.
    lengths = ("--set", "workload.input_len=16", "--set", "workload.output_len=4")
    options = ("--variant", "rvv-kernels", "--concurrency", "1,2", "--requests", "2", *lengths)
    outcome = rvvbench("serve", "llama-serve", "--target", "emulated", *options, timeout_s=1500)
    assert outcome.code == 0, outcome.err
    assert "EMULATED" in outcome.out
    record = newest_record()
    assert record.valid
    assert [row.name for row in record.rows] == ["rvv-kernels/none/c1", "rvv-kernels/none/c2"]
    row = record.rows[1]
    shown = of_load(row.processes[0].events, "c2")
    rows = {line["m"] for line in shown["routing"] if line["projection"] == "o_proj" and line["path"] == "packed"}
    assert 2 in rows
    assert all(name.endswith("_rvv") for op in shown["ops"].values() for name in op["kernels"])
