"""The arguments of regional compilation: what each means alone and together, and what contradicts."""

import itertools
from types import SimpleNamespace

import pytest
from sglang_rvv import kernels, policy
from sglang_rvv.kernels import Capability
from sglang_rvv.regional.policy import RegionalPolicy, check, resolve
from sglang_rvv.settings import PROJECTIONS, Settings
from sglang_rvv.upstream import IntegrationError

WORKING = Capability(None, "ab" * 32, True, True, 256)


def arguments(enable=False, mode=None, packed=None, small=False, **given):
    defaults = {
        "enable_cpu_rvv_inductor": enable,
        "cpu_compile_mode": mode,
        "cpu_rvv_packed_weight_mode": packed,
        "cpu_rvv_small_batch": small,
        "attention_backend": "torch_native",
        "prefill_attention_backend": None,
        "decode_attention_backend": None,
        "kv_cache_dtype": "auto",
        "quantization": None,
        "dtype": "bfloat16",
        "enable_torch_compile": False,
        "speculative_algorithm": None,
        "cpu_rvv_memory_budget_mib": None,
    }
    return SimpleNamespace(**(defaults | given))


def test_without_a_flag_nothing_is_compiled():
    assert resolve(arguments()) == RegionalPolicy("off", "off", False)
    assert resolve(SimpleNamespace()) == RegionalPolicy()
    assert not resolve(arguments()).active


def test_the_one_flag_alone():
    found = resolve(arguments(enable=True))
    assert found == RegionalPolicy("regional", "explicit", True)
    assert found.report() == {
        "compile_mode": "regional",
        "packed_weight_mode": "explicit",
        "small_batch": True,
        "mode": "explicit_packed",
        "buckets": [1, 2, 4, 8, 16, 32, 64, 128],
        "full_graph": False,
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"mode": "regional"}, ("regional", "off", False)),
        ({"mode": "regional", "packed": "explicit"}, ("regional", "explicit", False)),
        ({"mode": "regional", "packed": "off", "small": True}, ("regional", "off", True)),
        ({"mode": "off", "packed": "off"}, ("off", "off", False)),
        ({"enable": True, "packed": "off"}, ("regional", "off", True)),
        ({"enable": True, "mode": "regional", "packed": "explicit", "small": True}, ("regional", "explicit", True)),
    ],
)
def test_the_others_say_it_more_exactly(given, found):
    assert resolve(arguments(**given)) == RegionalPolicy(*found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"enable": True, "mode": "off"}, "--cpu-compile-mode off for none"),
        ({"packed": "explicit"}, "--cpu-rvv-packed-weight-mode explicit is for compiled regions"),
        ({"mode": "off", "packed": "explicit"}, "--cpu-rvv-packed-weight-mode explicit is for compiled regions"),
        ({"small": True}, "--cpu-rvv-small-batch is for compiled regions"),
        ({"mode": "off", "small": True}, "--cpu-rvv-small-batch is for compiled regions"),
        ({"mode": "full"}, "--cpu-compile-mode full is not one of regional, off"),
        ({"enable": True, "packed": "auto"}, "--cpu-rvv-packed-weight-mode auto is not one of explicit, off"),
    ],
)
def test_contradictions_are_refused_and_named(given, said):
    with pytest.raises(IntegrationError, match=said):
        resolve(arguments(**given))


def test_every_combination_is_a_policy_or_an_error():
    for enable, mode, packed, small in itertools.product(
        [True, False], [None, "regional", "off"], [None, "explicit", "off"], [True, False]
    ):
        compiles = mode == "regional" or (enable and mode is None)
        contradicts = (enable and mode == "off") or (not compiles and (packed == "explicit" or small))
        if contradicts:
            with pytest.raises(IntegrationError):
                resolve(arguments(enable, mode, packed, small))
            continue
        found = resolve(arguments(enable, mode, packed, small))
        assert found.active == compiles
        assert found.packs == (compiles and (packed or ("explicit" if enable else "off")) == "explicit")
        assert found.small_batch == (compiles and (small or enable))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"quantization": "w8a8_int8"}, "--quantization w8a8_int8"),
        ({"enable_lora": True}, "LoRA"),
        ({"dtype": "float16"}, "--dtype float16"),
    ],
)
def test_what_regions_do_not_go_with(given, said):
    with pytest.raises(IntegrationError, match=said):
        check(resolve(arguments(enable=True)), arguments(enable=True, **given), Settings())
    check(RegionalPolicy(), arguments(**given), Settings())


def test_linears_of_kernels_and_regions_exclude_each_other():
    with pytest.raises(IntegrationError, match="SGLANG_RVV_LINEAR=packed"):
        check(resolve(arguments(enable=True)), arguments(enable=True), Settings(linear="packed"))


@pytest.mark.parametrize("backend", ["torch_native", "rvv"])
def test_regions_take_the_linears_and_leave_attention_as_chosen(backend):
    found = policy.decide(Settings(), arguments(enable=True, attention_backend=backend), lambda: WORKING)
    assert found.regional.active
    assert found.linears == ()
    assert found.attention == found.elementwise == (backend == "rvv")
    assert found.uses_kernels
    assert policy.decide(Settings(), arguments(attention_backend="rvv"), lambda: WORKING).linears == PROJECTIONS


def test_row_major_regions_need_no_kernels():
    def must_not_be_asked():
        raise AssertionError("the kernels were looked for where nobody wants them")

    found = policy.decide(Settings(), arguments(mode="regional"), must_not_be_asked)
    assert found.regional.active
    assert not found.uses_kernels
    assert found.reasons == ()


def test_explicit_packing_without_kernels_is_an_error_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr(kernels, "capability", lambda: Capability("sgl_kernel cannot be loaded: no such file"))
    with pytest.raises(IntegrationError, match="no such file"):
        policy.check(arguments(enable=True), Settings())
    policy.check(arguments(mode="regional"), Settings())
