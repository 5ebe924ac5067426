"""A model in SGLang's own one-batch benchmark: load it, generate greedily, end it; one after another in a process."""

from __future__ import annotations

import gc
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from sglang.benchmark import one_batch
from sglang.srt.distributed.parallel_state import destroy_distributed_environment, destroy_model_parallel
from sglang.srt.server_args import PortArgs, ServerArgs

Prompt = list[int]


def prompt(length: int, seed: int = 5) -> Prompt:
    """Token ids that mean nothing, of the vocabulary of the small models."""
    drawn = random.Random(seed)
    return [drawn.randrange(300, 10_000) for _ in range(length)]


def arguments(model: str, **given: Any) -> ServerArgs:
    """Server arguments of one batch; `given` wins."""
    defaults: dict[str, Any] = {
        "device": "cpu",
        "dtype": "bfloat16",
        "max_total_tokens": 4096,
        "max_running_requests": 4,
        "disable_radix_cache": True,
        "disable_overlap_schedule": True,
        "random_seed": 0,
        "mem_fraction_static": 0.8,
    }
    return ServerArgs(model_path=model, **(defaults | given))


@dataclass
class Generated:
    """By step, of each sequence: greedy token ids, and logits [sequences, vocabulary]."""

    ids: list[list[int]] = field(default_factory=list)
    logits: list[torch.Tensor] = field(default_factory=list)

    def of(self, sequence: int) -> list[int]:
        """The tokens of one sequence."""
        return [step[sequence] for step in self.ids]


class OneBatch:
    """A loaded model. `end` it before the next one is loaded."""

    def __init__(self, model: str, **given: Any) -> None:
        self.args = arguments(model, **given)
        one_batch._set_envs_and_config(self.args)
        one_batch.initialize_moe_config(self.args)
        one_batch.initialize_fp8_gemm_config(self.args)
        one_batch.initialize_fp4_gemm_config(self.args)
        self.bench, _ = one_batch.load_model(self.args, PortArgs.init_new(self.args), 0, 0)

    @property
    def runner(self) -> Any:
        """SGLang's ModelRunner."""
        return self.bench.torch_runner

    @property
    def model(self) -> Any:
        return self.runner.model

    def generate(self, prompts: Sequence[Prompt], steps: int) -> Generated:
        """`steps` tokens behind each prompt, all in one batch."""
        self.bench.clear()
        requests = one_batch.prepare_synthetic_inputs_for_latency_test(
            len(prompts), 0, [array("q", ids) for ids in prompts]
        )
        result = Generated()
        ids, logits, batch = self.bench.extend(requests)
        result.ids.append(ids.tolist())
        result.logits.append(logits.float())
        for _ in range(steps - 1):
            ids, logits = self.bench.decode(ids, batch)
            result.ids.append(ids.tolist())
            result.logits.append(logits.float())
        return result

    def end(self) -> None:
        """Let go of the model, so that another can be loaded."""
        del self.bench
        destroy_model_parallel()
        destroy_distributed_environment()
        gc.collect()
