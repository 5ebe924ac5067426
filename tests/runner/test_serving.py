"""Whole serving runs against a small server that fails in every way; real processes, with limits cut short."""

import copy
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rvvbench.runner import memory, serving_spec
from rvvbench.runner.events import Events
from rvvbench.runner.failure import NotWritten
from rvvbench.runner.serving_run import Run

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_server.py")

RUN = """
import sys
from rvvbench.runner import serving, serving_spec
serving.HURRIED_S = 0.3
sys.exit(serving.main(serving_spec.load(sys.argv[1]), [sys.executable, sys.argv[2]]))
"""


class Driver:
    """Runs one spec; `document` may be changed before."""

    def __init__(self, document, folder):
        self.document = document
        self.folder = folder

    def start(self, behaviour=""):
        (self.folder / "spec.json").write_text(json.dumps(self.document))
        return subprocess.Popen(
            [sys.executable, "-c", RUN, str(self.folder / "spec.json"), str(FAKE)],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{self.folder}", "FAKE": behaviour},
        )

    def run(self, behaviour="", at_most_s=5.0):
        begin = time.monotonic()
        code = self.start(behaviour).wait()
        assert time.monotonic() - begin < at_most_s
        return code

    def unlucky(self, load):
        """Let the first request of a load be one that the server fails at."""
        self.document["loads"][load]["requests"][0]["input_ids"][0] = 13

    def events(self, name=None):
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if name in (None, event["event"])]

    def error(self):
        [error] = self.events("error")
        return error

    def nothing_is_left(self):
        [start] = self.events("process_start")
        return not memory.group(start["server_pid"])


@pytest.fixture
def driver(serving_document, tmp_path):
    document = copy.deepcopy(serving_document)
    document.update(events_path=str(tmp_path / "events.jsonl"), model_path=str(tmp_path))
    return Driver(document, tmp_path)


def test_a_run_tells_everything_in_order_and_leaves_nothing(driver):
    assert driver.run() == 0
    told = [event["event"] for event in driver.events() if event["event"] not in ("memory_tree", "chunk", "pin")]
    request = ["request_start", "request_sent", "request_end"]
    assert told == [
        "supervisor_start",
        "process_start",
        "server_listening",
        *["load_start", *request, "load_end"],
        "server_ready",
        "environment",
        *["memory", "memory"],
        *["load_start", *request, "load_end", "memory", "memory"],
        *["attestation", "load_start", *request, *request, "load_end", "attestation", "memory", "memory"],
        "server_end",
        "process_end",
    ]
    assert driver.nothing_is_left()
    [end] = driver.events("server_end")
    assert (end["exit_code"], end["sent"][0]) == (0, "SIGTERM")


def test_the_start_up_is_what_lies_between_its_events(driver):
    driver.run()
    [start] = driver.events("process_start")
    for name in ("server_listening", "server_ready"):
        [event] = driver.events(name)
        assert event["seconds"] == (event["t_ns"] - start["t_ns"]) / 1e9


def test_a_first_generation_that_takes_too_long_names_the_limit_of_the_manifest(driver):
    driver.document["timeouts_s"]["compile"] = 0.5
    assert driver.run("never generates") == 1
    error = driver.error()
    assert (error["type"], error["phase"]) == ("compile-timeout", "compile")
    assert error["message"] == "no first generation within 0.5 s of the first answer (timeouts_s.compile)"
    assert driver.events("request_error")[0]["limit_s"] < 0.5  # what the answers of /health left of it


def test_a_disk_that_is_full_is_named_on_stderr_where_no_event_can_tell_it(driver):
    (driver.folder / "events.jsonl").symlink_to("/dev/full")
    (driver.folder / "spec.json").write_text(json.dumps(driver.document))
    ended = subprocess.run(
        [sys.executable, "-m", "rvvbench.runner", "serving", str(driver.folder / "spec.json")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    said = f"cannot write the event supervisor_start to {driver.folder / 'events.jsonl'}: No space left on device"
    assert ended.stderr == f"rvvbench.runner: {said}\n"


def test_an_error_that_cannot_be_written_is_said_on_stderr(driver, capsys):
    path = driver.folder / "events.jsonl"
    path.symlink_to("/dev/full")
    spec = serving_spec.parse(driver.document)
    run = Run(spec, Events(path), log=driver.folder / "server.log", phase="c1")
    with pytest.raises(NotWritten, match="No space left on device"):
        run.error("server-died", "the scheduler ended")
    assert capsys.readouterr().err == "server-died in phase c1: the scheduler ended\n"


def test_the_difference_of_two_attestations_is_what_the_load_ran(driver):
    driver.run()
    before, after = driver.events("attestation")
    assert (before["load"], before["moment"], after["load"], after["moment"]) == ("c1", "before", "c1", "after")
    assert after["routing"][0]["calls"] - before["routing"][0]["calls"] == 2 * 3
    assert before["routing"][0]["calls"] == 2 * 3  # the readiness generation and the warm-up


def test_a_server_that_compiles_tells_what_and_how_many_graphs_there_were_around_each_load(driver):
    driver.document["variant"] |= {"compile": "regional", "packed_weight_mode": "off", "small_batch": True}
    assert driver.run("compiles") == 0
    [told] = driver.events("compiled")
    assert (told["graphs"], told["inductor"], told["compile_seconds"]) == (2, {"fxgraph_cache_hit": 2}, 1.5)
    assert [event["graphs"] for event in driver.events("attestation")] == [2, 2]
    assert driver.events("load_end")[-1]["t_ns"] < told["t_ns"] < driver.events("server_end")[0]["t_ns"]


def test_a_server_that_compiles_nothing_tells_nothing_of_it(driver):
    driver.run()
    assert driver.events("compiled") == []
    assert all("graphs" not in event for event in driver.events("attestation"))


def test_the_server_gets_all_its_arguments_and_the_environment_tells_them_from_its_own_answer(driver):
    driver.run()
    [start], [environment] = driver.events("process_start"), driver.events("environment")
    assert start["argv"][-4:] == ["--host", "127.0.0.1", "--port", str(start["port"])]
    assert environment["server_args"] == driver.document["server_args"]
    assert environment["platform_class"] == "sglang_rvv.platform.RvvPlatform"
    assert environment["env"]["SGLANG_PLATFORM"] == "rvv"


def test_memory_is_told_of_every_process_by_its_role(driver):
    driver.document["sample_interval_s"] = 0.005  # the loads take some 20 ms, and one look must fall among them
    driver.run()
    phases = [(event["phase"], event["role"]) for event in driver.events("memory")]
    assert sorted(phases[:2]) == [("ready", "scheduler"), ("ready", "server")]
    assert {phase for phase, _ in phases} == {"ready", "c1-warmup", "c1"}
    assert max(event["processes"] for event in driver.events("memory_tree")) == 2


@pytest.mark.parametrize(
    ("behaviour", "kind", "phase", "said"),
    [
        ("dies at start", "server-died", "startup", "exit code 7"),
        ("port taken", "port-in-use", "startup", "in use"),
        ("never listens", "startup-timeout", "startup", "nothing answered on port"),
        ("unready", "not-ready", "compile", "/health answered 503"),
        ("refuses all", "not-ready", "compile", "1 of 1 requests of load ready failed: ready: the server answered 400"),
        ("no plugin", "runner", "compile", "sglang_rvv"),
        ("another platform", "runner", "compile", "the scheduler's platform is sglang.srt.platforms.cpu.CpuPlatform"),
    ],
)
def test_a_server_that_does_not_come_up_is_told_by_its_kind(driver, behaviour, kind, phase, said):
    driver.document["timeouts_s"].update(startup=0.6 if behaviour == "never listens" else 5, compile=0.5)
    assert driver.run(behaviour) == 1
    error = driver.error()
    assert (error["type"], error["phase"]) == (kind, phase)
    assert said in error["message"]
    if behaviour == "port taken":
        assert "found its port " in error["message"]
    assert error["log_tail"][0] == "starting"
    assert driver.nothing_is_left()
    assert driver.events("process_end")[0]["exit_code"] == 1


def test_every_field_that_the_server_does_not_run_with_is_named(driver):
    assert driver.run("other arguments") == 1
    error = driver.error()
    assert error["type"] == "server-args"
    assert "random_seed: given 0, it says 1" in error["message"]
    assert "disable_radix_cache: given true, it says false" in error["message"]
    assert not driver.events("attestation")


def test_a_server_that_computes_with_other_threads_is_a_pin_that_fails(driver):
    assert driver.run("more threads") == 3
    assert (driver.error()["type"], driver.error()["phase"]) == ("pin", "compile")
    assert "torch_threads: expected 1, found 2" in driver.error()["message"]


def test_a_server_that_has_not_loaded_the_pinned_kernels_is_a_pin_that_fails(driver):
    package = driver.folder / "sgl_kernel"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_ops.so").write_bytes(b"kernels")
    pinned = hashlib.sha256(b"kernels").hexdigest()
    driver.document["expect"]["kernels_sha256"] = pinned
    assert driver.run() == 3
    assert driver.error()["message"] == f"pins do not hold: loaded_kernels_sha256: expected {pinned}, found None"


def test_a_load_may_come_by_arrivals(driver):
    arrivals = {"arrivals": "fixed", "rate_per_s": 200, "seed": None}
    driver.document["loads"][1].update(mode="open", concurrency=None, **arrivals)
    assert driver.run() == 0
    measured = driver.events("load_start")[-1]
    assert (measured["mode"], measured["rate_per_s"]) == ("open", 200)


def test_a_server_that_streams_new_tokens_only_is_read_so(driver):
    driver.document["server_args"]["incremental_streaming_output"] = True
    assert driver.run() == 0
    assert [event["tokens"] for event in driver.events("request_end")] == [3, 3, 3, 3]


def test_another_server_that_answers_on_the_port_is_told_from_ours(driver):
    assert driver.run("another server") == 1
    assert driver.error()["type"] == "server-args"
    assert "port: given " in driver.error()["message"]


def test_a_port_in_use_is_told_before_anything_is_started(driver):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        driver.document["port"] = taken.getsockname()[1]
        assert driver.run() == 1
    assert driver.error()["type"] == "port-in-use"
    assert not driver.events("process_start")


def test_a_server_killed_in_mid_run_is_told_within_two_seconds(driver):
    driver.unlucky(1)
    assert driver.run("dies") == 1
    error = driver.error()
    assert (error["type"], error["phase"]) == ("server-died", "c1")
    assert "killed by signal 9 from outside: by the kernel for want of memory, or by somebody" in error["message"]
    assert error["log_tail"][-1] == "out of memory, perhaps"
    [start] = [event for event in driver.events("request_start") if event["request"] == "c1-0"]
    assert error["t_ns"] - start["t_ns"] < 2e9
    [end] = driver.events("server_end")
    assert (end["exit_code"], end["signal"]) == (None, 9)
    assert driver.nothing_is_left()


def test_a_server_that_dies_in_a_warm_up_is_told_as_that_and_not_as_a_failed_request(driver):
    driver.unlucky(0)
    assert driver.run("dies") == 1
    assert (driver.error()["type"], driver.error()["phase"]) == ("server-died", "c1-warmup")
    assert [event["kind"] for event in driver.events("request_error")] == ["connection"]


def test_a_worker_that_dies_ends_the_run_although_the_server_lives_on(driver):
    driver.unlucky(1)
    assert driver.run("worker dies") == 1
    error = driver.error()
    assert error["type"] == "server-died"
    assert error["message"].startswith("the scheduler (pid ")
    [start] = [event for event in driver.events("request_start") if event["request"] == "c1-0"]
    assert error["t_ns"] - start["t_ns"] < 2e9
    assert driver.events("server_end")[0]["sent"] == ["SIGTERM"]


def test_a_measured_request_that_hangs_does_not_end_the_others(driver):
    driver.unlucky(1)
    driver.document["timeouts_s"]["request"] = 0.5
    assert driver.run("hangs") == 1
    error = driver.error()
    assert (error["type"], error["phase"]) == ("request-timeout", "c1")
    assert "1 of 2 requests of load c1 failed: c1-0: no" in error["message"]
    assert [event["request"] for event in driver.events("request_end")] == ["ready", "c1-warmup-0", "c1-1"]
    assert [event["request"] for event in driver.events("request_error")] == ["c1-0"]
    assert len(driver.events("attestation")) == 2


def test_a_measured_request_that_is_refused_fails_the_run_and_is_told_in_words(driver):
    driver.unlucky(1)
    assert driver.run("refuses") == 1
    assert driver.error()["type"] == "request-failed"
    assert "the server answered 400: no" in driver.error()["message"]


def test_a_warm_up_that_hangs_ends_the_run(driver):
    driver.unlucky(0)
    driver.document["timeouts_s"]["compile"] = 0.5
    assert driver.run("hangs") == 1
    assert (driver.error()["type"], driver.error()["phase"]) == ("compile-timeout", "c1-warmup")
    assert not driver.events("attestation")
    assert driver.nothing_is_left()


def test_a_server_that_ignores_sigterm_is_killed(driver):
    driver.document["timeouts_s"]["shutdown"] = 0.3
    assert driver.run("stubborn") == 0
    [end] = driver.events("server_end")
    assert (end["sent"], end["signal"]) == (["SIGTERM", "SIGKILL"], 9)
    assert end["seconds"] >= 0.3
    assert driver.nothing_is_left()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_runner_that_is_told_to_stop_ends_the_server_and_keeps_the_events(driver, sent):
    driver.unlucky(1)
    running = driver.start("hangs")
    log = driver.folder / "server.log"
    due = time.monotonic() + 5
    while not (log.exists() and "hanging" in log.read_text()) and time.monotonic() < due:
        os.sched_yield()
    running.send_signal(sent)
    assert running.wait() == 128 + sent
    error = driver.error()
    assert (error["type"], error["message"], error["phase"]) == ("Terminated", sent.name, "c1")
    assert [event["kind"] for event in driver.events("request_error")] == ["cancelled"]
    assert driver.events("process_end")[0]["exit_code"] == 128 + sent
    assert driver.nothing_is_left()


def test_a_runner_that_is_told_twice_to_stop_ends_as_the_first_said_and_does_not_wait_long(driver):
    driver.unlucky(1)
    driver.document["timeouts_s"]["shutdown"] = 60
    running = driver.start("hangs, stubborn")
    log, due = driver.folder / "server.log", time.monotonic() + 5
    while not (log.exists() and "hanging" in log.read_text()) and time.monotonic() < due:
        os.sched_yield()
    running.send_signal(signal.SIGTERM)
    while not driver.events("error") and time.monotonic() < due:
        os.sched_yield()
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 128 + signal.SIGTERM
    assert driver.error()["message"] == "SIGTERM"
    assert driver.events("server_end")[0]["sent"] == ["SIGTERM", "SIGKILL"]
    assert driver.nothing_is_left()


def test_a_pin_that_fails_starts_no_server(driver):
    driver.document["expect"]["machine"] = "pdp11"
    assert driver.run() == 3
    assert (driver.error()["type"], driver.error()["phase"]) == ("pin", "pins")
    assert not driver.events("process_start")
