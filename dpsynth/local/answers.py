"""The answers of people as text, whatever they are: no answer keeps a person without a report.

The collector sees whether there is a report. So nothing here fails because of what a person
answered: neither a letter that the encoding lacks, nor a long cell, nor a quote without its end.

- **Before any answer is read**, by form alone: the kind of the file, whether a gzip file is whole,
  the encoding, the header. What is wrong there is refused.
- **After that, nothing is refused.** A cell of any bytes becomes a text, and the codec gives each
  text a code. A line with too few fields ends in missing cells; fields beyond the header are left
  out. Of a DataFrame, every cell becomes a text too, or is missing; the type of its column may
  follow from the answers of others, so it is not looked at.
- **No answer changes how another is read.** One line of a file is one row, always: quotes hold
  within their line, and each line is decoded by itself. The text of a cell follows from the cell.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth._util.whole_files import csv_cells_up_to
from dpsynth.errors import TableError
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect, Schema
from dpsynth.tables import Progress, check_file, needed_columns
from dpsynth.tables.checks import check_names, no_rows
from dpsynth.tables.text_columns import cell_text

_PLAIN, _ZIPPED = (".csv", ".txt"), (".csv.gz", ".txt.gz")
_ASCII = bytes(range(128)) + rb"\x31\u0031"  # an encoding may not read escapes in it


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
            TableError: it is no such file, lacks a column, or has no row at all.
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
    """Return the text of each cell of a DataFrame's column, None where it has none.

    The type of the column changes nothing: pandas makes 1.0 of the answer 1 where another person's
    is missing, and both are the text 1.
    """
    truth, sign = schema.column(str(cells.name)).kind.is_truth, schema.dialect.decimal
    try:
        objects = list(cells.to_numpy(dtype=object))
    except Exception:  # a cell that has no Python object: the others still have theirs
        objects = [_object(cells, place) for place in range(len(cells))]
    return pd.Series([_text(cell, sign, truth) for cell in objects], dtype=object)


def _object(cells: pd.Series[Any], place: int) -> Any:
    try:
        return cells.iloc[place]
    except Exception:  # such as a date beyond the year 9999
        return None


def _text(cell: Any, decimal: str, boolean: bool) -> str | None:
    try:
        return cell_text(cell, decimal=decimal, boolean=boolean)
    except Exception:  # such as an object that cannot be written
        return None


def _read(path: Path, needed: Sequence[str], dialect: Dialect) -> pd.DataFrame:
    """Read a file of any content; its header alone is checked."""
    check_file(path)
    name = path.name.lower()
    if not name.endswith(_PLAIN + _ZIPPED):
        raise TableError(
            f"{path}: the local model reads {', '.join(_PLAIN + _ZIPPED)}, in which every answer "
            "can be read, whatever it holds; export the table as CSV"
        )
    codec = _codec(dialect.encoding)
    try:
        content = path.read_bytes()
        if name.endswith(_ZIPPED):
            content = gzip.decompress(content)  # all its members; it fails if the last has no end
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(
            f"{path} cannot be read: it is no gzip file, or is damaged or cut short; compress the "
            "table again"
        ) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None
    with csv_cells_up_to(sys.maxsize):
        header, *rows = _rows(content.removeprefix(codecs.BOM_UTF8), codec, dialect) or [[]]
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


def _codec(name: str) -> str:
    """Return an encoding in which any bytes have a text, and each line has it by itself.

    Raises:
        TableError: in this encoding, an answer could fail to be read or change how others are read.
    """
    try:
        bytes(range(256)).decode(name, "replace")
        plain = _ASCII.decode(name) == _ASCII.decode("ascii")
    except Exception:  # of whatever codec
        plain = False
    if plain:
        codec = codecs.lookup(name).name
        return "utf-8" if codec == "utf-8-sig" else codec
    raise TableError(
        f"dialect.encoding {name!r}: the local model reads encodings in which every byte can be "
        "read and ASCII is part, so that no answer changes how another is read; export the table "
        "as utf-8"
    )


def _rows(content: bytes, codec: str, dialect: Dialect) -> list[list[Any]]:
    """Split a file into the cells of rows, from the header on: each line is a row."""
    form: dict[str, Any] = {
        "delimiter": dialect.delimiter,
        "quotechar": dialect.quote or None,
        "quoting": csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    }
    lines = content.splitlines()  # of bytes: at \n, \r and \r\n alone
    first = next((n for n, line in enumerate(lines) if line), len(lines))
    texts = [
        re.sub("[\0\r\n]", "\N{REPLACEMENT CHARACTER}", line.decode(codec, "replace"))
        for line in lines[first:]
    ]
    return [next(csv.reader([text], strict=False, **form), []) for text in texts]
