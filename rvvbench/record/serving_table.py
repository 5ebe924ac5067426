"""What is particular to the table of a server's loads: its columns, and what a reader of them must know."""

from __future__ import annotations

from collections.abc import Iterator

from rvvbench.record.answer import GAIN_OF, first_of
from rvvbench.record.client_lag import lag_remarks
from rvvbench.record.request_figures import flags
from rvvbench.record.request_timeline import requests
from rvvbench.record.schema import Record, Row
from rvvbench.record.table_parts import GIB, significant

FIGURES = (
    ("ttft_median_s", "TTFT"),
    ("itl_median_s", "ITL"),
    ("tpot_median_s", "TPOT"),
    ("decode_rate_median_tokens_per_s", "Decode"),
    ("decode_rate_global_tokens_per_s", "Global"),
    (GAIN_OF, "Output"),
    ("e2e_median_s", "E2E"),
    ("peak_rss_bytes", "Peak RSS"),
    ("decoded_at_full_batch_percent", "Full batch"),
)
"""The figures that are columns, and their titles."""

_FLAGS_SHOWN = 4


def remarks(record: Record) -> list[str]:
    """Start-up times, memory of the whole server, and what a reader of the requests' figures must know."""
    ready = ", ".join(f"{row.variant} {_seconds(row)}" for row in record.rows if first_of(record, row) is row)
    flagged = list(dict.fromkeys(_flags(record)))
    more = len(flagged) - _FLAGS_SHOWN
    return [
        f"Start-up, from the spawn to the first generation and in no other figure: {ready}.",
        f"Peak RSS is of a server's largest process; of all together: {', '.join(_memory(record))}.",
        *(f"{text}." for text in flagged[:_FLAGS_SHOWN]),
        *([f"{more} more remarks on tokens that came together."] if more > 0 else []),
        *lag_remarks(record),
    ]


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
