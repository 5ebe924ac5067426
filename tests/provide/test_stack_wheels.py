"""What a wheel from git is known by, when it is built again, and what refuses it; the container is a double here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from small_projects import BRANCH, SmallProjects

from rvvbench.engine.container import ContainerExit, ContainerSpec
from rvvbench.errors import EnvironmentLacks, RvvbenchError
from rvvbench.progress import Silent
from rvvbench.provide import stack_wheels
from rvvbench.provide.build_cost import BuildCost
from rvvbench.provide.build_settings import FIXED, jobs, settings
from rvvbench.provide.stack_wheels import (
    Source,
    StackBuild,
    StackWheel,
    build_stack_wheel,
    find_stack_wheel,
    log_tail,
    project_folder,
    stack_key,
)
from rvvbench.provide.wheelfile import WheelContent, write_wheel

IMAGE = "sha256:" + "1" * 64
SOURCE = Source("pytorch", "https://example.org/torch", "rvv", "a" * 40)


@dataclass(frozen=True)
class FakeImage:
    image_id: str = "runtime"
    digest: str = IMAGE


@dataclass
class Container:
    """Stands for the container that builds: leaves a wheel, counts its calls, remembers what it was given."""

    name: str = "torch"
    tag: str = "py3-none-any"
    content: bytes = b"x = 1\n"
    exit_code: int = 0
    output: str = ""
    specs: list[ContainerSpec] = field(default_factory=list)

    def __call__(self, engine: Any, spec: ContainerSpec, *, observe: Any) -> ContainerExit:
        self.specs.append(spec)
        assert spec.network == "none"
        mounts = {mount.target: mount.source for mount in spec.mounts}
        (mounts["/src"] / "left-by-the-build").touch()
        if self.exit_code == 0:
            folder = mounts["/out"] / "wheel"
            write_wheel(WheelContent(self.name, "9.9", self.tag, "", {f"{self.name}/m.py": self.content}), folder)
            told = {"compiler": "cc 16", "python": "3.14", "requirements": {}, "newer_than_declared": []}
            (mounts["/out"] / "told.json").write_text(json.dumps(told))
        return ContainerExit(self.exit_code, 1.0, False, False, None, self.output)


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Container:
    double = Container()
    monkeypatch.setattr(stack_wheels, "run_container", double)
    return double


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[SmallProjects]:
    (tmp_path / "served").mkdir()
    with SmallProjects(tmp_path / "served") as served:
        yield served


@pytest.fixture
def source(projects: SmallProjects) -> Source:
    return Source("pytorch", projects.torch.url, BRANCH, projects.torch.head)


@pytest.fixture
def build(container: Container, tmp_path: Path) -> StackBuild:
    return StackBuild("amd64", FakeImage(), None, tmp_path / "home", {})  # type: ignore[arg-type]


def make(build: StackBuild, source: Source) -> StackWheel:
    return build_stack_wheel(build, source, Silent())


def test_a_second_build_takes_the_wheel_that_is_here(build: StackBuild, source: Source, container: Container) -> None:
    assert find_stack_wheel(build, source) is None
    first = make(build, source)
    assert first.path.exists()
    assert make(build, source) == first
    assert find_stack_wheel(build, source) == first
    assert len(container.specs) == 1


def test_every_part_of_what_a_wheel_is_made_of_is_in_its_key() -> None:
    other = "sha256:" + "2" * 64
    keys = [
        stack_key(SOURCE, "riscv64", IMAGE, FIXED),
        stack_key(replace(SOURCE, url="https://example.org/fork"), "riscv64", IMAGE, FIXED),
        stack_key(replace(SOURCE, commit="b" * 40), "riscv64", IMAGE, FIXED),
        stack_key(SOURCE, "amd64", IMAGE, FIXED),
        stack_key(SOURCE, "riscv64", other, FIXED),
        stack_key(SOURCE, "riscv64", IMAGE, {**FIXED, "CFLAGS": "-O3"}),
    ]
    assert len(set(keys)) == len(keys)
    assert stack_key(replace(SOURCE, branch="renamed"), "riscv64", IMAGE, FIXED) == keys[0]


def test_the_way_of_building_is_in_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = stack_key(SOURCE, "riscv64", IMAGE, FIXED)
    changed = tmp_path / "wheel_backend.py"
    changed.write_text(stack_wheels.BACKEND.read_text() + "\n")
    monkeypatch.setattr(stack_wheels, "BACKEND", changed)
    assert stack_key(SOURCE, "riscv64", IMAGE, FIXED) != before


def test_only_allowed_variables_of_the_caller_reach_the_build(
    build: StackBuild, source: Source, container: Container
) -> None:
    make(replace(build, environ={"CFLAGS": "-O3", "SECRET": "x", "LC_ALL": "de_DE", "MAX_JOBS": "3"}), source)
    env = container.specs[0].env
    assert (env["CFLAGS"], env["LC_ALL"], env["MAX_JOBS"]) == ("-O3", "C.UTF-8", "3")
    assert "SECRET" not in env
    assert env["USE_CUDA"] == "0"
    assert settings("pytorch", {"CFLAGS": "-O3"}) == {
        k: v for k, v in env.items() if k in {*settings("pytorch", {}), "CFLAGS"}
    }


def test_how_many_compilers_run_at_once_is_in_no_key(build: StackBuild, source: Source, container: Container) -> None:
    make(replace(build, environ={"MAX_JOBS": "3"}), source)
    make(replace(build, environ={"MAX_JOBS": "4"}), source)
    assert len(container.specs) == 1
    assert jobs({"MAX_JOBS": "many"}) >= 1


def test_a_wheel_whose_bytes_changed_is_built_again(build: StackBuild, source: Source, container: Container) -> None:
    first = make(build, source)
    first.path.write_bytes(b"x")
    assert find_stack_wheel(build, source) is None
    assert make(build, source) == first
    assert len(container.specs) == 2


def test_other_bytes_of_the_same_key_are_said(build: StackBuild, source: Source, container: Container) -> None:
    first = make(build, source)
    first.path.write_bytes(b"x")
    container.content = b"x = 2\n"
    second = make(build, source)
    assert second.key == first.key
    assert (second.sha256 != first.sha256, second.other_sha256) == (True, first.sha256)


def test_the_build_leaves_the_checkout_as_the_commit_says(build: StackBuild, source: Source) -> None:
    make(build, source)
    assert not (source.checkout(build.state_dir) / "left-by-the-build").exists()
    shutil.rmtree(build.state_dir / "wheels")
    make(build, source)


def test_a_changed_checkout_is_refused_even_where_the_wheel_is_here(build: StackBuild, source: Source) -> None:
    make(build, source)
    (source.checkout(build.state_dir) / "setup.py").write_text("mine")
    with pytest.raises(RvvbenchError, match=r"1 changed or added files \(setup\.py\)"):
        make(build, source)


def test_a_failed_build_shows_the_end_of_its_log_and_the_next_begins_anew(
    build: StackBuild, source: Source, container: Container
) -> None:
    container.exit_code, container.output = 1, "".join(f"line {n}\n\n" for n in range(100))
    with pytest.raises(EnvironmentLacks, match=r"does not build for amd64, exit code 1; .*\n(line \d+\n)+line 99;"):
        make(build, source)
    assert find_stack_wheel(build, source) is None
    container.exit_code = 0
    make(build, source)


def test_a_kill_for_memory_is_told_apart(build: StackBuild, source: Source, container: Container) -> None:
    container.exit_code = 137
    with pytest.raises(EnvironmentLacks, match="MAX_JOBS=1"):
        make(build, source)


def test_what_the_image_lacks_is_named(build: StackBuild, source: Source, container: Container) -> None:
    container.exit_code, container.output = 3, "missing: cmake>=3.27 (the image has none)\nmissing: ninja\n"
    with pytest.raises(EnvironmentLacks, match=r"cmake>=3\.27 \(the image has none\); ninja"):
        make(build, source)


@pytest.mark.parametrize(("name", "tag"), [("sglang", "py3-none-any"), ("torch", "py3-none-linux_riscv64")])
def test_a_wheel_of_another_project_or_machine_does_not_count(
    build: StackBuild, source: Source, container: Container, name: str, tag: str
) -> None:
    container.name, container.tag = name, tag
    with pytest.raises(RvvbenchError, match="made"):
        make(build, source)
    assert find_stack_wheel(build, source) is None


def test_a_repository_without_a_project_is_refused(
    build: StackBuild, source: Source, projects: SmallProjects, container: Container
) -> None:
    (projects.torch.folder / "setup.py").unlink()
    (projects.torch.folder / "pyproject.toml").unlink()
    commit = projects.torch.commit({})
    with pytest.raises(RvvbenchError, match="no Python project"):
        make(build, replace(source, commit=commit))
    assert container.specs == []


def test_the_project_is_at_the_top_or_below_python(projects: SmallProjects, tmp_path: Path) -> None:
    assert project_folder(projects.torch.folder) == "."
    assert project_folder(projects.sglang.folder) == "python"
    assert project_folder(tmp_path) is None


def test_a_log_without_lines_has_no_end() -> None:
    assert log_tail("\n\n") == ""
    assert log_tail("a\n\nb\n", 1) == "b"


def test_hours_and_a_full_disk_are_told_of_before_the_build_and_a_small_project_is_not() -> None:
    large = BuildCost(files=6000, source_bytes=3_000_000_000)
    told = " ".join(large.told(8, emulated=False, free_bytes=5_000_000_000))
    assert "6000 C and C++ files, 8 at once" in told
    assert "hours" in told
    assert "12.0 GB needed, 5.0 GB free" in told
    assert "may be too little" in told
    assert large.seconds(8, emulated=True) > large.seconds(8, emulated=False)
    assert BuildCost(files=1, source_bytes=10_000).told(2, emulated=False, free_bytes=1_000_000_000) == []
