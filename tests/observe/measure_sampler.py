"""Measures what the sampler itself costs here: `python tests/observe/measure_sampler.py --seconds 30`. Not a test.

Starts idle processes that hold memory, as a server and its schedulers do, samples them at the default pace (or a
faster one), and prints the share of one core that the sampling thread used, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rvvbench.observe.sampler import Pace, sampling

ROOT = """
import subprocess, sys
count, mib = int(sys.argv[1]), int(sys.argv[2])
child = "import sys; held = bytearray(b'x') * (int(sys.argv[1]) << 20); print(flush=True); sys.stdin.read()"
children = [subprocess.Popen([sys.executable, "-c", child, str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(count)]
for one in children:
    one.stdout.readline()
print(flush=True)
sys.stdin.read()
for one in children:
    one.communicate()
"""


def measure(seconds: float, processes: int, mib: int, pace: Pace) -> dict[str, Any]:
    command = [sys.executable, "-c", ROOT, str(processes), str(mib)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as root:
        assert root.stdout is not None
        root.stdout.readline()
        events: list[dict[str, Any]] = []
        with tempfile.TemporaryFile("w") as file:

            def emit(event: dict[str, Any]) -> None:
                events.append(event)
                file.write(json.dumps(event) + "\n")
                file.flush()

            with sampling(root.pid, emit, pace) as sampler:
                time.sleep(seconds)
            written_bytes = file.tell()
        root.communicate()
    end = events[-1]
    return {
        "cpu_share_of_one_core": round(end["cpu_s"] / end["elapsed_s"], 5),
        "cpu_ms_per_event": round(1e3 * end["cpu_s"] / (len(events) - 2), 3),
        "samples": end["samples"],
        "pss_samples": sum(event["event"] == "sample_pss" for event in events),
        "longest_gap_s": round(end["longest_gap_s"], 3),
        "bytes_per_event": written_bytes // len(events),
        "processes": processes + 1,
        "mib_each": mib,
        "processes_on_the_machine": sum(entry.name.isdigit() for entry in Path("/proc").iterdir()),
        "interval_s": pace.interval_s,
        "pss_interval_s": pace.pss_interval_s,
        "cores": os.cpu_count(),
        "failure": sampler.failure,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--mib", type=int, default=300)
    parser.add_argument("--interval", type=float, default=Pace().interval_s)
    parser.add_argument("--pss-interval", type=float, default=Pace().pss_interval_s)
    given = parser.parse_args()
    pace = Pace(given.interval, given.pss_interval if given.pss_interval > 0 else None)
    print(json.dumps(measure(given.seconds, given.processes, given.mib, pace), indent=1))


if __name__ == "__main__":
    main()
