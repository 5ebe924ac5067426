"""The data of a task: questions with worked answers, from the Hub at a pinned revision or from files of this machine.

Every file is read once, and what was read is what was hashed.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError, UsageError
from rvvbench.provide.checkpoint import Progress, Where, ensure_hub
from rvvbench.provide.hub import Kind

TRAIN, TEST = "train.jsonl", "test.jsonl"
"""The files of a local folder, one JSON object {"question": ..., "answer": ...} a line."""

INSTEAD = f"give `rvvbench eval` files of your own: --data FOLDER with {TRAIN} and {TEST}"


@dataclass(frozen=True)
class Entry:
    """A question and its worked answer, as the data set has them."""

    question: str
    answer: str


@dataclass(frozen=True)
class TaskData:
    """`files` are (name, SHA-256) of train and test; both the same for a single local file, of which the first entries
    are the examples and the others the questions. `unlocked`: files of the Hub whose hash stands in no lock.
    """

    kind: Literal["hub", "local"]
    train: tuple[Entry, ...]
    test: tuple[Entry, ...]
    train_file: tuple[str, str]
    test_file: tuple[str, str]
    repo: str | None = None
    revision: str | None = None
    unlocked: tuple[str, ...] = ()

    def split(self, shots: int, questions: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """The examples and the questions: the first of each split, in the files' order.

        Raises UsageError where there are not as many.
        """
        single = self.train_file == self.test_file
        asked = self.train[shots:] if single else self.test
        if len(self.train) < shots:
            raise UsageError(
                f"{shots} examples are wanted, {self.train_file[0]} has {len(self.train)} entries",
                where=self.train_file[0],
                mend="more entries, or fewer examples: --set workload.shots=N",
            )
        if len(asked) < questions:
            behind = f" behind its first {shots}, the examples" if single else ""
            raise UsageError(
                f"{questions} questions are wanted, {self.test_file[0]} has {len(asked)}{behind}",
                where=self.test_file[0],
                mend=f"--questions {len(asked)}" if asked else "more entries",
            )
        return self.train[:shots], asked[:questions]

    def pins(self) -> dict[str, Any]:
        """What the record keeps of it, as JSON data; of local files the names only, not where they were."""
        return {
            "kind": self.kind,
            "repo": self.repo,
            "revision": self.revision,
            "train": self.train_file[0],
            "test": self.test_file[0],
            "files": dict(sorted({self.train_file, self.test_file})),
        }


def dataset_kind(files: Collection[str]) -> Kind:
    """Of a repository of data, these files."""
    return Kind("dataset", tuple(files), INSTEAD)


def ensure_dataset(
    repo: str,
    revision: str,
    splits: tuple[str, str],
    locked_files: Mapping[str, str | None],
    folder: Path,
    *,
    endpoint: str | None = None,
    progress: Progress | None = None,
    where: Where | None = None,
) -> TaskData:
    """The data set `repo` at `revision`, with its files `splits` (train, test) in `folder`, downloaded if they are not
    there.

    Verified, and raises, as `ensure_hub` does.
    """
    kind = dataset_kind(splits)
    found = ensure_hub(
        repo, revision, locked_files, folder, endpoint=endpoint, progress=progress, where=where, kind=kind
    )
    (train, train_sha256), (test, test_sha256) = (read_entries(found.path / name) for name in splits)
    for name, sha256 in zip(splits, (train_sha256, test_sha256), strict=True):
        if found.files[name][0] != sha256:
            raise RvvbenchError(f"{name} changed while it was read", where=str(found.path), mend="run again")
    unlocked = tuple(name for name in splits if locked_files.get(name) is None)
    return TaskData("hub", train, test, (splits[0], train_sha256), (splits[1], test_sha256), repo, revision, unlocked)


def local_dataset(path: Path) -> TaskData:
    """The data of a folder with `train.jsonl` and `test.jsonl`, or of a single file, in which examples come first.

    Raises UsageError for what is neither, and as `read_entries`.
    """
    if path.is_dir():
        for name in (TRAIN, TEST):
            if not (path / name).is_file():
                raise UsageError(f"the folder has no {name}", where=str(path), mend=f"a folder with {TRAIN} and {TEST}")
        (train, train_sha256), (test, test_sha256) = (read_entries(path / name) for name in (TRAIN, TEST))
        return TaskData("local", train, test, (TRAIN, train_sha256), (TEST, test_sha256))
    if not path.is_file():
        raise UsageError("there is no such file or folder", where=f"--data {path}", mend=f"--data FOLDER with {TRAIN}")
    entries, sha256 = read_entries(path)
    return TaskData("local", entries, entries, (path.name, sha256), (path.name, sha256))


def read_entries(path: Path) -> tuple[tuple[Entry, ...], str]:
    """The entries of a JSON lines or Parquet file, in its order, and the SHA-256 of what was read.

    Raises ManifestError with file:line for what is no entry, EnvironmentLacks where Parquet cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EnvironmentLacks(f"cannot read the file: {error.strerror}", where=str(path)) from error
    rows = _parquet(data, path) if path.suffix == ".parquet" else _json_lines(data, path)
    return tuple(rows), hashlib.sha256(data).hexdigest()


def _json_lines(data: bytes, path: Path) -> list[Entry]:
    entries = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"no JSON: {error}", where=f"{path}:{number}", mend=_FORM) from error
        entries.append(_entry(row, f"{path}:{number}"))
    return entries


def _parquet(data: bytes, path: Path) -> list[Entry]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise EnvironmentLacks(
            "reading Parquet, in which the Hub keeps this data set, needs the package pyarrow",
            where=str(path),
            mend=f"pip install pyarrow (the extra `eval` of rvvbench), or {INSTEAD}",
        ) from error
    try:
        rows = parquet.read_table(io.BytesIO(data)).to_pylist()
    except ArrowException as error:
        raise ManifestError(f"no Parquet file: {error}", where=str(path)) from error
    return [_entry(row, f"{path}, row {number}") for number, row in enumerate(rows)]


_FORM = 'one object a line: {"question": "...", "answer": "... #### 18"}'


def _entry(row: Any, where: str) -> Entry:
    question, answer = (row.get(name) if isinstance(row, dict) else None for name in ("question", "answer"))
    if not isinstance(question, str) or not isinstance(answer, str) or not question.strip() or not answer.strip():
        raise ManifestError("no entry with a question and an answer in words", where=where, mend=_FORM)
    try:
        (question + answer).encode()
    except UnicodeEncodeError as error:
        raise ManifestError("the text holds half of a surrogate pair", where=where) from error
    return Entry(question, answer)
