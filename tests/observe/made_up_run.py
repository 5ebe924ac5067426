"""A run that never was: conditions and samples of any second of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from rvvbench.observe.conditions import Conditions, Cooling

TOP, LOW = 1_600_000, 614_400


def conditions(second: float, *, top_ms: int, low_ms: int = 0, swap: int = 0, **changes: Any) -> Conditions:
    found = Conditions(
        unix_s=1e9 + second,
        monotonic_s=second,
        load_average=(1.0, 1.0, 1.0),
        frequency_khz={"policy0": TOP},
        time_in_state_ms={"policy0": {LOW: low_ms, TOP: top_ms}},
        temperature_millicelsius={"thermal_zone0": 50_000 + round(second) * 100},
        cooling={"cooling_device0": Cooling("cpufreq-cpu0", 0, 4)},
        pressure_us={"cpu": {"some": 0, "full": 0}},
        swap_in_pages=swap,
        swap_out_pages=0,
        memory_available_bytes=1,
    )
    return replace(found, **changes)


def sample(
    now: Conditions, *, busy_s: float | None = 0.0, steal_s: float = 0.0, tree_s: float | None = 0.0
) -> dict[str, Any]:
    """A sample as it comes back from a file."""
    plain = now.plain()
    reasons = {f"conditions.{name}": reason for name, reason in plain.pop("reasons").items()}
    cpu = None if busy_s is None else {"busy_s": busy_s, "steal_s": steal_s}
    found = {
        "event": "sample",
        "t_ns": round(now.monotonic_s * 1e9),
        "conditions": plain,
        "cpu": cpu,
        "tree_cpu_s": tree_s,
        "reasons": reasons,
    }
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def quiet(seconds: int = 10) -> tuple[Conditions, Conditions, list[dict[str, Any]]]:
    """One process keeps eight CPUs busy at the top frequency, and nobody else does anything."""
    moments = [conditions(second, top_ms=second * 1000) for second in range(seconds + 1)]
    samples = [sample(now, busy_s=100 + 8.0 * now.monotonic_s, tree_s=8.0 * now.monotonic_s) for now in moments[1:-1]]
    return moments[0], moments[-1], samples
