"""YAML files that remember where each value stands, so that an error can name file and line."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rvvbench.errors import ManifestError

Key = tuple[str | int, ...]


@dataclass
class Document:
    """Plain data, and for every path in it the place it came from (`file:line`, or the option that set it)."""

    data: dict[str, Any]
    places: dict[Key, str] = field(default_factory=dict)
    name: str = ""

    def where(self, path: Key) -> str:
        """Place of `path`, or of its nearest parent that has one."""
        for length in range(len(path), -1, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return place
        return self.name

    def overlaid(self, data: Mapping[str, Any], places: Mapping[Key, str]) -> Document:
        """A copy with `data` merged in: mappings merge key by key, everything else replaces."""
        merged = Document(_copy(self.data), dict(self.places), self.name)
        _merge(merged.data, data, (), merged.places, places)
        return merged

    def section(self, path: Key) -> Document:
        """The mapping at `path` as a document of its own; an absent one is empty."""
        node: Any = self.data
        for key in path:
            node = node.get(key) if isinstance(node, dict) else None
        data = _copy(node) if isinstance(node, dict) else {}
        size = len(path)
        places = {key[size:]: place for key, place in self.places.items() if key[:size] == path}
        return Document(data, places, self.where(path))

    def without(self, key: str) -> Document:
        """A copy that lacks the top-level `key`."""
        data = {name: value for name, value in self.data.items() if name != key}
        return Document(data, {path: place for path, place in self.places.items() if path[:1] != (key,)}, self.name)


def load(path: Path) -> Document:
    """Read one YAML file whose top level is a mapping.

    Raises ManifestError with file and line for a file that is missing, is no YAML, repeats a key, or is no mapping.
    """
    shown = display(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ManifestError(f"cannot read the file: {error.strerror}", where=shown, mend="rvvbench list") from error
    return parse(text, shown)


def parse(text: str, name: str) -> Document:
    """Parse YAML text; `name` is what places are called."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ManifestError(f"not valid YAML: {error.problem or error.context}", where=f"{name}:{line}") from error
    if not isinstance(root, yaml.MappingNode):
        raise ManifestError("the top level must be a mapping", where=f"{name}:1")
    places: dict[Key, str] = {}
    data = _construct(root, (), name, places)
    return Document(data, places, name)


def display(path: Path) -> str:
    """The path as a person would type it: relative to the current folder where that is shorter."""
    try:
        relative = path.resolve().relative_to(Path.cwd())
    except ValueError:
        return str(path)
    return str(relative)


def _construct(node: yaml.Node, path: Key, name: str, places: dict[Key, str]) -> Any:
    places.setdefault(path, f"{name}:{node.start_mark.line + 1}")
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise ManifestError(f"keys must be strings, not {key!r}", where=f"{name}:{line}", mend="quote the key")
            if key in result:
                raise ManifestError(f"the key {key!r} stands twice", where=f"{name}:{line}", mend="remove one of them")
            places[(*path, key)] = f"{name}:{line}"
            result[key] = _construct(value_node, (*path, key), name, places)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*path, index), name, places) for index, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Hashable:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)  # type: ignore[no-any-return]
    finally:
        loader.dispose()


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _merge(
    base: dict[str, Any], over: Mapping[str, Any], path: Key, places: dict[Key, str], over_places: Mapping[Key, str]
) -> None:
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value, here, places, over_places)
            continue
        base[key] = _copy(value)
        for old in [place for place in places if place[: len(here)] == here]:
            del places[old]
        for new, place in over_places.items():
            if new[: len(here)] == here:
                places[new] = place
