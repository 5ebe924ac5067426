"""How much memory packed weights may take: trees of cgroups in a folder, and first fit by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sglang_rvv.budget import MIB, Budget, available_bytes, cgroup_room, limit_of, memory_available

GIB = 1 << 30
UNLIMITED_V1 = 0x7FFFFFFFFFFFF000


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path):
    """16 GiB, of which 8 GiB are available, and no cgroup that limits anything."""
    write(
        tmp_path, "proc/meminfo", f"MemTotal: {16 * GIB >> 10} kB\nMemAvailable:   {8 * GIB >> 10} kB\nBuffers: 0 kB\n"
    )
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    return tmp_path


def v2(root, path, most, used):
    write(root, f"sys/fs/cgroup/{path}/memory.max", f"{most}\n")
    write(root, f"sys/fs/cgroup/{path}/memory.current", f"{used}\n")


def v1(root, path, most, used):
    write(root, f"sys/fs/cgroup/memory/{path}/memory.limit_in_bytes", f"{most}\n")
    write(root, f"sys/fs/cgroup/memory/{path}/memory.usage_in_bytes", f"{used}\n")


def test_without_a_limit_it_is_the_available_memory_of_the_machine(machine):
    assert memory_available(machine) == available_bytes(machine) == 8 * GIB


def test_the_limit_of_a_cgroup_counts_less_what_is_used(machine):
    write(machine, "proc/self/cgroup", "0::/a/b\n")
    v2(machine, "a/b", 4 * GIB, GIB)
    assert available_bytes(machine) == 3 * GIB


def test_every_cgroup_above_counts_too_and_the_smallest_wins(machine):
    write(machine, "proc/self/cgroup", "0::/a/b\n")
    v2(machine, "a/b", "max", GIB)
    v2(machine, "a", 3 * GIB, 2 * GIB)
    assert list(cgroup_room(machine)) == [GIB]
    assert available_bytes(machine) == GIB


def test_a_cgroup_that_is_full_leaves_nothing_not_less(machine):
    write(machine, "proc/self/cgroup", "0::/a\n")
    v2(machine, "a", GIB, GIB + 4096)
    assert available_bytes(machine) == 0


def test_more_than_the_machine_has_is_no_more(machine):
    write(machine, "proc/self/cgroup", "0::/a\n")
    v2(machine, "a", 64 * GIB, 0)
    assert available_bytes(machine) == 8 * GIB


def test_in_a_namespace_of_its_own_a_container_sees_its_cgroup_at_the_mount(machine):
    """`0::/` in the container, whatever the host calls it; also where the path of the host is told."""
    v2(machine, ".", 2 * GIB, GIB)
    assert available_bytes(machine) == GIB
    write(machine, "proc/self/cgroup", "0::/machine.slice/libpod-1.scope\n")
    assert available_bytes(machine) == GIB


@pytest.mark.parametrize("controllers", ["memory", "cpu,memory"])
def test_version_1_has_other_names(machine, controllers):
    lines = f"12:pids:/x\n7:{controllers}:/docker/1\n1:name=systemd:/x\n0::/\n"
    write(machine, "proc/self/cgroup", lines)
    v1(machine, "docker/1", 5 * GIB, 2 * GIB)
    v1(machine, "docker", UNLIMITED_V1, 3 * GIB)
    assert min(cgroup_room(machine)) == 3 * GIB
    assert available_bytes(machine) == 3 * GIB


def test_version_1_without_a_limit_is_the_machine(machine):
    write(machine, "proc/self/cgroup", "7:memory:/docker/1\n")
    v1(machine, "docker/1", UNLIMITED_V1, 2 * GIB)
    assert available_bytes(machine) == 8 * GIB


def test_a_controller_that_only_sounds_like_memory_is_none(machine):
    write(machine, "proc/self/cgroup", "7:name=memory:/docker/1\n")
    v1(machine, "docker/1", GIB, 0)
    assert available_bytes(machine) == 8 * GIB


def test_a_path_with_a_colon_and_files_that_make_no_sense_are_survived(machine):
    write(machine, "proc/self/cgroup", "0::/a:b\n")
    v2(machine, "a:b", 2 * GIB, "many")
    v2(machine, ".", 4 * GIB, GIB)
    assert available_bytes(machine) == 3 * GIB


def test_a_path_that_leads_out_of_the_mount_is_not_followed(machine):
    """What a process sees of a cgroup above its own namespace."""
    write(machine, "proc/self/cgroup", "0::/../../other\n")
    write(machine, "other/memory.max", "1\n")
    write(machine, "other/memory.current", "0\n")
    assert available_bytes(machine) == 8 * GIB


def test_without_cgroups_it_is_the_machine(machine):
    (machine / "proc/self/cgroup").unlink()
    assert available_bytes(machine) == 8 * GIB


def test_a_kernel_without_memavailable_is_an_error_that_says_so(machine):
    write(machine, "proc/meminfo", "MemTotal: 1 kB\n")
    with pytest.raises(OSError, match="MemAvailable"):
        available_bytes(machine)


def test_by_default_a_quarter_stays_free():
    assert limit_of(None, 8 * GIB) == 6 * GIB


@pytest.mark.parametrize(("asked", "limit"), [(0.0, 0), (1.0, MIB), (0.5, MIB // 2), (42.0, 42 * MIB)])
def test_what_was_asked_for_is_taken_at_its_word(asked, limit):
    assert limit_of(asked, 8 * GIB) == limit


@given(st.integers(0, 1 << 48))
def test_a_budget_of_whole_bytes_survives_being_told_in_mib(limit):
    """The harness asks for a share in bytes; MiB as a float hold them exactly."""
    assert limit_of(limit / MIB, 0) == limit


def test_one_that_does_not_fit_is_left_out_and_the_next_is_tried():
    budget = Budget(100)
    assert [budget.take(name, cost) for name, cost in (("a", 60), ("b", 50), ("c", 40), ("d", 1))] == [
        True, False, True, False,
    ]  # fmt: skip
    assert budget.packed == {"a": 60, "c": 40}
    assert budget.left_out == {"b": 50, "d": 1}
    assert budget.taken_bytes == budget.limit_bytes == 100


@given(st.integers(0, 500), st.lists(st.integers(0, 200), max_size=12))
def test_what_is_taken_never_exceeds_the_limit_and_nothing_that_fitted_is_left_out(limit, costs):
    budget = Budget(limit)
    left = limit
    for index, cost in enumerate(costs):
        assert budget.take(str(index), cost) == (cost <= left)
        left -= cost if cost <= left else 0
    assert budget.taken_bytes == sum(budget.packed.values()) == limit - left <= limit
    assert list(budget.packed) == sorted(budget.packed, key=int)
    assert {**budget.packed, **budget.left_out} == {str(index): cost for index, cost in enumerate(costs)}
