"""Checkpoints from a Hub (a double of it on loopback)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_double import HubDouble

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.provide.checkpoint import ensure_hub

REPO, REVISION = "someone/model", "4e20de362430cd3b72f300e6b0f18e50e7166e08"
FILES = {
    "config.json": b'{"vocab_size": 8}',
    "tokenizer.json": b"{}",
    "tokenizer.model": b"\x00\x01",
    "model.safetensors": bytes(range(256)) * 100,
    "README.md": b"not wanted",
    "pytorch_model.bin": b"not wanted",
    "original/params.json": b"not wanted",
}
WANTED = {"config.json", "tokenizer.json", "tokenizer.model", "model.safetensors"}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of the machine's own account or cache, and no waiting for retries.
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    double = HubDouble(REPO, REVISION, dict(FILES))
    double.start()
    yield double
    double.stop()


def test_the_files_of_the_checkpoint_are_downloaded_and_hashed(hub: HubDouble, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    locked = {name: sha256(FILES[name]) for name in WANTED}
    folder = tmp_path / "checkpoints" / "model"
    checkpoint = ensure_hub(REPO, REVISION, locked, folder, endpoint=hub.endpoint, progress=lambda *p: seen.append(p))
    assert checkpoint.path == folder
    assert checkpoint.kind == "hub"
    assert dict(checkpoint.files) == {name: (sha256(FILES[name]), len(FILES[name])) for name in WANTED}
    assert sorted(path.name for path in folder.rglob("*")) == sorted(WANTED)
    assert seen[-1] == (sum(len(FILES[name]) for name in WANTED),) * 2


def test_the_second_use_asks_the_hub_nothing(hub: HubDouble, tmp_path: Path) -> None:
    first = ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    hub.requests.clear()
    assert ensure_hub(REPO, REVISION, {"config.json": None}, tmp_path / "model", endpoint=hub.endpoint) == first
    assert hub.requests == []


def test_another_hash_than_the_locked_one_stops_and_leaves_nothing(hub: HubDouble, tmp_path: Path) -> None:
    locked = {"config.json": "0" * 64, "tokenizer.json": None}
    with pytest.raises(ManifestError) as caught:
        ensure_hub(REPO, REVISION, locked, tmp_path / "model", endpoint=hub.endpoint, where=lambda name: f"lock:{name}")
    assert "config.json" in caught.value.cause
    assert sha256(FILES["config.json"]) in caught.value.cause
    assert "0" * 64 in caught.value.cause
    assert caught.value.where == "lock:config.json"
    assert not (tmp_path / "model").exists()


def test_a_lock_that_changes_later_is_found_without_the_hub(hub: HubDouble, tmp_path: Path) -> None:
    ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    with pytest.raises(ManifestError, match=r"tokenizer\.json with sha256"):
        ensure_hub(REPO, REVISION, {"tokenizer.json": "1" * 64}, tmp_path / "model", endpoint=hub.endpoint)


def test_a_locked_file_that_the_revision_lacks_is_named(hub: HubDouble, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no model-00002\.safetensors"):
        ensure_hub(REPO, REVISION, {"model-00002.safetensors": None}, tmp_path / "model", endpoint=hub.endpoint)


def test_a_file_that_changes_on_disk_is_found(hub: HubDouble, tmp_path: Path) -> None:
    ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(RvvbenchError, match=r"config\.json with sha256") as caught:
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    assert str(tmp_path / "model") in str(caught.value.mend)


def test_a_folder_of_another_revision_is_not_taken(hub: HubDouble, tmp_path: Path) -> None:
    ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    with pytest.raises(RvvbenchError, match=f"revision {REVISION}, not"):
        ensure_hub(REPO, "a" * 40, {}, tmp_path / "model", endpoint=hub.endpoint)


def test_a_gated_repository_says_what_to_accept_and_set(hub: HubDouble, tmp_path: Path) -> None:
    hub.gated_token = "hf_secret"
    with pytest.raises(EnvironmentLacks, match="gated") as caught:
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    assert "HF_TOKEN" in str(caught.value.mend)
    assert "licence" in str(caught.value.mend)
    assert caught.value.where == f"{hub.endpoint}/{REPO}"
    assert (
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", token="hf_secret", endpoint=hub.endpoint).files.keys()
        == WANTED
    )


def test_a_missing_revision_and_a_missing_repository_are_told_apart(hub: HubDouble, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=f"no revision {'b' * 40}"):
        ensure_hub(REPO, "b" * 40, {}, tmp_path / "model", endpoint=hub.endpoint)
    with pytest.raises(ManifestError, match="no repository someone/else"):
        ensure_hub("someone/else", REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)


def test_a_branch_is_no_revision(hub: HubDouble, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="not a commit"):
        ensure_hub(REPO, "main", {}, tmp_path / "model", endpoint=hub.endpoint)
    assert hub.requests == []


def test_a_revision_that_resolves_to_another_commit_is_refused(hub: HubDouble, tmp_path: Path) -> None:
    hub.sha = "c" * 40
    with pytest.raises(ManifestError, match=f"resolves the revision {REVISION} to {'c' * 40}"):
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)


def test_weights_that_are_not_what_the_hub_lists_are_refused(hub: HubDouble, tmp_path: Path) -> None:
    hub.served["model.safetensors"] = bytes(len(FILES["model.safetensors"]))
    with pytest.raises(RvvbenchError, match="the Hub lists"):
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    assert not (tmp_path / "model").exists()


def test_a_repository_without_safetensors_is_refused(hub: HubDouble, tmp_path: Path) -> None:
    del hub.files["model.safetensors"]
    with pytest.raises(ManifestError, match="no safetensors"):
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)


def test_without_a_network_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="cannot be reached") as caught:
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint="http://127.0.0.1:9")
    assert "--weights synthetic" in str(caught.value.mend)
    assert not (tmp_path / "model").exists()


def test_offline_mode_counts_as_no_network(hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(EnvironmentLacks, match="cannot be reached"):
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)


def test_a_folder_without_its_receipt_is_not_trusted(hub: HubDouble, tmp_path: Path) -> None:
    ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
    receipt = tmp_path / "model.receipt.json"
    assert json.loads(receipt.read_text())["revision"] == REVISION
    receipt.unlink()
    with pytest.raises(RvvbenchError, match="nothing says what was downloaded"):
        ensure_hub(REPO, REVISION, {}, tmp_path / "model", endpoint=hub.endpoint)
