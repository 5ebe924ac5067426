"""Did the machine leave the run alone? Pure: conditions before and after, and samples between, to reasons and notes.

What a machine does not tell gives no reason, but a note that says so: silence is never taken for good conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rvvbench.observe.conditions import Conditions
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import NOT_READY, Waited
from rvvbench.observe.stretch import Others, Stretch, Window, stretch_of

THROTTLED = "throttled"
NOT_AT_TOP_FREQUENCY = "not-at-top-frequency"
SWAPPED = "swapped"
DISTURBED = "disturbed"
NOT_OBSERVED = "not-observed"

HOLDS_TOP = "performance"
"""The governor that asks for the top frequency all the time (Documentation/admin-guide/pm/cpufreq)."""


@dataclass(frozen=True)
class Rules:
    """Which findings make a repetition invalid (`apply`, by id; the others become notes), and from where on.

    `top_share`: least share of the time at the top frequency. `others_cores`: most CPUs' worth of work of others, the
    harness and the kernel's own threads among them; the same for what a hypervisor steals. `pressure_share`: most
    share of the time in which some task waited for a CPU, where others' work is not known. `swapped_pages`: most
    pages in and out. The limits are judgements, to be replaced by measured noise.
    """

    apply: frozenset[str]
    top_share: float = 0.99
    others_cores: float = 0.1
    pressure_share: float = 0.1
    swapped_pages: int = 0


def rules_for(target: Literal["board", "emulated", "host"]) -> Rules:
    """A board's timings are what this project publishes: every rule applies.

    A host's clock is its own affair (its top is a boost that no load holds), and its timings check the harness only.
    Emulated timings stand beside no others, but swapping falsifies the memory figures there too.
    """
    return {
        "board": Rules(frozenset({NOT_READY, THROTTLED, NOT_AT_TOP_FREQUENCY, SWAPPED, DISTURBED, NOT_OBSERVED})),
        "host": Rules(frozenset({THROTTLED, SWAPPED})),
        "emulated": Rules(frozenset({SWAPPED})),
    }[target]


@dataclass(frozen=True)
class Observed:
    """`reasons`: why the repetition is not valid. `notes`: what was found and does not count on this target, and what
    was not observed. `figures`: what the findings were made from; None where it is not known.
    """

    reasons: tuple[Finding, ...]
    notes: tuple[str, ...]
    figures: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """The same as JSON data."""
        reasons = [asdict(reason) for reason in self.reasons]
        return {"reasons": reasons, "notes": list(self.notes), "figures": self.figures}


def assess(
    before: Conditions,
    after: Conditions,
    samples: Sequence[Mapping[str, Any]],
    rules: Rules,
    *,
    window: Window | None = None,
    governors: Mapping[str, str] | None = None,
    waited: Waited | None = None,
) -> Observed:
    """What the machine did to one repetition.

    `samples` are the sampler's events, as they were written. `window` narrows the judgement to what was measured;
    `governors` {policy: name} (from `machine_facts`) tell a slow governor from a machine that slows itself down.
    `waited`: what the gate before it did.
    """
    stretch = stretch_of(before, after, samples, window)
    found = [
        *(waited.reasons if waited else ()),
        *_throttled(stretch, rules, governors or {}),
        *_top_frequency(stretch, rules),
        *_swapped(stretch, rules),
        *_disturbed(stretch, rules),
        *_sampler(before, after, samples, window),
    ]
    reasons = tuple(one for one in found if isinstance(one, Finding) and one.id in rules.apply)
    notes = tuple(
        f"{one.id}, which is no reason on this target: {one.text}" if isinstance(one, Finding) else one
        for one in found
        if one not in reasons
    )
    return Observed(reasons, notes, figures(stretch))


def figures(stretch: Stretch) -> dict[str, Any]:
    """JSON data. Shares are of the time, 0 to 1; cores are CPUs' worth of work."""
    change, others = stretch.change, stretch.others()
    known = others if isinstance(others, Others) else None
    return {
        "observed_s": change.elapsed_s,
        "at_top_frequency": change.at_top_frequency,
        "cpu_pressure_share": stretch.pressure("cpu"),
        "others_cores": known and known.cores,
        "steal_cores": known and known.steal_cores,
        "swap_in_pages": change.swap_in_pages,
        "swap_out_pages": change.swap_out_pages,
        "highest_millicelsius": _highest(stretch),
    }


def _throttled(stretch: Stretch, rules: Rules, governors: Mapping[str, str]) -> Iterator[Finding | str]:
    slowed = stretch.slowed()
    if slowed is None:
        yield _not_observed("cooling devices", stretch, "cooling")
    for name, (device, looks) in (slowed or {}).items():
        most = "?" if device.max_state is None else device.max_state
        often = f"in {looks} looks"
        text = f"{name} ({device.kind}) slowed CPUs {often}, up to state {device.state} of {most}; 0 belongs"
        yield Finding(THROTTLED, text)
    for policy, share in (stretch.change.at_top_frequency or {}).items():
        if share < rules.top_share and governors.get(policy) == HOLDS_TOP:
            text = f"{policy} was {share:.1%} of the time at its top frequency, although its governor is {HOLDS_TOP}"
            yield Finding(THROTTLED, text)


def _top_frequency(stretch: Stretch, rules: Rules) -> Iterator[Finding | str]:
    shares = stretch.change.at_top_frequency
    if shares is None:
        yield _not_observed("time at the top frequency", stretch, "time_in_state_ms")
    elif not shares:
        yield "not observed: time at the top frequency (too short a time for the kernel's 10 ms units)"
    states = stretch.change.time_in_state_ms or {}
    for policy, share in (shares or {}).items():
        if share < rules.top_share:
            top_khz = max(states[policy])
            text = f"{policy} was {share:.1%} of the time at {top_khz / 1000:.0f} MHz, {rules.top_share:.0%} belong"
            yield Finding(NOT_AT_TOP_FREQUENCY, text)


def _swapped(stretch: Stretch, rules: Rules) -> Iterator[Finding | str]:
    into, out = stretch.change.swap_in_pages, stretch.change.swap_out_pages
    if into is None or out is None:
        yield _not_observed("swapping", stretch, "swap_in_pages" if into is None else "swap_out_pages")
    elif into + out > rules.swapped_pages:
        text = f"the machine swapped {into} pages in and {out} out, at most {rules.swapped_pages} may be"
        yield Finding(SWAPPED, text)


def _disturbed(stretch: Stretch, rules: Rules) -> Iterator[Finding | str]:
    """Others' work where it is known. Pressure does not tell who waited for whom, so it is asked only otherwise."""
    others, pressure = stretch.others(), stretch.pressure("cpu")
    if isinstance(others, Others):
        over = f"over {others.seconds:.1f} s, at most {rules.others_cores:.2f} may be"
        if others.cores > rules.others_cores:
            yield Finding(DISTURBED, f"others used {others.cores:.2f} CPUs {over}")
        if others.steal_cores > rules.others_cores:
            yield Finding(DISTURBED, f"the hypervisor took {others.steal_cores:.2f} CPUs {over}")
        return
    yield f"not observed: CPU time of others ({others})"
    if pressure is None:
        yield _not_observed("pressure on the CPUs", stretch, "pressure_us")
    elif pressure > rules.pressure_share:
        text = f"for {pressure:.1%} of the time some task waited for a CPU, at most {rules.pressure_share:.0%} may be"
        yield Finding(DISTURBED, text)


def _sampler(
    before: Conditions, after: Conditions, samples: Sequence[Mapping[str, Any]], window: Window | None
) -> Iterator[Finding | str]:
    """A sampler that failed after the window's end has missed nothing that counts."""
    failures = [end["error"] for end in samples if end.get("event") == "sampler_end" and end.get("error")]
    because = "".join(f": {failure}" for failure in failures)
    times_s = [sample["conditions"]["monotonic_s"] for sample in samples if sample.get("event") == "sample"]
    start_s, end_s = (t_ns / 1e9 for t_ns in window) if window else (before.monotonic_s, after.monotonic_s)
    if start_s < before.monotonic_s or after.monotonic_s < end_s:
        yield Finding(NOT_OBSERVED, "what was measured lies outside of the time that was observed, by their clocks")
    if not times_s:
        yield Finding(NOT_OBSERVED, f"there is no sample between the start and the end{because}")
    elif failures and max(times_s) < end_s:
        yield Finding(NOT_OBSERVED, f"the sampler failed before the end{because}")
    elif failures:
        yield f"the sampler failed after what was measured{because}"


def _not_observed(what: str, stretch: Stretch, name: str) -> str:
    return f"not observed: {what} ({_reason(stretch, name)})"


def _reason(stretch: Stretch, name: str) -> str:
    """Why the figure is not known."""
    ends = (stretch.looks[0].conditions, stretch.looks[-1].conditions)
    found = stretch.change.reasons.get(name)
    return found or next((end.reasons[name] for end in ends if name in end.reasons), "not read")


def _highest(stretch: Stretch) -> int | None:
    seen = [look.conditions.temperature_millicelsius or {} for look in stretch.looks]
    return max((celsius for zones in seen for celsius in zones.values()), default=None)
