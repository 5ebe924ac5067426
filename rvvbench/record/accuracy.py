"""Is a row as accurate as its variant promises? The limits of what it expects, against its agreement with the row of
torch-native. Pure, and the only place that says so: what is built and what is verified both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvvbench.record.schema import Accuracy, Reason, Row, RowAgreement, Validity
from rvvbench.record.tokens import REFERENCE, agreement_of, reference_of

_BEYOND, _UNPROVEN = _IDS = ("accuracy", "accuracy-unproven")


def judged(rows: Sequence[Row], validities: Sequence[Validity]) -> tuple[Validity, ...]:
    """The validity of each of `rows`, which by itself is that of `validities`, with what its accuracy adds."""
    limited = [row.name for row in rows if is_judged(rows, row)]
    found = {one.row: one for one in agreement_of(rows).rows if one.row in limited} if limited else {}
    own = [Validity.of(tuple(one for one in validity.reasons if one.id not in _IDS)) for validity in validities]
    return tuple(
        Validity.of((*validity.reasons, *_reasons(row, validity, found.get(row.name))))
        for row, validity in zip(rows, own, strict=True)
    )


def is_judged(rows: Sequence[Row], row: Row) -> bool:
    """Whether the row has limits, and there is a row of torch-native to hold it against."""
    reference = reference_of(rows, row)
    return row.expected.accuracy is not None and reference is not row and reference.variant == REFERENCE


def _reasons(row: Row, validity: Validity, found: RowAgreement | None) -> Iterator[Reason]:
    limits = row.expected.accuracy
    if limits is None or found is None:
        return
    if found.tokens_equal is None:
        # A row that did not come to its end has reasons enough.
        if validity.valid:
            yield Reason(id=_UNPROVEN, text=f"its tokens are not known to be accurate: {found.reason}")
        return
    for text in _beyond(limits, found, has_logprobs=row.expected.load is None):
        yield Reason(id=_BEYOND, text=text)
    if row.expected.load is None and found.max_logprob_difference is None and found.greedy_agreement:
        yield Reason(id=_UNPROVEN, text="there is no log-probability to compare with that of torch-native")


def _beyond(limits: Accuracy, found: RowAgreement, *, has_logprobs: bool) -> Iterator[str]:
    agreement = found.greedy_agreement
    if agreement is not None and agreement < limits.greedy_agreement:
        share, least = _percent(agreement), _percent(limits.greedy_agreement)
        yield f"{share} of its tokens come before the first that torch-native chose otherwise, at least {least} must"
    differences = (
        ("by at most", found.max_logprob_difference, limits.max_logprob_difference),
        ("on average by", found.mean_logprob_difference, limits.mean_logprob_difference),
    )
    for what, difference, limit in differences if has_logprobs else ():
        if difference is not None and difference > limit:
            said = f"its log-probabilities differ from torch-native's {what} {difference:.6g} nats"
            yield f"{said}, the limit is {limit:.6g}"


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"
