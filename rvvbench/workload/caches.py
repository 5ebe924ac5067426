"""The caches of one run: what each process is given, what it did to it, and what is kept of that."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rvvbench.cache.compiler import LOG_NAME, REAL
from rvvbench.cache.directory import listing
from rvvbench.cache.key import CacheKey
from rvvbench.cache.prepare import Prepared, cold, kept_for, warm
from rvvbench.cache.proof import proof
from rvvbench.cache.store import CacheStore, Kept, Origin
from rvvbench.errors import RvvbenchError
from rvvbench.manifest.models import CacheState, Variant
from rvvbench.manifest.regional import Artifact
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.shapes import projection_shapes
from rvvbench.record.schema import Row
from rvvbench.target.select import Target
from rvvbench.workload.provision import Provision
from rvvbench.workload.spec import variant_environment

FOLDER = "cache"
"""Of a process's cache in the folder of its files, while the run lasts."""


def key_of(
    resolved: Resolved,
    target: Target,
    provision: Provision,
    variant: Variant,
    artifacts: Sequence[Artifact],
    isa: str | None,
) -> CacheKey:
    """The compatibility key of what `variant` compiles; `isa` is what this machine says of its own, where it runs."""
    board, environ = resolved.board, variant_environment(resolved, target, variant)
    headers = {"sglang_rvv": provision.plugin.sha256}
    if provision.inductor is not None:
        headers["rvv_inductor"] = provision.inductor.sha256
    if provision.kernels is not None and variant.uses_kernels:
        headers["sgl_kernel"] = provision.kernels.library_sha256
    declared_isa = board.qemu_cpu if target.emulated else isa
    return CacheKey(
        stack={
            "name": resolved.stack.name,
            "image": provision.image.ref.digest,
            "built": {wheel.part: wheel.key for wheel in provision.stack_wheels},
        },
        isa=f"{target.machine} {declared_isa or ''}".strip(),
        vlen=board.vlen,
        march=environ.get("TORCHINDUCTOR_CPP_MARCH"),
        compiler={"name": REAL, "package": provision.image.packages.get(REAL, "unknown")},
        threads=board.threads,
        headers=headers,
        policy={
            "compile": variant.compile,
            "packed_weight_mode": variant.packed_weight_mode,
            "small_batch": variant.small_batch,
        },
        model={
            "dtype": resolved.experiment.dtype,
            "shapes": {shape.projection: [shape.n, shape.k] for shape in projection_shapes(resolved.model.config)},
        },
        artifacts=tuple(artifact.name for artifact in artifacts),
        environment={name: value for name, value in environ.items() if name.startswith("TORCHINDUCTOR_")},
    )


@dataclass
class RunCaches:
    """`keys` are those of the variants that compile. `cold_command` makes the caches that a warm run lacks."""

    store: CacheStore
    run_id: str
    keys: Mapping[str, CacheKey]
    cold_command: str
    _made: dict[str, Kept] = field(default_factory=dict)
    _mounted: list[Path] = field(default_factory=list)

    def check(self, states: Mapping[str, Sequence[CacheState]]) -> None:
        """Before anything runs: a variant (by name, with its states) that is only warm has a cache that was kept.

        Raises UsageError that names what differs and the command that makes one, RvvbenchError for a damaged one.
        """
        for name, wanted in states.items():
            if "warm" in wanted and "cold" not in wanted:
                kept_for(self.keys[name], self.store, name, self.cold_command).check(self.cold_command)

    def prepare(self, variant: str, state: CacheState, folder: Path, *, alone: bool) -> Prepared | None:
        """What the process with its files in `folder` is given; None where it has no cache.

        Warm is what the first cold process of this run made, or where the variant has no cold row in it, so `alone`,
        what was kept. Raises RvvbenchError where there is none, or where it was changed.
        """
        if state == "none":
            return None
        key, place = self.keys[variant], folder / FOLDER
        self._mounted.append(place)
        if state == "cold":
            return cold(key, place)
        if alone:
            return warm(key, kept_for(key, self.store, variant, self.cold_command), place)
        if variant not in self._made:
            raise RvvbenchError(f"no cold process of {variant} came to its end, so that nothing is there to be warm")
        return warm(key, self._made[variant], place)

    def ended(self, prepared: Prepared, variant: str, row: str, process: int, *, well: bool) -> dict[str, Any]:
        """What the process did to its cache. That of the first cold one that ended well stays for the warm ones."""
        after = listing(prepared.folder)
        told = proof(prepared, after, prepared.folder.parent / "out" / LOG_NAME)
        if prepared.state == "cold" and well and variant not in self._made:
            origin = Origin(self.run_id, row, process)
            self._made[variant] = Kept(prepared.key.plain(), origin, after, prepared.folder)
        else:
            self._drop(prepared.folder)
        return told

    def keep(self, rows: Sequence[Row]) -> list[str]:
        """Keep what cold processes made, now that the record of these rows is written; what was done, in words.

        A row may be invalid for other reasons; one whose cache was not proven to be cold leaves none.
        """
        said = []
        for variant, made in self._made.items():
            own = [row for row in rows if (row.variant, row.cache_state) == (variant, "cold")]
            unproven = [one.text for row in own for one in row.validity.reasons if one.id.startswith("cache")]
            if unproven or not own:
                said.append(f"the cache of {variant} is not kept: {unproven[0] if unproven else 'it has no row'}")
                continue
            kept = self.store.put(made.key, made.origin, made.folder, made.files)
            said.append(f"the cache of {variant} is kept as {kept.digest}")
        return said

    def close(self) -> None:
        """Remove what was mounted and not kept."""
        for folder in list(self._mounted):
            self._drop(folder)

    def _drop(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._mounted = [other for other in self._mounted if other != folder]
