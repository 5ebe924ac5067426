import pytest
from sglang_rvv.settings import PROJECTIONS, Settings
from sglang_rvv.upstream import IntegrationError


def test_an_empty_environment_packs_nothing():
    assert Settings.from_environment({}).packed == ()


def test_torch_packs_nothing_whatever_projections_are_named():
    assert Settings.from_environment({"SGLANG_RVV_LINEAR": "torch", "SGLANG_RVV_PROJECTIONS": "o_proj"}).packed == ()


def test_packed_without_a_list_means_all_five():
    assert Settings.from_environment({"SGLANG_RVV_LINEAR": "packed"}).packed == PROJECTIONS


def test_the_list_keeps_the_order_of_a_forward_pass():
    env = {"SGLANG_RVV_LINEAR": "packed", "SGLANG_RVV_PROJECTIONS": " lm_head, qkv_proj"}
    assert Settings.from_environment(env).packed == ("qkv_proj", "lm_head")


@pytest.mark.parametrize("projections", ["qkv_proj,up_proj", ",", ""])
def test_a_wrong_or_empty_list_is_an_error_that_names_the_variable(projections):
    with pytest.raises(IntegrationError, match="SGLANG_RVV_PROJECTIONS"):
        Settings.from_environment({"SGLANG_RVV_LINEAR": "packed", "SGLANG_RVV_PROJECTIONS": projections})


def test_an_unknown_kind_of_linear_is_an_error():
    with pytest.raises(IntegrationError, match="SGLANG_RVV_LINEAR='Packed'"):
        Settings.from_environment({"SGLANG_RVV_LINEAR": "Packed"})
