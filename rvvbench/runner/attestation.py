"""What ran: the kernels' own counters and the plugin's routing table, of the measured pass only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .failure import PinFailed
from .spec import Spec


@dataclass(frozen=True)
class Kernels:
    """The `sgl_kernel` package, or None; `missing` says why it is not there although the variant uses it."""

    package: Any | None = None
    missing: str | None = None


def loaded_kernels(spec: Spec) -> Kernels:
    """The kernels of the variant. Raises PinFailed when the library that is loaded is not the pinned one.

    One that cannot be loaded ends nothing: the plugin has fallen back to torch, and what the run attests then says so.
    """
    if not spec.variant.uses_kernels:
        return Kernels()
    try:
        import sgl_kernel
    except (ImportError, OSError, RuntimeError) as error:
        return Kernels(missing=f"{type(error).__name__}: {error}")
    loaded = sgl_kernel.attestation()["library_sha256"]
    if loaded != spec.expect.kernels_sha256:
        raise PinFailed(f"the loaded kernel library is {loaded}, the spec pins {spec.expect.kernels_sha256}")
    return Kernels(sgl_kernel)


def reset(kernels: Kernels) -> None:
    """Start all counters at zero."""
    from sglang_rvv import routing

    routing.reset()
    if kernels.package is not None:
        kernels.package.reset_attestation()


def fields(kernels: Kernels) -> dict[str, Any]:
    """The fields of the `attestation` event."""
    from sglang_rvv import routing

    proven = {"library_sha256": None, "ops": {}} if kernels.package is None else kernels.package.attestation()
    why = {} if kernels.missing is None else {"library_reason": kernels.missing}
    return {"library_sha256": proven["library_sha256"], **why, "ops": proven["ops"], "routing": routing.snapshot()}
