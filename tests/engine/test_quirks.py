"""What is done about unusual hosts."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.engine.facts import HostFacts, cgroup_layout_of, has_capability
from rvvbench.engine.quirks import PODMAN_NOFILE, PODMAN_NPROC, containers_conf, quirks
from rvvbench.errors import EnvironmentLacks

PLAIN = HostFacts(
    machine="x86_64",
    is_root=True,
    podman="/usr/bin/podman",
    runtimes=frozenset({"crun", "runc"}),
    cgroup_layout="v2",
    systemd=True,
    hard_nofile=PODMAN_NOFILE,
    hard_nproc=PODMAN_NPROC,
    may_raise_limits=True,
    nr_open=PODMAN_NOFILE,
    pid_max=4194304,
    journald=True,
)


def changed(**facts: object) -> HostFacts:
    return dataclasses.replace(PLAIN, **facts)  # type: ignore[arg-type]


def names(facts: HostFacts) -> list[str]:
    return [quirk.name for quirk in quirks(facts)]


def test_a_plain_host_has_no_quirk() -> None:
    assert quirks(PLAIN) == ()
    assert tomllib.loads(containers_conf(())) == {}


@pytest.mark.parametrize("layout", ["v1", "hybrid"])
def test_crun_gives_way_to_runc_where_cgroups_are_not_unified(layout: str) -> None:
    facts = changed(cgroup_layout=layout)
    assert names(facts) == ["runtime"]
    assert tomllib.loads(containers_conf(quirks(facts)))["engine"]["runtime"] == "runc"


def test_only_crun_on_old_cgroups_is_told_with_the_command_that_mends_it() -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        quirks(changed(cgroup_layout="v1", runtimes=frozenset({"crun"})))
    assert caught.value.mend == "apt-get install runc"


@pytest.mark.parametrize("facts", [changed(podman=None), changed(runtimes=frozenset())])
def test_what_is_not_installed_is_told(facts: HostFacts) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        quirks(facts)
    assert "apt-get install" in str(caught.value.mend)


def test_limits_that_may_not_be_raised_are_lowered_for_containers() -> None:
    facts = changed(may_raise_limits=False, hard_nofile=20000, hard_nproc=96365, pid_max=32768)
    assert names(facts) == ["ulimits"]
    conf = tomllib.loads(containers_conf(quirks(facts)))
    # 32768 and not 96365: podman itself starts with no more processes than the kernel has pids
    assert conf["containers"]["default_ulimits"] == ["nofile=20000:20000", "nproc=32768:32768"]


def test_unlimited_is_not_a_low_limit() -> None:
    assert quirks(changed(may_raise_limits=False, hard_nofile=-1, hard_nproc=-1)) == ()


def test_a_host_without_systemd_and_journald_uses_files() -> None:
    conf = tomllib.loads(containers_conf(quirks(changed(systemd=False, journald=False))))
    assert conf["engine"] == {"cgroup_manager": "cgroupfs", "events_logger": "file"}
    assert conf["containers"] == {"log_driver": "k8s-file"}


@given(
    st.builds(
        changed,
        cgroup_layout=st.sampled_from(["v1", "hybrid", "v2", "none"]),
        systemd=st.booleans(),
        journald=st.booleans(),
        may_raise_limits=st.booleans(),
        hard_nofile=st.integers(-1, 2**40),
        hard_nproc=st.integers(-1, 2**40),
        pid_max=st.none() | st.integers(1, 2**22),
        nr_open=st.none() | st.integers(1, 2**30),
    )
)
def test_the_configuration_is_toml_and_never_asks_for_more_than_the_host_allows(facts: HostFacts) -> None:
    conf = tomllib.loads(containers_conf(quirks(facts)))
    for entry in conf.get("containers", {}).get("default_ulimits", []):
        name, value = entry.split("=")
        hard = {"nofile": facts.hard_nofile, "nproc": facts.hard_nproc}[name]
        assert hard == -1 or int(value.split(":")[0]) <= hard


def test_cgroup_layouts_are_told_from_the_mounts() -> None:
    v1 = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
    assert cgroup_layout_of(v1) == "v1"
    assert cgroup_layout_of(v2) == "v2"
    assert cgroup_layout_of(v1 + v2) == "hybrid"
    assert cgroup_layout_of("proc /proc proc rw 0 0\n") == "none"


def test_capabilities_are_bits_of_the_effective_set() -> None:
    assert has_capability("CapPrm:\t0\nCapEff:\t000001ffffffffff\n", 24)
    assert not has_capability("CapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n", 24)
