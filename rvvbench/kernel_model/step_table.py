"""Counted decode steps as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rvvbench.kernel_model.step_report import CountedStep, CountedWay, StepReport
from rvvbench.kernel_model.table import table

NOTE = """\
Instructions under {qemu}, VLEN 256; not time. One token of one sequence through a model's operators, one thread, in a
process with torch alone: `{first}` is what SGLang 0.5.15 computes on a CPU with attention torch_native, the others are
our kernels. Exact: the difference of 2 N and N steps over N, N = {steps}. Counted is the code of {libraries}; Python,
torch's bindings to it and the C library are not. `fewer`: the instructions of `{first}` over those of the way before.

- kernels: SHA-256 {sha256}"""


def markdown(report: StepReport) -> str:
    """The whole report: for each model instructions by group of operators, then by library."""
    note = NOTE.format(
        qemu=report.tools.qemu,
        first=report.steps[0].ways[0].way,
        steps=report.steps_counted,
        libraries=", ".join(report.libraries),
        sha256=report.tools.library_sha256,
    )
    return "\n".join(["# Instructions of one decode step\n", note, "", *map(_step, report.steps)])


def _step(step: CountedStep) -> str:
    first, *others = step.ways
    layers = f"{step.layers} of {step.layers_of_model}" if step.layers != step.layers_of_model else f"{step.layers}"
    apart = "; ".join(f"{way.way} {way.difference:.4f}" for way in others)
    unsteady = [f"{way.way} {way.unsteady_instructions:+,}" for way in step.ways if way.unsteady_instructions]
    groups = [_group_row(name, step.ways) for name in _names(step.ways, lambda way: [g.group for g in way.groups])]
    libraries = _names(step.ways, lambda way: [name for group in way.groups for name in group.by_library])
    return "\n".join(
        [
            f"## {step.model}, {layers} layers, context {step.context}\n",
            table(
                ["operators", first.way, *(cell for way in others for cell in (way.way, "fewer"))],
                [*groups, _row("in all", [way.instructions for way in step.ways])],
                text_columns=1,
            ),
            "",
            table(
                ["library", *(way.way for way in step.ways)],
                [[name, *(f"{_of_library(name, way):,}" for way in step.ways)] for name in libraries],
                text_columns=1,
            ),
            "",
            f"Logits apart from those of {first.way} (norm of the difference over the norm): {apart}.",
            f"Instructions of the first steps more than of the next: {'; '.join(unsteady) or 'none'}.",
            "",
        ]
    )


def _names(ways: Sequence[CountedWay], of: Callable[[CountedWay], list[str]]) -> list[str]:
    return list(dict.fromkeys(name for way in ways for name in of(way)))


def _group_row(name: str, ways: Sequence[CountedWay]) -> list[str]:
    return _row(name, [sum(g.instructions for g in way.groups if g.group == name) for way in ways])


def _row(name: str, instructions: Sequence[int]) -> list[str]:
    first, *others = instructions
    return [name, f"{first:,}", *(cell for one in others for cell in (f"{one:,}", fewer(first, one)))]


def fewer(first: int, other: int) -> str:
    """How many times fewer instructions; a dash where nothing was executed."""
    return f"{first / other:.1f} x" if first and other else "-"


def _of_library(name: str, way: CountedWay) -> int:
    return sum(group.by_library.get(name, 0) for group in way.groups)
