"""The manifest of a task: what it may say, and where its data set is pinned."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.errors import ManifestError
from rvvbench.manifest.lock import load_lock, save_lock
from rvvbench.manifest.models import Eval
from rvvbench.manifest.resolve import resolve

NAME = "llama-gsm8k"


def workload(manifests: Path, *settings: str) -> Eval:
    found = resolve(manifests, NAME, "board", settings=list(settings)).experiment.workload
    assert isinstance(found, Eval)
    return found


def test_the_task_is_gsm8k_at_its_pinned_revision_behind_eight_examples(manifests: Path) -> None:
    resolved = resolve(manifests, NAME, "board")
    assert resolved.dataset is not None
    assert resolved.dataset.hub.repo == "openai/gsm8k"
    assert resolved.dataset.hub.revision == "e53f048856ff4f594e959d75785d2c2d37b678ee"
    assert resolved.plain()["dataset"]["hub"]["revision"] == resolved.dataset.hub.revision
    assert workload(manifests).shots == 8
    assert "dataset" not in resolve(manifests, "llama-serve", "board").plain()


@pytest.mark.parametrize("target", ["board", "emulated", "host"])
def test_it_resolves_on_every_target(manifests: Path, target: str) -> None:
    resolved = resolve(manifests, NAME, target)  # type: ignore[arg-type]
    assert resolved.experiment.workload.kind == "eval"


def test_as_a_serving_workload_it_has_the_most_tokens_and_the_same_server(manifests: Path) -> None:
    task = workload(manifests, "workload.concurrency=4")
    serving = task.as_serving()
    assert (serving.input_len, serving.output_len, serving.requests) == (2048, 256, 50)
    assert (serving.most_in_flight, serving.server) == (4, task.server)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["workload.questions=3", "workload.concurrency=4"], "3 questions (workload.questions) never are 4 at once"),
        (["workload.max_prompt_tokens=4", "workload.concurrency=4"], "must be more tokens than the 4 questions"),
        (["workload.server.skip_tokenizer_init=true"], "the server needs its tokenizer"),
        (["workload.stop=['']"], "at least 1 character"),
        (["workload.task=mmlu"], "'gsm8k'"),
        (["workload.dataset=gsm9k"], "did you mean 'gsm8k'?"),
        (["timeouts_s.compile=null"], "a workload with a server needs `compile`"),
        (["workload.max_prompt_tokens=32768", "model=llama-mini"], "max_prompt_tokens + max_new_tokens is 33024"),
    ],
)
def test_what_a_task_cannot_be_is_refused_in_words(manifests: Path, settings: list[str], said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        workload(manifests, *settings)
    assert said in caught.value.cause
    assert caught.value.where


def test_lock_and_manifest_must_pin_the_same_revision(manifests: Path) -> None:
    path = manifests / "datasets" / "gsm8k.yaml"
    path.write_text(path.read_text().replace("e53f0488", "00000000"))
    with pytest.raises(ManifestError, match="the revision in the manifest is 00000000"):
        workload(manifests)
    lock = load_lock(manifests)
    save_lock(lock.path, lock.lock.model_copy(update={"datasets": {}}))
    with pytest.raises(ManifestError, match="the lock knows no dataset 'gsm8k'"):
        workload(manifests)
