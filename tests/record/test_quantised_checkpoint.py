"""A row of a W8A8 variant expects the quantised checkpoint of its record, the others the one that it was made from."""

from __future__ import annotations

from typing import Any

import pytest

from .test_verify import KERNEL_ROW, put, sealed_anew

CODES = {"model.safetensors": "12" * 32}
ALGORITHM = "rvvbench-w8a8/1"
ROW = "row rvv-kernels/none, expected.checkpoint_files"
PIN_FILES, PIN_ALGORITHM = "pins.checkpoint_w8a8.files", "pins.checkpoint_w8a8.algorithm"


def quantised(plain: Any) -> None:
    """Makes the second row one of a W8A8 variant."""
    plain["manifest"]["variants"][1]["linear"] = "w8a8"
    plain["rows"][1]["expected"]["checkpoint_files"] = dict(CODES)
    plain["pins"]["checkpoint_w8a8"] = {"algorithm": ALGORITHM, "files": dict(CODES)}
    files = {name: {"sha256": sha256} for name, sha256 in CODES.items()}
    plain["manifest"]["model"]["synthetic"]["w8a8"] = {"algorithm": ALGORITHM, "files": files}


def of_the_checkpoint(*changes: Any) -> list[str]:
    return [finding.where for finding in sealed_anew(quantised, *changes) if "checkpoint" in finding.where]


def test_the_quantised_checkpoint_is_what_its_row_expects() -> None:
    assert of_the_checkpoint() == []


def test_a_manifest_need_not_pin_it() -> None:
    assert of_the_checkpoint(put("manifest", "model", "synthetic", "w8a8", value=None)) == []


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ((*KERNEL_ROW, "checkpoint_files"), {"model.safetensors": "cd" * 32}, [ROW]),
        (("rows", 0, "expected", "checkpoint_files"), CODES, ["row torch-native/none, expected.checkpoint_files"]),
        (("manifest", "variants", 1, "linear"), "packed", [ROW]),
        (("pins", "checkpoint_w8a8"), None, [PIN_FILES, PIN_ALGORITHM, ROW]),
        (("pins", "checkpoint_w8a8", "files"), {"model.safetensors": "cd" * 32}, [PIN_FILES, ROW]),
        (("pins", "checkpoint_w8a8", "algorithm"), "rvvbench-w8a8/2", [PIN_ALGORITHM]),
        (("manifest", "model", "synthetic", "w8a8", "files", "model.safetensors", "sha256"), "cd" * 32, [PIN_FILES]),
    ],
)
def test_a_row_a_pin_or_a_manifest_that_says_otherwise_is_found(
    path: tuple[Any, ...], value: Any, where: list[str]
) -> None:
    assert of_the_checkpoint(put(*path, value=value)) == where


def test_a_row_whose_record_has_no_quantised_checkpoint_is_found() -> None:
    def without(plain: Any) -> None:
        del plain["pins"]["checkpoint_w8a8"]

    assert of_the_checkpoint(without) == [ROW]
