"""What is attested of kernels that are there, that are others, and that are not there."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from rvvbench.runner import attestation, sglang_batch
from rvvbench.runner import spec as specs
from rvvbench.runner.failure import PinFailed

ROUTES = [{"projection": "norm", "m": 1, "path": "torch", "calls": 5}]


@pytest.fixture(autouse=True)
def plugin(monkeypatch):
    package = ModuleType("sglang_rvv")
    package.routing = SimpleNamespace(snapshot=lambda: ROUTES, reset=lambda: None)
    monkeypatch.setitem(sys.modules, "sglang_rvv", package)


@pytest.fixture
def spec(document):
    document["variant"]["attention_backend"] = "rvv"
    document["expect"]["kernels_sha256"] = "a" * 64
    return specs.parse(document)


def kernels(sha256):
    package = ModuleType("sgl_kernel")
    package.attestation = lambda: {"library_sha256": sha256, "ops": {"rmsnorm_cpu": {"calls": 1}}}
    package.reset_attestation = lambda: None
    return package


def test_kernels_attest_what_they_counted(monkeypatch, spec):
    monkeypatch.setitem(sys.modules, "sgl_kernel", kernels("a" * 64))
    found = attestation.loaded_kernels(spec)
    attestation.reset(found)
    ops = {"rmsnorm_cpu": {"calls": 1}}
    assert attestation.fields(found) == {"library_sha256": "a" * 64, "ops": ops, "routing": ROUTES}


def test_another_library_than_the_pinned_one_ends_the_run(monkeypatch, spec):
    monkeypatch.setitem(sys.modules, "sgl_kernel", kernels("b" * 64))
    with pytest.raises(PinFailed, match=r"b{64}, the spec pins a{64}"):
        attestation.loaded_kernels(spec)


def test_a_library_that_cannot_be_loaded_ends_nothing_and_is_attested_with_its_reason(monkeypatch, spec):
    monkeypatch.setitem(sys.modules, "sgl_kernel", None)
    found = attestation.loaded_kernels(spec)
    attestation.reset(found)
    fields = attestation.fields(found)
    assert (fields["library_sha256"], fields["ops"], fields["routing"]) == (None, {}, ROUTES)
    assert fields["library_reason"].startswith("ModuleNotFoundError: import of sgl_kernel")


def test_a_variant_without_kernels_loads_none(monkeypatch, document):
    monkeypatch.setitem(sys.modules, "sgl_kernel", None)
    found = attestation.loaded_kernels(specs.parse(document))
    assert attestation.fields(found) == {"library_sha256": None, "ops": {}, "routing": ROUTES}


def test_cache_quantisation_and_budget_are_arguments_of_sglang_only_where_they_are_declared(document):
    plain = sglang_batch.server_arguments(specs.parse(document))
    assert not {"kv_cache_dtype", "quantization", "cpu_rvv_memory_budget_mib"} & plain.keys()
    document["variant"].update(
        attention_backend="rvv", linear="w8a8", projections=["o_proj"], kv_cache_dtype="int8", memory_budget_mib=0.0
    )
    document["expect"]["kernels_sha256"] = "a" * 64
    given = sglang_batch.server_arguments(specs.parse(document))
    assert (given["attention_backend"], given["kv_cache_dtype"], given["quantization"]) == ("rvv", "int8", "w8a8_int8")
    assert given["cpu_rvv_memory_budget_mib"] == 0.0
