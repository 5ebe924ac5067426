"""Byte-compile one shard of the Python files below some folders: byte_compile.py SHARD SHARDS FOLDER-PATTERN...

Runs inside the root filesystem, so that the paths in the .pyc files are right. The files are hash-based and never
checked again: they say nothing about time, and the image does not change under them. Files that do not compile
(templates, tests of the parser) are left alone, as Debian leaves them.
"""

import py_compile
import sys
from pathlib import Path

LEFT_OUT = {"tests", "idlelib", "lib2to3", "__pycache__"}


def sources(patterns):
    """The files below the folders that the patterns match, each once."""
    for pattern in patterns:
        for top in Path("/").glob(pattern.removeprefix("/")):
            for path in top.rglob("*.py"):
                if path.is_file() and not LEFT_OUT.intersection(path.parts):
                    yield path


def main():
    shard, shards = int(sys.argv[1]), int(sys.argv[2])
    # Largest first, dealt out in turn: shards of nearly equal work that depend on nothing but the files.
    files = sorted(set(sources(sys.argv[3:])), key=lambda path: (-path.stat().st_size, str(path)))
    for path in files[shard::shards]:
        try:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(path), doraise=True, invalidation_mode=mode)
        except (py_compile.PyCompileError, UnicodeDecodeError, ValueError):
            continue


main()
