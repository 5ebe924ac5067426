"""Which service is meant, and what is said where there can be none. Needs no podman."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rvvbench.engine.facts import HostFacts, read_facts
from rvvbench.engine.interrupt import held_back, uninterrupted
from rvvbench.engine.service import Engine, _with_us, socket_of
from rvvbench.errors import EnvironmentLacks


@pytest.fixture
def facts() -> HostFacts:
    return replace(read_facts(), podman="/bin/false", runtimes=("runc",), systemd=False)


@pytest.mark.parametrize("host", ["tcp://10.0.0.1:8080", "ssh://root@somewhere/run/podman.sock"])
def test_services_of_other_machines_are_refused_with_what_works(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTAINER_HOST", host)
    with pytest.raises(EnvironmentLacks, match="unix socket only") as caught, Engine(Path("/nowhere")):
        pass
    assert "unix://" in str(caught.value.mend)


def test_a_home_that_cannot_be_written_is_told(
    tmp_path: Path, facts: HostFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTAINER_HOST", raising=False)
    (tmp_path / "home").write_text("")
    with pytest.raises(EnvironmentLacks) as caught, Engine(tmp_path / "home", facts=facts):
        pass
    assert str(tmp_path / "home") in str(caught.value.where)
    assert "RVVBENCH_HOME" in str(caught.value.mend)


def test_a_clean_up_is_not_interrupted_and_what_follows_is() -> None:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_comes_while_something_is_made_waits_until_it_is_known() -> None:
    known = []
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        known.append("made")
    assert known == ["made"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_wait_where_they_are_handled_and_are_the_kernels_where_not(number: signal.Signals) -> None:
    told = []
    before = signal.signal(number, signal.SIG_DFL)
    with held_back():
        assert signal.getsignal(number) is signal.SIG_DFL
    signal.signal(number, lambda *_: told.append("signal"))
    try:
        with held_back():
            signal.raise_signal(number)
            told.append("made")
    finally:
        signal.signal(number, before)
    assert told == ["made", "signal"]


def test_outside_the_main_thread_there_is_nothing_to_hold_back() -> None:
    told = []

    def make() -> None:
        with held_back(), uninterrupted():
            told.append("made")

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert told == ["made"]


def test_a_service_is_tied_to_the_main_thread_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/setpriv")
    assert _with_us() == ["/usr/bin/setpriv", "--pdeathsig=TERM"]
    told: list[list[str]] = []
    thread = threading.Thread(target=lambda: told.append(_with_us()))
    thread.start()
    thread.join()
    assert told == [[]]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert _with_us() == []


@pytest.mark.parametrize("host", ["unix:///run/a.sock", "/run/a.sock"])
def test_a_socket_may_be_named_with_its_scheme_or_without(host: str) -> None:
    assert socket_of(host) == Path("/run/a.sock")


def test_a_service_that_ends_at_once_is_told(tmp_path: Path, facts: HostFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTAINER_HOST", raising=False)
    with pytest.raises(EnvironmentLacks, match="podman's service ended at once: it said nothing"):
        Engine(tmp_path, facts=facts).__enter__()
    assert list((tmp_path / "engine").iterdir()) == []
