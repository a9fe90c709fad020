"""The verb `perturb`: read a table at its source, randomise each person's answers, write them.

A report depends on one person's cells and on fresh coins of the operating system alone. Nothing
else of their row is kept: no other column, no key, and no order, since people are shuffled.

What is hidden is each answer, not that a person took part: a table has as many reports as people.
A person who is perturbed again spends epsilon again.

**There is always a report.** The collector sees whether there is one, and delta is 0. So what can
refuse an answer is refused before the first one is read: the columns, the schema (`refuse` as
on_bad or on_unknown), the output. After that, each cell of any bytes has a category
(`Categories`), and a row without a key is a person of its own: nobody is left out for
what they answered. How many people there are is public: as many as there are different keys, and
rows without one.

The answers of people as text, whatever they are: no answer keeps a person without a report.

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
import math
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import type_name
from dpsynth._util.formatting import figure
from dpsynth._util.messages import did_you_mean, listed
from dpsynth._util.short_repr import short_repr
from dpsynth._util.whole_files import csv_cells_up_to
from dpsynth.encoding import Codec, code_ends, coder_of, read_cohort
from dpsynth.errors import InputError, TableError
from dpsynth.files import cannot_read, check_vacant
from dpsynth.privacy import Entropy, OsEntropy, exactly, rounded_down
from dpsynth.schema import Column, Dialect, Schema, load_any
from dpsynth.schema.column import REFUSE
from dpsynth.stats.answer_request import SEEDED
from dpsynth.stats.local import LocalColumn, LocalSettings, Randomiser, Reports, settings_path
from dpsynth.tables import Progress, Source, as_source, check_file, needed_columns
from dpsynth.tables.checks import check_names, no_rows
from dpsynth.tables.formats import FORMATS, GZIP, suffix_of
from dpsynth.tables.text_columns import cell_text

_DIGITS = 15  # of an epsilon: any decimal of so many is a float that is written so


def perturb(
    data: Source,
    schema: Schema | str | Path,
    columns: Sequence[str],
    *,
    epsilon: float,
    cuts: Mapping[str, Sequence[float]] | None = None,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
) -> Reports:
    """Perturb columns of a table whose rows are people, for the local model.

    The epsilon is split equally over the columns. Each is perturbed by randomised response or by
    unary encoding, whichever has the lower variance for its number of categories.

    Args:
        data: the path of a table, or a DataFrame of pandas, polars or Arrow.
        schema: a schema, its path, or the name of a shipped one; each person has one row.
        columns: names of columns with declared categories, or of numbers in ``cuts``.
        epsilon: what each person spends on all columns together; there is no default.
        cuts: public numbers at which a column of numbers is cut.
        output: CSV file to write; the settings are written beside it as JSON.
        entropy: source of the coins; the operating system's if None. Another one is stamped.

    Returns:
        The reports with their settings; `dpsynth.estimate` makes counts of them.

    Raises:
        InputError: a column, a cut, the epsilon or the output is wrong, a column refuses cells, or
            a person may have several rows. No answer has been read then.
        TableError: there is no table with these columns, or it has no row. No answer decides that.

    Example:
        >>> from dpsynth.tables import simulate
        >>> rows = simulate(500, seed=1).drop_duplicates("patient_id")
        >>> schema = one_row_each(Schema.load("demo"))
        >>> perturb(rows, schema, ["sex"], epsilon=1.0).people == len(rows)
        True
    """
    data = as_source(data)
    if not isinstance(schema, Schema):
        loaded = load_any(schema)
        if not isinstance(loaded, Schema):
            raise InputError("the local model needs one table; give the schema of a single one")
        schema = loaded
    schema.require_complete()
    chosen = _require_columns(schema, columns, cuts or {})
    _require_one_row(schema)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a finite number above 0")
    each = rounded_down(exactly(epsilon) / len(chosen), _DIGITS)
    part = _reduced(schema, chosen)
    codec = Codec(part)
    categories = [Categories.of(codec, name, (cuts or {}).get(name)) for name in columns]
    public = tuple(
        LocalColumn(one.column, one.labels, _randomiser(one, each)) for one in categories
    )
    if output is not None:
        check_vacant(output)
        check_vacant(settings_path(output))
    source = entropy or OsEntropy()
    cohort = read_cohort(AnswerRows.read(data, part), codec, part, source)
    reports = []
    for one, column in zip(categories, public, strict=True):
        codes = cohort.codes[:, 0, codec.names.index(one.column)]
        reports.append(column.randomiser.reports(one.place_of[codes], source))
    stamps = () if type(source) is OsEntropy else (SEEDED,)
    found = Reports(LocalSettings(schema.name, float(epsilon), public, stamps), tuple(reports))
    if output is not None:
        found.write(output)
    return found


def one_row_each(schema: Schema) -> Schema:
    """Return a schema by which one row of each unit counts, chosen at random."""
    return replace(schema, unit=replace(schema.unit, max_rows=1, keep="random"))


def _randomiser(one: Categories, epsilon: float) -> Randomiser:
    try:
        return Randomiser.chosen(len(one.labels), epsilon)
    except InputError as error:
        raise InputError(f"column '{one.column}': {error}") from None


def _require_columns(
    schema: Schema, names: Sequence[str], cuts: Mapping[str, Sequence[float]]
) -> list[Column]:
    """Return the columns, if each can be perturbed by its own cell alone."""
    by_name = {column.name: column for column in schema.modelled}
    if not names:
        raise InputError("name at least one column to perturb")
    if len(set(names)) < len(names):
        raise InputError("a column is named twice; each is perturbed once")
    if not isinstance(cuts, Mapping):
        raise InputError(f"{type_name(cuts)} was given in place of cuts by the name of a column")
    if not {*cuts} <= {*names}:
        raise InputError(
            f"there are cuts of a column that is not perturbed; those are {listed(names)}"
        )
    for name in names:
        if name not in by_name:
            meant = did_you_mean(name, by_name)
            raise InputError(f"the schema has no column '{name}' to perturb{meant}")
        column = by_name[name]
        if column.is_computed or column.interval is not None or column.status_of is not None:
            raise InputError(f"column '{name}' follows from other columns; perturb those")
        if any(other.status_of == name for other in schema.columns):
            raise InputError(f"column '{name}' has a status beside it and cannot be perturbed yet")
        if column.several is not None:
            raise InputError(
                f"a cell of column '{name}' has several codes; the local model has one"
            )
        if column.discovers:
            raise InputError(f"the codes of column '{name}' are not declared; list them first")
        if REFUSE in (column.on_bad, column.on_unknown):
            raise InputError(
                f"column '{name}' declares `refuse`: then the answer decides whether there is a "
                "report, and the collector sees that; send such answers to missing, a bound or a "
                "category by on_bad and on_unknown"
            )
    return [by_name[name] for name in names]


def _require_one_row(schema: Schema) -> None:
    """Refuse a schema in which a person may have several rows: epsilon would be that of a row."""
    if schema.unit.max_rows > 1 or schema.unit.max_units > 1:
        raise InputError(
            "in the local model each person has one row, and this schema allows several: epsilon "
            "would be that of a row; make a table of one row each, and declare max_rows 1"
        )


def _reduced(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Return the schema of these columns and the key alone: a cell is coded by itself."""
    plain = {
        column.name: replace(column, floor=None, present_if=None, calendar=()) for column in columns
    }
    beside = {schema.unit.column}
    beside |= {column.forms.unit.column for column in columns if column.forms.unit is not None}
    kept = tuple(
        plain.get(column.name, column)
        if column.name in plain
        else replace(
            column, roles=column.roles | {"unit" if column.name == schema.unit.column else "drop"}
        )
        for column in schema.columns
        if column.name in plain or column.name in beside
    )
    unit = replace(schema.unit, keep="random", missing_key="own")  # nobody is left out
    return replace(schema, columns=kept, rules=(), unit=unit)


_TEXT = FORMATS["csv"].suffixes
_ASCII = bytes(range(128)) + rb"\x31\u0031"  # an encoding may not read escapes in it


@dataclass(frozen=True, eq=False, repr=False)
class AnswerRows:
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
    def read(cls, data: str | Path | pd.DataFrame, schema: Schema) -> AnswerRows:
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
    suffix = suffix_of(path, _TEXT)
    if not suffix:
        raise TableError(
            f"{path}: the local model reads {', '.join(_TEXT)}, in which every answer "
            "can be read, whatever it holds; export the table as CSV"
        )
    codec = _codec(dialect.encoding)
    try:
        content = path.read_bytes()
        if suffix.endswith(GZIP):
            content = gzip.decompress(content)  # all its members; it fails if the last has no end
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TableError(
            f"{path} cannot be read: it is no gzip file, or is damaged or cut short; compress the "
            "table again"
        ) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None
    with csv_cells_up_to(sys.maxsize):
        header, *rows = _rows(content, codec, dialect) or [[]]
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
    lines = content.splitlines()[dialect.header_row - 1 :]  # of bytes: at \n, \r and \r\n alone
    lines[:1] = [line.removeprefix(codecs.BOM_UTF8) for line in lines[:1]]
    first = next((n for n, line in enumerate(lines) if line), len(lines))
    texts = [
        re.sub("[\0\r\n]", "\N{REPLACEMENT CHARACTER}", line.decode(codec, "replace"))
        for line in lines[first:]
    ]
    return [next(csv.reader([text], strict=False, **form), []) for text in texts]


MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column.

    Attributes:
        column: its name.
        labels: of the categories, in order; missing is the last one, where a cell may be missing.
        place_of: the place of the category of each code, ``[codes]``.
    """

    column: str
    labels: tuple[str, ...]
    place_of: npt.NDArray[np.int64]

    @classmethod
    def of(cls, codec: Codec, name: str, cuts: Sequence[float] | None) -> Self:
        """Sort a column's codes into categories.

        Args:
            codec: of a schema.
            name: of a coded column.
            cuts: numbers at which a number is cut, rising; None for a column with categories.

        Raises:
            InputError: the column has no categories, or cannot be cut so.

        Example:
            >>> from dpsynth.schema import Schema
            >>> Categories.of(Codec(Schema.load("cardio")), "height", [150, 170]).labels
            ('below 150', '150 to below 170', '170 or more')
        """
        place = codec.names.index(name)
        column, ordered, size = codec.schema.modelled[place], codec.cells[place], codec.sizes[place]
        decimal = codec.schema.dialect.decimal
        if cuts is None:
            if ordered:
                raise InputError(
                    f"column '{name}' has no list of categories; a number can be cut: --cuts "
                    f"{name}=10,20"
                )
            codes = np.arange(size)
            texts = coder_of(column, decimal).decode(codes, np.random.default_rng(0))
            labels = [MISSING if pd.isna(text) else str(text) for text in texts]
            return cls(name, _distinct(name, labels), codes)
        if not ordered or not column.kind.is_number:
            raise InputError(f"column '{name}' has no numbers to cut; name it without cuts")
        starts = code_ends(column, decimal)[0].to_numpy(np.float64, na_value=np.nan)[:ordered]
        edges = np.asarray(cuts, dtype=np.float64)
        rising = len(edges) and np.isfinite(edges).all() and (np.diff(edges) > 0).all()
        if not rising or edges[0] <= starts[0] or edges[-1] > starts[-1]:
            raise InputError(
                f"the cuts of column '{name}' must be rising numbers above {figure(starts[0])} and "
                f"up to {figure(starts[-1])}: they say where a category begins"
            )
        nearest = np.abs(starts[:, None] - edges).argmin(axis=0)
        split = ~np.isclose(starts[nearest], edges, rtol=1e-9, atol=0)
        if split.any():
            first = int(split.argmax())
            raise InputError(
                f"{figure(edges[first])} is no place to cut column '{name}', whose numbers are "
                f"read in steps; the nearest place is {starts[nearest[first]]:g}"
            )
        words = [figure(edge) for edge in edges]
        middle = [f"{low} to below {high}" for low, high in pairwise(words)]
        labels = [f"below {words[0]}", *middle, f"{words[-1]} or more"]
        places = np.searchsorted(nearest, np.arange(ordered), side="right").astype(np.int64)
        others = size - ordered
        every = np.append(places, np.full(others, len(labels)))
        return cls(name, _distinct(name, [*labels, *[MISSING][:others]]), every)


def _distinct(name: str, labels: list[str]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise InputError(f"two categories of column '{name}' are written alike; rename one")
    return tuple(labels)
