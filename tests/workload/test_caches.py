"""A whole run with scripted processes: cold ones make caches, warm ones take them, and the record tells."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rvvbench import project
from rvvbench.cache.recheck import differences
from rvvbench.cache.store import CacheStore
from rvvbench.errors import RvvbenchError, UsageError
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.provide.checkpoint import CheckpointDir
from rvvbench.provide.file_hash import sha256_of
from rvvbench.record.schema import Image
from rvvbench.record.verify import verify
from rvvbench.target.select import Target
from rvvbench.workload import caches, process, run
from rvvbench.workload.caches import key_of
from rvvbench.workload.one_batch import OneBatchJob
from rvvbench.workload.process import Place
from rvvbench.workload.provision import Provision
from tests.record import compiled_sample, sample, whole_model
from tests.record.sample import Event

EMULATED = Target("emulated", "riscv64", emulated=True)
PROGRESS: Any = SimpleNamespace(phase=lambda text: None, line=lambda text: None)
VARIANTS = ["torch-native", "inductor-packed"]
CALL = "/rvvbench/cache/{so} -O3 -march=rv64gcv -o /rvvbench/cache/{so}\n"
Behaviour = Callable[[Path, str], None]
"""Of a process after it did what it should: changes to its cache, by row."""


def resolved(cache: str = "cold, warm", *, repeat: int = 1, variants: list[str] | None = None) -> Resolved:
    settings = [f"cache_states=[{cache}]", f"fresh_processes={repeat}"]
    return resolve(
        project.manifests_dir(), "llama-one-batch", "emulated", settings=settings, variants=variants or VARIANTS
    )


def provision(of: Resolved, **changes: Any) -> Provision:
    assert of.model.synthetic is not None
    digest = "sha256:" + "c" * 64
    record = Image(name="runtime", digest=digest, arch="riscv64")
    ref = SimpleNamespace(name="runtime", arch="riscv64", digest=digest)
    image: Any = SimpleNamespace(
        ref=ref, reference="i", packages={"g++": "4:16.1"}, relocked=None, of_record=lambda: record
    )
    files = {name: (file.sha256, file.size) for name, file in of.model.synthetic.files.items()}
    plugin: Any = SimpleNamespace(version="1", sha256="e" * 64)
    kernels: Any = SimpleNamespace(key="k", sha256="a" * 64, library_sha256="b" * 64, compiler="clang")
    inductor: Any = SimpleNamespace(version="1", sha256="f" * 64)
    found = Provision(image, CheckpointDir(Path("model"), files, "synthetic"), plugin, kernels, {}, inductor=inductor)
    return replace(found, **changes)


class Scripted:
    """Stands in for containers: writes the events of a process, and what it does to its cache."""

    def __init__(self, behaves: Behaviour | None = None, fails: set[str] | None = None) -> None:
        self.behaves = behaves or (lambda folder, row: None)
        self.fails = fails or set()
        self.rows: list[str] = []

    def __call__(
        self, place: Place, variant: Variant, spec: Mapping[str, Any], folder: Path, *, cache: Path | None, **_: Any
    ) -> Any:
        row, index = str(spec["row"]), int(spec["process_index"])
        self.rows.append(row)
        out = folder / "out"
        out.mkdir()
        expects = OneBatchJob(
            place.resolved, place.target, run.pins_of(place.provision), place.resolved.experiment.workload
        ).expected(variant)
        pid = 100 + len(self.rows)
        happened = sample.events(expects=expects, pid=pid)
        happened[0] |= {"run_id": spec["run_id"], "row": row, "process_index": index}
        if cache is not None:
            happened.insert(-1, self.compiles(cache, out, row))
        failed = row in self.fails
        if failed:
            happened[-1]["exit_code"] = 3
        (out / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in happened))
        return SimpleNamespace(exit_code=3 if failed else 0, timed_out=False, oom_killed=False, memory=None)

    def compiles(self, cache: Path, out: Path, row: str) -> Event:
        """As Inductor: what is in the cache is a hit, what is not is compiled."""
        listed, counts = [], {"hit": 0, "miss": 0}
        for one in compiled_sample.artifacts():
            library = cache / one["so"]
            counts["hit" if library.exists() else "miss"] += 1
            if not library.exists():
                library.parent.mkdir(exist_ok=True)
                library.write_text(f"library {one['so']}")
                with (out / "compiler.log").open("a") as log:
                    log.write(CALL.format(so=one["so"]))
            listed.append({**one, "sha256": sha256_of(library)})
        self.behaves(cache, row)
        found = {what: count for what, count in counts.items() if count}
        return compiled_sample.compiled(
            "cold",
            inductor={f"fxgraph_cache_{what}": count for what, count in found.items()},
            aot_autograd={f"autograd_cache_{what}": count for what, count in found.items()},
            artifacts=listed,
        )


class Unwatched:
    """Stands in for the observer."""

    @classmethod
    def for_run(cls, *_: Any, **__: Any) -> Unwatched:
        return cls()

    def before(self, _: Any) -> None:
        return None

    def watching(self, *_: Any) -> Any:
        return SimpleNamespace(observation=lambda window: None)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Scripted]]:
    """Run with scripted processes, in a state folder of its own."""
    monkeypatch.setattr(run, "Observer", Unwatched)
    monkeypatch.setattr(run, "check_memory", lambda *_: None)
    number = iter(range(100))

    def once(of: Resolved, scripted: Scripted | None = None, **changes: Any) -> tuple[Any, Scripted]:
        acts = scripted or Scripted()
        monkeypatch.setattr(run, "run_process", acts)
        finished = run.run(
            of,
            EMULATED,
            provision(of, **changes),
            SimpleNamespace(),  # type: ignore[arg-type]
            state_dir=tmp_path,
            replay="rvvbench run llama-one-batch",
            progress=PROGRESS,
            run_id=f"run-{next(number)}",
        )
        return finished, acts

    return once


def states(finished: Any) -> dict[str, list[tuple[str, str]]]:
    return {row.name: [(one.id, one.text) for one in row.validity.reasons] for row in finished.record.rows}


def test_both_in_one_run_are_proven_and_what_cold_made_is_kept(ran: Any, tmp_path: Path) -> None:
    finished, acts = ran(resolved())
    assert states(finished) == {"torch-native/none": [], "inductor-packed/cold": [], "inductor-packed/warm": []}
    assert acts.rows == ["torch-native/none", "inductor-packed/cold", "inductor-packed/warm"]
    assert verify(finished.record) == []
    store = CacheStore(tmp_path / "caches")
    [digest] = store.digests()
    kept = store.get(digest)
    assert kept is not None and kept.damage() is None
    assert kept.origin.plain() == {"run_id": "run-0", "row": "inductor-packed/cold", "process": 0}
    assert not list((tmp_path / "runs").rglob("cache"))


def test_warm_processes_of_every_repetition_take_what_the_first_cold_one_made(ran: Any) -> None:
    finished, acts = ran(resolved(repeat=2))
    assert acts.rows == ["torch-native/none", "inductor-packed/cold", "inductor-packed/warm"] * 2
    assert all(not reasons for reasons in states(finished).values())
    warm = finished.record.rows[2]
    assert [one.cache["origin"]["process"] for one in warm.processes] == [0, 0]
    assert verify(finished.record) == []


def test_warm_alone_takes_what_an_earlier_run_left(ran: Any) -> None:
    ran(resolved("cold"))
    finished, _ = ran(resolved("warm"))
    assert states(finished) == {"torch-native/none": [], "inductor-packed/warm": []}
    assert finished.record.rows[1].processes[0].cache["origin"]["run_id"] == "run-0"


def test_warm_alone_without_a_cache_names_the_command_that_makes_one(ran: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cold run of inductor-packed") as caught:
        ran(resolved("warm"))
    assert caught.value.mend == "rvvbench run llama-one-batch --cache cold"
    assert not (tmp_path / "runs").exists()


def test_warm_alone_with_other_headers_is_refused_before_anything_runs(ran: Any, tmp_path: Path) -> None:
    ran(resolved("cold"))
    other: Any = SimpleNamespace(version="2", sha256="0" * 64)
    with pytest.raises(UsageError, match=r"headers\.rvv_inductor"):
        ran(resolved("warm"), inductor=other)


def test_a_library_that_was_replaced_in_the_kept_cache_is_found(ran: Any, tmp_path: Path) -> None:
    finished, _ = ran(resolved("cold"))
    store = CacheStore(tmp_path / "caches")
    kept = store.get(store.digests()[0])
    assert kept is not None
    process = finished.record.rows[1].processes[0]
    assert list(differences(process.cache, "run-0", "inductor-packed/cold", 0, store)) == []
    library = next(iter(sorted(kept.folder.rglob("*.so"))))
    library.write_text("another")
    name = library.relative_to(kept.folder).as_posix()
    with pytest.raises(RvvbenchError) as caught:
        ran(resolved("warm"))
    assert name in caught.value.cause and "rvvbench cache remove" in str(caught.value.mend)
    [text] = differences(process.cache, "run-0", "inductor-packed/cold", 0, store)
    assert text.startswith(f"{name} was changed")
    library.unlink()
    [text] = differences(process.cache, "run-0", "inductor-packed/cold", 0, store)
    assert text.startswith(f"{name} is missing")


def test_a_cache_that_is_gone_or_of_a_later_run_says_nothing_about_a_record(ran: Any, tmp_path: Path) -> None:
    finished, _ = ran(resolved("cold"))
    store, process = CacheStore(tmp_path / "caches"), finished.record.rows[1].processes[0]
    ran(resolved("cold"))
    assert list(differences(process.cache, "run-0", "inductor-packed/cold", 0, store)) == []
    store.remove(store.digests()[0])
    assert list(differences(process.cache, "run-0", "inductor-packed/cold", 0, store)) == []


def test_a_miss_in_a_warm_process_cannot_hide(ran: Any) -> None:
    def misses(cache: Path, row: str) -> None:
        if row.endswith("/warm"):
            (cache / "cd").mkdir()
            (cache / "cd" / "new.main.so").write_text("compiled")

    finished, _ = ran(resolved(), Scripted(misses))
    [(id_, text)] = states(finished)["inductor-packed/warm"]
    assert id_ == "cache-state" and "declared warm / observed neither cold nor warm" in text and "cd" in text
    assert states(finished)["inductor-packed/cold"] == []


def test_where_cold_fails_warm_is_not_run_and_nothing_is_kept(ran: Any, tmp_path: Path) -> None:
    finished, acts = ran(resolved(), Scripted(fails={"inductor-packed/cold"}))
    assert acts.rows == ["torch-native/none", "inductor-packed/cold"]
    assert any("inductor-packed/warm, process 0, was not run" in note for note in finished.record.notes)
    assert ("process-count", "0 fresh processes ran, 1 are declared") in states(finished)["inductor-packed/warm"]
    assert CacheStore(tmp_path / "caches").digests() == []
    assert not list((tmp_path / "runs").rglob("cache"))


def test_an_interrupted_run_leaves_no_cache_behind(ran: Any, tmp_path: Path) -> None:
    def interrupted(cache: Path, row: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(resolved(), Scripted(interrupted))
    assert not list((tmp_path / "runs").rglob("cache")) and CacheStore(tmp_path / "caches").digests() == []


CHANGES: dict[str, Callable[[Resolved, Provision], tuple[Resolved, Provision]]] = {
    "threads": lambda of, p: (replace(of, board=of.board.model_copy(update={"threads": 2})), p),
    "vlen": lambda of, p: (replace(of, board=of.board.model_copy(update={"vlen": 512})), p),
    "isa": lambda of, p: (replace(of, board=of.board.model_copy(update={"qemu_cpu": "rv64,v=true"})), p),
    "headers": lambda of, p: (of, replace(p, inductor=SimpleNamespace(version="1", sha256="0" * 64))),
    "compiler": lambda of, p: (of, replace(p, image=_image(p, packages={"g++": "4:17"}))),
    "stack": lambda of, p: (of, replace(p, image=_image(p, ref=SimpleNamespace(digest="sha256:" + "0" * 64)))),
    "policy": lambda of, p: (
        replace(of, variants=[one.model_copy(update={"small_batch": False}) for one in of.variants]),
        p,
    ),
    "model": lambda of, p: (replace(of, model=whole_model.resolved("torch-native", "qwen3-mini").model), p),
}


def _image(p: Provision, **changes: Any) -> Any:
    return SimpleNamespace(**{**vars(p.image), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", CHANGES)
def test_what_a_cache_depends_on_is_in_its_key(field: str) -> None:
    of = resolved(variants=["inductor-packed"])
    given = provision(of)
    there, other = CHANGES[field](of, given)
    before = key_of(of, EMULATED, given, of.variants[0], (), None)
    after = key_of(there, EMULATED, other, there.variants[0], (), None)
    changed = [one.field for one in caches_differences(before, after)]
    assert field in changed


def caches_differences(before: caches.CacheKey, after: caches.CacheKey) -> Any:
    from rvvbench.cache.key import differences as of_keys

    return of_keys(before.plain(), after.plain())


def test_a_boards_own_isa_is_in_the_key_and_an_emulated_one_is_what_the_board_declares() -> None:
    of = resolved(variants=["inductor-packed"])
    board = Target("board", "riscv64", emulated=False)
    assert key_of(of, board, provision(of), of.variants[0], (), "rv64imafdcv").isa == "riscv64 rv64imafdcv"
    assert key_of(of, EMULATED, provision(of), of.variants[0], (), None).isa == f"riscv64 {of.board.qemu_cpu}"


def test_a_cold_cache_that_was_not_proven_is_not_kept(ran: Any, tmp_path: Path) -> None:
    def loses_one(cache: Path, row: str) -> None:
        next(iter(sorted(cache.rglob("*.so")))).unlink()

    finished, _ = ran(resolved("cold"), Scripted(loses_one))
    assert {id_ for id_, _ in states(finished)["inductor-packed/cold"]} == {"cache-artifact"}
    assert CacheStore(tmp_path / "caches").digests() == [] and not list((tmp_path / "runs").rglob("cache"))


def test_a_cold_row_that_is_invalid_for_other_reasons_leaves_its_cache(ran: Any, tmp_path: Path) -> None:
    class Other(Scripted):
        def compiles(self, cache: Path, out: Path, row: str) -> Event:
            return super().compiles(cache, out, row) | {"graphs_before": 8}

    finished, _ = ran(resolved("cold"), Other())
    assert {id_ for id_, _ in states(finished)["inductor-packed/cold"]} == {"compiled-while-measured"}
    assert len(CacheStore(tmp_path / "caches").digests()) == 1


def test_only_a_process_that_compiles_has_a_cache_that_it_may_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {}

    def run_container(engine: Any, container: Any, *, observe: Any) -> None:
        mounts = {mount.target: mount for mount in container.mounts}
        runner = mounts["/rvvbench/runner"].source
        wrapper = runner / Path(container.env.get("CXX", "/rvvbench/runner/none")).relative_to("/rvvbench/runner")
        found["last"] = (mounts.get("/rvvbench/cache"), wrapper.is_file() and os.access(wrapper, os.X_OK))

    monkeypatch.setattr(process, "run_container", run_container)
    of = resolved()
    place = Place(of, EMULATED, provision(of, sites=dict.fromkeys(VARIANTS, tmp_path)), SimpleNamespace(), PROGRESS)  # type: ignore[arg-type]
    for variant, cache in zip(of.variants, (None, tmp_path / "cache"), strict=True):
        spec = {"kind": "one-batch", "run_id": "r"}
        folder = tmp_path / variant.name
        process.run_process(place, variant, spec, folder, told=lambda event: None, observe=None, cache=cache)
        mount, wrapped = found["last"]
        assert wrapped is variant.compiles
        assert (mount is None) is (cache is None)
        assert mount is None or (mount.source, mount.writable) == (cache, True)
