"""What the machine did to one repetition, from the gate before it to its end, as a record says it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rvvbench.manifest.models import TargetKind
from rvvbench.observe.conditions import Conditions
from rvvbench.observe.gate import Waited
from rvvbench.observe.stretch import Window
from rvvbench.observe.validity import assess, rules_for

SCHEMA = "rvvbench/observation/1"

EMULATOR = "every memory figure includes the emulator: each process that was sampled is one of QEMU"


def conclude(
    target: TargetKind,
    waited: Waited | None,
    before: Conditions,
    after: Conditions,
    samples: Sequence[Mapping[str, Any]],
    window: Window | None,
    governors: Mapping[str, str] | None,
) -> dict[str, Any]:
    """`reasons` [{`id`, `text`}], `notes` and `figures` (see `assess`), as JSON data.

    `waited` is what the gate did, None where nobody stood there.
    """
    rules = rules_for(target)
    found = assess(before, after, samples, rules, window=window, governors=governors, waited=waited).plain()
    if target == "emulated":
        found["notes"].append(EMULATOR)
    return found
