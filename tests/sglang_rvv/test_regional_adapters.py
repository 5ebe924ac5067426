"""Where the adapters find the projections of the known models."""

from types import SimpleNamespace

import pytest
from sglang_rvv.regional.adapters import ADAPTERS, adapter_of
from sglang_rvv.upstream import IntegrationError


def model(name, layers=2, **missing):
    def layer():
        return SimpleNamespace(
            self_attn=SimpleNamespace(qkv_proj=object(), o_proj=object()),
            mlp=SimpleNamespace(gate_up_proj=object(), down_proj=object()),
        )

    made = type(name, (), {})()
    made.model = SimpleNamespace(layers=[layer() for _ in range(layers)])
    made.lm_head = object()
    return made


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"])
def test_all_five_projections_of_every_layer_in_order(name):
    one = model(name)
    linears = list(adapter_of(one).linears(one))
    assert [projection for projection, _, _ in linears] == [
        *("qkv_proj", "o_proj", "gate_up_proj", "down_proj") * 2,
        "lm_head",
    ]
    assert linears[5][1] == "model.layers.1.self_attn.o_proj"
    assert linears[5][2] is one.model.layers[1].self_attn.o_proj
    assert linears[-1][2] is one.lm_head


def test_a_model_that_is_not_known_is_refused():
    with pytest.raises(IntegrationError, match="does not know the model Gemma3ForCausalLM"):
        adapter_of(model("Gemma3ForCausalLM"))
    assert set(ADAPTERS) == {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}


def test_a_projection_that_is_not_there_is_named():
    one = model("LlamaForCausalLM")
    del one.model.layers[1].mlp.down_proj
    with pytest.raises(IntegrationError, match=r"no model\.layers\.1\.mlp\.down_proj"):
        list(adapter_of(one).linears(one))
