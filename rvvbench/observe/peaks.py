"""The largest figures of a run's samples, each under a name that says what it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NO_PSS = "not sampled: the kernel walks every page of a process for it, which would disturb what is measured"
NO_SAMPLE = "no sample up to the end of what was measured tells it"

SOURCES = {
    "sampled_rss_sum_bytes": ("rss_sum_bytes",),
    "sampled_pss_sum_bytes": ("pss_sum_bytes",),
    "vm_hwm_largest_process_bytes": (),
    "sampled_swap_sum_bytes": ("processes.swap_bytes",),
    "cgroup_peak_bytes": ("cgroup", "cgroup.peak_bytes"),
    "sampled_cgroup_anonymous_bytes": ("cgroup", "cgroup.anonymous_bytes"),
    "sampled_cgroup_file_bytes": ("cgroup", "cgroup.file_bytes"),
}
"""{peak: paths of the samples' fields that it comes from}."""


def peaks(samples: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """Bytes; None where no sample tells.

    `sampled_*` are the largest of the samples: a peak between two of them is not in it. `vm_hwm_largest_process` and
    `cgroup_peak` were kept by the kernel and miss nothing up to the last sample; the latter is of anonymous memory,
    page cache and kernel memory together.
    """
    looks = [sample for sample in samples if sample.get("event") == "sample"]
    groups = [sample["cgroup"] for sample in looks if sample.get("cgroup")]
    pss = [sample.get("pss_sum_bytes") for sample in samples if sample.get("event") == "sample_pss"]
    members = [process for sample in looks for process in sample.get("processes", ())]
    return {
        "sampled_rss_sum_bytes": _largest(sample.get("rss_sum_bytes") for sample in looks),
        "sampled_pss_sum_bytes": _largest(pss),
        "vm_hwm_largest_process_bytes": _largest(process.get("vm_hwm_bytes") for process in members),
        "sampled_swap_sum_bytes": _largest(_sum(sample, "swap_bytes") for sample in looks),
        "cgroup_peak_bytes": _largest(group.get("peak_bytes") for group in groups),
        "sampled_cgroup_anonymous_bytes": _largest(group.get("anonymous_bytes") for group in groups),
        "sampled_cgroup_file_bytes": _largest(group.get("file_bytes") for group in groups),
    }


def peaks_until(samples: Sequence[Mapping[str, Any]], end_ns: int | None, *, emulated: bool) -> dict[str, Any]:
    """The `peaks` up to `end_ns` (None: of all samples) as a record keeps them: with `reasons` {peak: why it is null}
    and `emulated`, whether the memory of the processes includes the emulator's.
    """
    told: dict[str, str] = {}
    for sample in samples:
        told = {**sample.get("reasons", {}), **told}
    found = peaks(until(samples, end_ns))
    asked = any(s.get("event") == "sampler_start" and s.get("pss_interval_s") is not None for s in samples)
    reasons = {
        name: next((told[path] for path in SOURCES[name] if path in told), NO_SAMPLE)
        for name, value in found.items()
        if value is None
    }
    if not asked and found["sampled_pss_sum_bytes"] is None:
        reasons["sampled_pss_sum_bytes"] = NO_PSS
    return {**found, "reasons": reasons, "emulated": emulated}


def until(samples: Sequence[Mapping[str, Any]], end_ns: int | None) -> list[Mapping[str, Any]]:
    """The samples that were taken up to `end_ns`; all where it is None."""
    return [sample for sample in samples if end_ns is None or sample["t_ns"] <= end_ns]


def _largest(values: Any) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _sum(sample: Mapping[str, Any], name: str) -> int | None:
    values = [process.get(name) for process in sample.get("processes", ())]
    return sum(values) if values and None not in values else None
