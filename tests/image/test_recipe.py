"""Recipes: reading, refusing, identity."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.errors import ManifestError, UsageError
from rvvbench.image.recipe import load_recipe

TINY = """\
schema: rvvbench/image-recipe/1
name: tiny
architectures: [riscv64, amd64]
suite: toy
source_date_epoch: 1764000000
packages:
  # a comment
  - hello
  - world
"""


def folder(tmp_path: Path, text: str, hook: str = "true\n") -> Path:
    (tmp_path / "hooks").mkdir(exist_ok=True)
    (tmp_path / "hooks" / "customize.sh").write_text(hook)
    (tmp_path / "tiny.yaml").write_text(text)
    return tmp_path


def test_our_recipes_are_right_and_know_their_lines() -> None:
    for name in ("runtime", "toolchain"):
        recipe = load_recipe(name)
        for package in recipe.model.packages:
            file, line = recipe.where(package).rsplit(":", 1)
            assert Path(file).read_text().splitlines()[int(line) - 1].strip() == f"- {package}"


def test_the_runtime_recipe_is_for_every_architecture_in_the_same_words() -> None:
    assert load_recipe("runtime").model.architectures == ("riscv64", "amd64", "arm64")


def test_no_recipe_or_hook_names_a_mirror() -> None:
    for path in (project.root() / "images").rglob("*.*"):
        assert "://" not in path.read_text(), path


def test_comments_and_the_order_of_keys_do_not_change_the_identity(tmp_path: Path) -> None:
    first = load_recipe("tiny", folder(tmp_path, TINY)).sha256
    lines = TINY.replace("  # a comment\n", "").splitlines(keepends=True)
    second = load_recipe("tiny", folder(tmp_path, "".join(lines[1:] + lines[:1]))).sha256
    assert first == second


@pytest.mark.parametrize(
    ("old", "new"), [("hello", "hallo"), ("1764000000", "1764000001"), ("suite: toy", "suite: toy2")]
)
def test_content_changes_the_identity(tmp_path: Path, old: str, new: str) -> None:
    first = load_recipe("tiny", folder(tmp_path, TINY)).sha256
    assert load_recipe("tiny", folder(tmp_path, TINY.replace(old, new))).sha256 != first


def test_a_hook_changes_the_identity(tmp_path: Path) -> None:
    first = load_recipe("tiny", folder(tmp_path, TINY)).sha256
    assert load_recipe("tiny", folder(tmp_path, TINY, hook="false\n")).sha256 != first


def test_a_typo_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_recipe("tiny", folder(tmp_path, TINY + "pakages: []\n"))
    assert str(caught.value.where).endswith("tiny.yaml:10")


def test_a_wrong_package_name_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        load_recipe("tiny", folder(tmp_path, TINY.replace("world", "wor ld")))
    assert str(caught.value.where).endswith("tiny.yaml:9")


def test_an_unknown_recipe_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe("tony", folder(tmp_path, TINY))
    assert "tiny" in str(caught.value.mend)


def test_the_name_holds_recipe_and_architecture(tmp_path: Path) -> None:
    recipe = load_recipe("tiny", folder(tmp_path, TINY))
    assert recipe.image_name("riscv64") == f"localhost/rvvbench/tiny-riscv64:{recipe.sha256[:12]}"
