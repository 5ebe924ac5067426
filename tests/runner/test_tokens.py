import math

import pytest

from rvvbench.runner.tokens import Pass, scores

torch = pytest.importorskip("torch")


def test_scores_are_natural_logarithms_and_differences_of_logits():
    logits = torch.tensor([[0.0, math.log(3.0)], [2.0, -1.0]])
    told = scores(Pass(0, 1, [1, 1], logits))
    assert told["logprobs"] == pytest.approx([math.log(0.75), -3.0 - math.log1p(math.exp(-3.0))])
    assert told["top2_margin"] == pytest.approx([math.log(3.0), 3.0])
