"""The kernels' own test program at every vector length under QEMU, and natively on this machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.kernel_model.correctness import Machine, Run, machines
from rvvbench.kernel_model.execute import execute
from rvvbench.provide.kernels import Build, build_kernel_tests, tidy_kernels
from rvvbench.target.select import host_arch

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(
        platform.machine() == "riscv64", reason="cross-compiling needs a toolchain image for this machine"
    ),
]

HERE = host_arch(platform.machine())
MACHINES = {machine.name: machine for machine in machines(HERE)}
"""What `rvvbench kernels test` tries too."""
EVERY_VLEN = [machine for name, machine in MACHINES.items() if name.endswith("agnostic ones")]
K1 = MACHINES["VLEN 256, zvfh, agnostic undisturbed"]
WITHOUT_V = MACHINES["riscv64 without V"]


@dataclass(frozen=True)
class Programs:
    """The test program for riscv64 and for this machine."""

    riscv64: Path
    host: Path


@pytest.fixture(scope="module")
def programs(build_of: Callable[[str], Build]) -> Programs:
    return Programs(*(build_kernel_tests(build_of(arch), print) for arch in ("riscv64", HERE)))


def output(program: Path, machine: Machine, *arguments: str) -> str:
    """What the program says on a machine where all is well."""
    ended = execute(Run("clang", machine, program), arguments)
    assert ended.exit_code == 0, ended.errors[-4000:] or ended.output[-4000:]
    return ended.output


def verdict(text: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(text.splitlines()[-1])
    return report


@pytest.fixture(scope="module")
def native(programs: Programs) -> dict[str, Any]:
    return verdict(output(programs.host, MACHINES[f"this machine ({HERE})"]))


def _parameters() -> list[Any]:
    """Every VLEN with Zvfh and Zvfbfwma or without; in the long run, and in `rvvbench kernels test`, with both."""
    lengths = sorted({machine.vlen_bits for machine in EVERY_VLEN})
    default = {(vlen, index % 2 == 0) for index, vlen in enumerate(lengths)}
    return [
        pytest.param(
            machine,
            id=f"{machine.vlen_bits}-{'zvfh' if machine.zvfh else 'no-zvfh'}",
            marks=[] if (machine.vlen_bits, machine.zvfh) in default else [pytest.mark.long],
        )
        for machine in EVERY_VLEN
    ]


@pytest.fixture(scope="module")
def reports(programs: Programs, request: pytest.FixtureRequest) -> Iterator[dict[Machine, Future[str]]]:
    """What the program says on each machine that is asked for; as many run at once as there are processors."""
    asked = [
        item.callspec.params["machine"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module and "reports" in item.fixturenames
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {machine: pool.submit(output, programs.riscv64, machine) for machine in asked}


@pytest.mark.parametrize("machine", _parameters())
def test_every_kernel_is_right_to_the_last_bit_with_agnostic_tails_of_ones(
    programs: Programs, native: dict[str, Any], reports: dict[Machine, Future[str]], machine: Machine
) -> None:
    report = verdict(reports[machine].result())
    assert report["failures"] == 0
    assert (report["rvv"], report["zvfh"], report["vlen_bits"]) == (True, machine.zvfh, machine.vlen_bits)
    assert report["hashes"] == native["hashes"]
    lines = [line.split() for line in output(programs.riscv64, machine, "--list").splitlines()]
    assert set(report["kernels"]) == {name for name, _, state in lines if state == "available"}
    assert all(cases > 0 for cases in report["kernels"].values())


def test_the_rvv_kernels_are_the_ones_that_are_dispatched(programs: Programs) -> None:
    # What is dispatched is said whatever is tested.
    report = verdict(output(programs.riscv64, K1, "--kernel", "packed_linear_bf16_m1_npair_rvv"))
    rows = {int(m): name for m, name in report["dispatch"]["packed_linear_bf16"].items()}
    assert {m: rows[m] for m in range(1, 7)} == {m: f"packed_linear_bf16_m{m}_npair_rvv" for m in range(1, 7)}
    assert {rows[m] for m in rows if m > 6} == {"packed_linear_bf16_npair_blocked_rvv"}
    assert report["dispatch"]["packed_linear_fp16"]["1"] == "packed_linear_fp16_m1_widening_zvfh_rvv"
    assert report["dispatch"]["row_major_linear_bf16"]["1"] == "row_major_linear_bf16_along_k_rvv"
    assert report["dispatch"]["row_major_linear_fp16"]["1"] == "row_major_linear_fp16_along_k_zvfh_rvv"
    dispatched = [name for group in report["dispatch"].values() for name in group.values()]
    assert all(name.endswith("_rvv") for name in dispatched), dispatched
    assert report["dispatch"]["int8_linear"]["4"] == "int8_linear_m4_grouped_rvv"
    for operation, technique in (
        ("decode_attention_int8", "tiled"),
        ("extend_attention_int8", "tiled"),
        ("store_kv", "along_row"),
    ):
        assert report["dispatch"][operation] == {
            "bf16": f"{operation}_bf16_{technique}_rvv",
            "fp16": f"{operation}_fp16_{technique}_zvfh_rvv",
        }


def test_where_there_is_zvfbfwma_its_kernels_are_dispatched(programs: Programs) -> None:
    one = "packed_linear_bf16_m1_widening_zvfbfwma_rvv"
    machine = MACHINES["VLEN 256, zvfh, zvfbfwma, agnostic ones"]
    rows = verdict(output(programs.riscv64, machine, "--kernel", one))["dispatch"]["packed_linear_bf16"]
    assert rows["1"] == one
    assert rows["64"] == "packed_linear_bf16_widening_blocked_zvfbfwma_rvv"


def test_without_v_the_portable_kernel_runs_and_no_vector_instruction(programs: Programs) -> None:
    lines = output(programs.riscv64, WITHOUT_V, "--list").splitlines()
    available = [line.split()[0] for line in lines if "unavail" not in line]
    assert available and all(name.endswith("_portable") for name in available)
    output(programs.riscv64, WITHOUT_V, "--kernel", "packed_linear_bf16_portable")


def test_the_portable_kernel_is_right_on_this_machine(native: dict[str, Any]) -> None:
    assert native["failures"] == 0
    assert native["rvv"] is False
    assert native["kernels"] and all(name.endswith("_portable") for name in native["kernels"])


def test_the_sanitizers_find_nothing_on_this_machine(build_of: Callable[[str], Build], tmp_path: Path) -> None:
    build = build_of(HERE)
    script = "CXX=g++ sh /kernels/build.sh $(uname -m) / /out sanitized && /out/kernel_tests_sanitized"
    ended = run_container(
        build.engine,
        ContainerSpec(
            image=build.toolchain_image.image_id,
            command=("sh", "-c", script),
            # The tests' own handler of touched fences stays in force.
            env={"ASAN_OPTIONS": "handle_segv=0"},
            mounts=(Mount(build.source_dir, "/kernels"), Mount(tmp_path, "/out", writable=True)),
            timeout_s=600,
        ),
    )
    assert ended.exit_code == 0, ended.output[-4000:]
    assert verdict(ended.output)["failures"] == 0


@pytest.mark.parametrize("arch", ["riscv64", "host"])
def test_clang_tidy_finds_no_mistakes(build_of: Callable[[str], Build], arch: str) -> None:
    tidy_kernels(build_of(HERE if arch == "host" else arch))
