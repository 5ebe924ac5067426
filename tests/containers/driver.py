"""Driving the installed command as a user does: a subprocess, its exit code, stdout and stderr."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.record.schema import Record
from rvvbench.record.store import RecordStore


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    def table(self) -> dict[str, Any]:
        """The JSON that a command printed with --json."""
        data: dict[str, Any] = json.loads(self.out)
        return data


def command(*arguments: str) -> list[str]:
    """The command line of `rvvbench ARGUMENTS` in this environment."""
    return [sys.executable, "-c", "from rvvbench.cli.main import main; main()", *arguments]


def rvvbench(*arguments: str, manifests: Path | None = None, timeout_s: float = 900) -> Outcome:
    """Run `rvvbench ARGUMENTS` to its end, with other manifests where given."""
    env = dict(os.environ)
    if manifests is not None:
        env["RVVBENCH_MANIFESTS"] = str(manifests)
    done = subprocess.run(command(*arguments), env=env, capture_output=True, text=True, timeout=timeout_s, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def newest_record() -> Record:
    """The record that was written last on this machine."""
    entries = [entry for entry in RecordStore(project.state_dir() / "results").list() if entry.record]
    record = entries[-1].record
    assert record is not None
    return record


def containers_of_rvvbench() -> list[str]:
    """Names of all containers that bear our label, running or not."""
    from rvvbench.engine.owner import LABEL
    from rvvbench.engine.service import Engine

    with Engine(project.state_dir()) as engine:
        found = engine.client.containers.list(all=True, filters={"label": LABEL})
        return [str(container.name) for container in found]


def copied_manifests(folder: Path) -> Path:
    """A copy of the project's manifests that a test may break."""
    copy = folder / "manifests"
    shutil.copytree(project.manifests_dir(), copy)
    return copy


def token_ids(record: Record, row: str) -> list[list[int]]:
    """Tokens of the first process of a row: one list per pass, prefill first."""
    for candidate in record.rows:
        if candidate.name == row:
            passes = [e for e in candidate.processes[0].events if e["event"] in ("prefill", "decode")]
            return [event["token_ids"] for event in passes]
    raise AssertionError(f"no row {row} in {[r.name for r in record.rows]}")
