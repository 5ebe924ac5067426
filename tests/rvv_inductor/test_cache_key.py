from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def package(tmp_path: Path) -> Path:
    from rvv_inductor.cache_key import PACKAGE

    return Path(shutil.copytree(PACKAGE, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__")))


def digest(package: Path) -> str:
    from rvv_inductor.cache_key import sources_digest

    return sources_digest.__wrapped__(package)


def test_the_tag_names_version_isa_and_sources() -> None:
    from rvv_inductor import __version__
    from rvv_inductor.cache_key import PACKAGE, sources_digest, tag

    assert tag("rv64gcv_zicbop") == f"rvv_inductor-{__version__}-rv64gcv_zicbop-{sources_digest(PACKAGE)}"
    assert tag("none") != tag("rv64gcv_zicbop")


def test_a_copy_elsewhere_has_the_same_digest(package: Path) -> None:
    from rvv_inductor.cache_key import PACKAGE

    assert digest(package) == digest(PACKAGE)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"compiled")
    assert digest(package) == digest(PACKAGE)


@pytest.mark.parametrize("name", ["include/rvv_inductor/elementary.h", "include/rvv_inductor/lanes.h", "vec_isa.py"])
def test_one_byte_of_a_header_or_a_module_changes_the_digest(package: Path, name: str) -> None:
    before = digest(package)
    content = (package / name).read_bytes()
    (package / name).write_bytes(content.replace(b"a", b"b", 1))
    assert digest(package) != before


def test_a_header_of_another_name_changes_the_digest(package: Path) -> None:
    before = digest(package)
    folder = package / "include" / "rvv_inductor"
    (folder / "lanes.h").rename(folder / "lines.h")
    assert digest(package) != before


@given(st.lists(st.text("ab-.1", min_size=1), max_size=3))
def test_a_tag_of_somebody_else_is_kept_and_ours_is_there_once(others: list[str]) -> None:
    from rvv_inductor.cache_key import joined

    once = joined("+".join(others), "rvv_inductor-1-a-b")
    assert once.split("+") == [*others, "rvv_inductor-1-a-b"]
    assert joined(once, "rvv_inductor-2-a-b").split("+") == [*others, "rvv_inductor-2-a-b"]
