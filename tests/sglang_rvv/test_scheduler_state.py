"""The hook's own logic, with stand-ins for the modules of SGLang that it meets; the real ones are in the image."""

import importlib
import json
import os
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from sglang_rvv import hooks, routing, scheduler_state, startup
from sglang_rvv.budget import Budget
from sglang_rvv.upstream import IntegrationError

PYPROJECT = Path(__file__).resolve().parents[2] / "kernels" / "python" / "sglang_rvv" / "pyproject.toml"


class Platform:
    """Stands in for SGLang's active platform."""


def module(monkeypatch, name, **members):
    made = ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.fixture
def scheduler(monkeypatch):
    """A process as SGLang's scheduler: plugins loaded, the hook applied or not."""
    for name in ("torch", "sglang", "sglang.srt", "sglang.srt.managers"):
        module(monkeypatch, name)
    sys.modules["torch"].get_num_threads = lambda: 3
    module(monkeypatch, "sglang.srt.platforms", current_platform=Platform())
    plugins = module(monkeypatch, "sglang.srt.plugins", _plugins_loaded=True)

    class Scheduler:
        def get_internal_state(self): ...

    module(monkeypatch, "sglang.srt.managers.scheduler", Scheduler=Scheduler)
    monkeypatch.delitem(sys.modules, "sgl_kernel", raising=False)
    return SimpleNamespace(plugins=plugins, Scheduler=Scheduler)


def test_the_state_tells_what_ran_beside_what_sglang_told(scheduler, monkeypatch):
    routing.reset()
    routing.count("lm_head", 2, "torch")
    told = SimpleNamespace(internal_state={"last_gen_throughput": 1.0})
    assert scheduler_state.add_what_ran(told).internal_state["last_gen_throughput"] == 1.0
    monkeypatch.setattr(startup, "_lines", ["sglang_rvv: said at start"])
    monkeypatch.setattr(
        startup, "_linears", [SimpleNamespace(budget=Budget(100, 60, {"a": 60}, {"b": 50}), regions=None)]
    )
    state = scheduler_state.add_what_ran(told, object(), object()).internal_state
    assert json.loads(json.dumps(state["rvv"])) == {
        "pid": os.getpid(),
        "platform_class": f"{Platform.__module__}.Platform",
        "torch_threads": 3,
        "library_sha256": None,
        "ops": {},
        "routing": [{"projection": "lm_head", "m": 2, "path": "torch", "calls": 1}],
        "active": {
            "lines": ["sglang_rvv: said at start"],
            "models": [{"budget_bytes": 100, "packed": {"a": 60}, "row_major": {"b": 50}}],
        },
    }
    routing.reset()


def test_the_counters_of_loaded_kernels_are_told_with_their_hash(scheduler, monkeypatch):
    counted = {"library_sha256": "ab" * 32, "ops": {"op": {"kernel": "k", "calls": 1, "kernels": {"k": 1}}}}
    module(monkeypatch, "sgl_kernel", attestation=lambda: counted)
    ran = scheduler_state.what_ran()
    assert {name: ran[name] for name in counted} == counted


def test_a_hook_that_did_not_take_hold_ends_the_scheduler(scheduler):
    with pytest.raises(IntegrationError, match="nobody could tell which kernels a server ran"):
        scheduler_state.check()


def test_a_scheduler_class_that_is_not_there_ends_it_too(scheduler, monkeypatch):
    monkeypatch.delitem(sys.modules, "sglang.srt.managers.scheduler")
    with pytest.raises(IntegrationError):
        scheduler_state.check()


def test_a_hook_that_holds_and_a_process_without_plugins_pass(scheduler):
    scheduler.Scheduler.get_internal_state.__wrapped__ = object()
    scheduler_state.check()
    del scheduler.Scheduler.get_internal_state.__wrapped__
    scheduler.plugins._plugins_loaded = False
    scheduler_state.check()


def test_arguments_are_known_and_the_hook_is_registered_after_the_module_that_it_enters_is_whole(
    scheduler, monkeypatch
):
    registered = []
    registry = SimpleNamespace(register=lambda *hook: registered.append(hook))
    module(
        monkeypatch,
        "sglang.srt.plugins.hook_registry",
        HookRegistry=registry,
        HookType=SimpleNamespace(AFTER="after"),
    )
    monkeypatch.setattr(hooks, "install_arguments", lambda: registered.append("arguments"))
    scheduler_state.register()
    assert registered == ["arguments", (scheduler_state.GET_INTERNAL_STATE, scheduler_state.add_what_ran, "after")]


def test_a_model_gets_no_pool_where_the_hook_does_not_hold(scheduler, monkeypatch):
    class Cpu: ...

    pool = type("MHATokenToKVPool", (), {})
    module(monkeypatch, "sglang.srt.platforms.cpu", CpuSRTPlatform=Cpu)
    module(monkeypatch, "sglang.srt.platforms.device_mixin", PlatformEnum=SimpleNamespace(OOT="oot"))
    module(monkeypatch, "sglang.srt.mem_cache")
    module(monkeypatch, "sglang.srt.mem_cache.memory_pool", MHATokenToKVPool=pool)
    int8 = module(monkeypatch, "sglang_rvv.kv_pool", Int8KVPool=type("Int8KVPool", (), {})).Int8KVPool
    asked = SimpleNamespace(kv_cache_dtype="auto")
    module(monkeypatch, "sglang.srt.server_args", get_global_server_args=lambda: asked)
    monkeypatch.delitem(sys.modules, "sglang_rvv.platform", raising=False)
    monkeypatch.setattr(hooks, "check_model_prepared", lambda: None)
    platform = importlib.import_module("sglang_rvv.platform").RvvPlatform()
    monkeypatch.delitem(sys.modules, "sglang_rvv.platform")
    with pytest.raises(IntegrationError):
        platform.get_mha_kv_pool_cls()
    scheduler.Scheduler.get_internal_state.__wrapped__ = object()
    assert platform.get_mha_kv_pool_cls() is pool
    asked.kv_cache_dtype = "int8"
    assert platform.get_mha_kv_pool_cls() is int8


def test_both_entry_points_have_the_name_by_which_sglang_chooses():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    assert project["entry-points"] == {
        "sglang.srt.platforms": {"rvv": "sglang_rvv.platform:activate"},
        "sglang.srt.plugins": {"rvv": "sglang_rvv.scheduler_state:register"},
    }
