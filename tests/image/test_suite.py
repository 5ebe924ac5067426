"""What a suite serves, and how that differs from the lock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.image.suite import Difference, differences, parse_simulation, parse_status

VERSIONS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["1", "2", "1:3-1+b2"]))


def test_versions_are_read_from_a_simulation() -> None:
    lines = [
        "I: simulate installing remaining packages inside the chroot...",
        "Inst libc6 (2.43-7 Debian:testing [riscv64]) []",
        "Inst g++:riscv64 [1.0] (4:16.1.0-3 Debian:testing, Other:x [riscv64])",
        "Conf libc6 (2.43-7 Debian:testing [riscv64])",
    ]
    assert parse_simulation(lines) == {"libc6": "2.43-7", "g++": "4:16.1.0-3"}


def test_versions_are_read_from_the_status_of_dpkg() -> None:
    text = (
        "Package: zlib1g\nStatus: install ok installed\nVersion: 1:1.3-3\nDescription: a\n Version: 9\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 2\n\n"
        "Package: apt\nStatus: install ok installed\nVersion: 3.3.3\n"
    )
    assert parse_status(text) == {"apt": "3.3.3", "zlib1g": "1:1.3-3"}


def test_newer_added_and_removed_packages_differ() -> None:
    assert differences({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"}) == (
        Difference("b", "1", "2"),
        Difference("c", "1", None),
        Difference("d", None, "1"),
    )


@given(VERSIONS, VERSIONS)
def test_there_are_no_differences_exactly_when_the_versions_are_equal(
    locked: dict[str, str], served: dict[str, str]
) -> None:
    found = differences(locked, served)
    assert (found == ()) == (locked == served)
    healed = {**locked, **{d.name: d.served for d in found if d.served is not None}}
    for difference in found:
        if difference.served is None:
            del healed[difference.name]
    assert healed == served
