import dataclasses
import hashlib
import json
import os

import pytest

from rvvbench.runner import pins
from rvvbench.runner import spec as specs
from rvvbench.runner.events import Events
from rvvbench.runner.failure import PinFailed


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in (("config.json", b"{}"), ("model.safetensors", b"weights")):
        (folder / name).write_bytes(content)
    return folder


def listed(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def failed(found):
    return [pin.name for pin in found if not pin.ok]


def test_a_checkpoint_as_pinned_holds(checkpoint):
    assert failed(pins.checkpoint(checkpoint, listed(checkpoint))) == []


def test_one_changed_byte_is_found(checkpoint):
    expected = listed(checkpoint)
    (checkpoint / "model.safetensors").write_bytes(b"weightz")
    assert failed(pins.checkpoint(checkpoint, expected)) == ["checkpoint:model.safetensors"]


def test_a_missing_file_is_found_and_observed_as_none(checkpoint):
    expected = listed(checkpoint)
    (checkpoint / "config.json").unlink()
    found = [pin for pin in pins.checkpoint(checkpoint, expected) if not pin.ok]
    assert [(pin.name, pin.observed) for pin in found] == [("checkpoint:config.json", None)]


def test_weights_that_nobody_listed_are_found(checkpoint):
    expected = listed(checkpoint)
    (checkpoint / "model-00002.safetensors").write_bytes(b"more")
    (checkpoint / "README.md").write_bytes(b"harmless")
    found = [pin for pin in pins.checkpoint(checkpoint, expected) if not pin.ok]
    assert [(pin.name, pin.observed) for pin in found] == [("checkpoint_unlisted_weights", "model-00002.safetensors")]


@pytest.mark.parametrize(
    ("pinned", "installed", "observed"),
    [
        ("2.14.1", "2.14.1", "2.14.1"),
        ("2.14.1", "2.14.1+debian", "2.14.1"),
        ("2.14.1", "2.14.2+debian", "2.14.2"),
        ("2.14.1+debian", "2.14.1", "2.14.1"),
        ("2.14.1+debian", "2.14.1+cpu", "2.14.1+cpu"),
        ("2.14.1", None, None),
    ],
)
def test_a_local_part_counts_only_where_it_is_pinned(pinned, installed, observed):
    assert pins.as_pinned(pinned, installed) == observed


def test_all_pins_are_written_before_the_verdict_and_the_verdict_names_each_that_fails(document, checkpoint, tmp_path):
    document["expect"].update(machine="pdp11", packages={"no-such-package": "1"}, checkpoint_files=listed(checkpoint))
    document.update(model_path=str(checkpoint))
    path = tmp_path / "events.jsonl"
    with Events(path) as events, pytest.raises(PinFailed, match=r"machine.*pdp11.*no-such-package.*vlen"):
        pins.check(pins.before_import(specs.parse(document), None), events)
    written = {event["name"]: event["ok"] for event in map(json.loads, path.read_text().splitlines())}
    assert written == {
        "machine": False,
        "package:no-such-package": False,
        "vlen": False,
        "checkpoint:config.json": True,
        "checkpoint:model.safetensors": True,
        "checkpoint_unlisted_weights": True,
    }


def test_what_is_not_expected_is_not_pinned(document, checkpoint):
    document["expect"].update(machine=os.uname().machine, packages={}, vlen=None)
    spec = dataclasses.replace(specs.parse(document), model_path=str(checkpoint))
    assert {pin.name for pin in pins.before_import(spec, 128)} == {"machine", "checkpoint_unlisted_weights"}


def test_the_kernel_library_is_hashed_without_being_imported(tmp_path, monkeypatch):
    package = tmp_path / "sgl_kernel"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert pins.kernel_library_sha256() is None
    (package / "_ops.so").write_bytes(b"elf")
    assert pins.kernel_library_sha256() == hashlib.sha256(b"elf").hexdigest()
    (package / "second.so").write_bytes(b"elf")
    assert pins.kernel_library_sha256() is None
