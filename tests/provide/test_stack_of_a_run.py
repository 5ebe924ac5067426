"""What a run of a stack from git takes: the commits that are pinned, the wheels that were built, and their pins."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench import project
from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.lock import load_lock, save_lock
from rvvbench.manifest.models import Stack
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.provide.stack_wheels import StackBuild, StackWheel
from rvvbench.workload import provision
from rvvbench.workload.provision import Provision, built_wheels, git_sources

STACK = "upstream-branches"
COMMITS = {"pytorch": "a" * 40, "sglang": "b" * 40}
BUILD = StackBuild("riscv64", SimpleNamespace(image_id="i", digest="sha256:" + "1" * 64), None, Path("/none"), {})  # type: ignore[arg-type]


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """The project's manifests, the commits of the git stack locked."""
    copy = tmp_path / "manifests"
    shutil.copytree(project.manifests_dir(), copy)
    lock(copy, COMMITS)
    return copy


def lock(manifests: Path, commits: dict[str, str | None], **others: str) -> None:
    file = load_lock(manifests)
    git = {
        name: pin.model_copy(update={"commit": commits[name.partition("/")[2]], **others})
        for name, pin in file.lock.git.items()
    }
    save_lock(file.path, file.lock.model_copy(update={"git": git}))


def resolved(manifests: Path, variant: str = "torch-native") -> Resolved:
    return resolve(manifests, "llama-one-batch", "board", settings=[f"stack={STACK}"], variants=[variant])


def sources(manifests: Path) -> Any:
    found = resolved(manifests)
    return git_sources(found.stack, found.stack_document, found.lock)


def wheel(part: str) -> StackWheel:
    return StackWheel(
        path=Path(f"{part}.whl"),
        build_log=Path("log"),
        part=part,
        url=f"https://example.org/{part}",
        commit=COMMITS[part],
        arch="riscv64",
        key=part * 3,
        sha256="c" * 64,
        seconds=3.0,
        compiler="cc 16",
        python="3.14",
        image_digest="d",
        environment={"CFLAGS": "-O3"},
        requirements={},
        newer_than_declared=[],
    )


def test_the_commits_are_the_locked_ones_or_those_of_the_manifest(manifests: Path) -> None:
    assert {source.part: source.commit for source in sources(manifests)} == COMMITS
    lock(manifests, {"pytorch": None, "sglang": "b" * 40})
    path = manifests / "stacks" / f"{STACK}.yaml"
    path.write_text(path.read_text().replace("commit: null", f"commit: {'e' * 40}", 1))
    assert {source.part: source.commit for source in sources(manifests)} == {**COMMITS, "pytorch": "e" * 40}


def test_a_stack_of_packages_has_no_sources(manifests: Path) -> None:
    found = resolve(manifests, "llama-one-batch", "board")
    assert git_sources(found.stack, found.stack_document, found.lock) == []
    assert built_wheels(found, BUILD) == ()


def test_a_null_commit_is_refused_at_its_line(manifests: Path) -> None:
    lock(manifests, {"pytorch": "a" * 40, "sglang": None})
    with pytest.raises(ManifestError, match=r"commit of sglang .* was never resolved") as caught:
        sources(manifests)
    text = (manifests / "stacks" / f"{STACK}.yaml").read_text().splitlines()
    line = [number for number, content in enumerate(text, 1) if "commit: null" in content][1]
    assert caught.value.where == f"{manifests / 'stacks' / f'{STACK}.yaml'}:{line}"
    assert caught.value.mend == "rvvbench lock"


def test_a_build_of_another_commit_than_the_locked_one_is_refused(manifests: Path) -> None:
    path = manifests / "stacks" / f"{STACK}.yaml"
    path.write_text(path.read_text().replace("commit: null", f"commit: {'e' * 40}", 1))
    stack, document = load_manifest(manifests, "stacks", STACK, Stack)
    with pytest.raises(ManifestError, match=f"commit of pytorch in the manifest is {'e' * 40}, but the lock") as caught:
        git_sources(stack, document, load_lock(manifests))
    assert f"{STACK}.yaml:" in str(caught.value.where)
    assert COMMITS["pytorch"] in caught.value.cause


def test_a_lock_of_another_repository_is_refused(manifests: Path) -> None:
    lock(manifests, COMMITS, url="https://example.org/fork")
    with pytest.raises(ManifestError, match="but the lock has branch") as caught:
        sources(manifests)
    assert "rvvbench.lock.yaml:" in str(caught.value.where)


def test_a_run_does_not_build_for_hours_but_names_the_command(manifests: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=r"torch of .* was not built for riscv64") as caught:
        built_wheels(resolved(manifests), BUILD)
    assert caught.value.mend == f"rvvbench build --stack {STACK} --arch riscv64"


def test_kernels_that_were_compiled_against_another_pytorch_are_refused(manifests: Path) -> None:
    with pytest.raises(ManifestError, match="compiled against the image's PyTorch"):
        built_wheels(resolved(manifests, "rvv-kernels"), BUILD)


def test_a_record_pins_the_wheels_and_a_stack_without_them_has_no_such_pin(
    manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "find_stack_wheel", lambda build, source: wheel(source.part))
    found = built_wheels(resolved(manifests), BUILD)
    image: Any = SimpleNamespace(ref=SimpleNamespace(name="n", arch="a", digest="d"), packages={})
    checkpoint: Any = SimpleNamespace(kind="hub", files={}, sha256s={})
    plugin: Any = SimpleNamespace(version="1", sha256="s")
    pins = Provision(image, checkpoint, plugin, None, {}, (), found).pins()
    assert pins["built"]["pytorch"] == {
        "url": "https://example.org/pytorch",
        "commit": "a" * 40,
        "key": "pytorch" * 3,
        "wheel_sha256": "c" * 64,
        "compiler": "cc 16",
        "environment": {"CFLAGS": "-O3"},
    }
    assert set(pins["built"]) == {"pytorch", "sglang"}
    assert "built" not in Provision(image, checkpoint, plugin, None, {}).pins()
    assert pins.get("inductor") is None
    inductor: Any = SimpleNamespace(version="2", sha256="i")
    pins = Provision(image, checkpoint, plugin, None, {}, inductor=inductor).pins()
    assert pins["inductor"] == {"version": "2", "wheel_sha256": "i"}
