"""An experiment with all that it names (model, stack, board, variants, lock): overlays applied, pins cross-checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import ManifestError, UsageError
from rvvbench.manifest.load import load_document, load_manifest, set_values, validated
from rvvbench.manifest.lock import LockFile, load_lock
from rvvbench.manifest.models import (
    COMPILED_STATES,
    Board,
    CacheState,
    Dataset,
    Eval,
    Experiment,
    GitSource,
    Model,
    Stack,
    TargetKind,
    Variant,
    WheelSource,
)
from rvvbench.manifest.source import Document


@dataclass(frozen=True)
class Resolved:
    """All manifests of one experiment on one kind of target, with the places of their values; `dataset` is a task's."""

    experiment: Experiment
    model: Model
    stack: Stack
    board: Board
    variants: list[Variant]
    lock: LockFile
    target: TargetKind
    experiment_document: Document
    model_document: Document
    stack_document: Document
    dataset: Dataset | None = None
    dataset_document: Document | None = None

    def cache_states(self, variant: Variant) -> tuple[CacheState, ...]:
        """The states that `variant` has rows of, cold before warm: a warm process takes what a cold one made."""
        if not variant.compiles:
            return ("none",)
        return tuple(state for state in COMPILED_STATES if state in self.experiment.cache_states)

    def plain(self) -> dict[str, Any]:
        """The resolved manifest as JSON data: what identity and record are made of."""
        return {
            "experiment": self.experiment.model_dump(mode="json", by_alias=True),
            "model": self.model.model_dump(mode="json", by_alias=True),
            "stack": self.stack.model_dump(mode="json", by_alias=True),
            "board": self.board.model_dump(mode="json", by_alias=True),
            "variants": [variant.model_dump(mode="json", by_alias=True) for variant in self.variants],
            "target": self.target,
            **({"dataset": self.dataset.model_dump(mode="json", by_alias=True)} if self.dataset else {}),
        }


def resolve(
    manifests: Path,
    name: str,
    target: TargetKind,
    *,
    settings: list[str] | None = None,
    variants: list[str] | None = None,
) -> Resolved:
    """Load experiment `name` for `target`: base, then the target's overlay, then `settings`, then `variants`.

    Raises UsageError for unknown names, ManifestError with file and line for wrong values and for pins on which
    manifest and lock disagree.
    """
    document = load_document(manifests, "experiments", name)
    overlays = document.data.get("targets")
    if overlays is not None and not isinstance(overlays, dict):
        raise ManifestError("`targets` must map target kinds to overlays", where=document.where(("targets",)))
    for kind in overlays or {}:
        if kind not in ("board", "emulated", "host"):
            raise ManifestError(
                f"unknown target {kind!r} in `targets`",
                where=document.where(("targets", kind)),
                mend="known targets: board, emulated, host",
            )
    overlay = document.section(("targets", target))
    base = document.without("targets").overlaid(overlay.data, overlay.places)
    base = set_values(base, settings or [])
    if variants:
        base = base.overlaid({"variants": variants}, {("variants",): f"--variant {','.join(variants)}"})
    experiment = validated(Experiment, base)
    model, model_document = _named(manifests, "models", experiment.model, Model, base, ("model",))
    stack, stack_document = _named(manifests, "stacks", experiment.stack, Stack, base, ("stack",))
    board, _ = _named(manifests, "boards", experiment.board, Board, base, ("board",))
    _check_coming(experiment, base)
    chosen = [_named(manifests, "variants", item, Variant, base, ("variants",))[0] for item in experiment.variants]
    dataset, dataset_document = None, None
    if isinstance(experiment.workload, Eval):
        path = ("workload", "dataset")
        dataset, dataset_document = _named(manifests, "datasets", experiment.workload.dataset, Dataset, base, path)
    resolved = Resolved(
        experiment,
        model,
        stack,
        board,
        chosen,
        load_lock(manifests),
        target,
        base,
        model_document,
        stack_document,
        dataset,
        dataset_document,
    )
    _check_target(resolved)
    _check_cache_states(resolved)
    _check_lengths(resolved)
    check_pins(resolved)
    return resolved


def check_pins(resolved: Resolved) -> None:
    """Manifest and lock must agree on every pin; a difference names both places."""
    lock, places = resolved.lock.lock, resolved.lock.document
    _agree_on_revision(resolved.lock, "model", resolved.model, resolved.model_document)
    if resolved.dataset is not None and resolved.dataset_document is not None:
        _agree_on_revision(resolved.lock, "dataset", resolved.dataset, resolved.dataset_document)
    for part in ("pytorch", "sglang"):
        source = getattr(resolved.stack, part)
        here = resolved.stack_document
        if isinstance(source, WheelSource):
            locked = lock.wheels.get(f"{resolved.stack.name}/{part}")
            if locked is None:
                raise ManifestError(
                    f"the lock knows no wheel {part!r}", where=str(resolved.lock.path), mend="rvvbench lock"
                )
            _agree(
                "wheel sha256",
                source.sha256,
                here.where((part, "sha256")),
                locked.sha256,
                places.where(("wheels", f"{resolved.stack.name}/{part}", "sha256")),
            )
        if isinstance(source, GitSource):
            commit_of(resolved.stack, here, resolved.lock, part)


def commit_of(stack: Stack, places: Document, lock: LockFile, part: str) -> str | None:
    """The commit that the stack's git source `part` is pinned to, from manifest or lock; None while unresolved.

    Raises ManifestError where the two have different ones.
    """
    source = getattr(stack, part)
    name = f"{stack.name}/{part}"
    locked = lock.lock.git.get(name)
    if source.commit and locked and locked.commit:
        _agree(
            f"commit of {part}",
            source.commit,
            places.where((part, "commit")),
            locked.commit,
            lock.document.where(("git", name, "commit")),
        )
    commit: str | None = source.commit or (locked.commit if locked else None)
    return commit


def resolved_commit(stack: Stack, places: Document, lock: LockFile, part: str) -> str:
    """As `commit_of`; raises ManifestError at a null that nobody has resolved yet."""
    commit = commit_of(stack, places, lock, part)
    if commit is None:
        source = getattr(stack, part)
        raise ManifestError(
            f"the commit of {part} (branch {source.branch} of {source.url}) was never resolved",
            where=places.where((part, "commit")),
            mend="rvvbench lock",
        )
    return commit


def require_resolved(resolved: Resolved) -> None:
    """Refuse a stack with a commit that nobody has resolved yet; raises ManifestError at the null."""
    for part in ("pytorch", "sglang"):
        if isinstance(getattr(resolved.stack, part), GitSource):
            resolved_commit(resolved.stack, resolved.stack_document, resolved.lock, part)


def _agree_on_revision(lock: LockFile, kind: str, pinned: Model | Dataset, document: Document) -> None:
    if pinned.hub is None:
        return
    locked = (lock.lock.models if kind == "model" else lock.lock.datasets).get(pinned.name)
    if locked is None:
        raise ManifestError(f"the lock knows no {kind} {pinned.name!r}", where=str(lock.path), mend="rvvbench lock")
    _agree(
        "revision",
        pinned.hub.revision,
        document.where(("hub", "revision")),
        locked.revision,
        lock.document.where((f"{kind}s", pinned.name, "revision")),
    )


def _agree(what: str, declared: str, declared_at: str, locked: str, locked_at: str) -> None:
    if declared != locked:
        raise ManifestError(
            f"the {what} in the manifest is {declared}, but the lock has {locked} ({locked_at})",
            where=declared_at,
            mend="correct the one that is wrong, or run `rvvbench lock` if the manifest was changed on purpose",
        )


def _check_coming(experiment: Experiment, document: Document) -> None:
    coming = [name for name in experiment.variants if name in experiment.coming_variants]
    others = [name for name in experiment.variants if name not in coming]
    for name in coming:
        raise ManifestError(
            f"the variant {name!r} belongs to this comparison, but this version of rvvbench cannot run it yet",
            where=document.where(("variants",)),
            mend=f"one of {', '.join(others)}" if others else "rvvbench list names the variants that there are",
        )


def _check_target(resolved: Resolved) -> None:
    board, target = resolved.board, resolved.target
    wrong = None
    if target == "host" and board.arch != "host":
        wrong = "a host run needs a board with `arch: host`"
    if target in ("board", "emulated") and board.arch != "riscv64":
        wrong = f"a run on target {target} needs a board with `arch: riscv64`"
    if target == "emulated" and not board.qemu_cpu:
        wrong = "an emulated run needs a board that says `qemu_cpu`"
    if target == "board" and board.qemu_cpu:
        wrong = "a board run cannot use a board that says `qemu_cpu`"
    if wrong:
        where = resolved.experiment_document.where(("board",))
        raise ManifestError(f"{wrong}, not {board.name!r}", where=where, mend="rvvbench list")


def _check_cache_states(resolved: Resolved) -> None:
    """Caches are the compiler's: a variant that compiles has one, cold or warm, and every other has none."""
    compiling = [variant.name for variant in resolved.variants if variant.compiles]
    for index, state in enumerate(resolved.experiment.cache_states):
        if state == "none" and compiling:
            raise ManifestError(
                f"the cache state 'none' is for variants that compile nothing, but {', '.join(compiling)} does",
                where=resolved.experiment_document.where(("cache_states", index)),
                mend="--cache cold, --cache warm or --cache both; or `cache_states: [cold, warm]` in the manifest",
            )
    if compiling and isinstance(resolved.experiment.workload, Eval):
        raise ManifestError(
            f"a task's prompts are of any length, so that nobody can say which artifacts {', '.join(compiling)} takes",
            where=resolved.experiment_document.where(("variants",)),
            mend="choose variants that compile nothing",
        )


def _check_lengths(resolved: Resolved) -> None:
    workload, limit = resolved.experiment.workload, resolved.model.config["max_position_embeddings"]
    needed = workload.input_len + workload.output_len
    eval_names, names = ("max_prompt_tokens", "max_new_tokens"), ("input_len", "output_len")
    into, out = eval_names if isinstance(workload, Eval) else names
    if needed > limit:
        raise ManifestError(
            f"{into} + {out} is {needed}, but {resolved.model.name} has {limit} positions "
            f"(max_position_embeddings, {resolved.model_document.where(('config', 'max_position_embeddings'))})",
            where=resolved.experiment_document.where(("workload", into)),
            mend=f"a value of {into} of at most {max(limit - workload.output_len, 0)}",
        )


def _named(manifests: Path, kind: str, name: str, model: Any, base: Document, path: tuple[str, ...]) -> Any:
    try:
        return load_manifest(manifests, kind, name, model)
    except UsageError as error:
        raise ManifestError(error.cause, where=base.where(path), mend=error.mend) from error
