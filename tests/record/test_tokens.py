from __future__ import annotations

from rvvbench.record.schema import RowAgreement
from rvvbench.record.tokens import agreement_of, generation

from . import sample


def agreement(**of: object) -> RowAgreement:
    """Agreement of a kernel row made with `of` with torch-native."""
    return agreement_of([sample.row(), sample.kernel_row(**of)]).rows[0]  # type: ignore[arg-type]


def test_equal_tokens_agree_and_the_largest_logprob_difference_is_said() -> None:
    found = agreement(logprobs=[-0.25] * 6 + [-0.75, -0.5])
    assert (found.tokens_equal, found.max_logprob_difference, found.first_difference) == (True, 0.5, None)


def test_the_first_difference_is_located_with_the_references_margin() -> None:
    found = agreement(
        tokens=(*sample.TOKENS[:3], 99, 98, 97, 96, 95), logprobs=[-0.25, -0.375, -0.25, -9, -9, -9, -9, -9]
    )
    assert found.tokens_equal is False
    assert found.first_difference is not None
    parted = found.first_difference
    assert (parted.sequence, parted.position, parted.reference_token, parted.token) == (0, 3, 14, 99)
    assert parted.reference_margin == 1.5
    # From the first different token on the contexts differ, so the -9 are no difference of the same quantity.
    assert found.max_logprob_difference == 0.125


def test_tokens_that_are_not_all_there_are_unknown_not_different() -> None:
    events = [event for event in sample.events() if event["event"] != "prefill"]
    rows = [sample.row(), sample.row("rvv-kernels", processes=sample.ran(events))]
    found = agreement_of(rows).rows[0]
    assert found.tokens_equal is None
    assert found.reason == "rvv-kernels/none and torch-native/none did not generate as many tokens"


def test_a_row_without_a_process_is_unknown() -> None:
    found = agreement_of([sample.row(), sample.row("rvv-kernels", processes=[])]).rows[0]
    assert (found.tokens_equal, found.reason) == (None, "a row without a process has no tokens")


def test_a_missing_logprob_makes_the_largest_difference_unknown() -> None:
    events = sample.events()
    next(event for event in events if event.get("step") == 2)["logprobs"] = ["NaN"]
    found = agreement_of([sample.row(), sample.row("rvv-kernels", processes=sample.ran(events))]).rows[0]
    assert (found.tokens_equal, found.max_logprob_difference) == (True, None)


def test_a_generation_without_tokens_is_not_complete() -> None:
    assert not generation([], None).complete
    assert not generation([{"event": "prefill", "token_ids": [True]}], None).complete
    assert generation(sample.events(), None).complete


def test_a_log_probability_that_no_float_can_hold_is_unknown() -> None:
    events = sample.events()
    next(event for event in events if event["event"] == "prefill")["logprobs"] = [10**400]
    row = sample.row(processes=sample.ran(events))
    assert [reason.id for reason in row.validity.reasons] == ["logprobs"]
