"""What a record expects of routes, operators, budget and switches is derived again from its manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.manifest.models import PROJECTIONS, OneBatch, Serving, Variant
from rvvbench.manifest.operators import allowed_ops, expected_ops
from rvvbench.manifest.packing import packing
from rvvbench.manifest.routing import allowed_routes, predicted_routes
from rvvbench.record.build import seal_of
from rvvbench.record.declared_routes import calls_of_one_batch, ops_declared, routes_declared
from rvvbench.record.identity import identity
from rvvbench.record.plain_model import NotDeclaredError, packed_of, plain_model
from rvvbench.record.schema import Expected, ExpectedLoad, Record
from rvvbench.record.schema import Route as RecordRoute
from rvvbench.record.verify import verify

from . import sample, whole_model

Plain = dict[str, Any]
ROW = "row rvv-kernels-budget-50/none, expected"


@pytest.fixture(scope="module")
def record() -> Record:
    return whole_model.record(whole_model.row("torch-native"), whole_model.row("rvv-kernels-budget-50"))


def found(record: Record, change: Callable[[Plain], Any]) -> list[tuple[str, str]]:
    """Findings of expectations in a record that was changed, with identity and seal made anew."""
    plain = record.plain()
    change(plain)
    plain["identity"] = identity(plain["manifest"], plain["pins"], plain["environment"])
    changed = Record.model_validate(plain)
    changed = changed.model_copy(update={"seal": seal_of(changed)})
    return [(one.where, one.text) for one in verify(changed) if one.id == "expected"]


def routing(plain: Plain) -> list[Plain]:
    lines: list[Plain] = plain["rows"][1]["expected"]["routing"]
    return lines


def line(plain: Plain, projection: str, m: int, path: str) -> Plain:
    return next(x for x in routing(plain) if (x["projection"], x["m"], x["path"]) == (projection, m, path))


def test_what_was_built_holds(record: Record) -> None:
    assert found(record, lambda plain: None) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda plain: line(plain, "norm", 64, "kernels").update(calls=6),
            "norm at M=64 by kernels has calls and modules (6, None), shape, model and variant say (5, None)",
        ),
        (
            lambda plain: line(plain, "down_proj", 1, "packed").update(calls=14),
            "down_proj at M=1 by packed has calls and modules (14, None), shape, model and variant say (7, None)",
        ),
        (
            lambda plain: routing(plain).remove(line(plain, "rotary_embedding", 1, "kernels")),
            "rotary_embedding at M=1 by kernels is not there, shape, model and variant have it",
        ),
        (
            lambda plain: line(plain, "lm_head", 1, "row_major").update(path="packed"),
            "lm_head at M=1 by packed is there, shape, model and variant have no such route",
        ),
        (
            lambda plain: routing(plain).append(line(plain, "lm_head", 1, "row_major")),
            "lm_head at M=1 by row_major stands twice",
        ),
    ],
)
def test_every_line_of_the_table_is_what_the_manifest_says(record: Record, change: Any, text: str) -> None:
    assert (f"{ROW}.routing", text) in found(record, change)


def setting(path: str, value: Any) -> Callable[[Plain], None]:
    def change(plain: Plain) -> None:
        *parents, last = path.split(".")
        node = plain["rows"][1]["expected"]
        for parent in parents:
            node = node[parent]
        node[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("ops.rmsnorm_cpu", 9, "ops"),
        ("ops.linear_rowmajor", 1, "ops"),
        ("server_args.cpu_rvv_memory_budget_mib", 42.0, "server_args.cpu_rvv_memory_budget_mib"),
        ("server_args.kv_cache_dtype", "int8", "server_args.kv_cache_dtype"),
        ("server_args.quantization", "w8a8_int8", "server_args.quantization"),
        ("server_args.attention_backend", "torch_native", "server_args.attention_backend"),
        ("environment.SGLANG_RVV_ELEMENTWISE", "torch", "environment"),
        ("environment.SGLANG_RVV_LINEAR", "torch", "environment"),
        ("environment.SGLANG_RVV_PROJECTIONS", "", "environment"),
        ("accuracy", None, "accuracy"),
        ("kernels_sha256", None, "kernels_sha256"),
        ("kernel_suffix", "_portable", "kernel_suffix"),
    ],
)
def test_every_expectation_that_the_variant_decides_is_the_variants(
    record: Record, path: str, value: Any, where: str
) -> None:
    assert [one for one, _ in found(record, setting(path, value))] == [f"{ROW}.{where}"]


@pytest.mark.parametrize(
    ("key", "value"), [("packed_budget_percent", 25), ("elementwise", "torch"), ("attention_backend", "torch_native")]
)
def test_another_variant_in_the_manifest_is_found(record: Record, key: str, value: Any) -> None:
    assert found(record, lambda plain: plain["manifest"]["variants"][1].update({key: value}))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m["model"].update(config=None), "the manifest has no configuration of the model"),
        (lambda m: m["model"]["config"].update(vocab_size="x"), "the model's vocab_size is x"),
        (lambda m: m["model"]["config"].update(num_hidden_layers=True), "the model's num_hidden_layers is True"),
        (lambda m: m["variants"][1].update(packed_budget_percent=101), "the variant's packed_budget_percent is 101"),
    ],
)
def test_a_manifest_from_which_nothing_can_be_derived_is_a_finding_and_no_crash(
    record: Record, change: Any, text: str
) -> None:
    assert (ROW, f"cannot be derived: {text}") in found(record, lambda plain: change(plain["manifest"]))


def test_routes_of_a_load_are_those_that_its_requests_can_take_with_their_modules() -> None:
    expects = whole_model.load_expected("rvv-kernels", 2)
    of = whole_model.resolved("rvv-kernels", "qwen3-mini")
    model, variant = plain_model(of.model.config), of.variants[0].model_dump(mode="json")
    assert list(routes_declared("here", expects, model, variant)) == []
    fewer = expects.model_copy(update={"routing": expects.routing[1:]})
    assert len(list(routes_declared("here", fewer, model, variant))) == 1
    first = expects.routing[0].model_copy(update={"modules": 1})
    other = expects.model_copy(update={"routing": (first, *expects.routing[1:])})
    [finding] = routes_declared("here", other, model, variant)
    assert finding.text.endswith("has calls and modules (None, 1), shape, model and variant say (None, 2)")


configurations = st.fixed_dictionaries(
    {
        "architectures": st.sampled_from([[f"{name}ForCausalLM"] for name in ("Llama", "Qwen2", "Qwen3")]),
        "hidden_size": st.sampled_from([256, 512]),
        "intermediate_size": st.integers(1, 700),
        "num_attention_heads": st.just(4),
        "num_key_value_heads": st.sampled_from([None, 1, 2, 4]),
        "head_dim": st.sampled_from([None, 32, 96]),
        "num_hidden_layers": st.integers(1, 5),
        "vocab_size": st.integers(1, 3000),
    }
)


@st.composite
def variants(draw: st.DrawFn) -> Variant:
    linear = draw(st.sampled_from(["torch", "packed", "w8a8"]))
    backend = draw(st.sampled_from(["torch_native", "rvv"]))
    head = draw(st.sampled_from([[], ["lm_head"]]))
    some = draw(st.lists(st.sampled_from(PROJECTIONS), unique=True, min_size=1))
    return Variant.model_validate(
        {
            "schema": "rvvbench/variant/1",
            "name": "v",
            "title": "v",
            "attention_backend": backend,
            "linear": linear,
            "projections": {"torch": [], "packed": some, "w8a8": [*PROJECTIONS[:4], *head]}[linear],
            "elementwise": draw(st.sampled_from(["torch", "kernels"])),
            "kv_cache_dtype": draw(st.sampled_from(["auto", "int8"])) if backend == "rvv" else "auto",
            "packed_budget_percent": draw(st.none() | st.integers(0, 100)) if linear == "packed" else None,
        }
    )


@given(configurations, variants(), st.integers(1, 3), st.integers(4, 9), st.integers(1, 4))
def test_both_derivations_agree_on_every_model_variant_and_shape(
    config: Plain, variant: Variant, batch: int, input_len: int, output_len: int
) -> None:
    """The prediction knows the manifest's models, the check only plain JSON data."""
    model, plain = plain_model(config), variant.model_dump(mode="json")
    packed, checked = packing(config, variant), packed_of(model, plain)
    assert (packed.packed_bytes, packed.row_major_bytes) == (checked.bytes, checked.left_bytes)
    assert packed.budget_bytes == checked.budget_bytes
    one_batch = OneBatch(kind="one-batch", batch_size=batch, input_len=input_len, output_len=output_len, seed=0)
    shape: Plain = {"batch_size": batch, "input_len": input_len, "output_len": output_len}
    routes = predicted_routes(config, variant, one_batch)
    expects = expecting(routes, **shape)
    assert {(r.projection, r.m, r.path): r.calls for r in routes} == calls_of_one_batch(expects, model, plain)
    assert list(routes_declared("here", expects, model, plain)) == []
    assert ops_declared(expects, model, plain) == expected_ops(config, variant, one_batch)
    serving = Serving(
        kind="serving", concurrency=[batch], requests=batch, input_len=input_len, output_len=output_len, seed=0
    )
    load = ExpectedLoad(
        name="c", mode="closed", concurrency=batch, arrivals=None, rate_per_s=None, requests=batch, layers=model.layers
    )
    expects = expecting(allowed_routes(config, variant, serving, batch), **{**shape, "batch_size": 1, "load": load})
    assert list(routes_declared("here", expects, model, plain)) == []
    assert ops_declared(expects, model, plain) == allowed_ops(config, variant, serving)


def expecting(routes: Any, **fields: Any) -> Expected:
    lines = [{k: getattr(route, k) for k in ("projection", "m", "path", "calls", "modules")} for route in routes]
    return sample.expected(routing=[RecordRoute(**one) for one in lines], **fields)


def test_a_model_that_lacks_a_size_is_told_by_its_name() -> None:
    with pytest.raises(NotDeclaredError, match="num_attention_heads is None"):
        plain_model({"hidden_size": 1, "intermediate_size": 1})
