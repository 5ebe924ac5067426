"""A task put to a server: a fresh server for each variant and repetition; a row for each variant."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rvvbench.manifest.loads import Load
from rvvbench.manifest.models import CacheState, Eval, Variant
from rvvbench.manifest.regional import Artifact
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.task_routing import at_any_rows
from rvvbench.provide.dataset import TaskData
from rvvbench.record.build import build_row
from rvvbench.record.declared_task import dataset_title
from rvvbench.record.gsm8k import last_number
from rvvbench.record.schema import Expected, ExpectedQuestion, ExpectedTask, Heading, Row
from rvvbench.target.select import Target
from rvvbench.workload import gsm8k
from rvvbench.workload.follow import Say
from rvvbench.workload.job import Measured
from rvvbench.workload.serving import ServingJob
from rvvbench.workload.spec import Identity, Pins, heading_of

STAY = 10
"""So many lines of progress stay on the screen, however many questions there are."""


@dataclass(frozen=True)
class EvalJob:
    """The steps of a task that its manifest decides. The server is that of a serving run; what it is asked is not."""

    resolved: Resolved
    target: Target
    pins: Pins
    workload: Eval
    data: TaskData

    @cached_property
    def task(self) -> gsm8k.Task:
        """What is asked; raises as `gsm8k.task`."""
        return gsm8k.task(self.data, self.workload.shots, self.workload.questions)

    @property
    def load(self) -> Load:
        """The one load, which bears the task's name."""
        workload = self.workload
        return Load(workload.task, "closed", workload.questions, concurrency=workload.concurrency)

    def heading(self) -> Heading:
        """What every table of the record says above itself."""
        return heading_of(
            self.resolved,
            workload="eval",
            batch_size=1,
            requests=self.workload.questions,
            task=self.workload.task,
            shots=self.workload.shots,
            dataset=dataset_title(self.data.pins()),
        )

    def expected(self, variant: Variant) -> Expected:
        """What every server must show for the row of `variant`: what serving expects, at any number of rows."""
        expected = self._serving.expected(variant, self.load)
        questions = tuple(
            ExpectedQuestion(id=one.id, prompt_sha256=hashlib.sha256(one.prompt.encode()).hexdigest(), gold=one.gold)
            for one in self.task.questions
        )
        task = ExpectedTask(name=self.workload.task, shots=self.workload.shots, questions=questions)
        return expected.model_copy(update={"routing": at_any_rows(expected.routing), "task": task})

    def spec(self, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The spec of one fresh server and its questions, as JSON data."""
        return {
            **self._serving.server_spec("eval", variant, identity),
            "load": {
                "name": self.load.name,
                "concurrency": self.load.concurrency,
                "requests": [{"id": one.id, "prompt": one.prompt} for one in self.task.questions],
            },
            "ready_prompt": self.task.ready_prompt,
            "stop": list(self.workload.stop),
        }

    def artifacts(self, variant: Variant) -> tuple[Artifact, ...]:
        """None: a task takes no variant that compiles (`resolve`)."""
        return ()

    def rows(self, variant: Variant, processes: Sequence[Measured], state: CacheState = "none") -> list[Row]:
        """The one row of `variant`."""
        return [
            build_row(
                variant=variant.name,
                cache_state=state,
                concurrency=self.load.concurrency,
                expected=self.expected(variant),
                processes=[one.ran(self.load.name) for one in processes],
            )
        ]

    def teller(self) -> Story:
        """Says what the server does, and how many answers are right so far."""
        return Story({one.id: one.gold for one in self.task.questions})

    @property
    def _serving(self) -> ServingJob:
        return ServingJob(self.resolved, self.target, self.pins, self.workload.as_serving())


@dataclass
class Story:
    """Tells a person of the server's start and of the answers; `gold` has the right number of each request."""

    gold: Mapping[str, str]
    _answered: int = 0
    _right: int = 0

    def __call__(self, event: Mapping[str, Any]) -> Say | None:
        match event.get("event"):
            case "process_start":
                return Say("server: importing PyTorch and SGLang, loading the model")
            case "server_listening":
                return Say(f"server answers after {event.get('seconds', 0.0):.1f} s; waiting for a first generation")
            case "server_ready":
                return Say(f"server ready after {event.get('seconds', 0.0):.1f} s", stays=True)
            case "answer":
                return self._of_an_answer(event)
            case "request_error":
                return Say(f"{event.get('request')}: failed: {event.get('message')}", stays=True)
            case "error":
                return Say(f"failed: {event.get('message', '')}", stays=True)
        return None

    def _of_an_answer(self, event: Mapping[str, Any]) -> Say | None:
        gold = self.gold.get(str(event.get("request")))
        if gold is None:
            return None
        self._answered += 1
        self._right += last_number(str(event.get("text"))) == gold
        every = max(1, len(self.gold) // STAY)
        stays = self._answered % every == 0 or self._answered == len(self.gold)
        return Say(f"{self._answered} of {len(self.gold)} questions answered, {self._right} right", stays=stays)
