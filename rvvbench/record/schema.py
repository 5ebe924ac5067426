"""A record as it is written: `rvvbench/record/1`.

A record is one invocation on one target. It has rows (variant x cache state x load), a row has its fresh processes, a
process has its raw events, verbatim. Every model refuses unknown fields and is frozen; scalars are not coerced ("8" is
no number). A field that is added later has a default, and stays out of records that were written without it.
"""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rvvbench.record.way import way

RECORD_SCHEMA: Literal["rvvbench/record/1"] = "rvvbench/record/1"

Int = Annotated[int, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
DefinitionId = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*/[1-9][0-9]*$")]

TargetKind = Literal["board", "emulated", "host"]
CacheState = Literal["none", "cold", "warm"]
Weights = Literal["hub", "synthetic"]
AgreementId = Literal["agreement/1", "agreement/2"]
"""How rows are compared. What was compared by an older definition is derived by it again."""


class Model(BaseModel):
    """Base of everything in a record."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, protected_namespaces=())


class Figure(Model):
    """One number of one process. `value` is null exactly when `reason` says why; it is never 0 for "unknown"."""

    value: Number | None
    unit: str
    definition: DefinitionId
    reason: str | None = None

    @model_validator(mode="after")
    def _null_has_a_reason(self) -> Self:
        if (self.value is None) != bool(self.reason):
            raise ValueError("a figure has either a value or a reason why it has none")
        return self


class RowFigure(Model):
    """One number of a row: the median over its `n` fresh processes, and their extremes.

    Null exactly when `reason` says why.
    """

    median: Number | None
    min: Number | None
    max: Number | None
    n: Count
    unit: str
    definition: DefinitionId
    reason: str | None = None

    @model_validator(mode="after")
    def _null_has_a_reason(self) -> Self:
        absent = {self.median is None, self.min is None, self.max is None}
        if len(absent) != 1 or absent != {bool(self.reason)}:
            raise ValueError("a row's figure has either median, min and max, or a reason why it has none")
        return self


class Reason(Model):
    """Why a row is not valid.

    `id` is for machines and stays stable; `text` names what was expected and what was observed.
    """

    id: str
    text: str
    process: Count | None = None


class Validity(Model):
    """`valid`, or `invalid` with every reason."""

    status: Literal["valid", "invalid"]
    reasons: tuple[Reason, ...] = ()

    @model_validator(mode="after")
    def _invalid_has_reasons(self) -> Self:
        if (self.status == "valid") == bool(self.reasons):
            raise ValueError("a valid row has no reasons, an invalid one has at least one")
        return self

    @property
    def valid(self) -> bool:
        return self.status == "valid"

    @classmethod
    def of(cls, reasons: tuple[Reason, ...]) -> Validity:
        return cls(status="invalid" if reasons else "valid", reasons=reasons)


class Route(Model):
    """One line of a routing table: `projection` at `m` rows takes `path`, `calls` times in one process's measured pass.

    `calls` is null where they depend on who arrives when (serving): the line then says which path such rows must take
    if there are any, and `modules` how many modules of the model send such rows there in each pass (null: passes differ
    in that, or it is not known). `reason` is why policy and manifest predict it; it is not compared. `bucket`: the rows
    of the compiled artifact that computes it; null where nothing compiled does.
    """

    projection: str
    m: Positive
    path: str
    calls: Positive | None
    reason: str = ""
    modules: Positive | None = None
    bucket: Positive | None = None

    @property
    def way(self) -> str:
        """Path and bucket in one word."""
        return way(self.path, self.bucket)


class Accuracy(Model):
    """How far a row's tokens and their log-probabilities (nats) may be from torch-native's: see `RowAgreement`."""

    greedy_agreement: Share
    max_logprob_difference: NotNegative
    mean_logprob_difference: NotNegative


class ExpectedLoad(Model):
    """The load that a serving row is the row of, by its `name` in the events.

    A closed loop has a `concurrency`, an open one `arrivals` and `rate_per_s`; `requests` are the measured ones. `seed`
    is what Poisson arrivals are drawn from; null for all others, and in records that were written without it.
    `layers` is how often the model has each projection but lm_head; null: taken from what the server shows.
    `qk_norm_heads` are a layer's heads of queries and of keys where it normalises each by itself, else empty.
    """

    name: str
    mode: Literal["closed", "open"]
    concurrency: Positive | None
    arrivals: Literal["fixed", "poisson"] | None
    rate_per_s: Number | None
    requests: Positive
    layers: Positive | None = None
    seed: Count | None = None
    qk_norm_heads: tuple[Positive, ...] = ()

    @model_validator(mode="after")
    def _closed_or_open(self) -> Self:
        closed = self.concurrency is not None and self.arrivals is None and self.rate_per_s is None
        opened = self.concurrency is None and self.arrivals is not None and (self.rate_per_s or 0) > 0
        if not (closed if self.mode == "closed" else opened):
            raise ValueError("a closed loop has a concurrency, an open one arrivals and a rate above 0, and no other")
        if self.seed is not None and self.arrivals != "poisson":
            raise ValueError("only Poisson arrivals have a seed")
        return self

    @property
    def in_flight(self) -> int:
        """Most requests that can be in flight at once."""
        return self.requests if self.concurrency is None else min(self.concurrency, self.requests)


class ExpectedQuestion(Model):
    """One question of a task: the request that asks it, its prompt's digest (of UTF-8), and the number that is right,
    in the form of `gsm8k.last_number`.
    """

    id: str
    prompt_sha256: Sha256
    gold: str


class ExpectedTask(Model):
    """The questions of a task in the order in which they are asked, each behind `shots` examples."""

    name: Literal["gsm8k"]
    shots: Count
    questions: tuple[ExpectedQuestion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({question.id for question in self.questions}) < len(self.questions):
            raise ValueError("two questions are asked by the same request")
        return self


class Expected(Model):
    """What the manifest and the lock say about every process of a row; validity compares the events with it.

    `input_len` and `output_len` are tokens per sequence. `kernels_sha256` null means that the variant uses none of
    our kernels. `ops` maps each op of our kernels that must run in the measured pass to its calls (null: as many as
    were routed to it), and no other may; the names of the kernels that serve them end with `kernel_suffix` (null: no
    kernel runs). `vlen_bits` null means that the target has no vector unit that the manifest declares. `accuracy` null
    means that no difference from torch-native makes the row invalid.
    `checkpoint_files` maps file to sha256. `environment` are variables that the process must see with exactly these
    values. `server_args` are fields of SGLang's ServerArgs that it must be given with exactly these values. `load`
    null means one-batch; a serving row has one, and a `batch_size` of 1.

    A row with a `task` is a serving row whose requests are the task's questions: `input_len` and `output_len` are then
    the most tokens, a line of `routing` holds for every number of rows, whatever its `m` is, and `accuracy` is not
    judged: the answers are.

    `compiles`: its processes compile, and so must prove that their cache was in the state that the row declares.
    """

    processes: Positive
    batch_size: Positive
    input_len: Positive
    output_len: Positive
    threads: Positive
    emulated: Flag
    machine: str
    vlen_bits: Positive | None
    packages: dict[str, str]
    checkpoint_files: dict[str, Sha256]
    kernels_sha256: Sha256 | None
    routing: tuple[Route, ...]
    ops: dict[str, Positive | None]
    kernel_suffix: Literal["_rvv", "_portable"] | None
    environment: dict[str, str] = {}
    server_args: dict[str, Any]
    load: ExpectedLoad | None = None
    accuracy: Accuracy | None = None
    task: ExpectedTask | None = None
    compiles: Flag = False

    @model_validator(mode="after")
    def _task_is_of_its_load(self) -> Self:
        if self.task and (self.load is None or self.load.requests != len(self.task.questions)):
            raise ValueError("a task has a load with as many requests as it has questions")
        return self

    @field_validator("server_args")
    @classmethod
    def _plain(cls, value: dict[str, Any]) -> dict[str, Any]:
        _refuse_what_json_lacks(value)
        return value

    @property
    def on_board(self) -> bool:
        """The target is a board: a vector unit is declared, and nothing emulates it."""
        return self.vlen_bits is not None and not self.emulated


class Process(Model):
    """One fresh process, with its raw events.

    `events_sha256` is the digest of the canonical JSON of `events`; `damage` is what of them could not be read.

    `exit_code` and `signal` are what the supervisor saw of the measured process, `container_exit_code` what the
    engine saw of the container (137 without a `process_end`: killed from outside, often for want of memory); null is
    not seen. `observation` (`rvvbench/observation/1`) is what was seen of the machine meanwhile; null: nobody looked.
    `cache` (`rvvbench/cache-proof/1`) is what it did to the cache that it was given; null: it had none.

    The rows of one server share its events: each of their processes keeps the whole list.
    """

    index: Count
    events: tuple[dict[str, Any], ...]
    events_sha256: Sha256
    damage: tuple[str, ...] = ()
    exit_code: Int | None
    signal: Int | None
    container_exit_code: Int | None = None
    figures: dict[str, Figure]
    observation: dict[str, Any] | None = None
    cache: dict[str, Any] | None = None

    @field_validator("observation", "cache")
    @classmethod
    def _plain(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        _refuse_what_json_lacks(value)
        return value


class Row(Model):
    """Variant x cache state x load. `concurrency` and `rate_per_s` are those of the load; both null for one-batch."""

    variant: str
    cache_state: CacheState
    concurrency: Positive | None
    expected: Expected
    processes: tuple[Process, ...]
    figures: dict[str, RowFigure]
    validity: Validity
    rate_per_s: Number | None = None

    @model_validator(mode="after")
    def _is_of_its_load(self) -> Self:
        load = self.expected.load
        if load is not None and (self.concurrency, self.rate_per_s) != (load.concurrency, load.rate_per_s):
            raise ValueError(f"row {self.name}: its concurrency or rate is not that of its load {load.name}")
        return self

    @property
    def name(self) -> str:
        """`variant/cache state`, and `/load` (as `c2`, `r0.5`) where there is one: unique in a record."""
        name = f"{self.variant}/{self.cache_state}"
        if self.expected.load is not None:
            return f"{name}/{self.expected.load.name}"
        return name if self.concurrency is None else f"{name}/c{self.concurrency}"


class Difference(Model):
    """Where two rows' greedy choices part:

    0-based `sequence` and `position`, both token ids, and the logit margin of the reference.
    """

    sequence: Count
    position: Count
    reference_token: Int
    token: Int
    reference_margin: Number | None


class RowAgreement(Model):
    """A row's tokens against the reference row's. `tokens_equal` is null exactly when `reason` says why.

    `max_logprob_difference`: largest |difference| of the chosen tokens' log-probabilities (nats) up to and without
    the first different token, after which the contexts differ; null where there is none to compare, and
    `logprob_reason` where that is by design. `reference` is the row that this one is compared with, null for the
    record's reference. Of a task, `answers_differ` of its `answers_compared` questions were answered otherwise than in
    the reference row, rightly or wrongly; null for all else, and where they cannot be compared.

    `mean_logprob_difference` is the mean over the same tokens. `greedy_agreement` is the share of all tokens that stand
    before the first different one of their sequence: from there on the contexts differ, so that neither equal tokens
    nor different ones say more. Both are null in records of `agreement/1`, and of a task, whose answers have as many
    tokens as they like.
    """

    row: str
    tokens_equal: Flag | None
    max_logprob_difference: Number | None
    first_difference: Difference | None
    reason: str | None = None
    reference: str | None = None
    logprob_reason: str | None = None
    mean_logprob_difference: Number | None = None
    greedy_agreement: Share | None = None
    answers_compared: Count | None = None
    answers_differ: Count | None = None


class Agreement(Model):
    """Do the rows of this record generate the same tokens?

    A row is compared with the row of torch-native of the same load, or where there is none with the first row of that
    load, which is then no member of `rows`. `reference` is the name of that row for the first load. By `agreement/1`,
    as in records that do not say otherwise, it is always the first row of the load.
    """

    reference: str
    rows: tuple[RowAgreement, ...]
    definition: AgreementId = "agreement/1"


class Heading(Model):
    """What every table of this record says above itself. Lengths are tokens per sequence.

    `requests` are the measured requests of each load of a serving run, or the questions of a task; null for one-batch.
    `task`, `shots` and `dataset` (which data, in words) are of a task only; lengths are then the most tokens.
    """

    model: str
    weights: Weights
    input_len: Positive
    output_len: Positive
    batch_size: Positive
    dtype: str
    tensor_parallel: Positive
    workload: Literal["one-batch", "serving", "eval"] = "one-batch"
    requests: Positive | None = None
    task: str | None = None
    shots: Count | None = None
    dataset: str | None = None

    @model_validator(mode="after")
    def _serving_has_requests(self) -> Self:
        if (self.workload != "one-batch") != (self.requests is not None):
            raise ValueError("a serving run has a number of requests or questions, a one-batch run has none")
        if {self.workload == "eval"} != {one is not None for one in (self.task, self.shots, self.dataset)}:
            raise ValueError("a task has a name, a number of examples and data, and no other run has")
        return self


class Target(Model):
    """Where the run happened; `name` is the board's manifest, null where there is none."""

    kind: TargetKind
    name: str | None = None


class PackageDifference(Model):
    """A package of the image that is not what the lock says; null: not there."""

    name: str
    locked: str | None
    used: str | None


class Relocked(Model):
    """The image is not the locked one: the suite no longer serves the locked versions."""

    reason: str
    differences: tuple[PackageDifference, ...]


class Image(Model):
    """The image that ran. `arch` as OCI names it (riscv64, amd64, arm64)."""

    name: str
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    arch: str
    relocked: Relocked | None = None


class Record(Model):
    """One invocation on one target; written once, never edited.

    `identity` is `identity(manifest, pins, environment)`; `seal` is the digest of the whole record without the seal,
    so that an edit anywhere shows. `machine` and `conditions_*` are free: what a machine can tell differs.
    """

    schema_: Literal["rvvbench/record/1"] = Field(default=RECORD_SCHEMA, alias="schema")
    run_id: RunId
    created: str
    experiment: str
    title: str
    heading: Heading
    target: Target
    emulated: Flag
    identity: Sha256
    manifest: dict[str, Any]
    pins: dict[str, Any]
    environment: dict[str, str]
    machine: dict[str, Any]
    conditions_before: dict[str, Any]
    conditions_after: dict[str, Any]
    image: Image
    rows: tuple[Row, ...] = Field(min_length=1)
    agreement: Agreement
    replay: str
    notes: tuple[str, ...] = ()
    seal: Sha256

    @field_validator("created")
    @classmethod
    def _utc(cls, value: str) -> str:
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError("not an ISO 8601 time") from error
        if moment.utcoffset() != datetime.timedelta(0):
            raise ValueError("not in UTC (end it with Z or +00:00)")
        return value

    @field_validator("manifest", "pins", "machine", "conditions_before", "conditions_after")
    @classmethod
    def _plain(cls, value: dict[str, Any]) -> dict[str, Any]:
        _refuse_what_json_lacks(value)
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.emulated != (self.target.kind == "emulated"):
            raise ValueError(f"emulated is {self.emulated}, the target is {self.target.kind}")
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError(f"two rows are the same variant, cache state and load: {', '.join(sorted(names))}")
        shape = (self.heading.batch_size, self.heading.input_len, self.heading.output_len)
        for row in self.rows:
            expected = row.expected
            if expected.emulated != self.emulated:
                raise ValueError(f"row {row.name}: emulated is {expected.emulated}, the record's is {self.emulated}")
            if (expected.batch_size, expected.input_len, expected.output_len) != shape:
                raise ValueError(f"row {row.name}: its shape is not the one in the heading")
            if (expected.load.requests if expected.load else None) != self.heading.requests:
                raise ValueError(f"row {row.name}: its requests are not those in the heading")
            if (row.expected.task is not None) != (self.heading.workload == "eval"):
                raise ValueError(f"row {row.name}: the heading is of {self.heading.workload}, the row is not")
        return self

    @property
    def valid(self) -> bool:
        """Every row is valid."""
        return all(row.validity.valid for row in self.rows)

    def plain(self) -> dict[str, Any]:
        """The record as JSON data, with the names of its fields in the file.

        Of a record that was read exactly what stands in its file: a field of a later version is not added, so that the
        seal of an old record holds.
        """
        return {"schema": self.schema_, **self.model_dump(mode="json", by_alias=True, exclude_unset=True)}

    def whole(self) -> dict[str, Any]:
        """As `plain`, with every field of this version."""
        return self.model_dump(mode="json", by_alias=True)


def _refuse_what_json_lacks(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is no string")
            _refuse_what_json_lacks(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_what_json_lacks(item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and infinity are no JSON numbers")
    elif value is not None and not isinstance(value, str | int | float | bool):
        raise ValueError(f"{type(value).__name__} is no JSON data")
