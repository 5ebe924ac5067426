import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.runner import server_info
from rvvbench.runner.failure import ServingFailed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_a_server_that_says_what_it_was_given_differs_in_nothing(arguments):
    assert not list(server_info.differences(arguments, {**arguments, "more": 1}))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (3600, 3600.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        ([1, [2]], [1, [2]], True),
        ([1], [1, 2], False),
        ([True], [1], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_values_are_compared_as_json(one, other, equal):
    assert server_info.same(one, other) is equal
    assert server_info.same(other, one) is equal


def test_a_field_that_is_not_there_is_a_difference_and_not_a_null():
    assert list(server_info.differences({"gone": None}, {})) == ["gone: given null, /server_info does not have it"]


def test_all_differences_are_named_at_once():
    with pytest.raises(ServingFailed, match="a: given 1, it says 2; b: given true, it says false") as caught:
        server_info.check({"a": 1, "b": True, "c": 3}, {"a": 2, "b": False, "c": 3})
    assert caught.value.type == "server-args"


async def never(*_):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((500, b"{}"), "request-failed", "/server_info answered 500: b'{}'"),
        ((200, b"[]"), "request-failed", "/server_info answered 200: b'[]'"),
        ((200, b"no json"), "request-failed", "/server_info: Expecting value"),
        (ConnectionError("refused"), "request-failed", "/server_info: refused"),
        (never, "request-timeout", "/server_info did not answer within 0.05 s"),
    ],
)
def test_a_server_that_does_not_tell_of_itself_is_an_error(monkeypatch, answer, kind, said):
    async def get(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(server_info, "get", answer if callable(answer) else get)
    with pytest.raises(ServingFailed) as caught:
        asyncio.run(asyncio.wait_for(server_info.fetch("127.0.0.1", 1, 0.05), 5))
    assert caught.value.type == kind
    assert said in str(caught.value)


@pytest.mark.parametrize("info", [{}, {"internal_states": []}, {"internal_states": [{"rvv": {"pid": 1}}]}])
def test_a_scheduler_that_tells_nothing_of_what_it_ran_is_an_error(info):
    with pytest.raises(ServingFailed, match="tells nothing of what ran"):
        server_info.ran(info)
