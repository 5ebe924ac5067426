"""Counted graphs as a Markdown table."""

from __future__ import annotations

from rvvbench.kernel_model.table import table
from rvvbench.kernel_model.vectorised_report import VectorisedReport

NOTE = """\
Instructions of one call under {qemu}, VLEN 256; not time. `scalar` is what TorchInductor (torch {torch}) generates for
riscv64 by itself, compiled for rv64gc; `VecRVV` what it generates with rvv_inductor, compiled for rv64gcv; both by
{compiler}. The C library is counted too. Exact: the difference of 2 N and N calls over N, N = {calls}.
`vector`: the share of VecRVV's instructions that need the vector unit. `fewer`: scalar over VecRVV.

- rvv_inductor's headers and modules: {sources}"""


def markdown(report: VectorisedReport) -> str:
    """The whole report."""
    tools = report.tools
    note = NOTE.format(
        qemu=tools.qemu,
        torch=tools.torch,
        compiler=tools.compiler,
        calls=report.calls_counted,
        sources=tools.sources,
    )
    rows = [
        [
            graph.graph,
            graph.shapes,
            f"{graph.scalar.instructions:,}",
            f"{graph.rvv.instructions:,}",
            f"{graph.rvv.vector_instructions / graph.rvv.instructions:.0%}",
            f"{graph.fewer:.1f}",
        ]
        for graph in report.graphs
    ]
    head = ["graph", "arguments", "scalar", "VecRVV", "vector", "fewer"]
    return "\n".join(["# Instructions of generated code\n", note, "", table(head, rows, text_columns=2), ""])
