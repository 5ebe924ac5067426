"""The attention operators in the runtime image of this machine's architecture; attention_in_image.py has the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvvbench.engine.container import ContainerExit


@pytest.mark.container
def test_attention_is_right_refuses_what_is_out_of_range_and_says_what_it_writes(
    check_in_image: Callable[[str], ContainerExit],
) -> None:
    ended = check_in_image("attention_in_image.py")
    assert ended.exit_code == 0, ended.output
    assert "as they should be" in ended.output
