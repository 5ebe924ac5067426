"""From files to models: validation errors get the file and line of the value that is wrong."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from rvvbench.errors import ManifestError, UsageError
from rvvbench.manifest.models import Board, Dataset, Experiment, Model, Stack, Variant
from rvvbench.manifest.source import Document, Key, load, parse_value

T = TypeVar("T", bound=BaseModel)

KINDS: dict[str, type[BaseModel]] = {
    "experiments": Experiment,
    "models": Model,
    "datasets": Dataset,
    "stacks": Stack,
    "boards": Board,
    "variants": Variant,
}


def validated(model: type[T], document: Document) -> T:
    """`document` as a `model`; raises ManifestError at the first wrong value and counts the others."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise _manifest_error(model, document, error) from error


def names(manifests: Path, kind: str) -> list[str]:
    """Names of all manifests of a kind, sorted; raises ManifestError where the folder of the kind is missing."""
    folder = manifests / kind
    require_folder(folder)
    return sorted(path.stem for path in folder.glob("*.yaml"))


def require_folder(folder: Path) -> None:
    """Raise ManifestError, with the variable that may be to blame, where a folder of manifests is missing."""
    if folder.is_dir():
        return
    override = os.environ.get("RVVBENCH_MANIFESTS")
    raise ManifestError(
        "this folder of manifests does not exist"
        + (f"; the variable RVVBENCH_MANIFESTS says {override!r}" if override else ""),
        where=str(folder),
        mend="unset RVVBENCH_MANIFESTS, or let it name a folder that holds " + ", ".join(KINDS),
    )


def load_document(manifests: Path, kind: str, name: str) -> Document:
    """The document of one manifest, checked to bear the name of its file.

    Raises UsageError for a name that does not exist, with the nearest one that does.
    """
    known = names(manifests, kind)
    singular = kind.rstrip("s")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
        raise UsageError(
            f"there is no {singular} called {name!r}; {hint}", where=str(manifests / kind), mend="rvvbench list"
        )
    document = load(manifests / kind / f"{name}.yaml")
    if document.data.get("name") != name:
        raise ManifestError(
            f"the manifest calls itself {document.data.get('name')!r}, its file {name!r}",
            where=document.where(("name",)),
            mend=f"write `name: {name}`",
        )
    return document


def load_manifest(manifests: Path, kind: str, name: str, model: type[T]) -> tuple[T, Document]:
    """One manifest, validated, with its places."""
    document = load_document(manifests, kind, name)
    return validated(model, document), document


def set_values(document: Document, settings: list[str]) -> Document:
    """Apply `--set key.path=value` options; values are read as YAML.

    Raises UsageError for an option without `=`, for a path that runs through something that is no mapping or that
    cannot be set, and ManifestError for a value that is not plain data.
    """
    for setting in settings:
        path, separator, text = setting.partition("=")
        if not separator or not path:
            raise UsageError(f"--set takes KEY=VALUE, not {setting!r}", mend="e.g. --set workload.output_len=16")
        option = f"--set {setting}"
        keys = path.split(".")
        if not all(keys):
            raise UsageError(f"{path!r} has an empty key", where=option, mend="e.g. --set workload.output_len=16")
        if keys[0] == "targets":
            raise UsageError(
                "`targets` cannot be set: the overlay of the chosen target is applied already",
                where=option,
                mend=f"--set {'.'.join(keys[2:]) or 'KEY'}=VALUE",
            )
        value, places = parse_value(text, option, tuple(keys))
        node: Any = document.data
        for key in keys[:-1]:
            node = node.get(key) if isinstance(node, dict) else None
            if node is not None and not isinstance(node, dict):
                raise UsageError(f"{path!r}: {key!r} is no mapping", where=option, mend="rvvbench show EXPERIMENT")
        nested: dict[str, Any] = {}
        inner = nested
        for key in keys[:-1]:
            inner[key] = {}
            inner = inner[key]
        inner[keys[-1]] = value
        document = document.overlaid(nested, places)
    return document


def _manifest_error(model: type[BaseModel], document: Document, error: ValidationError) -> ManifestError:
    problems = error.errors(include_url=False)
    # A mistyped key is both unknown and missing: the unknown one is what stands in the file.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    path = _path_in(document, first["loc"])
    shown = ".".join(str(part) for part in path)
    where = document.where(path)
    mend = None
    if first["type"] == "extra_forbidden":
        key = str(path[-1])
        allowed = _fields_beside(document, model, path)
        near = difflib.get_close_matches(key, allowed, n=1)
        cause = f"unknown key {shown!r}"
        mend = f"did you mean {near[0]!r}?" if near else f"known keys here: {', '.join(allowed)}"
    elif first["type"] == "missing":
        cause = f"the key {shown!r} is missing"
        where = document.where(path[:-1])
        mend = f"add `{path[-1]}:`"
    else:
        cause = first["msg"].removeprefix("Value error, ")
        if path:
            cause = f"{shown}: {cause} (got {first['input']!r:.80})"
    if len(problems) > 1:
        cause += f" (and {len(problems) - 1} more)"
    return ManifestError(cause, where=where, mend=mend)


def _path_in(document: Document, loc: tuple[int | str, ...]) -> Key:
    """Pydantic's location without the tags of discriminated unions, which are no keys of the file."""
    path: list[str | int] = []
    node: Any = document.data
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        inside = part in node if isinstance(node, dict) else isinstance(part, int) and part < len(node or ())
        if inside:
            node = node[part]
            path.append(part)
        elif last:
            path.append(part)
    return tuple(path)


def _fields_beside(document: Document, model: type[BaseModel], path: Key) -> list[str]:
    """Keys that the model knows at the place of the unknown key `path`."""
    current: type[BaseModel] = model
    node: Any = document.data
    for part in path[:-1]:
        info = current.model_fields.get(str(part))
        node = node.get(part) if isinstance(node, dict) else None
        found = _member(info.annotation if info else None, node)
        if found is None:
            return []
        current = found
    return sorted(info.alias or name for name, info in current.model_fields.items())


def _member(annotation: Any, node: Any) -> type[BaseModel] | None:
    """The model that reads `node`; of a union of models, the one whose `kind` stands there."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    kind = node.get("kind") if isinstance(node, dict) else None
    members = [member for member in get_args(annotation) if isinstance(member, type) and issubclass(member, BaseModel)]
    for member in members:
        info = member.model_fields.get("kind")
        if info is not None and kind in get_args(info.annotation):
            return member
    return None
