"""Registering an operator without its data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def register_fake(name: str, shapes: Callable[..., Any]) -> None:
    """Register `shapes` for `sgl_kernel::name`.

    torch comes here as soon as one tensor has no data, so a tensor that has some beside it would go unread and what
    is returned be uninitialised: ValueError then.
    """

    @functools.wraps(shapes)
    def fake(*args: Any, **kwargs: Any) -> Any:
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        devices = sorted({str(tensor.device) for tensor in tensors})
        if len(devices) > 1:
            raise ValueError(f"{name}: tensors must be on one device, but are on {' and '.join(devices)}")
        return shapes(*args, **kwargs)

    torch.library.register_fake(f"sgl_kernel::{name}", fake)
