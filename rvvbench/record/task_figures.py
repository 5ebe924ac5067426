"""What each figure of a task means, and how it is derived from its answers: accuracy, and speed beside it.

What was answered does not depend on how fast: those figures have no twin for emulation. A question without an answer
leaves accuracy null, for a share of the others would hide it; an answer without a number is wrong, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from rvvbench.record.metrics import Definition, figure
from rvvbench.record.proportion import wilson
from rvvbench.record.request_timeline import requests
from rvvbench.record.schema import Expected, ExpectedTask, Figure
from rvvbench.record.server_figures import SERVER_FIGURES, Beneath
from rvvbench.record.serving import LOAD_FIGURES
from rvvbench.record.task_answers import Answer, answers
from rvvbench.record.timeline import Events


@dataclass(frozen=True)
class Given:
    """The events of one process, and the task that it was given."""

    events: Events
    task: ExpectedTask

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """One for every question. Raises NotMeasuredError where one is missing."""
        return answers(self.events, self.task)

    @property
    def right(self) -> int:
        return sum(answer.right for answer in self.answers)


def _accuracy(one: Given) -> float:
    return 100 * one.right / len(one.answers)


def _low(one: Given) -> float:
    return 100 * wilson(one.right, len(one.answers))[0]


def _high(one: Given) -> float:
    return 100 * wilson(one.right, len(one.answers))[1]


def _right(one: Given) -> float:
    return float(one.right)


def _invalid(one: Given) -> float:
    return float(sum(answer.number is None for answer in one.answers))


def _cut(one: Given) -> float:
    return float(sum(answer.finish_reason == "length" for answer in one.answers))


def _prompt_tokens(one: Given) -> float:
    return float(sum(answer.prompt_tokens for answer in one.answers))


def _cached_tokens(one: Given) -> float:
    return float(sum(answer.cached_tokens for answer in one.answers))


def _completion_tokens(one: Given) -> float:
    return float(sum(answer.completion_tokens for answer in one.answers))


ANSWER_FIGURES: tuple[tuple[Definition, Callable[[Given], float]], ...] = (
    (
        Definition(
            "accuracy.gsm8k_last_number/1",
            "accuracy_percent",
            "%",
            "Accuracy",
            "Of all questions, those whose answer's last number is the number of the data set. An answer without a "
            "number is wrong.",
            "100 * right / questions",
        ),
        _accuracy,
    ),
    (
        Definition(
            "accuracy.wilson_95_low/1",
            "accuracy_low_percent",
            "%",
            "Accuracy, low",
            "Lower end of the 95 % interval of the accuracy (Wilson 1927), for questions as if drawn at random: two "
            "variants that answer the same questions differ by less than their intervals suggest.",
            "100 * (p + z^2/2n - z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96",
        ),
        _low,
    ),
    (
        Definition(
            "accuracy.wilson_95_high/1",
            "accuracy_high_percent",
            "%",
            "Accuracy, high",
            "Upper end of the 95 % interval of the accuracy (Wilson 1927).",
            "100 * (p + z^2/2n + z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96",
        ),
        _high,
    ),
    (
        Definition(
            "answers.right/1", "right", "answers", "Right", "Answers whose last number is the data set's.", "count"
        ),
        _right,
    ),
    (
        Definition("answers.invalid/1", "invalid", "answers", "Invalid", "Answers without any number.", "count"),
        _invalid,
    ),
    (
        Definition(
            "answers.cut/1",
            "cut",
            "answers",
            "Cut off",
            "Answers that ended because they had the most tokens that an answer may have.",
            "count of finish_reason length",
        ),
        _cut,
    ),
    (
        Definition(
            "tokens.of_prompts/1",
            "prompt_tokens",
            "tokens",
            "Prompt tokens",
            "Tokens of all prompts, as the server counted them.",
            "sum(prompt_tokens)",
        ),
        _prompt_tokens,
    ),
    (
        Definition(
            "tokens.of_prompts_cached/1",
            "cached_tokens",
            "tokens",
            "Cached",
            "Of the prompts' tokens those that came from the server's prefix cache, and not from a prefill.",
            "sum(cached_tokens)",
        ),
        _cached_tokens,
    ),
    (
        Definition(
            "tokens.of_answers/1",
            "completion_tokens",
            "tokens",
            "Answer tokens",
            "Tokens of all answers, as the server counted them, those that ended one included.",
            "sum(completion_tokens)",
        ),
        _completion_tokens,
    ),
)

_SPEED = (
    "wall_s",
    "throughput_output_tokens_per_s",
    "ttft_median_s",
    "decode_rate_median_tokens_per_s",
    "e2e_median_s",
    "in_flight_peak",
)
"""Of a load's figures, those that mean something where prompts and answers are of any length."""

_LOAD = tuple((native, of) for native, of in LOAD_FIGURES if native.name in _SPEED)
_SERVER = tuple((native, of) for native, of in SERVER_FIGURES if native.name != "decoded_at_full_batch_percent")

TASK_NAMES: tuple[str, ...] = tuple(native.name for native, _ in (*ANSWER_FIGURES, *_LOAD, *_SERVER))
"""The keys of the figures of a task's row."""

TASK_DEFINITIONS: Mapping[str, Definition] = {native.id: native for native, _ in ANSWER_FIGURES}
"""By id; those of the other figures are a serving row's."""


def derive_task(events: Events, expected: Expected) -> dict[str, Figure]:
    """Every figure that one process gives to a task's row."""
    task, load, emulated = expected.task, expected.load, expected.emulated
    assert task is not None and load is not None
    asked, beneath = requests(events, load.name), Beneath(events, expected)
    return {
        **{native.name: figure(native, False, of, Given(events, task)) for native, of in ANSWER_FIGURES},
        **{native.name: figure(native, emulated, of, asked) for native, of in _LOAD},
        **{native.name: figure(native, emulated, of, beneath) for native, of in _SERVER},
    }
