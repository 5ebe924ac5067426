from __future__ import annotations

import json

import pytest

from rvvbench.kernel_model.files import vectorised_files_of
from rvvbench.kernel_model.vectorised_report import CountedGraph, Executed, VectorisedReport, VectorisedTools

TOOLS = VectorisedTools(
    torch="2.14.1",
    compiler="clang version 22",
    qemu="qemu-riscv64 version 10",
    cpu="rv64,v=true",
    toolchain_digest="sha256:1",
    sources="0123456789abcdef",
)


@pytest.fixture
def report() -> VectorisedReport:
    graph = CountedGraph(
        graph="silu_and_mul_bf16",
        shapes="4x16384",
        scalar=Executed(instructions=2_048_093, vector_instructions=0),
        rvv=Executed(instructions=213_103, vector_instructions=180_230),
    )
    return VectorisedReport(tools=TOOLS, calls_counted=2, graphs=[graph])


def test_the_table_says_how_many_times_fewer(report: VectorisedReport) -> None:
    text = vectorised_files_of(report)["vecrvv.md"]
    row = next(line for line in text.splitlines() if line.startswith("| silu_and_mul_bf16"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "silu_and_mul_bf16", "4x16384", "2,048,093", "213,103", "85%", "9.6",
    ]  # fmt: skip
    assert "0123456789abcdef" in text and "clang version 22" in text


def test_the_document_comes_back_equal(report: VectorisedReport) -> None:
    data = json.loads(vectorised_files_of(report)["vecrvv.json"])
    assert data["schema"] == "rvvbench/vectorised/1"
    assert VectorisedReport.model_validate(data) == report
