"""The committed tables and plot are those of their data, and the data of the kernel model is of all kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.kernel_model.cases import MODELS
from rvvbench.kernel_model.files import files_of, step_files_of
from rvvbench.kernel_model.model_cases import OPERATIONS
from rvvbench.kernel_model.report import Report
from rvvbench.kernel_model.step_report import StepReport

FOLDER = Path(__file__).resolve().parents[2] / "results" / "kernels"


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.model_validate_json((FOLDER / "kernel-model.json").read_text())


@pytest.fixture(scope="module")
def step_report() -> StepReport:
    return StepReport.model_validate_json((FOLDER / "kernel-step.json").read_text())


def test_tables_and_plot_are_what_the_data_says(report: Report, step_report: StepReport) -> None:
    expected = {**files_of(report), **step_files_of(step_report)}
    assert {path.name: path.read_text() for path in FOLDER.glob("kernel-*")} == expected


def test_counted_steps_add_up_and_the_kernels_take_a_quarter_of_the_instructions_or_less(
    step_report: StepReport,
) -> None:
    (step,) = step_report.steps
    assert (step.model, step.layers, step.context) == ("llama-mini", step.layers_of_model, 72)
    for way in step.ways:
        assert way.instructions == sum(group.instructions for group in way.groups)
        assert all(group.instructions == sum(group.by_library.values()) for group in way.groups)
        assert way.unsteady_instructions == 0
    first, *others = step.ways
    assert (first.way, [way.way for way in others]) == ("torch", ["kernels", "kernels, INT8"])
    assert all(4 * way.instructions <= first.instructions for way in others)


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
