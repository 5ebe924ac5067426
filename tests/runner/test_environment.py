import json

import pytest

from rvvbench.runner import environment
from rvvbench.runner import spec as specs

FILES = {
    "llama": "class LlamaModel:\n    pass\nclass LlamaForCausalLM(nn.Module):\n    pass\n",
    "llama_eagle": "class LlamaForCausalLMEagle(LlamaForCausalLM):\n    pass\n",
    "qwen3": "class Qwen3ForCausalLM:\n    pass\n",
    "registry": "",
}


def test_only_the_file_that_defines_the_architecture_is_imported():
    assert environment.unneeded_models(["LlamaForCausalLM"], FILES) == ["llama_eagle", "qwen3", "registry"]


@pytest.mark.parametrize("wanted", [["NewForCausalLM"], ["LlamaForCausalLM", "NewForCausalLM"], []])
def test_nothing_is_disabled_when_an_architecture_is_not_found(wanted):
    assert environment.unneeded_models(wanted, FILES) == []


def test_the_process_names_its_platform_and_its_linears(document, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["Qwen3ForCausalLM"]}))
    document["model_path"] = str(tmp_path)
    document["variant"].update(linear="packed", projections=["qkv_proj", "lm_head"])
    document["expect"]["kernels_sha256"] = "0" * 64
    settings = environment.own_settings(specs.parse(document), FILES)
    assert settings["SGLANG_PLATFORM"] == "rvv"
    assert (settings["SGLANG_RVV_LINEAR"], settings["SGLANG_RVV_PROJECTIONS"]) == ("packed", "qkv_proj,lm_head")
    assert settings["SGLANG_DISABLED_MODEL_ARCHS"] == "llama,llama_eagle,registry"


@pytest.mark.parametrize(("linear", "told"), [("torch", "torch"), ("packed", "packed"), ("w8a8", "packed")])
def test_the_plugin_is_told_all_three_parts_whatever_the_variant(document, linear, told):
    document["variant"].update(
        linear=linear, projections=[] if linear == "torch" else ["o_proj"], elementwise="kernels"
    )
    document["expect"]["kernels_sha256"] = "0" * 64
    settings = environment.own_settings(specs.parse(document), FILES)
    found = [settings[f"SGLANG_RVV_{name}"] for name in ("LINEAR", "PROJECTIONS", "ELEMENTWISE")]
    assert found == [told, "" if linear == "torch" else "o_proj", "kernels"]


def test_a_server_inherits_the_environment_and_generates_nothing_when_its_health_is_asked(document):
    given = environment.of_server(specs.parse(document), {"LANG": "C", "SGLANG_PLATFORM": "cpu"}, FILES)
    assert (given["LANG"], given["SGLANG_PLATFORM"]) == ("C", "rvv")
    assert given["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"] == "false"


def test_what_changes_numbers_is_recorded_and_secrets_are_not():
    env = {"OMP_NUM_THREADS": "8", "QEMU_CPU": "rv64", "LD_PRELOAD": "x", "HOME": "/tmp", "MY_TOKEN": "s", "GOMPX": "1"}
    assert environment.recorded(env) == {"HOME": "/tmp", "LD_PRELOAD": "x", "OMP_NUM_THREADS": "8", "QEMU_CPU": "rv64"}


def test_a_token_is_never_recorded():
    assert environment.recorded({"HF_TOKEN": "s", "SGLANG_API_KEY": "s", "HF_HUB_OFFLINE": "1"}) == {
        "HF_HUB_OFFLINE": "1"
    }
