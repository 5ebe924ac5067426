"""The runner is mounted alone: it may import the standard library, what the image has, and itself, relatively."""

import ast
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "rvvbench" / "runner"
IMAGE = {"torch", "sglang", "sgl_kernel", "sglang_rvv"}
LATE = {"torch", "sglang", "sgl_kernel", "sglang_rvv"}
MODULES = sorted(RUNNER.glob("*.py"))


def imports(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_imports_nothing_that_the_container_lacks(path):
    for name in imports(ast.walk(ast.parse(path.read_text()))):
        root = name.partition(".")[0]
        assert name.startswith(".") or root in sys.stdlib_module_names | IMAGE, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_heavy_packages_are_imported_only_inside_functions(path):
    roots = {name.partition(".")[0] for name in imports(ast.parse(path.read_text()).body)}
    assert not roots & LATE


def test_the_package_works_under_the_name_that_it_has_in_the_container():
    for path in MODULES:
        assert "rvvbench.runner" not in path.read_text().replace('"""', "")
