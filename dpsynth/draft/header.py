"""The names of a table's columns, from the headings of a text file or a sheet; no row is read.

A text file is read byte by byte and only up to the end of the line with the headings, so that
nothing of a private row is ever in the memory of a draft. (A compressed file is decompressed in
blocks by its library.) That is the first line, or the first below a title. Of a workbook, `sheets`
reads as much.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import plain, shown
from dpsynth._util.whole_files import require_plain
from dpsynth.draft.clinical import find
from dpsynth.draft.entry import Entries, Entry
from dpsynth.draft.names import words
from dpsynth.draft.stems import moment_of
from dpsynth.draft.type_words import truth_letters
from dpsynth.errors import InputError
from dpsynth.files import cannot_read
from dpsynth.tables.formats import (
    GZIP,
    format_by,
    suffix_of,
)

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MAX_HEADER = 2**20  # characters
DELIMITERS = (";", "\t", ",", "|")
_BEFORE_QUOTE = (*DELIMITERS, '"', "\ufeff")  # another quote, as in 5" tube, opens nothing
FALLBACK = "cp1252"
"""The encoding of a header that is not UTF-8: what Excel and most clinical systems write."""
_VALUE = re.compile(
    r"[-+]?[0-9]+([.,][0-9]+)?|[0-9]{1,4}([./-])[0-9]{1,2}\2[0-9]{1,4}.*"  # a number, a date
    r"|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?|[0-9]{1,5}-[0-9]"  # a time of day, a LOINC code
    r"|[A-Z][0-9]{2}\.[0-9A-Z-]{1,4}|[A-Z][0-9]{2}[A-Z]{2}[0-9]{2}"  # of ICD-10, and of ATC
    r"|(?i:yes|no|ja|nein|oui|non|weiblich|m(ä|ae)nnlich)"
)
_HEADINGS = frozenset(
    "id nr no key code value wert valeur valor unit einheit test item status type typ name".split()
)


_DATED = re.compile(r"\b[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{1,4}\b")
MAX_TITLES = 10  # lines above the headings
_ONE_TEXT = (
    "the first line has one text alone, as a title above the headings has, and no line with "
    "headings follows"
)
_GIVE_ROW = "if the headings are in line N of the file, add --header-row N"


class NotEncodedError(InputError):
    """The bytes of a header are not of the encoding that was tried."""


class NoHeadingsError(InputError):
    """A text stands alone in the first line, and no headings follow."""


def refuse(source: str, problems: Sequence[str]) -> None:
    """Raise all that is wrong with a document at once.

    Raises:
        InputError: if there is a problem; with several, each in a line.
    """
    if len(problems) == 1:
        raise InputError(f"{source}: {problems[0]}")
    if problems:
        raise InputError(f"{source} has {len(problems)} mistakes:", items=problems)


def read_header(
    path: str | Path,
    delimiter: str | None = None,
    encoding: str | None = None,
    row: int | None = None,
) -> Entries:
    """Read the column names of a text file.

    Args:
        path: a file of a format whose first line is the header.
        delimiter: between the names; None for the sign that parts the header into most names.
        encoding: of the file; None for UTF-8, or Windows-1252 where the header is not UTF-8.
        row: number of the line with the headings, from 1; None for the first that is not a title.

    Raises:
        InputError: the file cannot be read, its first line is empty, or the line cannot be a
            header; it names all reasons.
    """
    path = path_of(path)
    usual = format_by(suffix_of(path)).delimiter or ","
    given = _marked(path) or encoding
    try:
        found = _header(path, delimiter, given or "utf-8", row, usual)
    except NotEncodedError:
        if given is not None:
            raise
        found = _header(path, delimiter, FALLBACK, row, usual)
    number, names, sign, encoding = found
    written = {"delimiter": sign, "encoding": encoding}
    dialect = tuple(
        (key, text)
        for key, text in written.items()
        if (key, text.lower()) not in (("delimiter", ","), ("encoding", "utf-8"))
    )
    return named(f"header of {path.name}", names, dialect, number)


def named(
    source: str,
    names: Sequence[str],
    dialect: tuple[tuple[str, str | int], ...] = (),
    row: int = 1,
) -> Entries:
    """Return the entries of columns of which only the names are known, in a line from 1."""
    columns = (Entry(name, "its name", values=truth_letters(name)) for name in names)
    below = (("header_row", row),) if row > 1 else ()
    return Entries(source, tuple(columns), dialect + below)


def _header(
    path: Path, delimiter: str | None, encoding: str, row: int | None, usual: str
) -> tuple[int, list[str], str, str]:
    """Return the number of the line with the headings, the names, their sign and the encoding."""
    signs: list[str] = []

    def rows() -> Iterator[tuple[int, list[str]]]:
        for line, text in lines:
            signs.append(delimiter or _delimiter(text, usual))
            try:
                yield line, [name.strip() for name in _cells(text, signs[-1])]
            except csv.Error:
                raise InputError(
                    f"{path}: the quotes in the header do not match; correct it"
                ) from None

    with closing(_lines(path, encoding, row or 1)) as lines:
        lone = None if delimiter is None else False
        number, names = find_headings(rows(), str(path), row, lone=lone)
    sign = signs[-1]
    other = next((one for one in DELIMITERS if one in "".join(names) and one != sign), None)
    if len(names) == 1 and other is not None:
        raise InputError(
            f"{path}: the header has no {shown(sign)}, but it has {shown(other)}; add "
            f"--delimiter {shown(other)}"
        )
    problems = header_problems(names)
    strange = delimiter is None and row is None and sign != usual
    if strange and not problems and not any(map(is_known, names)):
        raise InputError(
            f"{path}: no name in the first line is known, so it may be a row, and rows are "
            f"private; if it is a header, add --delimiter {shown(sign)}"
        )
    refuse(str(path), problems)
    return number, names, sign, encoding


def find_headings(
    rows: Iterable[tuple[int, list[str]]],
    place: str,
    row: int | None = None,
    *,
    lone: bool | None = None,
) -> tuple[int, list[str]]:
    """Return the number of the row with the headings, and its cells.

    A title is a text alone, or a few texts above many columns, as merged cells are. Below a title,
    a row without two known names is refused, because it may be a private one. No row is taken
    after that of the headings.

    Args:
        rows: of the table, one after another: the number of each, from 1, and its trimmed cells.
        place: of the table, for messages.
        row: the number that a person gives.
        lone: whether a text alone is a title, and not the header of a table of one column; None
            if that is so for texts of several words.

    Raises:
        InputError: there are no headings.
    """
    number = titles = 0
    for number, cells in rows:
        if row is not None:
            if number == row:
                return number, cells
            continue
        if not any(cells):
            if number > 1 or lone:
                continue
            raise InputError(f"{place} has no header: its first line is empty; {_GIVE_ROW}")
        if not _is_title(cells, lone):
            unknown = sum(map(is_known, cells)) < 2  # below a title, one may be chance
            if titles and (unknown or header_problems(cells)):
                raise NoHeadingsError(
                    f"{place}: the first line looks like a title, and line {number} does not look "
                    "like headings: fewer than two names in it are known, or it has values; "
                    f"{_GIVE_ROW}"
                )
            return (number if titles or not lone else 1), cells  # a fit skips empty rows of sheets
        if len(cells) == 1 and is_known(cells[0]):
            break  # a table of one column: what follows would be its rows
        titles += 1
        if titles == MAX_TITLES:
            break
    if row is not None:
        raise InputError(f"{place} has no line {row}; correct --header-row")
    if not number:
        raise InputError(f"{place} has no header: it is empty")
    raise NoHeadingsError(
        f"{place}: {_ONE_TEXT}; {_GIVE_ROW}; if the table has this one column, add --delimiter ','"
    )


def _is_title(cells: Sequence[str], lone: bool | None) -> bool:
    while lone and cells and not cells[0]:
        cells = cells[1:]  # the table of a sheet may stand to the right
    filled = sum(map(bool, cells))
    if len(cells) == 1:
        return " " in cells[0] if lone is None else lone
    if filled == 1 or (len(cells) > 3 and filled <= len(cells) / 2):
        return True
    if lone is not None or filled > 3 or any(map(_VALUE.fullmatch, cells)):
        return False
    sentence = any(len(cell.split()) > 2 or _DATED.search(cell) for cell in cells)
    return sentence and sum(map(is_known, cells)) < 2  # a title with a comma


def header_problems(names: Sequence[str]) -> list[str]:
    """Return what is wrong with names of columns; no message quotes one, for it may be a cell."""
    values = [number for number, name in enumerate(names, 1) if _VALUE.fullmatch(name)]
    problems = []
    if values:
        which = f"column {values[0]}" if len(values) == 1 else f"columns {numbered(values)}"
        verb = "is" if len(values) == 1 else "are"
        problems.append(
            f"{which} of the first line {verb} a number, a date, a code or an answer, so the line "
            f"looks like a row; add a line with the names of the columns above it, or {_GIVE_ROW}"
        )
    return problems + name_problems(names)


def numbered(numbers: Sequence[int]) -> str:
    """Write some numbers, the first of many."""
    return ", ".join(map(str, numbers[:8])) + (" ..." if len(numbers) > 8 else "")


def is_known(name: str) -> bool:
    """Tell whether a name is that of a clinical variable or of a date, or has a word of headers."""
    match = find(name)
    known = (match is not None and match.is_sure) or moment_of(name) is not None
    return known or not _HEADINGS.isdisjoint(words(name))


def _cells(line: str, sign: str) -> list[str]:
    return next(csv.reader([line], delimiter=sign, strict=True))


def _delimiter(line: str, usual: str) -> str:
    """Return the sign that parts a header into most names; the usual one if none parts it more."""

    def parts(sign: str) -> int:
        try:
            cells = _cells(line, sign)
            return 0 if any('"' in cell for cell in cells) else len(cells)
        except csv.Error:
            return 0

    best = max((usual, *DELIMITERS), key=parts)
    return best if parts(best) > 1 else usual


def name_problems(names: Sequence[str], places: Sequence[str] | None = None) -> list[str]:
    """Return what is wrong with the names of columns.

    Args:
        names: of columns, trimmed.
        places: of the names in the document; None for their number in a header. A message quotes
            no name of a header: a file without one begins with a private row.
    """
    first: dict[str, str] = {}
    problems = []
    for index, name in enumerate(names):
        place = places[index] if places else f"column {index + 1}"
        if not name:
            problems.append(f"{place} has no name; give it one")
        elif not name.isprintable():
            problems.append(f"the name in {place} has a control character; remove it")
        elif name in first:
            which = f", {plain(name)}" if places else ""
            problems.append(
                f"{first[name]} and {place} have the same name{which}; keep one or rename it"
            )
        first.setdefault(name, place)
    return problems


def _marked(path: Path) -> str | None:
    """Return the encoding that a byte order mark at the start names; None without a mark.

    Bytes are read one by one, and no further than they can be a mark.
    """
    start = b""
    try:
        with _opened(path) as file:
            while any(mark.startswith(start) for mark in MARKS):
                if start in MARKS:
                    return MARKS[start]
                byte = file.read(1)
                if not byte:
                    return None
                start += byte
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None
    return None


def _lines(path: Path, encoding: str, first: int) -> Generator[tuple[int, str], None, None]:
    """Yield texts up to a line end outside quotes, each with the number of its first line, from 1.

    No byte is read beyond those that are taken. Above the ``first`` line, quotes enclose nothing.
    """
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise InputError(f"{shown(encoding)} is not an encoding; try utf-8 or cp1252") from None
    letters: list[str] = []
    quoted = ended = False
    start = line = 1
    try:
        with _opened(path) as file:
            while byte := file.read(1):
                for letter in decoder.decode(byte):
                    if letter == "\n" and ended:
                        ended = False
                        continue  # the second half of a line end
                    begins = not letters or letters[-1] in _BEFORE_QUOTE
                    quoted ^= letter == '"' and (quoted or begins) and line >= first
                    ended = letter == "\r"
                    line += letter in "\r\n"
                    if letter in "\r\n" and not quoted:
                        yield start, "".join(letters).lstrip("\ufeff")
                        letters.clear()
                        start = line
                        continue
                    letters.append(letter)
                if len(letters) > MAX_HEADER:
                    raise InputError(f"{path}: the first line is longer than a header can be")
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise NotEncodedError(
            f"{path}: the header is not {encoding}; add --encoding with the right one, such as "
            "--encoding cp1252"
        ) from None
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None
    if letters:
        yield start, "".join(letters).lstrip("\ufeff")


def _opened(path: Path) -> IO[bytes]:
    require_plain(path)
    if path.suffix.lower() == GZIP:
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb", buffering=0)


def _unreadable(path: Path, error: OSError | EOFError) -> InputError:
    if isinstance(error, gzip.BadGzipFile | EOFError):
        return InputError(f"{path} is not a complete gzip file; copy it again")
    return InputError(f"{path} cannot be read: {cannot_read(error)}; correct the path")
