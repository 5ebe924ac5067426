"""Python wheels, pinned by file name and SHA-256."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive, sha256_of

_OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries exceeded|"
    r"Temporary failure in name resolution|Network is unreachable|Connection refused|Connection broken",
)


@dataclass(frozen=True)
class WheelName:
    """A wheel's file name, taken apart (packaging.python.org, "Binary distribution format")."""

    distribution: str
    version: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    @staticmethod
    def parse(filename: str) -> WheelName:
        parts = filename.removesuffix(".whl").split("-")
        if not filename.endswith(".whl") or len(parts) not in (5, 6) or "/" in filename:
            raise ManifestError(f"{filename!r} is not the name of a wheel", mend="name-version-python-abi-platform.whl")
        pythons, abis, platforms = (tuple(tags.split(".")) for tags in parts[-3:])
        return WheelName(parts[0], parts[1], pythons, abis, platforms)

    def download_options(self) -> list[str]:
        """Options that make pip take this wheel on every machine: the wheel's tags, not the machine's."""
        options = ["--ignore-requires-python"]
        for platform in self.platforms:
            options += ["--platform", platform]
        for abi in self.abis:
            options += ["--abi", abi]
        python = re.fullmatch(r"([a-z]+)(\d)(\d*)", self.pythons[-1])
        if python is None:
            raise ManifestError(f"unknown Python tag {self.pythons[-1]!r}", mend="a tag such as py3 or cp311")
        version = f"{python[2]}.{python[3]}" if python[3] else python[2]
        return [*options, "--implementation", python[1], "--python-version", version]


def fetch_wheel(requirement: str, filename: str, sha256: str, folder: Path, where: str | None = None) -> Path:
    """The wheel `filename` with that SHA-256 (64 hex digits) in `folder`: downloaded with pip if it is not there.

    `requirement` is `name==version`. Uses the index that pip is set up with, and installs nothing. Raises
    `ManifestError` (at `where`) with both hashes if the wheel, downloaded or found, has another one, or if the index
    has no such wheel; `EnvironmentLacks` without network or pip.
    """
    name = WheelName.parse(filename)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ManifestError(f"{sha256!r} is not a sha256", where=where, mend="pin 64 hex digits")
    if _normal(requirement) != _normal(f"{name.distribution}=={name.version}"):
        raise ManifestError(f"{filename} is not a wheel of {requirement}", where=where, mend="make the two pins agree")
    wheel = folder / filename
    with exclusive(folder, filename):
        if not wheel.exists():
            with draft_of(wheel) as scratch:
                _download(requirement, name, sha256, scratch, where)
                downloaded = sorted(scratch.glob("*.whl"))
                if [path.name for path in downloaded] != [filename]:
                    found = ", ".join(path.name for path in downloaded) or "nothing"
                    raise ManifestError(f"pip downloaded {found} instead of {filename}", where=where)
                _check(downloaded[0], sha256, where, "correct the pin")
                downloaded[0].rename(wheel)
    _check(wheel, sha256, where, f"correct the pin; if it is right, remove {wheel}: the next run downloads it again")
    return wheel


def _normal(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return f"{normal_name(name.strip())}=={version.strip()}"


def normal_name(distribution: str) -> str:
    """The one spelling of a distribution's name; packaging.python.org, "Names and normalization"."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _check(wheel: Path, sha256: str, where: str | None, mend: str) -> None:
    observed = sha256_of(wheel)
    if observed != sha256:
        raise ManifestError(f"{wheel.name} has sha256 {observed}, pinned is {sha256}", where=where, mend=mend)


def _download(requirement: str, name: WheelName, sha256: str, folder: Path, where: str | None) -> None:
    listing = folder / "requirements.txt"
    listing.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "download",
        "--quiet",
        "--no-deps",
    ]
    command += ["--only-binary=:all:", "--require-hashes", "--retries", "2", "--dest", str(folder)]
    command += [*name.download_options(), "-r", str(listing)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return
    output = result.stdout + result.stderr
    if "No module named pip" in output:
        raise EnvironmentLacks("this Python has no pip", where=sys.executable, mend="python3 -m ensurepip")
    got = re.search(r"Got\s+([0-9a-f]{64})", output)
    if got is not None:
        raise ManifestError(
            f"the index serves {requirement} with sha256 {got[1]}, pinned is {sha256}",
            where=where,
            mend="correct the pin",
        )
    if _OFFLINE.search(output):
        raise EnvironmentLacks(
            f"no package index can be reached to download {requirement}",
            mend="connect this machine, or set up pip's index (`pip config list`), and run again",
        )
    if "No matching distribution" in output or "Could not find a version" in output:
        raise ManifestError(
            f"the index has no wheel of {requirement} for {name.platforms[-1]}", where=where, mend="correct the pin"
        )
    raise EnvironmentLacks(f"pip could not download {requirement}: {_last_line(output)}", mend=" ".join(command))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no message"])[-1]


def unpack_wheel(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel into the new folder `folder`, after checking every file against the wheel's RECORD; `folder`.

    The tree is the archive's (a `.data` folder stays as it is). Raises `RvvbenchError` for names that lead outside,
    links, files that RECORD does not list or lists with another hash, listed files that are missing, and a `folder`
    that exists.
    """
    if folder.exists():
        raise RvvbenchError(
            "there is something already where the wheel is to be unpacked", where=str(folder), mend="remove it"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        scratch.chmod(0o755)
        with zipfile.ZipFile(wheel) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            record = _read_record(archive, members, wheel)
            for member in members:
                content = archive.read(member)
                _check_member(member, content, record, wheel)
                target = scratch / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                target.chmod(0o755 if member.external_attr >> 16 & 0o111 else 0o644)
        scratch.rename(folder)
    except zipfile.BadZipFile as error:
        raise RvvbenchError(
            f"the wheel is damaged: {error}", where=str(wheel), mend=f"remove {wheel}; run again"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _read_record(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], wheel: Path) -> dict[str, str]:
    """The hash column of RECORD by file name; every listed file is in the archive, once."""
    names = [member.filename for member in members]
    records = [name for name in names if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)]
    if len(records) != 1 or len(set(names)) != len(names):
        raise RvvbenchError("the wheel has no single RECORD, or a file twice", where=str(wheel))
    rows = csv.reader(io.StringIO(archive.read(records[0]).decode()))
    record = {row[0]: row[1] for row in rows if len(row) == 3}
    missing = sorted(record.keys() - set(names))
    if missing:
        raise RvvbenchError(f"RECORD lists {missing[0]}, which the wheel does not hold", where=str(wheel))
    return record


def _check_member(member: zipfile.ZipInfo, content: bytes, record: dict[str, str], wheel: Path) -> None:
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or "\\" in member.filename or ":" in name.parts[0]:
        raise RvvbenchError(f"the wheel holds a file that leads outside: {member.filename}", where=str(wheel))
    if stat.S_ISLNK(member.external_attr >> 16):
        raise RvvbenchError(f"the wheel holds a link: {member.filename}", where=str(wheel))
    if re.fullmatch(r"[^/]+\.dist-info/RECORD(\.jws|\.p7s)?", member.filename):
        return
    listed = record.get(member.filename)
    if not listed:
        raise RvvbenchError(f"RECORD does not list {member.filename} with a hash", where=str(wheel))
    algorithm, _, expected = listed.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        raise RvvbenchError(f"RECORD lists {member.filename} with the hash {algorithm}", where=str(wheel))
    observed = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=").decode()
    if observed != expected:
        raise RvvbenchError(f"{member.filename} has {algorithm} {observed}, RECORD lists {expected}", where=str(wheel))
