"""Checks of the machine itself: room, memory, and what a board must have for its figures to mean something."""

from __future__ import annotations

from rvvbench.doctor.check import EVERY_TARGET, Check
from rvvbench.doctor.facts import Facts
from rvvbench.doctor.software import needed_images
from rvvbench.target.select import ARCH_OF_MACHINE

# Three images of about 2 GB each: their archives below the state folder, their unpacked copies in podman's storage, and
# what is in flight while one is made.
STATE_BYTES = 5_000_000_000
STORAGE_BYTES = 7_000_000_000
# Llama-3.2-1B in BF16 is 2.5 GB, its packed copy as much again, and Python with torch and SGLang takes about 1 GB.
MEMORY_BYTES = 7_000_000_000
# The kernel slows the CPU down at its passive trip point; this close to it, a run would get there.
NEAR_TRIP_MILLICELSIUS = 10_000


def architecture(facts: Facts) -> Check:
    arch = facts.machine["arch"]
    known = arch in ARCH_OF_MACHINE
    return Check(
        "architecture",
        "architecture",
        "ok" if known else "missing",
        arch,
        ("emulated", "host"),
        f"image recipes exist for {', '.join(ARCH_OF_MACHINE)}",
        None if known else "use a machine of one of these architectures",
    )


def board(facts: Facts) -> Check:
    why = "only a riscv64 machine that has V can measure RVV; anywhere else the same image runs under QEMU"
    arch = facts.machine["arch"]
    if arch != "riscv64":
        mend = "rvvbench run llama-one-batch --target emulated"
        return Check("board", "riscv64 with V", "missing", f"this machine is {arch}", ("board",), why, mend)
    if not facts.machine["vector"]:
        mend = "boot a kernel with RVV 1.0 support (CONFIG_RISCV_ISA_V)"
        return Check("board", "riscv64 with V", "missing", "the kernel reports no V", ("board",), why, mend)
    model = facts.machine["board"] or facts.machine["cpu_model"] or "riscv64 with V"
    return Check("board", "riscv64 with V", "ok", model, ("board",), why)


def emulation(facts: Facts) -> Check:
    why = "emulating riscv64 on riscv64 measures nothing"
    if facts.machine["arch"] == "riscv64":
        mend = "rvvbench run llama-one-batch --target board"
        return Check("emulation", "foreign machine", "missing", "this is riscv64 itself", ("emulated",), why, mend)
    return Check("emulation", "foreign machine", "ok", facts.machine["arch"], ("emulated",), why)


def vlen(facts: Facts) -> Check:
    why = "the vector length is part of every record; kernels take any from 128 up"
    if not _is_board(facts):
        return _not_a_board("vlen", "VLEN", why)
    if facts.vlen_bits is None:
        return Check("vlen", "VLEN", "warn", f"unknown: {facts.vlen_reason}", ("board",), why)
    return Check("vlen", "VLEN", "ok", f"{facts.vlen_bits} bits", ("board",), why)


def governor(facts: Facts) -> Check:
    why = "at any other governor the clock moves during a run, and a row not run at the top frequency is invalid"
    if not _is_board(facts):
        return _not_a_board("governor", "frequency governor", why)
    governors = facts.machine["governors"]
    if governors is None:
        reason = facts.machine["reasons"]["governors"]
        return Check("governor", "frequency governor", "warn", f"unknown: {reason}", ("board",), why)
    found = ", ".join(f"{policy} {name}" for policy, name in governors.items())
    if set(governors.values()) == {"performance"}:
        return Check("governor", "frequency governor", "ok", found, ("board",), why)
    mend = "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
    return Check("governor", "frequency governor", "warn", found, ("board",), why, mend)


def temperature(facts: Facts) -> Check:
    why = "near its trip point the kernel slows the CPU down in the middle of a run"
    if not _is_board(facts):
        return _not_a_board("temperature", "temperature", why)
    zones = facts.conditions.temperature_millicelsius
    if zones is None:
        reason = facts.conditions.reasons["temperature_millicelsius"]
        return Check("temperature", "temperature", "warn", f"unknown: {reason}", ("board",), why)
    found = ", ".join(f"{zone} {degrees / 1000:.0f} °C" for zone, degrees in zones.items())
    slowed = [
        device.kind
        for device in (facts.conditions.cooling or {}).values()
        if "cpufreq" in device.kind and device.state > 0
    ]
    if slowed:
        found = f"{found}; slowed down now by {', '.join(slowed)}"
    trips = facts.machine["passive_trip_millicelsius"] or {}
    near = any(zones[zone] > trip - NEAR_TRIP_MILLICELSIUS for zone, trip in trips.items() if zone in zones)
    if slowed or near:
        return Check("temperature", "temperature", "warn", found, ("board",), why, "let it cool down, or add a fan")
    return Check("temperature", "temperature", "ok", found, ("board",), why)


def swap(facts: Facts) -> Check:
    why = "a run that swaps measures the disk; pages in and out of swap are recorded with every run"
    swap_bytes = facts.machine["swap_bytes"]
    if not swap_bytes:
        found = "none" if swap_bytes == 0 else f"unknown: {facts.machine['reasons']['swap_bytes']}"
        return Check("swap", "swap", "ok" if swap_bytes == 0 else "warn", found, EVERY_TARGET, why)
    if not _is_board(facts):
        return Check("swap", "swap", "ok", _gigabytes(swap_bytes), EVERY_TARGET, why)
    return Check("swap", "swap", "warn", _gigabytes(swap_bytes), ("board",), why, "sudo swapoff -a")


def memory(facts: Facts) -> Check:
    why = "a 1B model in BF16 with its packed copy needs 7 GB; the emulated default less"
    free = facts.conditions.memory_available_bytes
    if free is None:
        reason = facts.conditions.reasons["memory_available_bytes"]
        return Check("memory", "memory", "warn", f"unknown: {reason}", EVERY_TARGET, why)
    total = facts.machine["memory_bytes"]
    found = f"{_gigabytes(free)} available of {_gigabytes(total) if total else 'an unknown total'}"
    if free >= MEMORY_BYTES:
        return Check("memory", "memory", "ok", found, EVERY_TARGET, why)
    return Check("memory", "memory", "warn", found, EVERY_TARGET, why, "close other programs")


def disk(facts: Facts) -> Check:
    why = "images are built as archives in rvvbench's own folder and unpacked in podman's storage"
    state, storage = facts.state, facts.storage
    built = facts.images is not None and needed_images(facts).keys() <= facts.images
    if state.device == storage.device:
        found = f"{_gigabytes(state.free_bytes)} free for {state.path} and {storage.path}"
        enough = state.free_bytes >= STATE_BYTES + STORAGE_BYTES
    else:
        found = ", ".join(f"{_gigabytes(place.free_bytes)} free for {place.path}" for place in (state, storage))
        enough = state.free_bytes >= STATE_BYTES and storage.free_bytes >= STORAGE_BYTES
    if enough:
        return Check("disk", "disk", "ok", found, EVERY_TARGET, why)
    mend = f"free {_gigabytes(STATE_BYTES + STORAGE_BYTES)}, or set RVVBENCH_HOME to a folder on a larger disk"
    return Check("disk", "disk", "warn" if built else "missing", found, EVERY_TARGET, why, mend)


def network(facts: Facts) -> Check:
    return Check(
        "network",
        "network",
        "not-needed",
        "runs have none",
        EVERY_TARGET,
        "only setup, image builds and checkpoints of the Hub fetch anything",
    )


def _is_board(facts: Facts) -> bool:
    return bool(facts.machine["arch"] == "riscv64" and facts.machine["vector"])


def _not_a_board(name: str, title: str, why: str) -> Check:
    return Check(name, title, "not-needed", "matters on a board only", ("board",), why)


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
