"""Seeded prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.errors import UsageError
from rvvbench.provide.prompt import seeded_token_ids, special_ids


def test_a_prompt_is_the_same_everywhere() -> None:
    assert seeded_token_ids(7, 0, 6, 10240, (0, 1)) == [10088, 6624, 7739, 9471, 3360, 655]


def test_prompts_of_other_index_or_seed_differ() -> None:
    prompts = [tuple(seeded_token_ids(seed, index, 64, 10240)) for seed in (1, 2) for index in range(4)]
    assert len(set(prompts)) == 8


def test_a_longer_prompt_begins_with_the_shorter_one() -> None:
    assert seeded_token_ids(1, 1, 100, 128256)[:64] == seeded_token_ids(1, 1, 64, 128256)


@given(st.integers(0, 2**32), st.integers(2, 50), st.sets(st.integers(0, 60), max_size=10))
def test_special_ids_never_occur_and_every_other_id_can(seed: int, vocab_size: int, special: set[int]) -> None:
    allowed = set(range(vocab_size)) - special
    if not allowed:
        with pytest.raises(UsageError):
            seeded_token_ids(seed, 0, 1, vocab_size, special)
        return
    ids = seeded_token_ids(seed, 0, 1000, vocab_size, special)
    assert set(ids) <= allowed
    assert len(set(ids)) >= min(len(allowed), 10)


def test_the_special_ids_of_a_config_may_be_one_or_a_list_or_missing() -> None:
    assert special_ids({"bos_token_id": 3, "eos_token_id": [5, 6], "pad_token_id": None}) == {3, 5, 6}
    assert special_ids({}) == frozenset()
