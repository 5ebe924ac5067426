"""What a container spec means to podman and to the kernel."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench.engine.container import (
    ContainerSpec,
    Mount,
    _follow,
    _write_whole,
    create_arguments,
    memory_limit_path,
    run_container,
)
from rvvbench.errors import EnvironmentLacks


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


class Container:
    """What run_container asks of podman-py's container; says in `told` what happens in which order."""

    def __init__(self, pid: int, waiting: BaseException | None = None, *, ctrl_c: str = "") -> None:
        self.told: list[str] = []
        self._pid = pid
        self._waiting = waiting
        self._ctrl_c = ctrl_c

    def create(self, **_: Any) -> Container:
        if self._ctrl_c == "creating":
            signal.raise_signal(signal.SIGINT)
        self.told.append("created")
        return self

    def start(self) -> None:
        self.told.append("started")

    def inspect(self) -> dict[str, Any]:
        return {"State": {"Pid": self._pid, "ExitCode": 0}}

    def wait(self, timeout: float | None) -> None:
        self.told.append("waited")
        if self._waiting is not None:
            raise self._waiting

    def logs(self, **_: Any) -> list[bytes]:
        return [b""]

    def remove(self, **_: Any) -> None:
        if self._ctrl_c == "removing":
            signal.raise_signal(signal.SIGINT)
        self.told.append("removed")

    def run(self) -> None:
        @contextmanager
        def observe(pid: int) -> Iterator[None]:
            self.told.append(f"watching {pid}")
            try:
                yield
            finally:
                self.told.append("watched")

        engine: Any = SimpleNamespace(client=SimpleNamespace(containers=self))
        run_container(engine, ContainerSpec("i", ("true",)), observe=observe)


def test_a_container_is_watched_from_its_start_until_it_has_ended() -> None:
    container = Container(42)
    container.run()
    assert container.told == ["created", "started", "watching 42", "waited", "watched", "removed"]


def test_a_container_that_has_ended_already_is_not_watched() -> None:
    container = Container(0)
    container.run()
    assert container.told == ["created", "started", "waited", "removed"]


def test_watching_ends_before_the_container_is_removed_when_ctrl_c_comes() -> None:
    container = Container(42, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        container.run()
    assert container.told == ["created", "started", "watching 42", "waited", "watched", "removed"]


def test_ctrl_c_while_podman_creates_a_container_leaves_none() -> None:
    container = Container(42, ctrl_c="creating")
    with pytest.raises(KeyboardInterrupt):
        container.run()
    assert container.told == ["created", "removed"]


def test_ctrl_c_while_a_container_is_removed_does_not_keep_it() -> None:
    container = Container(42, ctrl_c="removing")
    container.run()
    assert container.told[-1] == "removed"


def test_a_log_that_cannot_be_written_is_told_with_what_mends_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentLacks) as caught:
        _follow(Container(42), tmp_path / "file" / "logs" / "log")
    assert "RVVBENCH_HOME" in str(caught.value.mend)
