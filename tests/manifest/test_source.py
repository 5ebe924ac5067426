from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.errors import ManifestError
from rvvbench.manifest.source import Document, load, parse, parse_value

scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("abc xyz", max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcd", min_size=1), inner, max_size=3)
)
mappings = st.dictionaries(st.text("abcd", min_size=1), values, max_size=4)


def test_every_value_knows_its_line() -> None:
    document = parse("a: 1\nb:\n  c: 2\n  d: [3,\n    4]\n", "f.yaml")
    assert document.data == {"a": 1, "b": {"c": 2, "d": [3, 4]}}
    assert document.where(("a",)) == "f.yaml:1"
    assert document.where(("b", "c")) == "f.yaml:3"
    assert document.where(("b", "d", 1)) == "f.yaml:5"


def test_a_path_that_is_absent_is_placed_at_its_parent() -> None:
    assert parse("a: 1\nb:\n  c: 2\n", "f.yaml").where(("b", "x", "y")) == "f.yaml:2"


def test_a_repeated_key_is_an_error_at_its_second_line() -> None:
    with pytest.raises(ManifestError, match="twice") as caught:
        parse("a: 1\nb: 2\na: 3\n", "f.yaml")
    assert caught.value.where == "f.yaml:3"


def test_broken_yaml_is_an_error_at_its_line() -> None:
    with pytest.raises(ManifestError, match="not valid YAML") as caught:
        parse("a: 1\nb: [1, 2\nc: 3\n", "f.yaml")
    assert caught.value.where == "f.yaml:3"


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "just text\n"])
def test_a_top_level_that_is_no_mapping_is_an_error(text: str) -> None:
    with pytest.raises(ManifestError, match="mapping"):
        parse(text, "f.yaml")


def test_an_empty_file_is_an_error() -> None:
    with pytest.raises(ManifestError):
        parse("", "f.yaml")


@given(mappings)
def test_parsing_agrees_with_pyyaml(data: dict[str, object]) -> None:
    text = yaml.safe_dump(data, sort_keys=False)
    assert parse(text, "f").data == yaml.safe_load(text)


@given(mappings, mappings)
def test_an_overlay_wins_and_leaves_the_base_alone(base: dict[str, object], over: dict[str, object]) -> None:
    before = yaml.safe_dump(base)
    merged = Document(base, {(): "base"}).overlaid(over, {(): "over"})
    for key, value in over.items():
        if not isinstance(value, dict):
            assert merged.data[key] == value
    assert set(merged.data) == set(base) | set(over)
    assert yaml.safe_dump(base) == before


def test_places_follow_an_overlay() -> None:
    base = parse("a: 1\nb: [1, 2]\n", "base.yaml")
    over = parse("x: 0\nb: [3]\n", "over.yaml")
    merged = base.overlaid(over.data, over.places)
    assert merged.where(("a",)) == "base.yaml:1"
    assert merged.where(("b",)) == "over.yaml:2"
    assert merged.where(("b", 0)) == "over.yaml:2"


@pytest.mark.parametrize(
    "value",
    [
        "!foo bar",
        "!foo {a: 1}",
        "!!set {a, b}",
        "!!int abc",
        "!!int ''",
        "!!bool maybe",
        "!!timestamp {a: 1}",
        "!!binary aGk=",
        "!!python/name:os.system",
        "=",
        "&a [*a]",
        "{<<: {weights: synthetic}}",
        "{a: 1, a: 2}",
        "{1: 2}",
        "{[a]: 2}",
        ".inf",
        "-.inf",
        ".nan",
        "[1, .inf]",
        '"\\ud800"',
        "\x01",
        "9" * 5000,
        "[" * 5000,
        "{a: " * 5000,
    ],
    ids=lambda value: value[:16].encode("unicode_escape").decode(),
)
def test_what_is_no_plain_data_is_an_error_at_its_place(value: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(f"a: 1\nx: {value}\n", "f.yaml")
    assert caught.value.where == "f.yaml:2"
    with pytest.raises(ManifestError) as caught:
        parse_value(value, "--set x", ("x",))
    assert caught.value.where == "--set x"


def test_a_merge_key_at_the_top_is_an_error() -> None:
    with pytest.raises(ManifestError, match="merge") as caught:
        parse("a: 1\n<<: {weights: synthetic}\n", "f.yaml")
    assert caught.value.where == "f.yaml:2"


@pytest.mark.parametrize("text", ["2026-99-99", "2026-11-30", "2026-11-30T01:02:03Z"])
def test_a_date_is_the_text_that_it_was_written_as(text: str) -> None:
    assert parse(f"x: {text}\n", "f.yaml").data == {"x": text}
    assert parse_value(text, "--set x", ("x",))[0] == text


def test_a_file_that_is_not_utf8_is_an_error_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ManifestError, match="0xff") as caught:
        load(path)
    assert caught.value.where == f"{path}:2"


def test_a_missing_file_has_the_mend_that_its_reader_knows(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file") as caught:
        load(tmp_path / "f.yaml", mend="write it")
    assert caught.value.mend == "write it"
