"""The small parts of a serving run: arguments, log, roles, verdicts, the cross-check."""

import asyncio
import json

import pytest

from rvvbench.runner import cross_check, free_port, server_processes, serving, serving_spec, serving_steps
from rvvbench.runner.failure import ServingFailed
from rvvbench.runner.log_tail import log_tail
from rvvbench.runner.server_arguments import flags
from rvvbench.runner.server_death import died
from rvvbench.runner.serving_run import Run
from rvvbench.runner.serving_spec import CrossCheck

KILLED = "killed by signal 9 from outside: by the kernel for want of memory, or by somebody"


def test_fields_become_flags():
    given = {"tp_size": 1, "disable_radix_cache": True, "off": False, "none": None, "names": ["a", "b"], "dtype": "x"}
    assert flags(given, 99) == [
        *["--tp-size", "1", "--disable-radix-cache", "--names", "a", "b", "--dtype", "x"],
        *["--host", "127.0.0.1", "--port", "99"],
    ]


def test_an_object_is_given_as_json():
    assert flags({"override": {"a": True}}, 1)[:2] == ["--override", '{"a": true}']


def test_the_tail_of_a_log_is_its_last_forty_lines(tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {index}\n" for index in range(100)))
    assert log_tail(log) == [f"line {index}" for index in range(60, 100)]


def test_the_tail_of_an_endless_line_is_short_and_of_a_missing_log_empty(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x" * 1_000_000 + b"\nlast \xff\n")
    assert log_tail(log) == ["last \ufffd"]
    assert log_tail(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("code", "missing", "tail", "kind", "said"),
    [
        (3, [], [], "server-died", "the server ended with exit code 3"),
        (-9, [], [], "server-died", "the server was " + KILLED),
        (-11, [], [], "server-died", "the server was killed by signal 11"),
        (None, ["the scheduler (pid 5)"], [], "server-died", "the scheduler (pid 5) ended"),
        (
            -3,
            [],
            ["Subprocess scheduler_0 (pid=5) crashed with exit code -9. Triggering SIGQUIT."],
            "server-died",
            "the server was killed by signal 3; its log tells of a process " + KILLED,
        ),
        (
            -9,
            [],
            ["ValueError: no such model", "", "kill_process_tree called: parent_pid=6, include_parent=True, pid=6"],
            "server-died",
            "the server killed itself after a failure; the last exception in its log is ValueError: no such model",
        ),
        (
            -9,
            ["the scheduler (pid 5)"],
            ["crashed with exit code -9.", "kill_process_tree called: parent_pid=6"],
            "server-died",
            "the scheduler (pid 5) ended; the server killed itself after a failure; "
            "its log tells of a process " + KILLED,
        ),
        (
            1,
            [],
            ["[Errno 98] error while attempting to bind on address ('127.0.0.1', 3000): address already in use"],
            "port-in-use",
            "the server found its port 3000 in use",
        ),
        (
            1,
            [],
            ["[Errno 98] error while attempting to bind on address ('127.0.0.1', 30001): address already in use"],
            "server-died",
            "the server ended with exit code 1",
        ),
        (
            1,
            [],
            ["tcp://10.0.0.9:3000 of another: Address already in use"],
            "server-died",
            "the server ended with exit code 1",
        ),
        (
            1,
            [],
            ["OSError: [Errno 98] Address already in use", "port 3000"],
            "server-died",
            "the server ended with exit code 1; "
            "the last exception in its log is OSError: [Errno 98] Address already in use",
        ),
    ],
)
def test_how_a_server_died_is_said(code, missing, tail, kind, said):
    failed = died(code, missing, tail, 3000)
    assert (failed.type, str(failed)) == (kind, said)


def test_the_cause_of_a_group_is_its_first_error_however_deep():
    first = OSError("no space")
    assert serving.cause(ExceptionGroup("", [ExceptionGroup("", [first]), ValueError()])) is first


def test_a_port_that_cannot_be_bound_for_another_reason_is_not_said_to_be_in_use(monkeypatch):
    monkeypatch.setattr(free_port, "HOST", "192.0.2.1")  # of documentation: nobody has it
    with pytest.raises(OSError, match="assign requested address"):
        free_port.free_port(None)


def test_a_server_is_looked_at_twice_a_second_even_where_memory_is_sampled_less(serving_document):
    spec = serving_spec.parse({**serving_document, "sample_interval_s": 60})
    assert Run(spec, None, log=None).look_s == 0.5


def test_a_warm_up_has_a_limit_as_a_whole(serving_document, monkeypatch):
    async def never(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr(serving_steps, "_send", never)
    monkeypatch.setattr(serving_steps, "_MOMENT_S", 0.0)
    spec = serving_spec.parse({**serving_document, "timeouts_s": {**serving_document["timeouts_s"], "compile": 0.05}})
    with pytest.raises(ServingFailed, match=r"load c1-warmup did not end within 0\.05 s \(timeouts_s\.compile\)"):
        asyncio.run(asyncio.wait_for(serving_steps.one_load(Run(spec, None, log=None), spec.loads[0]), 5))


def process(proc, pid, parent, name, line=b""):
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 0")
    (folder / "comm").write_text(name + "\n")
    (folder / "cmdline").write_bytes(line)
    (folder / "status").write_text("VmRSS: 1 kB\nVmHWM: 2 kB\n")


@pytest.fixture
def proc(tmp_path):
    process(tmp_path, 7, 1, "python3", b"python3\0-m\0sglang.launch_server")
    process(tmp_path, 8, 7, "python3", b"python3\0-c\0resource_tracker")
    process(tmp_path, 9, 7, "MainThread", b"sglang::scheduler\0")
    process(tmp_path, 10, 7, "sglang::detoken", b"/usr/bin/qemu-riscv64\0python3")
    process(tmp_path, 11, 1, "stranger")
    return tmp_path


def test_processes_are_known_by_their_titles_and_under_emulation_by_their_names(proc):
    assert server_processes.roles(7, 9, proc) == {7: "server", 8: "other", 9: "scheduler", 10: "detokenizer"}


def test_the_other_tool_is_asked_for_exact_lengths_and_nothing_from_the_network(tmp_path):
    line = cross_check.arguments(CrossCheck(30, 2, 64, 8, 1), 99, "/model", tmp_path / "r")
    pairs = dict(zip(line[:-3:2], line[1:-3:2], strict=True))
    assert pairs["--dataset-name"] == "random-ids"
    assert (pairs["--random-range-ratio"], pairs["--random-input-len"]) == ("1.0", "64")
    assert (pairs["--num-prompts"], pairs["--max-concurrency"]) == ("30", "2")
    assert line[-3:] == ["--output-details", "--tokenize-prompt", "--disable-tqdm"]


def test_what_the_other_tool_measured_is_kept_as_it_says_it():
    result = {"input_lens": [64], "output_lens": [8], "ttfts": [0.1], "itls": [[0.01]], "errors": [""], "completed": 1}
    kept = cross_check.raw(json.dumps({**result, "median_ttft_ms": 100.0, "generated_texts": ["x"]}) + "\n")
    assert kept == {**result, "median_ttft_ms": 100.0, "latencies": None, "latencies_reason": kept["latencies_reason"]}


@pytest.mark.parametrize("text", ["", "no json", "{}", "[]"])
def test_a_result_of_another_form_is_an_error(text):
    with pytest.raises(ServingFailed, match="wrote no result"):
        cross_check.raw(text)
