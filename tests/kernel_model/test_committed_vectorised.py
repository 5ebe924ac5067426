"""The table in results/kernels: what it says, and that it is that of its data."""

from __future__ import annotations

import pytest

from rvvbench import project
from rvvbench.kernel_model.files import vectorised_files_of
from rvvbench.kernel_model.vectorised_report import VectorisedReport

FOLDER = project.root() / "results" / "kernels"
GRAPHS = ("silu_and_mul", "rms_norm", "softmax", "rope", "gelu", "gelu_tanh")


@pytest.fixture(scope="module")
def report() -> VectorisedReport:
    return VectorisedReport.model_validate_json((FOLDER / "vecrvv.json").read_text())


def test_every_graph_executes_a_fifth_of_the_scalar_code_or_less(report: VectorisedReport) -> None:
    assert {graph.graph for graph in report.graphs} == {
        f"{name}_{type}" for name in GRAPHS for type in ("bf16", "fp32")
    }
    assert {graph.graph: graph.fewer for graph in report.graphs if graph.fewer < 5} == {}


def test_the_table_is_the_documents(report: VectorisedReport) -> None:
    files = vectorised_files_of(report)
    assert {name: (FOLDER / name).read_text() for name in files} == files
