"""The spec of a task (`rvvbench/spec/1`, kind "eval"): one fresh server, and prompts in words that it answers. The same
as a serving run of one load, whose requests are texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import spec as specs
from .exchange import TextRequest
from .failure import SpecError
from .serving_spec import READY, Load, ServingSpec, checked, of_the_server


def load(path: str) -> ServingSpec:
    """Read a spec file. Raises SpecError when it cannot be read or is not what docs/architecture.md says."""
    return specs.read(path, parse)


def parse(document: Mapping[str, Any]) -> ServingSpec:
    """A ServingSpec from its JSON document. Raises SpecError (meaning), KeyError, TypeError or ValueError (form)."""
    common, asked = specs.common(document), document["load"]
    stop = tuple(str(text) for text in document["stop"])

    def request(id_: str, prompt: str) -> TextRequest:
        return TextRequest(id_, prompt, common["output_len"], stop)

    requests = tuple(request(str(one["id"]), str(one["prompt"])) for one in asked["requests"])
    spec = ServingSpec(
        **common,
        **of_the_server(document),
        loads=(Load(str(asked["name"]), True, int(asked["concurrency"]), None, requests),),
        cross_check=None,
        ready=request(READY, str(document["ready_prompt"])),
    )
    if spec.server_args.get("skip_tokenizer_init"):
        raise SpecError("prompts in words need a server with a tokenizer: skip_tokenizer_init is set")
    return checked(spec, "eval")
