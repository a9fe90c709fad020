"""Files of statistics programs: SPSS, SAS (its tables, and its transport files) and Stata.

The type of a column is in the file's dictionary, whatever its rows hold. Numbers there are 64-bit
floating-point numbers or whole numbers of 8 to 32 bits; what keeps fewer digits is refused, as in
Parquet. Each cell becomes text, by itself alone.

Missing values of the dictionary (SPSS ranges, ``.a`` to ``.z`` in Stata, ``.A`` to ``.Z`` in SAS)
have their text where the schema declares it: as a reason, a missing value, a category or in a value
map. So a declaration means the same here as for a CSV file. Without one they are missing.

Stata keeps numbers as ``float`` unless it is told otherwise, whatever they are. Such a number is
read as the shortest text that gives it, in columns whose declared values it can tell apart.

Value labels are used where the schema says so (``dialect: {labels: true}``), in columns of type
string and boolean; columns of other types have codes in any case.

Dates and times of SPSS, SAS and Stata: numbers since a start of each program's own.

What a number means follows from the format of its column.

- SPSS: seconds since 1582-10-14, for dates as well
- SAS: days (formats of dates) or seconds (formats of dates and times) since 1960-01-01
- Stata: days (``%td``) or milliseconds (``%tc``) since 1960-01-01
- times of day: seconds since midnight; in Stata, milliseconds whose format shows no date
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from dpsynth.errors import TableError
from dpsynth.schema import Column, Schema
from dpsynth.tables.cell_kinds import Held, check_kinds
from dpsynth.tables.cell_values import numbers
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.formats import Format
from dpsynth.tables.reference import Reference
from dpsynth.tables.text_columns import array_of, cell_text

_HELD = {"string": Held.TEXT, "double": Held.FLOAT, "float": Held.SINGLE} | dict.fromkeys(
    ("int8", "int16", "int32"), Held.WHOLE
)
_BYTES = 8  # of a number of full precision
_TRANSPORT = "read_xport"
_CARD, _MEMBER = 80, b"HEADER RECORD*******MEMB"  # of a transport file, before each table
_LETTER = re.compile(r"[._]?[A-Za-z_]")
_SINGLE = 2.0**-23  # relative; how far apart numbers of 32 bits are

Text = Callable[[Any], str | None]


@dataclass(frozen=True)
class StatisticalTable:
    """A file whose dictionary has been checked."""

    path: Path
    format: Format
    columns: tuple[str, ...]
    header: tuple[str, ...]
    schema: Schema
    formats: Mapping[str, str]
    labels: Mapping[str, Mapping[Any, str]]
    missing: Mapping[str, tuple[tuple[Any, Any], ...]]
    strings: frozenset[str]
    short: frozenset[str]

    @classmethod
    def open(
        cls, reference: Reference, needed: tuple[str, ...], schema: Schema
    ) -> StatisticalTable:
        """Read the file's dictionary, and check names and types.

        Raises:
            TableError: not such a file, or damaged; columns are missing or of a type that is not
                allowed.
        """
        path, format_ = cast(Path, reference.path), reference.format
        facts = _read(path, format_, schema, metadataonly=True)[1]
        header = tuple(facts.column_names)
        check_names(header, needed, str(path))
        formats = {name: str(facts.original_variable_types.get(name) or "") for name in needed}
        labels: dict[str, Mapping[Any, str]] = {}
        if schema.dialect.labels:
            labels = {
                name: facts.variable_value_labels[name]
                for name in needed
                if name in facts.variable_value_labels and _takes_labels(schema, name)
            }
        kinds = {name: _held(facts, name, formats[name], format_.program) for name in needed}
        short = {
            name
            for name, held in kinds.items()
            if held is Held.SINGLE
            and format_.program == "Stata"
            and tells_apart(schema.column(name))
        }
        kinds |= dict.fromkeys(short, Held.FLOAT) | dict.fromkeys(labels, Held.TEXT)
        check_kinds(kinds, schema, str(path), format_.remedy)
        missing = {
            name: tuple((one["lo"], one["hi"]) for one in facts.missing_ranges.get(name, ()))
            for name in needed
        }
        strings = {name for name in needed if _stored(facts, name) is Held.TEXT}
        if format_.reader == _TRANSPORT:
            _check_transport(path, [schema.column(name) for name in needed if name not in strings])
        return cls(
            *(path, format_, needed, header, schema, formats, labels, missing),
            strings=frozenset(strings),
            short=frozenset(short),
        )

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is missing."""
        texts = {name: self._text(self.schema.column(name)) for name in self.columns}
        size, done, width = chunk_rows(len(self.columns)), 0, list(self.columns)
        while True:
            cells, facts = _read(
                self.path, self.format, self.schema, usecols=width, row_offset=done, row_limit=size
            )
            rows = len(cells[width[0]]) if width[0] in cells else 0
            if not rows:
                break
            yield pd.DataFrame(
                {
                    name: pd.Series(list(map(text, cells[name])), dtype=object)
                    for name, text in texts.items()
                }
            )
            done += rows
            if progress is not None and facts.number_rows:
                progress(min(1.0, done / facts.number_rows))
            if rows < size:
                break
        if not done:
            raise no_rows(str(self.path))

    def _text(self, column: Column) -> Text:
        """Return what makes a text of a cell of a column."""
        labels = self.labels.get(column.name, {})
        decimal, program = self.schema.dialect.decimal, self.format.program
        form = self.formats[column.name]
        dated, clocked = is_time(form, program), is_clock(form, program)
        ranges, short = self.missing[column.name], column.name in self.short
        textual = column.name in self.strings
        declared = _Declared.of(column, decimal)

        def text(value: Any) -> str | None:
            if value is None:
                return None
            if isinstance(value, str) and not textual:  # a letter: .a of Stata, .A of SAS
                return declared.one_of(labels.get(value), *_spelt(value))
            if any(type(low) is type(value) and low <= value <= high for low, high in ranges):
                written = value if isinstance(value, str) else cell_text(value, decimal=decimal)
                return declared.one_of(labels.get(value), written)
            if value in labels:
                return labels[value]
            if isinstance(value, str):
                return value
            if short:
                value = _shortest(value)
            if dated:
                return date_text(value, form, program)
            if clocked:
                return clock_text(value, program)
            return cell_text(value, decimal=decimal)

        return text


@dataclass(frozen=True)
class _Declared:
    """The texts to which a schema gives a meaning in a column."""

    texts: frozenset[str]
    folded: Mapping[str, str]
    numbers: Mapping[float, str]
    decimal: str = "."

    @classmethod
    def of(cls, column: Column, decimal: str = ".") -> _Declared:
        """Take them from the declaration of a column."""
        forms = column.forms
        texts = {*column.missing_values, *forms.reason_texts, *(column.categories or ())}
        texts |= {text for text, _ in forms.values}
        if column.kind.is_truth:
            texts |= {*column.true_values, *column.false_values}
        trimmed = sorted(text.strip() for text in texts)
        values = numbers(array_of(trimmed), decimal=decimal).tolist()
        return cls(
            frozenset(trimmed),
            {} if forms.case else {text.casefold(): text for text in trimmed},
            {value: text for value, text in zip(values, trimmed, strict=True) if value == value},
            decimal,
        )

    def one_of(self, *texts: str | None) -> str | None:
        """Return the first of several texts of a cell that is declared; None if none is."""
        for text in texts:
            if text is not None:
                folded = self.folded.get(text.strip().casefold())
                if text.strip() in self.texts or folded is not None:
                    return folded or text.strip()
                value = float(numbers(array_of([text.strip()]), decimal=self.decimal)[0])
                if value in self.numbers:
                    return self.numbers[value]
        return None


def _shortest(value: float) -> float:
    """Return the shortest decimal number that a number of 32 bits stands for.

    >>> _shortest(0.10000000149011612)
    0.1
    """
    return float(str(np.float32(value)))


def _spelt(letter: str) -> tuple[str, ...]:
    """Return how programs write a special missing value of a letter."""
    return tuple(
        sign + word for sign in (".", "") for word in (letter, letter.lower(), letter.upper())
    )


def tells_apart(column: Column) -> bool:
    """Tell whether numbers of 32 bits can tell apart all that is declared of a column of numbers.

    >>> from dataclasses import replace
    >>> age = Column("age", "number", minimum=0.0, maximum=120.0, step=0.1)
    >>> tells_apart(age), tells_apart(replace(age, maximum=1e7))
    (True, False)
    """
    if column.kind.is_truth:
        return True
    if not column.kind.is_number or column.kind.text_only:
        return False
    declared = _Declared.of(column).numbers
    if any(_shortest(value) != value for value in declared):
        return False
    if column.is_categorical:
        return True
    step = 1 if column.kind.whole else column.step
    bounds = (column.minimum, column.maximum)
    if step is None or not all(isinstance(bound, int | float) for bound in bounds):
        return False
    return max(abs(float(bound)) for bound in bounds) * _SINGLE < float(step)  # type: ignore[arg-type]


def _takes_labels(schema: Schema, name: str) -> bool:
    column = schema.column(name)
    words = column.kind.text_only or column.kind.is_truth
    return words and name != schema.unit.column


def _stored(facts: Any, name: str) -> Held:
    """Return how a column is stored, whatever its format shows."""
    return _HELD.get(facts.readstat_variable_types.get(name, ""), Held.OTHER)


def _is_fine(form: str) -> bool:
    """Tell whether a format of Stata shows milliseconds, and not days."""
    return re.match(r"%-?tc", form) is not None


def _held(facts: Any, name: str, form: str, program: str) -> Held:
    """Return what a column holds, by the dictionary."""
    content = _stored(facts, name)
    if content is Held.TEXT:
        return content
    if is_other_time(form, program):
        return Held.OTHER
    if content is Held.SINGLE and (is_clock(form, program) or _is_fine(form)):
        return content  # milliseconds of a day are too many for it
    if is_clock(form, program):
        return Held.CLOCK
    if is_time(form, program):
        return Held.TIME
    if program == "SAS" and facts.variable_storage_width.get(name, _BYTES) < _BYTES:
        return Held.SINGLE
    return content


def _check_transport(path: Path, numbers: Sequence[Column]) -> None:
    """Refuse a transport file with several tables, or with reasons that its reader drops.

    Raises:
        TableError: with what to do.
    """
    for column in numbers:
        if any(_LETTER.fullmatch(text.strip()) for text in column.forms.reason_texts):
            raise TableError(
                f"{path}: column '{column.name}' declares a letter as reason of missing cells, and "
                "the reader of SAS transport files takes all of them for cells without a reason; "
                "give the table as .sas7bdat, or leave the reasons out of the schema"
            )
    with path.open("rb") as file:
        tables = sum(line.startswith(_MEMBER) for line in iter(lambda: file.read(_CARD), b""))
    if tables > 1:
        raise TableError(
            f"{path} has {tables} tables, and only the first would be read; write one table a file"
        )


def _read(path: Path, format_: Format, schema: Schema, **options: Any) -> tuple[Any, Any]:
    """Read a part of a file: lists of plain values, by column; and its dictionary.

    Raises:
        TableError: it is damaged or of another encoding. The reader's text may quote cells.
    """
    import pyreadstat

    declared = schema.dialect.encoding
    if declared.lower() not in ("utf-8", "utf8"):
        options["encoding"] = declared
    if format_.reader != _TRANSPORT:
        options["user_missing"] = True
    reader = getattr(pyreadstat, format_.reader)
    try:
        read: tuple[Any, Any] = reader(
            path,
            output_format="dict",
            disable_datetime_conversion=True,
            **options,
        )
    except Exception as error:
        raise TableError(
            f"{path} is not {format_.noun}, is damaged or encrypted, or has texts in "
            "another encoding than it states; in the last case, declare dialect.encoding "
            f"({type(error).__name__})"
        ) from None
    return read


_DAY = 86_400  # seconds
_STARTS = {
    "SPSS": datetime(1582, 10, 14),
    "SAS": datetime(1960, 1, 1),
    "Stata": datetime(1960, 1, 1),
}
_SPSS_TIMES = re.compile(r"(A|E|J|S)?DATE\d*|DATETIME[\d.]*|YMDHMS[\d.]*|(QYR|MOYR|WKYR)\d*")
_SPSS_CLOCKS = re.compile(r"(D|M)?TIME[\d.]*|(WKDAY|MONTH)\d*")
_SPSS_DAY = re.compile(r"TIME[\d.]*")
_SAS_DAY = re.compile(r"(TIME|TIMEAMPM|HHMM|(E8601|B8601|IS8601)TM)[\d.]*")
_STATA_DAY = re.compile(r"%-?tc[Hh]+([:._]*(MM|mm|SS|ss|s+))*([_.]*(am|AM|a\.m\.|A\.M\.))?")
_STATA_TIMES = re.compile(r"%-?(t?d|tc)")
_SAS_DATES = re.compile(
    r"(DATE|DAY|DDMMYY[BCDNPS]?|MMDDYY[BCDNPS]?|YYMMDD[BCDNPS]?|YYMM[CDNPS]?|MMYY[CDNPS]?|MONYY"
    r"|YYMON|JULIAN|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|(E8601|B8601|IS8601)DA|NLDATE|EURDFDD"
    r"|EURDFDE|MINGUO)[\d.]*"
)
_SAS_TIMES = re.compile(r"(DATETIME|DATEAMPM|MDYAMPM|(E8601|B8601|IS8601)DT|NLDATM|EURDFDT)[\d.]*")
_SAS_CLOCKS = re.compile(r"(TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|(E8601|B8601|IS8601)TM)[\d.]*")


def is_time(form: str, program: str) -> bool:
    """Tell whether a format shows a date, or a date and time.

    >>> is_time("DATE11", "SPSS"), is_time("%td", "Stata"), is_time("F8.2", "SPSS")
    (True, True, False)
    """
    if is_clock(form, program):
        return False
    if program == "Stata":  # %tC, which counts leap seconds, is not read
        return _STATA_TIMES.match(form) is not None
    form = form.upper()
    if program == "SPSS":
        return _SPSS_TIMES.fullmatch(form) is not None
    return _SAS_DATES.fullmatch(form) is not None or _SAS_TIMES.fullmatch(form) is not None


def is_clock(form: str, program: str) -> bool:
    """Tell whether a format shows a time of day.

    >>> is_clock("TIME8", "SPSS"), is_clock("%tcHH:MM", "Stata"), is_clock("%tc", "Stata")
    (True, True, False)
    """
    if program == "Stata":
        return _STATA_DAY.fullmatch(form) is not None
    return (_SPSS_DAY if program == "SPSS" else _SAS_DAY).fullmatch(form.upper()) is not None


def clock_text(value: float, program: str) -> str | None:
    """Return a time of day as text, or the number itself where no clock shows it.

    >>> clock_text(30_600.0, "SPSS"), clock_text(90_000.0, "SAS")
    ('08:30:00', '90000')
    """
    if value != value:
        return None
    micro = round(float(value) * (1_000 if program == "Stata" else 1_000_000))
    if not 0 <= micro < _DAY * 1_000_000:
        return cell_text(value)
    return (datetime.min + timedelta(microseconds=micro)).time().isoformat()


def is_other_time(form: str, program: str) -> bool:
    """Tell whether a format shows what dpsynth reads neither as number, nor date, nor time."""
    if is_clock(form, program):
        return False
    if program == "Stata":
        return re.match(r"%-?t", form) is not None and not is_time(form, program)
    form = form.upper()
    clocks = _SPSS_CLOCKS if program == "SPSS" else _SAS_CLOCKS
    return clocks.fullmatch(form) is not None


def date_text(value: float, form: str, program: str) -> str | None:
    """Return a date in ISO 8601, or the number itself where no calendar has it.

    >>> date_text(13_200_537_600.0, "DATETIME20", "SPSS")
    '2001-02-03'
    """
    if value != value:
        return None
    seconds = float(value)
    if program == "Stata":
        seconds = seconds / 1000 if re.match(r"%-?tc", form) else seconds * _DAY
    elif program == "SAS" and _SAS_TIMES.fullmatch(form.upper()) is None:
        seconds = math.floor(seconds) * _DAY
    try:
        moment = _STARTS[program] + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return cell_text(value)
    if moment.hour or moment.minute or moment.second or moment.microsecond:
        return moment.isoformat(sep=" ")
    return moment.date().isoformat()
