"""Calls of the compiler, as the wrapper writes them down."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rvvbench.cache.compiler import LOG_NAME, SCRIPT, WRAPPER, calls
from rvvbench.cache.directory import listing
from rvvbench.cache.prepare import cold
from rvvbench.cache.proof import proof

from .made_up import KEY, fill

LOG = """--version
-dumpfullversion -dumpversion
-print-file-name=libgomp.so
/rvvbench/cache/ab/x.main.cpp -O3 -march=rv64gc -shared -march=rv64gcv -o /rvvbench/cache/ab/x.main.so
-E -P /tmp/a.h
"""


def test_questions_are_told_from_compilations() -> None:
    found = calls(LOG)
    assert [call.query for call in found[:3]] == ["--version", "-dumpfullversion -dumpversion", found[2].query]
    assert [call.query for call in found[3:]] == [None, None]
    compiled = found[3]
    assert compiled.source == "/rvvbench/cache/ab/x.main.cpp" and compiled.output == "/rvvbench/cache/ab/x.main.so"
    assert compiled.march == "rv64gcv"  # the last one counts


def test_the_wrapper_writes_a_line_a_call_and_runs_the_compiler(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text('#!/bin/sh\necho "compiled $1 $2"\nexit 3\n')
    real.chmod(0o755)
    script = SCRIPT.replace("/rvvbench/out", str(tmp_path)).replace("/usr/bin/g++", str(real))
    wrapper = tmp_path / "g++"
    wrapper.write_text(script)
    wrapper.chmod(0o755)
    for words in (["--version"], ["a b.cpp", "-o", "x.so"]):
        ended = subprocess.run([wrapper, *words], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout.startswith(f"compiled {words[0]}")) == (3, True)
    log = (tmp_path / LOG_NAME).read_text()
    assert len(log.splitlines()) == 2 and [call.query is None for call in calls(log)] == [False, True]


def test_inductor_takes_the_wrapper_for_gcc() -> None:
    # torch._inductor.cpp_builder._is_gcc and _is_clang look for these words in the path.
    assert "g++" in WRAPPER and "clang" not in WRAPPER


def test_a_proof_tells_what_a_process_did_to_its_cache(tmp_path: Path) -> None:
    prepared = cold(KEY, tmp_path / "cache")
    fill(prepared.folder)
    log = tmp_path / LOG_NAME
    log.write_text(LOG)
    found = proof(prepared, listing(prepared.folder), log)
    assert (found["state"], found["origin"], found["digest"]) == ("cold", None, KEY.digest)
    assert found["before"]["entries"] == 0 and "ab/cab.main.so" in found["added"]
    assert list(found["libraries"]) == ["ab/cab.main.so"] and len(found["compiler_calls"]) == 5


def test_a_compiler_that_was_never_called_leaves_no_log(tmp_path: Path) -> None:
    prepared = cold(KEY, tmp_path / "cache")
    assert proof(prepared, {}, tmp_path / LOG_NAME)["compiler_calls"] == []
