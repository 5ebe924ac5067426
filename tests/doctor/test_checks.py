from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rvvbench.doctor.check import Check
from rvvbench.doctor.checks import run_checks
from rvvbench.doctor.facts import Facts, Room, parse_version, room
from rvvbench.doctor.verdict import Verdict, verdicts
from rvvbench.engine.binfmt import Emulator, Registration
from rvvbench.engine.facts import HostFacts
from rvvbench.observe.conditions import Conditions, Cooling

X86_IMAGES = frozenset({("toolchain", "amd64"), ("runtime", "amd64"), ("runtime", "riscv64")})


def host(**changes: Any) -> HostFacts:
    facts = HostFacts(
        "x86_64", True, "/usr/bin/podman", frozenset({"crun"}), "v2", True, 1048576, 4194304, True, 1048576, 4194304
    )
    return replace(facts, **changes)


def machine(**changes: Any) -> dict[str, Any]:
    facts = {
        "arch": "x86_64",
        "board": None,
        "cpu_model": "a CPU",
        "vector": None,
        "memory_bytes": 16_000_000_000,
        "swap_bytes": 0,
        "governors": None,
        "passive_trip_millicelsius": None,
        "reasons": {"governors": "no cpufreq", "swap_bytes": "no meminfo"},
    }
    return facts | changes


def conditions(**changes: Any) -> Conditions:
    now = Conditions(0.0, 0.0, None, None, None, None, None, None, 0, 0, 12_000_000_000)
    return replace(
        now, **{"reasons": {"temperature_millicelsius": "no zone", "memory_available_bytes": "no meminfo"}} | changes
    )


READY = Emulator("riscv64", Registration(True, "/usr/bin/qemu-riscv64", "POF"), (10, 0, 2), True, None)
NO_QEMU = Emulator("riscv64", None, None, None, "QEMU user emulation is not installed")

PC = Facts(
    host=host(),
    machine=machine(),
    conditions=conditions(),
    python=(3, 11, 2),
    podman_version=(4, 3, 1),
    mmdebstrap="/usr/bin/mmdebstrap",
    arch_test="/usr/bin/arch-test",
    emulator=READY,
    state=Room(Path("/state"), 100_000_000_000, 1),
    storage=Room(Path("/storage"), 100_000_000_000, 1),
    images=X86_IMAGES,
    images_reason=None,
    vlen_bits=None,
    vlen_reason="no RISC-V processor: x86_64",
    subordinate_ids=None,
)

BOARD = replace(
    PC,
    host=host(machine="riscv64"),
    machine=machine(
        arch="riscv64",
        board="Banana Pi BPI-F3",
        vector=True,
        governors={"policy0": "performance"},
        passive_trip_millicelsius={"thermal_zone0": 75000},
    ),
    conditions=conditions(
        temperature_millicelsius={"thermal_zone0": 50000}, cooling={"cooling_device0": Cooling("cpufreq-cpu0", 0, 4)}
    ),
    emulator=NO_QEMU,
    images=frozenset({("toolchain", "riscv64"), ("runtime", "riscv64")}),
    vlen_bits=256,
    vlen_reason=None,
)


def check(facts: Facts, name: str) -> Check:
    (found,) = (check for check in run_checks(facts) if check.id == name)
    return found


def verdict(facts: Facts, target: Any) -> Verdict:
    return verdicts(run_checks(facts))[target]


def test_a_pc_with_everything_runs_emulated_and_host_without_a_word() -> None:
    assert verdict(PC, "emulated") == Verdict(True, None, ())
    assert verdict(PC, "host") == Verdict(True, None, ())


def test_a_pc_is_no_board_and_says_so() -> None:
    found = verdict(PC, "board")
    assert not found.can_run
    assert found.reason == "riscv64 with V: this machine is x86_64"


def test_a_board_with_everything_runs_board_and_host_but_does_not_emulate_itself() -> None:
    assert verdict(BOARD, "board") == Verdict(True, None, ())
    assert verdict(BOARD, "host") == Verdict(True, None, ())
    assert verdict(BOARD, "emulated").reason == "foreign machine: this is riscv64 itself"


def test_every_missing_thing_has_a_reason_and_a_mend() -> None:
    nothing = replace(
        PC,
        host=host(podman=None, runtimes=frozenset()),
        python=(3, 10, 1),
        podman_version=None,
        mmdebstrap=None,
        arch_test=None,
        emulator=NO_QEMU,
        images=None,
        images_reason="podman is not installed",
        state=Room(Path("/state"), 1, 1),
        subordinate_ids=False,
    )
    missing = {check.id: check for check in run_checks(nothing) if check.status == "missing"}
    assert missing.keys() == {
        *("python", "podman", "runtime", "rootless", "qemu", "binfmt", "mmdebstrap", "arch-test", "disk", "board"),
        *("image-toolchain-amd64", "image-runtime-amd64", "image-runtime-riscv64"),
    }
    assert all(check.mend and check.why and check.found for check in missing.values())
    assert not any(found.can_run for found in verdicts(list(missing.values())).values())


def test_ids_are_unique() -> None:
    for facts in (PC, BOARD):
        ids = [check.id for check in run_checks(facts)]
        assert len(ids) == len(set(ids))


def test_without_qemu_only_emulated_runs_are_out() -> None:
    facts = replace(PC, emulator=NO_QEMU)
    assert not verdict(facts, "emulated").can_run
    assert verdict(facts, "emulated").mend == ("make setup",)
    assert verdict(facts, "host").can_run


def test_a_qemu_without_zvfh_is_missing_although_it_is_installed() -> None:
    old = replace(READY, version=(7, 2, 0), knows_rvv_zvfh=False)
    found = check(replace(PC, emulator=old), "qemu")
    assert (found.status, found.found) == ("missing", "7.2.0, cannot run RVV 1.0 and zvfh")


def test_a_registration_without_f_does_not_reach_into_containers() -> None:
    entry = Registration(True, "/usr/bin/qemu-riscv64", "OC")
    assert check(replace(PC, emulator=replace(READY, registration=entry)), "binfmt").status == "missing"


def test_a_disabled_registration_is_missing() -> None:
    entry = Registration(False, "/usr/bin/qemu-riscv64", "POF")
    found = check(replace(PC, emulator=replace(READY, registration=entry)), "binfmt")
    assert found.status == "missing"
    assert found.found.endswith("disabled")


@pytest.mark.parametrize("version", [(4, 2, 9), (3, 4), None])
def test_podman_before_4_3_is_missing(version: tuple[int, ...] | None) -> None:
    assert check(replace(PC, podman_version=version), "podman").status == "missing"


@pytest.mark.parametrize("version", [(4, 3), (4, 10, 0), (5, 0)])
def test_podman_from_4_3_on_is_good(version: tuple[int, ...]) -> None:
    assert check(replace(PC, podman_version=version), "podman").status == "ok"


def test_crun_alone_cannot_run_on_hybrid_cgroups() -> None:
    found = check(replace(PC, host=host(cgroup_layout="hybrid")), "runtime")
    assert found.status == "missing"
    assert found.mend == "apt-get install runc"


def test_runc_beside_crun_runs_on_hybrid_cgroups() -> None:
    facts = host(cgroup_layout="hybrid", runtimes=frozenset({"crun", "runc"}), systemd=False)
    found = check(replace(PC, host=facts), "runtime")
    assert found.status == "ok"
    assert "runc" in found.found


def test_low_limits_are_coped_with_and_said() -> None:
    facts = host(hard_nofile=1024, hard_nproc=1024, may_raise_limits=False)
    found = check(replace(PC, host=facts), "limits")
    assert (found.status, found.found) == ("ok", "containers get nofile=1024, nproc=1024")


def test_limits_are_judged_even_where_podman_is_missing() -> None:
    assert check(replace(PC, host=host(podman=None, runtimes=frozenset())), "limits").status == "ok"


def test_what_builds_images_is_needed_by_the_targets_whose_images_are_missing() -> None:
    facts = replace(PC, mmdebstrap=None, images=X86_IMAGES - {("runtime", "amd64")})
    found = check(facts, "mmdebstrap")
    assert (found.status, found.needs_for) == ("missing", ("host",))
    assert verdict(facts, "emulated").can_run


def test_what_builds_images_is_not_needed_once_they_are_built() -> None:
    assert check(replace(PC, mmdebstrap=None), "mmdebstrap").status == "not-needed"


def test_an_image_that_is_not_built_names_the_command_that_builds_it() -> None:
    facts = replace(PC, images=X86_IMAGES - {("runtime", "riscv64")})
    found = check(facts, "image-runtime-riscv64")
    assert (found.status, found.mend) == ("missing", "rvvbench image build runtime --arch riscv64")
    assert not verdict(facts, "emulated").can_run
    assert verdict(facts, "host").can_run


def test_one_file_system_must_hold_archives_and_storage_together() -> None:
    eight = replace(
        PC, images=frozenset(), state=Room(Path("/s"), 8_000_000_000, 1), storage=Room(Path("/p"), 8_000_000_000, 1)
    )
    assert check(eight, "disk").status == "missing"
    two_disks = replace(eight, storage=Room(Path("/p"), 8_000_000_000, 2))
    assert check(two_disks, "disk").status == "ok"


def test_little_room_only_warns_once_the_images_are_built() -> None:
    full = replace(PC, state=Room(Path("/s"), 1_000_000_000, 1))
    assert check(full, "disk").status == "warn"
    assert verdict(full, "host").can_run


def test_a_riscv64_machine_without_v_is_no_board() -> None:
    facts = replace(BOARD, machine=BOARD.machine | {"vector": False})
    assert not verdict(facts, "board").can_run
    assert verdict(facts, "host").can_run


def test_a_governor_other_than_performance_warns_and_names_the_command() -> None:
    facts = replace(BOARD, machine=BOARD.machine | {"governors": {"policy0": "performance", "policy4": "schedutil"}})
    found = check(facts, "governor")
    assert (found.status, found.found) == ("warn", "policy0 performance, policy4 schedutil")
    assert verdict(facts, "board") == Verdict(True, f"but frequency governor: {found.found}", (found.mend or "",))


def test_a_governor_that_cannot_be_read_warns_on_a_board() -> None:
    facts = replace(BOARD, machine=BOARD.machine | {"governors": None})
    assert check(facts, "governor").status == "warn"


@pytest.mark.parametrize(("millicelsius", "status"), [(65000, "ok"), (65001, "warn"), (80000, "warn")])
def test_a_temperature_near_the_trip_point_warns(millicelsius: int, status: str) -> None:
    now = replace(BOARD.conditions, temperature_millicelsius={"thermal_zone0": millicelsius})
    assert check(replace(BOARD, conditions=now), "temperature").status == status


def test_a_cpu_that_is_slowed_down_now_warns_at_any_temperature() -> None:
    now = replace(BOARD.conditions, cooling={"cooling_device0": Cooling("cpufreq-cpu0", 1, 4)})
    assert check(replace(BOARD, conditions=now), "temperature").status == "warn"


def test_a_fan_that_turns_is_no_reason_to_warn() -> None:
    now = replace(BOARD.conditions, cooling={"cooling_device1": Cooling("pwm-fan", 3, 4)})
    assert check(replace(BOARD, conditions=now), "temperature").status == "ok"


def test_swap_warns_on_a_board_only() -> None:
    assert check(replace(BOARD, machine=BOARD.machine | {"swap_bytes": 2**30}), "swap").status == "warn"
    assert check(replace(PC, machine=PC.machine | {"swap_bytes": 2**30}), "swap").status == "ok"


def test_board_questions_are_not_asked_of_a_pc() -> None:
    assert {check(PC, name).status for name in ("vlen", "governor", "temperature")} == {"not-needed"}


def test_an_architecture_without_recipe_runs_nothing() -> None:
    facts = replace(PC, machine=machine(arch="ppc64le"))
    assert not any(found.can_run for found in verdicts(run_checks(facts)).values())


@pytest.mark.parametrize(
    ("text", "version"),
    [("podman version 4.3.1\n", (4, 3, 1)), ("podman version 5.0.0-dev", (5, 0, 0)), ("", None)],
)
def test_versions_are_read_from_what_programs_say(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_room_is_measured_at_the_nearest_parent_that_exists(tmp_path: Path) -> None:
    found = room(tmp_path / "not" / "yet")
    assert found.path == tmp_path / "not" / "yet"
    assert found.device == tmp_path.stat().st_dev
    assert found.free_bytes > 0
