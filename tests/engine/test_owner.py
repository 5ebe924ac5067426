"""Who owns what, and when the owner is dead."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.engine.owner import LABEL, Owner, decode, is_dead, is_orphan, labels, start_ticks_of, this_process

HERE = Owner(100, 5000, "boot-a", "pid:[1]")


def test_an_owner_survives_its_label() -> None:
    assert decode(HERE.encode()) == HERE


@given(st.text())
def test_labels_of_others_are_no_owners(text: str) -> None:
    owner = decode(text)
    assert owner is None or owner.encode().split("/")[2:] == text.split("/")[2:]


def test_a_living_owner_is_not_dead() -> None:
    assert not is_dead(HERE, HERE, HERE)


def test_an_owner_whose_pid_is_gone_is_dead() -> None:
    assert is_dead(HERE, HERE, None)


def test_a_recycled_pid_does_not_keep_an_owner_alive() -> None:
    assert is_dead(HERE, HERE, dataclasses.replace(HERE, start_ticks=9999))


def test_a_reboot_kills_every_owner() -> None:
    assert is_dead(HERE, dataclasses.replace(HERE, boot_id="boot-b"), HERE)


def test_an_owner_of_another_pid_namespace_is_left_alone() -> None:
    assert not is_dead(HERE, dataclasses.replace(HERE, pid_namespace="pid:[2]"), None)


def test_start_time_is_found_behind_any_command_name() -> None:
    fields = " ".join(str(number) for number in range(3, 53))
    assert start_ticks_of(f"7 (a) b (c)) {fields}") == 22


def test_our_own_containers_are_no_orphans() -> None:
    assert labels("run-1")["org.rvvbench.run"] == "run-1"
    assert not is_orphan(labels())
    assert not is_orphan({})
    assert is_orphan({LABEL: dataclasses.replace(this_process(), start_ticks=1).encode()})
