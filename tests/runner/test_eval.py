"""A task put to a server: the spec, and whole runs against the small server of the serving tests."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rvvbench.runner import __main__, eval_spec, memory
from rvvbench.runner.exchange import TextRequest
from rvvbench.runner.failure import SpecError

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_server.py")
RUN = """
import sys
from rvvbench.runner import eval_spec, serving
sys.exit(serving.main(eval_spec.load(sys.argv[1]), [sys.executable, sys.argv[2]]))
"""


@pytest.fixture
def asked(eval_document, tmp_path):
    """Run the spec; (exit code, events)."""
    eval_document.update(events_path=str(tmp_path / "events.jsonl"), model_path=str(tmp_path))

    def run(behaviour=""):
        (tmp_path / "spec.json").write_text(json.dumps(eval_document))
        code = subprocess.run(
            [sys.executable, "-c", RUN, str(tmp_path / "spec.json"), str(FAKE)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "FAKE": behaviour},
            check=False,
            timeout=60,
        ).returncode
        return code, [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]

    return run


def named(events, name):
    return [event for event in events if event["event"] == name]


def test_the_spec_is_a_load_of_prompts_in_words(eval_document):
    spec = eval_spec.parse(eval_document)
    (load,) = spec.loads
    assert (load.name, load.measured, load.concurrency, load.arrivals) == ("gsm8k", True, 1, None)
    assert load.requests[1] == TextRequest("q1", "Question: 1?\nAnswer:", 3, ("Question:",))
    assert spec.ready == TextRequest("ready", "Question: ready?\nAnswer:", 3, ("Question:",))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(kind="serving"), "kind 'serving' is not eval"),
        (lambda d: d["load"].update(requests=[]), "0 requests"),
        (lambda d: d["load"].update(concurrency=0), "at concurrency 0"),
        (lambda d: d["load"].update(name="ready"), "names of their own"),
        (lambda d: d["load"]["requests"][1].update(id="q0"), "same id"),
        (lambda d: d["load"]["requests"][1].update(prompt="Question: 0?\nAnswer:"), "same prompt"),
        (lambda d: d.update(ready_prompt="Question: 0?\nAnswer:"), "same prompt"),
        (lambda d: d["load"]["requests"][1].update(prompt=""), "has no tokens"),
        (lambda d: d["server_args"].update(skip_tokenizer_init=True), "need a server with a tokenizer"),
        (lambda d: d["server_args"].update(port=1), "neither host nor port"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(eval_document, change, said):
    change(eval_document)
    with pytest.raises(SpecError, match=said):
        eval_spec.parse(eval_document)


def test_a_spec_without_its_fields_is_refused(eval_document, tmp_path, capsys):
    del eval_document["stop"]
    (tmp_path / "spec.json").write_text(json.dumps(eval_document))
    assert __main__.main(["eval", str(tmp_path / "spec.json")]) == 2
    assert "lacks a field" in capsys.readouterr().err


def test_every_answer_is_an_event_with_its_words_and_counts(asked):
    code, events = asked()
    assert code == 0
    prompts = {"ready": "Question: ready?\nAnswer:"} | {f"q{index}": f"Question: {index}?\nAnswer:" for index in (0, 1)}
    answers = named(events, "answer")
    assert [answer["request"] for answer in answers] == list(prompts)
    for answer in answers:
        prompt = prompts[answer["request"]].encode()
        assert {key: value for key, value in answer.items() if key not in ("event", "t_ns", "pid", "request")} == {
            "prompt_sha256": hashlib.sha256(prompt).hexdigest(),
            "text": " 1 2 3",
            "prompt_tokens": len(prompt),
            "cached_tokens": 0,
            "completion_tokens": 3,
            "finish_reason": {"type": "length", "length": 3},
        }
    [start] = [event for event in named(events, "request_start") if event["request"] == "q1"]
    assert (start["input_tokens"], start["input_chars"], start["output_len"]) == (None, 20, 3)


def test_the_run_is_that_of_a_server_with_one_load(asked):
    _, events = asked()
    left_out = ("memory_tree", "chunk", "pin", "memory")
    told = [event["event"] for event in events if event["event"] not in left_out]
    request = ["request_start", "request_sent", "answer", "request_end"]
    assert told == [
        *["supervisor_start", "process_start", "server_listening", "load_start", *request, "load_end"],
        *["server_ready", "environment", "attestation", "load_start", *request, *request, "load_end", "attestation"],
        *["server_end", "process_end"],
    ]
    assert named(events, "load_start")[1]["load"] == "gsm8k"


def test_a_server_that_streams_new_words_only_is_read_so(asked, eval_document):
    eval_document["server_args"]["incremental_streaming_output"] = True
    code, events = asked()
    assert code == 0
    assert {answer["text"] for answer in named(events, "answer")} == {" 1 2 3"}


def test_a_question_that_fails_is_told_and_the_others_are_asked(asked, eval_document):
    eval_document["load"]["requests"][0]["prompt"] = "\rQuestion"
    code, events = asked("refuses")
    assert code == 1
    [error] = named(events, "error")
    assert (error["type"], error["phase"]) == ("request-failed", "gsm8k")
    assert [answer["request"] for answer in named(events, "answer")] == ["ready", "q1"]
    assert [event["request"] for event in named(events, "request_error")] == ["q0"]


def test_a_server_that_dies_over_a_question_is_told_and_nothing_is_left(asked, eval_document):
    eval_document["load"]["requests"][0]["prompt"] = "\rQuestion"
    code, events = asked("dies")
    assert code == 1
    assert named(events, "error")[0]["type"] == "server-died"
    assert not memory.group(named(events, "process_start")[0]["server_pid"])
