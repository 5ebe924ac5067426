"""Generated code carries the kernels' own sources, whole, and a wheel carries what they need."""

import re

import pytest
from rvv_inductor import kernel_source
from rvv_inductor.errors import InductorError
from rvv_inductor.kernel_source import PACKED, ROW_MAJOR, files_of, path_of, text_of

from rvvbench import project
from rvvbench.provide.plugin import plugin_content


@pytest.mark.parametrize("kernels", [PACKED, ROW_MAJOR])
def test_the_text_needs_no_file_and_leaves_no_line_out(kernels):
    text = text_of(kernels)
    assert not re.search(r'#\s*include\s+"', text)
    assert "#pragma once" not in text
    assert not re.search(r"'''|KERNEL_NAME|DESCRIPTIVE_NAME|<DEF_KERNEL>", text), "what Inductor replaces, or quotes by"
    lines = set(text.splitlines())
    for name in files_of(kernels):
        for line in path_of(name).read_text(encoding="ascii").splitlines():
            assert line in lines or line.startswith(("#include", "#pragma once"))


@pytest.mark.parametrize("kernels", [PACKED, ROW_MAJOR])
def test_no_include_hangs_on_a_condition(kernels):
    """An #include <...> is moved to the front, and a quoted one is put in where it comes first."""
    for name in files_of(kernels):
        depth = 0
        for line in path_of(name).read_text(encoding="ascii").splitlines():
            depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
            assert not (depth and re.match(r"\s*#\s*include", line)), f"{name}: {line}"


def test_the_wheel_has_exactly_the_files_of_the_core_that_are_used():
    content = plugin_content(project.root() / "kernels" / "python" / "rvv_inductor")
    shipped = {name for name in content.files if name.startswith("rvv_inductor/include/core/")}
    assert shipped == {
        f"rvv_inductor/include/{name}" for name in files_of(PACKED, ROW_MAJOR) if name.startswith("core/")
    }
    for name in shipped:
        source = project.root() / "kernels" / "csrc" / name.removeprefix("rvv_inductor/include/")
        assert content.files[name] == source.read_bytes()


def test_a_file_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_source, "CHECKOUT", tmp_path)
    with pytest.raises(InductorError, match=r"core/bf16\.h is in neither"):
        path_of("core/bf16.h")
