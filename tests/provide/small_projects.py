"""Two small Python projects named torch and sglang in git repositories of their own, served on loopback."""

from __future__ import annotations

import functools
import os
import subprocess
import threading
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

# MAX_JOBS is in no key: with 77 the build stands still, for tests that end it, and another one goes on with its key.
SETUP = """
import os, signal
from setuptools import Extension, setup
if os.environ["MAX_JOBS"] == "77":
    print("the build stands still", flush=True)
    signal.pause()
setup(name="torch", version="9.9", packages=["torch"], ext_modules=[Extension("torch._C", ["torch/c.c"])])
"""
EXTENSION = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", 0, -1, 0};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""
TORCH = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=70,<80", "wheel", "packaging"]\n'
    'build-backend = "setuptools.build_meta"\n',
    "setup.py": SETUP,
    "torch/__init__.py": "from . import _C\n__version__ = '9.9'\n",
    "torch/c.c": EXTENSION,
}
SGLANG = {
    "README.md": "The project is below python/.\n",
    "pyproject.toml": "[tool.ruff]\n",
    "python/pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "sglang"\nversion = "8.8"\n[tool.setuptools]\npackages = ["sglang"]\n',
    "python/sglang/__init__.py": "import torch\n",
}
BRANCH = "rvv"


def git(folder: Path, *arguments: str) -> str:
    """What a git command says; with an author, and with no configuration of the user's."""
    who = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class SmallRepository:
    """A repository with one branch, which the server reads."""

    folder: Path
    url: str

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        """Write files, commit them, and make the server serve it: the new commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "--quiet", "-m", message)
        git(self.folder, "update-server-info")
        return git(self.folder, "rev-parse", "HEAD")

    @property
    def head(self) -> str:
        return git(self.folder, "rev-parse", "HEAD")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


class SmallProjects:
    """The two repositories below `folder`, served as files over HTTP while the block lasts."""

    def __init__(self, folder: Path) -> None:
        handler = functools.partial(_Quiet, directory=str(folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._folder = folder
        self.torch = self._repository("torch", TORCH)
        self.sglang = self._repository("sglang", SGLANG)

    def __enter__(self) -> SmallProjects:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _repository(self, name: str, files: dict[str, str]) -> SmallRepository:
        folder = self._folder / name
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch", BRANCH)
        made = SmallRepository(folder, f"http://127.0.0.1:{self._server.server_port}/{name}/.git")
        made.commit(files, "the project")
        return made
