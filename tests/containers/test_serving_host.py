"""Serving in real containers of this machine's own architecture: a real SGLang server, and what goes wrong with one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.record.events import named, read_events
from tests.containers.driver import command, containers_of_rvvbench, copied_manifests, newest_record, rvvbench

pytestmark = pytest.mark.container

ONE = ("--variant", "torch-native", "--repeat", "1", "--concurrency", "1")


def test_both_variants_give_valid_rows_at_concurrency_1_and_2_from_one_server_each() -> None:
    outcome = rvvbench("serve", "--concurrency", "1,2", "--target", "host", "--repeat", "1")
    assert outcome.code == 0, outcome.err
    assert "c2-3: TTFT" in outcome.err  # a line for each request stays on the screen
    record = newest_record()
    names = ["torch-native/none/c1", "torch-native/none/c2", "rvv-kernels/none/c1", "rvv-kernels/none/c2"]
    assert [row.name for row in record.rows] == names
    assert record.valid
    assert all(row.tokens_equal is True for row in record.agreement.rows)
    for row in record.rows:
        events = row.processes[0].events
        chunks = [event for event in named(events, "chunk") if str(event["request"]).startswith(f"c{row.concurrency}-")]
        assert {event["cached_tokens"] for event in chunks} == {0}
        assert {event["prompt_tokens"] for event in chunks} == {64}
        assert row.figures["ttft_median_s"].median is not None
    # One server per variant: both rows tell of the same start.
    assert record.rows[0].processes[0].events_sha256 == record.rows[1].processes[0].events_sha256
    assert rvvbench("verify", record.run_id).code == 0


def test_at_concurrency_2_the_kernels_ran_with_two_rows() -> None:
    record = newest_record()
    row = record.rows[-1]
    before, after = (
        {(line["projection"], line["m"]): line["calls"] for line in event["routing"] if line["path"] == "packed"}
        for event in named(row.processes[0].events, "attestation")
        if event["load"] == "c2"
    )
    for projection in ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"):
        assert after[projection, 2] > before.get((projection, 2), 0)


def _started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("serve", "llama-serve", "--target", "host", *ONE, *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait_for_event(name: str, process: subprocess.Popen[bytes], since: float, timeout_s: float = 600) -> Path:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for path in (project.state_dir() / "runs").glob("*/*/*/out/events.jsonl"):
            if path.stat().st_mtime > since and f'"{name}"' in path.read_text():
                return path
        assert process.poll() is None, "the run ended before it could be disturbed"
        time.sleep(0.05)
    raise AssertionError(f"no event {name} within {timeout_s} s")


def _kill_the_scheduler() -> None:
    for proc in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"sglang::scheduler" in proc.read_bytes():
                os.kill(int(proc.parent.name), signal.SIGKILL)
        except OSError:
            continue


def test_a_server_whose_scheduler_is_killed_ends_the_run_with_an_error_and_the_events() -> None:
    since = time.time()
    process = _started("--requests", "200")
    try:
        path = _wait_for_event("chunk", process, since)
        _kill_the_scheduler()
        _, err = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 1
    assert containers_of_rvvbench() == []
    events = read_events(path).events
    (error, *_) = named(events, "error")
    assert error["type"] == "server-died"
    assert error["log_tail"]
    assert named(events, "chunk") and named(events, "request_error")
    assert not newest_record().valid
    assert b"failed: the server" in err


def test_ctrl_c_while_serving_leaves_no_container_and_keeps_the_events() -> None:
    since = time.time()
    process = _started("--requests", "200")
    try:
        path = _wait_for_event("chunk", process, since)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        if process.poll() is None:
            process.kill()
    assert containers_of_rvvbench() == []
    assert named(read_events(path).events, "chunk")


def test_a_server_that_never_gets_ready_ends_with_the_phase_and_its_limit() -> None:
    outcome = rvvbench("serve", "llama-serve", "--target", "host", *ONE, "--set", "timeouts_s.startup=2")
    assert outcome.code == 1
    assert "startup" in outcome.err + outcome.out
    row = newest_record().rows[0]
    assert [event["type"] for event in named(row.processes[0].events, "error")] == ["startup-timeout"]
    assert not row.validity.valid
    assert containers_of_rvvbench() == []


def test_a_model_that_does_not_fit_is_refused_before_anything_runs(tmp_path: Path) -> None:
    manifests = copied_manifests(tmp_path)
    board = manifests / "boards" / "host.yaml"
    board.write_text(re.sub(r"memory_limit_bytes: \d+", "memory_limit_bytes: 1000000", board.read_text()))
    outcome = rvvbench("serve", "llama-serve", "--target", "host", *ONE, manifests=manifests)
    assert outcome.code == 3
    assert "needs at least" in outcome.err and "memory limit of board host" in outcome.err
