"""The service and its containers, on the podman of this machine. Needs podman and root, and no network."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import toy_image

from rvvbench.engine.container import ContainerSpec, run_container
from rvvbench.engine.owner import RUN_LABEL, decode, owner_of
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks

pytestmark = [
    pytest.mark.container,
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("podman") is None, reason="needs root and podman"),
]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def engine(state: Path) -> Iterator[Engine]:
    with Engine(state) as running:
        toy_image.load(running, state)
        yield running
        running.client.images.remove(toy_image.NAME, force=True)


def containers_of(engine: Engine, run_id: str) -> list[str]:
    return [found.id for found in engine.client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={run_id}"})]


def until(done: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@contextlib.contextmanager
def harness(state: Path, run_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another harness, which runs a container that never ends."""
    program = textwrap.dedent(
        f"""
        from pathlib import Path
        from rvvbench.engine.container import ContainerSpec, run_container
        from rvvbench.engine.service import Engine
        with Engine(Path({str(state)!r})) as engine:
            run_container(engine, ContainerSpec({toy_image.NAME!r}, ("/wait",), run_id={run_id!r}))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_timeout_ends_a_container_and_its_output_is_kept(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = ContainerSpec(toy_image.NAME, ("/wait",), timeout_s=2.0, log_path=log, run_id="timeout")
    ended = run_container(engine, spec)
    assert (ended.timed_out, ended.output, log.read_text()) == (True, "up\n", "up\n")
    assert containers_of(engine, "timeout") == []


def test_a_memory_limit_is_enforced_or_the_reason_is_known(engine: Engine) -> None:
    spec = ContainerSpec(toy_image.NAME, ("/wait",), timeout_s=2.0, memory_bytes=64 << 20)
    memory = run_container(engine, spec).memory
    assert memory is not None
    assert (memory.limit_bytes is None) != (memory.reason is None)
    assert memory.limit_bytes in (None, 64 << 20)


def test_a_missing_image_is_told(engine: Engine) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        run_container(engine, ContainerSpec("localhost/rvvbench/none:1", ("/wait",)))
    assert caught.value.where == "localhost/rvvbench/none:1"


def test_a_harness_that_was_killed_leaves_nothing_after_a_sweep(engine: Engine, state: Path) -> None:
    with harness(state, "killed") as process:
        until(lambda: bool(containers_of(engine, "killed")))
        services = set((state / "engine").iterdir())
        assert len(services) == 2
        assert engine.sweep() == [], "its owner is alive"
        process.kill()
        process.wait()
        assert containers_of(engine, "killed") != []
        assert len(engine.sweep()) == 1
    assert containers_of(engine, "killed") == []
    assert len(set((state / "engine").iterdir())) == 1, "our own service is left alone"
    assert engine.client.ping()


@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_leaves_nothing_however_impatient(engine: Engine, state: Path, times: int) -> None:
    run_id = f"interrupted-{times}"
    with harness(state, run_id) as process:
        until(lambda: bool(containers_of(engine, run_id)))
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.15)
        assert process.wait(timeout=30) != 0
    assert containers_of(engine, run_id) == []
    assert len(set((state / "engine").iterdir())) == 1


def test_the_service_of_a_harness_that_was_killed_ends_by_itself(engine: Engine, state: Path) -> None:
    with harness(state, "alone") as process:
        until(lambda: bool(containers_of(engine, "alone")))
        (home,) = (state / "engine").glob(f"{process.pid}-*")
        service = decode((home / "service").read_text())
        assert service is not None and owner_of(service.pid) == service
        process.kill()
        process.wait()
        until(lambda: owner_of(service.pid) != service, timeout_s=20.0)
    engine.sweep()


@pytest.mark.parametrize("name", ["a b", "a%20b", "ä#?"])
def test_a_home_may_have_any_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    home = tmp_path_factory.mktemp("home") / name
    with Engine(home) as running:
        assert running.client.ping()
        assert running.private is False or str(running.socket).startswith(str(home))
