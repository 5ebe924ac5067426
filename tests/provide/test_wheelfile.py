from __future__ import annotations

from pathlib import Path

from rvvbench import project
from rvvbench.provide.plugin import build_plugin, plugin_content
from rvvbench.provide.wheel import unpack_wheel


def test_equal_sources_give_equal_bytes(tmp_path: Path) -> None:
    source = project.root() / "kernels" / "python" / "sglang_rvv"
    first = build_plugin(source, tmp_path / "a")
    second = build_plugin(source, tmp_path / "b")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.sha256 == second.sha256


def test_the_plugin_unpacks_with_its_entry_point_and_its_start_up_file(tmp_path: Path) -> None:
    source = project.root() / "kernels" / "python" / "sglang_rvv"
    site = unpack_wheel(build_plugin(source, tmp_path).path, tmp_path / "site")
    points = next(site.glob("sglang_rvv-*.dist-info/entry_points.txt")).read_text()
    assert "[sglang.srt.platforms]\nrvv = sglang_rvv.platform:activate" in points
    assert (site / "sglang_rvv.pth").is_file()
    assert not list(site.rglob("__pycache__"))


def test_a_platform_wheel_says_so() -> None:
    content = plugin_content(project.root() / "kernels" / "python" / "sglang_rvv")
    assert content.filename == f"sglang_rvv-{content.version}-py3-none-any.whl"


def test_rvv_inductor_unpacks_with_its_headers(tmp_path: Path) -> None:
    source = project.root() / "kernels" / "python" / "rvv_inductor"
    site = unpack_wheel(build_plugin(source, tmp_path).path, tmp_path / "site")
    headers = {path.name for path in (site / "rvv_inductor" / "include" / "rvv_inductor").iterdir()}
    assert headers == {path.name for path in (source / "src/rvv_inductor/include/rvv_inductor").iterdir()}
    assert {"vec_rvv.h", "lanes.h", "elementary.h"} <= headers
    assert (site / "rvv_inductor" / "install.py").is_file()
    assert not (site / "rvv_inductor" / "include" / "rvv_inductor" / "__pycache__").exists()


def test_a_wheel_has_what_is_included_from_elsewhere(tmp_path: Path) -> None:
    source = tmp_path / "python" / "package"
    (source / "src" / "package").mkdir(parents=True)
    (source / "src" / "package" / "__init__.py").write_text("")
    (tmp_path / "core.h").write_text("int one;")
    (source / "pyproject.toml").write_text(
        '[project]\nname = "package"\nversion = "1"\n'
        '[tool.hatch.build.targets.wheel.force-include]\n"../../core.h" = "package/include/core.h"\n'
    )
    assert plugin_content(source).files == {"package/__init__.py": b"", "package/include/core.h": b"int one;"}
