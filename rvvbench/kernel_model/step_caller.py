"""Counting decode steps: kernels/bench/step_driver.py in the runtime image, its log read while it runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.elementwise_cases import has_head_norms
from rvvbench.kernel_model.heads import Heads
from rvvbench.kernel_model.step_count import Instructions, Ranges, StepCounter
from rvvbench.kernel_model.step_report import CountedGroup, CountedStep, CountedWay
from rvvbench.kernel_model.torch_process import MARK, TorchProcess, mark_address
from rvvbench.manifest.shapes import projection_shapes
from rvvbench.progress import Progress

PROGRAM = "step_driver.py"

STEPS = 1
"""N: a way's steps are counted N and 2 N times."""

SEED = 1

COUNTED = ("_ops.so", "libtorch_cpu.so", "libc10.so", "libblas.so", "libm.so", "libsleef.so", "libgomp.so")
"""Beginnings of the names of the libraries that do the work."""

_DIFFERENCE_DIGITS = 6


@dataclass(frozen=True)
class Spec:
    """A step to count: a model's configuration, how many of its layers (None: all), tokens of context."""

    model: str
    config: Mapping[str, Any]
    context: int
    layers: int | None

    @property
    def layers_of_model(self) -> int:
        """As its configuration says."""
        return int(self.config["num_hidden_layers"])

    @property
    def counted_layers(self) -> int:
        """At most as many as there are."""
        return min(self.layers or self.layers_of_model, self.layers_of_model)

    def for_driver(self) -> dict[str, Any]:
        """As step_driver.py takes it."""
        heads = Heads.of(self.config)
        shapes = projection_shapes(self.config)
        return {
            "context": self.context,
            "seed": SEED,
            "shape": {
                **asdict(heads),
                "layers": self.counted_layers,
                "hidden": int(self.config["hidden_size"]),
                "inner": int(self.config["intermediate_size"]),
                "vocabulary": int(self.config["vocab_size"]),
                "eps": float(self.config["rms_norm_eps"]),
                "head_norms": has_head_norms(self.config),
                "tied": bool(self.config.get("tie_word_embeddings")),
                "biased": [shape.projection for shape in shapes if shape.bias],
            },
        }


def count_steps(
    process: TorchProcess, specs: Sequence[Spec], progress: Progress
) -> tuple[list[CountedStep], list[str]]:
    """The counted steps in their order, and the names of the libraries whose code was counted.

    Raises RvvbenchError where a way's logits are not those of plain torch.
    """
    progress.phase("finding where the libraries are loaded")
    with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
        (before,) = process.run(Path(folder), _arguments(Path(folder), ()))
    code = counted_code(before["libraries"])
    groups: list[str] = before["groups"]
    marks = 1 + len(groups)
    counter = StepCounter(MARK, [mark_address(1 + number) for number in range(len(groups))])
    progress.phase("counting what decode steps execute under QEMU")
    with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
        *said, after = process.run_logged(
            Path(folder),
            _arguments(Path(folder), specs),
            [pair for ranges in code.values() for pair in ranges],
            marks,
            counter,
            lambda: progress.line(f"{counter.stretches} stretches of {STEPS} and {2 * STEPS} steps"),
        )
    if counted_code(after["libraries"]) != code:
        raise RvvbenchError(
            "the libraries were loaded elsewhere than without the log: what was logged is not their code",
            where=PROGRAM,
        )
    counter.close()
    counted = counter.instructions(code)
    return steps_of(specs, said, counted, groups), list(code)


def counted_code(libraries: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, Ranges]:
    """By the name of each library that is counted, where its code is; `libraries` are by path."""
    named = ((PurePosixPath(path).name, ranges) for path, ranges in libraries.items())
    return {name: [(begin, end) for begin, end in ranges] for name, ranges in sorted(named) if name.startswith(COUNTED)}


def _arguments(out: Path, specs: Iterable[Spec]) -> tuple[str]:
    text = json.dumps({"steps": STEPS, "cases": [spec.for_driver() for spec in specs]})
    (out / "spec.json").write_text(text)
    return ("/out/spec.json",)


def steps_of(
    specs: Sequence[Spec], said: Sequence[Mapping[str, Any]], counted: Sequence[Instructions], groups: Sequence[str]
) -> list[CountedStep]:
    """`said` and `counted`: what the driver said of each way of each case, in its order, and what was counted of it."""
    ways = list(zip(said, counted, strict=True))
    return [
        CountedStep(
            model=spec.model,
            layers=spec.counted_layers,
            layers_of_model=spec.layers_of_model,
            context=spec.context,
            ways=[_way(one, found, groups) for one, found in ways if one["case"] == number],
        )
        for number, spec in enumerate(specs)
    ]


def _way(said: Mapping[str, Any], counted: Instructions, groups: Sequence[str]) -> CountedWay:
    found = [
        CountedGroup(
            group=group,
            instructions=_of_one(sum(counted.by_group.get(number, {}).values())),
            by_library={name: _of_one(count) for name, count in counted.by_group.get(number, {}).items()},
        )
        for number, group in enumerate(groups)
    ]
    return CountedWay(
        way=said["way"],
        difference=round(said["difference"], _DIFFERENCE_DIGITS),
        instructions=sum(group.instructions for group in found),
        unsteady_instructions=counted.unsteady,
        groups=found,
    )


def _of_one(instructions: int) -> int:
    """Those of one step; raises RvvbenchError where N steps are not N times the same."""
    if instructions % STEPS:
        raise RvvbenchError(f"{instructions} instructions are not {STEPS} times the same step", where=PROGRAM)
    return instructions // STEPS
