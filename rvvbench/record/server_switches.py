"""The switches of a server that are not as a trustworthy timing on a CPU needs them, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rvvbench.record.plain_manifest import ABSENT, at
from rvvbench.record.schema import Record

_NEEDED: tuple[tuple[str, object, str], ...] = (
    ("disable_radix_cache", True, "the prefix cache was on: a prompt that begins as an earlier one costs less"),
    ("disable_overlap_schedule", True, "the overlap schedule was on: a token comes one whole step after it was made"),
    ("sleep_on_idle", True, "an idle scheduler kept a core busy"),
    ("skip_tokenizer_init", True, "the server turned tokens into text"),
    ("stream_interval", 1, "tokens came several in a chunk"),
)
"""Switch, value, and what another value means for the figures (SGLang 0.5.15)."""

_OF_A_TASK = ("skip_tokenizer_init", "stream_interval")
"""A task is text, and no time between tokens is told of it."""


def switched(record: Record) -> Iterator[str]:
    """A sentence for each switch that is set otherwise; none for a record without a server."""
    switches = at(record.manifest, "experiment", "workload", "server")
    for name, needed, meaning in _NEEDED:
        value = at(switches, name)
        if record.heading.workload == "eval" and name in _OF_A_TASK:
            continue
        if switches != ABSENT and value != needed:
            yield f"{name} {value}: {meaning}"
