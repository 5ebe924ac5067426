import pytest
from sglang_rvv.settings import PROJECTIONS, Settings
from sglang_rvv.upstream import IntegrationError


def test_an_empty_environment_leaves_everything_to_the_attention_backend():
    assert Settings.from_environment({}) == Settings("auto", PROJECTIONS, "auto", False)


def test_torch_packs_nothing_whatever_projections_are_named():
    env = {"SGLANG_RVV_LINEAR": "torch", "SGLANG_RVV_PROJECTIONS": "o_proj"}
    assert Settings.from_environment(env).projections == ()


@pytest.mark.parametrize("linear", ["auto", "packed"])
def test_without_a_list_all_five_may_be_packed(linear):
    assert Settings.from_environment({"SGLANG_RVV_LINEAR": linear}) == Settings(linear)


def test_the_list_keeps_the_order_of_a_forward_pass():
    env = {"SGLANG_RVV_LINEAR": "packed", "SGLANG_RVV_PROJECTIONS": " lm_head, qkv_proj"}
    assert Settings.from_environment(env).projections == ("qkv_proj", "lm_head")


@pytest.mark.parametrize("linear", ["auto", "packed"])
@pytest.mark.parametrize("projections", ["qkv_proj,up_proj", ",", ""])
def test_a_wrong_or_empty_list_is_an_error_that_names_the_variable(linear, projections):
    with pytest.raises(IntegrationError, match="SGLANG_RVV_PROJECTIONS"):
        Settings.from_environment({"SGLANG_RVV_LINEAR": linear, "SGLANG_RVV_PROJECTIONS": projections})


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("SGLANG_RVV_LINEAR", "Packed", "auto, torch, packed"),
        ("SGLANG_RVV_LINEAR", "", "auto, torch, packed"),
        ("SGLANG_RVV_ELEMENTWISE", "packed", "auto, torch, kernels"),
        ("SGLANG_RVV_DEBUG_WEIGHTS", "true", "0, 1"),
    ],
)
def test_an_unknown_value_is_an_error_that_tells_the_known_ones(name, value, known):
    with pytest.raises(IntegrationError, match=f"{name}={value!r} is not one of {known}"):
        Settings.from_environment({name: value})


@pytest.mark.parametrize("value", ["auto", "torch", "kernels"])
def test_elementwise_operators_are_chosen_apart_from_linears(value):
    found = Settings.from_environment({"SGLANG_RVV_ELEMENTWISE": value, "SGLANG_RVV_LINEAR": "torch"})
    assert (found.elementwise, found.linear) == (value, "torch")


def test_the_version_counter_is_looked_at_only_when_asked():
    assert not Settings.from_environment({"SGLANG_RVV_DEBUG_WEIGHTS": "0"}).debug_weights
    assert Settings.from_environment({"SGLANG_RVV_DEBUG_WEIGHTS": "1"}).debug_weights
    assert Settings.from_environment({"SGLANG_RVV_DEBUG_WEIGHTS": "1", "SGLANG_RVV_LINEAR": "torch"}).debug_weights


def test_the_environment_of_the_process_is_read_where_none_is_given(monkeypatch):
    monkeypatch.setenv("SGLANG_RVV_LINEAR", "torch")
    assert Settings.from_environment().linear == "torch"
