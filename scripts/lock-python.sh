#!/usr/bin/env bash
# Writes requirements.lock: every Python package that rvvbench, its tests and its own build need, for every platform and
# Python version that pyproject.toml allows, with the hashes of its files. Needs the package index; installs uv, which
# resolves for all platforms at once, into a temporary environment.
#
#   scripts/lock-python.sh [--upgrade]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check 'uv>=0.9'

# pip builds the editable install without isolation, so what builds it is locked as well: what pyproject.toml asks for,
# and what hatchling asks for when the install is editable.
"$work/venv/bin/python" - >"$work/build-system.in" <<'PYTHON'
import pathlib, tomllib
print(*tomllib.loads(pathlib.Path("pyproject.toml").read_text())["build-system"]["requires"], "editables", sep="\n")
PYTHON

UV_CUSTOM_COMPILE_COMMAND="make lock-python" "$work/venv/bin/uv" pip compile -q --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-annotate --extra dev "$@" \
    --output-file requirements.lock pyproject.toml "$work/build-system.in"
