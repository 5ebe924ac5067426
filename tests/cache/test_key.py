"""The compatibility key names what differs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from rvvbench.cache.key import FIELDS, CacheKey, differences, digest_of, nearest

from .made_up import KEY, key

CHANGES: dict[str, Any] = {
    "stack": {"name": "debian-rvv", "image": "sha256:" + "f" * 64},
    "isa": "riscv64 rv64,v=true",
    "vlen": 512,
    "march": "rv64gcv",
    "compiler": {"name": "g++", "version": "4:17.0"},
    "threads": 2,
    "headers": {"rvv_inductor": "0" * 64, "sglang_rvv": "c" * 64},
    "policy": {"compile": "regional", "packed_weight_mode": "off", "small_batch": True},
    "model": {"dtype": "bfloat16", "shapes": {"o_proj": [2048, 1024]}},
    "artifacts": ("o_proj 1024x1024 M=2 explicit_packed",),
    "environment": {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "1"},
}


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_makes_another_key_and_is_named(field: str) -> None:
    other = key(**{field: CHANGES[field]})
    assert other.digest != KEY.digest
    found = differences(KEY.plain(), other.plain())
    assert [one.field for one in found] == [field]
    assert found[0].text.startswith(field)
    assert "made with" in found[0].text


def test_every_field_is_compared() -> None:
    assert set(CHANGES) == {field.name for field in fields(CacheKey)} == set(FIELDS)


def test_a_table_tells_only_the_members_that_differ() -> None:
    other = key(headers=CHANGES["headers"])
    text = differences(KEY.plain(), other.plain())[0].text
    assert "headers.rvv_inductor" in text and "sglang_rvv" not in text


def test_a_key_that_was_written_and_read_is_the_same() -> None:
    read = json.loads(json.dumps(KEY.plain()))
    assert digest_of(read) == KEY.digest
    assert differences(KEY.plain(), read) == ()


def test_the_nearest_of_several_is_the_one_with_the_fewest_differences() -> None:
    others = [key(threads=2, vlen=512).plain(), key(threads=4).plain(), key(threads=8, march="x").plain()]
    found = nearest(KEY.plain(), iter(others))
    assert found is not None and [(one.field, one.made_with) for one in found] == [("threads", 4)]
    assert nearest(KEY.plain(), iter([])) is None


def test_a_field_that_an_older_key_lacks_differs() -> None:
    older = {name: value for name, value in KEY.plain().items() if name != "environment"}
    assert [one.field for one in differences(KEY.plain(), older)] == ["environment"]
