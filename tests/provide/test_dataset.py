"""The data of a task: from a Hub (a double of it on loopback), and from files of this machine."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_double import HubDouble

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError, UsageError
from rvvbench.provide.dataset import Entry, dataset_kind, ensure_dataset, local_dataset, read_entries
from rvvbench.provide.hub_files import resolve_files

REPO, REVISION = "someone/sums", "e53f048856ff4f594e959d75785d2c2d37b678ee"
SPLITS = ("main/train.jsonl", "main/test.jsonl")


def lines(*names: str) -> bytes:
    return "".join(json.dumps({"question": f"{n}?", "answer": f"{n}! #### 1"}) + "\n" for n in names).encode()


def entries(*names: str) -> tuple[Entry, ...]:
    return tuple(Entry(f"{n}?", f"{n}! #### 1") for n in names)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


FILES = {
    SPLITS[0]: lines("a", "b"),
    SPLITS[1]: lines("c", "d", "e"),
    "main/other.jsonl": b"not wanted",
    "README.md": b"not wanted",
}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    double = HubDouble(REPO, REVISION, dict(FILES), space="datasets")
    double.start()
    yield double
    double.stop()


def test_only_the_files_of_the_splits_are_downloaded_and_the_second_use_asks_nothing(
    hub: HubDouble, tmp_path: Path
) -> None:
    folder = tmp_path / "datasets" / "sums"
    locked = {SPLITS[0]: sha256(FILES[SPLITS[0]]), SPLITS[1]: None}
    data = ensure_dataset(REPO, REVISION, SPLITS, locked, folder, endpoint=hub.endpoint)
    assert (data.train, data.test) == (entries("a", "b"), entries("c", "d", "e"))
    assert data.unlocked == (SPLITS[1],)
    assert sorted(path.name for path in folder.rglob("*.*")) == ["test.jsonl", "train.jsonl"]
    assert data.pins() == {
        "kind": "hub",
        "repo": REPO,
        "revision": REVISION,
        "train": SPLITS[0],
        "test": SPLITS[1],
        "files": {name: sha256(FILES[name]) for name in sorted(SPLITS)},
    }
    hub.requests.clear()
    assert ensure_dataset(REPO, REVISION, SPLITS, locked, folder, endpoint=hub.endpoint) == data
    assert hub.requests == []


def test_a_data_set_with_another_hash_than_the_locked_one_stops_and_leaves_nothing(
    hub: HubDouble, tmp_path: Path
) -> None:
    with pytest.raises(ManifestError, match=r"main/test\.jsonl with sha256") as caught:
        ensure_dataset(
            REPO, REVISION, SPLITS, {SPLITS[1]: "0" * 64}, tmp_path / "sums", endpoint=hub.endpoint, where=lambda n: n
        )
    assert caught.value.where == SPLITS[1]
    assert not (tmp_path / "sums").exists()


def test_a_file_of_the_data_set_that_changes_on_disk_is_found(hub: HubDouble, tmp_path: Path) -> None:
    ensure_dataset(REPO, REVISION, SPLITS, {}, tmp_path / "sums", endpoint=hub.endpoint)
    (tmp_path / "sums" / SPLITS[1]).write_bytes(lines("x"))
    with pytest.raises(RvvbenchError, match=r"test\.jsonl with sha256"):
        ensure_dataset(REPO, REVISION, SPLITS, {}, tmp_path / "sums", endpoint=hub.endpoint)


def test_a_revision_without_the_named_file_is_refused(hub: HubDouble, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"has no main/missing\.jsonl"):
        ensure_dataset(REPO, REVISION, (SPLITS[0], "main/missing.jsonl"), {}, tmp_path / "sums", endpoint=hub.endpoint)


def test_without_a_network_the_error_names_the_way_with_files_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="cannot be reached") as caught:
        ensure_dataset(REPO, REVISION, SPLITS, {}, tmp_path / "sums", endpoint="http://127.0.0.1:9")
    assert "--data FOLDER" in str(caught.value.mend)
    assert "--weights" not in str(caught.value.mend)
    assert "/datasets/someone/sums" in str(caught.value.where)


def test_the_lock_gets_the_hashes_of_the_files_that_the_manifest_names(hub: HubDouble) -> None:
    found = resolve_files(REPO, REVISION, kind=dataset_kind(SPLITS), endpoint=hub.endpoint)
    assert found == {name: sha256(FILES[name]) for name in SPLITS}


def test_of_a_large_file_the_lock_takes_the_hash_that_the_hub_lists(hub: HubDouble) -> None:
    hub.files["main/test.parquet"] = b"PAR1"
    hub.requests.clear()
    found = resolve_files(REPO, REVISION, kind=dataset_kind(["main/test.parquet"]), endpoint=hub.endpoint)
    assert found == {"main/test.parquet": sha256(b"PAR1")}
    assert not [request for request in hub.requests if "resolve" in request]


def test_a_folder_has_examples_and_questions_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(lines("a", "b"))
    (tmp_path / "test.jsonl").write_bytes(lines("c", "d") + b"\n")
    data = local_dataset(tmp_path)
    assert data.split(1, 2) == (entries("a"), entries("c", "d"))
    assert data.pins()["files"] == {
        "test.jsonl": sha256(lines("c", "d") + b"\n"),
        "train.jsonl": sha256(lines("a", "b")),
    }
    assert str(tmp_path) not in json.dumps(data.pins())


def test_in_a_single_file_the_examples_come_first_and_none_of_them_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_bytes(lines("a", "b", "c", "d"))
    data = local_dataset(path)
    assert data.split(2, 2) == (entries("a", "b"), entries("c", "d"))
    assert data.split(0, 4) == ((), entries("a", "b", "c", "d"))
    with pytest.raises(UsageError, match=r"3 questions are wanted, few\.jsonl has 2 behind its first 2, the") as caught:
        data.split(2, 3)
    assert caught.value.mend == "--questions 2"
    with pytest.raises(UsageError, match=r"5 examples are wanted, few\.jsonl has 4 entries"):
        data.split(5, 1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff", "no JSON"),
        (b"[1]", "no entry"),
        (b'{"question": "a?"}', "no entry"),
        (b'{"question": "", "answer": "1"}', "no entry"),
        (b'{"question": 1, "answer": "1"}', "no entry"),
        (b'{"question": "\\ud800", "answer": "1"}', "surrogate"),
    ],
)
def test_a_line_that_is_no_entry_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_bytes(lines("a") + line + b"\n")
    with pytest.raises(ManifestError, match=said) as caught:
        local_dataset(path)
    assert caught.value.where == f"{path}:2"


def test_what_is_neither_file_nor_folder_with_both_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        local_dataset(tmp_path / "none")
    (tmp_path / "test.jsonl").write_bytes(lines("a"))
    with pytest.raises(UsageError, match=r"no train\.jsonl"):
        local_dataset(tmp_path)


def test_parquet_without_its_reader_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "test.parquet").write_bytes(b"PAR1")
    with pytest.raises(EnvironmentLacks, match="pyarrow") as caught:
        read_entries(tmp_path / "test.parquet")
    assert "pip install pyarrow" in str(caught.value.mend)


def test_parquet_is_read_in_its_order_where_its_reader_is_installed(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "test.parquet"
    rows = [{"question": "b?", "answer": "b! #### 1"}, {"question": "a?", "answer": "a! #### 1"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert read_entries(path) == (entries("b", "a"), sha256(path.read_bytes()))
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ManifestError, match="no Parquet file"):
        read_entries(path)
