"""A task's row: its figures, what makes it invalid, and how it compares."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from rvvbench.record.figure_set import ALL_DEFINITIONS, definition_of
from rvvbench.record.render import render_json, render_markdown
from rvvbench.record.schema import ExpectedTask, Heading, Record, Row, Validity
from rvvbench.record.table import comparison_table

from . import serving_sample, task_sample
from .sample import Event
from .serving_sample import ran
from .task_sample import TASK_SERVER_ARGS, TEXTS, events, expected, record, row, rows, task
from .test_serving_validity import adding, dropping, setting

Change = Callable[[list[Event]], list[Event]]


def value(of: Row, name: str) -> float | None:
    return of.figures[name].median


def test_accuracy_is_the_share_of_right_answers_with_its_interval() -> None:
    one = row()
    assert one.validity.valid, one.validity
    assert (value(one, "accuracy_percent"), value(one, "right"), value(one, "invalid")) == (50.0, 2.0, 1.0)
    assert value(one, "accuracy_low_percent") == pytest.approx(15.0039, abs=1e-4)
    assert value(one, "accuracy_high_percent") == pytest.approx(84.9961, abs=1e-4)
    assert (value(one, "cut"), value(one, "completion_tokens")) == (1.0, 20.0)
    assert (value(one, "prompt_tokens"), value(one, "cached_tokens")) == (406.0, 363.0)


def test_the_speed_beside_it_is_that_of_a_load() -> None:
    one = row()
    assert value(one, "wall_s") == 16.0
    assert value(one, "throughput_output_tokens_per_s") == 20 / 16
    assert value(one, "ttft_median_s") == 2.0
    assert value(one, "decode_rate_median_tokens_per_s") == 2.0
    assert one.figures["peak_rss_bytes"].definition == "peak_rss.vm_hwm_emulated/1"
    assert "decoded_at_full_batch_percent" not in one.figures


def test_every_figure_has_a_definition_and_what_was_answered_has_one_on_every_target() -> None:
    for name, figure in row().figures.items():
        definition = definition_of(name, expected())
        assert ALL_DEFINITIONS[figure.definition] == definition
        assert definition.unit == figure.unit
        assert definition.emulated == ("emulated" in figure.definition)
    assert not definition_of("accuracy_percent", expected()).emulated


def test_a_question_without_an_answer_leaves_accuracy_null_and_the_row_invalid() -> None:
    one = row(processes=[ran(dropping("answer", request="q2")(events()))])
    for name in ("accuracy_percent", "accuracy_low_percent", "right", "invalid"):
        assert value(one, name) is None
        assert one.figures[name].reason == "question q2 has no answer"
    assert value(one, "wall_s") == 16.0
    assert [reason.id for reason in one.validity.reasons] == ["answers", "routing"]


def after(change: Change, **expects: Any) -> list[tuple[str, str]]:
    """Reasons of a row whose events were changed."""
    validity = row(expects=expected(**expects), processes=[ran(change(events()))]).validity
    return [(reason.id, reason.text) for reason in validity.reasons]


def several(*changes: Change) -> Change:
    def change(of: list[Event]) -> list[Event]:
        for one in changes:
            of = one(of)
        return of

    return change


def of_q0(event: str, **fields: Any) -> Change:
    return setting(event, where={"request": "q0"}, **fields)


def routed(of: list[Event], projection: str, /, *, last: bool = True, **fields: Any) -> list[Event]:
    """The lines of a projection in the last attestation, or in all of them, with other fields."""
    for event in [one for one in of if one["event"] == "attestation"][-1 if last else 0 :]:
        for line in event["routing"]:
            if line["projection"] == projection:
                line.update(fields)
    return of


@pytest.mark.parametrize(
    ("change", "id_", "text"),
    [
        (of_q0("answer", text=None), "answers", "question q0: its answer has no text"),
        (of_q0("answer", prompt_tokens=None), "answers", "question q0: its answer has no prompt_tokens"),
        (of_q0("answer", cached_tokens=1.0), "answers", "question q0: its answer has no cached_tokens"),
        (of_q0("answer", completion_tokens=6), "answers", "question q0: its answer does not count as its chunks do"),
        (of_q0("answer", prompt_sha256="0" * 64), "answers", "question q0: its answer is to another prompt"),
        (adding(event="answer", request="q0", text="18"), "answers", "question q0 has 2 answers"),
        (
            of_q0("request_start", input_sha256="0" * 64),
            "prompt",
            f"question q0 was asked with a prompt of sha256 {'0' * 64}, declared {task().questions[0].prompt_sha256}",
        ),
        (of_q0("request_start", output_len=9), "output-length", "question q0: 9 tokens were asked for, declared 8"),
        (dropping("request_end", request="q0"), "request-not-ended", "question q0: its answer did not end"),
        (of_q0("request_end", finish_reason={"type": "abort"}), "finish-reason", "question q0: finished by abort"),
        (
            of_q0("request_end", finish_reason={"type": "length"}),
            "output-length",
            "question q0: 5 tokens of at most 8, ended by length",
        ),
        (setting("load_start", where={"load": "gsm8k"}, measured=False), "load", "load gsm8k was (False, 'closed'"),
        (setting("load_start", where={"load": "gsm8k"}, concurrency=2), "load", "load gsm8k was (True, 'closed', 2"),
        (setting("load_end", where={"load": "gsm8k"}, complete=False), "load-incomplete", "load gsm8k did not come"),
        (dropping("load_start", load="gsm8k"), "load-missing", "there is no load gsm8k"),
        (dropping("attestation", moment="after"), "attestation", "0 attestations after load gsm8k"),
        (
            lambda of: routed(of, "o_proj", last=False, path="packed"),
            "routing",
            "o_proj at M=10: expected torch, observed packed",
        ),
        (lambda of: routed(of, "o_proj", calls=0), "attestation", "the counter of route o_proj"),
        (lambda of: routed(of, "lm_head", calls=99), "routing", "lm_head computed 91 rows, the answers need 20"),
        (setting("environment", server_args={**TASK_SERVER_ARGS, "disable_radix_cache": True}), "server-args", "dis"),
        (dropping("server_ready"), "events-incomplete", "0 server_ready events, 1 belongs"),
        (setting("server_ready", t_ns=10**15), "order", "server_ready at"),
    ],
)
def test_one_thing_wrong_makes_the_row_invalid_and_is_named(change: Change, id_: str, text: str) -> None:
    found = after(change)
    assert any(one == id_ and said.startswith(text) for one, said in found), found


def test_a_prompt_longer_than_declared_and_an_undeclared_cache_are_reasons() -> None:
    assert after(lambda of: of, input_len=99)[0] == (
        "prompt-length",
        "question q0: its prompt has 100 tokens, at most 99 are declared",
    )
    off = {**TASK_SERVER_ARGS, "disable_radix_cache": True}
    found = after(setting("environment", server_args=off), server_args=off)
    said = "question q0: 90 prompt tokens came from the server's cache, which is declared off"
    assert ("cached-tokens", said) in found


def test_a_question_that_was_not_asked_or_that_was_asked_in_another_order_is_named() -> None:
    questions = task().questions
    other = questions[0].model_copy(update={"id": "q9"})
    found = after(lambda of: of, task=task(questions=(*questions[1:], other)))
    assert ("questions", "4 questions were asked, 4 are declared, not q9") in found
    found = after(lambda of: of, task=task(questions=questions[::-1]))
    assert ("questions", "4 questions were asked, 4 are declared, but others or in another order") in found


def test_the_server_must_have_computed_what_did_not_come_from_its_cache() -> None:
    """Counts that hide a prefill, or a prefill that the counts do not show, are the same lie."""
    changed = several(
        setting("chunk", 0, {"request": "q0"}, cached_tokens=89),
        setting("chunk", 1, {"request": "q0"}, cached_tokens=89),
        of_q0("answer", cached_tokens=89),
    )
    every, prompts = 2 * task_sample.COMPUTED_ROWS, 2 * task_sample.EXTENDED_ROWS
    rows_of = dict.fromkeys(("qkv_proj", "o_proj", "gate_up_proj", "down_proj"), every)
    rows_of |= {"extend_attention": prompts, "gated_activation": every, "rotary_embedding": every}
    assert after(changed) == [
        ("routing", f"{name} computed {rows} rows, the answers need {rows + 2}") for name, rows in rows_of.items()
    ]


@pytest.mark.parametrize(
    ("name", "fields", "text"),
    [
        ("norm", {"path": "torch"}, "norm at M=10: expected kernels, observed torch x "),
        ("norm", {"projection": "rotary_embedding"}, "norm at M=1 was called 0 times, the passes of qkv_proj need 80"),
        ("decode_attention", {"projection": "extend_attention"}, "decode_attention computed 0 rows, the answers need "),
        ("gated_activation", {"m": 1}, "gated_activation computed "),
        ("lm_head", {"m": 2}, "lm_head computed 40 rows, the answers need 20"),
    ],
)
def test_operators_must_have_computed_what_the_answers_need(name: str, fields: dict[str, Any], text: str) -> None:
    """Those whose rows are heads of tokens too."""
    changed = routed(events(packed=True), name, last=False, **fields)
    reasons = row(packed=True, processes=[ran(changed)]).validity.reasons
    assert any(reason.id == "routing" and reason.text.startswith(text) for reason in reasons), reasons


def test_where_a_budget_parts_modules_every_pass_of_a_task_is_parted_alike() -> None:
    """At any number of rows, for a line of a task's table holds for all."""
    expects = expected(packed=True)
    apart = [{"path": "packed", "modules": 1}, {"path": "row_major", "modules": 1}]
    lines = [
        line.model_copy(update=way)
        for line in expects.routing
        for way in (apart if line.projection == "o_proj" else [{}])
    ]
    expects = expects.model_copy(update={"routing": tuple(lines), "ops": {**expects.ops, "linear_rowmajor": None}})

    def texts(row_major_at_10: int) -> list[str]:
        of = events(packed=True)
        for event in [one for one in of if one["event"] == "attestation"]:
            for line in [one for one in event["routing"] if one["projection"] == "o_proj"]:
                calls, away = line["calls"], row_major_at_10 if line["m"] == 10 else line["calls"] // 2
                line["calls"] = calls - away
                event["routing"].append({**line, "path": "row_major", "calls": away})
        reasons = row(packed=True, expects=expects, processes=[ran(of)]).validity.reasons
        return [reason.text for reason in reasons if reason.id == "routing"]

    assert texts(1) == []
    seen = "observed packed x 2, row_major x 0, each pass has packed x 1, row_major x 1"
    assert texts(0) == [f"o_proj at M=10: {seen}"]


def test_limits_of_tokens_make_no_row_of_a_task_invalid() -> None:
    """Its kernels are held to every token of torch-native elsewhere; here the answers are the measure."""
    one, other = record(row(), row(packed=True, first_token=12)).rows
    assert other.expected.accuracy is not None
    assert one.validity.valid and other.validity.valid
    remarks = comparison_table(record()).remarks
    assert "The accuracy limits of rvv-kernels are not judged here: the answers are the measure." in remarks
    assert [line.cells[-1].text for line in comparison_table(record()).lines] == ["valid", "valid"]


def test_rows_are_held_against_torch_native_wherever_it_stands() -> None:
    of = record(row(packed=True), row())
    assert comparison_table(of).answers[0].startswith("EMULATED: rvv-kernels against torch-native: all 4 questions")
    assert len(comparison_table(of).answers) == 1


def test_kernels_must_have_served_what_was_routed_to_them() -> None:
    one = row(packed=True)
    assert one.validity.valid, one.validity
    changed = setting("attestation", -1, ops={})(events(packed=True))
    reasons = row(packed=True, processes=[ran(changed)]).validity.reasons
    assert any(reason.id in ("kernels", "attestation") for reason in reasons)


def test_repetitions_must_answer_alike_where_questions_are_asked_one_by_one() -> None:
    def validity(concurrency: int) -> Validity:
        alone = expected().load
        assert alone is not None
        expects = expected(processes=2, load=alone.model_copy(update={"concurrency": concurrency}))
        of = [events(pid=pid, first_token=11 + pid % 2) for pid in (100, 101)]
        return row(expects=expects, processes=[ran(one) for one in of]).validity

    assert [reason.id for reason in validity(1).reasons] == ["tokens-differ"]
    # The events are those of one question at once: that is said, and nothing of the tokens.
    assert "tokens-differ" not in [reason.id for reason in validity(2).reasons]


def test_a_server_that_never_came_up_is_one_cause_and_the_rest_follows() -> None:
    error = {"event": "error", "type": "startup-timeout", "message": "nothing answered", "phase": "startup"}
    started = next(i for i, one in enumerate(events()) if one["event"] == "process_start")
    end = {"event": "process_end", "exit_code": 1, "signal": None}
    bad = row(processes=[ran([*events()[: started + 1], error, end])])
    (failure,) = comparison_table(record(bad)).failures
    assert failure.reasons[0] == "error: startup-timeout: nothing answered"
    assert failure.reasons[1].startswith("and what follows from it")


def test_rows_are_compared_by_their_answers() -> None:
    (agreement,) = record().agreement.rows
    assert (agreement.answers_compared, agreement.answers_differ) == (4, 1)
    assert agreement.max_logprob_difference is None
    (alike,) = record(row(), row(packed=True)).agreement.rows
    assert (alike.answers_differ, alike.tokens_equal) == (0, True)


def test_two_answers_without_a_number_are_alike_and_one_without_is_not() -> None:
    for text, differ in (("nothing", 0), ("5", 1)):
        texts = (*TEXTS[:2], text, TEXTS[3])
        (agreement,) = record(row(), row(packed=True, texts=texts)).agreement.rows
        assert agreement.answers_differ == differ


def test_a_row_that_lacks_an_answer_is_not_compared() -> None:
    cut = row(packed=True, processes=[ran(dropping("answer", request="q1")(events(packed=True)))])
    (agreement,) = record(row(), cut).agreement.rows
    assert (agreement.answers_differ, agreement.tokens_equal) == (None, None)
    assert agreement.reason == "rvv-kernels/none/gsm8k: question q1 has no answer"


def test_the_table_names_task_data_and_how_many_answers_differ() -> None:
    table = comparison_table(record())
    facts = dict(table.facts)
    assert facts["Task"] == "gsm8k, 4 questions, 8 examples before each, up to 128 tokens in, 8 out, 1 at once"
    assert facts["Data"] == task_sample.DATA_TITLE
    cells = [{c.key: cell.text for c, cell in zip(table.columns, line.cells, strict=True)} for line in table.lines]
    assert [cell["tokens"] for cell in cells] == ["reference", "1 of 4 differ"]
    assert [(cell["accuracy_percent"], cell["right"], cell["invalid"]) for cell in cells] == [
        ("50.0", "2", "1"),
        ("75.0", "3", "1"),
    ]
    assert table.answers == (
        "EMULATED: rvv-kernels against torch-native: 1 of 4 questions are answered otherwise, accuracy 75.0 % against "
        "50.0 %, 2.00x the output throughput.",
    )
    assert "Prompt tokens that came from the prefix cache: torch-native 89 % of 406" in " ".join(table.remarks)


def test_a_client_that_stood_still_is_told_and_makes_no_row_invalid() -> None:
    def lagging(seconds: float) -> Row:
        of = events()
        next(one for one in of if one["event"] == "load_end" and one["load"] == "gsm8k")["client_lag_max_s"] = seconds
        return row(processes=[ran(of)])

    assert lagging(4.0).validity.valid
    told = "The client itself stood still for up to 1000 ms while torch-native/none/gsm8k ran"
    assert f"{told}, 27 % of the median time of an answer." in comparison_table(record(lagging(1.0))).remarks
    assert not [one for one in comparison_table(record(lagging(0.3))).remarks if "stood still" in one]


def test_the_machines_form_of_the_table_has_every_figure_and_markdown_can_be_written() -> None:
    plain = json.loads(render_json(record(), definitions=True))
    assert plain["rows"][0]["figures"]["accuracy_percent"]["median"] == 50.0
    assert plain["agreement"]["rows"][0]["answers_differ"] == 1
    assert "A task is no load" in render_markdown(record(), definitions=True)


def test_an_invalid_row_is_compared_with_nothing() -> None:
    bad = row(packed=True, processes=[ran(events(packed=True)[:40])])
    assert not bad.validity.valid
    assert comparison_table(record(row(), bad)).answers == (
        "EMULATED: rvv-kernels: how it compares with torch-native is not known, for that needs two valid rows.",
    )


def test_a_task_that_is_none_is_refused() -> None:
    plain = record().plain()
    for path, wrong, said in (
        (("heading", "task"), None, "a task has a name"),
        (("heading", "workload"), "serving", "a task has a name"),
        (("rows", 0, "expected", "load", "requests"), 3, "as many requests as it has questions"),
        (("rows", 0, "expected", "task"), None, "the heading is of eval, the row is not"),
    ):
        changed = json.loads(json.dumps(plain))
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = wrong
        with pytest.raises(ValidationError, match=said):
            Record.model_validate(changed)
    with pytest.raises(ValidationError, match="asked by the same request"):
        ExpectedTask(name="gsm8k", shots=8, questions=task().questions * 2)


def test_a_record_of_before_has_no_task() -> None:
    plain = serving_sample.record().plain()
    for name in ("task", "shots", "dataset"):
        del plain["heading"][name]
    for one in plain["rows"]:
        del one["expected"]["task"]
    assert Heading.model_validate(plain["heading"]).task is None
    assert Record.model_validate(plain).rows[0].expected.task is None


def test_both_rows_of_the_sample_are_valid() -> None:
    assert [one.validity.valid for one in rows()] == [True, True]
