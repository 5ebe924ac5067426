"""`python3 -m rvvbench_runner one-batch SPEC` supervises; `... measured SPEC` is the process that it starts and
measures.
"""

from __future__ import annotations

import sys

from . import spec as specs
from .failure import RunnerError, SpecError

USAGE = "usage: python3 -m rvvbench_runner one-batch SPEC.json"


def main(arguments: list[str]) -> int:
    """Dispatch on the first argument; the exit code. Heavy modules are imported by the process that needs them."""
    try:
        if len(arguments) != 2 or arguments[0] not in ("one-batch", "measured"):
            raise SpecError(USAGE)
        mode, path = arguments
        spec = specs.load(path)
        if mode == "measured":
            from . import one_batch

            return one_batch.main(spec)
        from . import supervisor

        return supervisor.supervise(spec, [sys.executable, "-m", __package__ or "rvvbench_runner", "measured", path])
    except RunnerError as error:
        print(f"{__package__}: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
