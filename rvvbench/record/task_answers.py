"""What was answered to the questions of a task, read from a row's events; nothing is filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.gsm8k import last_number
from rvvbench.record.schema import ExpectedQuestion, ExpectedTask
from rvvbench.record.timeline import Events, NotMeasuredError, is_count


@dataclass(frozen=True)
class Answer:
    """The answer to one question: `text` as the server gave it; counts are the server's, `cached_tokens` those of the
    prompt that came from its cache. `finish_reason` is its type: "stop" or "length".
    """

    question: ExpectedQuestion
    prompt_sha256: str
    text: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: str

    @property
    def number(self) -> str | None:
        """What it answers; None where it has no number, and is invalid."""
        return last_number(self.text)

    @property
    def right(self) -> bool:
        """Whether it is the number of the data set."""
        return self.number == self.question.gold


def answers(events: Events, task: ExpectedTask) -> tuple[Answer, ...]:
    """The answers in the order of the questions. Raises NotMeasuredError unless every question has exactly one."""
    by_request: dict[str, list[Mapping[str, Any]]] = {question.id: [] for question in task.questions}
    for event in named(events, "answer"):
        id_ = event.get("request")
        if isinstance(id_, str) and id_ in by_request:
            by_request[id_].append(event)
    return tuple(_answer(question, by_request[question.id]) for question in task.questions)


def _answer(question: ExpectedQuestion, found: Sequence[Mapping[str, Any]]) -> Answer:
    if len(found) != 1:
        many = f"{len(found)} answers" if found else "no answer"
        raise NotMeasuredError(f"question {question.id} has {many}")
    event, text = found[0], found[0].get("text")
    if not isinstance(text, str):
        raise NotMeasuredError(f"question {question.id}: its answer has no text")
    reason = event.get("finish_reason")
    return Answer(
        question=question,
        prompt_sha256=str(event.get("prompt_sha256")),
        text=text,
        prompt_tokens=_count(question, event, "prompt_tokens"),
        cached_tokens=_count(question, event, "cached_tokens"),
        completion_tokens=_count(question, event, "completion_tokens"),
        finish_reason=str(reason.get("type") if isinstance(reason, dict) else None),
    )


def _count(question: ExpectedQuestion, event: Mapping[str, Any], field: str) -> int:
    count = event.get(field)
    if not is_count(count):
        raise NotMeasuredError(f"question {question.id}: its answer has no {field}")
    return count
