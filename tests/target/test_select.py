from __future__ import annotations

import pytest

from rvvbench.errors import EnvironmentLacks, UsageError
from rvvbench.manifest.models import Board, Omp
from rvvbench.target.select import environment, select


def test_auto_is_the_board_on_riscv64_with_vectors_and_emulation_elsewhere() -> None:
    assert select("auto", machine="riscv64", has_vector=True).kind == "board"
    assert select("auto", machine="x86_64", has_vector=False).kind == "emulated"
    with pytest.raises(EnvironmentLacks, match="vector"):
        select("auto", machine="riscv64", has_vector=False)


def test_a_board_run_elsewhere_exits_with_3_and_says_why() -> None:
    with pytest.raises(EnvironmentLacks, match="it is x86_64") as caught:
        select("board", machine="x86_64", has_vector=False)
    assert caught.value.exit_code == 3


def test_a_riscv64_machine_without_vectors_is_no_board() -> None:
    with pytest.raises(EnvironmentLacks, match="vector"):
        select("board", machine="riscv64", has_vector=False)


def test_an_unknown_target_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        select("bord", machine="x86_64", has_vector=False)


def test_only_emulated_runs_get_a_qemu_cpu() -> None:
    board = Board(
        schema_="rvvbench/board/1",
        name="b",
        title="b",
        arch="riscv64",
        threads=3,
        omp=Omp(places="{0}", proc_bind="close"),
        qemu_cpu="rv64,v=true",
    )
    emulated = environment(select("emulated", machine="x86_64", has_vector=False), board)
    native = environment(select("board", machine="riscv64", has_vector=True), board)
    assert emulated["QEMU_CPU"] == "rv64,v=true"
    assert "QEMU_CPU" not in native
    assert native["OMP_NUM_THREADS"] == "3"
    assert (native["OMP_PLACES"], native["OMP_PROC_BIND"]) == ("{0}", "close")
