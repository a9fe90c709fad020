"""The records of a text file: the one scanner by which every reader and the check tell them apart.

A record has as many fields as the header. One with fewer or more, quotes that match no record, a
header that is repeated, and a byte order mark at the start of a later line are irregular: the rows
around them may be others than those that the source had. A reader refuses a file at the first of
them. The check notes where they are in a `RecordLog`, leaves them out and goes on. Blank lines and
a byte order mark at the start are skipped, and so are lines above the declared one of the header.

What encoding a text file is likely in, where its bytes do not fit the declared one.

Only a message uses this: a table is read in the encoding that its schema declares, or not at all.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from dpsynth._util.formatting import counted
from dpsynth.errors import TableError, printable
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect
from dpsynth.tables.formats import GZIP

MAX_LINE_LENGTH = 2**24  # characters; keeps a file without line ends from filling the memory
GZIP_MAGIC = b"\x1f\x8b"
MARK = "\ufeff"  # byte order mark
SEPARATORS = ";,\t|"  # that tables of text usually have

Row = Sequence[str | None]

SHORT, LONG, QUOTES, HEADERS, JOINED = "short-lines", "long-lines", "quotes", "headers", "joined"
IRREGULAR = (SHORT, LONG, QUOTES, HEADERS, JOINED)


@dataclass
class Lines:
    """Where something stands in a file.

    Attributes:
        count: how many records, or lines.
        first: the line of the first one, from 1; 0 for none.
        last: the line of the last one.
    """

    count: int = 0
    first: int = 0
    last: int = 0

    def add(self, line: int, count: int = 1) -> None:
        """Note one more, further down than those before."""
        self.first, self.last = self.first or line, line
        self.count += count


@dataclass
class RecordLog:
    """What a scanner saw in a file, without any cell; internal, since the figures are exact.

    Attributes:
        key: the place of the column by whose cells lines within a cell are told from records.
        lines: physical lines of the file.
        width: fields of the header.
        records: after the header, blank lines left out, irregular ones counted.
        irregular: those that are left out, by what is wrong with them.
        other_separator: by which separator each short record would be as wide as the header.
        trailing: long records that are too long by one empty field at their end.
        lacking_last: short records that lack the last field alone, where the header has no name
            for it, but a separator.
        begun: lines of short records whose key has the kinds of characters of the key before, as a
            record has that is cut off.
        blank: blank lines between two records.
        several: records with a cell that spans several lines.
        chosen: the numbers of the rows that are those of a table, where it shares its file with
            others; None where all rows are.
        swallowed: lines within a cell that look like records of their own: as many fields as the
            header, and the key's cell of the kinds of characters that the key before it has.
    """

    key: int = 0
    lines: int = 0
    width: int = 0
    records: int = 0
    irregular: dict[str, Lines] = field(
        default_factory=lambda: {kind: Lines() for kind in IRREGULAR}
    )
    other_separator: dict[str, int] = field(default_factory=dict)
    trailing: int = 0
    lacking_last: int = 0
    begun: Lines = field(default_factory=Lines)
    blank: Lines = field(default_factory=Lines)
    pending_blank: list[int] = field(default_factory=list, repr=False)
    several: Lines = field(default_factory=Lines)
    swallowed: Lines = field(default_factory=Lines)
    chosen: array[int] | None = field(default=None, repr=False)
    _rows: list[int] = field(default_factory=list, repr=False)  # from which on ...
    _shifts: list[int] = field(default_factory=list, repr=False)  # ... line minus row is this

    def place(self, row: int, line: int) -> None:
        """Note the line at which a row begins."""
        if not self._shifts or self._shifts[-1] != line - row:
            self._rows.append(row)
            self._shifts.append(line - row)

    def line_of(self, row: int) -> int:
        """Return the line at which a row of the table begins; rows are counted from 0."""
        return self._line_of(row if self.chosen is None else self.chosen[row])

    def _line_of(self, row: int) -> int:
        return row + self._shifts[bisect_right(self._rows, row) - 1]

    @property
    def last_regular(self) -> int:
        """The line of the last record that was read; 0 if none was."""
        return self._line_of(self.rows - 1) if self.rows else 0

    @property
    def rows(self) -> int:
        """How many records were read: those that are not irregular."""
        return self.records - sum(lines.count for lines in self.irregular.values())


def character_kinds(text: str) -> frozenset[str]:
    """Return which kinds of characters a text has.

    >>> sorted(character_kinds("P-007")), sorted(character_kinds("Total"))
    (['-', '9', 'A'], ['A', 'a'])
    """
    return frozenset(map(_kind, text))


def _kind(letter: str) -> str:
    if letter.isdigit():
        return "9"
    if letter.isalpha():
        return "a" if letter.islower() else "A"
    return letter


class RecordScanner:
    """Reads the records of one file, once.

    Attributes:
        line: of the file, that was read last; from 1.
    """

    def __init__(
        self,
        path: Path,
        raw: BinaryIO,
        dialect: Dialect,
        *,
        header: Sequence[str] = (),
        log: RecordLog | None = None,
        noted: list[str] | None = None,
    ) -> None:
        """Take a file, and say what becomes of irregular records.

        Args:
            path: for messages.
            raw: the file.
            dialect: how it is written.
            header: of the file, if this is a part without one.
            log: where irregular records are noted; without it, the first one is an error.
            noted: gets the lines that each row is made of; the caller clears it row by row.
        """
        self.line = 0
        self._above = 0 if header else dialect.header_row - 1  # lines that are passed over
        self._path, self._dialect, self._log, self._noted = path, dialect, log, noted
        self._text = _decoded(path, raw, dialect, marked=not header)
        self._header: Row = header
        self._width = len(header) or -1
        self._before = ""  # the key of the record before
        self._physical = self._lines()
        self._pending: list[str] = []
        self._taken: list[str] = []  # the lines of a record with quotes
        self._start = 0  # the line at which the record begins

    def rows(self, *, cells: bool = True) -> Iterator[Row]:
        """Yield the header, if it is there, and the rows, all as wide as it.

        Args:
            cells: False to check the records only; then regular lines without quotes are not
                cut into cells and not yielded.

        Raises:
            TableError: the bytes, the text or the fields are not those of such a file. The errors
                of the reader are replaced, not chained: they may quote what they stumbled on.
        """
        width, header, log = self._width, self._header, self._log
        plain = log is None and cells
        before, wrong = 0, ""
        try:
            for row in self._parsed(self._physical) if plain else self._sparing(cells=cells):
                if len(row) == width and (row != header or width == 1):
                    if log is not None:
                        self._log_row(log, row)
                    yield row
                elif not row:
                    self._blank()
                elif width < 0:
                    width = self._width = len(row)
                    header = self._header = row
                    if log is not None:
                        log.width = width
                    yield row
                else:
                    self._irregular_row(row, before + 1 if plain else self._start)
                before = self.line
        except csv.Error as error:
            wrong = printable(str(error))  # it may name the declared separator, such as a tab
        except UnicodeError:
            number, likely = misfit(self._text.buffer, self._dialect.encoding)
            raise TableError(
                f"{self._path} line {number}: not valid {self._dialect.encoding}, the declared "
                f"dialect.encoding; the file is likely in {likely}: write dialect: "
                f"{{encoding: {likely}}}"
            ) from None
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of gzip
                raise TableError(f"{self._path} cannot be read: {cannot_read(error)}") from None
            raise TableError(f"{self._path}, after line {self.line}: damaged or cut off") from None
        if wrong:
            self._wrong_quotes(before + 1, wrong)
        if log is not None:
            log.lines = self.line

    def line_of_header(self, needed: Sequence[str]) -> int:
        """Return the line of the first record that names all columns that are needed; 0 if none."""
        before = self._above
        try:
            for row in self._parsed(self._physical):
                if set(needed) <= {name.strip() for name in row}:
                    return before + 1
                before = self.line
        except (TableError, UnicodeError, csv.Error, EOFError, OSError, zlib.error):
            pass  # the names are refused in any case
        return 0

    def _log_row(self, log: RecordLog, row: Row) -> None:
        """Note a regular record, and what its cell of several lines swallowed."""
        start = self._start
        for blank in log.pending_blank:
            log.blank.add(blank)
        log.pending_blank.clear()
        log.place(log.rows, start)
        log.records += 1
        if len(self._taken) > 1:
            log.several.add(start)
            self._log_swallowed(log, start)
        self._before = row[log.key] or ""

    def _log_swallowed(self, log: RecordLog, start: int) -> None:
        """Tell whether each line of a record looks like a record of its own."""
        delimiter, key, kinds = self._dialect.delimiter, log.key, character_kinds(self._before)
        parts = [line.rstrip("\r\n").split(delimiter) for line in self._taken]
        if all(len(part) == log.width and character_kinds(part[key]) == kinds for part in parts):
            log.swallowed.add(start + 1, len(parts) - 1)

    def _blank(self) -> None:
        if self._noted is not None:
            self._noted.clear()
        if self._log is not None:
            self._log.pending_blank.append(self.line)

    def _parsed(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Return the records of some lines; a blank line has no field."""
        quote = self._dialect.quote
        return csv.reader(
            lines,
            delimiter=self._dialect.delimiter,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            strict=True,
        )

    def _sparing(self, *, cells: bool) -> Iterator[list[str]]:
        """Yield what `_parsed` does; but parse only lines with quotes, and go on after wrong ones.

        Args:
            cells: False to leave out regular records without quotes.
        """
        delimiter, quote = self._dialect.delimiter, self._dialect.quote or "\0"  # \0 is in no line
        fields, start, limit = -1, "", csv.field_size_limit()
        parsed = self._parsed(self._fed())
        for line in self._physical:
            self._start = self.line
            if quote in line or len(line) > limit:
                self._pending.append(line)
                self._taken.clear()
                wrong = ""
                try:
                    row = next(parsed)
                except csv.Error as error:
                    wrong = printable(str(error))
                if wrong:
                    self._wrong_quotes(self._start, wrong)
                    continue
            elif line.count(delimiter) + 1 == fields and not line.startswith(start):
                continue
            else:
                self._taken.clear()
                text = line.rstrip("\r\n")
                row = text.split(delimiter) if text else []
            if fields < 0 and row and not cells:
                fields, start = len(row), row[0]
            yield row

    def _fed(self) -> Iterator[str]:
        """Give the parser the line that it is asked about, and those with which it goes on."""
        while True:
            line = self._pending.pop() if self._pending else next(self._physical, None)
            if line is None:
                return
            self._taken.append(line)
            yield line

    def _wrong_quotes(self, start: int, reason: str) -> None:
        where = f"line {start}" if start == self.line else f"lines {start} to {self.line}"
        if "field limit" in reason:
            self._irregular(
                QUOTES,
                start,
                f"{where}: a cell has more than {csv.field_size_limit():,} characters, which no "
                "column of a table has. Either a quote that is opened there is never closed, or "
                "the column holds whole documents: leave it out of the extract",
            )
            return
        self._irregular(
            QUOTES,
            start,
            f"{where}: the quotes do not match the declared dialect ({reason}); is a quote opened "
            "and never closed, or does one stand in the middle of a quoted cell? Within a quoted "
            "cell, write a quote twice",
        )

    def _irregular_row(self, row: Row, start: int) -> None:
        """Note a record of another width than the header, or the header again."""
        log, width = self._log, self._width
        if len(row) == width:
            self._irregular(
                HEADERS,
                start,
                f"line {start}: the header again; if several files were joined, leave out the "
                "header of all but the first",
            )
        elif len(row) > width:
            if log is not None and len(row) == width + 1 and not row[-1]:
                log.trailing += 1
            self._irregular(
                LONG,
                start,
                f"line {start}: {len(row)} fields, the header has {width}; put fields that hold "
                "the separator between quotes",
            )
        else:
            lacks_last = len(row) == width - 1 and not str(self._header[-1]).strip()
            if log is not None and lacks_last:
                log.lacking_last += 1
            if log is not None and len(row) > log.key:
                if character_kinds(row[log.key] or "") == character_kinds(self._before):
                    log.begun.add(start)
            if log is not None and len(row) == 1:
                for sign in SEPARATORS:
                    if sign != self._dialect.delimiter and str(row[0]).count(sign) + 1 == width:
                        log.other_separator[sign] = log.other_separator.get(sign, 0) + 1
            self._irregular(
                SHORT,
                start,
                f"line {start}: {counted(len(row), 'field')}, the header has {width}"
                + (
                    "; the header ends in a separator, so its last column has no name, and this "
                    "record does not: let the source write both alike"
                    if lacks_last
                    else "; a line break in a cell without quotes, a footer, a file that is cut "
                    "off, or cells left out at the end? Put such cells between quotes, remove "
                    "lines that are no records, and write every separator"
                ),
            )

    def _irregular(self, kind: str, line: int, message: str) -> None:
        """Note what is irregular, or refuse the file.

        Raises:
            TableError: nothing notes it.
        """
        if self._log is None:
            raise TableError(f"{self._path} {message}")
        self._log.records += 1
        self._log.irregular[kind].add(line)

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the text from the header's on; refuse those that no table has."""
        text, noted, headed = self._text, self._noted, self._above + 1
        while line := text.readline(MAX_LINE_LENGTH):
            self.line += 1
            if self.line < headed and len(line) < MAX_LINE_LENGTH:
                continue
            if "\0" in line:
                raise TableError(
                    f"{self._path} line {self.line} has a NUL byte, so this is not a text file in "
                    f"{self._dialect.encoding}, the declared dialect.encoding{_wide(line)}"
                )
            if len(line) == MAX_LINE_LENGTH:
                raise TableError(
                    f"{self._path} line {self.line}: longer than {MAX_LINE_LENGTH} characters"
                )
            if MARK in line and line[0] == MARK and self.line == headed > 1:
                line = line.removeprefix(MARK)  # a title was put above a whole file
            elif MARK in line and line[0] == MARK and self.line > 1:
                self._irregular(
                    JOINED,
                    self.line,
                    f"line {self.line} begins with a byte order mark, as a file does: if several "
                    "files were joined, join them without their marks and headers",
                )
                continue
            if noted is not None:
                noted.append(line)
            yield line


def _decoded(path: Path, raw: BinaryIO, dialect: Dialect, *, marked: bool) -> io.TextIOWrapper:
    """Return the text of a plain or gzipped file, as its name says which.

    Args:
        path: its name.
        raw: the file.
        dialect: how it is written.
        marked: whether a byte order mark may come first.
    """
    zipped = cast(io.BufferedReader, raw).peek(2)[:2] == GZIP_MAGIC
    named = path.name.lower().endswith(GZIP)
    if zipped and not named:
        raise TableError(f"{path} is gzipped; call it .csv.gz")
    if named and not zipped:
        raise TableError(f"{path} is not a gzip file; rename it to .csv if it is plain text")
    stream: Any = gzip.GzipFile(fileobj=raw, mode="rb") if zipped else raw
    encoding = dialect.encoding
    if marked and encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"  # the same, but skips a byte order mark
    try:
        return io.TextIOWrapper(stream, encoding=encoding, errors="strict", newline="")
    except LookupError:
        raise TableError(f"dialect.encoding {dialect.encoding!r} is not known") from None


def _wide(line: str) -> str:
    """Name the encoding whose letters have two bytes, if a line with NUL bytes looks like it."""
    if line.startswith(("\xff\xfe", "\xfe\xff")):
        likely = "utf-16"
    elif line.count("\0") * 3 < len(line):
        return ""
    else:
        likely = "utf-16-be" if line.startswith("\0") else "utf-16-le"
    return f"; it is likely in {likely}: write dialect: {{encoding: {likely}}}"


LIKELY = ("utf-8", "cp1252", "latin-1")  # latin-1 takes any bytes
_BLOCK = 2**20  # bytes
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def misfit(raw: Any, declared: str) -> tuple[int, str]:
    """Return the line of the first byte that does not fit, and the likely encoding of the file.

    Args:
        raw: the file, open for reading bytes; it is read from the start.
        declared: an encoding that does not fit.

    The line is counted from 1, as line ends are in the bytes. Nothing that the file holds is given
    out.
    """
    raw.seek(0)
    start = raw.read(4)
    marked = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    if marked is None and b"\0" in start:
        marked = "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    candidates = [name for name in LIKELY if name != codecs.lookup(declared).name]
    likely = marked or next((name for name in candidates if _fits(raw, name)), "utf-16")
    return _line(raw, declared), likely


def _blocks(raw: Any) -> Iterator[bytes]:
    raw.seek(0)
    try:
        while block := raw.read(_BLOCK):
            yield block
    except (EOFError, OSError, zlib.error):  # of a gzip file that is cut off: what it has counts
        return


def _fits(raw: Any, encoding: str) -> bool:
    """Tell whether all bytes of a file are text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in _blocks(raw):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _line(raw: Any, encoding: str) -> int:
    """Return the line of the first byte that is not text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    for block in _blocks(raw):
        waiting, _ = decoder.getstate()
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return lines + (waiting + block)[: error.start].count(b"\n")
        except UnicodeError:
            return lines
        lines += block.count(b"\n")
    return lines
