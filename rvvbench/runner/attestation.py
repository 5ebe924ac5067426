"""What ran: the kernels' own counters and the plugin's routing table, of the measured pass only."""

from __future__ import annotations

from typing import Any

from .failure import PinFailed
from .spec import Spec


def loaded_kernels(spec: Spec) -> Any | None:
    """The `sgl_kernel` package where the variant uses it, else None. Raises PinFailed when the library that is loaded
    is not the pinned one.
    """
    if spec.variant.linear != "packed":
        return None
    import sgl_kernel

    loaded = sgl_kernel.attestation()["library_sha256"]
    if loaded != spec.expect.kernels_sha256:
        raise PinFailed(f"the loaded kernel library is {loaded}, the spec pins {spec.expect.kernels_sha256}")
    return sgl_kernel


def reset(kernels: Any | None) -> None:
    """Start all counters at zero."""
    from sglang_rvv import routing

    routing.reset()
    if kernels is not None:
        kernels.reset_attestation()


def fields(kernels: Any | None) -> dict[str, Any]:
    """The fields of the `attestation` event."""
    from sglang_rvv import routing

    proven = {"library_sha256": None, "ops": {}} if kernels is None else kernels.attestation()
    return {"library_sha256": proven["library_sha256"], "ops": proven["ops"], "routing": routing.snapshot()}
