"""`python3 -m rvvbench_runner one-batch SPEC` supervises; `... measured SPEC` is the process that it starts and
measures. `python3 -m rvvbench_runner serving SPEC` supervises a server and asks it; `... eval SPEC` asks it a task.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import spec as specs
from .failure import RunnerError, SpecError

USAGE = "usage: python3 -m rvvbench_runner one-batch|serving|eval SPEC.json"


def main(arguments: list[str]) -> int:
    """Dispatch on the first argument; the exit code. Heavy modules are imported by the process that needs them."""
    try:
        if len(arguments) != 2 or arguments[0] not in ("one-batch", "measured", "serving", "eval"):
            raise SpecError(USAGE)
        mode, path = arguments
        if mode == "serving":
            from . import serving, serving_spec

            return serving.main(serving_spec.load(path))
        if mode == "eval":
            from . import eval_spec, serving

            return serving.main(eval_spec.load(path))
        spec = specs.load(path)
        if mode == "measured":
            from . import one_batch

            end(one_batch.main(spec))
        from . import supervisor

        return supervisor.supervise(spec, [sys.executable, "-m", __package__ or "rvvbench_runner", "measured", path])
    except RunnerError as error:
        print(f"{__package__}: {error}", file=sys.stderr)
        return error.exit_code


def end(code: int) -> NoReturn:
    """End this process now. Everything is written; taking SGLang's modules apart would only cost seconds."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
