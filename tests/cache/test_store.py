"""Caches are kept whole or not at all, and given to a process as they were made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rvvbench.cache.directory import change, digest, libraries, listing
from rvvbench.cache.prepare import cold, kept_for, warm
from rvvbench.cache.store import CacheStore, Kept, Origin
from rvvbench.errors import RvvbenchError, UsageError

from .made_up import FILES, KEY, fill, key

ORIGIN = Origin("20261201T000000Z-llama-one-batch-abcdef", "inductor-packed/cold")


def put(store: CacheStore, folder: Path, origin: Origin = ORIGIN, files: dict[str, str] | None = None) -> Kept:
    made = fill(folder, files)
    return store.put(KEY.plain(), origin, made, listing(made))


def test_what_was_put_is_there_again_with_its_origin(tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "caches")
    put(store, tmp_path / "made")
    found = store.get(KEY.digest)
    assert found is not None
    assert (found.origin, found.key, found.damage()) == (ORIGIN, KEY.plain(), None)
    assert not (tmp_path / "made").exists()
    assert store.digests() == [KEY.digest] and store.find(KEY.digest[:4]) == KEY.digest


def test_a_later_one_of_the_same_key_takes_its_place(tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "caches")
    first = put(store, tmp_path / "made")
    second = put(store, tmp_path / "made", files={"ab/other.so": "other"})
    found = store.get(KEY.digest)
    assert found is not None and found.files == second.files != first.files
    assert [path.name for path in (tmp_path / "caches" / KEY.digest).iterdir() if path.is_dir()] == [found.folder.name]


def test_removed_is_gone(tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "caches")
    put(store, tmp_path / "made")
    store.remove(KEY.digest)
    assert store.get(KEY.digest) is None and store.digests() == []
    with pytest.raises(UsageError, match="there is no cache"):
        store.find(KEY.digest)


KILLED = """
import sys
from pathlib import Path
from cache.made_up import KEY, fill
from rvvbench.cache.directory import listing
from rvvbench.cache.store import CacheStore, Origin
base, number = Path(sys.argv[1]), 0
store = CacheStore(base / "caches")
while True:
    number += 1
    made = fill(base / "made", {f"ab/{n}.so": f"{number} {n}" for n in range(20)})
    store.put(KEY.plain(), Origin(f"run-{number}", "row"), made, listing(made))
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_cache(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])}
    for moment in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], env=environ, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline()
            time.sleep(0.001 * moment)
            writer.send_signal(signal.SIGKILL)
        found = CacheStore(tmp_path / "caches").get(KEY.digest)
        assert found is not None and found.damage() is None
        assert len({content.split()[0] for content in _contents(found)}) == 1


def _contents(kept: Kept) -> list[str]:
    return [path.read_text() for path in kept.folder.rglob("*.so")]


def test_cold_is_empty_and_new(tmp_path: Path) -> None:
    prepared = cold(KEY, tmp_path / "mounted")
    assert (prepared.before, prepared.origin, list(prepared.folder.iterdir())) == ({}, None, [])
    with pytest.raises(RvvbenchError):
        cold(KEY, tmp_path / "mounted")


def test_warm_is_a_copy_whose_changes_leave_the_original_alone(tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "caches")
    kept = put(store, tmp_path / "made")
    prepared = warm(KEY, kept, tmp_path / "mounted")
    assert prepared.origin == ORIGIN and digest(prepared.before) == digest(kept.files)
    (prepared.folder / "ab" / "cab.main.so").write_text("compiled again")
    fill(prepared.folder, {"cd/new.so": "a miss"})
    found = change(prepared.before, listing(prepared.folder))
    assert found.changed == ("ab/cab.main.so",) and found.added == ("cd", "cd/new.so")
    assert kept.damage() is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("ab/cab.main.so", "another library", "ab/cab.main.so was changed"),
        ("ab/cab.main.so", None, "ab/cab.main.so is missing"),
        ("cd/new.so", "one more", "is new"),
    ],
)
def test_a_cache_that_was_touched_is_refused_at_the_file(
    tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    store = CacheStore(tmp_path / "caches")
    kept = put(store, tmp_path / "made")
    if content is None:
        (kept.folder / name).unlink()
    else:
        fill(kept.folder, {name: content})
    with pytest.raises(RvvbenchError) as caught:
        warm(KEY, kept, tmp_path / "mounted")
    assert words in caught.value.cause and f"rvvbench cache remove {KEY.digest}" in str(caught.value.mend)


def test_times_of_files_are_no_change(tmp_path: Path) -> None:
    folder = fill(tmp_path / "made")
    before = listing(folder)
    os.utime(folder / "locks" / "cab.lock", (1, 1))
    assert not change(before, listing(folder))
    assert libraries(before).keys() == {"ab/cab.main.so"} and len(before) == len(FILES) + 4


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"threads": 2}, "threads: 2 here, made with 1"),
        ({"vlen": 512}, "vlen: 512 here, made with 256"),
        ({"march": "rv64gcv"}, "march: rv64gcv here, made with nothing"),
        ({"headers": {"rvv_inductor": "0" * 64, "sglang_rvv": "c" * 64}}, "headers.rvv_inductor"),
    ],
)
def test_a_cache_of_another_key_is_refused_naming_the_field(tmp_path: Path, changes: dict, field: str) -> None:
    store = CacheStore(tmp_path / "caches")
    put(store, tmp_path / "made")
    assert kept_for(KEY, store, "inductor-packed", "").origin == ORIGIN
    with pytest.raises(UsageError) as caught:
        kept_for(key(**changes), store, "inductor-packed", "rvvbench run x --cache cold")
    assert field in caught.value.cause and caught.value.mend == "rvvbench run x --cache cold"


def test_without_any_cache_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cold run of inductor-packed") as caught:
        kept_for(KEY, CacheStore(tmp_path / "caches"), "inductor-packed", "rvvbench run x --cache cold")
    assert caught.value.mend == "rvvbench run x --cache cold"


def test_a_manifest_that_cannot_be_read_names_the_command_that_mends_it(tmp_path: Path) -> None:
    store = CacheStore(tmp_path / "caches")
    put(store, tmp_path / "made")
    (tmp_path / "caches" / KEY.digest / "manifest.json").write_text("{")
    with pytest.raises(RvvbenchError) as caught:
        store.get(KEY.digest)
    assert caught.value.mend == f"rvvbench cache remove {KEY.digest}"
