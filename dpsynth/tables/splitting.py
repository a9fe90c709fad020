"""Splitting a private table into train and holdout, by privacy unit.

A generator is judged by people that it never saw. So a split deals out units, not rows: all rows
of a unit go to one side, keys compared as the schema declares, by a coin of the unit's own: one
more patient in the table moves nobody else to the other side. Rows and cells are not touched: a
CSV row is copied as it stands in the file, a Parquet column keeps its type. Columns that the schema
does not name stay in their rows, unread. Tables of other kinds become Parquet files of text, with
the schema's columns. Units on an opt-out list go to neither side.

Both sides hold real rows and are as private as the source.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.seeds import check_seed
from dpsynth.errors import DpsynthWarning, InputError, TableError
from dpsynth.files import atomic_folder, check_apart, check_vacant, write_private
from dpsynth.privacy import OsEntropy
from dpsynth.schema import Schema
from dpsynth.tables.checks import Progress
from dpsynth.tables.frames import Source, as_source
from dpsynth.tables.opt_out import OptOut
from dpsynth.tables.row_copy import Dealt, SeenRows, Sides, deal
from dpsynth.tables.sources import Reference, dialect_of
from dpsynth.tables.table import open_table
from dpsynth.tables.text_columns import texts_of
from dpsynth.tables.text_table import copy_as_text
from dpsynth.tables.unit_keys import NO_KEY, Keys

TRAIN, HOLDOUT, COPY = "train", "holdout", "copy.parquet"
SHARE = 0.2  # of the units, in the holdout
LEFT_OUT, IN_TRAIN, IN_HOLDOUT = range(3)


def split(
    data: Source,
    schema: Schema | str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split a DataFrame by unit into train and holdout; see `split_file` for files.

    Args:
        data: the columns of the schema among others, in a DataFrame of pandas, polars or Arrow;
            read it by `dpsynth.read_table`.
        schema: a `Schema`, the path of one, or the name of a shipped one.
        holdout: probability of a unit to go to the holdout, above 0 and below 1.
        seed: makes the split repeatable, for benchmarks: a unit's side follows from its key. No
            noise comes from it.
            Default: the operating system's entropy.
        opt_out: units that go to neither side.

    Returns:
        Train and holdout, as DataFrames of pandas, with the rows, columns and index of the source,
        in its order. Rows without a key are in neither, unless the schema makes them units of
        their own.

    Raises:
        TableError: columns are missing or must be text and are not, there are no rows, or none has
            a key.
        InputError: share or seed are out of range, or there are too few units for two sides.

    Warns:
        DpsynthWarning: nobody on the opt-out list is in the table.

    >>> from dpsynth.tables import simulate
    >>> cohort = simulate(200, seed=1)
    >>> train, holdout = split(cohort, "demo", holdout=0.25)
    >>> len(train) + len(holdout) == len(cohort)
    True
    >>> set(train["patient_id"]) & set(holdout["patient_id"])
    set()
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    check_share(holdout, seed)
    data = as_source(data)
    if not isinstance(data, pd.DataFrame):
        raise InputError("a split of a file writes files; use split_file(data, schema, output)")
    sides = _dealt(data, schema, holdout, seed, None, opt_out).sides
    return data[sides == IN_TRAIN], data[sides == IN_HOLDOUT]


def split_file(
    data: str | Path,
    schema: Schema | str | Path,
    output: str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Split a private table by unit into two files.

    CSV, TSV and Parquet give files of the same kind and dialect. Every other kind gives Parquet
    files that hold the schema's columns as text. The file (or, of other kinds, that copy) is read
    twice, in chunks; of each row, one byte is kept, and of each unit its key. If its keys, or their
    order, are others the second time, the split is refused.

    Args:
        data: the table: a file, a part of one, or the URL of a database.
        schema: as in `split`, and so are ``holdout`` and ``seed``.
        output: the folder to make, for its owner alone (mode 0700): ``train`` and ``holdout``, with
            the suffix of the source, or ``.parquet``.
        holdout: as in `split`.
        seed: see `split`.
        opt_out: see `split`.
        progress: called with the fraction of the work that is done.

    Returns:
        The paths of train and holdout.

    Raises:
        TableError: the file is damaged or changed in the meantime, or as in `split`.
        InputError: the folder exists or cannot be written, or as in `split`.

    >>> from dpsynth.tables import simulate
    >>> simulate(200, seed=1).to_csv("extract.csv", index=False)
    >>> [path.name for path in split_file("extract.csv", "demo", "parts")]
    ['train.csv', 'holdout.csv']
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    check_share(holdout, seed)
    names = _written(data, schema, output, holdout, seed, opt_out, progress or _silent)
    return Path(output, names[IN_TRAIN]), Path(output, names[IN_HOLDOUT])


def leave_out(
    data: str | Path,
    schema: Schema | str | Path,
    output: str | Path,
    opt_out: OptOut,
    *,
    progress: Progress | None = None,
) -> Path:
    """Copy a file but for the rows of those who opted out, where nobody is held out.

    Args:
        data: the file.
        schema: as in `split`.
        output: the folder to make, for its owner alone: with ``train`` in it.
        opt_out: the units that are left out.
        progress: called with the fraction of the work that is done.

    Returns:
        The path of train.

    Raises:
        TableError: as in `split_file`.
        InputError: the folder exists or cannot be written, or everybody opted out.

    Warns:
        DpsynthWarning: as in `split`.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    names = _written(data, schema, output, 0.0, None, opt_out, progress or _silent)
    return Path(output, names[IN_TRAIN])


def _written(
    data: str | Path,
    schema: Schema,
    output: str | Path,
    holdout: float,
    seed: int | None,
    opt_out: OptOut | None,
    progress: Progress,
) -> dict[int, str]:
    """Write a folder with one file a side; return their names."""
    check_apart(output)
    check_vacant(output)
    reference = Reference.of(data)
    suffix = reference.copied_as
    names = {IN_TRAIN: TRAIN + suffix} | ({IN_HOLDOUT: HOLDOUT + suffix} if holdout else {})
    if reference.kind == suffix:  # the keys are dealt before a folder is made
        path, dialect = Path(data), dialect_of(reference, schema.dialect)
        dealt = _dealt(path, schema, holdout, seed, lambda part: progress(part / 2), opt_out)
    with atomic_folder(output, private=True) as folder:
        if reference.kind != suffix:
            path, dialect = folder / COPY, schema.dialect
            copy_as_text(data, schema, path, lambda part: progress(part / 2))
            dealt = _dealt(path, schema, holdout, seed, None, opt_out)
        outputs = {side: folder / name for side, name in names.items()}
        for target in outputs.values():
            write_private(target, b"")  # real rows are for their owner alone, from the first
        deal(path, dialect, dealt, outputs, lambda part: progress((1 + part) / 2))
        (folder / COPY).unlink(missing_ok=True)
    return names


def check_share(holdout: float, seed: int | None) -> None:
    """Refuse a share or a seed that is out of range."""
    if not 0 < holdout < 1:
        raise InputError(f"holdout is a share of the units, above 0 and below 1, not {holdout:g}")
    if seed is not None:
        check_seed(seed)


def _dealt(
    source: Path | pd.DataFrame,
    schema: Schema,
    holdout: float,
    seed: int | None,
    progress: Progress | None,
    opt_out: OptOut | None,
) -> Dealt:
    """Read the keys, deal out the units, and return the side of each row."""
    table = open_table(source, schema)
    keys, opened, rows_read = Keys(schema), cast(Any, table), SeenRows()
    column = schema.unit.column or table.columns[0]
    chunks: list[npt.NDArray[np.int64]] = []
    for chunk in replace(opened, columns=(column,)).chunks(progress):
        chunks.append(keys.units(chunk))
        rows_read.add(texts_of(chunk[column]).to_pylist())
    units = keys.own_units(np.concatenate(chunks))
    count = int(units.max()) + 1  # they are numbered without gaps
    if count == 0:
        raise TableError(
            f"no row has a key in column '{schema.unit.column}'; correct the table, the column's "
            "missingValues, or which column has the role unit"
        )
    side_of_unit = np.full(count + 1, IN_TRAIN, dtype=np.int8)
    side_of_unit[:count][coins(keys.texts, count, seed) < holdout] = IN_HOLDOUT
    side_of_unit[NO_KEY] = LEFT_OUT  # the last place
    if opt_out is not None:
        side_of_unit[:count][_gone(opt_out, keys, count)] = LEFT_OUT
    sides_needed = (IN_TRAIN, IN_HOLDOUT) if holdout else (IN_TRAIN,)
    if any(side not in side_of_unit[:count] for side in sides_needed):
        raise InputError(
            f"the table has too few units for a holdout of {holdout:g}: one of the two files would "
            "be empty; choose another share"
            if holdout
            else "every unit of the table is on the opt-out list, so no row is left to fit"
        )
    sides: Sides = side_of_unit[units]
    return Dealt(sides, column, rows_read.digest)


def _gone(opt_out: OptOut, keys: Keys, count: int) -> npt.NDArray[np.bool_]:
    """Tell which units opted out; warn of keys that are in no row.

    Raises:
        InputError: none of them is in the table.
    """
    gone = opt_out.of_units(keys, count)
    check_gone(int(gone.sum()), len(opt_out.keys), stacklevel=5)
    return gone


def check_gone(present: int, listed: int, *, stacklevel: int) -> None:
    """Refuse an opt-out list of whose keys none is present; warn of those that are not."""
    if not present:
        raise InputError(
            "no key on the opt-out list is in the table: write the keys exactly as in the table; "
            "if the list is correct and nobody on it is in the table, leave out the list"
        )
    if present < listed:
        warnings.warn(
            f"{present} of {listed} keys of the opt-out list are in the table, and "
            f"their rows were left out. Keys without a row: {listed - present}. Check "
            "how they are written: keys are compared letter by letter, so a person whose key is "
            "written differently in the table is still in it",
            DpsynthWarning,
            stacklevel=stacklevel + 1,
        )


def coins(keys: Sequence[str], count: int, seed: int | None) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each unit; with a seed, a function of the unit's key alone.

    Units without a key come last among all the ``count``; where there are such, or rows are units,
    a seeded coin goes by the place in the table.
    """
    if seed is None:
        return OsEntropy().uniform(count)
    named = [f"key {text}" for text in keys]
    places = [f"place {place}" for place in range(count - len(named))]
    key = seed.to_bytes(16, "little")
    digests = [
        hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
        for text in named + places
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.float64) / 2.0**64


def _silent(part: float) -> None:
    """Show no progress."""
