"""SGLang's own one-batch path (`sglang.benchmark.one_batch` of 0.5.15), driven pass by pass: load_model, extend,
decode.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .environment import PLATFORM_CLASS
from .failure import RunnerError, SpecError
from .spec import Spec
from .tokens import Pass

# Unless the variant says otherwise. SGLang sizes its pools from free memory, which would make peak memory a property
# of the machine: on the CPU it zeroes, and so touches, every page of them.
POOL_TOKENS = 4096


def server_arguments(spec: Spec) -> dict[str, Any]:
    """The fields of SGLang's ServerArgs for this spec; the variant's own come last."""
    variant = spec.variant
    needed = spec.batch_size * (max(len(prompt) for prompt in spec.input_ids) + spec.output_len)
    return {
        "model_path": spec.model_path,
        "device": "cpu",
        "dtype": spec.dtype,
        "tp_size": spec.tensor_parallel,
        "attention_backend": variant.attention_backend,
        **({"kv_cache_dtype": variant.kv_cache_dtype} if variant.kv_cache_dtype != "auto" else {}),
        **({"quantization": "w8a8_int8"} if variant.linear == "w8a8" else {}),
        **({} if variant.memory_budget_mib is None else {"cpu_rvv_memory_budget_mib": variant.memory_budget_mib}),
        **variant.compile_args,
        "random_seed": 0,
        "max_total_tokens": max(POOL_TOKENS, 2 * needed),
        "max_running_requests": spec.batch_size,
        "disable_radix_cache": True,
        "disable_overlap_schedule": True,
        **variant.server_args,
    }


@dataclass
class Batch:
    """A loaded model behind SGLang's benchmark runner."""

    runner: Any

    @property
    def model(self) -> Any:
        """The torch module."""
        return self.runner.torch_runner.model

    def weight_bytes(self) -> int:
        """Bytes of the parameters, shared ones once; packed copies are buffers and not counted."""
        return sum(weight.numel() * weight.element_size() for weight in self.model.parameters())

    def run(self, prompts: Sequence[Sequence[int]], output_len: int, keep: Callable[[Pass], None]) -> None:
        """One prefill and output_len - 1 decode steps from empty pools. Hands each pass to `keep` as it ends, between
        the times that are measured. The time of a pass includes sampling and bringing the token ids to Python.
        """
        from sglang.benchmark import one_batch

        self.runner.clear()
        requests = one_batch.prepare_synthetic_inputs_for_latency_test(
            len(prompts), len(prompts[0]), [array("q", prompt) for prompt in prompts]
        )
        self.runner.synchronize()
        start_ns = time.monotonic_ns()
        next_ids, logits, batch = self.runner.extend(requests)
        self.runner.synchronize()
        token_ids = next_ids.tolist()
        keep(Pass(start_ns, time.monotonic_ns(), token_ids, logits))
        for _ in range(output_len - 1):
            start_ns = time.monotonic_ns()
            next_ids, logits = self.runner.decode(next_ids, batch)
            self.runner.synchronize()
            token_ids = next_ids.tolist()
            keep(Pass(start_ns, time.monotonic_ns(), token_ids, logits))
        self.runner.cleanup(batch)


def platform_class() -> str:
    """The class of SGLang's active platform. Raises RunnerError when it is not ours.

    Imports all of SGLang that a run needs, so that the time of loading a model is not that of importing.
    """
    import sglang.benchmark.one_batch  # noqa: F401
    from sglang.srt.platforms import current_platform

    cls = type(current_platform)
    name = f"{cls.__module__}.{cls.__qualname__}"
    if name != PLATFORM_CLASS:
        raise RunnerError(f"SGLang's platform is {name}, not that of sglang_rvv: the wheel is not on a site path")
    return name


def load(spec: Spec) -> Batch:
    """Load the model as SGLang's benchmark does."""
    import dataclasses
    import logging

    from sglang.benchmark import one_batch
    from sglang.srt.server_args import PortArgs, ServerArgs

    arguments = server_arguments(spec)
    unknown = sorted(set(arguments) - {field.name for field in dataclasses.fields(ServerArgs)})
    if unknown:
        raise SpecError(f"variant {spec.variant.name}: SGLang's ServerArgs has no {', '.join(unknown)}")
    server_args = ServerArgs(**arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    one_batch._set_envs_and_config(server_args)
    one_batch.initialize_moe_config(server_args)
    one_batch.initialize_fp8_gemm_config(server_args)
    one_batch.initialize_fp4_gemm_config(server_args)
    runner, _tokenizer = one_batch.load_model(server_args, PortArgs.init_new(server_args), 0, 0)
    batch = Batch(runner)
    limit = runner.max_batch_size(len(spec.input_ids[0]), spec.output_len)
    if limit < spec.batch_size:
        raise RunnerError(f"the KV pool holds {limit} sequences of this shape, the spec asks for {spec.batch_size}")
    return batch
