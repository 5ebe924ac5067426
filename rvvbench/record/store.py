"""Records as files: `<run_id>.json`, written whole or not at all, and never over another."""

from __future__ import annotations

import builtins
import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rvvbench.errors import CheckFailed, EnvironmentLacks, RvvbenchError, UsageError
from rvvbench.record.schema import RECORD_SCHEMA, Record

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


_LINE_WIDTH = 200


@dataclass(frozen=True)
class Entry:
    """A file of the store: its record, or why it is none."""

    path: Path
    record: Record | None
    problem: str | None = None


class RecordStore:
    """The records in one folder, which the first `write` creates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: Record) -> Path:
        """Write the record and return its path.

        Raises: CheckFailed where a record of that run_id is there already, EnvironmentLacks where the folder cannot
        be written.
        """
        path = self.folder / f"{record.run_id}.json"
        temporary = self.folder / f".{record.run_id}.{os.getpid()}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                _write_synced(temporary, to_json(record))
                _claim(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(self.folder)
        except FileExistsError as error:
            raise CheckFailed(
                f"there is a record of {record.run_id} already, and records are never overwritten",
                where=str(error.filename2 or path),
                mend="run again: a new run has a new run_id",
            ) from error
        except OSError as error:
            raise EnvironmentLacks(
                f"the record cannot be written: {error.strerror}",
                where=str(path),
                mend="make room or give the folder to this user, then run again",
            ) from error
        return path

    def find(self, ref: str | Path) -> Path:
        """Path of the record that `ref` names: a path, a run_id, or the beginning of exactly one run_id.

        Raises: UsageError where none or several fit.
        """
        text = str(ref)
        if os.sep in text or text.endswith(".json"):
            for path in (Path(text), self.folder / text):
                if path.is_file():
                    return path
            raise UsageError(f"there is no record {text}", where=text, mend="rvvbench list shows the records")
        exact = self.folder / f"{text}.json"
        if exact.is_file():
            return exact
        fitting = [path for path in self._paths() if text and path.name.startswith(text)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(path.stem for path in fitting[:5])
            raise UsageError(f"{text} is the beginning of {len(fitting)} run ids: {names}", mend="give more of it")
        raise UsageError(
            f"there is no record of {text}", where=str(self.folder), mend="rvvbench list shows the records"
        )

    def load(self, ref: str | Path) -> Record:
        """The record that `ref` names.

        Raises: UsageError as `find`, CheckFailed where the file is no readable record.
        """
        return read_record(self.find(ref))

    def list(self) -> builtins.list[Entry]:
        """Every record file, oldest first; those that cannot be read come last, with why."""
        entries: builtins.list[Entry] = []
        for path in self._paths():
            try:
                entries.append(Entry(path, read_record(path)))
            except RvvbenchError as error:
                entries.append(Entry(path, None, error.cause))
        return sorted(entries, key=_age)

    def _paths(self) -> builtins.list[Path]:
        return sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))


def to_json(record: Record) -> str:
    """The text of a record's file; an event or a figure stands on one line, so that a difference can be read."""
    return _laid_out(record.plain(), "") + "\n"


def read_record(path: Path) -> Record:
    """The record in the file at `path`.

    Raises: UsageError where it cannot be read, CheckFailed where it is damaged, of another schema, or not what the
    schema says.
    """
    where = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the record cannot be read: {error.strerror}", where=where) from error
    except UnicodeDecodeError as error:
        raise CheckFailed("the record is no UTF-8 text", where=where, mend="get an undamaged copy") from error
    try:
        plain = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        raise CheckFailed(
            f"the record is no JSON: {error.msg}", where=f"{where}:{error.lineno}", mend="get an undamaged copy"
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckFailed(f"the record is no JSON: {error}", where=where, mend="get an undamaged copy") from error
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != RECORD_SCHEMA:
        raise CheckFailed(
            f"not a record that this version reads: its schema is {schema}, read is {RECORD_SCHEMA}",
            where=where,
            mend="use the version of rvvbench that wrote it",
        )
    try:
        return Record.model_validate(plain)
    except ValidationError as error:
        raise CheckFailed(
            _first_errors(error), where=where, mend="get an undamaged copy: records are not edited"
        ) from error


def _laid_out(value: Any, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(indent) + len(line) <= _LINE_WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_laid_out(item, inner)}" for key, item in value.items()]
        opened, closed = "{", "}"
    else:
        items = [_laid_out(item, inner) for item in value]
        opened, closed = "[", "]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closed}"


def _first_errors(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False)
    shown = [f"{'.'.join(str(part) for part in item['loc']) or 'record'}: {item['msg']}" for item in errors[:3]]
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    return "the record does not fit its schema: " + "; ".join(shown) + more


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _each_key_once(pairs: builtins.list[tuple[str, Any]]) -> dict[str, Any]:
    """Python would take the last of two, another reader the first: they would see different records."""
    read = dict(pairs)
    if len(read) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return read


def _write_synced(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _claim(temporary: Path, path: Path) -> None:
    """Give the written file its name, atomically, unless the name is taken (FileExistsError)."""
    try:
        # link, unlike rename, refuses a name that is taken, so two writers cannot overwrite each other.
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # No hard links here (FAT on a card): look, then rename; a long run's record must not be lost for it.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.rename(path)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _age(entry: Entry) -> tuple[bool, str, str]:
    return entry.record is None, entry.record.created if entry.record else "", entry.path.name
