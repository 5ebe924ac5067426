"""scripts/test.sh with tools that only write down how they were called."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/test.sh"
TOOLS = ("ruff", "mypy", "clang-format", "pytest", "rvvbench")


class Checkout:
    """A folder with the script and stand-ins; a tool fails when its arguments are what `failing` says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "scripts").mkdir()
        (root / "kernels").mkdir()
        (root / ".venv/bin").mkdir(parents=True)
        shutil.copy(SCRIPT, root / "scripts/test.sh")
        for tool in TOOLS:
            path = root / ".venv/bin" / tool
            path.write_text(f'#!/bin/sh\necho "{tool} $*" >>"{root}/calls"\n[ "{tool} $*" != "$FAILING" ]\n')
            path.chmod(0o755)

    def run(self, *arguments: str, failing: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "FAILING": failing}
        command = [self.root / "scripts/test.sh", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_all_stages_run_in_order_and_their_times_are_shown(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.endswith("ok")] == [
        *("lint", "unit", "images", "container", "emulated"),
    ]
    assert done.stdout.splitlines()[-1].split()[0] == "total"
    assert [call for call in checkout.calls() if call.startswith("pytest")] == [
        "pytest -m not container and not emulated and not long",
        "pytest -m container and not emulated and not long",
        "pytest -m emulated and not long",
    ]


def test_the_riscv64_image_and_the_hosts_own_are_built_when_missing(checkout: Checkout) -> None:
    checkout.run("images")
    built = [call.partition("--if-missing ")[2] for call in checkout.calls()]
    assert built[0] == "toolchain"
    assert built[-1] == "runtime --arch riscv64"


@pytest.mark.parametrize(
    ("failing", "stage", "never"),
    [
        ("ruff check .", "lint", "mypy"),
        ("ruff format --check .", "lint", "mypy"),
        ("mypy ", "lint", "pytest"),
        ("pytest -m not container and not emulated and not long", "unit", "pytest -m container"),
        (
            "rvvbench image build --accept-expired --accept-rebuilt --if-missing toolchain",
            "images",
            "pytest -m container",
        ),
        ("pytest -m container and not emulated and not long", "container", "pytest -m emulated"),
    ],
)
def test_the_first_failing_stage_stops_the_run_and_is_named(
    checkout: Checkout, failing: str, stage: str, never: str
) -> None:
    done = checkout.run(failing=failing)
    assert done.returncode == 1
    assert f"stage '{stage}' failed" in done.stderr
    assert any(line.startswith(stage) and line.endswith("FAILED") for line in done.stdout.splitlines())
    assert not any(call.startswith(never) for call in checkout.calls())


def test_images_are_built_beside_the_unit_tests(checkout: Checkout) -> None:
    """The build waits for the unit tests, and they for the build."""
    meet(checkout, "pytest", waits_for="rvvbench")
    meet(checkout, "rvvbench", waits_for="pytest")
    assert checkout.run().returncode == 0


def test_a_build_of_images_ends_with_a_run_that_fails(checkout: Checkout) -> None:
    tool = checkout.root / ".venv/bin/rvvbench"
    tool.write_text(f'#!/bin/sh\necho $$ >"{checkout.root}/pid"\nexec sleep 600\n')
    meet(checkout, "pytest", waits_for="pid")
    done = checkout.run(failing="pytest -m not container and not emulated and not long")
    assert done.returncode == 1
    pid = int((checkout.root / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def meet(checkout: Checkout, tool: str, waits_for: str) -> None:
    """Has a tool write a file of its name, and wait for that of another before it goes on."""
    path = checkout.root / ".venv/bin" / tool
    begin, rest = path.read_text().split("\n", 1)
    waiting = f'while [ ! -e "{checkout.root}/{waits_for}" ]; do sleep 0.02; done'
    path.write_text(f'{begin}\ntouch "{checkout.root}/{tool}"\n{waiting}\n{rest}')


def test_a_wrongly_formatted_kernel_fails_the_lint(checkout: Checkout) -> None:
    (checkout.root / "kernels/a.cpp").write_text("int x;\n")
    assert checkout.run("lint", failing="clang-format --dry-run --Werror kernels/a.cpp").returncode == 1


def test_single_stages_can_be_asked_for(checkout: Checkout) -> None:
    assert checkout.run("unit").returncode == 0
    assert len(checkout.calls()) == 1


def test_the_full_run_ends_with_the_long_tests(checkout: Checkout) -> None:
    checkout.run("--full")
    assert checkout.calls()[-1] == "pytest -m long"


def test_an_unknown_stage_fails(checkout: Checkout) -> None:
    assert checkout.run("everything").returncode != 0
