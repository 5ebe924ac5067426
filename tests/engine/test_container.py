"""What a container spec means to podman and to the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.engine.container import ContainerSpec, Mount, _write_whole, create_arguments, memory_limit_path


def test_a_container_has_no_network_unless_asked_for() -> None:
    assert create_arguments(ContainerSpec("i", ("true",)))["network_mode"] == "none"


def test_mounts_are_read_only_unless_writable(tmp_path: Path) -> None:
    mounts = (Mount(tmp_path, "/in"), Mount(tmp_path, "/out", writable=True))
    arguments = create_arguments(ContainerSpec("i", ("true",), mounts=mounts))
    assert [mount["read_only"] for mount in arguments["mounts"]] == [True, False]


def test_a_memory_limit_covers_swap_too() -> None:
    arguments = create_arguments(ContainerSpec("i", ("true",), memory_bytes=1 << 30))
    assert arguments["mem_limit"] == arguments["memswap_limit"] == 1 << 30


def test_what_is_not_set_is_not_sent() -> None:
    arguments = create_arguments(ContainerSpec("i", ("true",)))
    assert not {"mem_limit", "cpuset_cpus", "user", "working_dir", "shm_size"} & set(arguments)


def test_the_memory_limit_is_found_on_cgroup_v1() -> None:
    mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    cgroup = "5:cpu:/x\n4:memory:/libpod_parent/y\n0::/\n"
    found = memory_limit_path(cgroup, mounts)
    assert found == Path("/sys/fs/cgroup/memory/libpod_parent/y/memory.limit_in_bytes")


def test_without_a_memory_controller_there_is_no_limit_to_read() -> None:
    assert memory_limit_path("1:cpu:/x\n", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n") is None


def test_the_whole_log_replaces_what_was_followed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first")
    _write_whole(log, "first\nlast\n")
    assert log.read_text() == "first\nlast\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_where_the_disk_is_full_the_followed_log_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *arguments: object, **options: object) -> int:
        path.write_bytes(b"")  # as the real one: truncated, then nothing fits
        raise OSError(28, "No space left on device", str(path))

    log = tmp_path / "log"
    log.write_text("followed")
    monkeypatch.setattr(Path, "write_text", full)
    _write_whole(log, "whole")
    assert log.read_text() == "followed"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
