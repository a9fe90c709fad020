"""Replicates as files, and ``replicates.json``, the record of them beside ``run.json``.

A replicate is drawn from a refit, not from the run. So it is not among the samples of the run, and
`release` refuses it as any other table that is not: it serves standard errors, and the certificate
is about the run. A replicate of a run of linked tables is a folder with a file for each table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dpsynth._util.strict_json import file_digest
from dpsynth.errors import InputError
from dpsynth.files import check_vacant
from dpsynth.schema import NOTE_FILE, Schema, published_tables
from dpsynth.synthesis.replicates import Replicates, check_count, check_size, plan_of
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sample_log import CohortSample, Record, Sample, add_record, read_records
from dpsynth.synthesis.sampler import Sampler, default_size
from dpsynth.tables import (
    check_output,
    says_synthetic,
    table_files,
    table_kind,
    write_linked,
    write_table,
)


@dataclass(frozen=True)
class Replicate(Record):
    """One table drawn from a refit. ``file`` is a name without its folder: runs may be shared."""

    log: ClassVar[str] = "replicates"

    file: str
    sha256: str
    rows: int
    seed: int
    number: int
    condition: str | None


@dataclass(frozen=True)
class CohortReplicate(Record):
    """One cohort drawn from a refit; see `CohortSample` for what it has."""

    log: ClassVar[str] = "replicates"

    folder: str
    tables: dict[str, str]
    suffix: str
    patients: int
    seed: int
    number: int


def write_replicates(
    folder: str | Path,
    m: int,
    output: str | Path,
    *,
    size: int | None = None,
    seed: int | None = None,
    where: str | None = None,
    suffix: str = ".csv",
    overwrite: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[Replicate, ...] | tuple[CohortReplicate, ...]:
    """Write m replicates of the run in ``folder``, and record each in its ``replicates.json``.

    Args:
        folder: the run; nothing else is read.
        m: how many, 2 to 100.
        output: such as ``out.parquet``, for ``out-1.parquet`` to ``out-m.parquet``; of linked
            tables such as ``cohort``, for folders ``cohort-1`` to ``cohort-m``.
        size: rows of each, or patients of linked tables; by default as many as the schema declares.
        seed: makes them repeatable; a fresh one if None, recorded.
        where: keep only rows of a single table that satisfy this condition.
        suffix: of the files of linked tables: .csv, .csv.gz or .parquet.
        overwrite: replace files that exist and that `check_replaced` knows.
        progress: called with the fraction done.

    Raises:
        ArtifactError: the run, or its ``replicates.json``, is damaged.
        InputError: a file exists or cannot be written; m, size, seed or condition are wrong; or the
            run was fitted without privacy. All that is known before a refit is checked before it.
    """
    check_count(m)
    run: Run = Run.load(folder)
    linked = not isinstance(run.schema, Schema)
    paths = _folders(output, m) if linked else numbered(output, m)
    if linked and where is not None:
        raise InputError("replicates of linked tables are drawn without a condition")
    size = default_size(run) if size is None else size
    check_size(run, size)
    plan_of(run)  # which a run without privacy does not have
    Sampler.of(run, where=where)  # refuses a condition that cannot be read
    tables = published_tables(run.schema) if linked else {}
    for path in paths:
        if linked:
            check_vacant(path, table_files(tables) if overwrite else ())
        else:
            check_output(path, overwrite=overwrite)
        if overwrite:
            check_replaced(folder, path, linked=linked)
    kind: Any = CohortReplicate if linked else Replicate
    read_records(folder, kind)
    refits, records = Replicates.of(run, seed=seed), []
    for number, path in enumerate(paths, start=1):
        frames = refits.frames(number, size, where=where)
        if linked:
            digests = write_linked(frames, path, tables, kind=suffix, overwrite=overwrite)
            records.append(kind(path.name, digests, suffix, size, refits.seed, number))
        else:
            sha256 = write_table(frames, path, run.schema, overwrite=overwrite)
            records.append(kind(path.name, sha256, size, refits.seed, number, where))
        add_record(Path(folder), records[-1])
        if progress is not None:
            progress(number / m)
    return tuple(records)


def _folders(output: str | Path, m: int) -> list[Path]:
    """Name the folders of m replicates of linked tables."""
    stem = Path(output)
    return [stem.with_name(f"{stem.name}-{number}") for number in range(1, m + 1)]


def numbered(output: str | Path, m: int) -> list[Path]:
    """Name the files of m replicates.

    >>> [path.name for path in numbered("out.csv.gz", 2)]
    ['out-1.csv.gz', 'out-2.csv.gz']

    Raises:
        TableError: the suffix is unknown.
    """
    path = Path(output)
    suffix = table_kind(path)
    stem, end = path.name[: -len(suffix)], path.name[-len(suffix) :]
    return [path.with_name(f"{stem}-{number}{end}") for number in range(1, m + 1)]


def read_replicates(folder: str | Path) -> tuple[Replicate, ...]:
    """List the replicates that were drawn of a run, oldest first.

    Raises:
        ArtifactError: ``replicates.json`` is damaged or of another version.
    """
    return read_records(folder, Replicate)


def check_replaced(folder: str | Path, output: str | Path, *, linked: bool = False) -> None:
    """Refuse to replace a file that dpsynth is not known to have drawn.

    It is known of a file that a record of the run names by its SHA-256, and of a Parquet file whose
    metadata say it.

    Args:
        folder: the run.
        output: the table that will be replaced, or the folder of linked tables; it may be absent.
        linked: whether the run is of linked tables.

    Raises:
        InputError: the file, or one in the folder, is another.
        ArtifactError: a record of the run is damaged.
    """
    target = Path(output)
    files = [target]
    if linked:
        files = sorted(target.iterdir()) if target.is_dir() else []
        files = [path for path in files if path.name != NOTE_FILE]
    present = [path for path in files if path.is_file()]
    if not present:
        return
    known = _recorded(folder, linked=linked)
    for path in present:
        if not (says_synthetic(path) or file_digest(path) in known):
            raise InputError(
                f"{path} is not recorded in {folder} as drawn from this run, or was changed since, "
                "so --force does not replace it; choose another name, or remove it yourself if it "
                "is not needed"
            )


def _recorded(folder: str | Path, *, linked: bool) -> set[str]:
    """Return the SHA-256 of each file that was drawn from a run or from a refit of it."""
    if linked:
        cohorts = [one.tables for one in read_records(folder, CohortSample)]
        cohorts += [one.tables for one in read_records(folder, CohortReplicate)]
        return {sha256 for tables in cohorts for sha256 in tables.values()}
    samples = {one.sha256 for one in read_records(folder, Sample)}
    return samples | {one.sha256 for one in read_records(folder, Replicate)}
