"""What was drawn from a run: files with their SHA-256, size, seed, condition, plainness, rules.

``samples.json`` beside ``run.json`` is how a release knows that tables came from the run, so that
what was evaluated is what is released. A replicate is drawn from a refit, not from the run. It is
recorded there too, with its number, and `release` refuses it like any other table: it serves
standard errors, and the certificate is about the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import plain
from dpsynth._util.short_repr import short_repr
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
from dpsynth.certificate import AddedRule
from dpsynth.errors import GateError, InputError
from dpsynth.files import updating, write_atomically
from dpsynth.schema import NOTE_FILE, SINGLE, file_stem
from dpsynth.tables import says_synthetic, table_kind

DOCUMENT = "samples.json"
VERSION = 1


@dataclass(frozen=True)
class Sample:
    """One table, or the linked tables of one folder, drawn from a run or from a refit of it.

    Attributes:
        name: of the file, or of the folder of linked tables, without the folder that it is in: runs
            may be shared.
        tables: SHA-256 (hex) of each file by the name of its table.
        suffix: ends the names of the files.
        size: rows of one table, or patients of linked ones.
        seed: of the draw.
        condition: that all rows of one table, or all patients, meet; None for no condition.
        plain: whether rows, or patients, are independent draws.
        replicate: number of the refit that it was drawn from; None where that is the run itself.
        rules: that people added after the fit; all rows keep them.
    """

    name: str
    tables: dict[str, str]
    suffix: str
    size: int
    seed: int
    condition: str | None = None
    plain: bool = False
    replicate: int | None = None
    rules: tuple[AddedRule, ...] = ()

    def __repr__(self) -> str:
        """Name the file and its size."""
        return short_repr(self, self.name, f"{self.size} drawn", f"seed {self.seed}")

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of the file of one table."""
        (found,) = self.tables.values()
        return found

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Sample:
        """Read strictly one record.

        Raises:
            ArtifactError: a key is missing, unknown or of the wrong type.
        """
        check_keys(document, place, names(cls))
        tables = as_object(document["tables"], f"{place}.tables")
        condition, replicate = document["condition"], document["replicate"]
        if replicate is not None:
            replicate = whole(replicate, f"{place}.replicate", minimum=1)
        return cls(
            name=text(document["name"], f"{place}.name"),
            tables={
                name: sha256_text(one, f"{place}.tables.{plain(name)}")
                for name, one in tables.items()
            },
            suffix=matching(
                document["suffix"],
                f"{place}.suffix",
                pattern=r"\.csv|\.csv\.gz|\.parquet",
                noun="suffix of a table",
            ),
            size=whole(document["size"], f"{place}.size", minimum=1),
            seed=whole(document["seed"], f"{place}.seed", minimum=0),
            condition=None if condition is None else text(condition, f"{place}.condition"),
            plain=truth(document["plain"], f"{place}.plain"),
            replicate=replicate,
            rules=several(AddedRule.from_dict, document["rules"], f"{place}.rules"),
        )


def record_sample(
    folder: str | Path,
    output: str | Path,
    *,
    size: int,
    seed: int,
    condition: str | None = None,
    plain: bool = False,
    replicate: int | None = None,
    rules: Sequence[AddedRule] = (),
    digests: Mapping[str, str] | None = None,
) -> Sample:
    """Record what was just drawn from the run in ``folder``; several may do so at once.

    Args:
        folder: the run.
        output: the file, or the folder of linked tables.
        size: rows of one table, or patients.
        seed: of the draw.
        condition: that all of them meet.
        plain: whether they are independent draws.
        replicate: number of the refit that they were drawn from.
        rules: that people added after the fit, and all of them keep.
        digests: SHA-256 (hex) of each file that was written, by the name of its table, if they are
            known: the files may have been replaced since.

    Returns:
        The record.

    Raises:
        ArtifactError: the table is missing, or an earlier ``samples.json`` is damaged.
        InputError: the run folder cannot be written to.
    """
    folder, output = path_of(folder), path_of(output)
    files = _files(output)
    tables = dict(digests or {name: file_digest(file) for name, file in files.items()})
    suffix = table_kind(next(iter(files.values())))
    law = (size, seed, condition, plain, replicate, tuple(rules))
    sample = Sample(output.name, tables, suffix, *law)
    with updating(folder):
        samples = [asdict(one) for one in (*_read(folder), sample)]
        document = {"format": "dpsynth-samples", "version": VERSION, "samples": samples}
        write_atomically(folder / DOCUMENT, written(document))
    return sample


def _files(output: Path) -> dict[str, Path]:
    """Return the file of a table, or each one in a folder of linked tables, by the table's name."""
    if not output.is_dir():
        require_plain_file(output)
        return {SINGLE: output}
    files = [path for path in sorted(output.iterdir()) if path.name != NOTE_FILE]
    stems = {path.name[: -len(table_kind(path))]: path for path in files}
    return {stem.removeprefix(file_stem("")): path for stem, path in stems.items()}


def _read(folder: Path) -> tuple[Sample, ...]:
    path = folder / DOCUMENT
    if not path.exists():
        return ()
    document = read_document(path)
    check_format(document, str(path), "dpsynth-samples", VERSION)
    check_keys(document, str(path), ("format", "version", "samples"))
    return several(Sample.from_dict, document["samples"], f"{path}: samples")


def read_samples(folder: str | Path) -> tuple[Sample, ...]:
    """List what was drawn from a run, oldest first.

    Raises:
        ArtifactError: ``samples.json`` is damaged or of another version.
    """
    return tuple(one for one in _read(path_of(folder)) if one.replicate is None)


def read_replicates(folder: str | Path) -> tuple[Sample, ...]:
    """List what was drawn from refits of a run, oldest first.

    Raises:
        ArtifactError: ``samples.json`` is damaged or of another version.
    """
    return tuple(one for one in _read(path_of(folder)) if one.replicate is not None)


def drawn_from(folder: str | Path, output: str | Path) -> Sample:
    """Return the record of a table, or of linked ones, drawn from a run.

    Raises:
        InputError: there is no such table.
        GateError: it is not recorded in the run, or was changed since.
    """
    path = path_of(output, "the path of a synthetic table")
    if not path.exists():
        raise InputError(f"{path}: there is no such table")
    digests = {name: file_digest(file) for name, file in _files(path).items()}
    return recorded_as(folder, digests, path)


def recorded_as(folder: str | Path, digests: Mapping[str, str], place: str | Path) -> Sample:
    """Return the last record of a run of files with these digests, by the names of their tables.

    Raises:
        GateError: there is none; the message names ``place``.
    """
    for sample in reversed(read_samples(folder)):
        if sample.tables == digests:
            return sample
    raise GateError(
        f"{path_of(place)} is not recorded in {folder}/{DOCUMENT} as drawn from this run, or was "
        "changed since; draw it again with `dpsynth sample`, without --balance or --like, whose "
        "rows cannot be released. To evaluate or audit another table, give the schema, not the run"
    )


def check_replaced(folder: str | Path, output: str | Path) -> None:
    """Refuse to replace a file that dpsynth is not known to have drawn.

    It is known of a file that a record of the run names by its SHA-256, and of a Parquet file whose
    metadata say it.

    Args:
        folder: the run.
        output: the table that will be replaced, or the folder of linked tables; it may be absent.

    Raises:
        InputError: the file, or one in the folder, is another.
        ArtifactError: the records of the run are damaged.
    """
    target = path_of(output)
    files = sorted(target.iterdir()) if target.is_dir() else [target]
    present = [path for path in files if path.is_file() and path.name != NOTE_FILE]
    if not present:
        return
    known = {sha256 for one in _read(path_of(folder)) for sha256 in one.tables.values()}
    for path in present:
        if not (says_synthetic(path) or file_digest(path) in known):
            raise InputError(
                f"{path} is not recorded in {folder} as drawn from this run, or was changed since, "
                "so --force does not replace it; choose another name, or remove it yourself if it "
                "is not needed"
            )
