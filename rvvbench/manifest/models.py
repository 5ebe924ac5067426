"""What a manifest may say. Unknown keys are errors: a typo must not silently measure something else."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from rvvbench.manifest.server_args import is_of_the_harness

T = TypeVar("T")

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.\-]*$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Arch = Literal["riscv64", "amd64", "arm64"]
TargetKind = Literal["board", "emulated", "host"]
WeightsKind = Literal["hub", "synthetic"]
CacheState = Literal["none", "cold", "warm"]
COMPILED_STATES: tuple[CacheState, ...] = ("cold", "warm")
"""Of what compiles: cold begins with no cache, warm with what a recorded cold process made."""
Projection = Literal["qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"]
LAYER_PROJECTIONS: tuple[Projection, ...] = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
"""Those that every layer has, in the order in which it computes them; a model has one `lm_head`."""
PROJECTIONS: tuple[Projection, ...] = (*LAYER_PROJECTIONS, "lm_head")
Architecture = Literal["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"]
Count = Annotated[int, Field(gt=0, lt=2**31)]
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
Concurrency = Annotated[int, Field(ge=1, le=1024)]


def misplaced(loc: tuple[str | int, ...], message: str, value: Any) -> ValidationError:
    """A validation error at `loc` below the validator that raises it."""
    kind = PydanticCustomError("manifest", "{message}", {"message": message})
    return ValidationError.from_exception_data("manifest", [{"type": kind, "loc": loc, "input": value}])


def _each_once(values: list[T]) -> list[T]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise misplaced((index,), "stands twice", value)
    return values


def _rising(cpus: str) -> str:
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"the range {part} falls")
    return cpus


CpuSet = Annotated[
    str, StringConstraints(pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$"), AfterValidator(_rising)
]


class Strict(BaseModel):
    """Frozen, closed to keys that it does not know, and true to types: `true` and `1.0` are no integers."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        protected_namespaces=(),
    )


class OneBatch(Strict):
    """SGLang's one-batch path: `batch_size` prompts of `input_len` tokens, `output_len` tokens generated, no server."""

    kind: Literal["one-batch"]
    batch_size: int = Field(default=1, ge=1, le=64)
    input_len: int = Field(ge=1, le=32768)
    output_len: int = Field(ge=1, le=4096)
    seed: int = Field(ge=0)


class ServerSwitches(Strict):
    """How SGLang's server is set for a measurement; proven against what the running server says of itself.

    The defaults are what a trustworthy timing on a CPU needs: no prompt is answered from a cache, a token is sent
    when it is made and not a step later, an idle scheduler leaves the CPU alone, and no tokenizer is in the path.
    """

    disable_radix_cache: bool = True
    disable_overlap_schedule: bool = True
    sleep_on_idle: bool = True
    skip_tokenizer_init: bool = True
    stream_interval: int = Field(default=1, ge=1, le=64)


class OpenLoad(Strict):
    """Requests that are sent when they are due, however many are in flight. `seed` draws Poisson arrivals."""

    arrivals: Literal["fixed", "poisson"]
    rate_per_s: float = Field(gt=0, le=10_000)
    seed: int = Field(default=0, ge=0)


class CrossCheck(Strict):
    """SGLang's own serving benchmark, run against the same server after the loads. It times visible text, so the
    server must have its tokenizer.
    """

    requests: int = Field(default=30, ge=1, le=10_000)
    concurrency: Concurrency = 1


class Serving(Strict):
    """SGLang's server, asked over HTTP: closed loops of `requests` requests at each concurrency, in this order, then
    open loops; `input_len` tokens in and `output_len` out for each request, every prompt a different one.
    """

    kind: Literal["serving"]
    concurrency: Annotated[list[Concurrency], AfterValidator(_each_once)] = Field(default_factory=list)
    open_loops: list[OpenLoad] = Field(default_factory=list)
    requests: int = Field(default=4, ge=1, le=10_000)
    input_len: int = Field(ge=1, le=32768)
    output_len: int = Field(ge=1, le=4096)
    seed: int = Field(ge=0)
    server: ServerSwitches = ServerSwitches()
    cross_check: CrossCheck | None = None

    @model_validator(mode="after")
    def _has_loads(self) -> Serving:
        if not self.concurrency and not self.open_loops:
            raise misplaced(("concurrency",), "names no load, and neither does `open_loops`", self.concurrency)
        for index, concurrency in enumerate(self.concurrency):
            if concurrency > self.requests:
                message = f"{self.requests} requests (workload.requests) never are {concurrency} at once"
                raise misplaced(("concurrency", index), message, concurrency)
        if self.input_len <= self.most_in_flight:
            most = self.most_in_flight
            why = "else nothing tells a prefill from a decode step by its rows"
            message = f"prompts must be longer than the {most} requests that may be in flight: {why}"
            raise misplaced(("input_len",), message, self.input_len)
        rates = [load.rate_per_s for load in self.open_loops]
        for index, rate in enumerate(rates):
            if rate in rates[:index]:
                raise misplaced(("open_loops", index, "rate_per_s"), "stands twice: rows are told apart by it", rate)
        if self.cross_check is not None and self.server.skip_tokenizer_init:
            message = "SGLang's benchmark times visible text: it needs `server.skip_tokenizer_init: false`"
            raise misplaced(("cross_check",), message, self.cross_check.model_dump())
        return self

    @property
    def most_in_flight(self) -> int:
        """Requests that the server must be able to hold at once."""
        others = [self.requests] if self.open_loops else []
        if self.cross_check is not None:
            others.append(self.cross_check.concurrency)
        return max([*self.concurrency, *others])


class EvalSwitches(ServerSwitches):
    """How the server is set for a task: with its tokenizer, because a task is text, and with its prefix cache, because
    every prompt begins with the same examples. What came from the cache is in no prefill, and counted.
    """

    disable_radix_cache: bool = False
    skip_tokenizer_init: bool = False
    stream_interval: int = Field(default=16, ge=1, le=64)


class Eval(Strict):
    """A task whose answers are right or wrong, put to SGLang's server: the first `questions` questions of the data
    set's test split, each behind the first `shots` of its train split with their answers; greedy, up to
    `max_new_tokens` tokens or a text of `stop`, `concurrency` at once.

    `max_prompt_tokens`: the longest prompt, by the model's own tokenizer, that there may be.
    """

    kind: Literal["eval"]
    task: Literal["gsm8k"]
    dataset: Name
    shots: int = Field(default=8, ge=0, le=64)
    questions: int = Field(ge=1, le=10_000)
    max_prompt_tokens: int = Field(ge=1, le=32768)
    max_new_tokens: int = Field(ge=1, le=4096)
    stop: list[Annotated[str, StringConstraints(min_length=1)]] = Field(default_factory=lambda: ["Question:"])
    concurrency: Concurrency = 1
    server: EvalSwitches = EvalSwitches()

    @model_validator(mode="after")
    def _can_be_asked(self) -> Eval:
        if self.concurrency > self.questions:
            message = f"{self.questions} questions (workload.questions) never are {self.concurrency} at once"
            raise misplaced(("concurrency",), message, self.concurrency)
        if self.max_prompt_tokens <= self.concurrency:
            message = f"must be more tokens than the {self.concurrency} questions that may be asked at once"
            raise misplaced(("max_prompt_tokens",), message, self.max_prompt_tokens)
        if self.server.skip_tokenizer_init:
            raise misplaced(("server", "skip_tokenizer_init"), "a task is text: the server needs its tokenizer", True)
        return self

    @property
    def input_len(self) -> int:
        """Most tokens of a prompt."""
        return self.max_prompt_tokens

    @property
    def output_len(self) -> int:
        """Most tokens of an answer."""
        return self.max_new_tokens

    def as_serving(self) -> Serving:
        """The serving workload with the same server and as many requests, each of the most tokens that there may be."""
        return Serving(
            kind="serving",
            concurrency=[self.concurrency],
            requests=self.questions,
            input_len=self.input_len,
            output_len=self.output_len,
            seed=0,
            server=self.server,
        )


Workload = Annotated[OneBatch | Serving | Eval, Field(discriminator="kind")]


class Timeouts(Strict):
    """Seconds after which something counts as hung: `process` a whole container; of a server, `startup` to its first
    answer, `compile` to its first generation and for each warm-up, `request` one measured request.
    """

    process: Seconds
    startup: Seconds | None = None
    compile: Seconds | None = None
    request: Seconds | None = None


class Experiment(Strict):
    """A named manifest: workload + model + stack + variants + cache states + repeats.

    `cache_states` are those of variants that compile; a variant that does not has none.
    """

    schema_: Literal["rvvbench/experiment/1"] = Field(alias="schema")
    name: Name
    title: str
    workload: Workload
    model: Name
    weights: WeightsKind
    stack: Name
    board: Name
    dtype: Literal["bfloat16"]
    tensor_parallel: int = Field(ge=1, le=1)
    fresh_processes: int = Field(ge=1, le=100)
    variants: Annotated[list[Name], Field(min_length=1), AfterValidator(_each_once)]
    coming_variants: Annotated[list[Name], AfterValidator(_each_once)] = Field(
        default_factory=list, description="variants that belong to this comparison and that this version cannot run yet"
    )
    cache_states: Annotated[list[CacheState], Field(min_length=1), AfterValidator(_each_once)]
    timeouts_s: Timeouts
    sample_interval_s: float = Field(default=0.25, ge=0.05, le=60)

    @model_validator(mode="after")
    def _has_time_for_its_open_loops(self) -> Experiment:
        if isinstance(self.workload, Serving):
            for index, load in enumerate(self.workload.open_loops):
                lasts_s = (self.workload.requests - 1) / load.rate_per_s
                if lasts_s >= self.timeouts_s.process:
                    limit_s = self.timeouts_s.process
                    asked = f"{self.workload.requests} requests last {lasts_s:.0f} s on average"
                    message = f"{asked}, timeouts_s.process is {limit_s:.0f} s"
                    raise misplaced(("workload", "open_loops", index, "rate_per_s"), message, load.rate_per_s)
        return self

    @model_validator(mode="after")
    def _has_the_timeouts_of_its_workload(self) -> Experiment:
        for name in ("startup", "compile", "request"):
            value = getattr(self.timeouts_s, name)
            if isinstance(self.workload, Serving | Eval) and value is None:
                raise misplaced(("timeouts_s",), f"a workload with a server needs `{name}`", None)
            if isinstance(self.workload, OneBatch) and value is not None:
                raise misplaced(("timeouts_s", name), "is for serving workloads; a one-batch run has no server", value)
        return self


class Hub(Strict):
    """A checkpoint on the Hugging Face Hub, at one revision."""

    repo: Annotated[str, StringConstraints(pattern=r"^[\w.\-]+/[\w.\-]+$")]
    revision: Commit
    gated: bool = False


class Splits(Strict):
    """The files of a data set, as the Hub names them: examples are taken from `train`, questions from `test`."""

    train: str
    test: str


class Dataset(Strict):
    """A data set on the Hugging Face Hub, at one revision."""

    schema_: Literal["rvvbench/dataset/1"] = Field(alias="schema")
    name: Name
    title: str
    hub: Hub
    splits: Splits


class SyntheticFile(Strict):
    """What the generator must write, to the bit."""

    sha256: Sha256
    size: int = Field(gt=0)


class Quantised(Strict):
    """The W8A8 form of a generated checkpoint (docs/quantised-checkpoints.md), for variants with `linear: w8a8`."""

    algorithm: Literal["rvvbench-w8a8/1"]
    files: dict[str, SyntheticFile] = Field(min_length=1)


class Synthetic(Strict):
    """A checkpoint that is generated, not downloaded: same bytes on every machine."""

    algorithm: Literal["rvvbench-synthetic/1"]
    seed: int = Field(ge=0)
    files: dict[str, SyntheticFile]
    w8a8: Quantised | None = None


class Configuration(Strict):
    """Of a Hugging Face configuration, what shapes, routing and limits are computed from; all else is the model's."""

    model_config = ConfigDict(extra="allow")

    architectures: list[Architecture] = Field(min_length=1)
    hidden_size: Count
    intermediate_size: Count
    max_position_embeddings: Count
    num_attention_heads: Count
    num_hidden_layers: Count
    vocab_size: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None

    @model_validator(mode="after")
    def _heads_divide(self) -> Configuration:
        heads, groups = self.num_attention_heads, self.num_key_value_heads
        if groups and heads % groups:
            raise misplaced(("num_key_value_heads",), f"must divide num_attention_heads ({heads})", groups)
        if not self.head_dim and self.hidden_size % heads:
            raise misplaced(("hidden_size",), f"must be a multiple of num_attention_heads ({heads})", self.hidden_size)
        return self


class Model(Strict):
    """A model: its configuration, and where its weights may come from."""

    schema_: Literal["rvvbench/model/1"] = Field(alias="schema")
    name: Name
    title: str
    hub: Hub | None = None
    config: dict[str, Any]
    synthetic: Synthetic | None = None

    @field_validator("config")
    @classmethod
    def _has_shapes(cls, config: dict[str, Any]) -> dict[str, Any]:
        # The dictionary itself stays: the checkpoint's config.json is written from exactly it.
        Configuration.model_validate(config)
        return config

    @model_validator(mode="after")
    def _has_weights(self) -> Model:
        if self.hub is None and self.synthetic is None:
            raise ValueError("a model needs `hub` or `synthetic`")
        return self


class DebianSource(Strict):
    """A package of the image's Debian suite; the lock's list of the image must have it in this version."""

    kind: Literal["debian"]
    package: str
    version: str


class WheelSource(Strict):
    """A wheel pinned by its sha256, fetched by the package client under its default index."""

    kind: Literal["wheel"]
    requirement: str
    filename: str
    sha256: Sha256
    version: str


class GitSource(Strict):
    """A git repository pinned by URL, branch and commit; a null commit has to be resolved by `rvvbench lock`."""

    kind: Literal["git"]
    url: str
    branch: str
    commit: Commit | None


Source = Annotated[DebianSource | WheelSource | GitSource, Field(discriminator="kind")]


class Stack(Strict):
    """The pins of PyTorch, SGLang, kernels and image."""

    schema_: Literal["rvvbench/stack/1"] = Field(alias="schema")
    name: Name
    title: str
    image: Name
    toolchain: Name
    pytorch: Source
    sglang: Source
    packages: dict[str, str] = Field(description="Python distribution -> version, proven inside the container")


class Omp(Strict):
    """OpenMP placement, exactly as exported."""

    places: str | None = None
    proc_bind: Literal["true", "false", "close", "spread", "master"] | None = None


class Board(Strict):
    """A machine that a run is placed on. `emulated` boards say which CPU QEMU plays."""

    schema_: Literal["rvvbench/board/1"] = Field(alias="schema")
    name: Name
    title: str
    arch: Literal["riscv64", "host"]
    vlen: int | None = None
    threads: int = Field(ge=1, le=1024)
    cpus: CpuSet | None = Field(default=None, description="cpuset of the container, e.g. 0-7")
    clusters: list[list[int]] = Field(default_factory=list)
    omp: Omp = Omp()
    memory_limit_bytes: int | None = Field(default=None, gt=0)
    qemu_cpu: str | None = None


class Accuracy(Strict):
    """How far a row may be from the row of `torch-native` in the same record; one that is further is not valid.

    `greedy_agreement` is the least share of tokens before the first different one of their sequence; the other two
    bound what the log-probabilities of those tokens may differ by (nats). A server gives no log-probabilities: of a
    serving row only the first counts.
    """

    greedy_agreement: float = Field(ge=0, le=1)
    max_logprob_difference: float = Field(ge=0)
    mean_logprob_difference: float = Field(ge=0)

    @model_validator(mode="after")
    def _mean_is_within_the_largest(self) -> Accuracy:
        if self.mean_logprob_difference > self.max_logprob_difference:
            message = f"no mean is above the largest difference, {self.max_logprob_difference:g}"
            raise misplaced(("mean_logprob_difference",), message, self.mean_logprob_difference)
        return self


class Variant(Strict):
    """What a row compares. Two variants differ only in what stands here.

    `linear` w8a8 computes the projections of the layers in INT8, of a checkpoint that was quantised so; `lm_head` is
    not quantised, and packed as in `linear: packed` where `projections` has it. `elementwise` are norms, gated
    activations and rotary embeddings. `packed_budget_percent` bounds the packed weights, to this share of their bytes;
    what does not fit is computed from the row-major weight (`manifest/packing.py`).

    `compile` regional: TorchInductor compiles the projections, each by itself, from packed weights
    (`packed_weight_mode` explicit) or row-major ones (off), with `small_batch` for 2 to 15 rows too
    (`manifest/regional.py`).
    """

    schema_: Literal["rvvbench/variant/1"] = Field(alias="schema")
    name: Name
    title: str
    attention_backend: Literal["torch_native", "rvv"]
    linear: Literal["torch", "packed", "w8a8"]
    projections: Annotated[list[Projection], AfterValidator(_each_once)] = Field(default_factory=list)
    elementwise: Literal["torch", "kernels"] = "torch"
    kv_cache_dtype: Literal["auto", "int8"] = "auto"
    packed_budget_percent: int | None = Field(default=None, ge=0, le=100)
    accuracy: Accuracy | None = None
    compile: Literal["none", "regional"] = "none"
    packed_weight_mode: Literal["explicit", "off"] | None = None
    small_batch: bool | None = None
    server_args: dict[str, Any] = Field(default_factory=dict)

    @property
    def uses_kernels(self) -> bool:
        """Whether our kernel library must be loaded and attested."""
        others = self.attention_backend == "rvv" or self.elementwise == "kernels"
        return self.linear != "torch" or others or self.packed_weight_mode == "explicit"

    @property
    def compiles(self) -> bool:
        """Whether a process of it compiles, and so has a cache."""
        return self.compile != "none"

    @field_validator("server_args")
    @classmethod
    def _leaves_the_harness_its_own(cls, server_args: dict[str, Any]) -> dict[str, Any]:
        for key, value in server_args.items():
            if is_of_the_harness(key):
                raise misplaced((key,), "a variant may not override what the rest of the manifest declares", value)
        return server_args

    @model_validator(mode="after")
    def _projections_fit(self) -> Variant:
        if (self.linear != "torch") != bool(self.projections):
            message = "`projections` goes with `linear: packed` and `linear: w8a8`, and only with them"
            raise misplaced(("projections",), message, self.projections)
        missing = [name for name in LAYER_PROJECTIONS if name not in self.projections]
        if self.linear == "w8a8" and missing:
            message = f"a W8A8 checkpoint has every projection of its layers in INT8; {', '.join(missing)} must be here"
            raise misplaced(("projections",), message, self.projections)
        return self

    @model_validator(mode="after")
    def _goes_together(self) -> Variant:
        if self.kv_cache_dtype == "int8" and self.attention_backend != "rvv":
            message = "only `attention_backend: rvv` reads a cache of INT8"
            raise misplaced(("kv_cache_dtype",), message, self.kv_cache_dtype)
        if self.packed_budget_percent is not None and self.linear != "packed":
            message = "a budget of packed weights needs `linear: packed`"
            raise misplaced(("packed_budget_percent",), message, self.packed_budget_percent)
        return self

    @model_validator(mode="after")
    def _says_how_it_compiles(self) -> Variant:
        for name in ("packed_weight_mode", "small_batch"):
            value = getattr(self, name)
            if self.compiles and value is None:
                raise misplaced((name,), f"`compile: {self.compile}` needs it", value)
            if not self.compiles and value is not None:
                raise misplaced((name,), "goes with `compile: regional`, and only with it", value)
        if self.compiles and self.linear != "torch":
            message = "regions are of the linears that are left to torch: `linear: torch`"
            raise misplaced(("linear",), message, self.linear)
        return self
