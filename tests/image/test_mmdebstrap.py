"""Calling mmdebstrap, and what its failures mean."""

from __future__ import annotations

from rvvbench.errors import EnvironmentLacks, RvvbenchError
from rvvbench.image.mmdebstrap import (
    ExpiredRelease,
    MissingPackage,
    Source,
    arguments,
    explain,
    memory_is_ample,
    parse_apt_settings,
)

EXPIRED = "E: Release file for <mirror>/dists/forky/InRelease is expired (invalid since 24d 14h 25min 0s). Updates"


def explained(*lines: str) -> RvvbenchError:
    return explain(lines, where="x.log")


def test_an_expired_suite_is_told_with_the_flag_that_accepts_it() -> None:
    error = explained("I: running apt-get update...", EXPIRED, "E: mmdebstrap failed to run")
    assert isinstance(error, ExpiredRelease)
    assert "--accept-expired" in str(error.mend)
    assert error.exit_code == 3


def test_a_full_disk_and_a_missing_network_are_told_apart() -> None:
    disk = explained("dpkg: error: failed to write (No space left on device)")
    network = explained("Err:1 <mirror> forky InRelease", "  Temporary failure resolving 'mirror'")
    assert isinstance(disk, EnvironmentLacks) and "space" in disk.cause
    assert isinstance(network, EnvironmentLacks) and "mirror cannot be reached" in network.cause


def test_a_package_that_the_suite_lacks_is_named() -> None:
    error = explained("E: Unable to locate package python3-nonesuch")
    assert isinstance(error, MissingPackage)
    assert error.package == "python3-nonesuch"
    no_candidate = explained("E: Package 'g++' has no installation candidate")
    assert isinstance(no_candidate, MissingPackage) and no_candidate.package == "g++"


def test_other_failures_quote_the_first_error() -> None:
    assert "boom" in explained("I: fine", "E: boom", "E: mmdebstrap failed to run").cause
    assert explained().cause


def test_expiry_is_ignored_only_where_the_source_says_so() -> None:
    def options(source: Source) -> str:
        return " ".join(arguments(source, "riscv64", "minbase", ["a", "b"], "-", output_format="tar"))

    assert "Check-Valid-Until" not in options(Source("toy"))
    assert "Check-Valid-Until" in options(Source("toy", ignore_expiry=True))
    assert options(Source("toy", mirror="deb file:/x toy main")).endswith("toy - deb file:/x toy main")
    assert "--include=a,b" in options(Source("toy"))


def test_proxy_settings_of_the_host_are_found_and_nothing_else() -> None:
    dump = 'APT::Architecture "amd64";\nAcquire::http::Proxy "proxy:3128";\nAcquire::https::Proxy "";\n'
    assert parse_apt_settings(dump) == {"Acquire::http::Proxy": "proxy:3128"}


def test_memory_is_used_only_where_it_is_ample() -> None:
    assert memory_is_ample("MemTotal: 1 kB\nMemAvailable:   16000000 kB\n")
    assert not memory_is_ample("MemAvailable:   4000000 kB\n")
    assert not memory_is_ample("MemTotal:   64000000 kB\n")
