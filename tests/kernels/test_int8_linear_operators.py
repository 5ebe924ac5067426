"""The W8A8 operators in the runtime image of this machine's architecture; int8_linear_in_image.py has the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvvbench.engine.container import ContainerExit


@pytest.mark.container
def test_w8a8_is_right_refuses_what_is_wrong_and_says_what_ran(
    check_in_image: Callable[[str], ContainerExit],
) -> None:
    ended = check_in_image("int8_linear_in_image.py")
    assert ended.exit_code == 0, ended.output
    assert "as it should be" in ended.output
