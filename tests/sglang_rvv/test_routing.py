from sglang_rvv import routing


def test_calls_are_counted_by_projection_rows_and_path():
    routing.reset()
    for m in (64, 1, 1):
        routing.count("qkv_proj", m, "packed")
    routing.count("qkv_proj", 1, "torch")
    assert routing.snapshot() == [
        {"projection": "qkv_proj", "m": 1, "path": "packed", "calls": 2},
        {"projection": "qkv_proj", "m": 1, "path": "torch", "calls": 1},
        {"projection": "qkv_proj", "m": 64, "path": "packed", "calls": 1},
    ]


def test_a_reset_forgets_everything():
    routing.count("o_proj", 1, "torch")
    routing.reset()
    assert routing.snapshot() == []


def test_a_reason_is_told_and_counted_by_itself():
    routing.reset()
    routing.count("lm_head", 16, "torch", "lm_head of 16 rows and more")
    routing.count("lm_head", 1, "inductor_packed")
    assert routing.snapshot() == [
        {"projection": "lm_head", "m": 1, "path": "inductor_packed", "calls": 1},
        {"projection": "lm_head", "m": 16, "path": "torch", "calls": 1, "reason": "lm_head of 16 rows and more"},
    ]


def test_calls_of_compiled_regions_are_told_apart_by_their_bucket():
    routing.reset()
    routing.count("o_proj", 3, "inductor_packed", bucket=4)
    routing.count("o_proj", 3, "inductor_packed", bucket=16)
    routing.count("o_proj", 3, "inductor_packed", bucket=4)
    assert [(line["bucket"], line["calls"]) for line in routing.snapshot()] == [(4, 2), (16, 1)]
    routing.reset()
