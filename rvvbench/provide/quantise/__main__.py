"""`python -m rvvbench.provide.quantise SOURCE [FOLDER]`: quantise a checkpoint, print the pins of what comes out.

SOURCE is the folder of a checkpoint, or a model's manifest: then its synthetic checkpoint is generated and quantised,
and the printed lines are the `w8a8:` of its `synthetic:` section. Without FOLDER the result is not kept.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from rvvbench.errors import UsageError
from rvvbench.provide.quantise import ALGORITHM, quantise
from rvvbench.provide.synthetic import generate


def main(arguments: list[str]) -> None:
    if len(arguments) not in (1, 2):
        raise UsageError(
            "one checkpoint or manifest, and one folder at most",
            mend="python -m rvvbench.provide.quantise SOURCE [FOLDER]",
        )
    source = Path(arguments[0])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(arguments[1]) if len(arguments) == 2 else Path(scratch) / "quantised"
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", mend="name a folder that is empty or not there yet")
        if not source.is_dir():
            model = yaml.safe_load(source.read_text())
            source = Path(scratch) / "generated"
            source.mkdir()
            generate(model["config"], model["synthetic"]["seed"], source)
        files = quantise(source, folder)
    print("  w8a8:")
    print(f"    algorithm: {ALGORITHM}")
    print("    files:")
    for name, file in files.items():
        print(f"      {name}: {{sha256: {file.sha256}, size: {file.size}}}")


if __name__ == "__main__":
    main(sys.argv[1:])
