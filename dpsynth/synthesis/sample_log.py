"""The tables that were drawn from a run: file name, SHA-256, rows, seed, condition, plainness.

``samples.json`` beside ``run.json`` is how a release knows that a table came from the run, so that
the table which was evaluated is the table which is released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import plain
from dpsynth._util.strict_json import (
    as_object,
    check_format,
    check_keys,
    file_digest,
    matching,
    names,
    read_document,
    require_plain_file,
    several,
    sha256_text,
    text,
    truth,
    whole,
    written,
)
from dpsynth.errors import GateError, InputError
from dpsynth.files import updating, write_atomically

VERSION = 1
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "file": text,
    "folder": text,
    "suffix": partial(matching, pattern=r"\.csv|\.csv\.gz|\.parquet", noun="suffix of a table"),
    "sha256": text,
    "rows": partial(whole, minimum=1),
    "seed": partial(whole, minimum=0),
    "number": partial(whole, minimum=1),
    "condition": lambda value, place: None if value is None else text(value, place),
    "plain": truth,
    "patients": partial(whole, minimum=1),
    "tables": lambda value, place: {
        name: sha256_text(one, f"{place}.{plain(name)}")
        for name, one in as_object(value, place).items()
    },
}


@dataclass(frozen=True)
class Record:
    """One table that was drawn, in the document ``<log>.json`` of a run's folder."""

    log: ClassVar[str]

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one record; one of an earlier version may lack what has a default."""
        later = {one.name for one in fields(cls) if one.default is not MISSING}
        check_keys(document, place, set(names(cls)) - later, optional=later)
        present = [key for key in names(cls) if key in document]
        return cls(**{key: _READERS[key](document[key], f"{place}.{key}") for key in present})


_Record = TypeVar("_Record", bound=Record)


@dataclass(frozen=True)
class Sample(Record):
    """One table drawn from a run. ``file`` is a name without its folder: runs may be shared."""

    log: ClassVar[str] = "samples"

    file: str
    sha256: str
    rows: int
    seed: int
    condition: str | None
    plain: bool


@dataclass(frozen=True)
class CohortSample(Record):
    """One cohort drawn from a run of linked tables.

    ``tables`` has the SHA-256 of each file, by the name of its table; ``suffix`` ends their names.
    ``plain``: its patients are independent draws.
    """

    log: ClassVar[str] = "cohorts"

    folder: str
    tables: dict[str, str]
    suffix: str
    patients: int
    seed: int
    plain: bool = False


def record_sample(
    folder: str | Path,
    table: str | Path,
    *,
    rows: int,
    seed: int,
    condition: str | None = None,
    plain: bool = False,
    sha256: str | None = None,
) -> str:
    """Record a table that was just drawn from the run in ``folder``; several may do so at once.

    Args:
        folder: the run.
        table: the file.
        rows: of it.
        seed: of the sampling.
        condition: that its rows satisfy.
        plain: whether they are independent draws.
        sha256: of what was written, if it is known: the file may have been replaced since.

    Returns:
        The table's SHA-256 (hex).

    Raises:
        ArtifactError: the table is missing, or an earlier ``samples.json`` is damaged.
        InputError: the run folder cannot be written to.
    """
    folder, table = path_of(folder), path_of(table)
    require_plain_file(table)
    sample = Sample(table.name, sha256 or file_digest(table), rows, seed, condition, plain)
    add_record(folder, sample)
    return sample.sha256


def add_record(folder: Path, record: Record) -> None:
    """Add a record to its document in the folder of a run; several may do so at once."""
    with updating(folder):
        document = {
            "format": f"dpsynth-{record.log}",
            "version": VERSION,
            record.log: [asdict(item) for item in (*read_records(folder, type(record)), record)],
        }
        write_atomically(folder / f"{record.log}.json", written(document))


def read_records(folder: str | Path, kind: type[_Record]) -> tuple[_Record, ...]:
    """List the records of a kind in the folder of a run, oldest first.

    Raises:
        ArtifactError: their document is damaged or of another version.
    """
    path = path_of(folder) / f"{kind.log}.json"
    if not path.exists():
        return ()
    document = read_document(path)
    check_format(document, str(path), f"dpsynth-{kind.log}", VERSION)
    check_keys(document, str(path), ("format", "version", kind.log))
    return several(kind.from_dict, document[kind.log], f"{path}: {kind.log}")


def read_samples(folder: str | Path) -> tuple[Sample, ...]:
    """List the tables drawn from a run, oldest first.

    Raises:
        ArtifactError: ``samples.json`` is damaged or of another version.
    """
    return read_records(folder, Sample)


def drawn_from(folder: str | Path, table: str | Path) -> Sample:
    """Return the record of a table that was drawn from a run.

    Raises:
        InputError: there is no such table.
        GateError: it is not recorded in the run, or was changed since.
    """
    path = path_of(table, "the path of a synthetic table")
    if not path.is_file():
        raise InputError(f"{path}: there is no such table")
    sha256 = file_digest(path)
    for sample in reversed(read_samples(folder)):
        if sample.sha256 == sha256:
            return sample
    raise GateError(
        f"{path} is not recorded in {folder}/samples.json as drawn from this run, or was changed "
        "since; draw it again with `dpsynth sample`, or give the schema instead of the run"
    )
