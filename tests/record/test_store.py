from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from rvvbench.errors import CheckFailed, EnvironmentLacks, UsageError
from rvvbench.record.store import RecordStore, read_record, to_json

from . import sample
from .test_metrics import json_values

RUN_ID = "20261130T221500-llama-one-batch-1a2b3c"


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "results")


def test_a_written_record_is_loaded_by_run_id_by_path_and_by_a_beginning(store: RecordStore) -> None:
    record = sample.record()
    path = store.write(record)
    assert path == store.folder / f"{RUN_ID}.json"
    for ref in (RUN_ID, str(path), path, path.name, "20261130T22"):
        assert store.load(ref) == record


def test_writing_leaves_only_the_record(store: RecordStore) -> None:
    store.write(sample.record())
    assert [path.name for path in store.folder.iterdir()] == [f"{RUN_ID}.json"]


def test_a_record_is_never_overwritten(store: RecordStore) -> None:
    path = store.write(sample.record())
    before = path.read_bytes()
    with pytest.raises(CheckFailed, match="never overwritten"):
        store.write(sample.record(title="another"))
    assert path.read_bytes() == before
    assert len(list(store.folder.iterdir())) == 1


@pytest.mark.parametrize("taken", [False, True])
def test_without_hard_links_a_record_is_still_written_and_never_overwritten(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    def no_link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    path = store.write(sample.record())
    assert store.load(RUN_ID) == sample.record()
    if taken:
        before = path.read_bytes()
        with pytest.raises(CheckFailed):
            store.write(sample.record(title="another"))
        assert path.read_bytes() == before
    assert len(list(store.folder.iterdir())) == 1


def test_a_crash_while_writing_leaves_no_record(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentLacks, match="No space left"):
        store.write(sample.record())
    assert list(store.folder.iterdir()) == []


def test_the_file_is_json_that_holds_the_record_to_the_last_bit(store: RecordStore) -> None:
    record = sample.record(notes=["Größe ∆"])
    path = store.write(record)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(to_json(record))
    assert "Größe" in text and text.endswith("}\n")
    assert to_json(read_record(path)) == text


def test_an_event_and_a_figure_are_a_line_each_so_that_differences_can_be_read() -> None:
    record = sample.record()
    lines = to_json(record).splitlines()
    assert sum('"event": "decode"' in line for line in lines) == 2 * 7
    assert all(line.count('"event"') <= 1 for line in lines)
    assert any(line.strip().startswith('"ttft_s": {"value": 3.0, "unit": "s"') for line in lines)


@settings(max_examples=50)
@given(json_values)
def test_the_layout_is_the_same_json(value: Any) -> None:
    record = sample.record(machine={"free": value, "long": [value] * 30})
    assert json.loads(to_json(record)) == json.loads(json.dumps(record.plain()))


def test_what_is_not_there_is_a_usage_error_that_says_where(store: RecordStore) -> None:
    for ref in ("nothing", "./nothing.json", ""):
        with pytest.raises(UsageError, match="there is no record"):
            store.load(ref)


def test_the_beginning_of_two_run_ids_is_refused(store: RecordStore) -> None:
    store.write(sample.record(run_id="2026-a"))
    store.write(sample.record(run_id="2026-b"))
    store.write(sample.record(run_id="2026"))
    with pytest.raises(UsageError, match="beginning of 2 run ids: 2026-a, 2026-b"):
        store.load("2026-")
    assert store.load("2026").run_id == "2026"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n "schema": ', "no JSON"),
        ('{"schema": NaN}', "NaN is no JSON number"),
        ("[]", "its schema is None"),
        ('{"schema": "rvvbench/record/1", "a": {"b": [{"c": 1, "c": 1}]}}', "the key 'c' stands twice in one object"),
        ('{"schema": "rvvbench/record/2"}', "its schema is rvvbench/record/2, read is rvvbench/record/1"),
        ('{"schema": "rvvbench/record/1"}', "does not fit its schema: run_id: Field required"),
    ],
)
def test_a_file_that_is_no_record_is_a_clear_error(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(CheckFailed, match=said) as caught:
        read_record(path)
    assert caught.value.where is not None and caught.value.where.startswith(str(path))
    assert caught.value.mend


def test_bytes_that_are_no_text_are_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckFailed, match="no UTF-8"):
        read_record(path)


def test_the_list_is_oldest_first_and_shows_what_cannot_be_read(store: RecordStore) -> None:
    assert store.list() == []
    store.write(sample.record(run_id="b", created="2026-11-30T01:00:00Z"))
    store.write(sample.record(run_id="a", created="2026-11-30T02:00:00Z"))
    (store.folder / "0.json").write_text("{")
    entries = store.list()
    assert [entry.path.stem for entry in entries] == ["b", "a", "0"]
    assert entries[2].record is None and entries[2].problem is not None and "no JSON" in entries[2].problem
