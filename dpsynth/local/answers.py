"""The answers of people as text, whatever they are: no answer keeps a person without a report.

The collector sees whether there is a report. So nothing here fails because of what a person
answered: neither a letter that the encoding lacks, nor a long cell, nor a quote without its end.

- **Before any answer is read**, by form alone: the kind of the file, its header, the types of a
  DataFrame's columns. What is wrong there is refused.
- **After that, nothing is refused.** A cell of any bytes becomes a text, and the codec gives each
  text a code. A line with too few fields ends in missing cells; fields beyond the header are left
  out. Where quotes do not match, each line is a row.

A file that a CSV program wrote, quotes included, has a row for each of its records, whatever the
cells hold. Of any other file, there are as many rows as lines, or fewer.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import TableError
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect, Schema
from dpsynth.tables import Progress, check_file, needed_columns, texts_of
from dpsynth.tables.cell_kinds import Held, refusal
from dpsynth.tables.checks import check_names, no_rows

_PLAIN, _ZIPPED = (".csv", ".txt"), (".csv.gz", ".txt.gz")
_GZIP = 31  # bits of zlib's window, for a file of gzip
_HELD = {"i": Held.WHOLE, "u": Held.WHOLE, "f": Held.FLOAT, "b": Held.TRUTH, "M": Held.TIME}
_TEXT = "OUST"  # kinds of dtypes whose cells are taken as text, one by one


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """All rows of a table of answers, in memory; a `dpsynth.tables.Table`.

    Attributes:
        frame: its columns as they are needed; objects are text, None where a cell is missing.
    """

    frame: pd.DataFrame

    def __repr__(self) -> str:
        """Show no answer."""
        return short_repr(self, "answers")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the frame."""
        return tuple(self.frame.columns)

    @property
    def header(self) -> tuple[str, ...]:
        """The same."""
        return self.columns

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield all rows at once."""
        yield self.frame

    @classmethod
    def read(cls, data: str | Path | pd.DataFrame, schema: Schema) -> Answers:
        """Read the columns that a schema needs; fail for the form of the table alone.

        Args:
            data: a CSV file, plain or gzipped, in the schema's dialect; or a DataFrame.
            schema: with the columns that are perturbed, and the key.

        Raises:
            TableError: it is no such file, lacks a column, or has no row at all; a column of the
                DataFrame has a type whose cells could be coded otherwise than their text.
        """
        needed = needed_columns(schema)
        if isinstance(data, pd.DataFrame):
            check_names(list(data.columns), needed, "the DataFrame")
            frame = pd.DataFrame({name: _cells(data[name], schema) for name in needed})
            place = "the DataFrame"
        else:
            place = str(data)
            frame = _read(Path(data), needed, schema.dialect)
        if not len(frame):
            raise no_rows(place)
        return cls(frame.reset_index(drop=True))


def _cells(cells: pd.Series[Any], schema: Schema) -> pd.Series[Any]:
    """Return the cells of a DataFrame's column: of objects their text, whatever they are."""
    dtype: Any = cells.dtype
    column = schema.column(str(cells.name))
    if dtype.kind in _TEXT:
        return pd.Series(texts_of(cells).to_pylist(), dtype=object)
    kind = _HELD.get(dtype.kind, Held.OTHER)
    if kind is Held.FLOAT and dtype.itemsize < 8:
        kind = Held.SINGLE
    if kind is Held.TIME and getattr(dtype, "tz", None) is not None:
        kind = Held.ZONED
    reason = refusal(column, kind, schema)  # follows from types alone, so from no answer
    if reason is not None:
        raise TableError(
            f"the DataFrame: column '{column.name}' holds {kind}, {reason}; read the file with "
            "dtype=str"
        )
    return cells.reset_index(drop=True)


def _read(path: Path, needed: Sequence[str], dialect: Dialect) -> pd.DataFrame:
    """Read a file of any content; its header alone is checked."""
    check_file(path)
    name = path.name.lower()
    if not name.endswith(_PLAIN + _ZIPPED):
        raise TableError(
            f"{path}: the local model reads {', '.join(_PLAIN + _ZIPPED)}, in which every answer "
            "can be read, whatever it holds; export the table as CSV"
        )
    try:
        content = path.read_bytes()
        if name.endswith(_ZIPPED):
            content = zlib.decompressobj(_GZIP).decompress(content)
    except (OSError, zlib.error) as error:
        reason = cannot_read(error) if isinstance(error, OSError) else "it is no gzip file"
        raise TableError(f"{path} cannot be read: {reason}") from None
    encoding = dialect.encoding.lower().replace("_", "-")
    try:
        encoding = codecs.lookup("utf-8-sig" if encoding in ("utf-8", "utf8") else encoding).name
    except LookupError:
        raise TableError(f"dialect.encoding {dialect.encoding!r} is not known") from None
    text = content.decode(encoding, "replace")
    lines = list(io.StringIO(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), newline=""))
    with _cells_of_any_length():
        header, *rows = _rows(lines, dialect) or [[]]
    names = [str(name).strip() for name in header]
    check_names(names, needed, str(path))
    width = len(names)
    if width > 1:
        rows = [row for row in rows if row]  # of one column, a blank line is a missing answer
    places = [names.index(name) for name in needed]
    filled = [[*row, *[None] * (width - len(row))] for row in rows]
    columns = {
        name: pd.Series([row[place] for row in filled], dtype=object)
        for name, place in zip(needed, places, strict=True)
    }
    return pd.DataFrame(columns)


def _rows(lines: Sequence[str], dialect: Dialect) -> list[list[Any]]:
    """Split lines into the cells of rows, from the header on."""
    form: dict[str, Any] = {
        "delimiter": dialect.delimiter,
        "quotechar": dialect.quote or None,
        "quoting": csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    }
    first = next((n for n, line in enumerate(lines) if line.strip("\r\n")), len(lines))
    try:
        return list(csv.reader(lines[first:], strict=True, **form))
    except csv.Error:  # quotes do not match: then a quote in one row must not take in the next
        alone = [line.rstrip("\r\n") for line in lines[first:]]
        return [next(csv.reader([line], strict=False, **form), []) for line in alone]


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let a cell be longer than what the csv module takes by default."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
