import pytest
from sglang_rvv.stand_ins import build


@pytest.fixture
def triton():
    return build("triton")


def test_a_kernel_can_be_defined_in_every_way_that_sglang_does(triton):
    @triton.autotune(configs=[triton.Config({"BLOCK": 1}, num_warps=4)], key=["n"])
    @triton.heuristics({"EVEN": lambda args: True})
    @triton.jit(do_not_specialize=["n"])
    def tuned(x, n: "triton.language.constexpr"):
        pass

    @triton.jit
    def plain(x):
        pass

    assert "plain" in repr(plain) and "tuned" in repr(tuned)


def test_launching_a_kernel_names_it_and_says_why_not(triton):
    @triton.jit
    def add_kernel(x):
        pass

    with pytest.raises(RuntimeError, match=r"add_kernel.*no Triton"):
        add_kernel[(1,)](0)


def test_types_can_be_subclassed_and_asked_for(triton):
    class Mine(triton.KernelInterface):
        pass

    assert isinstance(Mine(), triton.KernelInterface)
    assert not isinstance(3, triton.language.constexpr)


def test_there_is_no_active_driver_which_sglang_takes_for_a_cpu(triton):
    with pytest.raises(AttributeError):
        triton.runtime.driver.active.get_current_target()


def test_the_arithmetic_that_sglang_borrows_is_right(triton):
    assert [triton.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [triton.next_power_of_2(n) for n in (0, 1, 2, 3, 64, 65)] == [0, 1, 2, 4, 64, 128]


def test_attributes_of_stand_in_classes_are_their_names():
    assert build("openai_harmony").Role.USER == "USER"


def test_private_names_are_not_invented(triton):
    assert not hasattr(triton, "__wrapped__")
    assert not hasattr(triton.jit, "__wrapped__")
