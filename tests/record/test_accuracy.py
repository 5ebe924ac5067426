"""Accuracy beside speed: how far a row is from torch-native, and that it is not valid beyond its limits."""

from __future__ import annotations

import pytest

from rvvbench.record.build import seal_of
from rvvbench.record.render import render_markdown
from rvvbench.record.schema import Record, Row
from rvvbench.record.table import comparison_table
from rvvbench.record.tokens import agreement_of, reference_of
from rvvbench.record.verify import verify

from . import sample, serving_sample, whole_model

SAME = [-0.25] * 8
PARTED = (*sample.TOKENS[:6], 98, 99)
FIRST = "{} % of its tokens come before the first that torch-native chose otherwise, at least 100 % must"
DIFFER = "its log-probabilities differ from torch-native's {} nats, the limit is {}"


def native(**of: object) -> Row:
    return whole_model.row("torch-native", **of)  # type: ignore[arg-type]


def kernels(**of: object) -> Row:
    return whole_model.row("rvv-kernels", **of)  # type: ignore[arg-type]


def reasons(record: Record, row: int = 1) -> list[tuple[str, str]]:
    return [(reason.id, reason.text) for reason in record.rows[row].validity.reasons]


def test_a_row_within_its_limits_is_valid_and_its_differences_are_shown() -> None:
    record = whole_model.record(native(), kernels(logprobs=[-0.25] * 7 + [-0.3125]))
    assert reasons(record) == [] and verify(record) == []
    [found] = record.agreement.rows
    assert (found.greedy_agreement, found.max_logprob_difference, found.mean_logprob_difference) == (1, 0.0625, 1 / 128)
    table = comparison_table(record)
    [column] = [index for index, one in enumerate(table.columns) if one.key == "logprob_difference"]
    cell = table.lines[1].cells[column]
    assert (cell.text, cell.value, cell.spread) == ("0.062", 0.0625, "mean 0.0078")
    said = "log-probabilities differ by at most 0.062 and on average by 0.0078 (limits 0.1 and 0.03)"
    assert f"Tokens of rvv-kernels/none equal those of torch-native/none; {said}." in table.remarks


@pytest.mark.parametrize(
    ("of", "text"),
    [
        ({"tokens": PARTED}, FIRST.format("75")),
        ({"tokens": (99, *sample.TOKENS[1:])}, FIRST.format("0")),
        # After the first different token no log-probability counts.
        ({"tokens": PARTED, "logprobs": [*SAME[:6], -9.0, -9.0]}, FIRST.format("75")),
        ({"logprobs": [*SAME[:7], -0.375]}, DIFFER.format("by at most 0.125", "0.1")),
        ({"logprobs": [-0.3125] * 8}, DIFFER.format("on average by 0.0625", "0.03")),
    ],
)
def test_a_row_beyond_a_limit_is_not_valid_and_says_by_how_much(of: dict[str, object], text: str) -> None:
    record = whole_model.record(native(), kernels(**of))
    assert reasons(record) == [("accuracy", text)]
    assert reasons(record, 0) == []
    assert verify(record) == []
    assert "INVALID" in render_markdown(record)


def test_what_agrees_exactly_with_its_limits_is_valid() -> None:
    limited = kernels(logprobs=[-0.375] + [-0.25] * 7)
    limits = {"greedy_agreement": 1.0, "max_logprob_difference": 0.125, "mean_logprob_difference": 1 / 64}
    assert limited.expected.accuracy is not None
    accuracy = limited.expected.accuracy.model_copy(update=limits)
    exact = limited.model_copy(update={"expected": limited.expected.model_copy(update={"accuracy": accuracy})})
    assert whole_model.record(native(), exact).rows[1].validity.valid


def test_a_verdict_that_was_taken_back_is_found() -> None:
    record = whole_model.record(native(), kernels(tokens=PARTED))
    row = record.rows[1].model_copy(update={"validity": record.rows[0].validity})
    changed = record.model_copy(update={"rows": (record.rows[0], row)})
    changed = changed.model_copy(update={"seal": seal_of(changed)})
    assert [(finding.id, finding.where) for finding in verify(changed)] == [("validity", "row rvv-kernels/none")]


def test_limits_that_were_widened_are_found() -> None:
    record = whole_model.record(native(), kernels())
    expected = record.rows[1].expected
    assert expected.accuracy is not None
    wide = expected.model_copy(
        update={"accuracy": expected.accuracy.model_copy(update={"max_logprob_difference": 9.0})}
    )
    row = record.rows[1].model_copy(update={"expected": wide})
    changed = record.model_copy(update={"rows": (record.rows[0], row)})
    changed = changed.model_copy(update={"seal": seal_of(changed)})
    assert [finding.where for finding in verify(changed)] == ["row rvv-kernels/none, expected.accuracy"]


def test_the_reference_is_torch_native_wherever_it_stands() -> None:
    record = whole_model.record(kernels(tokens=PARTED), native())
    assert record.agreement.reference == "torch-native/none"
    assert [one.row for one in record.agreement.rows] == ["rvv-kernels/none"]
    assert not record.rows[0].validity.valid and record.rows[1].validity.valid
    assert verify(record) == []


def test_without_torch_native_nothing_is_judged_and_the_table_says_so() -> None:
    int8 = whole_model.row("rvv-kernels-int8-kv", tokens=PARTED)
    record = whole_model.record(kernels(), int8)
    assert record.valid and verify(record) == []
    assert record.agreement.reference == "rvv-kernels/none"
    remarks = comparison_table(record).remarks
    said = "were not judged: they are against torch-native, of which this record has no row."
    assert f"The accuracy limits of rvv-kernels/none, rvv-kernels-int8-kv/none {said}" in remarks
    assert [line.cells[-1].text for line in comparison_table(record).lines] == ["valid, accuracy not judged"] * 2
    judged = comparison_table(whole_model.record(native(), kernels()))
    assert not any(said in remark for remark in judged.remarks)
    assert [line.cells[-1].text for line in judged.lines] == ["valid"] * 2


def test_what_cannot_be_compared_is_not_proven() -> None:
    broken = whole_model.row("torch-native", events=[e for e in sample.events() if e["event"] != "prefill"])
    record = whole_model.record(broken, kernels())
    why = "rvv-kernels/none and torch-native/none did not generate as many tokens"
    assert reasons(record) == [("accuracy-unproven", f"its tokens are not known to be accurate: {why}")]


def test_a_row_that_came_to_no_end_has_no_further_reason() -> None:
    cut = whole_model.row("rvv-kernels", events=sample.events()[:5])
    record = whole_model.record(native(), cut)
    assert not {"accuracy", "accuracy-unproven"} & {id_ for id_, _ in reasons(record)}


def test_a_missing_log_probability_is_not_proven_to_be_near() -> None:
    events = sample.events(expects=whole_model.expected("torch-native"))
    next(event for event in events if event["event"] == "prefill")["logprobs"] = ["NaN"]
    record = whole_model.record(whole_model.row("torch-native", events=events), kernels())
    assert reasons(record) == [
        ("accuracy-unproven", "there is no log-probability to compare with that of torch-native")
    ]


def test_of_a_server_only_the_tokens_are_judged() -> None:
    limits = whole_model.expected("rvv-kernels").accuracy
    expects = serving_sample.expected(1, packed=True, accuracy=limits)
    alike = serving_sample.row(packed=True, expects=expects)
    record = serving_sample.record(serving_sample.row(1), alike)
    assert record.valid
    other = serving_sample.row(packed=True, expects=expects, first_token=12)
    record = serving_sample.record(serving_sample.row(1), other)
    [found] = record.agreement.rows
    assert (found.greedy_agreement, found.mean_logprob_difference) == (0, None)
    assert [id_ for id_, _ in reasons(record)] == ["accuracy"]


def test_every_sequence_counts_its_own_tokens_before_its_own_difference() -> None:
    expects = sample.expected(batch_size=2)
    events = sample.events(expects=expects)
    for event in events:
        if event.get("step") == 4:
            event["token_ids"] = [event["token_ids"][0], 99]
    rows = [sample.row(expects=expects), sample.row("rvv-kernels", expects, sample.ran(events))]
    assert agreement_of(rows).rows[0].greedy_agreement == 12 / 16


def test_an_older_agreement_is_derived_by_its_own_definition() -> None:
    rows = [sample.kernel_row(), sample.row()]
    assert reference_of(rows, rows[1], "agreement/1") is rows[0]
    old = agreement_of(rows, "agreement/1")
    assert (old.reference, [one.row for one in old.rows]) == ("rvv-kernels/none", ["torch-native/none"])
    assert (old.rows[0].greedy_agreement, old.rows[0].mean_logprob_difference) == (None, None)
    record = sample.record(*rows)
    changed = record.model_copy(update={"agreement": old})
    changed = changed.model_copy(update={"seal": seal_of(changed)})
    assert verify(changed) == []
    assert "logprob_difference" not in [column.key for column in comparison_table(changed).columns]


def test_a_record_with_limits_cannot_have_the_older_agreement() -> None:
    record = whole_model.record(native(), kernels())
    old = agreement_of(record.rows, "agreement/1")
    changed = record.model_copy(update={"agreement": old})
    changed = changed.model_copy(update={"seal": seal_of(changed)})
    assert [finding.id for finding in verify(changed)] == ["agreement"]
