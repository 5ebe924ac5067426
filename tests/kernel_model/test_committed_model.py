"""The committed tables and plot are those of their data, and the data of the kernel model is of all kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.kernel_model.cases import MODELS
from rvvbench.kernel_model.files import files_of
from rvvbench.kernel_model.model_cases import OPERATIONS
from rvvbench.kernel_model.report import Report

FOLDER = Path(__file__).resolve().parents[2] / "results" / "kernels"


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.model_validate_json((FOLDER / "kernel-model.json").read_text())


def test_tables_and_plot_are_what_the_data_says(report: Report) -> None:
    assert {path.name: path.read_text() for path in FOLDER.glob("kernel-*")} == files_of(report)


def test_every_kernel_of_the_registry_is_modelled_or_named_as_not_reached(report: Report) -> None:
    lists = (project.root() / "kernels" / "csrc" / "core").glob("*_kernels.cpp")
    sources = "".join(path.read_text() for path in lists)
    named = {*report.kernels_modelled, *report.kernels_not_reached}
    assert named and all(f'"{name}"' in sources for name in named)
    assert sources.count('_rvv"') + sources.count('_portable"') == len(named)


def test_every_row_is_modelled_and_there_are_whole_steps(report: Report) -> None:
    assert [row.case for row in report.rows if row.modelled is None] == []
    assert {step.precision for step in report.steps} == {"BF16", "BF16, INT8 cache", "W8A8", "W8A8, INT8 cache"}
    assert {row.model for row in report.rows} == {step.model for step in report.steps} == set(MODELS)
    assert len(report.steps) == 3 * 4 * 4
    assert {row.operation for row in report.rows} == set(OPERATIONS)
