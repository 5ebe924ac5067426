"""Checks of programs: Python, podman, QEMU, what builds images, and the images."""

from __future__ import annotations

from dataclasses import replace

from rvvbench.doctor.check import EVERY_TARGET, Check
from rvvbench.doctor.facts import Facts, ImageKey
from rvvbench.engine.quirks import quirks
from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.models import TargetKind
from rvvbench.target.select import ARCH_OF_MACHINE

OLDEST_PYTHON = (3, 11)
OLDEST_PODMAN = (4, 3)
SETUP = "make setup"


def python(facts: Facts) -> Check:
    good = facts.python >= OLDEST_PYTHON
    return Check(
        "python",
        "Python",
        "ok" if good else "missing",
        _dotted(facts.python),
        EVERY_TARGET,
        "rvvbench needs Python 3.11 or newer",
        None if good else SETUP,
    )


def podman(facts: Facts) -> Check:
    version = facts.podman_version
    good = version is not None and version >= OLDEST_PODMAN
    return Check(
        "podman",
        "podman",
        "ok" if good else "missing",
        "not installed" if version is None else _dotted(version),
        EVERY_TARGET,
        "every run happens in a container; podman 4.3 is the oldest that rvvbench was tried with",
        None if good else SETUP,
    )


def runtime(facts: Facts) -> Check:
    title, why = "container runtime", "crun refuses cgroups that are not purely version 2; runc takes them all"
    try:
        found = quirks(replace(facts.host, podman=facts.host.podman or "podman"))
    except EnvironmentLacks as lack:
        return Check("runtime", title, "missing", lack.cause, EVERY_TARGET, why, lack.mend)
    done = [quirk.done for quirk in found if quirk.name in ("runtime", "cgroup_manager")]
    programs = " and ".join(sorted(facts.host.runtimes))
    layout = f"{programs}; cgroups {facts.host.cgroup_layout}"
    return Check("runtime", title, "ok", "; ".join([layout, *done]), EVERY_TARGET, why)


def limits(facts: Facts) -> Check:
    title, why = "process limits", "podman asks for more open files and processes than this machine may allow"
    try:
        found = quirks(replace(facts.host, podman="podman", runtimes=frozenset({"runc"})))
    except EnvironmentLacks as lack:
        return Check("limits", title, "missing", lack.cause, EVERY_TARGET, why, lack.mend)
    done = [quirk.done for quirk in found if quirk.name == "ulimits"]
    return Check("limits", title, "ok", done[0] if done else "high enough for podman's defaults", EVERY_TARGET, why)


def rootless(facts: Facts) -> Check:
    title, why = "containers without root", "a user's containers need user ids of their own (/etc/subuid, /etc/subgid)"
    if facts.subordinate_ids is None:
        return Check("rootless", title, "not-needed", "runs as root", EVERY_TARGET, why)
    if facts.subordinate_ids:
        return Check("rootless", title, "ok", "subordinate ids", EVERY_TARGET, why)
    mend = 'sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$USER" && podman system migrate'
    return Check("rootless", title, "missing", "no subordinate ids for this user", EVERY_TARGET, why, mend)


def qemu(facts: Facts) -> Check:
    title, why = "QEMU", "emulated runs need RVV 1.0 and zvfh, which QEMU knows from version 8"
    if _is_riscv64(facts):
        return Check("qemu", title, "not-needed", "riscv64 runs natively here", ("emulated",), why)
    emulator = facts.emulator
    if emulator.version is None:
        return Check("qemu", title, "missing", "not installed", ("emulated",), why, SETUP)
    if emulator.knows_rvv_zvfh:
        found = f"{_dotted(emulator.version)}, runs RVV 1.0 and zvfh"
        return Check("qemu", title, "ok", found, ("emulated",), why)
    found = f"{_dotted(emulator.version)}, cannot run RVV 1.0 and zvfh"
    return Check("qemu", title, "missing", found, ("emulated",), why, SETUP)


def binfmt(facts: Facts) -> Check:
    title = "riscv64 programs"
    why = "the kernel must start QEMU for riscv64 programs, and hold it open (flag F) so that containers have it too"
    if _is_riscv64(facts):
        return Check("binfmt", title, "not-needed", "riscv64 runs natively here", ("emulated",), why)
    entry = facts.emulator.registration
    if entry is None:
        return Check("binfmt", title, "missing", "not registered (binfmt_misc)", ("emulated",), why, SETUP)
    found = f"run by {entry.interpreter}, flags {entry.flags or 'none'}"
    if not entry.enabled:
        return Check("binfmt", title, "missing", f"{found}, disabled", ("emulated",), why, SETUP)
    if not entry.works_in_containers:
        return Check("binfmt", title, "missing", f"{found}: F is not among them", ("emulated",), why, SETUP)
    return Check("binfmt", title, "ok", found, ("emulated",), why)


def mmdebstrap(facts: Facts) -> Check:
    return _image_builder("mmdebstrap", facts.mmdebstrap, facts, "builds the root filesystems of images")


def arch_test(facts: Facts) -> Check:
    return _image_builder("arch-test", facts.arch_test, facts, "mmdebstrap asks it whether riscv64 programs run here")


def images(facts: Facts) -> list[Check]:
    """One check for each image that a target of this machine needs."""
    return [_image(facts, key, targets) for key, targets in needed_images(facts).items()]


def needed_images(facts: Facts) -> dict[ImageKey, tuple[TargetKind, ...]]:
    """{(recipe, architecture): the targets of this machine that need it}; empty for a machine that no recipe knows."""
    here = ARCH_OF_MACHINE.get(facts.machine["arch"])
    if here is None:
        return {}
    if here == "riscv64":
        return {("toolchain", "riscv64"): ("board",), ("runtime", "riscv64"): ("board", "host")}
    return {("toolchain", here): ("emulated",), ("runtime", "riscv64"): ("emulated",), ("runtime", here): ("host",)}


def _image(facts: Facts, key: ImageKey, targets: tuple[TargetKind, ...]) -> Check:
    recipe, arch = key
    what = {"runtime": "runs happen in it", "toolchain": "the kernels are built in it"}[recipe]
    check = Check(f"image-{recipe}-{arch}", f"image {recipe} {arch}", "ok", "present", targets, what)
    if facts.images is None:
        return replace(check, status="missing", found=f"podman was not asked: {facts.images_reason}", mend=SETUP)
    if key not in facts.images:
        command = f"rvvbench image build {recipe}{' --arch ' + arch if recipe == 'runtime' else ''}"
        return replace(check, status="missing", found="not built yet", mend=command)
    return check


def _image_builder(name: str, path: str | None, facts: Facts, why: str) -> Check:
    """Needed by the targets whose images are yet to be built, and by no other."""
    if path is not None:
        return Check(name, name, "ok", path, EVERY_TARGET, why)
    unbuilt = [targets for key, targets in needed_images(facts).items() if key not in (facts.images or frozenset())]
    if not unbuilt:
        return Check(name, name, "not-needed", "not installed; the images are built", EVERY_TARGET, why)
    needs_for = tuple(target for target in EVERY_TARGET if any(target in targets for targets in unbuilt))
    return Check(name, name, "missing", "not installed", needs_for, why, SETUP)


def _is_riscv64(facts: Facts) -> bool:
    return bool(facts.machine["arch"] == "riscv64")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
