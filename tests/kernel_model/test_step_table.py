"""Counted decode steps as a table, and what the driver's words and the counts make of them."""

from __future__ import annotations

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model import step_caller
from rvvbench.kernel_model.files import step_files_of
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.step_caller import Spec, counted_code, steps_of
from rvvbench.kernel_model.step_count import Instructions
from rvvbench.kernel_model.step_report import StepReport, StepTools
from rvvbench.kernel_model.step_table import fewer

GROUPS = ["norms", "linears"]
SAID = [
    {"case": case, "way": way, "difference": difference}
    for case in (0, 1)
    for way, difference in (("torch", 0.0), ("kernels", 0.00123456789))
]
TORCH = Instructions({0: {"libc10": 4, "libtorch": 1_000_000}, 1: {"libtorch": 2_000_000}}, 0)
OURS = Instructions({0: {"libc10": 4, "ours": 99_996}, 1: {"ours": 500_000}}, 12)


def report() -> StepReport:
    llama = model_configs(("llama-mini",))["llama-mini"]
    specs = [Spec("llama-mini", llama, 72, None), Spec("llama-mini", llama, 72, 1)]
    return StepReport(
        tools=StepTools(qemu="QEMU", cpu="cpu", runtime_digest="sha256:1", library_sha256="2"),
        libraries=["libc10", "libtorch", "ours"],
        steps_counted=1,
        steps=steps_of(specs, SAID, [TORCH, OURS] * 2, GROUPS),
    )


def test_the_table_has_the_counts_of_every_group_and_their_quotients() -> None:
    text = step_files_of(report())["kernel-step.md"]
    for line in (
        "## llama-mini, 2 layers, context 72",
        "## llama-mini, 1 of 2 layers, context 72",
        "| operators | torch | kernels | fewer |",
        "| norms | 1,000,004 | 100,000 | 10.0 x |",
        "| linears | 2,000,000 | 500,000 | 4.0 x |",
        "| in all | 3,000,004 | 600,000 | 5.0 x |",
        "| libtorch | 3,000,000 | 0 |",
        "| ours | 0 | 599,996 |",
        "Logits apart from those of torch (norm of the difference over the norm): kernels 0.0012.",
        "Instructions of the first steps more than of the next: kernels +12.",
    ):
        assert line in text.splitlines()


def test_the_data_comes_back_from_its_file() -> None:
    assert StepReport.model_validate_json(step_files_of(report())["kernel-step.json"]) == report()


def test_a_quotient_with_nothing_in_it_is_a_dash() -> None:
    assert [fewer(0, 5), fewer(5, 0), fewer(5, 2)] == ["-", "-", "2.5 x"]


def test_a_way_that_was_not_counted_or_not_said_is_refused() -> None:
    with pytest.raises(ValueError):
        steps_of([], SAID, [TORCH], GROUPS)


def test_counts_that_are_not_a_whole_number_of_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_caller, "STEPS", 3)
    with pytest.raises(RvvbenchError, match="not 3 times the same step"):
        report()


def test_what_is_counted_is_known_by_the_names_of_files_whatever_their_versions() -> None:
    libraries = {
        "/usr/lib/libtorch_cpu.so.2.14.1": [[32, 48], [64, 80]],
        "/usr/lib/libtorch_python.so.2.14.1": [[0, 16]],
        "/library/_ops.so": [[96, 112]],
        "/usr/lib/libm.so.6": [[128, 144]],
        "/usr/lib/libmpi.so": [[160, 176]],
    }
    assert counted_code(libraries) == {
        "_ops.so": [(96, 112)],
        "libm.so.6": [(128, 144)],
        "libtorch_cpu.so.2.14.1": [(32, 48), (64, 80)],
    }


@pytest.mark.parametrize(
    ("model", "biased", "head_norms", "tied"),
    [("llama-mini", [], False, True), ("qwen2-mini", ["qkv_proj"], False, False), ("qwen3-mini", [], True, True)],
)
def test_the_driver_is_told_what_the_configuration_says(
    model: str, biased: list[str], head_norms: bool, tied: bool
) -> None:
    spec = Spec(model, model_configs((model,))[model], 72, 5)
    shape = spec.for_driver()["shape"]
    assert (shape["biased"], shape["head_norms"], shape["tied"], shape["layers"]) == (biased, head_norms, tied, 2)
    assert (spec.counted_layers, spec.layers_of_model) == (2, 2)
