"""A task in real containers of this machine's own architecture: a real SGLang server reads words and answers them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rvvbench.record.events import named
from tests.containers.driver import newest_record, rvvbench

pytestmark = pytest.mark.container


def few_questions(folder: Path) -> Path:
    """Eight examples and three questions of hens and eggs."""
    entries = []
    for hens in range(3, 14):
        question = f"A farmer has {hens} hens. Each of them lays 2 eggs a day. How many eggs do they lay in a day?"
        answer = f"They lay {hens} * 2 = <<{hens}*2={2 * hens}>>{2 * hens} eggs a day.\n#### {2 * hens}"
        entries.append(json.dumps({"question": question, "answer": answer}))
    path = folder / "few.jsonl"
    path.write_text("\n".join(entries))
    return path


def test_a_few_questions_give_valid_rows_of_both_variants(tmp_path: Path) -> None:
    data = few_questions(tmp_path)
    short = ("--questions", "3", "--set", "workload.max_new_tokens=8")
    outcome = rvvbench("eval", "gsm8k", "--target", "host", "--data", str(data), *short)
    assert outcome.code == 0, outcome.err
    assert "3 of 3 questions answered" in outcome.err
    record = newest_record()
    assert [row.name for row in record.rows] == ["torch-native/none/gsm8k", "rvv-kernels/none/gsm8k"]
    assert record.valid
    for row in record.rows:
        answers = named(row.processes[0].events, "answer")
        assert [answer["request"] for answer in answers] == ["ready", "q0", "q1", "q2"]
        assert all(answer["text"] for answer in answers)
        # The examples came from the cache, where the first generation had left them.
        assert all(answer["cached_tokens"] > answer["prompt_tokens"] / 2 for answer in answers[1:])
        # A model of random weights knows nothing of hens.
        assert row.figures["accuracy_percent"].median == 0.0
        assert row.figures["throughput_output_tokens_per_s"].median is not None
    (agreement,) = record.agreement.rows
    assert (agreement.answers_compared, agreement.answers_differ, agreement.tokens_equal) == (3, 0, True)
    assert record.heading.dataset is not None and record.heading.dataset.startswith("local few.jsonl, sha256 ")
    assert rvvbench("verify", record.run_id).code == 0
