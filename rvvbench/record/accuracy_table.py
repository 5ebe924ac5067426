"""What the table of a record says of tokens and log-probabilities, of each row against its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rvvbench.record import task_table
from rvvbench.record.accuracy import is_judged
from rvvbench.record.schema import Record, Row, RowAgreement
from rvvbench.record.table_parts import Cell, Column, significant
from rvvbench.record.tokens import REFERENCE, reference_of

LOGPROB = "logprob_difference"

_COLUMN = Column(
    LOGPROB,
    "Logprob diff",
    "nats",
    text="How far the log-probabilities of tokens are from the reference's, at most and on average. Compared are the "
    "tokens before the first different one of their sequence: from there on the contexts differ.",
)


def columns(record: Record) -> tuple[Column, ...]:
    """Differences of log-probabilities, where rows of one batch are compared in full."""
    compared = record.agreement.definition != "agreement/1" and record.heading.workload == "one-batch"
    return (_COLUMN,) if compared and record.agreement.rows else ()


def tokens(record: Record, row: Row, cited: Callable[[str], str]) -> Cell:
    """Whether the row generated its reference's tokens, or of a task how many answers differ; `cited` gives the text of
    a cell that a reason explains.
    """
    if reference_of(record.rows, row, record.agreement.definition) is row:
        return Cell("reference", "reference")
    found = _agreement_of(record, row)
    if found is None or found.tokens_equal is None:
        reason = (found.reason if found else None) or "the record does not compare this row's tokens"
        return Cell(cited(reason), None, reason=reason)
    if row.expected.task is not None:
        return Cell(task_table.agreement_text(found) or "-", "differ" if found.answers_differ else "equal")
    return Cell("equal", "equal") if found.tokens_equal else Cell("DIFFER", "differ")


def logprobs(record: Record, row: Row, cited: Callable[[str], str]) -> Cell:
    """The largest difference, and beside it the mean."""
    if reference_of(record.rows, row, record.agreement.definition) is row:
        return Cell("-", None, reason="the row is the reference")
    found = _agreement_of(record, row)
    largest, mean = (found.max_logprob_difference, found.mean_logprob_difference) if found else (None, None)
    if largest is None or mean is None:
        reason = (found.reason if found else None) or "no token before the first different one has a log-probability"
        return Cell(cited(reason), None, reason=reason)
    return Cell(significant(largest, 2), largest, spread=f"mean {significant(mean, 2)}")


def remarks(record: Record) -> Iterator[str]:
    """A sentence on each row that is compared, and one on the rows whose limits nothing is held against. A task has
    sentences of its own (`task_table`).
    """
    if record.heading.workload == "eval":
        return
    for row in record.rows:
        found = _agreement_of(record, row)
        if found is not None and found.tokens_equal is not None:
            yield _remark(record, row, found)
    unjudged = [row.name for row in record.rows if goes_unjudged(record, row)]
    if unjudged:
        yield (
            f"The accuracy limits of {', '.join(unjudged)} were not judged: they are against {REFERENCE}, "
            "of which this record has no row."
        )


def goes_unjudged(record: Record, row: Row) -> bool:
    """Whether the row has limits that nothing in the record is held against; of a task, its answers are the measure."""
    limited = row.expected.accuracy is not None and row.expected.task is None
    return limited and row.variant != REFERENCE and not is_judged(record.rows, row)


def _remark(record: Record, row: Row, found: RowAgreement) -> str:
    reference = found.reference or record.agreement.reference
    parted, known = found.first_difference, _known(record, row, found)
    if parted is None:
        return f"Tokens of {found.row} equal those of {reference}{known}."
    margin = "" if parted.reference_margin is None else f" (its top-2 margin there: {parted.reference_margin:.2g})"
    share = (
        "" if found.greedy_agreement is None else f"; {100 * found.greedy_agreement:.4g} % of all tokens come before"
    )
    return (
        f"Tokens of {found.row} part from {reference} at output token {parted.position + 1} of sequence "
        f"{parted.sequence}: {parted.token} for {parted.reference_token}{margin}{f'{known} before' if known else ''}"
        f"{share}."
    )


def _known(record: Record, row: Row, found: RowAgreement) -> str:
    """What is known of log-probabilities, with the limits that the row is judged by."""
    largest, mean = found.max_logprob_difference, found.mean_logprob_difference
    if largest is None:
        return ""
    text = f"; log-probabilities differ by at most {largest:.2g}"
    if mean is None:
        return text
    text += f" and on average by {mean:.2g}"
    limits = row.expected.accuracy
    if limits is None or not is_judged(record.rows, row):
        return text
    return f"{text} (limits {limits.max_logprob_difference:g} and {limits.mean_logprob_difference:g})"


def _agreement_of(record: Record, row: Row) -> RowAgreement | None:
    return next((one for one in record.agreement.rows if one.row == row.name), None)
