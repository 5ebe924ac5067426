"""The archive that podman imports."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.image.oci import archive, compose, write_layer

LABELS = {"org.rvvbench.image.recipe": "tiny"}


@given(data=st.binary(max_size=3000))
def test_the_archive_is_a_tar_whose_blobs_have_their_digests(data: bytes, tmp_path_factory: object) -> None:
    path = Path(tmp_path_factory.mktemp("layer")) / "layer.tar"  # type: ignore[attr-defined]
    layer = write_layer(io.BytesIO(data), path)
    image = compose(layer, "riscv64", LABELS, 1764000000)
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(image, "localhost/x:1")))) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == name.removeprefix("blobs/sha256/")
    (entry,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(files["blobs/" + entry["digest"].replace(":", "/")])
    config = json.loads(files["blobs/" + manifest["config"]["digest"].replace(":", "/")])
    assert entry["digest"] == image.digest
    assert files["blobs/" + manifest["layers"][0]["digest"].replace(":", "/")] == data
    assert config["rootfs"]["diff_ids"] == [layer.digest]
    assert config["architecture"] == "riscv64"
    assert config["created"] == "2025-11-24T16:00:00Z"


def test_equal_content_has_an_equal_digest_and_any_change_another(tmp_path: Path) -> None:
    one = write_layer(io.BytesIO(b"abc"), tmp_path / "1")
    two = write_layer(io.BytesIO(b"abc"), tmp_path / "2")
    digest = compose(one, "riscv64", LABELS, 1).digest
    assert compose(two, "riscv64", LABELS, 1).digest == digest
    others = {
        compose(one, "amd64", LABELS, 1).digest,
        compose(one, "riscv64", {}, 1).digest,
        compose(one, "riscv64", LABELS, 2).digest,
        compose(write_layer(io.BytesIO(b"abd"), tmp_path / "3"), "riscv64", LABELS, 1).digest,
    }
    assert len(others | {digest}) == 5
