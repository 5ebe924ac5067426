"""`kernels/` compiled in the toolchain image against the runtime image, as a wheel known by what went into it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks
from rvvbench.provide.file_hash import exclusive, sha256_of, write_atomically
from rvvbench.provide.sysroot import ARCHITECTURES, CONTENT_VERSION, Image, ensure_sysroot
from rvvbench.provide.wheelfile import WheelContent, write_wheel

# Grows when the way from sources to wheel changes in this module (build.sh is a source itself).
RECIPE_VERSION = 1
DISTRIBUTION = "sgl_kernel_rvv"
TIMEOUT_S = 1800.0
LIBRARY = "_ops.so"
SOURCES = ("build.sh", "csrc/**/*.h", "csrc/**/*.cpp", "python/sgl_kernel/**/*.py")


Compiler = Literal["clang", "gcc"]
Program = Literal["tests", "model", "bench", "inductor"]
PROGRAMS: dict[Program, str] = {
    "tests": "kernel_tests",
    "model": "model_driver",
    "bench": "bench_driver",
    "inductor": "inductor_tests",
}
"""Target of build.sh -> the program that it makes."""


@dataclass(frozen=True)
class KernelWheel:
    """The wheel. `key` names what it was made of, `compiler` is the compiler's own first line of `--version`."""

    path: Path
    key: str
    sha256: str
    library_sha256: str
    build_log: Path
    compiler: str


@dataclass(frozen=True)
class Build:
    """What to compile (`source_dir`: the folder `kernels`), for which `arch` (Debian's word), with and against what."""

    arch: str
    source_dir: Path
    engine: Engine
    toolchain_image: Image
    runtime_image: Image
    state_dir: Path


def build_kernels(build: Build, progress: Callable[[str], None]) -> KernelWheel:
    """The wheel of the kernels.

    The key is SHA-256 over the sources, the build script with its flags, and the digests of both images. A wheel of
    the same key is taken as it is, after its hash was checked; equal keys give equal bytes. Raises EnvironmentLacks
    with the compiler's words where it does not compile.
    """
    key = kernel_key(build.arch, build.source_dir, build.toolchain_image.digest, build.runtime_image.digest)
    base = build.state_dir / "kernels" / build.arch
    folder = base / key[:32]
    with exclusive(base, folder.name):
        known = _known(folder)
        if known is not None:
            return known
        shutil.rmtree(folder, ignore_errors=True)
        progress(f"compiling the kernels for {build.arch}")
        ended = _compile("ops", build, folder, progress)
        progress(f"compiled in {ended.seconds:.0f} s")
        content = wheel_content(build.source_dir, build.arch, (folder / LIBRARY).read_bytes())
        path = write_wheel(content, folder)
        library_sha256 = hashlib.sha256(content.files["sgl_kernel/_ops.so"]).hexdigest()
        wheel = KernelWheel(path, key, sha256_of(path), library_sha256, folder / "build.log", _first_line(ended))
        _remember(folder, wheel)
    progress(f"{path.name}: key {key[:16]}, library {library_sha256[:16]}")
    return wheel


def library_of(build: Build, progress: Callable[[str], None]) -> Path:
    """The library that is in the wheel of `build_kernels`."""
    return build_kernels(build, progress).path.parent / LIBRARY


def build_kernel_tests(build: Build, progress: Callable[[str], None]) -> Path:
    """The static test program of the kernels for `arch`; as `build_kernel_program`."""
    return build_kernel_program("tests", build, progress)


def build_kernel_program(
    target: Program,
    build: Build,
    progress: Callable[[str], None],
    compiler: Compiler = "clang",
    into: Path | None = None,
) -> Path:
    """A static program of `kernels/` for `arch`: as `build_kernels`, but always compiled anew (10 to 50 s).

    With `into` it is a copy in that folder, which another build that comes meanwhile does not touch.
    """
    folder = build.state_dir / "kernels" / target / compiler / build.arch
    with exclusive(folder.parent, build.arch):
        progress(f"compiling {PROGRAMS[target]} for {build.arch} with {compiler}")
        _compile(target, build, folder, compiler=compiler)
        if into is None:
            return folder / PROGRAMS[target]
        copy = into / f"{build.arch}-{compiler}-{PROGRAMS[target]}"
        shutil.copy(folder / PROGRAMS[target], copy)
        return copy


def build_generated(build: Build, folder: Path, compiler: Compiler = "clang") -> None:
    """A static riscv64 program beside every source that kernels/bench/generated_graphs.py made in `folder`."""
    _compile("generated", build, folder, compiler=compiler)


def tidy_kernels(build: Build) -> None:
    """clang-tidy over the torch-free core as it is compiled for `arch`; raises EnvironmentLacks with what it found."""
    folder = build.state_dir / "kernels" / "tidy" / build.arch
    with exclusive(folder.parent, build.arch):
        _compile("tidy", build, folder)


def kernel_key(arch: str, source_dir: Path, toolchain_digest: str, runtime_digest: str) -> str:
    """64 hex digits that name everything a wheel's bytes depend on."""
    identity = {
        "recipe": RECIPE_VERSION,
        "sysroot": CONTENT_VERSION,
        "arch": arch,
        "toolchain": toolchain_digest,
        "runtime": runtime_digest,
        "sources": {
            path.relative_to(source_dir).as_posix(): sha256_of(path) for path in source_files(source_dir, SOURCES)
        },
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def source_files(source_dir: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    """The files that match, sorted."""
    return iter(sorted({path for pattern in patterns for path in source_dir.glob(pattern) if path.is_file()}))


def wheel_content(source_dir: Path, arch: str, library: bytes) -> WheelContent:
    """Python files and library of `sgl_kernel`, tagged for the architecture and for any Python 3."""
    base = source_dir / "python"
    files = {
        path.relative_to(base).as_posix(): path.read_bytes() for path in source_files(base, ("sgl_kernel/**/*.py",))
    }
    version = re.search(r'^__version__ = "(.+)"$', files["sgl_kernel/__init__.py"].decode(), re.MULTILINE)
    assert version is not None, "sgl_kernel/__init__.py states its version"
    return WheelContent(
        name=DISTRIBUTION,
        version=version[1],
        tag=f"py3-none-linux_{ARCHITECTURES[arch].machine}",
        summary="Packed BF16 linears for RVV 1.0 as torch operators",
        files={**files, "sgl_kernel/_ops.so": library},
    )


def errors_of(log: str, lines: int = 12) -> str:
    """The part of a build log that says what is wrong: from the first error on, else the end."""
    said = [line for line in log.splitlines() if line.strip() and not line.startswith("clang++")]
    first = next((index for index, line in enumerate(said) if "error:" in line), max(0, len(said) - lines))
    return "\n".join(said[first : first + lines])


def _compile(
    target: str,
    build: Build,
    folder: Path,
    progress: Callable[[str], None] | None = None,
    compiler: Compiler = "clang",
) -> ContainerExit:
    """Run build.sh for one target, with `folder` for its output."""
    if build.arch not in ARCHITECTURES:
        raise EnvironmentLacks(f"kernels cannot be built for {build.arch!r}", mend=f"one of {', '.join(ARCHITECTURES)}")
    sysroot = ensure_sysroot(
        build.runtime_image, arch=build.arch, engine=build.engine, state_dir=build.state_dir, progress=progress
    )
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    script = '$CXX --version && exec sh /kernels/build.sh "$@"'
    # A GCC for another architecture brings that architecture's C library, and looks for it in its own place.
    cross_gcc = f"{ARCHITECTURES[build.arch].machine}-linux-gnu-g++"
    cxx, root = ("clang++-22", "/sysroot") if compiler == "clang" else (cross_gcc, "/")
    ended = run_container(
        build.engine,
        ContainerSpec(
            image=build.toolchain_image.image_id,
            command=("sh", "-c", script, "build", ARCHITECTURES[build.arch].machine, root, "/out", target),
            mounts=(
                Mount(build.source_dir, "/kernels"),
                Mount(sysroot, "/sysroot"),
                Mount(folder, "/out", writable=True),
            ),
            env={"JOBS": str(os.cpu_count() or 1), "CXX": cxx, "TORCH_ROOT": "/sysroot"},
            log_path=log,
            timeout_s=TIMEOUT_S,
        ),
    )
    if ended.timed_out:
        raise EnvironmentLacks(f"compiling the kernels took more than {TIMEOUT_S:.0f} s", where=str(log))
    if ended.exit_code != 0:
        raise EnvironmentLacks(
            f"the kernels do not compile for {build.arch}:\n{errors_of(ended.output)}",
            where=str(log),
            mend="mend the sources, or build the toolchain and runtime images again",
        )
    shutil.rmtree(folder / "obj", ignore_errors=True)
    return ended


def _first_line(ended: ContainerExit) -> str:
    return ended.output.splitlines()[0].strip()


def _remember(folder: Path, wheel: KernelWheel) -> None:
    data = {**asdict(wheel), "path": wheel.path.name, "build_log": wheel.build_log.name}
    write_atomically(folder / "wheel.json", json.dumps(data, indent=1).encode())


def _known(folder: Path) -> KernelWheel | None:
    """The wheel that `folder` remembers, None where there is none or its bytes are no longer the same."""
    try:
        data = json.loads((folder / "wheel.json").read_text())
        wheel = KernelWheel(
            **{**data, "path": folder / str(data["path"]), "build_log": folder / str(data["build_log"])}
        )
        return wheel if sha256_of(wheel.path) == wheel.sha256 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
