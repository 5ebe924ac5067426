from __future__ import annotations

from typing import Any

from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table

from . import sample, serving_sample


def with_switches(**switches: Any) -> Record:
    record = serving_sample.record()
    experiment = record.manifest["experiment"]
    workload = {**experiment["workload"], "server": {**experiment["workload"]["server"], **switches}}
    return record.model_copy(
        update={"manifest": {**record.manifest, "experiment": {**experiment, "workload": workload}}}
    )


def server_facts(record: Record) -> list[str]:
    return [text for name, text in comparison_table(record).facts if name == "Server"]


def test_a_server_as_it_should_be_needs_no_words() -> None:
    assert server_facts(with_switches()) == []


def test_a_switch_that_is_set_otherwise_stands_in_the_heading_with_what_it_means() -> None:
    (cache, interval) = server_facts(with_switches(disable_radix_cache=False, stream_interval=3))
    assert cache.startswith("disable_radix_cache False: the prefix cache was on")
    assert interval.startswith("stream_interval 3: ")


def test_a_record_without_a_server_has_no_switches() -> None:
    assert server_facts(sample.record()) == []
