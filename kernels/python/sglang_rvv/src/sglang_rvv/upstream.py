"""What goes wrong between us and SGLang, said so that a reader knows where to look."""

from __future__ import annotations

from sglang_rvv import SGLANG_CHECKED


class IntegrationError(RuntimeError):
    """SGLang, or what was asked of it, does not fit this package. Names the upstream function where there is one."""

    def __init__(self, cause: str, *, upstream: str | None = None, mend: str | None = None) -> None:
        where = (
            f" [{upstream}, checked against SGLang {SGLANG_CHECKED}; installed: {installed_sglang()}]"
            if upstream
            else ""
        )
        super().__init__(f"sglang_rvv: {cause}{where}" + (f". Mend: {mend}" if mend else ""))
        self.cause = cause
        self.upstream = upstream
        self.mend = mend


def installed_sglang() -> str:
    """The version of the SGLang distribution that is installed, or "not installed"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sglang")
    except PackageNotFoundError:
        return "not installed"
