"""Wheels, from an index that is a folder of wheels that the tests make."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.provide.wheel import WheelName, fetch_wheel, unpack_wheel

# Tags of no machine that runs this test: what counts is the wheel's name.
FOREIGN = "demo_pkg-1.5-cp35-cp35m-manylinux_2_99_s390x.whl"
MODULE = b"answer = 42\n"
INFO = "demo_pkg-1.5.dist-info"


def record_hash(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make_wheel(path: Path, extra: dict[str, bytes] | None = None, record: str | None = None) -> Path:
    files = {
        "demo_pkg/__init__.py": MODULE,
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.5\nRequires-Python: <3\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{name},{record_hash(content)},{len(content)}" for name, content in files.items()]
    text = record if record is not None else "\n".join([*lines, f"{INFO}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, **(extra or {}), f"{INFO}/RECORD": text.encode()}.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.parametrize("name", [FOREIGN, "demo_pkg-1.5-py3-none-any.whl", "demo_pkg-1.5-py2.py3-none-any.whl"])
def test_a_wheel_of_any_platform_is_fetched_by_its_name(index: Path, tmp_path: Path, name: str) -> None:
    source = make_wheel(index / name)
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    wheel = fetch_wheel("demo-pkg==1.5", name, sha256, tmp_path / "wheels")
    assert wheel == tmp_path / "wheels" / name
    assert wheel.read_bytes() == source.read_bytes()
    source.unlink()
    assert fetch_wheel("demo-pkg==1.5", name, sha256, tmp_path / "wheels") == wheel


def test_a_wrong_pin_names_both_hashes_before_and_after_the_download(index: Path, tmp_path: Path) -> None:
    sha256 = hashlib.sha256(make_wheel(index / FOREIGN).read_bytes()).hexdigest()
    for _ in range(2):
        with pytest.raises(ManifestError) as caught:
            fetch_wheel("demo-pkg==1.5", FOREIGN, "0" * 64, tmp_path / "wheels", where="lock.yaml:7")
        assert sha256 in caught.value.cause
        assert "0" * 64 in caught.value.cause
        assert caught.value.where == "lock.yaml:7"
        fetch_wheel("demo-pkg==1.5", FOREIGN, sha256, tmp_path / "wheels")


def test_a_wheel_that_changes_in_the_cache_is_found(index: Path, tmp_path: Path) -> None:
    sha256 = hashlib.sha256(make_wheel(index / FOREIGN).read_bytes()).hexdigest()
    wheel = fetch_wheel("demo-pkg==1.5", FOREIGN, sha256, tmp_path / "wheels")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(ManifestError, match="remove"):
        fetch_wheel("demo-pkg==1.5", FOREIGN, sha256, tmp_path / "wheels")


def test_a_version_that_the_index_lacks_is_a_wrong_pin(index: Path, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no wheel of demo-pkg==1\.6"):
        fetch_wheel("demo-pkg==1.6", "demo_pkg-1.6-py3-none-any.whl", "0" * 64, tmp_path / "wheels")


def test_without_an_index_the_machine_lacks_a_network(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(EnvironmentLacks, match="no package index can be reached"):
        fetch_wheel("demo-pkg==1.6", "demo_pkg-1.6-py3-none-any.whl", "0" * 64, tmp_path / "wheels")


@pytest.mark.parametrize(
    ("requirement", "filename", "sha256"),
    [
        ("other==1.5", FOREIGN, "0" * 64),
        ("demo-pkg==1.4", FOREIGN, "0" * 64),
        ("demo-pkg==1.5", FOREIGN, "latest"),
        ("demo-pkg==1.5", "demo_pkg-1.5.tar.gz", "0" * 64),
        ("demo-pkg==1.5", "../demo_pkg-1.5-py3-none-any.whl", "0" * 64),
    ],
)
def test_pins_that_disagree_are_refused_without_pip(
    tmp_path: Path, requirement: str, filename: str, sha256: str
) -> None:
    with pytest.raises(ManifestError):
        fetch_wheel(requirement, filename, sha256, tmp_path)


def test_the_tags_are_taken_from_the_name() -> None:
    name = WheelName.parse("a-1.0-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    assert name.download_options() == [
        "--ignore-requires-python",
        *("--platform", "manylinux_2_17_x86_64"),
        *("--platform", "manylinux2014_x86_64"),
        *("--abi", "abi3"),
        *("--implementation", "cp"),
        *("--python-version", "3.8"),
    ]


def test_a_wheel_is_unpacked_as_its_record_says(tmp_path: Path) -> None:
    folder = unpack_wheel(make_wheel(tmp_path / FOREIGN), tmp_path / "site")
    assert (folder / "demo_pkg" / "__init__.py").read_bytes() == MODULE
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 4
    with pytest.raises(RvvbenchError, match="something already"):
        unpack_wheel(tmp_path / FOREIGN, folder)


@pytest.mark.parametrize(
    ("extra", "record", "cause"),
    [
        ({"demo_pkg/extra.py": b"x"}, None, r"RECORD does not list demo_pkg/extra\.py"),
        ({"../outside.py": b"x"}, None, "leads outside"),
        ({"/outside.py": b"x"}, None, "leads outside"),
        ({"demo_pkg/__init__.py": b"answer = 43\n"}, None, "RECORD lists"),
        (None, f"demo_pkg/gone.py,{record_hash(b'')},0\n", "which the wheel does not hold"),
        (None, "demo_pkg/__init__.py,,\n", "does not list"),
        (None, "demo_pkg/__init__.py,md5=abc,12\n", "hash md5"),
    ],
)
def test_a_wheel_that_is_not_what_its_record_says_is_not_unpacked(
    tmp_path: Path, extra: dict[str, bytes] | None, record: str | None, cause: str
) -> None:
    wheel = make_wheel(tmp_path / FOREIGN, extra, record)
    with pytest.raises(RvvbenchError, match=cause):
        unpack_wheel(wheel, tmp_path / "deep" / "site")
    assert not (tmp_path / "deep" / "site").exists()
    assert not (tmp_path / "deep" / "outside.py").exists()
    assert list((tmp_path / "deep").iterdir()) == []


def test_a_link_in_a_wheel_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / FOREIGN)
    link = zipfile.ZipInfo("demo_pkg/link.py")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(RvvbenchError, match="holds a link"):
        unpack_wheel(wheel, tmp_path / "site")


def test_a_damaged_archive_is_no_wheel(tmp_path: Path) -> None:
    (tmp_path / FOREIGN).write_bytes(b"PK not a zip")
    with pytest.raises(RvvbenchError, match="damaged"):
        unpack_wheel(tmp_path / FOREIGN, tmp_path / "site")
