"""The files that results of `rvvbench kernels model`, `step` and `vec` are saved as."""

from __future__ import annotations

from rvvbench.kernel_model import comparison_table, step_table, table, vectorised_table
from rvvbench.kernel_model.plot import svg
from rvvbench.kernel_model.report import Comparison, Report
from rvvbench.kernel_model.step_report import StepReport
from rvvbench.kernel_model.vectorised_report import VectorisedReport


def table_of(document: Report | Comparison) -> str:
    """The Markdown tables of either."""
    return comparison_table.markdown(document) if isinstance(document, Comparison) else table.markdown(document)


def files_of(document: Report | Comparison) -> dict[str, str]:
    """Their names and what is in them; equal documents give equal bytes."""
    data = document.model_dump_json(by_alias=True, indent=1) + "\n"
    if isinstance(document, Comparison):
        return {"kernel-library-model.json": data, "kernel-library-model.md": table_of(document)}
    return {"kernel-model.json": data, "kernel-model.md": table_of(document), "kernel-model.svg": svg(document)}


def step_files_of(report: StepReport) -> dict[str, str]:
    """As `files_of`, of counted steps."""
    data = report.model_dump_json(by_alias=True, indent=1) + "\n"
    return {"kernel-step.json": data, "kernel-step.md": step_table.markdown(report)}


def vectorised_files_of(report: VectorisedReport) -> dict[str, str]:
    """As `files_of`, of generated code."""
    data = report.model_dump_json(by_alias=True, indent=1) + "\n"
    return {"vecrvv.json": data, "vecrvv.md": vectorised_table.markdown(report)}
