from __future__ import annotations

from typing import Any

from rvvbench.observe.peaks import NO_PSS, NO_SAMPLE, peaks_until


def sample(second: int, rss: int, **fields: Any) -> dict[str, Any]:
    process = {"pid": 1, "vm_hwm_bytes": rss + 1, "swap_bytes": None}
    common = {"event": "sample", "t_ns": second * 10**9, "rss_sum_bytes": rss, "processes": [process], "cgroup": None}
    return common | fields


SAMPLES = [
    {"event": "sampler_start", "t_ns": 0, "pss_interval_s": None},
    sample(1, 100, reasons={"cgroup": "no controller", "processes.swap_bytes": "a kernel without swap"}),
    sample(2, 200),
    sample(3, 900),
]


def test_peaks_end_with_what_was_measured() -> None:
    found = peaks_until(SAMPLES, 2 * 10**9, emulated=False)
    assert (found["sampled_rss_sum_bytes"], found["vm_hwm_largest_process_bytes"]) == (200, 201)
    assert peaks_until(SAMPLES, None, emulated=False)["sampled_rss_sum_bytes"] == 900


def test_every_peak_that_is_null_says_why() -> None:
    found = peaks_until(SAMPLES, 2 * 10**9, emulated=True)
    assert found["emulated"] is True
    assert found["reasons"] == {
        "sampled_pss_sum_bytes": NO_PSS,
        "sampled_swap_sum_bytes": "a kernel without swap",
        "cgroup_peak_bytes": "no controller",
        "sampled_cgroup_anonymous_bytes": "no controller",
        "sampled_cgroup_file_bytes": "no controller",
    }
    none = peaks_until([], 5, emulated=False)
    assert set(none["reasons"]) == {name for name, value in none.items() if value is None}
    assert none["reasons"]["sampled_rss_sum_bytes"] == NO_SAMPLE


def test_pss_that_was_asked_for_and_refused_gives_the_kernels_reason() -> None:
    start = {"event": "sampler_start", "t_ns": 0, "pss_interval_s": 10.0}
    refused = {"event": "sample_pss", "t_ns": 1, "pss_sum_bytes": None, "reasons": {"pss_sum_bytes": "not permitted"}}
    found = peaks_until([start, refused], None, emulated=False)
    assert found["reasons"]["sampled_pss_sum_bytes"] == "not permitted"


def test_that_the_tree_had_ended_is_no_reason_for_a_peak_seen_before() -> None:
    ended = sample(4, 0, rss_sum_bytes=None, processes=[], reasons={"rss_sum_bytes": "the tree has ended"})
    found = peaks_until([*SAMPLES, ended], None, emulated=False)
    assert found["sampled_rss_sum_bytes"] == 900
    assert "sampled_rss_sum_bytes" not in found["reasons"]


def test_of_reasons_told_one_after_the_other_the_first_is_given() -> None:
    later = sample(4, 100, reasons={"cgroup": "the process has ended"})
    assert peaks_until([*SAMPLES, later], None, emulated=False)["reasons"]["cgroup_peak_bytes"] == "no controller"
