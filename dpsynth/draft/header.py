"""The names of a table's columns, from the header of its CSV file; no row is read.

The file is read byte by byte and only up to the end of its first line, so that nothing of a private
row is ever in the memory of a draft. (A compressed file is decompressed in blocks by its library.)
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
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
from dpsynth.tables.formats import FIRST_LINE, GZIP, format_by, suffix_of, suffixes

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MAX_HEADER = 2**20  # characters
DELIMITERS = (";", "\t", ",", "|")
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


_TITLE = (
    "the first line has one text alone, as a title above the header has; remove the lines above "
    "the header"
)


class NotEncodedError(InputError):
    """The bytes of a header are not of the encoding that was tried."""


def read_header(
    path: str | Path, delimiter: str | None = None, encoding: str | None = None
) -> Entries:
    """Read the column names of a CSV file.

    Args:
        path: a file of a format whose first line is the header.
        delimiter: between the names; None for the sign that parts the header into most names.
        encoding: of the file; None for UTF-8, or Windows-1252 where the header is not UTF-8.

    Raises:
        InputError: the file cannot be read, its first line is empty, or a name occurs twice.
    """
    path = path_of(path)
    known = suffixes(FIRST_LINE)
    suffix = suffix_of(path, known)
    if not suffix:
        raise InputError(
            f"{path}: only the header of a text file can be read ({', '.join(known)}); give a "
            "data dictionary with --from instead"
        )
    encoding, line = _decoded(path, _marked(path) or encoding)
    if not line.strip():
        raise InputError(f"{path} has no header: its first line is empty")
    usual = format_by(suffix).delimiter or ","
    sign = delimiter or _delimiter(line, usual)
    try:
        names = [name.strip() for name in _cells(line, sign)]
    except csv.Error:
        raise InputError(f"{path}: the quotes in the header do not match; correct it") from None
    other = next((one for one in DELIMITERS if one in line and one != sign), None)
    if len(names) == 1 and other is not None:
        raise InputError(
            f"{path}: the header has no {shown(sign)}, but it has {shown(other)}; add "
            f"--delimiter {shown(other)}"
        )
    if len(names) > 1 and len([name for name in names if name]) == 1:
        raise InputError(f"{path}: {_TITLE}")
    for number, name in enumerate(names, 1):
        if _VALUE.fullmatch(name):
            raise InputError(
                f"{path}: column {number} of the first line is a number, a date, a code or an "
                "answer, so the line looks like a row; add a line with the names of the columns "
                "above it"
            )
    if delimiter is None and sign != usual and not any(map(_is_known, names)):
        raise InputError(
            f"{path}: no name in the first line is known, so it may be a row, and rows are "
            f"private; if it is a header, add --delimiter {shown(sign)}"
        )
    check_names(names, str(path))
    written = {"delimiter": sign, "encoding": encoding}
    dialect = tuple(
        (key, text)
        for key, text in written.items()
        if (key, text.lower()) not in (("delimiter", ","), ("encoding", "utf-8"))
    )
    columns = (Entry(name, "its name", values=truth_letters(name)) for name in names)
    return Entries(f"header of {path.name}", tuple(columns), dialect)


def read_table_header(
    path: str | Path, delimiter: str | None = None, encoding: str | None = None
) -> Entries:
    """Read the column names of a CSV file that is known to be a table; see `read_header`.

    Raises:
        InputError: also if the first line looks like a title above the header.
    """
    entries = read_header(path, delimiter, encoding)
    if len(entries.columns) == 1 and delimiter is None and " " in entries.columns[0].name:
        raise InputError(f"{path}: {_TITLE}; if the table has this one column, add --delimiter ','")
    return entries


def _is_known(name: str) -> bool:
    """Whether a name is that of a clinical variable or of a date, or has a word of headers."""
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


def _decoded(path: Path, encoding: str | None) -> tuple[str, str]:
    """Return the encoding of a file, and its first line."""
    if encoding is not None:
        return encoding, _first_line(path, encoding)
    try:
        return "utf-8", _first_line(path, "utf-8")
    except NotEncodedError:
        return FALLBACK, _first_line(path, FALLBACK)


def check_names(names: list[str], source: str, places: list[str] | None = None) -> None:
    """Refuse names that no schema can have, and a name that occurs twice.

    Args:
        names: of columns, trimmed.
        source: the document, for messages.
        places: of the names in the document; None for their number in a header. A message quotes
            no name of a header: a file without one begins with a private row.

    Raises:
        InputError: it names the first such column and its place.
    """
    first: dict[str, str] = {}
    for index, name in enumerate(names):
        place = places[index] if places else f"column {index + 1}"
        if not name:
            raise InputError(f"{source}: {place} has no name; give it one")
        if not name.isprintable():
            raise InputError(f"{source}: the name in {place} has a control character; remove it")
        if name in first:
            which = f", {plain(name)}" if places else ""
            raise InputError(
                f"{source}: {first[name]} and {place} have the same name{which}; keep one or "
                "rename it"
            )
        first[name] = place


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


def _first_line(path: Path, encoding: str) -> str:
    """Return the text up to the first line end outside quotes, and read no byte beyond it."""
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise InputError(f"{shown(encoding)} is not an encoding; try utf-8 or cp1252") from None
    letters: list[str] = []
    quoted = False
    try:
        with _opened(path) as file:
            while byte := file.read(1):
                for letter in decoder.decode(byte):
                    quoted ^= letter == '"'
                    if letter in "\r\n" and not quoted:
                        return "".join(letters).lstrip("\ufeff")
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
    return "".join(letters).lstrip("\ufeff")


def _opened(path: Path) -> IO[bytes]:
    require_plain(path)
    if path.suffix.lower() == GZIP:
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb", buffering=0)


def _unreadable(path: Path, error: OSError | EOFError) -> InputError:
    if isinstance(error, gzip.BadGzipFile | EOFError):
        return InputError(f"{path} is not a complete gzip file; copy it again")
    return InputError(f"{path} cannot be read: {cannot_read(error)}; correct the path")
