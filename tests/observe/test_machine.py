from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.machine import HWCAP_V, cpu_count, machine_facts


def facts_of(board: Any, **options: Any) -> dict[str, Any]:
    return machine_facts(board.roots, machine="riscv64", hwcap=lambda: HWCAP_V, **options)


def test_a_board_tells_everything(board: Any) -> None:
    assert facts_of(board) == {
        "kernel": "6.6.63",
        "arch": "riscv64",
        "distribution": "Debian GNU/Linux 13 (trixie)",
        "board": "Banana Pi BPI-F3",
        "cpu_model": "Spacemit(R) X60",
        "cores": 8,
        "isa": "rv64imafdcv_zvfh",
        "vector": True,
        "memory_bytes": 16266240 * 1024,
        "swap_bytes": 0,
        "governors": {"policy0": "performance", "policy4": "schedutil"},
        "max_frequency_khz": {"policy0": 1600000, "policy4": 1600000},
        "passive_trip_millicelsius": {"thermal_zone0": 75000},
        "cgroup_layout": "v2",
        "reasons": {},
    }


def test_what_cannot_be_known_is_null_and_has_a_reason(bare: Roots) -> None:
    facts = machine_facts(bare, machine="x86_64")
    unknown = {name for name, value in facts.items() if value is None}
    assert unknown == facts.keys() - {"arch", "reasons"}
    assert facts["reasons"].keys() == unknown
    assert all(facts["reasons"].values())


def test_the_kernel_can_keep_v_from_programs_although_cpuinfo_lists_it(board: Any) -> None:
    assert machine_facts(board.roots, machine="riscv64", hwcap=lambda: 0)["vector"] is False


def test_qemus_own_cpuinfo_is_not_evidence(board: Any) -> None:
    board.write("proc/cpuinfo", "processor\t: 0\nisa\t\t: rv64imafdcbvh_zvfh\nmmu\t\t: sv48\nuarch\t\t: qemu\n")
    facts = facts_of(board)
    assert facts["isa"] is None
    assert "QEMU" in facts["reasons"]["isa"]


def test_another_architecture_has_no_isa_string_even_when_cpuinfo_shows_one(board: Any) -> None:
    facts = machine_facts(board.roots, machine="x86_64")
    assert facts["isa"] is None
    assert facts["vector"] is None


def test_facts_of_this_very_machine_are_json() -> None:
    assert json.loads(json.dumps(machine_facts())) == machine_facts()


@pytest.mark.parametrize(("cpus", "count"), [("0", 1), ("0-7", 8), ("0-3,6", 5), ("1,3,5", 3)])
def test_cpu_lists_are_in_the_kernels_notation(cpus: str, count: int) -> None:
    assert cpu_count(cpus) == count


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_cpu_list_counts_each_cpu_once(cpus: set[int]) -> None:
    assert cpu_count(",".join(map(str, sorted(cpus)))) == len(cpus)
