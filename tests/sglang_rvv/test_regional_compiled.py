"""What a process says of the regions that it has compiled."""

from types import SimpleNamespace

import pytest
from sglang_rvv.regional import compiled
from sglang_rvv.regional.loaded import shared_objects

MAPS = """\
7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /cache/xx/one.main.so
7f0000002000-7f0000003000 r--p 00000000 08:01 1 /cache/xx/one.main.so
7f0000004000-7f0000005000 r-xp 00000000 08:01 2 /cache-of-another/two.so
7f0000006000-7f0000007000 r-xp 00000000 08:01 3 /cache/xx/three.so.txt
7f0000008000-7f0000009000 rw-p 00000000 00:00 0
7f000000a000-7f000000b000 rw-p 00000000 00:00 0 [heap]
"""


def test_only_shared_objects_below_the_folder_are_told_each_once():
    assert shared_objects("/cache", MAPS) == {"/cache/xx/one.main.so"}
    assert shared_objects("/elsewhere", MAPS) == frozenset()


@pytest.fixture
def models(monkeypatch):
    found = []
    monkeypatch.setattr(compiled, "_models", found)
    return found


def region(projection, seconds):
    key = {"projection": projection, "rows": 2, "out_features": 32, "in_features": 64, "mode": "row_major"}
    return key | {"name": f"rvv_{projection}", "seconds": seconds, "so": f"/cache/{projection}.so", "fxgraph_hits": 1}


def test_regions_of_all_models_are_added_up(models, monkeypatch):
    monkeypatch.setattr(compiled, "torch_counters", lambda: {"inductor": {"fxgraph_cache_hit": 3}, "aot_autograd": {}})
    compiled.add(SimpleNamespace(report=lambda: [region("qkv_proj", 1.5), region("o_proj", 0.5)]))
    compiled.add(SimpleNamespace(report=lambda: [region("lm_head", 0.25)]))
    told = compiled.report()
    assert compiled.is_on()
    assert (told["graphs"], told["compile_seconds"]) == (3, 2.25)
    assert told["inductor"] == {"fxgraph_cache_hit": 3}
    assert told["artifacts"][2] == {
        **{"projection": "lm_head", "rows": 2, "out_features": 32, "in_features": 64, "mode": "row_major"},
        "so": "/cache/lm_head.so",
    }


def test_a_process_that_compiles_nothing_says_so(models):
    assert not compiled.is_on()
    assert compiled.report() == {
        **{"graphs": 0, "inductor": {}, "aot_autograd": {}},
        **{"compile_seconds": 0, "artifacts": []},
    }
