"""Splitting linked tables into train and holdout, by patient, over all tables at once.

A key has one side, whatever tables it stands in: its coin is of the key alone, as in a split of one
table, so that one more patient moves nobody else. All rows of a key go to that side, also where no
patient of the table of patients has it. Rows without a key belong to nobody: they go to neither
side, because a fit leaves them out. Nor do rows of patients on an opt-out list, in any table.

Files are copied as in a split of one table (`dpsynth.tables.splitting`). Both sides hold real rows
and are as private as the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.errors import InputError, NoRowsError, TableError
from dpsynth.files import atomic_folder, check_apart, check_vacant, write_private
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.tables.checks import Progress
from dpsynth.tables.frames import Source, as_source, as_sources
from dpsynth.tables.linked.opening import open_linked
from dpsynth.tables.opt_out import OptOut
from dpsynth.tables.row_copy import Dealt, SeenRows, Sides, deal
from dpsynth.tables.sources import Reference, dialect_of
from dpsynth.tables.splitting import (
    HOLDOUT,
    IN_HOLDOUT,
    IN_TRAIN,
    LEFT_OUT,
    SHARE,
    TRAIN,
    check_gone,
    check_share,
    coins,
)
from dpsynth.tables.table import needed_columns, open_columns
from dpsynth.tables.text_columns import texts_of
from dpsynth.tables.text_table import copy_as_text
from dpsynth.tables.unit_keys import Keys

Ints = npt.NDArray[np.int64]
COPY = "copy-of-"  # before the name of a table, while it is read twice


@dataclass(frozen=True)
class _Rows:
    """The keys of one table, as a first reading found them."""

    keys: Keys
    units: Ints
    column: str
    digest: bytes


def split_linked(
    sources: Mapping[str, Source],
    schema: LinkedSchema,
    output: str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Split the files of linked tables by patient into two folders of files.

    Args:
        sources: a file, or the address of a table, by the name of its table; see `linked_files`.
        schema: of the linked tables.
        output: the folder to make, for its owner alone (mode 0700), with the folders ``train`` and
            ``holdout``: in each a file for each table, with the suffix of its source or
            ``.parquet``.
        holdout: probability of a patient to go to the holdout, above 0 and below 1.
        seed: makes the split repeatable, for benchmarks: a patient's side follows from her key. No
            noise comes from it. Default: the operating system's entropy.
        opt_out: patients who go to neither side; read it with the schema of the table of patients.
        progress: called with the fraction of the work that is done.

    Returns:
        The folders of train and holdout.

    Raises:
        TableError: a file is damaged or changed in the meantime, lacks columns, or no patient has
            a key.
        InputError: the folder exists or cannot be written, share or seed are out of range, or
            there are too few patients for two sides.

    Warns:
        DpsynthWarning: somebody on the opt-out list has no row.
    """
    check_share(holdout, seed)
    _write(sources, schema, output, holdout, seed, opt_out, progress)
    return Path(output, TRAIN), Path(output, HOLDOUT)


def leave_out_linked(
    sources: Mapping[str, Source],
    schema: LinkedSchema,
    output: str | Path,
    opt_out: OptOut,
    *,
    progress: Progress | None = None,
) -> Path:
    """Copy the files of linked tables without those who opted out, where nobody is held out.

    Returns:
        The folder of train.

    Raises:
        TableError, InputError: as `split_linked`; or everybody opted out.
    """
    _write(sources, schema, output, 0.0, None, opt_out, progress)
    return Path(output, TRAIN)


def split_frames(
    tables: Mapping[str, Source],
    schema: LinkedSchema,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Split DataFrames of linked tables by patient; see `split_linked`.

    Returns:
        Train and holdout, with the rows, columns and indices of the source.
    """
    check_share(holdout, seed)
    frames = {}
    for name, table in as_sources(tables).items():
        if not isinstance(table, pd.DataFrame):
            raise InputError("a split of files writes files; use split_linked")
        frames[name] = table
    open_linked(frames, schema)  # refuses what is not the schema's
    read = {name: _read(frames[name], own) for name, own in _schemas(schema).items()}
    dealt = _dealt(read, schema, holdout, seed, opt_out)
    train, rest = (
        {name: frames[name][dealt[name].sides == side] for name in schema.table_names}
        for side in (IN_TRAIN, IN_HOLDOUT)
    )
    return train, rest


def _write(
    sources: Mapping[str, Source],
    schema: LinkedSchema,
    output: str | Path,
    holdout: float,
    seed: int | None,
    opt_out: OptOut | None,
    progress: Progress | None,
) -> None:
    """Write the folder of both sides, or of train alone."""
    check_apart(output)
    check_vacant(output)
    sources = as_sources(sources)
    open_linked(sources, schema)  # refuses what is not the schema's
    named = {name: _name(source) for name, source in sources.items()}
    schemas = _schemas(schema)
    steps = 2 * len(schemas)
    with atomic_folder(output, private=True) as folder:
        read, files, copies = {}, {}, {}
        for number, (name, own) in enumerate(schemas.items()):
            reference, told = Reference.of(named[name]), _part(progress, number, steps)
            files[name] = name + reference.copied_as
            if reference.kind != reference.copied_as:
                copies[name] = folder / f"{COPY}{name}.parquet"
                _copy(named[name], _with_keys(own, schema), copies[name])
            read[name] = _read(copies.get(name, named[name]), own, told)
        dealt = _dealt(read, schema, holdout, seed, opt_out)
        sides = {IN_TRAIN: TRAIN} | ({IN_HOLDOUT: HOLDOUT} if holdout else {})
        for side in sides.values():
            (folder / side).mkdir(mode=0o700)
        for number, (name, own) in enumerate(schemas.items(), len(schemas)):
            outputs = {side: folder / part / files[name] for side, part in sides.items()}
            for target in outputs.values():
                write_private(target, b"")  # real rows are for their owner alone, from the first
            path, dialect = copies.get(name), own.dialect
            if path is None:
                path = Path(named[name])
                dialect = dialect_of(Reference.of(path), own.dialect)
            deal(path, dialect, dealt[name], outputs, _part(progress, number, steps))
        for copy in copies.values():
            copy.unlink()


def _name(source: Source) -> str | Path:
    source = as_source(source)
    if isinstance(source, pd.DataFrame):
        raise InputError("a split of files takes files; split DataFrames by split_frames")
    return source


def _schemas(schema: LinkedSchema) -> dict[str, Schema]:
    """Return the schema of each table, whose unit's column is the patient's key."""
    tables = (schema.patients, *(child.schema for child in schema.children))
    return {own.name: own for own in tables}


def _part(progress: Progress | None, number: int, steps: int) -> Progress:
    """Return what tells the progress of one of several steps."""
    if progress is None:
        return _silent
    return lambda share: progress((number + share) / steps)


def _silent(part: float) -> None:
    """Show no progress."""


def _read(source: Source, own: Schema, progress: Progress | None = None) -> _Rows:
    """Read the keys of one table; one without rows has none."""
    column = str(own.unit.column)
    keys, rows_read = Keys(own), SeenRows()
    chunks = [np.empty(0, dtype=np.int64)]
    try:
        for chunk in open_columns(source, own, (column,), private=True).chunks(progress):
            chunks.append(keys.units(chunk))
            rows_read.add(texts_of(chunk[column]).to_pylist())
    except NoRowsError:
        pass
    return _Rows(keys, np.concatenate(chunks), column, rows_read.digest)


def _dealt(
    read: Mapping[str, _Rows],
    schema: LinkedSchema,
    holdout: float,
    seed: int | None,
    opt_out: OptOut | None,
) -> dict[str, Dealt]:
    """Give each key its side, and each row of each table that of its key."""
    texts = list(dict.fromkeys(text for rows in read.values() for text in rows.keys.texts))
    side_of_key = dict.fromkeys(texts, IN_TRAIN)
    for text, coin in zip(texts, coins(texts, len(texts), seed).tolist(), strict=True):
        if coin < holdout:
            side_of_key[text] = IN_HOLDOUT
    if opt_out is not None:
        gone = [text for text in texts if text in opt_out.keys]
        check_gone(len(gone), len(opt_out.keys), stacklevel=5)
        side_of_key |= dict.fromkeys(gone, LEFT_OUT)
    patients = {side_of_key[text] for text in read[schema.patients.name].keys.texts}
    if not read[schema.patients.name].keys.texts:
        raise TableError(
            f"table {schema.patients.name}: no row has a key in column '{schema.key}'; correct the "
            "table, the column's missingValues, or the primaryKey"
        )
    if not patients >= ({IN_TRAIN, IN_HOLDOUT} if holdout else {IN_TRAIN}):
        raise InputError(
            f"table {schema.patients.name} has too few patients for a holdout of {holdout:g}: one "
            "of the two folders would have none; choose another share"
            if holdout
            else "every patient is on the opt-out list, so no row is left to fit"
        )
    dealt = {}
    for name, rows in read.items():
        sides = [*(side_of_key[text] for text in rows.keys.texts), LEFT_OUT]  # the last: NO_KEY
        of_row: Sides = np.array(sides, dtype=np.int8)[rows.units]
        dealt[name] = Dealt(of_row, rows.column, rows.digest)
    return dealt


def _with_keys(own: Schema, schema: LinkedSchema) -> Schema:
    """Return a schema whose copy has all that a fit and a check read: keys, days and values."""
    kept = {own.unit.column, *needed_columns(own)}
    for child in schema.children:
        kept |= set(child.needed) if child.name == own.name else set()
        for link in child.links:
            kept |= set(link.columns) if child.name == own.name else set()
            kept |= set(link.target) if link.table == own.name else set()
    columns = tuple(
        replace(column, roles=frozenset()) if column.name in kept else column
        for column in own.columns
    )
    return replace(own, columns=columns)


def _copy(source: str | Path, own: Schema, target: Path) -> None:
    """Copy a table that is neither text nor Parquet; see `copy_as_text`."""
    try:
        copy_as_text(source, own, target)
    except NoRowsError:
        header = open_columns(source, own, (), private=True).header
        names = [c.name for c in own.columns if c.name in header and "drop" not in c.roles]
        layout = pa.schema([(name, pa.large_string()) for name in names])
        pq.write_table(layout.empty_table(), target)
