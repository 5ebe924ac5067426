"""A meta-path finder that answers for three modules, and only where SGLang's own modules import them.

* `triton`: SGLang 0.5.15 imports it unconditionally (`sglang/srt/utils/common.py`) before any plugin is asked;
  riscv64 has none.
* `openai_harmony`: Rust, not packaged for riscv64; the server imports it, only gpt-oss models use it.
* `sgl_kernel`: kept out of SGLang's sight. `sglang.srt.utils.common` takes the mere presence of
  `convert_weight_packed` in `torch.ops.sgl_kernel` for Intel AMX kernels and would call them with its own signatures.
  Our own modules import it as usual.

Installed by `sglang_rvv.pth` when Python starts, so it must cost nothing and import next to nothing. A module that is
really installed is never shadowed, and a program that never imports SGLang sees no difference.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

TYPE_CHECKING = False  # not from typing, whose import costs every start of Python some milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

STAND_INS = ("triton", "openai_harmony")
HIDDEN = "sgl_kernel"
# The one module of torch that imports triton without asking `has_triton_package()` first and is reached on a CPU.
TORCH_PROBE = "torch._inductor.runtime.triton_compat"


def install() -> None:
    """Put the finder first on `sys.meta_path`, once."""
    if not any(isinstance(finder, SglangImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, SglangImports())


class SglangImports:
    """See the module's docstring."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root = fullname.partition(".")[0]
        if root in STAND_INS:
            return self._stand_in(fullname, root)
        if root == HIDDEN and is_sglang(importer()):
            raise ModuleNotFoundError(f"{fullname} is kept from SGLang's own modules by sglang_rvv", name=fullname)
        if fullname == TORCH_PROBE:
            return self._without_stand_in(fullname, path)
        return None

    def _stand_in(self, fullname: str, root: str) -> ModuleSpec | None:
        if fullname == root:
            if not is_sglang(importer()) or PathFinder.find_spec(root) is not None:
                return None
        elif not getattr(sys.modules.get(root), "__sglang_rvv_stand_in__", False):
            return None
        if fullname == "triton":
            settle_torch()
        loader: Any = StandInLoader()  # importlib.abc.Loader would cost its import at every start
        return ModuleSpec(fullname, loader, origin="sglang_rvv", is_package=True)

    def _without_stand_in(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        if not getattr(sys.modules.get("triton"), "__sglang_rvv_stand_in__", False):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = WithoutTriton(spec.loader)  # type: ignore[assignment]
        return spec


class StandInLoader:
    """Makes a stand-in module (`sglang_rvv.stand_ins`); the import system registers and binds it as any other."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from sglang_rvv.stand_ins import build

        return build(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute: the module was built whole."""


class WithoutTriton:
    """Executes one module of torch as if `triton` could not be imported, which is the truth."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        hidden = {name: sys.modules[name] for name in list(sys.modules) if name.partition(".")[0] == "triton"}
        for name in hidden:
            del sys.modules[name]
        sys.modules["triton"] = None  # type: ignore[assignment]  # the import system's own word for "absent"
        try:
            self._loader.exec_module(module)
        finally:
            del sys.modules["triton"]
            sys.modules.update(hidden)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def settle_torch() -> None:
    """Let torch find out that there is no triton, and remember it, before a stand-in takes the name.

    `torch.utils._triton.has_triton_package` caches its answer; asked after the stand-in it would say yes, and
    torch.compile for the CPU would die in Triton's code.
    """
    from torch.utils import _triton

    if _triton.has_triton_package():
        raise ImportError("torch found a triton that Python's path does not have; sglang_rvv cannot stand in for it")


def importer() -> str:
    """The name of the module whose import statement is being executed; "" where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if name != __name__ and name.partition(".")[0] != "importlib":
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def is_sglang(module: str) -> bool:
    """Whether a module is SGLang's own."""
    return module == "sglang" or module.startswith("sglang.")
