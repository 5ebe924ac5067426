"""The other tool as a process: it writes its result, it fails, or it does not end. A small program stands in for it."""

import asyncio
import json
import os
import sys
from dataclasses import replace

import pytest

from rvvbench.runner import cross_check, memory, serving_spec
from rvvbench.runner.child import Child
from rvvbench.runner.events import Events
from rvvbench.runner.failure import ServingFailed
from rvvbench.runner.serving_run import Run
from rvvbench.runner.serving_spec import CrossCheck

CHECK = CrossCheck(requests=1, concurrency=1, input_len=64, output_len=8, seed=1)
RESULT = {"input_lens": [64], "output_lens": [8], "ttfts": [0.1], "itls": [[0.01]], "errors": [""], "completed": 1}
WRITES = f"""
import sys
with open(sys.argv[sys.argv.index("--output-file") + 1], "w") as file:
    file.write({json.dumps(RESULT)!r})
"""


@pytest.fixture
def measure(serving_document, tmp_path, monkeypatch):
    """Run the stand-in; the events."""
    path = tmp_path / "events.jsonl"
    spec = serving_spec.parse({**serving_document, "events_path": str(path), "model_path": "/model"})
    spec = replace(spec, limits=replace(spec.limits, startup_s=5.0, request_s=0.1))

    def run(program, spec=spec):
        monkeypatch.setattr(cross_check, "LAUNCH", (sys.executable, "-c", program))
        with Events(path) as events:
            here = Run(spec, events, log=tmp_path / "server.log", port=99)
            asyncio.run(cross_check.measure(here, CHECK, os.environ))
        return [json.loads(line) for line in path.read_text().splitlines()]

    run.spec = spec
    return run


def test_what_the_tool_wrote_and_how_it_was_asked_become_one_event(measure, tmp_path):
    [event] = measure(WRITES)
    assert (event["event"], event["tool"], event["requests"]) == ("cross_check", "sglang.benchmark.serving", 1)
    assert event["argv"] == cross_check.arguments(CHECK, 99, "/model", tmp_path / "cross_check.jsonl")
    assert event["raw"].items() >= RESULT.items()
    assert event["seconds"] > 0


def test_a_tool_that_fails_is_told_with_the_end_of_its_log(measure):
    with pytest.raises(ServingFailed, match=r"sglang\.benchmark\.serving ended with 3: no tokenizer") as caught:
        measure(WRITES + "print('no tokenizer', flush=True)\nsys.exit(3)")
    assert caught.value.type == "request-failed"


def test_a_tool_that_does_not_end_is_ended_and_told(measure, monkeypatch):
    started = []

    class Watched(Child):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            started.append(self.pid)

    monkeypatch.setattr(cross_check, "Child", Watched)
    limits = replace(measure.spec.limits, startup_s=0.1, request_s=0.1)
    with pytest.raises(ServingFailed, match=r"did not end within 0\.3 s") as caught:
        measure("import signal; signal.pause()", replace(measure.spec, limits=limits))
    assert caught.value.type == "request-timeout"
    assert [memory.group(pid) for pid in started] == [[]]
