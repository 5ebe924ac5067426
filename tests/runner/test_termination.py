"""A measured process that is told to stop tells what it has, even where SGLang would swallow an exception."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STUBBORN = """
import signal, sys
from rvvbench.runner import one_batch, spec
from rvvbench.runner.tokens import Pass

def measure(run):
    run.passes.extend([Pass(1, 2, [7], None), Pass(3, 4, [8], None)])
    print("ready", flush=True)
    while True:
        try:
            signal.pause()
        except BaseException:
            pass

one_batch.measure = measure
one_batch.scores = lambda one: {"logprobs": [-1.0], "top2_margin": [2.0]}
sys.exit(one_batch.main(spec.load(sys.argv[1])))
"""

FAILING = """
import sys
from rvvbench.runner import one_batch, spec
from rvvbench.runner.failure import PinFailed

def measure(run):
    raise PinFailed("vlen: expected 256, found 128")

one_batch.measure = measure
sys.exit(one_batch.main(spec.load(sys.argv[1])))
"""


@pytest.fixture
def start(document, tmp_path):
    document["events_path"] = str(tmp_path / "events.jsonl")
    (tmp_path / "spec.json").write_text(json.dumps(document))

    def start(code):
        return subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "spec.json")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )

    start.events = lambda: [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    return start


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_the_passes_so_far_and_the_signal_are_told(start, sent):
    running = start(STUBBORN)
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(sent)
    assert running.wait() == 128 + sent
    events = start.events()
    assert [event["event"] for event in events] == ["process_start", "prefill", "decode", "error"]
    assert (events[1]["t_ns"], events[1]["token_ids"], events[2]["step"]) == (2, [7], 1)
    assert (events[3]["type"], events[3]["message"]) == ("Terminated", sent.name)


def test_a_pin_that_fails_has_its_own_exit_code_and_is_told(start):
    assert start(FAILING).wait() == 3
    assert [(event["event"], event.get("type")) for event in start.events()] == [
        ("process_start", None),
        ("error", "PinFailed"),
    ]
