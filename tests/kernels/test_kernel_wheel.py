"""What a kernel wheel is known by, and when it is built again; the compiler is a double here."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerExit, ContainerSpec
from rvvbench.errors import EnvironmentLacks
from rvvbench.provide import kernels
from rvvbench.provide.kernels import KernelWheel, build_kernels, errors_of, kernel_key

TOOLCHAIN, RUNTIME = "sha256:" + "1" * 64, "sha256:" + "2" * 64


@dataclass(frozen=True)
class FakeImage:
    image_id: str
    digest: str


@dataclass
class Compiler:
    """Stands for the toolchain container: writes a library, counts its calls."""

    calls: int = 0
    exit_code: int = 0
    output: str = "Debian clang version 22.1.8\nclang++-22 ...\n"

    def __call__(self, engine: Any, spec: ContainerSpec) -> ContainerExit:
        self.calls += 1
        out = next(mount.source for mount in spec.mounts if mount.target == "/out")
        assert [mount.target for mount in spec.mounts if mount.writable] == ["/out"]
        assert spec.network == "none"
        (out / "_ops.so").write_bytes(b"library")
        return ContainerExit(self.exit_code, 1.0, False, False, None, self.output)


Build = Callable[..., KernelWheel]


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    double = Compiler()
    monkeypatch.setattr(kernels, "run_container", double)
    monkeypatch.setattr(kernels, "ensure_sysroot", lambda image, **_: Path("/"))
    return double


@pytest.fixture
def source(tmp_path: Path) -> Path:
    copy = tmp_path / "source"
    shutil.copytree(project.root() / "kernels", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def build(compiler: Compiler, source: Path, tmp_path: Path) -> Build:
    def call(arch: str = "riscv64", runtime: str = RUNTIME) -> KernelWheel:
        images = FakeImage("toolchain", TOOLCHAIN), FakeImage("runtime", runtime)
        engine: Any = None
        made = kernels.Build(arch, source, engine, *images, tmp_path / "state")
        return build_kernels(made, lambda line: None)

    return call


def test_a_second_build_of_the_same_sources_compiles_nothing(build: Build, compiler: Compiler) -> None:
    first = build()
    assert build() == first
    assert compiler.calls == 1


def test_a_wheel_whose_bytes_changed_is_built_again(build: Build, compiler: Compiler) -> None:
    first = build()
    first.path.write_bytes(first.path.read_bytes() + b"x")
    assert build() == first
    assert compiler.calls == 2


def test_equal_keys_give_equal_bytes(build: Build) -> None:
    first = build()
    shutil.rmtree(first.path.parent)
    assert build().sha256 == first.sha256


@pytest.mark.parametrize("file", ["csrc/core/packed_layout.h", "csrc/torch/parallel.cpp", "build.sh"])
def test_every_source_and_the_build_script_are_in_the_key(build: Build, source: Path, file: str) -> None:
    before = build().key
    with (source / file).open("a") as text:
        text.write("\n")
    assert build().key != before


def test_the_python_files_are_in_the_key_and_tests_are_not(source: Path) -> None:
    before = kernel_key("riscv64", source, TOOLCHAIN, RUNTIME)
    (source / "tests/more.cpp").write_text("// more\n")
    assert kernel_key("riscv64", source, TOOLCHAIN, RUNTIME) == before
    (source / "python/sgl_kernel/more.py").write_text("more = 1\n")
    assert kernel_key("riscv64", source, TOOLCHAIN, RUNTIME) != before


def test_both_images_and_the_architecture_are_in_the_key(source: Path) -> None:
    keys = {
        kernel_key("riscv64", source, TOOLCHAIN, RUNTIME),
        kernel_key("amd64", source, TOOLCHAIN, RUNTIME),
        kernel_key("riscv64", source, RUNTIME, RUNTIME),
        kernel_key("riscv64", source, TOOLCHAIN, TOOLCHAIN),
    }
    assert len(keys) == 4


def test_the_wheel_holds_package_and_library_and_is_tagged_for_its_machine(build: Build) -> None:
    wheel = build()
    assert wheel.path.name == "sgl_kernel_rvv-0.1.0-py3-none-linux_riscv64.whl"
    assert build("amd64").path.name.endswith("linux_x86_64.whl")
    with zipfile.ZipFile(wheel.path) as archive:
        names = archive.namelist()
        assert archive.read("sgl_kernel/_ops.so") == b"library"
    assert {"sgl_kernel/__init__.py", "sgl_kernel/library.py", "sgl_kernel/fakes.py"} <= set(names)
    assert wheel.compiler == "Debian clang version 22.1.8"


def test_what_does_not_compile_says_the_compilers_words_and_leaves_no_wheel(build: Build, compiler: Compiler) -> None:
    compiler.exit_code, compiler.output = 1, "Debian clang\nclang++-22 -c x.cpp\nx.cpp:3: error: no such thing\n"
    with pytest.raises(EnvironmentLacks, match=r"x\.cpp:3: error: no such thing") as raised:
        build()
    assert str(raised.value.where).endswith("build.log")
    compiler.exit_code = 0
    build()
    assert compiler.calls == 2


def test_errors_begin_at_the_first_and_without_one_are_the_end() -> None:
    assert errors_of("a\nclang++-22 -c\nb.cpp:1: error: bad\nnote: why\n") == "b.cpp:1: error: bad\nnote: why"
    assert errors_of("\n".join(str(i) for i in range(100)), lines=2) == "98\n99"


def test_a_wheel_remembers_all_of_itself(build: Build) -> None:
    wheel = build()
    assert kernels._known(wheel.path.parent) == wheel
    kernels._remember(wheel.path.parent, replace(wheel, sha256="0" * 64))
    assert kernels._known(wheel.path.parent) is None
