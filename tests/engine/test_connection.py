"""Which service is meant, and what is said where there can be none. Needs no podman."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from rvvbench.engine.facts import HostFacts, read_facts
from rvvbench.engine.interrupt import uninterrupted
from rvvbench.engine.service import Engine
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
    from rvvbench.engine.interrupt import held_back

    known = []
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        known.append("made")
    assert known == ["made"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
