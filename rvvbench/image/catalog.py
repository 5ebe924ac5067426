"""Which images of ours podman has."""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.engine.service import Engine
from rvvbench.image.names import LABEL


@dataclass(frozen=True)
class ListedImage:
    """One image with its provenance. `name` is None for an image that lost its name to a newer build."""

    name: str | None
    recipe: str
    arch: str
    digest: str
    recipe_sha256: str
    suite: str
    size_bytes: int
    packages: int


def list_images(engine: Engine) -> list[ListedImage]:
    """Our images, by name."""
    found: list[ListedImage] = []
    # One string: podman-py turns a list of filters into the text of that list, which matches nothing.
    for image in engine.client.images.list(filters={"label": f"{LABEL}.recipe"}):
        attributes = engine.client.images.get(image.id).attrs
        labels = attributes.get("Labels") or {}
        found += [
            ListedImage(
                name=name,
                recipe=labels[f"{LABEL}.recipe"],
                arch=attributes["Architecture"],
                digest=attributes.get("Digest", ""),
                recipe_sha256=labels.get(f"{LABEL}.recipe-sha256", ""),
                suite=labels.get(f"{LABEL}.suite", ""),
                size_bytes=int(attributes.get("Size", 0)),
                packages=len(labels.get(f"{LABEL}.packages", "").splitlines()),
            )
            for name in attributes.get("RepoTags") or [None]
        ]
    return sorted(found, key=lambda image: (image.recipe, image.arch, image.name or ""))
