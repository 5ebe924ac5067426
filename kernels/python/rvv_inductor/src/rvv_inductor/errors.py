"""What goes wrong between this package, torch and the kernels."""

from __future__ import annotations


class InductorError(RuntimeError):
    """Torch, or what was asked of this package, does not fit it. `mend` says what to do."""

    def __init__(self, cause: str, *, mend: str | None = None) -> None:
        super().__init__(f"rvv_inductor: {cause}" + (f". Mend: {mend}" if mend else ""))
        self.cause = cause
        self.mend = mend
