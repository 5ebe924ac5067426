"""The key property: correct implementations choose the same tokens, and a projection that fails changes them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference_llama as reference
from generated_checkpoint import Generated
from numpy.typing import NDArray

from rvvbench.provide.prompt import seeded_token_ids, special_ids
from rvvbench.provide.synthetic import codes
from rvvbench.provide.synthetic.architecture import read_architecture
from rvvbench.provide.synthetic.weights import successor_shift

Get = Callable[[str], Generated]
PROJECTIONS = [
    f"model.layers.{layer}.{part}"
    for layer in (0, 1)
    for part in (
        *(f"self_attn.{letter}_proj" for letter in "qkvo"),
        *(f"mlp.{word}_proj" for word in ("gate", "up", "down")),
    )
]


def prompts(checkpoint: Generated, count: int, length: int = 64, seed: int = 20261130) -> np.ndarray:
    config = checkpoint.config
    barred = special_ids(config)
    return np.array([seeded_token_ids(seed, i, length, config["vocab_size"], barred) for i in range(count)])


def model(checkpoint: Generated, how: reference.Rounding, skip: frozenset[str] = frozenset()) -> reference.Model:
    return reference.Model(checkpoint.config, weights(checkpoint.folder), how, skip)


@functools.cache
def weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    return reference.read_safetensors(folder / "model.safetensors")


@pytest.mark.parametrize(("name", "count"), [("llama-mini", 4), ("qwen2-mini", 2), ("qwen3-mini", 2)])
def test_the_margin_is_ten_times_what_correct_implementations_differ_by(generated: Get, name: str, count: int) -> None:
    checkpoint = generated(name)
    ids = prompts(checkpoint, count)
    tokens, logits = reference.generate(model(checkpoint, reference.FLOAT64), ids, 8)
    ordered = np.sort(logits, -1)
    margin = (ordered[..., -1] - ordered[..., -2]).min()
    computed = [logits]
    for how in reference.VARIANTS:
        chosen, values = reference.generate(model(checkpoint, how), ids, 8, forced=tokens)
        assert (chosen == tokens).all(), how.name
        computed.append(values)
    largest = max(float(np.abs(a - b).max()) for a in computed for b in computed)
    assert margin >= 10 * largest
    # The property is no accident that a small change would end: there is room.
    assert margin >= 25 * largest
    assert all(len(set(row)) == 8 for row in tokens.tolist())


@pytest.mark.parametrize("name", ["llama-mini", "qwen2-mini", "qwen3-mini"])
def test_the_greedy_token_is_the_planted_successor_of_the_token_three_before(generated: Get, name: str) -> None:
    checkpoint = generated(name)
    arch = read_architecture(checkpoint.config)
    ids = prompts(checkpoint, 4, seed=5)
    tokens, logits = reference.generate(model(checkpoint, replace(reference.FLOAT64, dtype=np.float32)), ids, 8)
    power, back = successor_shift(arch)
    whole = np.concatenate([ids, tokens], 1)
    expected = [
        [codes.successor(arch, checkpoint.seed, int(row[ids.shape[1] - 1 + step - back]), power) for step in range(8)]
        for row in whole
    ]
    assert tokens.tolist() == expected
    # The probability of the greedy token says something too: neither 0 nor 1.
    probability = np.exp(logits.max(-1)) / np.exp(logits).sum(-1)
    assert 0.05 < probability.min() < probability.max() < 0.95


@pytest.mark.parametrize("name", ["llama-mini", "qwen2-mini", "qwen3-mini"])
def test_every_projection_that_fails_changes_every_token(generated: Get, name: str) -> None:
    checkpoint = generated(name)
    how = replace(reference.FLOAT64, dtype=np.float32)
    ids = prompts(checkpoint, 2, length=24)
    tokens, _ = reference.generate(model(checkpoint, how), ids, 1)
    for projection in PROJECTIONS:
        broken, _ = reference.generate(model(checkpoint, how, frozenset([projection])), ids, 1)
        assert (broken != tokens).all(), projection


def test_a_projection_that_loses_its_last_rows_or_columns_moves_the_logits(generated: Get) -> None:
    checkpoint = generated("llama-mini")
    how = replace(reference.FLOAT64, dtype=np.float32)
    ids = prompts(checkpoint, 1)
    whole = model(checkpoint, how)
    _, logits = reference.generate(whole, ids, 1)
    for projection in PROJECTIONS:
        name = projection + ".weight"
        for cut in (np.s_[-32:, :], np.s_[:, -64:]):
            damaged = whole.weights[name].copy()
            damaged[cut] = 0
            _, changed = reference.generate(replace(whole, weights={**whole.weights, name: damaged}, cache={}), ids, 1)
            # Exact arithmetic here: BF16 rounding moves the logits by as much, so no run could tell.
            assert np.abs(changed - logits).max() > 0.02, (projection, cut)


def test_a_wrong_entry_of_the_key_value_cache_changes_a_token(generated: Get) -> None:
    checkpoint = generated("llama-mini")
    how = replace(reference.FLOAT64, dtype=np.float32)
    ids = prompts(checkpoint, 1)
    tokens, _ = reference.generate(model(checkpoint, how), ids, 2)
    broken = model(checkpoint, how)
    broken.forward(ids)
    keys, values = broken.cache[1]
    # The second token hangs on what the last layer kept of the position before the last of the prompt.
    values = values.copy()
    values[:, :, -2] = values[:, :, 0]
    broken.cache[1] = (keys, values)
    assert broken.forward(tokens[:, :1]).argmax() != tokens[0, 1]
