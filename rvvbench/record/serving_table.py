"""What a table of a server's loads answers: what does a higher concurrency gain, and what does it cost each request?"""

from __future__ import annotations

from collections.abc import Iterator

from rvvbench.record.request_figures import flags
from rvvbench.record.request_timeline import requests
from rvvbench.record.schema import ExpectedLoad, Record, Row
from rvvbench.record.table_parts import GIB, significant

GAIN_OF = "throughput_output_tokens_per_s"
WAIT = "ttft_median_s"
RATE = "decode_rate_median_tokens_per_s"

FIGURES = (
    (WAIT, "TTFT"),
    ("itl_median_s", "ITL"),
    (RATE, "Decode"),
    ("decode_rate_global_tokens_per_s", "Global"),
    (GAIN_OF, "Output"),
    ("e2e_median_s", "E2E"),
    ("peak_rss_bytes", "Peak RSS"),
    ("decoded_at_full_batch_percent", "Full batch"),
)
"""The figures that are columns, and their titles."""

_FLAGS_SHOWN = 4


def first_of(record: Record, row: Row) -> Row:
    """The row that `row` is set against: the first of its variant and cache state, which may be itself."""
    return next(one for one in record.rows if (one.variant, one.cache_state) == (row.variant, row.cache_state))


def answers(record: Record) -> tuple[str, ...]:
    """A sentence for each row that is not the first of its variant."""
    label = "EMULATED: " if record.emulated else ""
    return tuple(
        f"{label}{row.variant}: {_answer(first, row)}"
        for row in record.rows
        if (first := first_of(record, row)) is not row
    )


def remarks(record: Record) -> list[str]:
    """Start-up times, memory of the whole server, and what a reader of the requests' figures must know."""
    ready = ", ".join(f"{row.variant} {_seconds(row)}" for row in record.rows if first_of(record, row) is row)
    flagged = list(dict.fromkeys(_flags(record)))
    more = len(flagged) - _FLAGS_SHOWN
    return [
        f"Start-up, from the spawn to the first generation and in no other figure: {ready}.",
        f"Peak RSS is of a server's largest process; of all together: {', '.join(_memory(record))}.",
        *(f"{text}." for text in flagged[:_FLAGS_SHOWN]),
        *([f"{more} more requests have chunks with several tokens."] if more > 0 else []),
    ]


def _answer(first: Row, row: Row) -> str:
    here, there = _named(row.expected.load), _named(first.expected.load)
    if not (first.validity.valid and row.validity.valid):
        return f"what {here} gains over {there} is not known, for that needs two valid rows."
    gain, wait, rate = (_ratio(first, row, name) for name in (GAIN_OF, WAIT, RATE))
    found = [f"{here} gives {gain} the output throughput of {there}" if gain else f"the gain of {here} is not known"]
    costs = [f"waits {wait} as long for its first token"] if wait else []
    costs += [f"decodes at {rate} the rate"] if rate else []
    return "; ".join([*found, *([f"a request {' and '.join(costs)}"] if costs else [])]) + "."


def _ratio(first: Row, row: Row, name: str) -> str | None:
    ours, theirs = row.figures[name].median, first.figures[name].median
    return f"{significant(ours / theirs)}x" if ours is not None and theirs else None


def _named(load: ExpectedLoad | None) -> str:
    assert load is not None
    if load.concurrency is not None:
        return f"concurrency {load.concurrency}"
    return f"{load.rate_per_s:g} requests/s ({load.arrivals})"


def _seconds(row: Row) -> str:
    figure = row.figures["ready_s"]
    if figure.median is None or figure.min is None or figure.max is None:
        return f"unknown ({figure.reason})"
    spread = f" ({significant(figure.min)}-{significant(figure.max)})" if figure.n > 1 else ""
    return f"{significant(figure.median)} s{spread}"


def _memory(record: Record) -> Iterator[str]:
    """Of each variant, after its last load: a server's memory grows from load to load."""
    for variant, row in {row.variant: row for row in record.rows}.items():
        found = [
            f"{what} {significant(median / GIB)} GiB"
            for name, what in (("peak_rss_sum_bytes", "peaks add up to"), ("pss_sum_bytes", "PSS"))
            if (median := row.figures[name].median) is not None
        ]
        yield f"{variant} {' and '.join(found) or 'unknown'}"


def _flags(record: Record) -> Iterator[str]:
    for row in record.rows:
        for process in row.processes:
            for one in requests(process.events, row.expected.load.name if row.expected.load else None):
                yield from (f"{row.name}, process {process.index}, {flag.text}" for flag in flags(one))
