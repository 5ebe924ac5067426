"""The main job in real containers of this machine's own architecture: seconds, and the same code as on a board."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.record.events import read_events
from tests.containers.driver import (
    command,
    containers_of_rvvbench,
    copied_manifests,
    newest_record,
    rvvbench,
    token_ids,
)

pytestmark = pytest.mark.container


def test_two_valid_rows_with_equal_tokens_and_proven_kernels() -> None:
    outcome = rvvbench("run", "llama-one-batch", "--target", "host", "--repeat", "2", "--json")
    assert outcome.code == 0, outcome.err
    record = newest_record()
    assert record.target.kind == "host"
    assert [row.name for row in record.rows] == ["torch-native/none", "rvv-kernels/none"]
    assert [len(row.processes) for row in record.rows] == [2, 2]
    assert record.valid
    native, kernels = (token_ids(record, row.name) for row in record.rows)
    assert native == kernels
    assert len(native) == 8
    assert len({token for step in native for token in step}) > 4
    ran = [e for e in record.rows[1].processes[0].events if e["event"] == "attestation"][-1]
    assert ran["library_sha256"] == record.pins["kernels"]["library_sha256"]
    assert rvvbench("verify", record.run_id).code == 0


def test_the_margin_of_every_choice_dwarfs_the_difference_between_implementations() -> None:
    """Token ids may be compared between machines because a choice is never close: ten times the largest difference."""
    record = newest_record()
    worst = record.agreement.rows[-1].max_logprob_difference
    assert worst is not None
    margins = [
        margin
        for event in record.rows[0].processes[0].events
        if event["event"] in ("prefill", "decode")
        for margin in event["top2_margin"]
    ]
    assert min(margins) > 10 * worst


def _wait_for_event(runs: Path, name: str, process: subprocess.Popen[bytes], since: float, timeout_s: float) -> Path:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for path in runs.glob("*/*/*/out/events.jsonl"):
            if path.stat().st_mtime > since and f'"{name}"' in path.read_text():
                return path
        assert process.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.05)
    raise AssertionError(f"no event {name} within {timeout_s} s")


def _interrupted(sign: signal.Signals) -> tuple[int, Path]:
    """Start a run, send `sign` to the harness in mid-run, and wait for its end."""
    since = time.time()
    process = subprocess.Popen(
        command("run", "llama-one-batch", "--target", "host", "--variant", "torch-native", "--repeat", "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        events = _wait_for_event(project.state_dir() / "runs", "process_start", process, since, 120)
        os.kill(process.pid, sign)
        return process.wait(timeout=60), events
    finally:
        if process.poll() is None:
            process.kill()


def test_ctrl_c_leaves_no_container_and_keeps_the_events() -> None:
    code, events = _interrupted(signal.SIGINT)
    assert code == 130
    assert containers_of_rvvbench() == []
    assert read_events(events).events


def test_after_kill_9_the_events_are_there_and_the_next_run_cleans_up_and_succeeds() -> None:
    code, events = _interrupted(signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert read_events(events).events
    assert containers_of_rvvbench() != []
    outcome = rvvbench("run", "llama-one-batch", "--target", "host", "--variant", "torch-native", "--repeat", "1")
    assert outcome.code == 0, outcome.err
    assert containers_of_rvvbench() == []


def _flip(path: Path, digest: str) -> int:
    """Change the first digit of `digest` in a file; returns its line."""
    text = path.read_text()
    assert digest in text
    path.write_text(text.replace(digest, ("0" if digest[0] != "0" else "1") + digest[1:]))
    return text[: text.index(digest)].count("\n") + 1


def test_one_changed_digit_of_the_image_digest_stops_the_run_naming_its_line(tmp_path: Path) -> None:
    from rvvbench.manifest.lock import load_lock
    from rvvbench.target.select import host_arch

    manifests = copied_manifests(tmp_path)
    arch = host_arch(os.uname().machine)
    digest = load_lock(manifests).lock.images["runtime"][arch].digest.removeprefix("sha256:")
    line = _flip(manifests / "rvvbench.lock.yaml", digest)
    outcome = rvvbench("run", "llama-one-batch", "--target", "host", manifests=manifests)
    assert outcome.code == 2
    assert f"rvvbench.lock.yaml:{line}" in outcome.err


def test_one_changed_digit_of_a_checkpoint_hash_stops_the_run_naming_its_line(tmp_path: Path) -> None:
    manifests = copied_manifests(tmp_path)
    path = manifests / "models" / "llama-mini.yaml"
    digest = path.read_text().split("model.safetensors:", 1)[1].split("sha256: ", 1)[1][:64]
    line = _flip(path, digest)
    outcome = rvvbench("run", "llama-one-batch", "--target", "host", manifests=manifests)
    assert outcome.code == 2
    assert f"llama-mini.yaml:{line}" in outcome.err
