"""The greedy tokens that a process generated, and whether two generations are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.schema import Agreement, Difference, Row, RowAgreement


@dataclass(frozen=True)
class Generation:
    """Token ids, log-probabilities and top-2 margins, as [position][sequence]; None where there is no number."""

    token_ids: tuple[tuple[int | None, ...], ...]
    logprobs: tuple[tuple[float | None, ...], ...]
    margins: tuple[tuple[float | None, ...], ...]

    @property
    def complete(self) -> bool:
        """There are tokens, and every one of them is an integer."""
        return bool(self.token_ids) and all(step and None not in step for step in self.token_ids)


def generation(events: Sequence[Mapping[str, Any]]) -> Generation:
    """What the measured pass generated:

    The prefill's tokens, then those of each decode step, as they stand in the events.
    """
    steps = [*named(events, "prefill"), *named(events, "decode")]
    return Generation(
        token_ids=tuple(_items(step, "token_ids", _token) for step in steps),
        logprobs=tuple(_items(step, "logprobs", _finite) for step in steps),
        margins=tuple(_items(step, "top2_margin", _finite) for step in steps),
    )


def agreement_of(rows: Sequence[Row]) -> Agreement:
    """Each row's first process against that of the first row (validity has seen to it that a row's processes agree)."""
    reference = rows[0]
    return Agreement(reference=reference.name, rows=tuple(_row_agreement(reference, row) for row in rows[1:]))


def _row_agreement(reference: Row, row: Row) -> RowAgreement:
    if not reference.processes or not row.processes:
        return _unknown(row, "a row without a process has no tokens")
    ours, theirs = generation(row.processes[0].events), generation(reference.processes[0].events)
    for name, one in ((row.name, ours), (reference.name, theirs)):
        if not one.complete:
            return _unknown(row, f"the events of {name} do not hold every token")
    if _shape(ours) != _shape(theirs):
        return _unknown(row, f"{row.name} and {reference.name} did not generate as many tokens")
    first = _first_difference(ours, theirs)
    return RowAgreement(
        row=row.name,
        tokens_equal=first is None,
        max_logprob_difference=_max_logprob_difference(ours, theirs),
        first_difference=first,
    )


def _unknown(row: Row, reason: str) -> RowAgreement:
    return RowAgreement(
        row=row.name, tokens_equal=None, max_logprob_difference=None, first_difference=None, reason=reason
    )


def _shape(one: Generation) -> list[int]:
    return [len(step) for step in one.token_ids]


def _first_difference(ours: Generation, theirs: Generation) -> Difference | None:
    for position, (step, reference) in enumerate(zip(ours.token_ids, theirs.token_ids, strict=True)):
        for sequence, (token, reference_token) in enumerate(zip(step, reference, strict=True)):
            if token is not None and reference_token is not None and token != reference_token:
                margins = theirs.margins[position]
                margin = margins[sequence] if sequence < len(margins) else None
                return Difference(
                    sequence=sequence,
                    position=position,
                    reference_token=reference_token,
                    token=token,
                    reference_margin=margin,
                )
    return None


def _max_logprob_difference(ours: Generation, theirs: Generation) -> float | None:
    """Over each sequence up to and without its first different token; None where a log-probability is missing."""
    largest: float | None = None
    parted: set[int] = set()
    for position, (step, reference) in enumerate(zip(ours.token_ids, theirs.token_ids, strict=True)):
        for sequence, (token, reference_token) in enumerate(zip(step, reference, strict=True)):
            if token != reference_token:
                parted.add(sequence)
            if sequence in parted:
                continue
            pair = [one.logprobs[position][sequence : sequence + 1] for one in (ours, theirs)]
            if not pair[0] or not pair[1] or pair[0][0] is None or pair[1][0] is None:
                return None
            largest = max(largest or 0.0, abs(pair[0][0] - pair[1][0]))
    return largest


def _items(event: Mapping[str, Any], field: str, read: Any) -> tuple[Any, ...]:
    values = event.get(field)
    return tuple(read(value) for value in values) if isinstance(values, list) else ()


def _token(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
