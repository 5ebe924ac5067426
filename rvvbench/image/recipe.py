"""A recipe: what an image is made of. The file is `images/<name>.yaml`; the same words serve every architecture."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rvvbench import project
from rvvbench.errors import ManifestError, UsageError

SCHEMA = "rvvbench/image-recipe/1"
# Counted up whenever this package changes what the same recipe becomes; part of the recipe's hash.
BUILDER = 1

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\s\"']*$")]


class Wheel(BaseModel):
    """A wheel that is unpacked into dist-packages. `drop` are patterns of files inside it that are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: str
    file: str
    sha256: Sha256
    drop: tuple[str, ...] = ()


class RecipeModel(BaseModel):
    """The recipe as it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: Literal["rvvbench/image-recipe/1"] = Field(alias="schema")
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    architectures: tuple[Literal["riscv64", "amd64", "arm64"], ...]
    suite: str
    source_date_epoch: int
    packages: tuple[PackageName, ...]
    variant: Literal["minbase", "extract"] = "minbase"
    exclude: tuple[AbsolutePath, ...] = ()
    wheels: tuple[Wheel, ...] = ()
    files: dict[AbsolutePath, str] = {}
    byte_compile: tuple[AbsolutePath, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A recipe and where it comes from. `hooks`: the programs that take part in building it, by file name.

    `sha256` covers the content, the hooks, and the version of the builder.
    """

    model: RecipeModel
    path: Path
    hooks: dict[str, bytes]
    sha256: str
    package_lines: dict[str, int]

    @property
    def name(self) -> str:
        return self.model.name

    def where(self, package: str | None = None) -> str:
        """file:line of a package, or the file."""
        line = self.package_lines.get(package) if package else None
        return f"{self.path}:{line}" if line else str(self.path)

    def image_name(self, arch: str) -> str:
        """The name under which podman knows the image."""
        return f"localhost/rvvbench/{self.name}-{arch}:{self.sha256[:12]}"


def load_recipe(name: str, folder: Path | None = None) -> Recipe:
    """The recipe of that name. Raises UsageError for an unknown one and ManifestError for a wrong one."""
    folder = project.root() / "images" if folder is None else folder
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(found.stem for found in folder.glob("*.yaml")))
        raise UsageError(f"no image recipe is called {name}", where=str(folder), mend=f"choose one of: {known}")
    text = path.read_text()
    try:
        data = yaml.safe_load(text)
        model = RecipeModel.model_validate(data)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ManifestError(f"not YAML: {error.problem}", where=f"{path}:{line}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(first["loc"])
        where = f"{path}:{_line_of(text, place)}"
        raise ManifestError(f"{'.'.join(map(str, place))}: {first['msg']}", where=where) from error
    hooks = _hook_files(folder / "hooks")
    lines = {package: _line_of(text, ("packages", index)) for index, package in enumerate(model.packages)}
    return Recipe(model, path, hooks, recipe_sha256(model, hooks), lines)


def recipe_sha256(model: RecipeModel, hooks: dict[str, bytes]) -> str:
    """The identity of a recipe: equal for equal content, whatever the comments and the order of keys."""
    content: dict[str, Any] = {
        "builder": BUILDER,
        "recipe": model.model_dump(mode="json", by_alias=True),
        "hooks": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(hooks.items())},
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _hook_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".sh", ".py")}


def _line_of(text: str, place: tuple[int | str, ...]) -> int:
    """The line of the deepest node of `place` that exists, from 1."""
    node = yaml.compose(text)
    line = 1
    for step in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == step:
                    line, found = key.start_mark.line + 1, value
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            found = node.value[step]
            line = found.start_mark.line + 1
        if found is None:
            break
        node = found
    return line
