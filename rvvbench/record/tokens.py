"""The greedy tokens that a process generated, and whether two generations are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.schema import Agreement, AgreementId, Difference, ExpectedLoad, Row, RowAgreement
from rvvbench.record.timeline import is_number

NO_LOGPROBS = "the server was not asked for log-probabilities"

REFERENCE = "torch-native"
"""The variant that the others are held against."""

NEWEST: AgreementId = "agreement/2"


@dataclass(frozen=True)
class Generation:
    """Token ids, log-probabilities and top-2 margins, as [position][sequence]; None where there is no number.

    A server's have no log-probabilities and no margins.
    """

    token_ids: tuple[tuple[int | None, ...], ...]
    logprobs: tuple[tuple[float | None, ...], ...]
    margins: tuple[tuple[float | None, ...], ...]

    @property
    def complete(self) -> bool:
        """There are tokens, and every one of them is an integer."""
        return bool(self.token_ids) and all(step and None not in step for step in self.token_ids)


def generation(events: Sequence[Mapping[str, Any]], load: ExpectedLoad | None) -> Generation:
    """What the measured pass generated, or the load where there is one, as it stands in the events.

    One batch: the prefill's tokens, then those of each decode step. A load: its requests are the sequences, in the
    order in which they were started; where they did not all get as many tokens, those that some lack are None.
    """
    if load is not None:
        return _of_requests(events, load.name)
    steps = [*named(events, "prefill"), *named(events, "decode")]
    return Generation(
        token_ids=tuple(_items(step, "token_ids", _token) for step in steps),
        logprobs=tuple(_items(step, "logprobs", _finite) for step in steps),
        margins=tuple(_items(step, "top2_margin", _finite) for step in steps),
    )


def _of_requests(events: Sequence[Mapping[str, Any]], load: str) -> Generation:
    started = [start.get("request") for start in named(events, "request_start") if start.get("load") == load]
    sequences: dict[Any, list[int | None]] = {id_: [] for id_ in started if isinstance(id_, str)}
    for chunk in named(events, "chunk"):
        request = chunk.get("request")
        if isinstance(request, str) and request in sequences:
            sequences[request] += _items(chunk, "token_ids", _token)
    return Generation(tuple(zip_longest(*sequences.values())), (), ())


def agreement_of(rows: Sequence[Row], definition: AgreementId = NEWEST) -> Agreement:
    """Each row's first process against that of its reference (validity has seen to it that a row's processes agree)."""
    compared = tuple(
        _row_agreement(one, row, definition) for row in rows if (one := reference_of(rows, row, definition)) is not row
    )
    return Agreement(reference=reference_of(rows, rows[0], definition).name, rows=compared, definition=definition)


def reference_of(rows: Sequence[Row], row: Row, definition: AgreementId = NEWEST) -> Row:
    """The row whose tokens `row` should have generated, which may be itself: that of torch-native at the same load, or
    else (and always by `agreement/1`) the first row of that load.
    """
    alike = [one for one in rows if _load(one) == _load(row)]
    native = [one for one in alike if one.variant == REFERENCE] if definition != "agreement/1" else []
    return next(iter([*native, *alike]), row)


def _load(row: Row) -> str | None:
    return row.expected.load.name if row.expected.load else None


def _row_agreement(reference: Row, row: Row, definition: AgreementId) -> RowAgreement:
    if not reference.processes or not row.processes:
        return _unknown(reference, row, "a row without a process has no tokens")
    load = row.expected.load
    ours, theirs = (generation(one.processes[0].events, load) for one in (row, reference))
    for name, one in ((row.name, ours), (reference.name, theirs)):
        if not one.complete:
            return _unknown(reference, row, f"the events of {name} do not hold every token")
    if _shape(ours) != _shape(theirs):
        return _unknown(reference, row, f"{row.name} and {reference.name} did not generate as many tokens")
    first = _first_difference(ours, theirs)
    common = _common(ours, theirs)
    differences = _logprob_differences(common, ours, theirs) if load is None else None
    newer = definition != "agreement/1"
    return RowAgreement(
        row=row.name,
        tokens_equal=first is None,
        max_logprob_difference=max(differences) if differences else None,
        first_difference=first,
        reference=reference.name if load else None,
        logprob_reason=NO_LOGPROBS if load else None,
        mean_logprob_difference=math.fsum(differences) / len(differences) if differences and newer else None,
        greedy_agreement=len(common) / sum(_shape(ours)) if newer else None,
    )


def _unknown(reference: Row, row: Row, reason: str) -> RowAgreement:
    return RowAgreement(
        row=row.name,
        tokens_equal=None,
        max_logprob_difference=None,
        first_difference=None,
        reason=reason,
        reference=reference.name if row.expected.load else None,
        logprob_reason=NO_LOGPROBS if row.expected.load else None,
    )


def _shape(one: Generation) -> list[int]:
    return [len(step) for step in one.token_ids]


def _first_difference(ours: Generation, theirs: Generation) -> Difference | None:
    for position, (step, reference) in enumerate(zip(ours.token_ids, theirs.token_ids, strict=True)):
        for sequence, (token, reference_token) in enumerate(zip(step, reference, strict=True)):
            if token is not None and reference_token is not None and token != reference_token:
                margins = theirs.margins[position] if theirs.margins else ()
                margin = margins[sequence] if sequence < len(margins) else None
                return Difference(
                    sequence=sequence,
                    position=position,
                    reference_token=reference_token,
                    token=token,
                    reference_margin=margin,
                )
    return None


def _common(ours: Generation, theirs: Generation) -> list[tuple[int, int]]:
    """(position, sequence) of every token before the first different one of its sequence."""
    parted: set[int] = set()
    common = []
    for position, (step, reference) in enumerate(zip(ours.token_ids, theirs.token_ids, strict=True)):
        for sequence, (token, reference_token) in enumerate(zip(step, reference, strict=True)):
            if token != reference_token:
                parted.add(sequence)
            if sequence not in parted:
                common.append((position, sequence))
    return common


def _logprob_differences(tokens: Sequence[tuple[int, int]], ours: Generation, theirs: Generation) -> list[float] | None:
    """|difference| of the log-probabilities of each of `tokens`; None where one is missing."""
    differences = []
    for position, sequence in tokens:
        pair = [one.logprobs[position][sequence : sequence + 1] for one in (ours, theirs)]
        if not pair[0] or not pair[1] or pair[0][0] is None or pair[1][0] is None:
            return None
        differences.append(abs(pair[0][0] - pair[1][0]))
    return differences


def _items(event: Mapping[str, Any], field: str, read: Any) -> tuple[Any, ...]:
    values = event.get(field)
    return tuple(read(value) for value in values) if isinstance(values, list) else ()


def _token(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _finite(value: Any) -> float | None:
    return float(value) if is_number(value) else None
