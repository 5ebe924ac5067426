"""scripts/apt-backports.sh against apt sources as machines have them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/apt-backports.sh"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def derive(apt: Path, files: dict[str, str], codename: str = "bookworm") -> subprocess.CompletedProcess[str]:
    (apt / "sources.list.d").mkdir(exist_ok=True)
    for name, text in files.items():
        (apt / name).write_text(text)
    return subprocess.run([SCRIPT, codename, apt], capture_output=True, text=True, check=False)


def stanza(uri: str, signed_by: str | None = None) -> str:
    lines = ["Types: deb", f"URIs: {uri}", "Suites: bookworm-backports", "Components: main"]
    return "\n".join([*lines, *([f"Signed-By: {signed_by}"] if signed_by else [])]) + "\n"


def test_deb822_with_comments_inside_a_stanza_as_container_images_have_it(tmp_path: Path) -> None:
    text = f"""Types: deb
# a comment
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: {KEYRING}

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
Signed-By: {KEYRING}
"""
    done = derive(tmp_path, {"sources.list.d/debian.sources": text})
    assert (done.returncode, done.stdout) == (0, stanza("http://mirror.test/debian", KEYRING))


def test_one_line_sources_as_mmdebstrap_and_the_installer_write_them(tmp_path: Path) -> None:
    text = """#deb cdrom:[Debian 12 - Official amd64 NETINST]/ bookworm main
deb http://mirror.test/debian/ bookworm main non-free-firmware
deb-src http://mirror.test/debian/ bookworm main
deb http://security.test/debian-security bookworm-security main
deb http://mirror.test/debian/ bookworm-updates main non-free-firmware # later
"""
    done = derive(tmp_path, {"sources.list": text})
    assert (done.returncode, done.stdout) == (0, stanza("http://mirror.test/debian"))


def test_options_of_a_one_line_source_lend_their_key(tmp_path: Path) -> None:
    text = f"deb [arch=amd64 signed-by={KEYRING}] https://mirror.test/debian bookworm main\n"
    assert derive(tmp_path, {"sources.list": text}).stdout == stanza("https://mirror.test/debian", KEYRING)


def test_a_mirror_with_another_path_is_debian_when_it_serves_the_updates_too(tmp_path: Path) -> None:
    text = "deb http://cache.test/apt/d12 bookworm main\ndeb http://cache.test/apt/d12 bookworm-updates main\n"
    assert derive(tmp_path, {"sources.list": text}).stdout == stanza("http://cache.test/apt/d12")


def test_another_vendors_bookworm_is_not_taken_for_debians(tmp_path: Path) -> None:
    files = {
        "sources.list.d/a-vendor.list": "deb https://vendor.test/node bookworm main\n",
        "sources.list.d/b-docker.list": "deb https://vendor.test/linux/debian bookworm stable\n",
        "sources.list.d/debian.sources": "Types: deb\nURIs: http://mirror.test/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main\n",
    }
    assert derive(tmp_path, files).stdout == stanza("http://mirror.test/debian")


def test_without_debians_own_source_it_fails_and_says_so(tmp_path: Path) -> None:
    done = derive(tmp_path, {"sources.list": "deb https://vendor.test/node bookworm main\n"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "serves Debian bookworm main" in done.stderr


def test_without_any_source_it_fails(tmp_path: Path) -> None:
    assert derive(tmp_path, {}).returncode == 1


@pytest.mark.parametrize(
    "text",
    [
        "deb http://mirror.test/debian bookworm main\ndeb http://other.test/debian bookworm-backports main contrib\n",
        "deb http://mirror.test/debian bookworm main\ndeb [arch=amd64] http://other.test/x bookworm-backports main\n",
    ],
)
def test_backports_that_are_there_are_not_added_again(tmp_path: Path, text: str) -> None:
    done = derive(tmp_path, {"sources.list": text})
    assert (done.returncode, done.stdout) == (0, "")


def test_the_file_that_setup_wrote_is_derived_again_and_not_taken_for_the_machines_own(tmp_path: Path) -> None:
    text = "deb http://mirror.test/debian bookworm main\n"
    once = derive(tmp_path, {"sources.list": text}).stdout
    again = derive(tmp_path, {"sources.list": text, "sources.list.d/rvvbench-backports.sources": once}).stdout
    assert again == once != ""


def test_a_disabled_stanza_does_not_count(tmp_path: Path) -> None:
    text = """Enabled: no
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-backports
Components: main
"""
    assert derive(tmp_path, {"sources.list.d/debian.sources": text}).returncode == 1


def test_files_that_apt_does_not_read_do_not_count(tmp_path: Path) -> None:
    text = "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\n"
    assert derive(tmp_path, {"sources.list.d/debian.sources.disabled": text}).returncode == 1


def test_a_key_inside_the_source_is_carried_over(tmp_path: Path) -> None:
    key = "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----"
    text = f"Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\nComponents: main\nSigned-By:{key}\n"
    assert derive(tmp_path, {"sources.list.d/debian.sources": text}).stdout == stanza("http://mirror.test/debian", key)


def test_folded_fields_any_case_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    lines = ["types: deb deb-src", "uris: http://mirror.test/debian/", "SUITES:", " bookworm", " bookworm-updates"]
    text = "\r\n".join([*lines, "components: main", ""])
    assert derive(tmp_path, {"sources.list.d/debian.sources": text}).stdout == stanza("http://mirror.test/debian")


def test_the_end_of_a_file_ends_its_last_stanza(tmp_path: Path) -> None:
    files = {
        "sources.list.d/a.sources": "Types: deb\nURIs: http://a.test/debian\nSuites: bookworm\nComponents: main",
        "sources.list.d/b.sources": "Types: deb\nURIs: http://b.test/x\nSuites: other\nComponents: main",
    }
    assert derive(tmp_path, files).stdout == stanza("http://a.test/debian")
