"""Norms, gated activations and rotary embeddings in this machine's runtime image; row_in_image.py has the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvvbench.engine.container import ContainerExit


@pytest.mark.container
def test_rows_are_right_refuse_what_is_wrong_and_say_what_ran(
    check_in_image: Callable[[str], ContainerExit],
) -> None:
    ended = check_in_image("row_in_image.py")
    assert ended.exit_code == 0, ended.output
    assert "as they should be" in ended.output
