from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.errors import ManifestError, UsageError
from rvvbench.manifest.load import KINDS, load_manifest, names
from rvvbench.manifest.lock import load_lock
from rvvbench.manifest.resolve import require_resolved, resolve


def edit(path: Path, old: str, new: str) -> int:
    """Replace the first `old`; returns its line."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def test_every_manifest_of_the_project_is_valid(manifests: Path) -> None:
    for kind, model in KINDS.items():
        if kind == "experiments":
            for name in names(manifests, kind):
                for target in ("board", "emulated", "host"):
                    resolve(manifests, name, target)  # type: ignore[arg-type]
        else:
            for name in names(manifests, kind):
                load_manifest(manifests, kind, name, model)


def test_the_overlay_of_the_target_applies(manifests: Path) -> None:
    board = resolve(manifests, "llama-one-batch", "board")
    emulated = resolve(manifests, "llama-one-batch", "emulated")
    assert (board.experiment.model, board.experiment.weights, board.experiment.fresh_processes) == (
        "llama-3.2-1b",
        "hub",
        3,
    )
    assert (emulated.experiment.model, emulated.experiment.weights, emulated.experiment.fresh_processes) == (
        "llama-mini",
        "synthetic",
        1,
    )
    assert emulated.board.threads == 1


def test_a_typo_is_an_error_at_its_line_with_the_nearest_key(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edit(path, "  output_len: 8", "  ouput_len: 8")
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "board")
    assert "workload" in caught.value.cause
    assert caught.value.exit_code == 2
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.mend == "did you mean 'output_len'?"


def test_an_unknown_key_at_the_top_names_what_was_meant(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edit(path, "fresh_processes: 3", "fresh_proceses: 3\nfresh_processes: 3")
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "board")
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.mend == "did you mean 'fresh_processes'?"


def test_a_wrong_value_in_an_overlay_is_placed_in_the_overlay(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edit(path, "    fresh_processes: 1", "    fresh_processes: none")
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "emulated")
    assert caught.value.where == f"{path}:{line}"
    resolve(manifests, "llama-one-batch", "board")


def test_an_unknown_name_is_placed_where_it_is_used(manifests: Path) -> None:
    path = manifests / "experiments" / "llama-one-batch.yaml"
    line = edit(path, "model: llama-3.2-1b", "model: llama-3.2-1bb")
    with pytest.raises(ManifestError, match=r"did you mean 'llama-3\.2-1b'") as caught:
        resolve(manifests, "llama-one-batch", "board")
    assert caught.value.where == f"{path}:{line}"


def test_an_unknown_experiment_suggests_the_nearest(manifests: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'llama-one-batch'"):
        resolve(manifests, "lama-one-batch", "board")


def test_set_overrides_after_the_overlay(manifests: Path) -> None:
    resolved = resolve(
        manifests, "llama-one-batch", "emulated", settings=["workload.output_len=16", "fresh_processes=2"]
    )
    assert resolved.experiment.workload.output_len == 16
    assert resolved.experiment.fresh_processes == 2


def test_a_wrong_set_is_placed_at_the_option(manifests: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "emulated", settings=["workload.output_len=many"])
    assert caught.value.where == "--set workload.output_len=many"
    with pytest.raises(UsageError):
        resolve(manifests, "llama-one-batch", "emulated", settings=["output_len"])


@pytest.mark.parametrize("where", ["models/llama-3.2-1b.yaml", "rvvbench.lock.yaml"])
def test_one_changed_digit_of_a_revision_stops_naming_both_places(manifests: Path, where: str) -> None:
    line = edit(manifests / where, "4e20de362430cd3b", "4e20de362430cd3c")
    with pytest.raises(ManifestError, match="revision") as caught:
        resolve(manifests, "llama-one-batch", "board")
    assert f"{manifests / where}:{line}" in f"{caught.value.where} {caught.value.cause}"


@pytest.mark.parametrize("where", ["stacks/debian-rvv.yaml", "rvvbench.lock.yaml"])
def test_one_changed_digit_of_a_wheel_hash_stops(manifests: Path, where: str) -> None:
    text = (manifests / "stacks" / "debian-rvv.yaml").read_text()
    digest = text.split("sha256: ", 1)[1][:64]
    line = edit(manifests / where, digest, ("0" if digest[0] != "0" else "1") + digest[1:])
    with pytest.raises(ManifestError, match="wheel sha256") as caught:
        resolve(manifests, "llama-one-batch", "emulated")
    assert f"{manifests / where}:{line}" in f"{caught.value.where} {caught.value.cause}"


def test_a_commit_that_nobody_resolved_refuses_the_run_but_can_be_shown(manifests: Path) -> None:
    resolved = resolve(manifests, "llama-one-batch", "board", settings=["stack=upstream-branches"])
    with pytest.raises(ManifestError, match="never resolved") as caught:
        require_resolved(resolved)
    assert caught.value.mend == "rvvbench lock"
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(manifests / "stacks" / "upstream-branches.yaml"))


def test_a_board_of_the_wrong_kind_is_refused(manifests: Path) -> None:
    with pytest.raises(ManifestError, match="qemu_cpu"):
        resolve(manifests, "llama-one-batch", "emulated", settings=["board=bpi-f3"])
    with pytest.raises(ManifestError, match="arch: host"):
        resolve(manifests, "llama-one-batch", "host", settings=["board=bpi-f3"])


@pytest.mark.parametrize("setting", ["targets.host.x=2", "targets=1", "workload..x=1", ".workload=1", "workload.=1"])
def test_a_set_of_what_cannot_be_set_is_wrong_usage_at_the_option(manifests: Path, setting: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(manifests, "llama-one-batch", "host", settings=[setting])
    assert caught.value.where == f"--set {setting}"


@pytest.mark.parametrize(
    "setting",
    [
        "title=!foo bar",
        "title=!!int abc",
        "workload={seed: 1, seed: 2}",
        "workload={output_len: many}",
        "timeouts_s.process=.inf",
        "timeouts_s.process=.nan",
        "timeouts_s={process: .inf}",
        "sample_interval_s=.inf",
    ],
)
def test_a_set_to_no_plain_or_no_right_value_is_placed_at_the_option(manifests: Path, setting: str) -> None:
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "host", settings=[setting])
    assert caught.value.where == f"--set {setting}"


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_manifests_is_an_error_that_names_folder_and_variable(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match="does not exist") as caught:
        names(tmp_path / folder, "models")
    assert caught.value.where == str(tmp_path / folder / "models")
    assert caught.value.mend is not None
    assert "RVVBENCH_MANIFESTS" in caught.value.mend


def test_the_mend_of_a_missing_lock_restores_it(manifests: Path) -> None:
    (manifests / "rvvbench.lock.yaml").unlink()
    with pytest.raises(ManifestError) as caught:
        resolve(manifests, "llama-one-batch", "host")
    assert caught.value.mend is not None
    assert "restore" in caught.value.mend


def test_a_lock_of_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="does not exist") as caught:
        load_lock(tmp_path / "nowhere")
    assert caught.value.where == str(tmp_path / "nowhere")


def test_a_title_that_looks_like_a_date_is_text(manifests: Path) -> None:
    resolved = resolve(manifests, "llama-one-batch", "host", settings=["title=2026-99-99"])
    assert resolved.experiment.title == "2026-99-99"
