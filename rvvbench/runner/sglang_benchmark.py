"""`python3 -m rvvbench_runner.sglang_benchmark ARGUMENTS`: SGLang's serving benchmark, where `datasets` is missing.

SGLang 0.5.15 imports `datasets.load_dataset` for one of its data sets (`sglang/benchmark/datasets/mmmu.py`) before it
looks which one was asked for. Only in this process, and only where the package is missing, a module stands in for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

LAUNCH = (sys.executable, "-m", __name__)
MISSING = "datasets"


def load_dataset(*args: object, **kwargs: object) -> NoReturn:
    """Stands in for the function of `datasets`."""
    raise RuntimeError("the package datasets is not installed; use a data set of SGLang that needs no download")


def stand_in() -> ModuleType:
    """A module that can be imported, and says so when it is used."""
    module = ModuleType(MISSING, "A stand-in of rvvbench; the real package is not installed.")
    module.__spec__ = ModuleSpec(MISSING, None, origin="rvvbench")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    return module


def main() -> None:
    """Run the benchmark as its own command would."""
    if importlib.util.find_spec(MISSING) is None:
        importlib.import_module("transformers")  # asks first which packages there are

        sys.modules[MISSING] = stand_in()
    runpy.run_module("sglang.benchmark.serving", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
