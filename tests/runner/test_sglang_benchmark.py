"""The stand-in for `datasets`, in a process of its own as SGLang's benchmark is, which is a small module here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BENCHMARK = """
import sys
from datasets import load_dataset
print(sys.argv[1:])
load_dataset("mmmu")
"""


@pytest.fixture
def benchmark(tmp_path):
    """Run it with its arguments; `site` may hold more."""
    package = tmp_path / "sglang" / "benchmark"
    package.mkdir(parents=True)
    (package / "serving.py").write_text(BENCHMARK)
    (tmp_path / "transformers.py").write_text(
        "import importlib.util\nassert importlib.util.find_spec('datasets') is None, 'it was to be asked first'"
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "rvvbench.runner.sglang_benchmark", *arguments],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            capture_output=True,
            text=True,
        )

    run.site = tmp_path
    return run


def test_a_missing_package_is_stood_in_for_and_says_so_when_it_is_used(benchmark):
    ended = benchmark("--seed", "1")
    assert ended.stdout == "['--seed', '1']\n"
    assert ended.returncode == 1
    assert "the package datasets is not installed; use a data set of SGLang that needs no download" in ended.stderr


def test_a_package_that_is_there_is_used(benchmark):
    (benchmark.site / "datasets.py").write_text("load_dataset = print")
    ended = benchmark()
    assert (ended.returncode, ended.stdout) == (0, "[]\nmmmu\n")
