"""Splitting a private table into train and holdout, by privacy unit.

A generator is judged by people that it never saw. So a split deals out units, not rows: all rows
of a unit go to one side, keys compared as the schema declares, by a coin of the unit's own: one
more patient in the table moves nobody else to the other side. Rows and cells are not touched: a
CSV row is copied as it stands in the file, a Parquet column keeps its type. Columns that the schema
does not name stay in their rows, unread.

Both sides hold real rows and are as private as the source.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.atomic import atomic_folder, check_vacant
from dpsynth.cohort import NO_KEY, Keys
from dpsynth.entropy import OsEntropy
from dpsynth.errors import InputError, TableError
from dpsynth.sampler import check_seed
from dpsynth.schema import Schema
from dpsynth.table import Table, open_table
from dpsynth.table_checks import CHUNK, Progress, chunk_rows, table_kind

TRAIN, HOLDOUT = "train", "holdout"
SHARE = 0.2  # of the units, in the holdout
_LEFT_OUT, _IN_TRAIN, _IN_HOLDOUT = range(3)

Sides = npt.NDArray[np.int8]  # one a row


def split(
    data: pd.DataFrame,
    schema: Schema | str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split a DataFrame by unit into train and holdout; see `split_file` for files.

    Args:
        data: typed or text cells, the columns of the schema among them.
        schema: a `Schema`, the path of one, or the name of a shipped one.
        holdout: probability of a unit to go to the holdout, above 0 and below 1.
        seed: makes the split repeatable, for benchmarks: a unit's side follows from its key. No
            noise comes from it.
            Default: the operating system's entropy.

    Returns:
        Train and holdout, with the rows, columns and index of the source, in its order. Rows
        without a key are in neither, unless the schema makes them units of their own.

    Raises:
        TableError: columns are missing, there are no rows, or none has a key.
        InputError: share or seed are out of range, or there are too few units for two sides.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    _check(holdout, seed)
    sides = _sides(open_table(data, schema), schema, holdout, seed, None)
    return data[sides == _IN_TRAIN], data[sides == _IN_HOLDOUT]


def split_file(
    data: str | Path,
    schema: Schema | str | Path,
    output: str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Split a CSV or Parquet file by unit into two files of the same kind and dialect.

    The file is read twice, in chunks; of each row, one byte is kept, and of each unit its key.

    Args:
        data: the file.
        schema: as in `split`, and so are ``holdout`` and ``seed``.
        output: the folder to make, for its owner alone (mode 0700): ``train`` and ``holdout``, with
            the suffix of the source.
        holdout: as in `split`.
        seed: see `split`.
        progress: called with the fraction of the work that is done.

    Returns:
        The paths of train and holdout.

    Raises:
        TableError: the file is damaged, or as in `split`.
        InputError: the folder exists or cannot be written, or as in `split`.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    _check(holdout, seed)
    check_vacant(output)
    table, path = open_table(data, schema), Path(data)
    told = progress or _silent
    sides = _sides(table, schema, holdout, seed, lambda part: told(part / 2))
    suffix = table_kind(path)
    names = (TRAIN + suffix, HOLDOUT + suffix)
    with atomic_folder(output) as folder:
        folder.chmod(0o700)
        write = _write_parquet if suffix == ".parquet" else _write_csv
        outputs = (folder / names[0], folder / names[1])
        write(path, schema, sides, outputs, lambda part: told((1 + part) / 2))
    return Path(output, names[0]), Path(output, names[1])


def _check(holdout: float, seed: int | None) -> None:
    if not 0 < holdout < 1:
        raise InputError(f"holdout is a share of the units, above 0 and below 1, not {holdout:g}")
    if seed is not None:
        check_seed(seed)


def _sides(
    table: Table, schema: Schema, holdout: float, seed: int | None, progress: Progress | None
) -> Sides:
    """Deal out the units, and return the side of each row."""
    keys, opened = Keys(schema), cast(Any, table)
    keyed = replace(opened, columns=(schema.unit.column or table.columns[0],))
    units = np.concatenate([keys.units(chunk) for chunk in keyed.chunks(progress)])
    units = keys.own_units(units)
    count = int(units.max()) + 1  # they are numbered without gaps
    if count == 0:
        raise TableError(
            f"no row has a key in column '{schema.unit.column}'; correct the table, the column's "
            "missingValues, or which column has the role unit"
        )
    held = _coins(keys, count, seed) < holdout
    if held.all() or not held.any():
        raise InputError(
            f"the table has too few units for a holdout of {holdout:g} of them: one side came out "
            "empty; take another share"
        )
    side_of_unit = np.full(count + 1, _IN_TRAIN, dtype=np.int8)
    side_of_unit[:count][held] = _IN_HOLDOUT
    side_of_unit[NO_KEY] = _LEFT_OUT  # the last place
    return side_of_unit[units]


def _coins(keys: Keys, count: int, seed: int | None) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each unit; with a seed, a function of the unit's key alone.

    Where rows are units, and for rows without a key, a seeded coin goes by the place in the table.
    """
    if seed is None:
        return OsEntropy().uniform(count)
    named = [f"key {text}" for text in keys.texts]
    places = [f"place {place}" for place in range(count - len(named))]
    key = seed.to_bytes(16, "little")
    digests = [
        hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
        for text in named + places
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.float64) / 2.0**64


def _write_csv(
    path: Path, schema: Schema, sides: Sides, outputs: tuple[Path, Path], progress: Progress
) -> None:
    """Copy each row's text to its side."""
    from dpsynth.table_csv import CsvTable

    records = CsvTable(path, (), schema.dialect).records()
    header = next(records)
    with ExitStack() as stack:
        train, holdout = (
            stack.enter_context(_text_file(output, schema.dialect.encoding)) for output in outputs
        )
        train.write(header)
        holdout.write(header)
        copied = 0
        for side, record in zip(sides.tolist(), records, strict=False):
            if side != _LEFT_OUT:
                (train if side == _IN_TRAIN else holdout).write(record)
            copied += 1
            if copied % CHUNK == 0:
                progress(copied / len(sides))
        if copied < len(sides) or next(records, None) is not None:
            raise _changed(path)


@contextmanager
def _text_file(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file, gzipped if its name says so; line ends are written as they come."""
    with ExitStack() as stack:
        raw: Any = stack.enter_context(path.open("wb"))
        if path.name.endswith(".gz"):
            raw = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding=encoding, newline=""))


def _write_parquet(
    path: Path, schema: Schema, sides: Sides, outputs: tuple[Path, Path], progress: Progress
) -> None:
    """Copy each row to its side; all columns keep their Arrow types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        file = stack.enter_context(pq.ParquetFile(path))
        layout = file.schema_arrow
        both: list[tuple[int, Any, list[Any]]] = [
            (side, stack.enter_context(pq.ParquetWriter(output, layout, compression="zstd")), [])
            for side, output in zip((_IN_TRAIN, _IN_HOLDOUT), outputs, strict=True)
        ]
        start = 0
        for batch in _batches(file, path):
            here = sides[start : start + batch.num_rows]
            start += batch.num_rows
            if start > len(sides):
                raise _changed(path)
            for side, writer, held in both:
                held.append(batch.filter(pa.array(here == side)))
                if sum(part.num_rows for part in held) >= CHUNK:
                    writer.write_table(pa.Table.from_batches(held, layout))
                    held.clear()
            progress(start / len(sides))
        if start < len(sides):
            raise _changed(path)
        for _, writer, held in both:
            writer.write_table(pa.Table.from_batches(held, layout))


def _batches(file: Any, path: Path) -> Iterator[Any]:
    """Yield a Parquet file's rows, all columns; the errors of the reader may quote cells."""
    from dpsynth.table_parquet import DAMAGED

    batches = file.iter_batches(batch_size=chunk_rows(len(file.schema_arrow)))
    while True:
        try:
            batch = next(batches, None)
        except DAMAGED:
            raise TableError(f"{path} is damaged, or has a column that cannot be copied") from None
        if batch is None:
            return
        yield batch


def _changed(path: Path) -> TableError:
    return TableError(f"{path} changed while it was split; split it again")


def _silent(part: float) -> None:
    """Show no progress."""
