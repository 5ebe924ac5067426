"""`rvvbench kernels` as a user sees it, with a script in place of the timing driver. No container is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rvvbench.cli.main import main

DRIVER = """#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "--list":
    print("one packed_linear bf16 available\\ntwo decode_attention bf16 available")
    print("three packed_linear fp16 unavailable")
    sys.exit()
for case in sys.argv[3:]:
    count = {"cycles": {"per_call": None, "reason": "not here"}, "loads": {"per_call": 7.0, "reason": None}}
    print(json.dumps({"kernel": "one", "calls": int(sys.argv[1]), "ns": [int(sys.argv[2])], "counters": count}))
"""


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rvvbench", "kernels", *arguments])
    try:
        main()
    except SystemExit as leave:
        return int(leave.code or 0)
    return 0


@pytest.fixture(autouse=True)
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver in the folder that the command is given in."""
    monkeypatch.setenv("RVVBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "driver"
    path.write_text(DRIVER)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("command", ["test", "bench", "model"])
def test_every_command_has_help_with_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, command, "--help") == 0
    assert f"Example: rvvbench kernels {command}" in " ".join(capsys.readouterr().out.split())


def test_a_compiler_that_there_is_not_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "test", "--compiler", "icc", "--compiler", "gcc") == 2
    assert "no compiler icc" in capsys.readouterr().err


def test_a_driver_in_the_folder_at_hand_is_timed_and_its_words_come_through(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--driver", "driver", "--repeats", "4", "--min-seconds", "0.001", "--rows", "1", "--rows", "4")
    assert call(monkeypatch, "bench", *options, "--operation", "packed_linear", "--json") == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    layers = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]
    assert [case["layer"] for case in cases] == [layer for layer in layers for _ in (1, 4)]
    assert {",m=1," in case["case"] for case in cases} == {True, False}
    assert cases[0]["median_s"] == pytest.approx(0.001 / 4)
    assert call(monkeypatch, "bench", *options, "--operation", "packed_linear") == 0
    said = capsys.readouterr().out
    assert said.count("one: 250.0 us") == len(cases)
    assert "cycles not counted" in said
    assert said.splitlines()[-1] == "cycles: not counted: not here"
    assert call(monkeypatch, "bench", *options, "--json") == 0
    attention = [case["case"] for case in json.loads(capsys.readouterr().out)["cases"]][len(cases) :]
    assert len(attention) == 3
    assert all(case.startswith("decode_attention:") for case in attention)


def test_options_that_leave_nothing_are_refused_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "bench", "--driver", "driver", "--type", "fp16") == 2
    assert "take of decode_attention bf16, packed_linear bf16" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--operation", "packed_linear", "--operation", "nope"), "nothing is modelled of nope"),
        (("--type", "foo"), "take of bf16, fp16, fp32, int8"),
        (("--rows", "3"), "take of 1, 2, 4, 6, 8, 16, 64"),
    ],
)
@pytest.mark.parametrize("command", ["bench", "model"])
def test_a_name_that_there_is_not_is_refused_before_any_work(
    command: str,
    options: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, command, *options) == 2
    assert said in capsys.readouterr().err


def test_a_library_is_looked_at_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def elf(kind: int, machine: int) -> bytes:
        return b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + bytes([kind, 0, machine, 0]) + bytes(44)

    other = tmp_path / "other.so"
    for content, said in (
        (b"text", "other.so is no ELF file"),
        (elf(3, 62), "other.so is for x86_64"),
        (elf(2, 243), "other.so is no shared object"),
    ):
        other.write_bytes(content)
        assert call(monkeypatch, "model", "--library", "other.so") == 2
        assert said in capsys.readouterr().err
    (tmp_path / "driver").write_bytes(elf(2, 21))
    assert call(monkeypatch, "bench", "--driver", "driver") == 2
    assert "driver is for machine 21, this machine is" in capsys.readouterr().err


def test_where_nothing_can_be_saved_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("driver", "driver/below", "/proc/below"):
        assert call(monkeypatch, "model", "--save", place) == 2
        assert f"nothing can be saved in {place}" in capsys.readouterr().err


def test_a_driver_that_is_not_there_or_fails_is_told(
    driver: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "bench", "--driver", "none") == 2
    assert "does not exist" in " ".join(capsys.readouterr().err.split())
    driver.write_text("#!/bin/sh\necho it broke >&2\nexit 1\n")
    assert call(monkeypatch, "bench", "--driver", "driver") == 1
    assert "the driver does not list its kernels: it broke" in capsys.readouterr().err
    driver.write_text("#!/bin/sh\necho one two\n")
    assert call(monkeypatch, "bench", "--driver", "driver") == 2
    assert "the driver lists no kernels" in capsys.readouterr().err
    driver.write_text(DRIVER.replace("for case", "sys.exit('too hot')\nfor case"))
    assert call(monkeypatch, "bench", "--driver", "driver") == 1
    assert "the timing driver ended with 1: too hot" in capsys.readouterr().err
