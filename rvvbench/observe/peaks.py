"""The largest figures of a run's samples, each under a name that says what it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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


def _largest(values: Any) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _sum(sample: Mapping[str, Any], name: str) -> int | None:
    values = [process.get(name) for process in sample.get("processes", ())]
    return sum(values) if values and None not in values else None
