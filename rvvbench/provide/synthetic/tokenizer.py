"""A byte-level BPE tokenizer of exactly the config's vocabulary, made from nothing.

The vocabulary is: the special tokens at the ids that the config names, then, in the ids that are left, the 256 bytes,
the pairs of the letters below, pairs followed by a letter, and so on. Each of them beyond the bytes has the merge that
makes it, so that every token can be reached and every text can be encoded and decoded. Written with sorted keys: the
same bytes on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rvvbench.errors import ManifestError
from rvvbench.provide.synthetic.architecture import Architecture

LETTERS = "etaoinshrdlucmfwypvbgkqjxz"


def byte_characters() -> list[str]:
    """The printable character that byte-level BPE writes for each byte (0 to 255), as GPT-2 defined it."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    substitutes = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(substitutes)) for byte in range(256)]


def special_tokens(arch: Architecture) -> dict[int, str]:
    """The special tokens by id: the ends and the beginnings that the config names."""
    names: dict[int, str] = {}
    for kind, ids in (("begin", arch.bos_ids), ("end", arch.eos_ids)):
        for number, token in enumerate(i for i in ids if i not in names):
            names[token] = f"<|{kind}_of_text|>" if number == 0 else f"<|{kind}_of_text_{number}|>"
    return names


def _merges() -> Iterator[tuple[str, str]]:
    """Pairs to merge, without end: letters (or a space) with letters, then every result with each letter."""
    space = byte_characters()[ord(" ")]
    generation = [space, *LETTERS]
    while True:
        merged = []
        for left in generation:
            for right in LETTERS:
                yield left, right
                merged.append(left + right)
        generation = merged


def tokenizer_files(arch: Architecture) -> dict[str, bytes]:
    """`tokenizer.json` and `tokenizer_config.json`; `ManifestError` for a vocabulary too small to hold the bytes."""
    special = special_tokens(arch)
    if arch.vocab_size < 256 + len(special) or any(not 0 <= i < arch.vocab_size for i in special):
        raise ManifestError(
            f"a vocabulary of {arch.vocab_size} cannot hold the 256 bytes and the special tokens {sorted(special)}",
            mend="raise `vocab_size`, or correct `bos_token_id` and `eos_token_id`",
        )
    free = (i for i in range(arch.vocab_size) if i not in special)
    vocabulary = {token: i for i, token in special.items()}
    for character, i in zip(byte_characters(), free, strict=False):
        vocabulary[character] = i
    merges: list[list[str]] = []
    for i, (left, right) in zip(free, _merges(), strict=False):
        vocabulary[left + right] = i
        merges.append([left, right])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level: dict[str, Any] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": special[i], **flags} for i in sorted(special)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 131072,
    }
    if arch.bos_ids:
        config["bos_token"] = special[arch.bos_ids[0]]
    if arch.eos_ids:
        # All three are named, so that no class adds a default token of its own to the vocabulary.
        config["eos_token"] = config["pad_token"] = config["unk_token"] = special[arch.eos_ids[0]]
    return {"tokenizer.json": json_bytes(tokenizer), "tokenizer_config.json": json_bytes(config, indent=2)}


def json_bytes(value: object, indent: int | None = None) -> bytes:
    """JSON with sorted keys and ASCII only: one text for one value."""
    separators = (",", ":") if indent is None else (",", ": ")
    return (json.dumps(value, sort_keys=True, indent=indent, separators=separators, ensure_ascii=True) + "\n").encode()
