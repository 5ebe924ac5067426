"""GSM8K as it is asked: each question behind worked examples, in the form that evaluations of this task use. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rvvbench.errors import ManifestError
from rvvbench.provide.dataset import Entry, TaskData
from rvvbench.record.gsm8k import gold_number

READY_QUESTION = "How many apples are one apple and one apple?"
"""Of the first generation, which proves that the server is ready, and is not scored."""


@dataclass(frozen=True)
class Question:
    """A prompt, by the name of its request, and the number that is right."""

    id: str
    prompt: str
    gold: str


@dataclass(frozen=True)
class Task:
    """`questions` in the data set's order; `ready_prompt` has the same examples and a question of its own."""

    questions: tuple[Question, ...]
    ready_prompt: str


def prompt(examples: Sequence[Entry], question: str) -> str:
    """The examples as "Question: ...\\nAnswer: ...", an empty line behind each, then the question and "Answer:"."""
    shown = "".join(f"Question: {one.question}\nAnswer: {one.answer}\n\n" for one in examples)
    return f"{shown}Question: {question}\nAnswer:"


def task(data: TaskData, shots: int, count: int) -> Task:
    """The first `count` questions of the test split, each behind the first `shots` examples of the train split.

    Raises UsageError where there are not as many, ManifestError for a question without a right answer, or one that
    stands twice: its second answer would come from the server's cache.
    """
    examples, asked = data.split(shots, count)
    for index, entry in enumerate(examples):
        _gold(entry, f"{data.train_file[0]}, example {index + 1}")
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for index, entry in enumerate(asked):
        where = f"{data.test_file[0]}, question {index + 1}"
        if entry.question in seen:
            raise ManifestError(f"the question is also question {seen[entry.question] + 1}", where=where)
        seen[entry.question] = index
        questions.append(Question(f"q{index}", prompt(examples, entry.question), _gold(entry, where)))
    return Task(tuple(questions), prompt(examples, READY_QUESTION))


def _gold(entry: Entry, where: str) -> str:
    try:
        return gold_number(entry.answer)
    except ValueError as error:
        mend = 'an answer ends in "#### NUMBER"'
        raise ManifestError(f"its answer has {error}", where=where, mend=mend) from error
