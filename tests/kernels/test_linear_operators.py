"""The linear operators in the runtime image of this machine's architecture; linear_in_image.py has the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvvbench.engine.container import ContainerExit


@pytest.mark.container
def test_linears_are_right_refuse_what_is_wrong_and_say_what_ran(
    check_in_image: Callable[[str], ContainerExit],
) -> None:
    ended = check_in_image("linear_in_image.py")
    assert ended.exit_code == 0, ended.output
    assert "as they should be" in ended.output
