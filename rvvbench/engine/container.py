"""Running one command in one container, and always removing it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rvvbench.engine.interrupt import held_back, uninterrupted
from rvvbench.engine.owner import labels
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, RvvbenchError
from rvvbench.project import writing

KILLED = 137


@dataclass(frozen=True)
class Mount:
    """A bind mount. The host path must exist."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class ContainerSpec:
    """One command in one container.

    `memory_bytes` limits memory and swap together; `cpuset` is a list in the kernel's notation ("0-3,6"). `network` is
    "none" unless the command fetches something, then "host". `timeout_s` kills the container; `run_id` labels it.
    `log_path` receives stdout and stderr as they come.
    """

    image: str
    command: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    network: Literal["none", "host"] = "none"
    workdir: str | None = None
    user: str | None = None
    memory_bytes: int | None = None
    cpuset: str | None = None
    log_path: Path | None = None
    timeout_s: float | None = None
    run_id: str | None = None
    read_only: bool = False
    shm_bytes: int | None = None


@dataclass(frozen=True)
class Enforcement:
    """Whether the kernel holds the memory limit: the limit in bytes, or None and why it is not known to hold one."""

    limit_bytes: int | None
    reason: str | None


@dataclass(frozen=True)
class ContainerExit:
    """How a container ended. `exit_code` is 137 after a kill by signal 9.

    `oom_killed` is None where a container with a memory limit was killed and podman cannot say by whom (cgroup v1).
    """

    exit_code: int
    seconds: float
    timed_out: bool
    oom_killed: bool | None
    memory: Enforcement | None
    output: str


Observe = Callable[[int], contextlib.AbstractContextManager[None]]
"""Called with the pid, on this host, of a container's first process; entered while the container runs."""


def run_container(engine: Engine, spec: ContainerSpec, *, observe: Observe | None = None) -> ContainerExit:
    """Run to the end and remove. Whatever happens (an error, Ctrl-C, the timeout), the container is gone afterwards.

    `observe` is entered after the start, unless the container has ended by then, and left when it has ended, or on the
    way out of an error, while the container is still there.

    Raises EnvironmentLacks where the image is missing or the runtime cannot start it.
    """
    with created(engine, spec) as container:
        started = time.monotonic()
        _start(container, spec)
        memory = None if spec.memory_bytes is None else memory_enforcement(container, spec.memory_bytes)
        follower = _follow(container, spec.log_path)
        with _observed(container, observe):
            timed_out = not _wait(container, spec.timeout_s)
            if timed_out:
                with contextlib.suppress(Exception):
                    container.kill("SIGKILL")
                _wait(container, 30.0)
        seconds = time.monotonic() - started
        if follower is not None:
            follower.join(timeout=5.0)
        output = b"".join(container.logs(stdout=True, stderr=True)).decode("utf-8", errors="replace")
        if spec.log_path is not None:
            _write_whole(spec.log_path, output)
        state = container.inspect()["State"]
        return ContainerExit(
            exit_code=int(state["ExitCode"]),
            seconds=seconds,
            timed_out=timed_out,
            oom_killed=_oom_killed(state, spec, timed_out),
            memory=memory,
            output=output,
        )


@contextmanager
def created(engine: Engine, spec: ContainerSpec) -> Iterator[Any]:
    """A created, not yet started container (podman-py's object), removed at the end with everything it still runs."""
    from podman.errors import APIError, ImageNotFound

    for mount in spec.mounts:
        if not mount.source.exists():
            raise EnvironmentLacks(f"nothing to mount at {mount.target}: no such path", where=str(mount.source))
    with contextlib.ExitStack() as cleanup:
        with held_back():
            try:
                container = engine.client.containers.create(**create_arguments(spec))
            except APIError as refused:
                if isinstance(refused, ImageNotFound) or "image not known" in _said(refused):
                    mend = "rvvbench image build"
                    raise EnvironmentLacks("podman has no such image", where=spec.image, mend=mend) from refused
                said = f"podman cannot create the container: {_said(refused)}"
                raise RvvbenchError(said, where=spec.image) from refused
            cleanup.callback(_remove, container)
        yield container


def create_arguments(spec: ContainerSpec) -> dict[str, Any]:
    """The keyword arguments for podman-py that `spec` means."""
    arguments: dict[str, Any] = {
        "image": spec.image,
        "command": list(spec.command),
        "environment": dict(spec.env),
        "labels": labels(spec.run_id),
        "network_mode": spec.network,
        "mounts": [
            {"type": "bind", "source": str(m.source.resolve()), "target": m.target, "read_only": not m.writable}
            for m in spec.mounts
        ],
    }
    optional = {
        "working_dir": spec.workdir,
        "user": spec.user,
        "mem_limit": spec.memory_bytes,
        "memswap_limit": spec.memory_bytes,
        "cpuset_cpus": spec.cpuset,
        "read_only": spec.read_only or None,
        "shm_size": spec.shm_bytes,
    }
    arguments |= {name: value for name, value in optional.items() if value is not None}
    return arguments


def memory_enforcement(container: Any, asked_bytes: int) -> Enforcement:
    """What the kernel says about the memory limit of a running container, read from the container's cgroup."""
    pid = _pid(container)
    try:
        if pid == 0:
            return Enforcement(None, "the container ended before its cgroup could be read")
        path = memory_limit_path(Path(f"/proc/{pid}/cgroup").read_text(), Path("/proc/self/mounts").read_text())
        if path is None:
            return Enforcement(None, "the host mounts no memory controller")
        text = path.read_text().strip()
    except OSError as error:
        return Enforcement(None, f"the limit could not be read: {error}")
    limit = None if text == "max" else int(text)
    if limit is None or limit > asked_bytes:
        return Enforcement(None, f"the cgroup holds {text} where {asked_bytes} was asked for")
    return Enforcement(limit, None)


def memory_limit_path(cgroup: str, mounts: str) -> Path | None:
    """The file that holds the memory limit, None where there is no controller.

    `cgroup` is the text of /proc/PID/cgroup, `mounts` that of /proc/self/mounts.
    """
    mount_points = [(f[1], f[2], f[3].split(",")) for line in mounts.splitlines() if len(f := line.split()) > 3]
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            for point, kind, options in mount_points:
                if kind == "cgroup" and "memory" in options:
                    return Path(point + path) / "memory.limit_in_bytes"
    for line in cgroup.splitlines():
        if line.startswith("0::"):
            for point, kind, _ in mount_points:
                if kind == "cgroup2":
                    found = Path(point + line[3:]) / "memory.max"
                    return found if found.exists() else None
    return None


def _start(container: Any, spec: ContainerSpec) -> None:
    from podman.errors import APIError

    try:
        container.start()
    except APIError as refused:
        said = _said(refused)
        if "Exec format error" in said or "exec format error" in said:
            raise EnvironmentLacks(
                "the kernel cannot run programs of the image's architecture", where=spec.image, mend="make setup"
            ) from refused
        raise EnvironmentLacks(f"the runtime cannot start the container: {said}", where=spec.image) from refused


def _observed(container: Any, observe: Observe | None) -> contextlib.AbstractContextManager[None]:
    """What to be in while the container runs; nothing where it has ended already."""
    if observe is None:
        return contextlib.nullcontext()
    pid = _pid(container)
    return contextlib.nullcontext() if pid == 0 else observe(pid)


def _pid(container: Any) -> int:
    """The container's first process, as the engine's host numbers it; 0 when it has ended."""
    return int(container.inspect()["State"].get("Pid") or 0)


def _wait(container: Any, timeout_s: float | None) -> bool:
    """Whether the container ended within the time."""
    import requests
    from podman.errors import APIError

    try:
        container.wait(timeout=timeout_s)
    except APIError as error:  # podman-py wraps what requests raises
        if isinstance(error.__cause__, requests.Timeout):
            return False
        raise RvvbenchError(f"waiting for the container failed: {_said(error)}") from error
    return True


def _oom_killed(state: dict[str, Any], spec: ContainerSpec, timed_out: bool) -> bool | None:
    if state.get("OOMKilled"):
        return True
    unexplained = int(state["ExitCode"]) == KILLED and spec.memory_bytes is not None and not timed_out
    return None if unexplained else False


def _follow(container: Any, log_path: Path | None) -> threading.Thread | None:
    if log_path is None:
        return None
    with writing(log_path):
        log_path.parent.mkdir(parents=True, exist_ok=True)

    def copy() -> None:
        with contextlib.suppress(Exception), log_path.open("wb", buffering=0) as log:
            for chunk in container.logs(stream=True, follow=True, stdout=True, stderr=True):
                log.write(chunk)

    thread = threading.Thread(target=copy, name="container log", daemon=True)
    thread.start()
    return thread


def _write_whole(log_path: Path, output: str) -> None:
    """The whole log, since following can miss the last lines of a short container.

    Where there is no room for it (a full disk), what was followed stays.
    """
    fresh = log_path.with_name(f".{log_path.name}.whole")
    try:
        fresh.write_text(output, encoding="utf-8")
        fresh.replace(log_path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()


def _remove(container: Any) -> None:
    """Remove, however often Ctrl-C comes while removing."""
    from podman.errors import NotFound

    with uninterrupted(), contextlib.suppress(NotFound):
        container.remove(force=True, v=True)


def _said(error: Exception) -> str:
    explanation = getattr(error, "explanation", None)
    return str(explanation or error)
