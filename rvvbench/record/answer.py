"""What a record of a server's loads was made to tell: what a higher load gains, and what it costs each request."""

from __future__ import annotations

from rvvbench.record.disturbance import is_disturbed
from rvvbench.record.schema import ExpectedLoad, Record, Row
from rvvbench.record.table_parts import significant

GAIN_OF = "throughput_output_tokens_per_s"

_COSTS = (
    ("ttft_median_s", "waits {} time for its first token"),
    ("decode_rate_median_tokens_per_s", "decodes at {} rate"),
    ("e2e_median_s", "is answered in {} time"),
)


def first_of(record: Record, row: Row) -> Row:
    """The row that `row` is set against: the first of its variant and cache state, which may be itself."""
    return next(one for one in record.rows if (one.variant, one.cache_state) == (row.variant, row.cache_state))


def answers(record: Record) -> tuple[str, ...]:
    """A sentence for each row that is not the first of its variant."""
    label = "EMULATED: " if record.emulated else ""
    pairs = [(first_of(record, row), row) for row in record.rows]
    return tuple(f"{label}{_sentence(first, row)}" for first, row in pairs if first is not row)


def share(of: float) -> str:
    """A ratio as it is said: "1.25x the", and below 1 "33 % of the"."""
    shown = significant(of)
    return f"{shown}x the" if float(shown) >= 1 else f"{significant(100 * of, 2)} % of the"


def ratio(first: Row, row: Row, name: str) -> float | None:
    """A figure of `row` over that of `first`; None where one of them lacks it."""
    ours, theirs = (one.figures[name].median if name in one.figures else None for one in (row, first))
    return ours / theirs if ours is not None and theirs else None


def _sentence(first: Row, row: Row) -> str:
    here, there = _named(row.expected.load), _named(first.expected.load)
    if not (first.validity.valid and row.validity.valid):
        return f"{row.variant}: what {here} gains over {there} is not known, for that needs two valid rows."
    disturbed = "on a disturbed machine, " if is_disturbed(first) or is_disturbed(row) else ""
    gain = ratio(first, row, GAIN_OF)
    gains = f"{here} gives {share(gain)} output throughput of {there}" if gain else f"the gain of {here} is not known"
    ratios = [(said, ratio(first, row, name)) for name, said in _COSTS]
    costs = [said.format(share(found)) for said, found in ratios if found]
    each = f"; a request ({_made_of(row)}) {_listed(costs)}" if costs else ""
    return f"{row.variant}: {disturbed}{gains}{each}."


def _made_of(row: Row) -> str:
    """What the figures of a request are medians of."""
    assert row.expected.load is not None
    requests = f"{row.expected.load.requests} request{'' if row.expected.load.requests == 1 else 's'}"
    servers = len(row.processes)
    return f"medians of {requests}, " + ("one server" if servers == 1 else f"and of {servers} servers")


def _named(load: ExpectedLoad | None) -> str:
    assert load is not None
    if load.concurrency is not None:
        return f"concurrency {load.concurrency}"
    return f"{load.rate_per_s:g} requests/s ({load.arrivals})"


def _listed(costs: list[str]) -> str:
    return ", and ".join([*([", ".join(costs[:-1])] if costs[:-1] else []), costs[-1]])
