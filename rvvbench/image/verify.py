"""Is the image that a run needs here, and is it what was declared?"""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.engine.container import ContainerSpec, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.image.names import MACHINES
from rvvbench.image.recipe import Recipe


@dataclass(frozen=True)
class ImageRef:
    """An image that podman has. `digest` is the manifest's, `image_id` podman's, both "sha256:..."."""

    name: str
    arch: str
    digest: str
    image_id: str


def look_up(engine: Engine, name: str) -> ImageRef | None:
    """What podman has under a name, None if nothing."""
    from podman.errors import APIError

    try:
        attributes = engine.client.images.get(name).attrs
    except APIError as error:  # ImageNotFound is one
        if error.is_client_error():
            return None
        raise RvvbenchError(f"podman cannot inspect the image: {error}", where=name) from error
    image_id = str(attributes["Id"])
    return ImageRef(
        name=name,
        arch=str(attributes["Architecture"]),
        digest=str(attributes.get("Digest", "")),
        image_id=image_id if image_id.startswith("sha256:") else f"sha256:{image_id}",
    )


def require_image(
    recipe: Recipe, arch: str, *, digest: str, where: str | None, engine: Engine, inside: bool = True
) -> ImageRef:
    """The image of `recipe` for `arch`, with the declared manifest digest ("sha256:..." or its 64 digits).

    `where` is the file:line that declares the digest. With `inside`, a container of the image is asked for its machine.

    Raises EnvironmentLacks where there is no such image, ManifestError where it is not the declared one.
    """
    declared = digest if digest.startswith("sha256:") else f"sha256:{digest}"
    name = recipe.image_name(arch)
    found = look_up(engine, name)
    mend = f"rvvbench image build {recipe.name} --arch {arch}"
    if found is None:
        raise EnvironmentLacks(f"podman has no image {name}", where=where, mend=mend)
    if found.digest != declared:
        raise ManifestError(
            f"{name} has digest {found.digest}, declared is {declared}",
            where=where,
            mend=f"{mend}; if the recipe was meant to change, rvvbench lock",
        )
    if found.arch != arch:
        raise ManifestError(f"{name} is for {found.arch}, declared is {arch}", where=where, mend=mend)
    if inside:
        check_inside(engine, found)
    # Address it by ID from here on: a name can be moved while a run lasts.
    return found


def check_inside(engine: Engine, image: ImageRef) -> None:
    """Start the image once and compare what the machine inside calls itself. Raises ManifestError, EnvironmentLacks."""
    ended = run_container(engine, ContainerSpec(image.image_id, ("uname", "-m"), timeout_s=60.0))
    said, expected = ended.output.strip(), MACHINES[image.arch]
    if ended.exit_code != 0 or said != expected:
        raise ManifestError(
            f"inside {image.name}, uname -m says {said!r} (exit code {ended.exit_code}) and not {expected!r}",
            where=image.name,
            mend="build the image again",
        )
