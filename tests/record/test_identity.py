from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.identity import canonical_json, digest, identity

from .test_metrics import json_values


def test_canonical_json_sorts_keys_and_has_no_white_space() -> None:
    assert canonical_json({"b": [1, 2.5, None, True], "a": {"ü": "x y"}}) == '{"a":{"ü":"x y"},"b":[1,2.5,null,true]}'


def test_the_digest_is_sha256_over_utf8() -> None:
    # printf '{"a":"ü"}' | sha256sum
    assert digest({"a": "ü"}) == "fd621823002706e24604cb868a9f4f8850d6f01fb5040d49ba050482e1472437"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_numbers_that_json_lacks_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, [{"a": {None: 1}}], {"a": object()}])
def test_what_is_no_json_data_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@given(json_values)
def test_writing_and_reading_again_does_not_change_the_digest(value: Any) -> None:
    assert digest(json.loads(json.dumps(value, indent=3))) == digest(value)


def test_each_part_changes_the_identity() -> None:
    same = identity({"m": 1}, {"p": 1}, {"e": "1"})
    assert same == identity({"m": 1}, {"p": 1}, {"e": "1"})
    assert re.fullmatch(r"[0-9a-f]{64}", same)
    others = {
        identity({"m": 2}, {"p": 1}, {"e": "1"}),
        identity({"m": 1}, {"p": 2}, {"e": "1"}),
        identity({"m": 1}, {"p": 1}, {"e": "2"}),
        identity({"m": 1, "p": 1}, {}, {"e": "1"}),
    }
    assert len(others) == 4 and same not in others


@given(st.dictionaries(st.text(), json_values))
def test_the_order_of_keys_is_no_difference(manifest: dict[str, Any]) -> None:
    backwards = dict(reversed(list(manifest.items())))
    assert identity(manifest, {}, {}) == identity(backwards, {}, {})
