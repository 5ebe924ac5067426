"""Stock servers with the attention backend `rvv`: the tokens of one batch, together, streamed and behind a prefix."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from one_batch import OneBatch, prompt
from server import Server

MODEL = os.environ["CHECKS_MODEL"]
TOKENS = 8
BUDGET_MIB = 30.0

LONG, SHORT = prompt(64), prompt(7, seed=6)
SHARED = LONG[:50] + prompt(9, seed=7)
"""Begins as LONG does: 50 tokens of it are in a radix cache."""

COMMON = (
    "--attention-backend",
    "rvv",
    "--dtype",
    "bfloat16",
    "--max-total-tokens",
    "4096",
    "--max-running-requests",
    "4",
)

KINDS: dict[str, tuple[str, ...]] = {
    "cached": ("--cpu-rvv-memory-budget-mib", str(BUDGET_MIB)),
    "cached-int8": ("--kv-cache-dtype", "int8", "--skip-tokenizer-init"),
    "uncached": ("--disable-radix-cache", "--disable-overlap-schedule", "--skip-tokenizer-init"),
    "uncached-int8": ("--disable-radix-cache", "--kv-cache-dtype", "int8", "--skip-tokenizer-init"),
}

_servers: dict[str, Server] = {}


def server(kind: str) -> Server:
    """That server, ready. It is started with the other of its kind of cache; the two before it are ended."""
    if kind not in _servers:
        for old in _servers.values():
            old.end()
        _servers.clear()
        begun = kind.removesuffix("-int8")
        for name in (begun, f"{begun}-int8"):
            _servers[name] = Server(name, MODEL, *COMMON, *KINDS[name])
        one_batch()  # while they start
    return _servers[kind].ready()


@functools.cache
def one_batch() -> dict[str, dict[str, list[int]]]:
    """{auto or int8: {prompt: tokens}}, each prompt in a batch of its own."""
    found: dict[str, dict[str, list[int]]] = {}
    for cache in ("auto", "int8"):
        one = OneBatch(MODEL, attention_backend="rvv", kv_cache_dtype=cache)
        prompts = {"long": LONG, "short": SHORT, "shared": SHARED}
        found[cache] = {name: one.generate([ids], TOKENS).of(0) for name, ids in prompts.items()}
        one.end()
    return found


def cached_tokens(answer: dict[str, Any]) -> int:
    count: int = answer["meta_info"]["cached_tokens"]
    return count


def check_generate_answers_with_the_tokens_of_one_batch() -> None:
    for kind, cache in (("cached", "auto"), ("cached-int8", "int8")):
        expected = one_batch()[cache]
        assert len(set(expected["long"])) > 4 and expected["long"] != expected["shared"]
        server(kind).flush()
        for name, ids in (("short", SHORT), ("long", LONG)):
            assert server(kind).generate(ids, TOKENS)["output_ids"] == expected[name], f"{kind}, {name}"


def check_it_streams_token_by_token() -> None:
    for kind, cache in (("cached", "auto"), ("cached-int8", "int8")):
        server(kind).flush()
        chunks = list(server(kind).stream(LONG, TOKENS))
        expected = one_batch()[cache]["long"]
        assert len(chunks) >= TOKENS // 2, f"{len(chunks)} chunks"
        assert all(chunk["output_ids"] == expected[: len(chunk["output_ids"])] for chunk in chunks), chunks
        assert chunks[-1]["output_ids"] == expected
        assert chunks[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": TOKENS}


def check_two_requests_at_once_give_what_each_gives_alone() -> None:
    """Of different lengths; tried until a step of two was decoded."""
    for kind, cache in (("cached", "auto"), ("cached-int8", "int8")):
        before = calls(kind, "decode_attention", 2)
        for _ in range(5):
            server(kind).flush()
            together = {"long": LONG, "short": SHORT}
            got: dict[str, Any] = {}

            def ask(name: str, ids: list[int], got: dict[str, Any] = got, kind: str = kind) -> None:
                got[name] = server(kind).generate(ids, 8 * TOKENS)["output_ids"]

            threads = [threading.Thread(target=ask, args=item) for item in together.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for name in together:
                assert got[name][:TOKENS] == one_batch()[cache][name], f"{kind}, {name}"
            if calls(kind, "decode_attention", 2) > before:
                break
        else:
            raise AssertionError("no two requests were ever decoded together")


def calls(kind: str, projection: str, m: int) -> int:
    state = server(kind).info()["internal_states"][0]["rvv"]
    lines = [line for line in state["routing"] if (line["projection"], line["m"]) == (projection, m)]
    assert all(line["path"] == "kernels" for line in lines), lines
    return sum(line["calls"] for line in lines)


def check_a_shared_prefix_is_taken_from_the_radix_cache_and_changes_nothing() -> None:
    for kind, cache in (("cached", "auto"), ("cached-int8", "int8")):
        server(kind).flush()
        first = server(kind).generate(LONG, TOKENS)
        behind = server(kind).generate(SHARED, TOKENS)
        again = server(kind).generate(LONG, TOKENS)
        assert [cached_tokens(answer) for answer in (first, behind, again)] == [0, 50, 63]
        expected = one_batch()[cache]
        assert behind["output_ids"] == expected["shared"], f"{kind}: {behind['output_ids']}"
        assert first["output_ids"] == again["output_ids"] == expected["long"]


def check_server_info_tells_the_budget_and_what_is_active() -> None:
    info = server("cached").info()
    assert info["cpu_rvv_memory_budget_mib"] == BUDGET_MIB and info["attention_backend"] == "rvv"
    state = info["internal_states"][0]["rvv"]
    assert state["platform_class"] == "sglang_rvv.platform.RvvPlatform" and len(state["library_sha256"]) == 64
    (model,) = state["active"]["models"]
    assert model["budget_bytes"] == BUDGET_MIB * (1 << 20)
    assert len(model["packed"]) == 8 and model["row_major"] == {"lm_head": 20_971_520}
    assert "lm_head" in state["active"]["lines"][-1] and "ours: attention" in state["active"]["lines"][-1]
    paths = {(line["projection"], line["path"]) for line in state["routing"]}
    assert ("lm_head", "row_major") in paths and ("qkv_proj", "packed") in paths, paths
    assert state["ops"]["decode_attention_cpu"]["calls"] > 0 and state["ops"]["linear_rowmajor"]["calls"] > 0
    assert "SGLang's torch_native" not in server("cached").log.read_text()
    state = server("cached-int8").info()["internal_states"][0]["rvv"]
    assert state["ops"]["decode_attention_int8_cpu"]["calls"] > 0
    assert "decode_attention_cpu" not in state["ops"]
    assert server("cached-int8").info()["kv_cache_dtype"] == "int8"
    assert server("cached-int8").info()["cpu_rvv_memory_budget_mib"] is None


def check_without_a_radix_cache_the_tokens_are_the_same() -> None:
    for kind, cache in (("uncached", "auto"), ("uncached-int8", "int8")):
        expected = one_batch()[cache]
        for name, ids in (("long", LONG), ("shared", SHARED), ("long", LONG)):
            answer = server(kind).generate(ids, TOKENS)
            assert cached_tokens(answer) == 0
            assert answer["output_ids"] == expected[name], f"{kind}, {name}"
    for old in _servers.values():
        old.end()
