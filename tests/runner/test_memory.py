import os

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.runner import memory

STATUS = "Name:\tpython3\nVmPeak:\t  900 kB\nVmHWM:\t   532 kB\nVmRSS:\t   520 kB\nThreads:\t1\n"


def process(proc, pid, parent, status=STATUS, name="python3"):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1")
    (folder / "status").write_text(status)
    return folder


def test_status_is_in_bytes(tmp_path):
    process(tmp_path, 7, 1)
    assert memory.status(7, tmp_path) == memory.Status(rss_bytes=520 * 1024, vm_hwm_bytes=532 * 1024)


def test_a_zombie_has_no_memory_and_is_no_zero(tmp_path):
    process(tmp_path, 7, 1, status="Name:\tpython3\nState:\tZ (zombie)\n")
    assert memory.status(7, tmp_path) is None


def test_a_process_that_is_gone_is_none(tmp_path):
    assert memory.status(7, tmp_path) is None


def test_pss_that_cannot_be_read_is_none_with_the_reason(tmp_path):
    process(tmp_path, 7, 1)
    value, reason = memory.pss_bytes(7, tmp_path)
    assert value is None
    assert "smaps_rollup: No such file" in reason


def test_pss_is_in_bytes(tmp_path):
    (process(tmp_path, 7, 1) / "smaps_rollup").write_text("00 ---p [rollup]\nRss: 9 kB\nPss:  8 kB\nPss_Dirty: 1 kB\n")
    assert memory.pss_bytes(7, tmp_path) == (8 * 1024, None)


def test_the_parent_is_found_behind_any_name(tmp_path):
    process(tmp_path, 7, 1)
    process(tmp_path, 8, 7, name="a) S 99 (b")
    (tmp_path / "meminfo").write_text("")
    assert memory.parents(tmp_path) == {7: 1, 8: 7}


def test_the_tree_holds_the_root_and_everything_below_it_only():
    assert memory.descendants(7, {7: 1, 8: 7, 9: 8, 10: 1, 1: 0}) == [7, 8, 9]


@given(st.dictionaries(st.integers(2, 50), st.integers(1, 50)))
def test_a_tree_never_holds_a_process_twice(parents):
    acyclic = {pid: parent for pid, parent in parents.items() if parent < pid}
    tree = memory.descendants(1, acyclic)
    assert len(tree) == len(set(tree))
    assert set(tree) - {1} <= set(acyclic)


def test_the_sum_counts_only_those_that_were_there(tmp_path):
    process(tmp_path, 7, 1)
    process(tmp_path, 8, 7)
    seen = memory.statuses([7, 8, 9], tmp_path)
    assert memory.tree_fields(seen) == {"rss_sum_bytes": 2 * 520 * 1024, "processes": 2}


def test_a_group_holds_its_members_but_those_that_have_ended(tmp_path):
    process(tmp_path, 7, 1)
    process(tmp_path, 8, 1)
    for pid, rest in ((7, "S 1 7"), (8, "Z 7 7"), (9, "X 7 7"), (10, "R 7 10")):
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (python3) {rest} 0")
    assert memory.group(7, tmp_path) == [7]


def test_of_a_process_that_is_gone_the_event_says_so(tmp_path):
    fields = memory.event(7, "c1", "other", is_emulated=False, proc=tmp_path)
    assert (fields["rss_bytes"], fields["pss_bytes"]) == (None, None)
    assert fields["reason"] == f"{tmp_path}/7/status cannot be read"


def test_the_kernels_architecture_betrays_an_emulator(tmp_path):
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/arch").write_text("x86_64\n")
    assert memory.emulated(1, "riscv64", tmp_path)
    assert not memory.emulated(1, "x86_64", tmp_path)


def test_an_older_kernel_shows_it_in_another_process_s_executable(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1/exe").symlink_to("/usr/bin/qemu-riscv64-static")
    (tmp_path / "2").mkdir()
    (tmp_path / "2/exe").symlink_to("/usr/bin/python3.14")
    assert memory.emulated(1, "riscv64", tmp_path)
    assert not memory.emulated(2, "riscv64", tmp_path)


def test_this_process_can_be_read():
    fields = memory.own_event("loaded", "test", is_emulated=False)
    assert 1 << 20 < fields["rss_bytes"] <= fields["vm_hwm_bytes"]
    assert os.getpid() in memory.descendants(os.getpid(), memory.parents())
