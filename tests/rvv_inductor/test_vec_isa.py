"""Registration against a double of torch's module: what is patched, and what is refused."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest


class StockVecISA:
    _bit_width: int
    _macro: list[str]
    _arch_flags: str
    _dtype_nelements: dict[Any, int]

    def __hash__(self) -> int:
        return hash(str(self))


def torch_double() -> types.ModuleType:
    """torch._inductor.cpu_vec_isa as 2.14.1 has it on riscv64, as far as it matters."""
    module = types.ModuleType("torch._inductor.cpu_vec_isa")
    code = "def valid_vec_isa_list(): return []\ndef pick_vec_isa(): return next(iter(valid_vec_isa_list()), None)"
    exec(code, module.__dict__)
    module.VecISA = StockVecISA  # type: ignore[attr-defined]
    return module


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = torch_double()
    torch = types.ModuleType("torch")
    torch.__version__ = "2.14.1"  # type: ignore[attr-defined]
    torch.float, torch.bfloat16, torch.float16 = "f32", "bf16", "f16"  # type: ignore[attr-defined]
    inductor, config = types.ModuleType("torch._inductor"), types.ModuleType("torch._inductor.config")
    config.cpp_cache_precompile_headers = True  # type: ignore[attr-defined]
    torch._inductor, inductor.config, inductor.cpu_vec_isa = inductor, config, module  # type: ignore[attr-defined]
    for one in (torch, inductor, config, module):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    monkeypatch.delitem(sys.modules, "rvv_inductor.vec_isa", raising=False)
    return module


@pytest.fixture
def vec_isa(stock: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    from rvv_inductor import hwprobe

    monkeypatch.setattr(hwprobe, "has_vector", lambda: True)
    module = importlib.import_module("rvv_inductor.vec_isa")
    yield module
    sys.modules.pop("rvv_inductor.vec_isa", None)


def test_inductor_picks_ours_and_a_second_call_changes_nothing(stock: Any, vec_isa: Any) -> None:
    vec_isa.register()
    picked = stock.pick_vec_isa()
    assert str(picked) == "rvv" and picked
    vec_isa.register()
    assert stock.pick_vec_isa() is picked
    assert sys.modules["torch._inductor.config"].cpp_cache_precompile_headers is False


def test_flags_are_for_every_vlen_and_name_headers_that_exist(vec_isa: Any) -> None:
    isa = vec_isa.VecRVV()
    flags = isa._arch_flags.split()
    assert "zvl" not in isa._arch_flags and flags[0] == "-march=rv64gcv_zicbop"
    assert (vec_isa.INCLUDE / flags[flags.index("-include") + 1]).is_file()
    assert f"-I{vec_isa.INCLUDE}" in flags
    assert isa._dtype_nelements == {"f32": 8, "bf16": 16, "f16": 16}


def test_the_key_of_a_library_has_the_digest_of_the_headers(vec_isa: Any) -> None:
    from rvv_inductor.cache_key import sources_digest

    assert f"RVV_INDUCTOR_SOURCES={sources_digest()}" in vec_isa.VecRVV()._macro


def test_without_v_the_stock_path_stays(stock: Any, vec_isa: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vec_isa.hwprobe, "has_vector", lambda: False)
    before = stock.valid_vec_isa_list
    vec_isa.register()
    assert stock.valid_vec_isa_list is before
    assert not vec_isa.VecRVV()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pick_vec_isa": lambda: None}, "does not ask valid_vec_isa_list"),
        ({"valid_vec_isa_list": None}, "does not ask valid_vec_isa_list"),
        ({"VecISA": type("VecISA", (), {"__annotations__": {"_macro": list}})}, "no _bit_width, _arch_flags"),
        ({"valid_vec_isa_list": lambda: ["rvv256"]}, "a vector ISA of its own for this machine: rvv256"),
    ],
)
def test_another_torch_is_refused_naming_what_is_different(
    stock: Any, vec_isa: Any, change: dict[str, Any], said: str
) -> None:
    from rvv_inductor.errors import InductorError

    for name, value in change.items():
        setattr(stock, name, value)
    before = stock.valid_vec_isa_list
    with pytest.raises(InductorError, match=said) as refused:
        vec_isa.register()
    assert "torch 2.14.1" in str(refused.value) and "torch._inductor.cpu_vec_isa" in str(refused.value)
    assert stock.valid_vec_isa_list is before


@pytest.fixture
def install(vec_isa: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `install`, before anything was installed, with doubles of what else it imports."""
    compiler, config = types.ModuleType("torch.compiler"), types.ModuleType("torch.compiler.config")
    config.cache_key_tag = "theirs"  # type: ignore[attr-defined]
    sys.modules["torch"].compiler, compiler.config = compiler, config  # type: ignore[attr-defined]
    ours = types.ModuleType("rvv_inductor.lowering")
    ours.calls = []  # type: ignore[attr-defined]
    ours.register = lambda: ours.calls.append("lowerings")  # type: ignore[attr-defined]
    for one in (compiler, config, types.ModuleType("torch._inductor.lowering"), ours):
        monkeypatch.setitem(sys.modules, one.__name__, one)
    monkeypatch.delitem(sys.modules, "rvv_inductor.install", raising=False)
    return importlib.import_module("rvv_inductor.install")


def test_installing_twice_is_installing_once(stock: Any, install: Any) -> None:
    first = install.install()
    assert install.install() is first
    assert sys.modules["rvv_inductor.lowering"].calls == ["lowerings"]
    assert str(stock.pick_vec_isa()) == "rvv"
    assert first.isa == "rv64gcv_zicbop"
    assert first.cache_key_tag == sys.modules["torch.compiler.config"].cache_key_tag
    assert first.cache_key_tag.startswith("theirs+rvv_inductor-")


def test_without_v_the_cache_key_says_so(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rvv_inductor import hwprobe

    monkeypatch.setattr(hwprobe, "has_vector", lambda: False)
    installed = install.install()
    assert installed.isa == "none" and "-none-" in installed.cache_key_tag
