from __future__ import annotations

from rvvbench.manifest.loads import loads
from rvvbench.manifest.models import OpenLoad, Serving


def workload(**changes: object) -> Serving:
    fields = {"kind": "serving", "concurrency": [1, 2], "requests": 4, "input_len": 64, "output_len": 8, "seed": 1}
    return Serving.model_validate({**fields, **changes})


def test_concurrencies_come_in_the_order_of_the_manifest_and_open_loops_after_them() -> None:
    opened = OpenLoad(arrivals="poisson", rate_per_s=0.5, seed=3)
    found = loads(workload(concurrency=[2, 1], open_loops=[opened]))
    assert [load.name for load in found] == ["c2", "c1", "poisson-0.5"]
    assert [load.seed for load in found] == [None, None, 3]


def test_an_open_loop_may_have_every_request_in_flight() -> None:
    (closed, opened) = loads(workload(concurrency=[2], open_loops=[OpenLoad(arrivals="fixed", rate_per_s=1.0)]))
    assert (closed.in_flight, opened.in_flight) == (2, 4)


def test_the_server_must_hold_as_many_requests_as_any_load_has_in_flight() -> None:
    assert workload().most_in_flight == 2
    assert workload(open_loops=[OpenLoad(arrivals="fixed", rate_per_s=1.0)]).most_in_flight == 4
    checked = workload(cross_check={"requests": 30, "concurrency": 3}, server={"skip_tokenizer_init": False})
    assert checked.most_in_flight == 3


def test_rates_that_nearly_agree_have_names_of_their_own() -> None:
    opened = [OpenLoad(arrivals="fixed", rate_per_s=rate) for rate in (1.0000001, 1.0000002, 2.0)]
    names = [load.name for load in loads(workload(concurrency=[], open_loops=opened))]
    assert names == ["fixed-1.0000001", "fixed-1.0000002", "fixed-2"]
