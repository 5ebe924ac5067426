"""The environment of the measured process: what it sets for itself before torch is imported, and what of it is
recorded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib import util
from pathlib import Path
from typing import Any

from . import hardware, pins
from .spec import Common

# Recorded, and so part of what a run is: everything that is known to change speed, threads, numerics or what is loaded.
RECORDED = re.compile(
    r"CXX|HF_HUB_OFFLINE|HOME|LANG|LC_\w+|LD_LIBRARY_PATH|LD_PRELOAD|PATH|PYTHON\w*|USE_LIBUV"
    r"|(ATEN|GOMP|KMP|MALLOC|MKL|OMP|OPENBLAS|QEMU|SGLANG|TOKENIZERS|TORCH|TORCHINDUCTOR|TRANSFORMERS)_\w+"
)
SECRET = re.compile(r".*(_TOKEN|_KEY|SECRET|PASSWORD)\w*")

DISABLED_MODELS = "SGLANG_DISABLED_MODEL_ARCHS"
PLATFORM = "rvv"
PLATFORM_CLASS = "sglang_rvv.platform.RvvPlatform"
# Recorded in full beside the pinned packages.
OF_INTEREST = ("numpy", "rvv_inductor", "sglang_rvv", "sgl_kernel_rvv")


def recorded(environ: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed part of an environment."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if RECORDED.fullmatch(name) and not SECRET.fullmatch(name)
    }


def own_settings(spec: Common, model_files: Mapping[str, str]) -> dict[str, str]:
    """What the runner sets: the platform by name (so that a plugin that fails is an error, not a fallback), which parts
    of the model the variant computes with kernels, and the model files of SGLang that need not be imported.
    `model_files` {stem: source text} of sglang/srt/models.
    """
    settings = {
        "SGLANG_PLATFORM": PLATFORM,
        "SGLANG_RVV_LINEAR": "torch" if spec.variant.linear == "torch" else "packed",
        "SGLANG_RVV_PROJECTIONS": ",".join(spec.variant.projections),
        "SGLANG_RVV_ELEMENTWISE": spec.variant.elementwise,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    unneeded = unneeded_models(architectures(Path(spec.model_path)), model_files)
    if unneeded:
        settings[DISABLED_MODELS] = ",".join(unneeded)
    return settings


def of_server(spec: Common, environ: Mapping[str, str], model_files: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a server that this process starts."""
    # SGLang's /health generates a token unless told not to; it is asked while the server starts.
    return {**environ, **own_settings(spec, model_files), "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false"}


def architectures(checkpoint: Path) -> list[str]:
    """The model classes that a checkpoint's config.json names; none when it cannot be read (the pins say so better)."""
    try:
        named = json.loads((checkpoint / "config.json").read_text(encoding="utf-8")).get("architectures") or []
    except (OSError, ValueError, AttributeError):
        return []
    return [str(name) for name in named]


def unneeded_models(wanted: Iterable[str], model_files: Mapping[str, str]) -> list[str]:
    """The stems of all model files that define none of the wanted classes. SGLang imports each that is not disabled,
    some 200 files (39 s under emulation), only to fill its registry. Empty unless every wanted class was found: then
    nothing is disabled.
    """
    needed: set[str] = set()
    for name in wanted:
        definition = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
        found = {stem for stem, text in model_files.items() if definition.search(text)}
        if not found:
            return []
        needed |= found
    return sorted(set(model_files) - needed) if needed else []


def sglang_model_files() -> dict[str, str]:
    """{stem: source} of SGLang's model files, found without importing SGLang."""
    found = util.find_spec("sglang")
    folders = [Path(folder) / "srt" / "models" for folder in (found.submodule_search_locations or ())] if found else []
    return {
        path.stem: path.read_text(encoding="utf-8", errors="replace")
        for folder in folders
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    }


def apply(spec: Common) -> None:
    """Set `own_settings` in this process, before anything reads them."""
    os.environ.update(own_settings(spec, sglang_model_files()))


def fields(
    spec: Common,
    found: hardware.Hardware,
    *,
    environ: Mapping[str, str],
    torch_threads: int,
    platform_class: str,
    server_args: Mapping[str, Any],
) -> dict[str, Any]:
    """The fields of the `environment` event: what this process can tell by itself, and what it was told of the one that
    runs the model.
    """
    told: dict[str, Any] = {
        "packages": {pin.name.partition(":")[2]: pin.observed for pin in pins.packages(spec.expect.packages)},
        "full_versions": {name: pins.package_version(name) for name in (*spec.expect.packages, *OF_INTEREST)},
        "torch_threads": torch_threads,
        "platform_class": platform_class,
        "vlen_bits": found.vlen_bits,
        "isa": found.isa,
        "isa_source": found.isa_source,
        "env": recorded(environ),
        "server_args": dict(server_args),
    }
    return told if found.vlen_reason is None else {**told, "vlen_reason": found.vlen_reason}
