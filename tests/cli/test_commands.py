"""What a user sees: exit codes, places of errors, help with an example. No container is started."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rvvbench import project
from rvvbench.cli.execution import Order, Output, settings_of, variant_names
from rvvbench.cli.main import main
from rvvbench.cli.serve import loads_settings
from rvvbench.errors import UsageError

COMMANDS = [
    ["doctor"],
    ["list"],
    ["show"],
    ["lock"],
    ["build"],
    ["run"],
    ["serve"],
    ["eval", "gsm8k"],
    ["verify"],
    ["cache", "list"],
    ["cache", "show"],
    ["cache", "remove"],
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
    assert {route["path"] for route in data["routing"]["rvv-kernels"]} == {"packed", "kernels"}
    assert data["operators"]["rvv-kernels"]["decode_attention_cpu"] == 14
    assert data["operators"]["torch-native"] == {}
    assert list(data["packing"]) == ["rvv-kernels"]


def test_show_tells_which_modules_a_budget_leaves_row_major(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ("show", "llama-memory-budget", "--target", "host")
    assert call(monkeypatch, *shown) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any("packed weights of rvv-kernels-budget-50, budget 22,020,096 bytes (21 MiB)" in line for line in lines)
    assert "down_proj layer 0 2,097,152 layer 1 2,097,152" in lines
    assert "lm_head - 0 yes 20,971,520" in lines
    assert "all 20,971,520 23,068,672" in lines
    assert any(line.startswith("operators of our kernels: decode_attention_cpu 14") for line in lines)
    assert call(monkeypatch, *shown, "--json") == 0
    packing = json.loads(capsys.readouterr().out)["packing"]["rvv-kernels-budget-50"]
    assert packing["row_major"] == [
        {"module": "layers.1.down_proj", "bytes": 2_097_152},
        {"module": "lm_head", "bytes": 20_971_520},
    ]
    assert (packing["budget_bytes"], packing["packed_bytes"]) == (22_020_096, 20_971_520)


def test_show_takes_variants_that_the_experiment_does_not_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "show", "llama-serve", "--variant", "rvv-w8a8", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {route["path"] for route in data["routing"]["rvv-w8a8"]} == {"w8a8", "packed", "kernels"}
    assert data["operators"]["rvv-w8a8"]["per_token_quant_int8_cpu"] is None


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed record, stored on this machine."""
    committed = sorted((Path(__file__).parents[2] / "results").rglob("*.json"))[0]
    monkeypatch.setenv("RVVBENCH_HOME", str(tmp_path / "home"))
    results = tmp_path / "home" / "results"
    results.mkdir(parents=True)
    return Path(shutil.copy(committed, results))


def test_show_prints_the_table_of_a_record_by_path_run_id_and_its_beginning(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = next((Path(__file__).parents[2] / "results").rglob(f"{record.stem}.md")).read_text()
    for name in (str(record), record.stem, record.stem[:-4]):
        assert call(monkeypatch, "show", name, "--markdown") == 0
        assert capsys.readouterr().out == table
    assert call(monkeypatch, "show", record.stem, "--json", "--definitions") == 0
    assert set(json.loads(capsys.readouterr().out)) >= {"rows", "definitions", "disturbances"}


def test_show_of_what_is_neither_experiment_nor_record_names_both_places(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "show", "lama-one-batch") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'lama-one-batch' is no experiment, and there is no record of lama-one-batch" in said
    assert str(project.manifests_dir() / "experiments") in said
    assert str(record.parent) in said
    assert "did you mean 'llama-one-batch'?" in said
    assert call(monkeypatch, "show", "elsewhere/none.json") == 2
    assert "rvvbench list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "option"),
    [("record", ["--target", "host"]), ("record", ["--set", "a=1"]), ("llama-one-batch", ["--markdown"])],
)
def test_show_refuses_options_that_mean_nothing(
    what: str, option: list[str], record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "show", record.stem if what == "record" else what, *option) == 2
    assert f"{option[0]} means nothing for" in capsys.readouterr().err


def test_the_help_of_serve_says_what_is_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "serve", "--help") == 0
    said = "".join(c for c in capsys.readouterr().out if c not in "│\n")
    said = " ".join(said.split())
    assert said.count("Default: the manifest's") == 4
    assert "Without --concurrency they replace" in said
    assert call(monkeypatch, "run", "--help") == 0
    assert "Serving experiments run too" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "none.jsonl"], "there is no such file or folder"),
        (["--data", "few.jsonl", "--questions", "3"], "few.jsonl has 2 behind its first 8, the examples"),
        (["--data", "few.jsonl", "--questions", "2", "--set", "workload.shots=9"], "few.jsonl has 1 behind"),
        (["--data", "damaged.jsonl"], "damaged.jsonl:2"),
        (["--data", "unanswered.jsonl", "--questions", "2"], "unanswered.jsonl, question 2"),
        (["llama-serve"], "llama-serve is not this task: its workload is serving"),
        (["--questions", "2", "--concurrency", "3"], "2 questions (workload.questions) never are 3 at once"),
    ],
)
def test_what_cannot_be_evaluated_is_said_before_anything_starts(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    manifests: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [json.dumps({"question": f"{index}?", "answer": f"#### {index}"}) for index in range(10)]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    (tmp_path / "damaged.jsonl").write_text(f"{lines[0]}\n{{")
    last = json.dumps({"question": "?", "answer": "nobody knows"})
    (tmp_path / "unanswered.jsonl").write_text("\n".join([*lines[:9], last]))
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "eval", "gsm8k", *arguments, "--target", "host") == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_show_of_a_task_names_its_data_and_its_paths_at_any_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "show", "llama-gsm8k") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "data set openai/gsm8k at e53f048856ff4f594e959d75785d2c2d37b678ee" in said
    assert "gsm8k lm_head any packed any packed by the variant" in said
    assert call(monkeypatch, "show", "llama-gsm8k", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pins"]["dataset"]["repo"] == "openai/gsm8k"
    assert {line["m"] for line in data["routing"]["torch-native"]} == {None}


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
    assert f"llama-one-batch.yaml:{at + 1}" in said
    assert "did you mean 'stack'?" in said


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
    assert set(found) == {"experiments", "models", "datasets", "stacks", "boards", "variants", "records"}
    assert "llama-one-batch" in [entry["name"] for entry in found["experiments"]]


@pytest.mark.parametrize(
    "options", [["--variant", ""], ["--variant", "torch-native,"], ["--variant", "a", "--variant", " "]]
)
def test_an_empty_variant_is_wrong_usage_and_not_all_of_them(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "run", "llama-one-batch", "--target", "emulated", *options) == 2
    assert "--variant without the name" in capsys.readouterr().err


def test_variants_of_several_options_add_up() -> None:
    assert variant_names(["a", "b, c"]) == ["a", "b", "c"]
    assert variant_names([]) == []


def test_the_replay_command_names_every_variant_and_setting() -> None:
    names = tuple(variant_names(["a,b", "c"]))
    order = Order("run", "x", "auto", names, ("title=a b", "weights=synthetic"))
    assert order.replay("host") == (
        "rvvbench run x --target host --variant a,b,c --set 'title=a b' --set weights=synthetic"
    )
    assert Order("serve", "x", "auto").replay("host") == "rvvbench serve x --target host"
    task = Order("eval gsm8k", "x", "auto", (), ("workload.questions=3",), ("--data", "a b.jsonl"))
    assert task.replay("host") == "rvvbench eval gsm8k x --target host --data 'a b.jsonl' --set workload.questions=3"


def test_options_that_stand_for_settings_are_replayed_as_settings() -> None:
    assert settings_of(["a=1"], weights="synthetic", repeat=2) == ["a=1", "weights=synthetic", "fresh_processes=2"]
    assert loads_settings("1,2", None, "poisson") == ["workload.concurrency=[1, 2]"]
    assert loads_settings(None, "0.5", "fixed") == [
        "workload.concurrency=[]",
        "workload.open_loops=[{arrivals: fixed, rate_per_s: 0.5}]",
    ]
    assert loads_settings(None, None, "poisson") == []


@pytest.mark.parametrize("concurrency", ["0", "-1", "1.5", "one", "1,,2", "", "nan"])
def test_a_concurrency_that_is_no_number_of_requests_is_refused(concurrency: str) -> None:
    with pytest.raises(UsageError):
        loads_settings(concurrency, None, "poisson")


def test_arrivals_that_nobody_knows_are_refused() -> None:
    with pytest.raises(UsageError) as refused:
        loads_settings(None, "1", "bursts")
    assert refused.value.mend is not None and "--arrivals fixed" in refused.value.mend


def test_serve_refuses_an_experiment_without_a_server_and_names_the_command_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "serve", "llama-one-batch", "--target", "host") == 2
    assert "rvvbench run llama-one-batch" in capsys.readouterr().err


def test_markdown_and_json_exclude_each_other() -> None:
    with pytest.raises(UsageError):
        Output(markdown=True, json=True)


def test_a_variant_that_two_options_name_is_refused(
    manifests: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rvvbench.workload.machine.select_target", lambda _: SimpleNamespace(kind="host"))
    twice = ["--variant", "torch-native", "--variant", "torch-native"]
    assert call(monkeypatch, "run", "llama-one-batch", *twice) == 2
    assert "where: --variant torch-native,torch-native" in capsys.readouterr().err


def test_a_folder_of_manifests_that_is_missing_is_no_empty_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RVVBENCH_MANIFESTS", str(tmp_path / "nowhere"))
    assert call(monkeypatch, "list") == 2
    said = capsys.readouterr().err
    assert "RVVBENCH_MANIFESTS" in said
    assert str(tmp_path / "nowhere") in said


def test_verify_of_nothing_does_not_search_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text('{"schema": "rvvbench/record/1"}')
    assert call(monkeypatch, "verify", "") == 2
    assert "names no record" in capsys.readouterr().err


def test_verify_takes_only_records_of_a_folder_and_counts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.json").write_text('{"schema": "rvvbench/spec/1"}')
    (tmp_path / "list.json").write_text("[1]")
    assert call(monkeypatch, "verify", str(tmp_path)) == 2
    assert "no records in this folder, only 2 other JSON files" in capsys.readouterr().err
    (tmp_path / "cut.json").write_text('{"schema": "rvvbench/record/1", "rows": [')
    assert call(monkeypatch, "verify", str(tmp_path), "--json") == 1
    said = capsys.readouterr()
    assert "passed over 2 JSON files" in said.err
    assert [Path(report["record"]).name for report in json.loads(said.out)] == ["cut.json"]


def test_a_refusal_of_the_system_exits_with_3_and_names_the_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> list[str]:
        raise OSError(errno.ENOSPC, "No space left on device", "/some/file")

    monkeypatch.setattr("rvvbench.cli.inventory.names", full)
    assert call(monkeypatch, "list") == 3
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "/some/file" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_standard_output_exits_with_3_and_no_traceback() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from rvvbench.cli.main import main; main()", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": ""},
        )
    assert done.returncode == 3
    assert "standard output" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_session_exits_with_130(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang_up(*_: object) -> list[str]:
        signal.raise_signal(number)
        return []

    before = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr("rvvbench.cli.inventory.names", hang_up)
    try:
        assert call(monkeypatch, "list") == 130
    finally:
        signal.signal(number, before)
    assert "interrupted" in capsys.readouterr().err


def test_a_hangup_that_nohup_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert call(monkeypatch, "list") == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
