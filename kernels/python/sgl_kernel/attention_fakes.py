"""The attention operators without their data: they write into their arguments and return nothing."""

from __future__ import annotations

import torch

from sgl_kernel.fake import register_fake


def register() -> None:
    """Register the fakes; once for each process."""
    for name in (
        "decode_attention_cpu",
        "extend_attention_cpu",
        "decode_attention_int8_cpu",
        "extend_attention_int8_cpu",
    ):
        register_fake(name, writes_only)


def writes_only(*args: torch.Tensor | int | float) -> None:
    """What is written is in the schema."""
