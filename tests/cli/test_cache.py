"""`rvvbench cache` and `--cache`, as a user meets them. No container is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rvvbench.cache.directory import listing
from rvvbench.cache.store import CacheStore, Origin
from rvvbench.cli.execution import settings_of
from rvvbench.cli.main import main
from rvvbench.errors import UsageError
from tests.cache.made_up import KEY, fill


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheStore:
    """With one cache in it."""
    monkeypatch.setenv("RVVBENCH_HOME", str(tmp_path))
    found = CacheStore(tmp_path / "caches")
    made = fill(tmp_path / "made")
    found.put(KEY.plain(), Origin("run-1", "inductor-packed/cold"), made, listing(made))
    return found


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rvvbench", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_the_list_names_key_and_origin(
    store: CacheStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "cache", "list", "--json") == 0
    [entry] = json.loads(capsys.readouterr().out)
    assert (entry["key"], entry["origin"]["run_id"], entry["state"]) == (KEY.digest, "run-1", "whole")
    assert entry["libraries"] == 1
    assert call(monkeypatch, "cache", "list") == 0
    assert KEY.digest in capsys.readouterr().out


def test_show_prints_every_field_and_fails_for_a_replaced_library(
    store: CacheStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "cache", "show", KEY.digest[:6]) == 0
    said = capsys.readouterr().out
    assert all(field in said for field in KEY.plain())
    kept = store.get(KEY.digest)
    assert kept is not None
    fill(kept.folder, {"ab/cab.main.so": "another"})
    assert call(monkeypatch, "cache", "show", KEY.digest[:6]) == 1
    assert "ab/cab.main.so was changed" in capsys.readouterr().err


def test_remove_takes_a_beginning_of_a_key(store: CacheStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "cache", "remove", "nothing") == 2
    assert call(monkeypatch, "cache", "remove", KEY.digest[:6]) == 0
    assert store.digests() == []


@pytest.mark.parametrize(
    ("cache", "setting"),
    [("cold", "cache_states=[cold]"), ("warm", "cache_states=[warm]"), ("both", "cache_states=[cold, warm]")],
)
def test_the_option_stands_for_a_setting(cache: str, setting: str) -> None:
    assert settings_of(["a=1"], weights=None, repeat=None, cache=cache) == ["a=1", setting]


def test_another_state_is_refused() -> None:
    with pytest.raises(UsageError, match="cold, warm or both"):
        settings_of([], weights=None, repeat=None, cache="hot")


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_cache_of_variants_that_compile_nothing_is_refused(
    command: str, store: CacheStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = {"run": "llama-one-batch", "serve": "llama-serve"}[command]
    asked = (command, name, "--target", "host", "--variant", "torch-native", "--cache", "both")
    assert call(monkeypatch, *asked) == 2
    assert "none of torch-native does" in capsys.readouterr().err
