from __future__ import annotations

from pathlib import Path

import pytest
from kernel_tree import Tree, write_tree

from rvvbench.observe.kernel_files import Roots


@pytest.fixture
def board(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Roots:
    """A machine that tells nothing."""
    return write_tree(tmp_path / "bare", {})
