"""The podman API service that everything else talks to: the machine's own where that will do, else a private one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from rvvbench.engine import owner
from rvvbench.engine.facts import HostFacts, read_facts
from rvvbench.engine.interrupt import uninterrupted
from rvvbench.engine.quirks import Quirk, containers_conf, quirks
from rvvbench.errors import EnvironmentLacks
from rvvbench.project import writing

# sockaddr_un holds 108 bytes with the final zero (unix(7)).
LONGEST_SOCKET_PATH = 107
START_TIMEOUT_S = 30.0


class Engine:
    """A connection to podman, as a context manager.

    `CONTAINER_HOST=unix:///path` forces a running service. Otherwise the machine's own service is used where it answers
    and the host has no quirk that it may not know; else a private `podman system service` is started below
    `state_dir/engine` and stopped again at the end. Two harnesses at once have a service each, over the same storage.

    Raises EnvironmentLacks where podman or a runtime is missing or does not start.
    """

    def __init__(self, state_dir: Path, *, facts: HostFacts | None = None) -> None:
        self._state_dir = state_dir
        self._facts = facts
        self._service: subprocess.Popen[bytes] | None = None
        self._home: Path | None = None
        self._client: Any = None
        self.quirks: tuple[Quirk, ...] = ()
        self.private = False
        self.socket: Path | None = None

    @property
    def client(self) -> Any:
        """The podman-py client; untyped because podman-py is."""
        if self._client is None:
            raise RuntimeError("Engine is used outside its with block")
        return self._client

    @property
    def facts(self) -> HostFacts:
        if self._facts is None:
            self._facts = read_facts()
        return self._facts

    def __enter__(self) -> Engine:
        forced = os.environ.get("CONTAINER_HOST")
        if forced:
            self._connect_running(socket_of(forced))
            return self
        self.quirks = quirks(self.facts)
        default = _default_socket(self.facts.is_root)
        if not self.quirks and default.is_socket() and _answers(default):
            self._client, self.socket = _connect(default), default
            return self
        try:
            self._start_private()
        except BaseException:
            with uninterrupted():
                self._stop_private()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with uninterrupted():
            if self._client is not None:
                with contextlib.suppress(Exception):
                    self._client.close()
                self._client = None
            self._stop_private()

    def sweep(self) -> list[str]:
        """Remove what dead harnesses left: containers, running ones too, and services. Returns container names."""
        removed = []
        # podman-py turns a list of filters into the text of that list, which matches nothing: one string.
        found = self.client.containers.list(all=True, filters={"label": owner.LABEL})
        for container in found:
            # podman-py's list fills in labels only after an inspect
            details = self.client.containers.get(container.id)
            if owner.is_orphan(details.attrs.get("Config", {}).get("Labels") or {}):
                details.remove(force=True, v=True)
                removed.append(str(details.name))
        self._sweep_services()
        return removed

    def _connect_running(self, socket: Path) -> None:
        if not (socket.is_socket() and _answers(socket)):
            raise EnvironmentLacks(
                "no podman service answers",
                where=str(socket),
                mend="unset CONTAINER_HOST, or start the service it names",
            )
        self._client, self.socket = _connect(socket), socket

    def _start_private(self) -> None:
        podman = self.facts.podman
        assert podman is not None, "quirks() refuses a host without podman"
        self._sweep_services()
        here = owner.this_process()
        home = self._state_dir / "engine" / f"{here.pid}-{secrets.token_hex(4)}"
        conf, socket, log = home / "containers.conf", home / "podman.sock", home / "service.log"
        if len(os.fsencode(socket)) > LONGEST_SOCKET_PATH:
            raise EnvironmentLacks(
                "the path of podman's socket is longer than the kernel allows",
                where=str(socket),
                mend="set RVVBENCH_HOME to a shorter path",
            )
        self._home = home
        with writing(home):
            home.mkdir(parents=True, mode=0o700)
            (home / "owner").write_text(here.encode())
            conf.write_text(containers_conf(self.quirks))
            output = log.open("wb")
        with output:
            # A session of its own: Ctrl-C in the terminal must reach the harness only, which cleans up through this.
            self._service = subprocess.Popen(
                [*_with_us(), podman, "system", "service", "--time=0", f"unix://{quote(str(socket))}"],
                env={**os.environ, "CONTAINERS_CONF": str(conf)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started = owner.owner_of(self._service.pid)
        if started is not None:
            with writing(home):
                (home / "service").write_text(started.encode())
        service = self._service

        def decided() -> bool:
            return service.poll() is not None or (socket.is_socket() and _answers(socket))

        if not _wait_until(decided, START_TIMEOUT_S):
            raise EnvironmentLacks(f"podman's service did not answer within {START_TIMEOUT_S:.0f} s", where=str(log))
        if service.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise EnvironmentLacks(
                f"podman's service ended at once: {said[0] if said else 'it said nothing'}",
                mend="podman info shows why",
            )
        self._client, self.socket, self.private = _connect(socket), socket, True

    def _stop_private(self) -> None:
        if self._service is not None:
            self._service.terminate()
            try:
                self._service.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._service.kill()
                self._service.wait()
            self._service = None
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None
        self.private = False

    def _sweep_services(self) -> None:
        here = owner.this_process()
        for home in (self._state_dir / "engine").glob("*-*"):
            harness = _read_owner(home / "owner")
            if harness is None or not owner.is_dead(harness, here, owner.owner_of(harness.pid)):
                continue
            service = _read_owner(home / "service")
            if service is not None and not owner.is_dead(service, here, owner.owner_of(service.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(service.pid, signal.SIGTERM)
            shutil.rmtree(home, ignore_errors=True)


def socket_of(container_host: str) -> Path:
    """The socket that a CONTAINER_HOST names; raises EnvironmentLacks where it names a service of another machine."""
    scheme, separator, rest = container_host.partition("://")
    if separator and scheme != "unix":
        raise EnvironmentLacks(
            f"CONTAINER_HOST is {container_host}, and rvvbench reaches podman over a unix socket only",
            where="CONTAINER_HOST",
            mend="set CONTAINER_HOST=unix:///path/of/podman.sock, or unset it",
        )
    return Path(rest if separator else container_host)


def _with_us() -> list[str]:
    """What starts a command so that the kernel ends it when this process dies, after kill -9 too.

    The kernel counts the death of the thread that started the command, so only the main thread's may.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig=TERM"]


def _read_owner(path: Path) -> owner.Owner | None:
    try:
        return owner.decode(path.read_text())
    except OSError:
        return None


def _default_socket(is_root: bool) -> Path:
    if is_root:
        return Path("/run/podman/podman.sock")
    return Path(os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "podman" / "podman.sock"


def _connect(socket: Path) -> Any:
    from podman import PodmanClient

    return PodmanClient(base_url=f"http+unix://{quote(str(socket), safe='')}")


def _answers(socket: Path) -> bool:
    try:
        with _connect(socket) as client:
            return bool(client.ping())
    except Exception:  # podman-py lets requests' and urllib3's errors through
        return False


def _wait_until(done: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
