"""Attention over an INT8 cache in the runtime image of this machine; int8_attention_in_image.py has the checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvvbench.engine.container import ContainerExit


@pytest.mark.container
def test_int8_attention_quantises_as_torch_does_and_refuses_scales_that_mean_nothing(
    check_in_image: Callable[[str], ContainerExit],
) -> None:
    ended = check_in_image("int8_attention_in_image.py")
    assert ended.exit_code == 0, ended.output
    assert "as it should be" in ended.output
