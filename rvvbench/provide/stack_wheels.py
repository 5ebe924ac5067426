"""A stack's own PyTorch and SGLang: built from git inside the runtime image, as wheels known by what went into them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, RvvbenchError
from rvvbench.progress import Progress
from rvvbench.project import writing
from rvvbench.provide.build_cost import cost_of
from rvvbench.provide.build_settings import jobs, settings
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive, sha256_of, write_atomically
from rvvbench.provide.git import clone_at, commit_time_s, verify_tree
from rvvbench.provide.sysroot import ARCHITECTURES, Image
from rvvbench.provide.wheel import WheelName, normal_name, unpack_wheel

# Grows when the way from a commit to a wheel changes in this module.
RECIPE_VERSION = 1
BACKEND = Path(__file__).with_name("wheel_backend.py")
DISTRIBUTIONS = {"pytorch": "torch", "sglang": "sglang"}
"""A stack's word for a part -> the Python distribution that it brings."""

# PyTorch is at the top of its repository, SGLang below `python`.
PROJECT_FOLDERS = (".", "python")
COMMAND = ("python3", "/rvvbench/wheel_backend.py", "/src", "/out")
"""What is run; the project's folder follows `/src`."""

LACKS = 3
"""What wheel_backend.py, which this process cannot import, ends with where the image lacks something."""

FOLLOW_S = 2.0


@dataclass(frozen=True)
class Source:
    """One part of a stack, at a commit (40 hex digits) of a branch."""

    part: str
    url: str
    branch: str
    commit: str

    @property
    def distribution(self) -> str:
        return DISTRIBUTIONS[self.part]

    def checkout(self, state_dir: Path) -> Path:
        """Where the work tree is kept: one folder for each repository and commit."""
        repository = hashlib.sha256(self.url.encode()).hexdigest()[:8]
        return state_dir / "sources" / f"{self.part}-{repository}-{self.commit[:12]}"


@dataclass(frozen=True)
class StackBuild:
    """What wheels are built with: for `arch` (Debian's word), in `image`, with the allowed variables of `environ`."""

    arch: str
    image: Image
    engine: Engine
    state_dir: Path
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def emulated(self) -> bool:
        return ARCHITECTURES[self.arch].machine != platform.machine()


@dataclass(frozen=True)
class StackWheel:
    """The receipt of a built wheel. `seconds` is what its build took, `compiler` the first line of `cc --version`.

    `other_sha256` is set where an earlier build of this key had other bytes.
    """

    path: Path
    build_log: Path
    part: str
    url: str
    commit: str
    arch: str
    key: str
    sha256: str
    seconds: float
    compiler: str
    python: str
    image_digest: str
    environment: dict[str, str]
    requirements: dict[str, str]
    newer_than_declared: list[str]
    other_sha256: str | None = None


def stack_key(source: Source, arch: str, image_digest: str, environment: Mapping[str, str]) -> str:
    """64 hex digits over all that the wheel is made of: repository, commit, image, command, environment, machine."""
    identity = {
        "recipe": RECIPE_VERSION,
        "command": [*COMMAND, *PROJECT_FOLDERS, sha256_of(BACKEND)],
        "url": source.url,
        "commit": source.commit,
        "image": image_digest,
        "environment": dict(environment),
        "arch": arch,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def find_stack_wheel(build: StackBuild, source: Source) -> StackWheel | None:
    """The wheel of this source that was built here before, None where there is none or its bytes changed."""
    folder, key = _place(build, source)
    return _known(folder, key)


def build_stack_wheel(build: StackBuild, source: Source, progress: Progress) -> StackWheel:
    """The wheel of `source`: the one of this key that is here, else a new one, which may take hours.

    Nothing counts before the whole result is in its place, so a build can be stopped at any time. Raises as `clone_at`
    does (a changed checkout is refused even where the wheel is here), EnvironmentLacks where the image lacks what the
    source asks for or the build fails, with the end of its log.
    """
    folder, key = _place(build, source)
    checkout = source.checkout(build.state_dir)
    with exclusive(folder.parent, folder.name):
        known = _known(folder, key)
        if known is not None:
            if checkout.exists():
                verify_tree(checkout, source.commit)
            progress.line(f"{known.path.name} is here already")
            return known
        progress.phase(f"{source.distribution}: sources of {source.url} at {source.commit[:12]}")
        clone_at(source.url, source.branch, source.commit, checkout)
        before = _sha256_before(folder)
        with draft_of(folder) as draft:
            wheel = _build(build, source, key, checkout, draft, progress)
            if before is not None and before != wheel.sha256:
                progress.result(
                    f"{wheel.path.name}: an earlier build of this key had sha256 {before[:16]}, not this one"
                )
                wheel = replace(wheel, other_sha256=before)
            _put(wheel, draft / "result", folder)
    return replace(wheel, path=folder / wheel.path.name)


def project_folder(checkout: Path) -> str | None:
    """The folder of the Python project in a repository, relative to it; None where there is none."""
    for name in PROJECT_FOLDERS:
        folder = checkout / name
        if (folder / "setup.py").exists():
            return name
        with contextlib.suppress(OSError, ValueError):
            table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
            if "build-system" in table or "project" in table:
                return name
    return None


def log_tail(log: str, lines: int = 15) -> str:
    """The end of a build's log without empty lines."""
    return "\n".join([line.rstrip() for line in log.splitlines() if line.strip()][-lines:])


def _place(build: StackBuild, source: Source) -> tuple[Path, str]:
    key = stack_key(source, build.arch, build.image.digest, settings(source.part, build.environ))
    return build.state_dir / "wheels" / "built" / build.arch / key[:32], key


def _build(build: StackBuild, source: Source, key: str, checkout: Path, draft: Path, progress: Progress) -> StackWheel:
    name = project_folder(checkout)
    if name is None:
        raise RvvbenchError(
            f"the repository has no Python project at its top or in {PROJECT_FOLDERS[1]}/",
            where=str(checkout),
            mend="correct `url`, `branch` or `commit` of the stack",
        )
    parallel = jobs(build.environ)
    progress.phase(f"{source.distribution} for {build.arch}")
    for line in cost_of(checkout).told(parallel, build.emulated, shutil.disk_usage(draft).free):
        progress.result(line)
    # A copy: a build writes into its sources, and the checkout has to stay what the commit says.
    with writing(draft):
        shutil.copytree(checkout, draft / "source", symlinks=True)
        (draft / "out").mkdir()
    environment = settings(source.part, build.environ)
    log = draft.parent / f"{key[:32]}.log"
    ended = _run(build, draft, log, name, environment, parallel, commit_time_s(checkout), progress)
    if ended.exit_code != 0:
        raise _failure(source, build, ended, log)
    progress.line(f"built in {ended.seconds:.0f} s")
    told = json.loads((draft / "out" / "told.json").read_text(encoding="utf-8"))
    path = _one_wheel(source, build.arch, draft)
    return StackWheel(
        path=path,
        build_log=log,
        part=source.part,
        url=source.url,
        commit=source.commit,
        arch=build.arch,
        key=key,
        sha256=sha256_of(path),
        seconds=round(ended.seconds, 1),
        image_digest=build.image.digest,
        environment=environment,
        **told,
    )


def _run(
    build: StackBuild,
    draft: Path,
    log: Path,
    project: str,
    environment: dict[str, str],
    parallel: int,
    epoch_s: int,
    progress: Progress,
) -> ContainerExit:
    spec = ContainerSpec(
        image=build.image.image_id,
        command=(*COMMAND[:2], f"{COMMAND[2]}/{project}", *COMMAND[3:]),
        mounts=(
            Mount(draft / "source", "/src", writable=True),
            Mount(draft / "out", "/out", writable=True),
            Mount(BACKEND, "/rvvbench/wheel_backend.py"),
        ),
        env={
            **environment,
            "MAX_JOBS": str(parallel),
            "CMAKE_BUILD_PARALLEL_LEVEL": str(parallel),
            "SOURCE_DATE_EPOCH": str(epoch_s),
        },
        workdir="/src",
        log_path=log,
    )
    return run_container(build.engine, spec, observe=lambda _pid: _followed(log, progress))


@contextlib.contextmanager
def _followed(log: Path, progress: Progress) -> Iterator[None]:
    """Within, the latest line of the log is told."""
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(FOLLOW_S):
            with contextlib.suppress(OSError), log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - 2000))
                lines = log_tail(file.read().decode(errors="replace"), 1)
                if lines:
                    progress.line(lines)

    thread = threading.Thread(target=follow, name="build log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=FOLLOW_S)


def _failure(source: Source, build: StackBuild, ended: ContainerExit, log: Path) -> EnvironmentLacks:
    missing = re.findall(r"^missing: (.+)$", ended.output, re.MULTILINE)
    if ended.exit_code == LACKS and missing:
        return EnvironmentLacks(
            f"{source.distribution} at {source.commit[:12]} needs for its build what the image does not have: "
            + "; ".join(missing),
            where=str(log),
            mend="name the Debian packages in the recipe of the stack's image, and build and lock the image again",
        )
    killed = " (killed: short of memory? MAX_JOBS=1 takes the least)" if ended.exit_code in (137, -9) else ""
    return EnvironmentLacks(
        f"{source.distribution} at {source.commit[:12]} does not build for {build.arch}, exit code "
        f"{ended.exit_code}{killed}; its log ends:\n{log_tail(ended.output)}",
        where=str(log),
        mend="mend the branch and pin its new commit (`rvvbench lock --update`), or set what the build reads "
        "(`rvvbench build --help` lists the variables)",
    )


def _one_wheel(source: Source, arch: str, draft: Path) -> Path:
    """The wheel that the backend left, proven to be of this part, for this machine, and whole."""
    found = sorted((draft / "out" / "wheel").iterdir())
    where = f"{source.url} at {source.commit}"
    if len(found) != 1:
        raise RvvbenchError(f"the build left {len(found)} files instead of one wheel", where=where)
    name = WheelName.parse(found[0].name)
    if normal_name(name.distribution) != source.distribution:
        raise RvvbenchError(
            f"the build made a wheel of {name.distribution}, not of {source.distribution}",
            where=where,
            mend=f"correct `url` or `branch` of {source.part} in the stack",
        )
    machine = ARCHITECTURES[arch].machine
    if not all(tag == "any" or tag.endswith(f"_{machine}") for tag in name.platforms):
        raise RvvbenchError(f"the build made {found[0].name}, which is not for {machine}", where=where)
    unpack_wheel(found[0], draft / "unpacked")
    return found[0]


def _put(wheel: StackWheel, result: Path, folder: Path) -> None:
    with writing(result):
        result.mkdir()
        wheel.path.rename(result / wheel.path.name)
        data = {**asdict(wheel), "path": wheel.path.name, "build_log": wheel.build_log.name}
        write_atomically(result / "receipt.json", json.dumps(data, indent=1).encode())
        shutil.rmtree(folder, ignore_errors=True)
        result.rename(folder)


def _sha256_before(folder: Path) -> str | None:
    """What an earlier build of the key had, where its receipt is still here."""
    try:
        return str(json.loads((folder / "receipt.json").read_text())["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _known(folder: Path, key: str) -> StackWheel | None:
    """The wheel that `folder` has the receipt of, None where there is none or its bytes are no longer the same."""
    try:
        data = json.loads((folder / "receipt.json").read_text())
        paths = {"path": folder / str(data["path"]), "build_log": folder.parent / str(data["build_log"])}
        wheel = StackWheel(**{**data, **paths})
        return wheel if wheel.key == key and sha256_of(wheel.path) == wheel.sha256 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
