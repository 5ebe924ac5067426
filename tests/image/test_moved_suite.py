"""Building from a repository that moves, expires, and lacks things.

Needs podman, mmdebstrap, QEMU and root, and no network but loopback.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from toy_repository import SUITE, ToyRepository

from rvvbench.engine.service import Engine
from rvvbench.errors import ManifestError
from rvvbench.image import relock
from rvvbench.image.build import BuiltImage, LockedPackages, build_image
from rvvbench.image.catalog import list_images
from rvvbench.image.mmdebstrap import ExpiredRelease
from rvvbench.image.recipe import Recipe, load_recipe
from rvvbench.image.verify import look_up, require_image

pytestmark = [
    pytest.mark.container,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("podman", "mmdebstrap", "arch-test")),
        reason="needs root, podman and mmdebstrap",
    ),
]

RECIPE = f"""\
schema: rvvbench/image-recipe/1
name: toy
architectures: [riscv64]
suite: {SUITE}
source_date_epoch: 1764000000
variant: extract
packages:
  - hello
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(tmp_path_factory.mktemp("engine")) as running:
        yield running


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    folder = tmp_path / "images"
    (folder / "hooks").mkdir(parents=True)
    (folder / "toy.yaml").write_text(RECIPE)
    return load_recipe("toy", folder)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[ToyRepository]:
    root = tmp_path / "repository"
    root.mkdir()
    toy = ToyRepository(root)
    yield toy
    toy.close()


@pytest.fixture(autouse=True)
def no_image_stays(engine: Engine) -> Iterator[None]:
    yield
    for image in list_images(engine):
        if image.recipe == "toy":
            engine.client.images.remove(image.digest if image.name is None else image.name, force=True)


def built(
    engine: Engine, recipe: Recipe, repository: ToyRepository, state: Path, locked: LockedPackages | None = None
) -> BuiltImage:
    return build_image(recipe, "riscv64", engine=engine, state_dir=state, locked=locked, mirror=repository.mirror)


def test_building_twice_from_the_same_versions_gives_one_digest(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    repository.publish("1.0")
    first = built(engine, recipe, repository, tmp_path / "state")
    engine.client.images.remove(first.name, force=True)
    second = built(engine, recipe, repository, tmp_path / "other")
    assert first.digest == second.digest
    found = require_image(recipe, "riscv64", digest=first.digest, where=None, engine=engine)
    assert (found.digest, found.arch) == (first.digest, "riscv64")


def test_one_changed_digit_of_the_digest_stops_and_names_the_line(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    repository.publish("1.0")
    digest = built(engine, recipe, repository, tmp_path / "state").digest
    changed = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    with pytest.raises(ManifestError) as caught:
        require_image(recipe, "riscv64", digest=changed, where="rvvbench.lock.yaml:12", engine=engine)
    assert caught.value.where == "rvvbench.lock.yaml:12"


def test_a_moved_suite_is_told_built_and_relocked(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    repository.publish("1.0")
    old = built(engine, recipe, repository, state)
    locked = LockedPackages(old.packages, old.digest, "rvvbench.lock.yaml:12")
    assert built(engine, recipe, repository, state, locked).differences == ()

    repository.publish("1.1")
    said: list[str] = []
    new = build_image(
        recipe,
        "riscv64",
        engine=engine,
        state_dir=state,
        locked=locked,
        mirror=repository.mirror,
        progress=lambda phase, line: said.append(line),
    )
    assert [str(difference) for difference in new.differences] == ["hello: locked 1.0, served 1.1"]
    assert "the suite has moved: hello: locked 1.0, served 1.1" in said
    assert new.digest != old.digest
    assert not new.is_unexplained

    relock.write(state, "toy", new)
    entry = relock.current(state, "toy", "riscv64", locked_digest=old.digest, recipe_sha256=recipe.sha256)
    assert entry is not None and entry.digest == new.digest
    require_image(recipe, "riscv64", digest=entry.digest, where=None, engine=engine)


def test_an_expired_suite_is_refused_unless_accepted_and_the_digest_is_the_same(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    repository.publish("1.0")
    fresh = built(engine, recipe, repository, state)
    assert fresh.provenance["org.rvvbench.image.expiry-ignored"] is False
    repository.publish("1.0", valid_until=datetime(2026, 1, 8, tzinfo=UTC))
    with pytest.raises(ExpiredRelease) as caught:
        built(engine, recipe, repository, state)
    assert "--accept-expired" in str(caught.value.mend)
    accepted = build_image(
        recipe, "riscv64", engine=engine, state_dir=state, accept_expired=True, mirror=repository.mirror
    )
    assert accepted.digest == fresh.digest
    assert accepted.provenance["org.rvvbench.image.expiry-ignored"] is True


def test_a_failed_build_leaves_nothing_but_its_log(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    repository.publish("1.0", name="goodbye")
    with pytest.raises(ManifestError) as caught:
        built(engine, recipe, repository, state)
    assert str(caught.value.where).endswith("toy.yaml:8")
    left = [path.name for path in (state / "images").iterdir() if not path.name.startswith(".toy")]
    assert left == ["toy-riscv64.log"]
    assert look_up(engine, recipe.image_name("riscv64")) is None


def test_a_build_whose_harness_is_killed_ends_and_is_swept_by_the_next(
    engine: Engine, recipe: Recipe, repository: ToyRepository, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    repository.publish("1.0")
    repository.hold()
    program = f"""
from pathlib import Path
from rvvbench.engine.service import Engine
from rvvbench.image.build import build_image
from rvvbench.image.recipe import load_recipe
with Engine(Path({str(state)!r})) as engine:
    build_image(load_recipe("toy", Path({str(recipe.path.parent)!r})), "riscv64", engine=engine,
                state_dir=Path({str(state)!r}), mirror={repository.mirror!r})
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    repository.was_asked.wait(timeout=60)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while _mentions(str(state)):
        assert time.monotonic() < deadline, "mmdebstrap or podman's service outlives the harness"
        time.sleep(0.1)
    assert list((state / "images").glob(".build-*")) != []
    repository.release()
    built(engine, recipe, repository, state)
    assert list((state / "images").glob(".build-*")) == []


def _mentions(text: str) -> list[str]:
    """Command lines of processes that mention a path."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if text in line:
                found.append(line)
    return found
