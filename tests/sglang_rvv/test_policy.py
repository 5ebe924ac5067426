"""What a process does with the kernels, from SGLang's arguments, the environment and what the kernels can do."""

from types import SimpleNamespace

import pytest
from sglang_rvv import kernels, policy
from sglang_rvv.kernels import Capability, without
from sglang_rvv.policy import Policy, choose_attention, choose_grammar, decide, is_fallback
from sglang_rvv.settings import PROJECTIONS, Settings
from sglang_rvv.upstream import IntegrationError

WORKING = Capability(None, "ab" * 32, True, True, 256)
MISSING = Capability("sgl_kernel cannot be loaded: no such file")


def can():
    return WORKING


def cannot():
    return MISSING


def must_not_be_asked():
    raise AssertionError("the kernels were looked for where nobody wants them")


@pytest.mark.parametrize(
    ("chosen", "installed", "expected"),
    [(None, True, None), (None, False, "none"), ("xgrammar", False, "xgrammar"), ("outlines", False, "outlines")],
)
def test_a_server_without_xgrammar_has_no_grammar_unless_one_was_chosen(chosen, installed, expected):
    looked_for = []

    def find(name):
        looked_for.append(name)
        return object() if installed else None

    assert choose_grammar(chosen, find) == expected
    assert looked_for == ([] if chosen else ["xgrammar"])


def arguments(**given):
    defaults = {
        "attention_backend": "rvv",
        "prefill_attention_backend": None,
        "decode_attention_backend": None,
        "kv_cache_dtype": "auto",
        "quantization": None,
        "enable_torch_compile": False,
        "speculative_algorithm": None,
        "enable_hierarchical_cache": False,
        "cpu_rvv_memory_budget_mib": None,
    }
    return SimpleNamespace(**(defaults | given))


@pytest.fixture
def kernels_are(monkeypatch):
    return lambda found: monkeypatch.setattr(kernels, "capability", lambda: found)


@pytest.mark.parametrize("nobody", [None, "intel_amx"])
@pytest.mark.parametrize(
    ("machine", "found", "active"),
    [
        ("riscv64", can, "rvv"),
        ("riscv64", cannot, "torch_native"),
        ("x86_64", must_not_be_asked, "torch_native"),
        ("aarch64", must_not_be_asked, "torch_native"),
    ],
)
def test_where_nobody_chose_ours_runs_on_riscv64_with_kernels_only(nobody, machine, found, active):
    assert choose_attention(nobody, found, machine) == active


@pytest.mark.parametrize("machine", ["riscv64", "x86_64"])
def test_ours_runs_where_it_is_asked_for_or_falls_back(machine):
    assert choose_attention("rvv", can, machine) == "rvv"
    assert choose_attention("rvv", cannot, machine) == "torch_native"


@pytest.mark.parametrize("chosen", ["torch_native", "triton"])
def test_another_choice_stays_and_kernels_are_not_looked_for(chosen):
    assert choose_attention(chosen, must_not_be_asked, "riscv64") == chosen


@pytest.mark.parametrize(
    ("chosen", "active", "machine", "said"),
    [
        ("rvv", "torch_native", "x86_64", True),
        ("rvv", "rvv", "x86_64", False),
        (None, "torch_native", "riscv64", True),
        (None, "rvv", "riscv64", False),
        ("intel_amx", "torch_native", "riscv64", True),
        (None, "torch_native", "x86_64", False),
        ("torch_native", "torch_native", "riscv64", False),
    ],
)
def test_a_fallback_is_what_replaces_ours_where_it_was_asked_for_or_is_the_default(chosen, active, machine, said):
    assert is_fallback(chosen, active, machine) == said


def test_with_our_attention_everything_is_ours_unless_the_environment_says_otherwise():
    everything = decide(Settings(), arguments(), can)
    assert everything == Policy(attention=True, linears=PROJECTIONS, elementwise=True)
    assert everything.uses_kernels and everything.reasons == ()
    only = decide(Settings("torch", (), "torch"), arguments(), can)
    assert only == Policy(attention=True)


def test_with_another_attention_nothing_is_ours_unless_the_environment_asks():
    nothing = decide(Settings(), arguments(attention_backend="torch_native"), must_not_be_asked)
    assert not nothing.uses_kernels
    assert nothing.reasons == ("attention backend torch_native, nothing else asked for",)
    linears = decide(Settings("packed", ("o_proj",)), arguments(attention_backend="torch_native"), can)
    assert linears == Policy(linears=("o_proj",))
    norms = decide(Settings("torch", (), "kernels"), arguments(attention_backend="torch_native"), can)
    assert norms == Policy(elementwise=True)


@pytest.mark.parametrize("settings", [Settings(), Settings("packed", PROJECTIONS, "kernels")])
def test_without_kernels_nothing_is_ours_and_the_reason_is_kept(settings):
    found = decide(settings, arguments(cpu_rvv_memory_budget_mib=3.0), cannot)
    assert not found.uses_kernels and found.reasons == (MISSING.why_not,)


def test_cache_budget_and_debugging_are_passed_on():
    asked = arguments(kv_cache_dtype="int8", cpu_rvv_memory_budget_mib=12.5)
    found = decide(Settings(debug_weights=True), asked, can)
    assert (found.int8_cache, found.memory_budget_mib, found.debug_weights) == (True, 12.5, True)


def test_stock_arguments_without_ours_have_no_budget():
    stock = arguments()
    del stock.cpu_rvv_memory_budget_mib
    assert decide(Settings(), stock, can).memory_budget_mib is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"kv_cache_dtype": "int8", "cpu_rvv_memory_budget_mib": 0.0}, None),
        ({"quantization": "w8a8_int8"}, None),
        ({"attention_backend": "torch_native", "speculative_algorithm": "EAGLE"}, None),
        ({"enable_torch_compile": True}, "--enable-torch-compile"),
        ({"attention_backend": "torch_native", "kv_cache_dtype": "int8"}, "read by the attention backend rvv only"),
        ({"kv_cache_dtype": "int8", "enable_hierarchical_cache": True}, "--enable-hierarchical-cache"),
        ({"speculative_algorithm": "EAGLE"}, "--speculative-algorithm"),
        ({"attention_backend": "torch_native", "quantization": "w8a8_int8"}, "--quantization w8a8_int8"),
        ({"cpu_rvv_memory_budget_mib": -1.0}, "-1.0 is no amount of memory"),
        ({"cpu_rvv_memory_budget_mib": float("nan")}, "nan is no amount of memory"),
        ({"cpu_rvv_memory_budget_mib": float("inf")}, "inf is no amount of memory"),
    ],
)
def test_arguments_that_cannot_be_served_are_refused_before_anything_is_loaded(kernels_are, given, said):
    kernels_are(WORKING)
    if said is None:
        policy.check(arguments(**given), Settings())
    else:
        with pytest.raises(IntegrationError, match=said):
            policy.check(arguments(**given), Settings())


def test_w8a8_needs_our_linears_and_torchs_attention_will_do(kernels_are):
    kernels_are(WORKING)
    asked = arguments(attention_backend="torch_native", quantization="w8a8_int8")
    policy.check(asked, Settings("packed"))
    with pytest.raises(IntegrationError, match="SGLANG_RVV_LINEAR=packed"):
        policy.check(arguments(quantization="w8a8_int8"), Settings("torch", ()))


@pytest.mark.parametrize("given", [{"kv_cache_dtype": "int8"}, {"quantization": "w8a8_int8"}])
def test_where_kernels_are_missing_a_refusal_tells_why(kernels_are, given):
    kernels_are(MISSING)
    with pytest.raises(IntegrationError, match="sgl_kernel cannot be loaded: no such file"):
        policy.check(arguments(attention_backend="torch_native", **given), Settings())


@pytest.mark.parametrize("phase", ["prefill_attention_backend", "decode_attention_backend"])
def test_an_int8_cache_is_refused_where_one_phase_has_another_backend(kernels_are, phase):
    """SGLang has an attention backend for each phase; torch would find codes."""
    kernels_are(WORKING)
    with pytest.raises(IntegrationError, match="torch_native is active"):
        policy.check(arguments(kv_cache_dtype="int8", **{phase: "torch_native"}), Settings())
    with pytest.raises(IntegrationError, match="torch_native is active"):
        policy.check(arguments(attention_backend="torch_native", kv_cache_dtype="int8", **{phase: "rvv"}), Settings())
    policy.check(arguments(kv_cache_dtype="int8", **{phase: "rvv"}), Settings())


def test_capabilities_tell_what_they_are():
    assert str(WORKING) == "kernels abababababab (VLEN 256, zvfh)"
    assert str(Capability(None, "cd" * 32, True, False, 128)) == "kernels cdcdcdcdcdcd (VLEN 128, no zvfh)"
    assert str(Capability(None, "cd" * 32)) == "kernels cdcdcdcdcdcd (no RVV, portable)"
    assert str(MISSING) == "no kernels" and not MISSING.usable
    lost = without(WORKING, "no operator x")
    assert not lost.usable and lost.why_not == "no operator x" and lost.vlen_bits == 256


@pytest.mark.parametrize(
    ("n", "k", "size", "bytes_"),
    [(32, 4, 2, 256), (1, 1, 2, 64), (33, 4, 2, 512), (1536, 1024, 2, 3 << 20), (70, 96, 1, 96 * 96)],
)
def test_a_packed_weight_takes_whole_blocks(n, k, size, bytes_):
    assert kernels.packed_bytes(n, k, size) == bytes_
