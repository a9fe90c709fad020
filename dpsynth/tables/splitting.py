"""Splitting a private table into train and holdout, by privacy unit.

A generator is judged by people that it never saw. So a split deals out units, not rows: all rows
of a unit go to one side, keys compared as the schema declares, by a coin of the unit's own: one
more patient in the table moves nobody else to the other side. Rows and cells are not touched: a
CSV row is copied as it stands in the file, a Parquet column keeps its type. Columns that the schema
does not name stay in their rows, unread. Tables of other kinds become Parquet files of text, with
the schema's columns. Units on an opt-out list go to neither side.

Both sides hold real rows and are as private as the source.

Splitting linked tables into train and holdout, by patient, over all tables at once.

A key has one side, whatever tables it stands in: its coin is of the key alone, as in a split of one
table, so that one more patient moves nobody else. All rows of a key go to that side, also where no
patient of the table of patients has it. Rows without a key belong to nobody: they go to neither
side, because a fit leaves them out. Nor do rows of patients on an opt-out list, in any table.

Files are copied as in a split of one table (`dpsynth.tables.splitting`). Both sides hold real rows
and are as private as the source.

Copies of a file's rows, dealt out to several files: no cell is read, and none is changed.

A CSV row is copied as it stands in the file; a Parquet column keeps its Arrow type. Rows of a side
that has no file are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, cast, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth._util.seeds import check_seed
from dpsynth.errors import DpsynthWarning, InputError, NoRowsError, TableError
from dpsynth.files import atomic_folder, check_apart, check_vacant, write_private
from dpsynth.privacy import OsEntropy
from dpsynth.schema import AnySchema, Dialect, LinkedSchema, Schema, load_any
from dpsynth.tables.checks import CHUNK, Progress, chunk_rows
from dpsynth.tables.formats import GZIP, files_of
from dpsynth.tables.frames import NamedSource, Source, as_source, without_views
from dpsynth.tables.opt_out import OptOut
from dpsynth.tables.reference import Reference
from dpsynth.tables.rows_where import chosen
from dpsynth.tables.table import (
    linked_sources,
    needed_columns,
    open_columns,
    open_linked,
    open_table,
)
from dpsynth.tables.text_columns import cell_text, texts_of
from dpsynth.tables.text_table import copy_as_text
from dpsynth.tables.unit_keys import NO_KEY, Keys

TRAIN, HOLDOUT, COPY = "train", "holdout", "copy.parquet"
SHARE = 0.2  # of the units, in the holdout
LEFT_OUT, IN_TRAIN, IN_HOLDOUT = range(3)


@overload
def split(
    data: Source,
    schema: Schema,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]: ...


@overload
def split(
    data: Mapping[str, Source],
    schema: LinkedSchema,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]: ...


@overload
def split(
    data: Source | Mapping[str, Source],
    schema: str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[Any, Any]: ...


def split(
    data: Source | Mapping[str, Source],
    schema: AnySchema | str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
) -> tuple[Any, Any]:
    """Split DataFrames by unit into train and holdout; see `split_file` for files.

    Args:
        data: the columns of the schema among others, in a DataFrame of pandas, polars or Arrow;
            read it by `dpsynth.read_table`. Of linked tables, a DataFrame by the name of each.
        schema: a `Schema` or `LinkedSchema`, the path of one, or the name of a shipped one.
        holdout: probability of a unit to go to the holdout, above 0 and below 1.
        seed: makes the split repeatable, for benchmarks: a unit's side follows from its key. No
            noise comes from it.
            Default: the operating system's entropy.
        opt_out: units that go to neither side.

    Returns:
        Train and holdout, as DataFrames of pandas, with the rows, columns and index of the source,
        in its order; of linked tables, a DataFrame for each by its name, and a patient is in one
        side with all her rows. Rows without a key are in neither, unless the schema makes them
        units of their own.

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
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    check_share(holdout, seed)
    if isinstance(schema, LinkedSchema):
        return _split_frames(linked_sources(data, schema), schema, holdout, seed, opt_out)
    table = as_source(cast(Source, data))
    if not isinstance(table, pd.DataFrame):
        raise InputError("a split of a file writes files; use split_file(data, schema, output)")
    sides = _dealt(table, schema, holdout, seed, None, opt_out).sides
    return table[sides == IN_TRAIN], table[sides == IN_HOLDOUT]


def split_file(
    data: str | Path | Mapping[str, Source],
    schema: AnySchema | str | Path,
    output: str | Path,
    *,
    holdout: float = SHARE,
    seed: int | None = None,
    opt_out: OptOut | None = None,
    progress: Progress | None = None,
) -> tuple[Path, Path]:
    """Split a private table by unit into two files, or linked tables into two folders of files.

    CSV, TSV and Parquet give files of the same kind and dialect. Every other kind gives Parquet
    files that hold the schema's columns as text. The file (or, of other kinds, that copy) is read
    twice, in chunks; of each row, one byte is kept, and of each unit its key. If its keys, or their
    order, are others the second time, the split is refused.

    Args:
        data: the table: a file, a part of one, or the URL of a database. Of linked tables, the
            folder of their files, a file or database that has all of them, or a file or URL by the
            name of each.
        schema: as in `split`, and so are ``holdout`` and ``seed``.
        output: the folder to make, for its owner alone (mode 0700): ``train`` and ``holdout``, with
            the suffix of the source, or ``.parquet``. Of linked tables they are folders with a file
            for each.
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
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    check_share(holdout, seed)
    if isinstance(schema, LinkedSchema):
        _write(linked_sources(data, schema), schema, output, holdout, seed, opt_out, progress)
        return Path(output, TRAIN), Path(output, HOLDOUT)
    names = _written(cast(str, data), schema, output, holdout, seed, opt_out, progress or _silent)
    return Path(output, names[IN_TRAIN]), Path(output, names[IN_HOLDOUT])


def leave_out(
    data: str | Path | Mapping[str, Source],
    schema: AnySchema | str | Path,
    output: str | Path,
    opt_out: OptOut,
    *,
    progress: Progress | None = None,
) -> Path:
    """Copy files but for the rows of those who opted out, where nobody is held out.

    Args:
        data: as in `split_file`.
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
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    if isinstance(schema, LinkedSchema):
        _write(linked_sources(data, schema), schema, output, 0.0, None, opt_out, progress)
        return Path(output, TRAIN)
    names = _written(cast(str, data), schema, output, 0.0, None, opt_out, progress or _silent)
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
    suffix, is_copied = reference.copied_as, reference.format.copied
    names = {IN_TRAIN: TRAIN + suffix} | ({IN_HOLDOUT: HOLDOUT + suffix} if holdout else {})
    if is_copied:  # the keys are dealt before a folder is made
        path = Path(data)
        dealt = _dealt(path, schema, holdout, seed, lambda part: progress(part / 2), opt_out)
    with atomic_folder(output, private=True) as folder:
        if not is_copied:
            path = folder / COPY
            copy_as_text(data, schema, path, lambda part: progress(part / 2))
            dealt = _dealt(path, schema, holdout, seed, None, opt_out)
        outputs = {side: folder / name for side, name in names.items()}
        for target in outputs.values():
            write_private(target, b"")  # real rows are for their owner alone, from the first
        deal(path, schema.dialect, dealt, outputs, lambda part: progress((1 + part) / 2))
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


Ints = npt.NDArray[np.int64]
COPY_OF = "copy-of-"  # before the name of a table, while it is read twice


@dataclass(frozen=True)
class _Rows:
    """The keys of one table, as a first reading found them."""

    keys: Keys
    units: Ints
    column: str
    digest: bytes


def _split_frames(
    tables: Mapping[str, NamedSource],
    schema: LinkedSchema,
    holdout: float,
    seed: int | None,
    opt_out: OptOut | None,
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    """Split DataFrames of linked tables by patient; see `split`."""
    frames = {}
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame):
            raise InputError("a split of files writes files; use split_file(data, schema, output)")
        frames[name] = table
    open_linked(frames, schema)  # refuses what is not the schema's
    read = {name: _read(frames[name], own) for name, own in _schemas(schema).items()}
    dealt = _dealt_tables(read, schema, holdout, seed, opt_out)
    train, rest = (
        {name: frames[name][dealt[name].sides == side] for name in schema.table_names}
        for side in (IN_TRAIN, IN_HOLDOUT)
    )
    return train, rest


def _write(
    sources: Mapping[str, NamedSource],
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
    open_linked(sources, schema)  # refuses what is not the schema's
    named = {name: _name(source) for name, source in sources.items()}
    schemas = _schemas(schema)
    steps = 2 * len(schemas)
    with atomic_folder(output, private=True) as folder:
        read, files, copies = {}, {}, {}
        for number, (name, own) in enumerate(schemas.items()):
            reference, told = Reference.of(named[name]), _part(progress, number, steps)
            files[name] = name + reference.copied_as
            if not reference.format.copied:
                copies[name] = folder / f"{COPY_OF}{name}.parquet"
                _copy(named[name], _with_keys(own, schema), copies[name])
            read[name] = _read(copies.get(name, named[name]), own, told)
        dealt = _dealt_tables(read, schema, holdout, seed, opt_out)
        sides = {IN_TRAIN: TRAIN} | ({IN_HOLDOUT: HOLDOUT} if holdout else {})
        for side in sides.values():
            (folder / side).mkdir(mode=0o700)
        for number, (name, own) in enumerate(schemas.items(), len(schemas)):
            outputs = {side: folder / part / files[name] for side, part in sides.items()}
            for target in outputs.values():
                write_private(target, b"")  # real rows are for their owner alone, from the first
            path = copies.get(name) or Path(named[name])
            deal(path, own.dialect, dealt[name], outputs, _part(progress, number, steps))
        for copy in copies.values():
            copy.unlink()


def _name(source: NamedSource) -> str | Path:
    if isinstance(source, pd.DataFrame):
        raise InputError("a split of files takes files; split DataFrames by split")
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


def _read(source: Source, own: Schema, progress: Progress | None = None) -> _Rows:
    """Read the keys of one table; one without rows has none, nor has a row of another table."""
    column = str(own.unit.column)
    keys, rows_read = Keys(own), SeenRows()
    chunks = [np.empty(0, dtype=np.int64)]
    whole, columns = replace(own, rows_where=()), (column, *(name for name, _ in own.rows_where))
    try:
        for chunk in open_columns(source, whole, columns, private=True).chunks(progress):
            units, mine = np.full(len(chunk), NO_KEY), chosen(chunk, own.rows_where)
            units[mine] = keys.units(chunk[mine])
            chunks.append(units)
            rows_read.add(texts_of(chunk[column]).to_pylist())
    except NoRowsError:
        pass
    return _Rows(keys, np.concatenate(chunks), column, rows_read.digest)


def _dealt_tables(
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


Sides = npt.NDArray[np.int8]  # one a row
Outputs = Mapping[int, Path]  # the file of each side


class SeenRows:
    """What was read of one column, row by row: two readings of a file are alike if this is.

    A file is split by the keys of one reading and copied by another, and the place of a row is all
    that they share.
    """

    def __init__(self) -> None:
        """Begin with no row."""
        self._digest = hashlib.blake2b(digest_size=32)

    def add(self, texts: Iterable[str | None]) -> None:
        """Take the column's texts of the next rows, None where a cell is missing."""
        for text in texts:
            cell = b"" if text is None else b"t" + text.encode()
            self._digest.update(len(cell).to_bytes(4, "little") + cell)

    @property
    def digest(self) -> bytes:
        """Of all that was added; where one cell ends and the next begins is part of it."""
        return self._digest.digest()


@dataclass(frozen=True)
class Dealt:
    """Who goes where, as the first reading of a file says.

    Attributes:
        sides: one for each row.
        column: by whose cells they were dealt out.
        digest: of these cells, in the order of the rows.
    """

    sides: Sides
    column: str
    digest: bytes


def deal(path: Path, dialect: Dialect, dealt: Dealt, outputs: Outputs, progress: Progress) -> None:
    """Copy each row of a table to the file of its side.

    Args:
        path: a table of a format whose rows are copied.
        dialect: that the schema declares for text.
        dealt: the side of each row.
        outputs: a file of the same kind for each side; rows of other sides are left out.
        progress: called with the fraction of rows that were copied.

    Raises:
        TableError: the file is damaged, or its rows are not those that were dealt out.
    """
    rows_read = SeenRows()
    reference = Reference.of(path)
    if reference.format.typed:
        _write_parquet(path, dealt, rows_read, outputs, progress)
    else:
        _write_text(reference, dialect, dealt, rows_read, outputs, progress)
    if rows_read.digest != dealt.digest:
        raise _changed(path)


def _write_text(
    reference: Reference,
    dialect: Dialect,
    dealt: Dealt,
    rows_read: SeenRows,
    outputs: Outputs,
    progress: Progress,
) -> None:
    """Copy each row's text to its side."""
    from dpsynth.tables.csv import CsvTable, dialect_of

    path, dialect = cast(Path, reference.path), dialect_of(reference, dialect)
    records = CsvTable(path, (), dialect).records()
    header, names = next(records)
    trimmed = [str(name).strip() for name in names]
    if dealt.column not in trimmed:
        raise _changed(path)
    place, sides = trimmed.index(dealt.column), dealt.sides
    with ExitStack() as stack:
        files = {
            side: stack.enter_context(_text_file(output, dialect.encoding))
            for side, output in outputs.items()
        }
        for file in files.values():
            file.write("\n" * (dialect.header_row - 1) + header)  # in the line that is declared
        copied = 0
        for side, (record, cells) in zip(sides.tolist(), records, strict=False):
            rows_read.add((cell_text(cells[place]),))
            if side in files:
                files[side].write(record)
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
        if path.name.endswith(GZIP):
            raw = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
        yield stack.enter_context(io.TextIOWrapper(raw, encoding=encoding, newline=""))


def _write_parquet(
    path: Path, dealt: Dealt, rows_read: SeenRows, outputs: Outputs, progress: Progress
) -> None:
    """Copy each row to its side; columns keep their Arrow types, but a view of texts is texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dpsynth.tables.parquet import batches_of, cells_of, layout_of

    sides = dealt.sides
    with ExitStack() as stack:
        layout = without_views(layout_of(path))
        if dealt.column not in layout.names:
            raise _changed(path)
        both: list[tuple[int, Any, list[Any]]] = [
            (side, stack.enter_context(pq.ParquetWriter(output, layout, compression="zstd")), [])
            for side, output in outputs.items()
        ]
        start = 0
        step = chunk_rows(len(layout))
        for read in (batch for file in files_of(path) for batch in batches_of(file, step)):
            columns = [c.cast(f.type) for c, f in zip(read.columns, layout, strict=True)]
            batch = pa.RecordBatch.from_arrays(columns, schema=layout)
            here = sides[start : start + batch.num_rows]
            start += batch.num_rows
            if start > len(sides):
                raise _changed(path)
            rows_read.add(texts_of(cells_of(batch.column(dealt.column))).to_pylist())
            for side, writer, batches in both:
                batches.append(batch.filter(pa.array(here == side)))
                if sum(part.num_rows for part in batches) >= CHUNK:
                    writer.write_table(pa.Table.from_batches(batches, layout))
                    batches.clear()
            progress(start / len(sides))
        if start < len(sides):
            raise _changed(path)
        for _, writer, batches in both:
            writer.write_table(pa.Table.from_batches(batches, layout))


def _changed(path: Path) -> TableError:
    return TableError(f"{path} changed while it was split; split it again")
