"""Real processes, no sleeps: each child ends by itself, or waits for the signal that the test is about."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rvvbench.runner import spec as specs

ROOT = Path(__file__).resolve().parents[2]

SUPERVISE = """
import json, sys
from rvvbench.runner import spec, supervisor
sys.exit(supervisor.supervise(spec.load(sys.argv[1]), [sys.executable, "-c", sys.argv[2]]))
"""


@pytest.fixture
def supervise(document, tmp_path):
    document.update(events_path=str(tmp_path / "events.jsonl"), sample_interval_s=0.01)
    (tmp_path / "spec.json").write_text(json.dumps(document))
    specs.load(str(tmp_path / "spec.json"))

    def start(code):
        return subprocess.Popen(
            [sys.executable, "-c", SUPERVISE, str(tmp_path / "spec.json"), code],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def events(name):
        found = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())
        return [event for event in found if event["event"] == name]

    start.events = events
    return start


def test_the_exit_code_of_the_process_is_told_and_passed_on(supervise):
    assert supervise("raise SystemExit(3)").wait() == 3
    [end] = supervise.events("process_end")
    assert (end["exit_code"], end["signal"]) == (3, None)


def test_a_killed_process_is_told_with_its_signal_and_what_was_last_seen_of_it(supervise):
    code = "import os, signal, select; select.select([], [], [], 0.2); os.kill(os.getpid(), signal.SIGKILL)"
    assert supervise(code).wait() == 128 + signal.SIGKILL
    [end] = supervise.events("process_end")
    assert (end["exit_code"], end["signal"]) == (None, signal.SIGKILL)
    [memory] = supervise.events("memory")
    assert memory["phase"] == "last_sample"
    assert memory["vm_hwm_bytes"] > 1 << 20
    assert memory["pss_bytes"] is None and memory["reason"]


def test_the_samples_are_of_the_measured_tree_without_the_supervisor(supervise):
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
import select; select.select([], [], [], 0.2)
child.communicate()
"""
    assert supervise(code).wait() == 0
    samples = supervise.events("memory_tree")
    assert max(sample["processes"] for sample in samples) == 2
    assert all(sample["rss_sum_bytes"] > 0 for sample in samples)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_process_and_its_end_is_told(supervise, sent):
    code = f"""
import signal
signal.signal({int(sent)}, lambda *_: exit(7))
print("ready", flush=True)
signal.pause()
"""
    running = supervise(code)
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(sent)
    assert running.wait() == 7
    assert supervise.events("process_end")[0]["exit_code"] == 7


def test_the_process_does_not_inherit_blocked_signals(supervise):
    code = "import signal; raise SystemExit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    assert supervise(code).wait() == 0


def test_the_start_says_which_process_of_which_run_it_is(supervise):
    assert supervise("pass").wait() == 0
    [start] = supervise.events("supervisor_start")
    assert (start["run_id"], start["row"], start["process_index"]) == (
        "20261130T221500Z-llama-one-batch-1a2b3c",
        "torch-native/none",
        0,
    )
