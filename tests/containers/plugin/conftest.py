"""One bench for all tests of the plugin in the image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.plugin.bench import Bench, bench


@pytest.fixture(scope="session")
def plugin_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("sites")) as made:
        yield made
