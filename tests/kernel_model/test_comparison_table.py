"""The table of two libraries."""

from __future__ import annotations

from rvvbench.kernel_model.comparison_table import markdown
from rvvbench.kernel_model.report import Comparison, LibraryRows, Modelled, Row, Tools

TOOLS = Tools(llvm="LLVM 22", qemu="QEMU 10", cpu="rv64", priced_as="x60", toolchain_digest="d", program_sha256="p")


def row(operation: str, cycles: float | None, reason: str | None = None) -> Row:
    modelled = None
    if cycles is not None:
        modelled = Modelled(
            kernel="k.so", counted_units=[1], instructions=1000, vector_instructions=10, l1_loaded_bytes=1,
            l1_stored_bytes=1, cycles_in_order=cycles, cycles_floor=1.0, macs_per_cycle=6000.0 / cycles,
            macs_per_cycle_floor=1.0, peak_share=0.1,
            cycles_per_element=None, cycles_per_element_floor=None, roofline=[],
        )  # fmt: skip
    return Row(
        operation=operation, type="bf16", model="llama", layer="o_proj", sizes={}, case=f"{operation}:type=bf16,m=1",
        macs=6000, elements=0, moved_bytes=1, modelled=modelled, reason=reason,
    )  # fmt: skip


def comparison(ours: list[Row], other: list[Row]) -> str:
    return markdown(
        Comparison(
            tools=TOOLS,
            ours=LibraryRows(name="_ops.so", sha256="aa", rows=ours),
            other=LibraryRows(name="theirs.so", sha256="bb", rows=other),
        )
    )


def test_both_libraries_stand_beside_each_other_with_the_speed_of_ours_over_the_other() -> None:
    text = comparison([row("packed_linear", 2000.0)], [row("packed_linear", 5000.0)])
    assert "| llama o_proj m=1 |  | 1 k | 1 k | 2 k | 5 k | 3.00 | 1.20 | 2.50 x |" in text
    assert "- ours: _ops.so (SHA-256 aa)\n- other: theirs.so (SHA-256 bb)" in text


def test_what_one_of_them_cannot_do_is_said_and_has_no_speed() -> None:
    text = comparison([row("packed_linear", 2000.0)], [row("packed_linear", None, "it has no such operator")])
    assert "| other: it has no such operator | 1 k | - | 2 k | - | 3.00 | - | - |" in text


def test_each_operation_has_a_table_of_its_own() -> None:
    both = [row("packed_linear", 1.0), row("decode_attention", 2.0)]
    text = comparison(both, both)
    assert text.index("## packed_linear, bf16") < text.index("## decode_attention, bf16")
    assert text.count("| shape |") == 2
