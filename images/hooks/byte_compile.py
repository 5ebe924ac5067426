"""Byte-compile one shard of the Python files below some folders: byte_compile.py SHARD SHARDS FOLDER-PATTERN...

Runs inside the root filesystem, so that the paths in the .pyc files are right. The files are hash-based and never checked again:
they say nothing about time, and the image does not change under them. Files that do not compile (templates, tests of the parser)
are left alone, as Debian leaves them.
"""

import glob
import os
import py_compile
import sys


def sources(patterns):
    for pattern in patterns:
        for top in glob.glob(pattern):
            for folder, folders, names in os.walk(top):
                folders[:] = [name for name in folders if name not in ("tests", "__pycache__", "idlelib", "lib2to3")]
                for name in names:
                    path = os.path.join(folder, name)
                    if name.endswith(".py") and os.path.isfile(path):
                        yield path


def main():
    shard, shards = int(sys.argv[1]), int(sys.argv[2])
    # Largest first, dealt out in turn: shards of nearly equal work that depend on nothing but the files.
    files = sorted(set(sources(sys.argv[3:])), key=lambda path: (-os.path.getsize(path), path))
    for path in files[shard::shards]:
        try:
            py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except (py_compile.PyCompileError, UnicodeDecodeError, ValueError):
            continue


main()
