"""Attention backend, packed weights and elementwise modules, each check of those scripts a test; one container."""

from __future__ import annotations

import pytest

from tests.containers.plugin.bench import Bench, Checked, checks_of

pytestmark = pytest.mark.container

MODULES = ("ownership_in_image", "elementwise_in_image", "attention_in_image")


@pytest.fixture(scope="module")
def checked(plugin_bench: Bench) -> Checked:
    return plugin_bench.checks(*MODULES)


@pytest.mark.parametrize("check", checks_of(*MODULES))
def test_parts(checked: Checked, check: str) -> None:
    checked.hold(check)
