from __future__ import annotations

from pathlib import Path
from typing import Any

from rvvbench.observe.cgroup_memory import CgroupMemory, memory_group, read_cgroup_memory

V2 = "sys/fs/cgroup/libpod-1/"
V1 = "sys/fs/cgroup/memory/libpod-1/"


def v2(board: Any) -> None:
    board.write("proc/self/mounts", f"cgroup2 {board.root}/sys/fs/cgroup cgroup2 rw 0 0\n")
    board.write("proc/self/cgroup", "0::/user.slice\n")
    board.write("proc/10/cgroup", "0::/libpod-1\n")
    board.write(V2 + "memory.max", "max\n")
    board.write(V2 + "memory.current", "5000\n")
    board.write(V2 + "memory.peak", "9000\n")
    board.write(V2 + "memory.stat", "anon 3000\nfile 1500\nkernel 500\nshmem 200\nfile_mapped 7\n")


def v1(board: Any) -> None:
    board.write("proc/self/mounts", f"cgroup {board.root}/sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    board.write("proc/self/cgroup", "4:memory:/other\n0::/\n")
    board.write("proc/10/cgroup", "4:memory:/libpod-1\n0::/\n")
    board.write(V1 + "memory.limit_in_bytes", "9223372036854771712\n")
    board.write(V1 + "memory.usage_in_bytes", "5000\n")
    board.write(V1 + "memory.max_usage_in_bytes", "9000\n")
    board.write(V1 + "memory.stat", "cache 1\nrss 2\nshmem 3\ntotal_cache 1500\ntotal_rss 3000\ntotal_shmem 200\n")


WHOLE = CgroupMemory(9000, 5000, anonymous_bytes=3000, file_bytes=1500, shared_bytes=200)


def test_v2_tells_the_peak_and_what_is_there_now(board: Any) -> None:
    v2(board)
    folder, _ = memory_group(10, board.roots)
    assert folder == board.root / V2
    assert read_cgroup_memory(folder) == (WHOLE, {})


def test_v1_tells_the_same_with_the_groups_below_included(board: Any) -> None:
    v1(board)
    folder, _ = memory_group(10, board.roots)
    assert folder == board.root / V1
    assert read_cgroup_memory(folder) == (WHOLE, {})


def test_a_kernel_without_memory_peak_gives_null_and_the_rest(board: Any) -> None:
    v2(board)
    (board.root / V2 / "memory.peak").unlink()
    memory, reasons = read_cgroup_memory(board.root / V2)
    assert (memory.peak_bytes, memory.anonymous_bytes) == (None, 3000)
    assert reasons.keys() == {"peak_bytes"}
    assert "5.19" in reasons["peak_bytes"]


def test_without_a_controller_there_is_a_reason(board: Any) -> None:
    v2(board)
    (board.root / V2 / "memory.max").unlink()
    assert memory_group(10, board.roots)[0] is None
    assert "no memory controller" in memory_group(10, board.roots)[1]


def test_a_process_in_the_harnesss_own_group_has_no_figures_of_its_own(board: Any) -> None:
    v2(board)
    board.write("proc/self/cgroup", "0::/libpod-1\n")
    folder, reason = memory_group(10, board.roots)
    assert folder is None
    assert "harness" in reason


def test_a_process_that_is_gone_has_a_reason(board: Any) -> None:
    assert memory_group(10, board.roots) == (None, "the process's cgroup cannot be read")


def test_a_group_that_tells_nothing_has_a_reason_for_each_figure(tmp_path: Path) -> None:
    memory, reasons = read_cgroup_memory(tmp_path)
    assert memory == CgroupMemory(None, None, None, None, None)
    assert reasons.keys() == memory.plain().keys()
