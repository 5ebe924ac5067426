"""The finder in fresh interpreters: what is imported, and by whom, is global to a process."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "kernels" / "python" / "sglang_rvv" / "src"

PRELUDE = """
import sys, types
import sglang_rvv.importing as importing
importing.settle_torch = lambda: None  # tested with torch below
importing.install()

def as_module(name, code):
    scope = {"__name__": name}
    exec(code, scope)
    return scope

"""


def run(code, *path):
    """Execute code in a fresh interpreter with the plugin's sources and `path` importable; its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(map(str, (SOURCE, *path))), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["triton", "openai_harmony"])
def test_sglang_gets_a_stand_in(name):
    said = run(f'print(as_module("sglang.srt.utils.common", "import {name} as m")["m"].__doc__)')
    assert said.startswith("A stand-in")


def test_a_program_that_is_not_sglang_gets_none():
    code = """
    try:
        as_module("torch.utils._triton", "import triton")
    except ModuleNotFoundError as error:
        print(error.name)
    """
    assert run(code) == "triton"


def test_a_name_that_only_begins_like_sglang_is_not_sglang():
    code = """
    try:
        as_module("sglangish", "import triton")
    except ModuleNotFoundError as error:
        print(error.name)
    """
    assert run(code) == "triton"


def test_submodules_of_a_stand_in_import_like_any_other():
    code = """
    as_module("sglang.a", "import triton.language as tl; from triton.language.extra import libdevice; assert tl.extra.libdevice is libdevice")
    import triton.backends.nvidia.driver
    print(triton.backends.nvidia.driver.__name__)
    """  # noqa: E501
    assert run(code) == "triton.backends.nvidia.driver"


def test_submodules_need_the_stand_in_first():
    code = """
    try:
        as_module("elsewhere", "import triton.language")
    except ModuleNotFoundError as error:
        print(error.name)
    """
    assert run(code) == "triton"


def test_an_installed_triton_is_never_shadowed(tmp_path):
    (tmp_path / "triton.py").write_text("real = True")
    assert run('print(as_module("sglang.x", "import triton")["triton"].real)', tmp_path) == "True"


def test_sglang_does_not_see_sgl_kernel_and_everybody_else_does(tmp_path):
    (tmp_path / "sgl_kernel.py").write_text("real = True")
    code = """
    try:
        as_module("sglang.srt.utils.common", "import sgl_kernel")
    except ModuleNotFoundError as error:
        print(error)
    print(as_module("sglang_rvv.kernels", "import sgl_kernel")["sgl_kernel"].real)
    """
    out = run(code, tmp_path).splitlines()
    assert out == ["sgl_kernel is kept from SGLang's own modules by sglang_rvv", "True"]


def test_installing_twice_leaves_one_finder():
    assert run("importing.install(); print(sum(isinstance(f, importing.SglangImports) for f in sys.meta_path))") == "1"


def test_starting_python_with_the_plugin_imports_next_to_nothing():
    code = """
    before = {"sglang_rvv", "sglang_rvv.importing"}
    heavy = {"torch", "sglang", "inspect", "dataclasses", "re", "typing"} & set(sys.modules)
    print(sorted(heavy), sorted(set(m for m in sys.modules if m.startswith("sglang")) - before))
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; import sglang_rvv.importing\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    assert done.stdout.strip() == "[] []", done.stderr


def test_torch_compiles_for_the_cpu_beside_the_stand_in():
    pytest.importorskip("torch")
    code = """
    import importlib
    import torch
    sys.modules.pop("sglang_rvv.importing"); sys.meta_path.pop(0)
    import sglang_rvv.importing as importing
    importing.install()
    as_module("sglang.srt.utils.common", "import triton")
    from torch.utils._triton import has_triton_package
    f = torch.compile(lambda x: (x * 2).relu().sum(dim=-1))
    print(has_triton_package(), float(f(torch.ones(2, 3))[0]), sys.modules["triton"].__doc__[:10])
    """
    assert run(code) == "False 6.0 A stand-in"
