"""A report as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rvvbench.kernel_model.linear_cases import LINEARS
from rvvbench.kernel_model.report import Modelled, Report, Row, StepRow

NOTE = """\
Modelled, not measured: executed blocks counted under {qemu}, priced by {llvm} as {cpu}; one core, data in L1, no
caches, no TLB, no branch costs. `MACs/cycle` and `cycles/element` (written) obey dependences in order, `floor` leaves
them out; the FP32 peak is 8 MACs, that of INT8 16. `bytes` moves every operand once; `L1 loads` is what the executed
loads ask of the first-level cache over those bytes (an upper bound where vl is below VLMAX). `roof 5.7` and `roof
10.7`: least possible time over modelled time of all 8 cores at 1.6 GHz, with 5.7 and 10.66 GB/s; m: memory is what
limits, c: cycles."""

HEADER = (
    "shape", "kernel", "instructions", "cycles", "floor cycles", "MACs/cycle", "floor", "bytes", "L1 loads", "roof 5.7",
    "roof 10.7",
)  # fmt: skip
ELEMENTWISE_HEADER = tuple("cycles/element" if name == "MACs/cycle" else name for name in HEADER)

STEPS_NOTE = """\
The sum over a model's operators, one sequence, 8 cores at 1.6 GHz: each takes the longer of its cycles and its bytes at
the bandwidth (5.7 and 10.66 GB/s). A model, and a bound: nothing between the operators is in it (Python, dispatch,
barriers, sampling), and caches are perfect."""

STEPS_HEADER = ("model", "step", "precision", "cycles", "bytes", "tokens/s at 5.7", "tokens/s at 10.7")


def markdown(report: Report) -> str:
    """The whole report: rates of linears by M first, then every case."""
    tools = report.tools
    parts = [
        "# Modelled cost of the kernels on a SpacemiT X60\n",
        NOTE.format(qemu=tools.qemu, llvm=tools.llvm, cpu=tools.priced_as),
        "",
    ]
    if report.steps:
        parts += ["## Whole steps\n", STEPS_NOTE, "", table(STEPS_HEADER, map(_step, report.steps)), ""]
    groups = list(dict.fromkeys((row.operation, row.type) for row in report.rows))
    for operation, kind in groups:
        rows = [row for row in report.rows if (row.operation, row.type) == (operation, kind)]
        parts += [f"## {operation}, {kind}\n"]
        if operation in LINEARS:
            parts += [_rates(rows), ""]
        header = ELEMENTWISE_HEADER if all(row.elements for row in rows) else HEADER
        parts += [table(header, [cells(row) for row in rows]), ""]
    parts.append(f"Kernels modelled: {', '.join(report.kernels_modelled) or 'none'}.\n")
    parts.append(
        f"In the registry but reached by none of these cases: {', '.join(report.kernels_not_reached) or 'none'}."
    )
    return "\n".join(parts) + "\n"


def cells(row: Row) -> list[str]:
    """One case as text; a case that could not be modelled says why."""
    shape = f"{row.model} {row.layer} {sizes(row)}"
    found = row.modelled
    if found is None:
        return [shape, row.reason or "", *["-"] * (len(HEADER) - 2)]
    roofs = [f"{100 * share.share:.0f} % {share.bound[0]}" for share in found.roofline]
    return [
        shape,
        found.kernel,
        si(found.instructions),
        si(found.cycles_in_order),
        si(found.cycles_floor),
        *(rate_text(rate) for rate in rates_of(found)),
        si(row.moved_bytes),
        f"{found.l1_loaded_bytes / row.moved_bytes:.2f} x",
        *roofs,
    ]


def rates_of(found: Modelled) -> tuple[float | None, float | None]:
    """Cycles per element of an elementwise operator, multiply-adds per cycle of another; then those of the floor."""
    if found.cycles_per_element is not None:
        return found.cycles_per_element, found.cycles_per_element_floor
    return found.macs_per_cycle, found.macs_per_cycle_floor


def rate_text(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.2f}"


def _step(step: StepRow) -> list[str]:
    rates = (f"{rate:.2f}" for rate in step.tokens_per_s.values())
    return [step.model, step.phase, step.precision, si(step.cycles), si(step.moved_bytes), *rates]


def sizes(row: Row) -> str:
    """The sizes as the field writes them."""
    _, _, text = row.case.partition(",")
    return text.replace(",", " ")


def si(number: float) -> str:
    """Four significant digits with k, M or G."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.4g} {unit}"
    return f"{number:.4g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 2) -> str:
    """A Markdown table, numbers to the right of `text_columns` columns."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * text_columns}{'---:|' * (len(header) - text_columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _rates(rows: Sequence[Row]) -> str:
    """Multiply-adds per cycle, a line for each layer, a column for each M."""
    by_m = sorted({row.sizes["m"] for row in rows})
    lines = []
    for layer in dict.fromkeys((row.model, row.layer, row.sizes["k"]) for row in rows):
        found = {row.sizes["m"]: row.modelled for row in rows if (row.model, row.layer, row.sizes["k"]) == layer}
        rates = [rate_text(one.macs_per_cycle) if (one := found.get(m)) else "-" for m in by_m]
        lines.append([layer[0], f"{layer[1]}, K={layer[2]}", *rates])
    return table(["model", "layer", *(f"M={m}" for m in by_m)], lines)
