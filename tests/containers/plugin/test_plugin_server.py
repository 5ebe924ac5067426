"""Stock servers, each check of server_in_image.py a test; one container."""

from __future__ import annotations

import pytest

from tests.containers.plugin.bench import Bench, Checked, checks_of

# `long`: four servers take two and a half minutes.
pytestmark = [pytest.mark.container, pytest.mark.long]

MODULE = "server_in_image"


@pytest.fixture(scope="module")
def checked(plugin_bench: Bench) -> Checked:
    return plugin_bench.checks(MODULE)


@pytest.mark.parametrize("check", checks_of(MODULE))
def test_server(checked: Checked, check: str) -> None:
    checked.hold(check)
