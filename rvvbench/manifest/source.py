"""YAML files that remember where each value stands, so that an error can name file and line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rvvbench.errors import ManifestError

Key = tuple[str | int, ...]

YAML_TAG = "tag:yaml.org,2002:"
PLAIN_SCALARS = {f"{YAML_TAG}{name}" for name in ("null", "bool", "int", "float")}
MAX_DEPTH = 32
"""Levels of nesting; no manifest needs ten."""


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


def load(path: Path, *, mend: str | None = None) -> Document:
    """Read one YAML file whose top level is a mapping.

    Raises ManifestError for a file that cannot be read (with `mend`), and as `parse` does.
    """
    shown = display(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ManifestError(f"cannot read the file: {error.strerror}", where=shown, mend=mend) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ManifestError(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x}", where=f"{shown}:{line}", mend="save it as UTF-8"
        ) from error
    return parse(text, shown)


def parse(text: str, name: str) -> Document:
    """Parse YAML text; `name` is what places are called.

    Raises ManifestError with file and line for text that is no YAML, repeats a key, has more of YAML than plain data
    (tags of its own, aliases, merge keys), or is no mapping.
    """
    reader = _Reader(lambda line: f"{name}:{line}")
    root = reader.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise ManifestError("the top level must be a mapping", where=f"{name}:1")
    return Document(reader.construct(root, ()), reader.places, name)


def parse_value(text: str, option: str, path: Key) -> tuple[Any, dict[Key, str]]:
    """The value of a command-line option as YAML, and the places (all `option`) of all that is in it, below `path`.

    Raises ManifestError as `parse` does, placed at `option`.
    """
    reader = _Reader(lambda _line: option)
    root = reader.compose(text)
    if root is None:
        return None, {path: option}
    return reader.construct(root, path), reader.places


def display(path: Path) -> str:
    """The path as a person would type it: relative to the current folder where that is shorter."""
    try:
        relative = path.resolve().relative_to(Path.cwd())
    except ValueError:
        return str(path)
    return str(relative)


class _Reader:
    """Nodes of PyYAML to plain data. Only plain data: what else YAML can say is refused at its line."""

    def __init__(self, place: Callable[[int], str]) -> None:
        self.place = place
        self.places: dict[Key, str] = {}

    def compose(self, text: str) -> yaml.Node | None:
        try:
            self._refuse_aliases_and_depth(text)
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = self.place(mark.line + 1 if mark else 1)
            raise ManifestError(f"not valid YAML: {error.problem or error.context}", where=where) from error
        except yaml.reader.ReaderError as error:
            where = self.place(text.count("\n", 0, error.position) + 1)
            code = error.character if isinstance(error.character, int) else ord(error.character)
            raise ManifestError(f"the character U+{code:04X} is not allowed in YAML", where=where) from error

    def _refuse_aliases_and_depth(self, text: str) -> None:
        """By the flat stream of events, because composing recurses: a deep file would exhaust Python's stack."""
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.AliasEvent):
                raise ManifestError(
                    f"aliases (*{event.anchor}) are not allowed", where=self.place(line), mend="write the value out"
                )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise ManifestError(f"nested more than {MAX_DEPTH} levels deep", where=self.place(line))

    def construct(self, node: yaml.Node, path: Key) -> Any:
        where = self.place(node.start_mark.line + 1)
        self.places.setdefault(path, where)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, where)
        plain = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != f"{YAML_TAG}{plain}":
            raise ManifestError(f"the tag {_tag(node)} is not allowed", where=where, mend="remove the tag")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.construct(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Key) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = self.place(key_node.start_mark.line + 1)
            if key_node.tag == f"{YAML_TAG}merge":
                raise ManifestError("merge keys (<<) are not allowed", where=where, mend="write the keys out")
            key = _scalar(key_node, where) if isinstance(key_node, yaml.ScalarNode) else key_node.value
            if not isinstance(key, str):
                shown = repr(key) if isinstance(key_node, yaml.ScalarNode) else "collections"
                raise ManifestError(f"keys must be strings, not {shown}", where=where, mend="quote the key")
            if key in result:
                raise ManifestError(f"the key {key!r} stands twice", where=where, mend="remove one of them")
            self.places[(*path, key)] = where
            result[key] = self.construct(value_node, (*path, key))
        return result


def _scalar(node: yaml.ScalarNode, where: str) -> str | int | float | bool | None:
    """The value of a scalar. A date is the text that it was written as: no manifest has a use for another type."""
    value: Any
    if node.tag in (f"{YAML_TAG}str", f"{YAML_TAG}timestamp"):
        value = node.value
    elif node.tag in PLAIN_SCALARS:
        loader = yaml.SafeLoader("")
        try:
            value = loader.construct_object(node)
        except (ValueError, LookupError, yaml.YAMLError) as error:
            raise ManifestError(f"{node.value!r:.80} is no value of the type {_tag(node)}", where=where) from error
        finally:
            loader.dispose()
    else:
        raise ManifestError(
            f"the tag {_tag(node)} is not allowed", where=where, mend="remove the tag, or quote the text"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise ManifestError(f"{node.value} is no finite number", where=where, mend="write a finite number")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ManifestError("the text holds half of a surrogate pair", where=where)
    return value  # type: ignore[no-any-return]


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace(YAML_TAG, "!!")


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
