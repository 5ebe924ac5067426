"""An OCI image layout of one uncompressed layer, written so that equal content has an equal digest.

Formats: OCI image specification 1.0, image-layout.md, manifest.md and config.md.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

CHUNK_BYTES = 1 << 20
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class Layer:
    """An uncompressed tar. Its digest is its diff ID too."""

    path: Path
    digest: str
    size_bytes: int


@dataclass(frozen=True)
class Image:
    """What makes an image. `digest` is the manifest's, `image_id` the config's (podman's image ID), as "sha256:..."."""

    manifest: bytes
    config: bytes
    layer: Layer

    @property
    def digest(self) -> str:
        return _digest(self.manifest)

    @property
    def image_id(self) -> str:
        return _digest(self.config)


def write_layer(stream: IO[bytes], path: Path) -> Layer:
    """Copy a tar stream to `path`, hashing it on the way."""
    found, size = hashlib.sha256(), 0
    with path.open("wb") as out:
        while chunk := stream.read(CHUNK_BYTES):
            found.update(chunk)
            out.write(chunk)
            size += len(chunk)
    return Layer(path, f"sha256:{found.hexdigest()}", size)


def compose(layer: Layer, arch: str, labels: Mapping[str, str], created_s: int) -> Image:
    """Config and manifest for one layer. `created_s` is in seconds since 1970."""
    created = datetime.fromtimestamp(created_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = _canonical(
        {
            "architecture": arch,
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"], "Labels": dict(labels)},
            "created": created,
            "history": [{"created": created, "created_by": "rvvbench image build"}],
            "os": "linux",
            "rootfs": {"diff_ids": [layer.digest], "type": "layers"},
        }
    )
    manifest = _canonical(
        {
            "config": {"digest": _digest(config), "mediaType": CONFIG_TYPE, "size": len(config)},
            "layers": [{"digest": layer.digest, "mediaType": LAYER_TYPE, "size": layer.size_bytes}],
            "mediaType": MANIFEST_TYPE,
            "schemaVersion": 2,
        }
    )
    return Image(manifest, config, layer)


def archive(image: Image, name: str) -> Iterator[bytes]:
    """The bytes of an oci-archive tar that names the image `name`, streamed: the layer is read from its file."""
    entry = {
        "annotations": {"org.opencontainers.image.ref.name": name},
        "digest": image.digest,
        "mediaType": MANIFEST_TYPE,
        "size": len(image.manifest),
    }
    small = {
        "oci-layout": _canonical({"imageLayoutVersion": "1.0.0"}),
        "index.json": _canonical({"manifests": [entry], "schemaVersion": 2}),
        _blob(image.digest): image.manifest,
        _blob(image.image_id): image.config,
    }
    for path, data in small.items():
        yield _header(path, len(data)) + data + _padding(len(data))
    yield _header(_blob(image.layer.digest), image.layer.size_bytes)
    with image.layer.path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
    yield _padding(image.layer.size_bytes) + bytes(2 * tarfile.BLOCKSIZE)


def _header(path: str, size_bytes: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size_bytes
    return info.tobuf(tarfile.GNU_FORMAT)


def _padding(size_bytes: int) -> bytes:
    return bytes(-size_bytes % tarfile.BLOCKSIZE)


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
