"""Where the projections are in the models that are known. An adapter names what a model of SGLang 0.5.15 has, and what
is not there is an error: a projection that is silently left out would be measured as if it were compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sglang_rvv.settings import PROJECTIONS
from sglang_rvv.upstream import IntegrationError


@dataclass(frozen=True)
class Adapter:
    """A decoder of `layers` (the path of a ModuleList), each of which has the modules `inner` (paths), and a `head`."""

    model: str
    layers: str = "model.layers"
    inner: tuple[str, ...] = ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj")
    head: str = "lm_head"

    def linears(self, model: Any) -> Iterator[tuple[str, str, Any]]:
        """(projection, full name, module) of all projections: layer by layer, the head last.

        Raises IntegrationError for one that is not there.
        """
        for index, layer in enumerate(found(model, self.layers, self.model)):
            for path in self.inner:
                name = f"{self.layers}.{index}.{path}"
                yield path.rpartition(".")[2], name, found(layer, path, self.model, name)
        yield self.head, self.head, found(model, self.head, self.model)


# The three differ in what their projections add (qkv_proj of Qwen2 has a bias) and in what lies between them, which is
# the gate's affair and SGLang's.
ADAPTERS = {name: Adapter(name) for name in ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")}


def adapter_of(model: Any) -> Adapter:
    """The adapter of a model, by its class. Raises IntegrationError for one that is not known."""
    name = type(model).__name__
    if name not in ADAPTERS:
        raise IntegrationError(
            f"regional compilation does not know the model {name}, only {', '.join(ADAPTERS)}",
            mend="--cpu-compile-mode off, without --enable-cpu-rvv-inductor",
        )
    return ADAPTERS[name]


def found(module: Any, path: str, model: str, name: str | None = None) -> Any:
    """What is at `path` below `module`. Raises IntegrationError."""
    for part in path.split("."):
        module = getattr(module, part, None)
        if module is None:
            raise IntegrationError(f"{model} has no {name or path}", upstream=f"sglang.srt.models ({model})")
    return module


assert {path.rpartition(".")[2] for path in Adapter("").inner} | {"lm_head"} == set(PROJECTIONS)
