"""Decode steps of one sequence, in plain torch and in our kernels, between marks by which a log of them has places.

    step_driver.py LIBRARY.so SPEC        SPEC: a file, {"steps", "cases": [{"shape": {...}, "context", "seed"}]}

In each case every way begins from the same operands, and its logits must agree with those of the first, or the program
ends. Then, for each way: mark, `steps` steps, mark, twice as many, mark; before each group of operators its own mark.
With `steps` 0 there are no marks. One thread; it needs torch alone.

It prints lines of JSON: {"case", "way", "difference"} for each way of each case, the case by its number, then
{"groups", "libraries"}: the groups in the order of their marks, and by the path of each file where its code is,
[[begin, end]].
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from marks import MARK, STRIDE, functions_at
from step_operands import Operands, Shape, operands
from step_ways import GROUPS, WAYS, Way, step

BOUNDS = {"torch": 0.0, "kernels": 0.015, "kernels, INT8": 0.03}
"""How far a way's logits may be from those of plain torch: the norm of the difference over the norm."""

WARMING_STEPS = 2
"""So that what happens once has happened."""


def executable_ranges() -> dict[str, list[tuple[int, int]]]:
    """By the path of each file that is mapped for execution, where."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, permissions, _, _, _, *path = line.split(maxsplit=5)
        if "x" in permissions and path and path[0].startswith("/"):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            found.setdefault(path[0], []).append((begin, end))
    return found


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over the norm of what is expected."""
    return float((found - expected).norm() / expected.norm())


def logits_of(given: Operands, way: Way) -> torch.Tensor:
    """Those of the last of a few steps."""
    for _ in range(WARMING_STEPS - 1):
        step(given, way, enter=lambda group: None)
    return step(given, way, enter=lambda group: None)


def count(given: Operands, way: Way, steps: int, marks: list[Callable[[], object]]) -> None:
    mark, *groups = marks
    enter = dict(zip(GROUPS, groups, strict=True))
    mark()
    for times in (steps, 2 * steps):
        for _ in range(times):
            step(given, way, lambda group: enter[group]())
        mark()


def run(spec: dict[str, Any]) -> None:
    marks = functions_at([MARK + STRIDE * place for place in range(1 + len(GROUPS))]) if spec["steps"] else []
    for number, case in enumerate(spec["cases"]):
        given = operands(Shape(**case["shape"]), case["context"], case["seed"])
        expected = None
        for name, make in WAYS.items():
            way = make(given)
            logits = logits_of(given, way)
            expected = logits if expected is None else expected
            apart = difference(logits, expected)
            if not apart <= BOUNDS[name]:
                sys.exit(f"the logits of {name} are {apart:.4f} from those of plain torch, more than {BOUNDS[name]}")
            if marks:
                count(given, way, spec["steps"], marks)
            print(json.dumps({"case": number, "way": name, "difference": apart}), flush=True)
    print(json.dumps({"groups": GROUPS, "libraries": executable_ranges()}), flush=True)


def main() -> None:
    library, spec = sys.argv[1:]
    # What a collection does to tensors would be counted in whichever step it came.
    gc.disable()
    torch.set_num_threads(1)
    torch.ops.load_library(library)
    with torch.inference_mode():
        run(json.loads(Path(spec).read_text()))


if __name__ == "__main__":
    main()
