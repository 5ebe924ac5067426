"""Was a cache as cold, or as warm, as its row declares? Pure: counters of the compiler, its calls, and the directory.

N graphs cold: a miss for each that is unlike those before it, and every new library compiled. N graphs warm: N hits,
nothing compiled, nothing new. Graphs of projections of one shape are alike: the second one hits what the first made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.record.attestation import Event, Found, named_of
from rvvbench.record.events import named
from rvvbench.record.identity import canonical_json, digest
from rvvbench.record.schema import Expected, Process
from rvvbench.record.timeline import NotMeasuredError, is_count

PROOF_SCHEMA = "rvvbench/cache-proof/1"
KEY_DIGITS = 16

_COUNTERS = {"fxgraph": ("inductor", "fxgraph_cache"), "autograd": ("aot_autograd", "autograd_cache")}
"""The caches that every graph is looked up in: the group of torch's counters, and how their names begin."""

_MODES = {"inductor_packed": "explicit_packed", "inductor_row_major": "row_major"}
"""Of artifacts, by the path of the routes that take them."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a process: `graphs`, of which `unlike` are unlike each other; `hits`, `misses` and `bypasses` by
    cache; `compilations`; and of the directory the entries before, and those that are new, changed and gone.
    """

    graphs: int
    unlike: int
    hits: Mapping[str, int]
    misses: Mapping[str, int]
    bypasses: Mapping[str, int]
    compilations: int
    before: int
    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]


def cache_reasons(expected: Expected, cache_state: str, process: Process) -> Found:
    """Why the process does not prove the cache state that its row declares."""
    told = named(process.events, "compiled")
    if not expected.compiles:
        if cache_state != "none":
            yield "cache-unproven", f"the cache state is declared {cache_state}, and nothing in the record proves it"
        if told or process.cache is not None:
            yield "cache-state", "declared is that nothing compiles / observed is a process that does"
        return
    proof = process.cache
    if proof is None:
        yield "cache-unproven", "nobody looked at the cache before and after the process"
    if len(told) != 1:
        yield "cache-unproven", f"{len(told)} compiled events, 1 belongs"
    if proof is None or len(told) != 1:
        return
    yield from _of_its_key(expected, cache_state, proof)
    try:
        seen = seen_of(told[0], proof)
    except NotMeasuredError as error:
        yield "cache-unproven", str(error)
        return
    yield from _of_its_state(cache_state, seen)
    yield from _artifacts(told[0], proof, named(process.events, "attestation"))
    yield from _before_it_was_measured(expected, told[0], process.events)


def seen_of(compiled: Event, proof: Mapping[str, Any]) -> Seen:
    """What event and proof say. Raises NotMeasuredError where a part of it cannot be read."""
    if proof.get("schema") != PROOF_SCHEMA:
        raise NotMeasuredError(f"the cache's proof is {proof.get('schema')}, {PROOF_SCHEMA} is read")
    calls, before = proof.get("compiler_calls"), proof.get("before")
    entries = before.get("entries") if isinstance(before, dict) else None
    lists = [proof.get(name) for name in ("added", "changed", "removed")]
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls) or not is_count(entries):
        raise NotMeasuredError("the cache's proof has no calls of the compiler, or no count of entries before")
    if not all(isinstance(entry, str) for found in lists for entry in (found if isinstance(found, list) else [None])):
        raise NotMeasuredError("the cache's proof does not say what changed in the directory")
    counted = {
        what: {name: _count(compiled, *place, what) for name, place in _COUNTERS.items()}
        for what in ("hit", "miss", "bypass")
    }
    graphs = compiled.get("graphs")
    if not is_count(graphs) or graphs == 0:
        raise NotMeasuredError(f"the process says that it made {graphs} graphs: no cache is proven by that")
    return Seen(
        graphs,
        _unlike(compiled.get("artifacts"), graphs),
        counted["hit"],
        counted["miss"],
        counted["bypass"],
        sum(call.get("query") is None for call in calls),
        entries,
        *(list(map(str, found or ())) for found in lists),
    )


def not_cold(seen: Seen) -> list[str]:
    """What speaks against a cold cache."""
    against = [f"the cache had {seen.before} entries before"] if seen.before else []
    against += _lookups(seen, seen.graphs - seen.unlike, seen.unlike)
    libraries = sum(name.endswith(".so") for name in seen.added)
    if not seen.added:
        against.append("nothing new is in the cache")
    if seen.compilations < max(1, libraries):
        against.append(f"{seen.compilations} compilations, {libraries} libraries are new")
    return against


def not_warm(seen: Seen) -> list[str]:
    """What speaks against a warm one."""
    against = [] if seen.before else ["the cache was empty before"]
    against += _lookups(seen, seen.graphs, 0)
    if seen.compilations:
        against.append(f"{seen.compilations} compilations")
    for entries, what in ((seen.added, "new"), (seen.changed, "changed"), (seen.removed, "gone")):
        if entries:
            against.append(f"{len(entries)} entries of the cache are {what}, {entries[0]} the first")
    return against


def _unlike(artifacts: Any, graphs: int) -> int:
    """How many graphs differ in more than their projection, by their artifacts; all of them where these do not say."""
    if not isinstance(artifacts, list) or len(artifacts) != graphs:
        return graphs
    names = ("bucket", "out_features", "in_features", "mode")
    shapes = [tuple(one.get(name) for name in names) for one in artifacts if isinstance(one, dict)]
    return graphs if any(None in shape for shape in shapes) else len(set(shapes))


def _lookups(seen: Seen, hits: int, misses: int) -> list[str]:
    """Each cache whose lookups are not that many hits and misses."""
    return [
        f"{name}: {seen.hits[name]} hits and {seen.misses[name]} misses of {seen.graphs} graphs, {seen.unlike} unlike"
        + (f", {seen.bypasses[name]} bypasses" if seen.bypasses[name] else "")
        for name in _COUNTERS
        if seen.bypasses[name] or (seen.hits[name], seen.misses[name]) != (hits, misses)
    ]


def _of_its_state(declared: str, seen: Seen) -> Found:
    against = {"cold": not_cold(seen), "warm": not_warm(seen)}
    if declared not in against:
        yield "cache-state", f"declared {declared} / observed a process that compiles"
        return
    if against[declared]:
        observed = next((state for state, found in against.items() if not found), "neither cold nor warm")
        yield "cache-state", f"declared {declared} / observed {observed}: {'; '.join(against[declared])}"


def _of_its_key(expected: Expected, cache_state: str, proof: Mapping[str, Any]) -> Found:
    """The proof is of this state, and its key says what the row expects, where both say it."""
    if proof.get("state") != cache_state:
        yield "cache-state", f"declared {cache_state} / the process was given a cache that is {proof.get('state')}"
    key = proof.get("key")
    if not isinstance(key, dict) or digest(key)[:KEY_DIGITS] != proof.get("digest"):
        yield "cache-key", f"the digest {proof.get('digest')} is not that of the cache's key"
        return
    for field, wanted in (("threads", expected.threads), ("vlen", expected.vlen_bits)):
        if canonical_json(key.get(field)) != canonical_json(wanted):
            yield "cache-key", f"the cache is of {field} {key.get(field)}, declared {wanted}"
    if (cache_state == "warm") != isinstance(proof.get("origin"), dict):
        yield "cache-unproven", f"a {cache_state} cache whose origin is {proof.get('origin')}"


def _artifacts(compiled: Event, proof: Mapping[str, Any], attestations: Sequence[Event]) -> Found:
    """Every artifact is a library of the cache as the process saw it, and routes take none that is not listed."""
    artifacts, libraries = compiled.get("artifacts"), proof.get("libraries")
    if not isinstance(artifacts, list) or not all(isinstance(one, dict) for one in artifacts):
        yield "cache-unproven", "the compiled event has no list of artifacts"
        return
    if not isinstance(libraries, dict):
        yield "cache-unproven", "the cache's proof has no libraries"
        return
    for one in artifacts:
        so, sha256 = one.get("so"), one.get("sha256")
        if not isinstance(so, str) or so not in libraries:
            yield "cache-artifact", f"{_named(one)}: its library {so} is not in the cache"
        elif libraries[so] != sha256:
            yield "cache-artifact", f"{_named(one)}: {so} was {sha256} in the process, is {libraries[so]} in the cache"
    made = {(one.get("projection"), one.get("bucket"), one.get("mode")) for one in artifacts}
    for place in dict.fromkeys(_taken(attestations)):
        if place not in made:
            yield "cache-artifact", f"routes take {' '.join(map(str, place))}, which is no artifact of the process"


def _taken(attestations: Sequence[Event]) -> Iterator[tuple[Any, Any, Any]]:
    for attestation in attestations:
        lines = attestation.get("routing")
        for line in lines if isinstance(lines, list) else []:
            if isinstance(line, dict) and line.get("bucket") is not None:
                path = str(line.get("path"))
                yield str(line.get("projection")), line["bucket"], _MODES.get(path, path)


def _named(artifact: Mapping[str, Any]) -> str:
    return f"artifact {artifact.get('projection')} M={artifact.get('bucket')} {artifact.get('mode')}"


def _before_it_was_measured(expected: Expected, compiled: Event, events: Sequence[Event]) -> Found:
    """As many graphs after what was measured as before, where the process says how many there were."""
    if expected.load is None:
        pairs = [(compiled.get("graphs_before"), compiled.get("graphs"))]
    else:
        told = named_of(events, "attestation", expected.load.name)
        moments = {event.get("moment"): event.get("graphs") for event in told}
        pairs = [(moments.get("before"), moments.get("after"))]
    for before, after in pairs:
        if not is_count(before) or not is_count(after):
            yield "cache-unproven", "nothing says how many graphs there were before the measured pass"
        elif before != after:
            yield "compiled-while-measured", f"{after - before} graphs were made while it was measured"


def _count(compiled: Event, group: str, stem: str, what: str) -> int:
    counters = compiled.get(group)
    if not isinstance(counters, dict):
        raise NotMeasuredError(f"the compiled event has no counters of {group}")
    count = counters.get(f"{stem}_{what}", 0)
    if not is_count(count):
        raise NotMeasuredError(f"the counter {stem}_{what} is {count}")
    return count
