"""What a project asks for its build, held against what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rvvbench.provide import stack_wheels, wheel_backend
from rvvbench.provide.wheel_backend import build_system, checked, verdict


@pytest.mark.parametrize(
    ("requirement", "found", "expected"),
    [
        ("a", "1", "met"),
        ("a>=2,<3", "2.5", "met"),
        ("a>=2,<3", "3.1", "newer"),
        ("a>=2,<3", "1.9", "missing"),
        ("a==2.*", "2.7", "met"),
        ("a==2.*", "3", "newer"),
        ("a==2.1", "2.0", "missing"),
        ("a~=2.1", "3", "newer"),
        ("a!=2", "2", "missing"),
        ("a>=2", None, "missing"),
        ("a>=2", "2.1rc1", "met"),
    ],
)
def test_older_or_absent_is_missing_and_beyond_an_upper_bound_is_newer(
    requirement: str, found: str | None, expected: str
) -> None:
    assert verdict(Requirement(requirement), found) == expected


def test_what_pyproject_does_not_say_is_what_the_standard_says(tmp_path: Path) -> None:
    assert build_system(tmp_path)["build-backend"] == "setuptools.build_meta:__legacy__"
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = ["x"]\nbuild-backend = "y"\n')
    assert build_system(tmp_path) == {"requires": ["x"], "build-backend": "y", "backend-path": []}


def test_a_program_stands_for_the_distribution_that_wraps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_backend.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(wheel_backend, "first_line", lambda command: "cmake version 3.31.6")
    monkeypatch.setattr(wheel_backend.metadata, "version", _absent)
    assert checked(["cmake>=3.27"]) == ({"cmake": "3.31.6"}, [], [])
    assert checked(["cmake>=4"])[2] == ["cmake>=4 (the image has 3.31.6)"]


def test_wheel_is_part_of_setuptools_since_70_1(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, missing in (("70.1", []), ("69", ["wheel (the image has none)"])):
        monkeypatch.setattr(
            wheel_backend.metadata, "version", lambda name, v=version: v if name == "setuptools" else _absent(name)
        )
        assert checked(["wheel"])[2] == missing


def test_requirements_of_other_machines_are_not_asked_for() -> None:
    assert checked(["nothing-of-the-kind; platform_machine == 'none'"]) == ({}, [], [])
    assert checked(["nothing-of-the-kind"])[2] == ["nothing-of-the-kind (the image has none)"]


def test_both_sides_mean_the_same_exit_code() -> None:
    assert stack_wheels.LACKS == wheel_backend.LACKS


def _absent(name: str) -> str:
    raise wheel_backend.metadata.PackageNotFoundError(name)
