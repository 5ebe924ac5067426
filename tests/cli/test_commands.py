"""What a user sees: exit codes, places of errors, help with an example. No container is started."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.cli.main import main

COMMANDS = [
    ["doctor"],
    ["list"],
    ["show"],
    ["lock"],
    ["build"],
    ["run"],
    ["verify"],
    ["image", "build"],
    ["image", "list"],
    ["image", "verify"],
]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit code of `rvvbench ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["rvvbench", *arguments])
    try:
        main()
    except SystemExit as leave:
        return int(leave.code or 0)
    return 0


@pytest.fixture
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "manifests"
    shutil.copytree(project.manifests_dir(), copy)
    monkeypatch.setenv("RVVBENCH_MANIFESTS", str(copy))
    monkeypatch.setenv("RVVBENCH_HOME", str(tmp_path / "home"))
    return copy


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *command, "--help") == 0
    assert "Example: rvvbench " + " ".join(command) in " ".join(capsys.readouterr().out.split())


def test_show_prints_the_packed_bytes_of_llama(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "show", "llama-one-batch") == 0
    assert "2,471,493,632" in capsys.readouterr().out


def test_show_as_json_holds_every_pin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "show", "llama-one-batch", "--target", "emulated", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data["pins"]["images"]) == {"runtime", "toolchain"}
    assert {route["path"] for route in data["routing"]["rvv-kernels"]} == {"packed"}


def test_a_typo_in_a_manifest_exits_with_2_at_the_right_line(
    manifests: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    lines = path.read_text().splitlines()
    at = lines.index("stack: debian-rvv")
    lines[at] = "stak: debian-rvv"
    path.write_text("\n".join(lines) + "\n")
    assert call(monkeypatch, "run", "llama-one-batch") == 2
    said = capsys.readouterr().err
    assert f"llama-one-batch.yaml:{at + 1}" in said or "'stack' is missing" in said


@pytest.mark.skipif(platform.machine() == "riscv64", reason="this may be a board")
def test_a_board_run_on_a_machine_that_is_none_exits_with_3_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "llama-one-batch", "--target", "board") == 3
    said = capsys.readouterr().err
    assert "this machine is no board" in said
    assert "--target emulated" in said


def test_an_unknown_experiment_exits_with_2_and_suggests(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "lama-one-batch") == 2
    assert "did you mean 'llama-one-batch'" in capsys.readouterr().err


def test_an_unknown_option_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "run", "llama-one-batch", "--no-such-option") == 2


def test_a_stack_with_unresolved_commits_is_refused_before_anything_starts(
    manifests: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "llama-one-batch", "--set", "stack=upstream-branches") == 2
    said = capsys.readouterr().err
    assert "never resolved" in said
    assert "rvvbench lock" in said
    assert not (project.state_dir() / "runs").exists()


def test_list_knows_every_kind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"experiments", "models", "stacks", "boards", "variants"}
    assert "llama-one-batch" in [entry["name"] for entry in found["experiments"]]
