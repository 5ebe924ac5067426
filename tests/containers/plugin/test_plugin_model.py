"""The small Llama through SGLang's ModelRunner, each check of model_in_image.py a test; one container."""

from __future__ import annotations

import pytest

from tests.containers.plugin.bench import Bench, Checked, checks_of

pytestmark = pytest.mark.container

MODULE = "model_in_image"


@pytest.fixture(scope="module")
def checked(plugin_bench: Bench) -> Checked:
    return plugin_bench.checks(MODULE)


@pytest.mark.parametrize("check", checks_of(MODULE))
def test_model(checked: Checked, check: str) -> None:
    checked.hold(check)
