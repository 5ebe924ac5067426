"""The table and the plot of a report."""

from __future__ import annotations

import xml.etree.ElementTree

from rvvbench.kernel_model.plot import svg
from rvvbench.kernel_model.report import Modelled, Report, Row, Share, Tools
from rvvbench.kernel_model.table import markdown, si

CASE = "packed_linear:type=bf16,m={},k=2048,n=2048"


def report() -> Report:
    modelled = Modelled(
        kernel="packed_linear_bf16_m1_npair_rvv", counted_units=[1, 2, 3], instructions=1195756,
        vector_instructions=656384,
        l1_loaded_bytes=8920208, l1_stored_bytes=12432, cycles_in_order=1270488.0, cycles_floor=1059157.0,
        macs_per_cycle=3.301333, macs_per_cycle_floor=3.960040, peak_share=0.412667,
        cycles_per_element=None, cycles_per_element_floor=None,
        roofline=[Share(bandwidth_bytes_per_s=5700000000, modelled_s=0.00147, share=1.0, bound="memory"),
                  Share(bandwidth_bytes_per_s=10660000000, modelled_s=0.0008, share=0.5, bound="cycles")],
    )  # fmt: skip
    common = {
        "operation": "packed_linear", "type": "bf16", "model": "llama <1b>", "layer": "o_proj", "macs": 4194304,
        "elements": 0, "moved_bytes": 8396800,
    }  # fmt: skip
    rows = [
        Row.model_validate({**common, "sizes": {"m": m, "k": 2048}, "case": CASE.format(m),
                            "modelled": found, "reason": reason})
        for m, found, reason in ((1, modelled, None), (2, None, "no kernel for it"))
    ]  # fmt: skip
    tools = Tools(
        llvm="LLVM 22", qemu="QEMU 10", cpu="rv64", priced_as="spacemit-x60", toolchain_digest="d", program_sha256="p"
    )
    return Report(
        tools=tools, kernels_modelled=["packed_linear_bf16_m1_npair_rvv"], kernels_not_reached=["other"], rows=rows
    )


def test_the_table_has_rates_by_m_every_case_and_the_kernels() -> None:
    text = markdown(report())
    assert "| llama <1b> | o_proj, K=2048 | 3.30 | - |" in text
    assert "| 1.196 M | 1.27 M | 1.059 M | 3.30 | 3.96 | 8.397 M | 1.06 x | 100 % m | 50 % c |" in text
    assert "reached by none of these cases: other." in text


def test_a_case_that_could_not_be_modelled_says_why() -> None:
    assert "m=2 k=2048 n=2048 | no kernel for it | - |" in markdown(report())


def test_the_plot_is_well_formed_and_has_a_dot_for_each_modelled_case() -> None:
    root = xml.etree.ElementTree.fromstring(svg(report()))
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert titles == ["llama <1b> o_proj packed_linear:type=bf16,m=1,k=2048,n=2048: 3.30"]


def test_equal_reports_give_equal_bytes() -> None:
    first, second = report(), report()
    assert (markdown(first), svg(first)) == (markdown(second), svg(second))
    assert Report.model_validate_json(first.model_dump_json(by_alias=True)) == first


def test_numbers_have_four_digits() -> None:
    assert [si(n) for n in (7.25, 1234, 12_345_678, 9.8765e9)] == ["7.25", "1.234 k", "12.35 M", "9.877 G"]


def test_an_elementwise_operator_is_rated_in_cycles_per_element_and_not_plotted() -> None:
    whole = report()
    found = whole.rows[0].modelled
    assert found is not None
    rates = {"macs_per_cycle": None, "macs_per_cycle_floor": None, "peak_share": None}
    modelled = found.model_copy(update={**rates, "cycles_per_element": 1.25, "cycles_per_element_floor": 1.0})
    update = {"operation": "norm", "macs": 0, "elements": 2048, "modelled": modelled}
    elementwise = whole.model_copy(update={"rows": [whole.rows[0].model_copy(update=update)]})
    text = markdown(elementwise)
    assert "cycles/element" in text and "| 1.25 | 1.00 |" in text
    assert "<circle" not in svg(elementwise)
