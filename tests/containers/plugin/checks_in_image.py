"""Run inside the runtime image, with `sgl_kernel` and `sglang_rvv` on the site path: `checks_in_image.py MODULE...`, or
MODULE.check_NAME for one check.

Calls every `check_*` of those modules in their order and prints one line of JSON for each: its name (module.function),
seconds of CPU time, and the traceback where it failed. The process imports SGLang once for all of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path

MARK = "CHECKED "


def run(chosen: str) -> None:
    """Every check of a module, or the one chosen; one that fails does not keep the next from running."""
    module, _, only = chosen.partition(".")
    functions = vars(importlib.import_module(module))
    for name in [name for name in functions if name.startswith("check_") and only in ("", name)]:
        started = time.process_time()
        problem = None
        try:
            functions[name]()
        except Exception:
            problem = traceback.format_exc()
        told = {"check": f"{module}.{name}", "seconds": round(time.process_time() - started, 2), "problem": problem}
        print(f"\n{MARK}{json.dumps(told)}", flush=True)


def leave_out_models() -> None:
    """Of SGLang's files of models, keep those of the small ones: it imports each that is not disabled."""
    found = importlib.util.find_spec("sglang")
    assert found is not None and found.submodule_search_locations
    stems = {path.stem for path in Path(found.submodule_search_locations[0], "srt", "models").glob("*.py")}
    unneeded = sorted(stems - {"__init__", "llama", "qwen2", "qwen3", "registry", "utils"})
    os.environ.setdefault("SGLANG_DISABLED_MODEL_ARCHS", ",".join(unneeded))


def main() -> None:
    leave_out_models()
    import sglang.srt.server_args as arguments

    # What modules of SGLang look at when they are made; no model is loaded for most checks.
    from sglang_rvv import kernels

    kernels.capability()  # loads them, if they are there
    arguments.set_global_server_args_for_scheduler(arguments.ServerArgs(model_path="none", device="cpu"))
    for module in sys.argv[1:]:
        run(module)


if __name__ == "__main__":
    main()
