import pytest

from rvvbench.runner import serving_spec
from rvvbench.runner.failure import SpecError


def test_the_documented_spec_is_read(serving_document):
    spec = serving_spec.parse(serving_document)
    assert [(load.name, load.measured, load.concurrency) for load in spec.loads] == [
        ("c1-warmup", False, 1),
        ("c1", True, 1),
    ]
    assert spec.loads[1].requests[0].output_len == 3
    assert spec.limits.shutdown_s == 5


def test_an_open_load_has_arrivals(serving_document):
    serving_document["loads"][1].update(
        name="r0.5", mode="open", concurrency=None, arrivals="poisson", rate_per_s=0.5, seed=7
    )
    load = serving_spec.parse(serving_document).loads[1]
    assert load.concurrency is None
    assert (load.arrivals.kind, load.arrivals.rate_per_s, load.arrivals.seed) == ("poisson", 0.5, 7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(kind="one-batch"), "kind 'one-batch' is not serving"),
        (lambda d: d.update(loads=[]), "there are none"),
        (lambda d: d["loads"][0].update(name="c1"), "names of their own"),
        (lambda d: d["loads"][0].update(name="ready"), "names of their own"),
        (lambda d: d["loads"][0].update(mode="burst"), "mode 'burst'"),
        (lambda d: d["loads"][0].update(concurrency=0), "at concurrency 0"),
        (lambda d: d["loads"][0]["requests"][0].update(id="c1-0"), "the same id"),
        (lambda d: d["loads"][0]["requests"][0].update(input_ids=[1, 2, 3, 4]), "the same prompt"),
        (lambda d: d["loads"][0]["requests"][0].update(input_ids=[]), "a request has no tokens"),
        (lambda d: d["server_args"].update(port=80), "neither host nor port"),
        (lambda d: d["timeouts_s"].update(request=0), "timeouts_s must be positive"),
        (
            lambda d: (
                d["server_args"].update(skip_tokenizer_init=True),
                d.update(cross_check={"requests": 1, "concurrency": 1, "input_len": 4, "output_len": 3, "seed": 1}),
            ),
            "needs a server with a tokenizer",
        ),
    ],
)
def test_what_this_runner_cannot_measure_is_refused_in_words(serving_document, change, said):
    change(serving_document)
    with pytest.raises(SpecError, match=said):
        serving_spec.parse(serving_document)


def test_a_file_that_holds_no_object_is_no_spec(tmp_path):
    (tmp_path / "spec.json").write_text("[]")
    with pytest.raises(SpecError, match="lacks a field or has a wrong one"):
        serving_spec.load(str(tmp_path / "spec.json"))


def test_the_readiness_prompt_has_the_full_shape_and_is_nobodys(serving_document):
    loads = serving_spec.parse(serving_document).loads
    serving_document["loads"][1]["requests"][0]["input_ids"] = [6, 7, 8, 5]  # the warm-up, turned once
    loads = serving_spec.parse(serving_document).loads
    assert serving_spec.readiness_prompt(loads) == (7, 8, 5, 6)


def test_a_prompt_of_one_kind_of_token_cannot_be_turned(serving_document):
    serving_document["loads"][0]["requests"][0]["input_ids"] = [5, 5, 5, 5]
    with pytest.raises(SpecError, match="no prompt is left"):
        serving_spec.readiness_prompt(serving_spec.parse(serving_document).loads)
