"""What is particular to the table of a task: its columns, and what a reader of them must know."""

from __future__ import annotations

from collections.abc import Iterator

from rvvbench.record.answer import ratio
from rvvbench.record.attestation import named_of
from rvvbench.record.client_lag import FIELD, REMARKED_PERCENT
from rvvbench.record.schema import Heading, Record, Row, RowAgreement
from rvvbench.record.table_parts import significant
from rvvbench.record.timeline import is_number
from rvvbench.record.tokens import reference_of

FIGURES = (
    ("accuracy_percent", "Accuracy"),
    ("accuracy_low_percent", "95 % from"),
    ("accuracy_high_percent", "to"),
    ("right", "Right"),
    ("invalid", "Invalid"),
    ("cut", "Cut off"),
    ("completion_tokens", "Out"),
    ("throughput_output_tokens_per_s", "Output"),
    ("e2e_median_s", "E2E"),
    ("peak_rss_bytes", "Peak RSS"),
)
"""The figures that are columns, and their titles."""

COUNTS = ("answers", "tokens")
"""Units of figures that are whole numbers."""

SPEED = "throughput_output_tokens_per_s"


def shape(heading: Heading) -> str:
    """What was asked, in words."""
    examples = "1 example" if heading.shots == 1 else f"{heading.shots} examples"
    lengths = f"up to {heading.input_len} tokens in, {heading.output_len} out"
    return f"{heading.task}, {heading.requests} questions, {examples} before each, {lengths}"


def agreement_text(found: RowAgreement) -> str | None:
    """How many answers are others than the reference's; None where that is not known."""
    if found.answers_differ is None:
        return None
    return f"{found.answers_differ} of {found.answers_compared} differ" if found.answers_differ else "equal"


def answers(record: Record) -> tuple[str, ...]:
    """A sentence for each row but its reference: its answers, its accuracy and its speed against the reference's."""
    label = "EMULATED: " if record.emulated else ""
    pairs = [(reference_of(record.rows, row, record.agreement.definition), row) for row in record.rows]
    return tuple(f"{label}{_sentence(record, first, row)}" for first, row in pairs if first is not row)


def _sentence(record: Record, first: Row, row: Row) -> str:
    if not (first.validity.valid and row.validity.valid):
        return f"{row.variant}: how it compares with {first.variant} is not known, for that needs two valid rows."
    found = next((one for one in record.agreement.rows if one.row == row.name), None)
    parts = [agreement_of_answers(found)] if found is not None else []
    here, there = (one.figures["accuracy_percent"].median for one in (row, first))
    if here is not None and there is not None:
        parts.append(f"accuracy {significant(here)} % against {significant(there)} %")
    speed = ratio(first, row, SPEED)
    parts += [f"{significant(speed)}x the output throughput"] if speed else []
    return f"{row.variant} against {first.variant}: {', '.join(parts)}."


def agreement_of_answers(found: RowAgreement) -> str:
    """The same as `agreement_text`, in a sentence."""
    if found.answers_differ is None:
        return f"answers cannot be compared ({found.reason})"
    if found.answers_differ:
        return f"{found.answers_differ} of {found.answers_compared} questions are answered otherwise"
    tokens = "token for token" if found.tokens_equal else "by their numbers, not token for token"
    return f"all {found.answers_compared} questions are answered alike, {tokens}"


def remarks(record: Record) -> list[str]:
    """What a reader of accuracies must know, and how much of the prompts came from the cache."""
    return [
        "The interval is for questions drawn at random; variants were asked the same ones, so that answers which "
        "differ tell more than accuracies do.",
        *_unjudged(record),
        *_cached(record),
        *_lags(record),
    ]


def _unjudged(record: Record) -> Iterator[str]:
    """A variant's limits are of tokens that it shares with another; of a task the answers are what counts."""
    limited = [row.variant for row in record.rows if row.expected.accuracy is not None]
    if limited:
        yield f"The accuracy limits of {', '.join(limited)} are not judged here: the answers are the measure."


def _lags(record: Record) -> Iterator[str]:
    """Where the client itself stood still for a part of the time of an answer. What was answered does not depend on it,
    so that it is said and makes no row invalid.
    """
    for row in record.rows:
        for process in row.processes:
            e2e_s = process.figures["e2e_median_s"].value
            for end in named_of(process.events, "load_end", row.expected.load.name if row.expected.load else ""):
                lag_s = end.get(FIELD)
                if is_number(lag_s) and e2e_s and 100 * lag_s > REMARKED_PERCENT * e2e_s:
                    told = f"The client itself stood still for up to {lag_s * 1e3:.0f} ms while {row.name} ran"
                    yield f"{told}, {100 * lag_s / e2e_s:.0f} % of the median time of an answer."


def _cached(record: Record) -> Iterator[str]:
    shares = []
    for row in record.rows:
        cached, prompts = (row.figures[name].median for name in ("cached_tokens", "prompt_tokens"))
        if cached and prompts:
            shares.append(f"{row.variant} {100 * cached / prompts:.0f} % of {prompts:.0f}")
    if shares:
        yield f"Prompt tokens that came from the prefix cache: {', '.join(shares)}."
