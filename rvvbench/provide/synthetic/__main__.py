"""`python -m rvvbench.provide.synthetic MODEL.yaml [FOLDER]`: generate a checkpoint, print the pins for its manifest.

For whoever adds a model: the printed lines are the `files:` of its `synthetic:` section. Without FOLDER the checkpoint
is not kept.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from rvvbench.errors import UsageError
from rvvbench.provide.synthetic.generator import generate


def main(arguments: list[str]) -> None:
    if len(arguments) not in (1, 2):
        raise UsageError(
            "one manifest, and one folder at most", mend="python -m rvvbench.provide.synthetic MODEL.yaml [FOLDER]"
        )
    model = yaml.safe_load(Path(arguments[0]).read_text())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(arguments[1] if len(arguments) == 2 else scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = generate(model["config"], model["synthetic"]["seed"], folder)
    print("  files:")
    for name, file in files.items():
        print(f"    {name}: {{sha256: {file.sha256}, size: {file.size}}}")


if __name__ == "__main__":
    main(sys.argv[1:])
