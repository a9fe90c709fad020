"""Data dictionaries: a row for each column of the table, under headings in nine languages.

The data dictionary that REDCap exports: a row for each field, under fixed headings.

Source: the columns of "Download the current Data Dictionary" and of the API's metadata export
(REDCap, Vanderbilt University). Exported tables differ from it in two ways that are kept here: each
choice of a checkbox becomes a column ``field___code``, and dates are written in ISO 8601 whatever
the form shows.

Workbooks (.xlsx) with a data dictionary, read as values only and as data from a stranger.

A workbook is a ZIP file of XML. Before it is opened, its size when unpacked is limited (a "bomb" of
a few kilobytes can unpack to gigabytes), and macros and entity declarations are refused. It is
opened read-only and without links to other files. A formula is refused, not computed.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from dpsynth._util.messages import listed, plain, shown
from dpsynth._util.whole_files import read_whole
from dpsynth.draft.entry import CATEGORY, FREE_TEXT, KEY, TEXT, TIME, Entries, Entry
from dpsynth.draft.header import name_problems, refuse
from dpsynth.draft.names import compact, spellings
from dpsynth.draft.stems import stems_by_language, stems_of
from dpsynth.draft.type_words import date_format, has_clock, kind_of, truth_letters
from dpsynth.draft.units import common_unit
from dpsynth.draft.value_lists import YES, is_missing, read_range, read_values
from dpsynth.errors import InputError

_PARTS = tuple(stems_of("heading"))
SEARCHED = 20  # rows above which headings are looked for: titles stand above them
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_UNIT = re.compile(r"[\[(]([^\])]{1,20})[\])]\s*$")


def read_dictionary(sheets: list[Sheet], path: Path, *, several: bool = False) -> Entries:
    """Read the first sheet that has a heading for the names of columns.

    Args:
        sheets: of the document.
        path: of the document, for messages.
        several: whether sheets may describe a table each; then the entries name their sheet.

    Raises:
        InputError: no sheet has one, no row follows it, or two rows describe one column.
    """
    described = list(_described(sheets))
    if several and _are_tables(described):
        parts = [
            (sheet, _entries(sheet, start, places, path)) for sheet, start, places in described
        ]
        columns = tuple(
            replace(entry, table=re.sub(r"[^A-Za-z0-9._-]", "-", sheet.title))
            for sheet, entries in parts
            for entry in entries.columns
        )
        unused = dict.fromkeys(one for _, entries in parts for one in entries.unused)
        return Entries(f"data dictionary {path.name}", columns, unused=tuple(unused))
    for sheet, start, places in described:
        return _entries(sheet, start, places, path)
    for sheet in sheets:  # a list of names and nothing else
        if sheet.rows and "name" in (places := headings(sheet.rows[0][1])):
            return _entries(sheet, 0, places, path)
    first_row = [cell for sheet in sheets[:1] for cell in (sheet.rows[0][1] if sheet.rows else ())]
    raise InputError(
        f"{path}: no heading for the names of the columns, such as Variable, Name, Feldname or "
        f"Nom; the first row has: {listed(first_row) or 'nothing'}"
    )


def _described(sheets: list[Sheet]) -> Iterator[tuple[Sheet, int, dict[str, int]]]:
    """Yield the sheets with headings for names and something else, and where these stand."""
    for sheet in sheets:
        for start, (_, row) in enumerate(sheet.rows[:SEARCHED]):
            places = headings(row, [below for _, below in sheet.rows[start + 1 :]])
            if "name" in places and len(places) > 1:
                yield sheet, start, places
                break


def _are_tables(described: Sequence[tuple[Sheet, int, dict[str, int]]]) -> bool:
    """Tell whether each sheet describes a table of its own, whose tables share a key.

    A name stands in all of them, each has names that no other one has, and none is there twice. So
    a list of codes beside a dictionary is no table, and a column that names tables comes first.
    """
    if len(described) < 2 or any(
        "table" in places or not sheet.title for sheet, _, places in described
    ):
        return False
    names = []
    for sheet, start, places in described:
        own = [_cell(row, places, "name").casefold() for _, row in sheet.rows[start + 1 :]]
        names.append([name for name in own if name])
    sets = [set(own) for own in names]
    if any(len(own) != len(one) for own, one in zip(names, sets, strict=True)):
        return False
    apart = all(own - set().union(*(other for other in sets if other is not own)) for own in sets)
    return apart and bool(set.intersection(*sets))


@cache
def _ranks() -> dict[str, tuple[str, int]]:
    """Return what a heading means, and how sure a sign it is, by its compact spellings.

    The table lists the words of a language in this order: "variable" is a surer sign of a name than
    "name".
    """
    ranks: dict[str, tuple[str, int]] = {}
    for language in stems_by_language("heading"):
        for meaning, texts in language.items():
            for rank, text in enumerate(texts):
                for spelling in spellings(text):
                    before = ranks.get(spelling)
                    if before is None or rank < before[1]:
                        ranks[spelling] = meaning, rank
    return ranks


def headings(row: Row, rows: Sequence[Row] = ()) -> dict[str, int]:
    """Return which cell of a row stands above which part of a dictionary.

    Where several headings mean the names or the types of columns, the cells below them decide: a
    name occurs once and has no blanks, and a type is a known word.

    Args:
        row: with the headings.
        rows: below it.

    >>> headings(("Nr", "Feldname", "Bezeichnung", "Einheit"))
    {'name': 1, 'label': 2, 'unit': 3}
    >>> headings(("Type", "Column", "Data type"), [("Main", "age", "integer")])
    {'name': 1, 'type': 2}
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for index, cell in enumerate(row):
        for text in (cell, _BRACKETS.sub("", cell)):
            known = [_ranks()[one] for one in spellings(text) if one in _ranks()]
            if known:
                meaning, rank = known[0]
                found.setdefault(meaning, []).append((rank, index))
                break
    scores = {"name": _named_share, "type": _typed_share}
    places: dict[str, int] = {}
    for meaning in _PARTS:
        choices = found.get(meaning, [])
        if len(choices) > 1 and rows and meaning in scores:
            shares = {
                index: scores[meaning]([row[index] for row in rows if index < len(row)])
                for _, index in choices
            }
            choices = sorted(choices, key=lambda one: (-shares[one[1]], one[0]))
        elif choices:
            choices = sorted(choices)
        if choices:
            places[meaning] = choices[0][1]
        if meaning == "name" and choices[1:] and "label" not in found:
            found["label"] = choices[1:]  # the names for readers
    return places


def _named_share(cells: Sequence[str]) -> float:
    """Return how many of some cells look like names of columns: without blanks, and once."""
    filled = [cell for cell in cells if cell]
    return sum(" " not in cell for cell in {*filled}) / max(1, len(filled))


def _typed_share(cells: Sequence[str]) -> float:
    """Return how many of some cells are words for types."""
    filled = [cell for cell in cells if cell]
    return sum(kind_of(cell) is not None for cell in filled) / max(1, len(filled))


def _entries(sheet: Sheet, start: int, places: dict[str, int], path: Path) -> Entries:
    rows = sheet.rows[start + 1 :]
    named = [(number, row) for number, row in rows if _cell(row, places, "name")]
    if not named:
        raise InputError(f"{path}: no row follows the headings in row {sheet.rows[start][0]}")
    problems = []
    for table in dict.fromkeys(_cell(row, places, "table") for _, row in named):
        own = [(n, row) for n, row in named if _cell(row, places, "table") == table]
        names = [_cell(row, places, "name") for _, row in own]
        problems += name_problems(names, [f"row {number}" for number, _ in own])
    refuse(str(path), problems)
    columns = tuple(_entry(row, places, f"row {number}") for number, row in named)
    row, used = sheet.rows[start][1], {*places.values()}
    unused = tuple(cell for place, cell in enumerate(row) if cell and place not in used)
    return Entries(f"data dictionary {path.name}", columns, unused=unused)


def _cell(row: Row, places: dict[str, int], meaning: str) -> str:
    place = places.get(meaning)
    return row[place] if place is not None and place < len(row) else ""


def _entry(row: Row, places: dict[str, int], place: str) -> Entry:
    cells = {meaning: _cell(row, places, meaning) for meaning in _PARTS}
    kind = kind_of(cells["type"])
    if kind in (None, "date") and any(map(has_clock, (cells["format"], cells["type"]))):
        kind = "datetime"
    low, high = cells["minimum"], cells["maximum"]
    values: tuple[tuple[str, str], ...] = ()
    for text in (cells["range"], cells["values"]):
        limits = read_range(text)
        if limits is not None and not (low or high):
            low, high = limits
        elif limits is None:
            values = values or read_values(text)
    if kind in (None, "boolean") and not (values or low or high):
        texts = (cells["type"], cells["label"], cells["name"])
        values = next((found for found in map(truth_letters, texts) if found), ())
    missing = [code for code, label in values if is_missing(label or code) and kind != CATEGORY]
    if kind not in (None, "boolean", CATEGORY, "string", "text") and len(missing) == len(values):
        values = ()  # -9 = unknown, beside numbers
    else:
        missing = []
    missing += [code for code, _ in read_values(cells["missing"])] or _single(cells["missing"])
    unit = cells["unit"]
    if (
        not unit
        and (match := _UNIT.search(cells["label"]))
        and kind in ("integer", "number", "numeric")
        and _may_be_unit(match[1])
    ):
        unit = match[1]
    remark = ""
    if cells["type"] and kind is None:
        remark = f"the dictionary's type is {' '.join(cells['type'].split())[:40]}"
    return Entry(
        name=cells["name"],
        place=place,
        label=" ".join(cells["label"].split()),
        kind=kind,
        values=() if kind == KEY else values,
        minimum=low,
        maximum=high,
        unit="" if unit in ("-", "–", "/", "n/a") else unit,
        format=date_format(cells["format"])
        or date_format(cells["type"])
        or date_format(cells["values"]),
        missing=tuple(dict.fromkeys(missing)),
        identifying=compact(cells["identifying"]) in YES,
        remark=remark,
        table=cells["table"],
    )


def _may_be_unit(text: str) -> bool:
    """Tell whether what a label has in brackets can be a unit, and is no remark.

    >>> [_may_be_unit(one) for one in ("mmol/l", "mm Hg", "10^9 /l", "ver unidad_edad", "see age")]
    [True, True, True, False, False]
    """
    parts = text.split()
    return len(parts) == 1 or common_unit(text) != "" or any(c in "/^%°0123456789" for c in text)


def _single(text: str) -> list[str]:
    return [text] if text and text not in ("-", "–") else []


_REDCAP_HEADINGS = {
    "name": ("variablefieldname", "fieldname"),
    "type": ("fieldtype",),
    "label": ("fieldlabel",),
    "choices": ("choicescalculationsorsliderlabels", "selectchoicesorcalculations"),
    "note": ("fieldnote",),
    "validation": (
        "textvalidationtypeorshowslidernumber",
        "textvalidationtype",
    ),
    "minimum": ("textvalidationmin",),
    "maximum": ("textvalidationmax",),
    "identifier": ("identifier",),
    "form": ("formname",),
    "branching": ("branchinglogicshowfieldonlyif", "branchinglogic"),
}
_STATES = (("0", "Incomplete"), ("1", "Unverified"), ("2", "Complete"))
_REFERENCE = re.compile(
    r"\[([a-z][a-z0-9_]*)(?:\((-?\w+)\))?\]\s*(<>|!=|<=|>=|=|<|>)\s*['\"]([^'\"]*)['\"]"
)
_SURE = ("variablefieldname", "selectchoicesorcalculations", "choicescalculationsorsliderlabels")
_TAGS = re.compile(r"<[^<>]*>")
TYPES = (
    *("text", "notes", "dropdown", "radio", "checkbox", "yesno", "truefalse", "calc", "slider"),
    *("file", "descriptive", "sql"),
)


def is_redcap(sheet: Sheet) -> bool:
    """Tell by its headings whether a sheet is a REDCap data dictionary."""
    return bool(sheet.rows) and any(compact(cell) in _SURE for cell in sheet.rows[0][1])


def read_redcap(sheet: Sheet, path: Path) -> Entries:
    """Read a REDCap data dictionary.

    Raises:
        InputError: a heading is missing, a field type is not one of REDCap's, or a name repeats.
    """
    cells = [compact(cell) for cell in sheet.rows[0][1]]
    places = {
        part: next((cells.index(word) for word in words if word in cells), -1)
        for part, words in _REDCAP_HEADINGS.items()
    }
    if places["name"] < 0 or places["type"] < 0 or places["choices"] < 0:
        raise InputError(
            f"{path} is not a complete REDCap data dictionary: it needs the headings Variable / "
            "Field Name, Field Type and Choices; export it again from REDCap"
        )
    columns: list[Entry] = []
    forms: dict[str, None] = {}
    numbers, strange = list[str](), list[str]()
    for number, row in sheet.rows[1:]:
        field = {
            part: row[place] if 0 <= place < len(row) else "" for part, place in places.items()
        }
        if field["type"].lower() not in TYPES:
            strange.append(f"row {number}: the field type is not one of REDCap's: {listed(TYPES)}")
            continue
        forms[field["form"]] = None
        entries = _redcap_entries(field, f"row {number}", first=not columns)
        columns += entries
        numbers += [f"row {number}"] * len(entries)
    if not columns and not strange:
        raise InputError(f"{path}: no field follows the headings")
    refuse(str(path), strange + name_problems([column.name for column in columns], numbers))
    known = {column.name: column for column in columns}
    columns = [replace(one, condition=condition(one.condition, known)) for one in columns]
    states = tuple(
        Entry(f"{form}_complete", f"form {form}", kind=CATEGORY, values=_STATES, form=form)
        for form in forms
        if form
    )
    return Entries(f"REDCap dictionary {path.name}", tuple(columns), also=states)


def condition(text: str, known: Mapping[str, Entry]) -> str:
    """Return REDCap's branching logic as a rule; nothing if it is more than comparisons.

    >>> sex = Entry("sex", kind=CATEGORY, values=(("1", "male"), ("2", "female")))
    >>> risk = Entry("risk___1", kind="boolean")
    >>> condition("[sex] = '2' and [risk(1)] <> '1'", {"sex": sex, "risk___1": risk})
    'sex == 2 and risk___1 != true'
    >>> condition("datediff([a], [b]) > 3", {})
    ''
    """

    def compared(match: re.Match[str]) -> str:
        name = match[1] + (f"___{_suffix(match[2])}" if match[2] else "")
        sign = {"=": "==", "<>": "!="}.get(match[3], match[3])
        entry = known.get(name)
        if entry is None or not match[4]:
            return "?"  # also: whether a field is filled in
        if entry.kind == "boolean":
            return f"{name} {sign} {'true' if match[4] == '1' else 'false'}"
        codes = [code for code, _ in entry.values] or [match[4]]
        whole = all(re.fullmatch(r"-?[0-9]+", code) for code in codes)
        return f"{name} {sign} {match[4] if whole else repr(match[4])}"

    rule = " ".join(_REFERENCE.sub(compared, text).split())
    return "" if re.search(r"[?\[\]\"]|\w\(", rule) else rule


def choices(text: str) -> tuple[tuple[str, str], ...]:
    """Read choices.

    >>> choices("1, Yes | 2, No, thanks")
    (('1', 'Yes'), ('2', 'No, thanks'))
    """
    pairs = [piece.partition(",") for piece in re.split(r"\||\n", text)]
    return tuple((code.strip(), _plain(label)) for code, _, label in pairs if code.strip())


def _redcap_entries(field: dict[str, str], place: str, *, first: bool) -> list[Entry]:
    kind, name = field["type"].lower(), field["name"]
    common = {
        "place": place,
        "label": _plain(field["label"])[:200],
        "condition": field["branching"],
        "form": field["form"],
        "identifying": field["identifier"].lower() in ("y", "yes", "1"),
    }
    if first:
        remark = "REDCap's record ID; unit if it stands for a patient"
        return [Entry(name, kind=KEY, remark=remark, **common)]  # type: ignore[arg-type]
    if kind == "descriptive":
        return []
    if kind == "checkbox":
        words = ((code, label) for code, label in choices(field["choices"]))
        values = (("1", "checked"), ("0", "not checked"))
        return [
            Entry(
                f"{name}___{_suffix(code)}",
                kind="boolean",
                values=values,
                **(common | {"label": f"{common['label']}: {label}"}),  # type: ignore[arg-type]
            )
            for code, label in words
        ]
    return [_redcap_entry(field, kind, name, common)]


def _redcap_entry(field: dict[str, str], kind: str, name: str, common: dict[str, object]) -> Entry:
    facts: dict[str, object] = {}
    if kind in ("dropdown", "radio", "sql"):
        listed_values = choices(field["choices"]) if kind != "sql" else ()
        facts = {"kind": CATEGORY, "values": listed_values}
    elif kind == "yesno":
        facts = {"kind": "boolean", "values": (("1", "yes"), ("0", "no"))}
    elif kind == "truefalse":
        facts = {"kind": "boolean", "values": (("1", "true"), ("0", "false"))}
    elif kind in ("notes", "file"):
        facts = {"kind": FREE_TEXT}
    elif kind == "slider":
        low, high = field["minimum"] or "0", field["maximum"] or "100"
        facts = {"kind": "integer", "minimum": low, "maximum": high}
    elif kind == "calc":
        facts = {"kind": "number", "remark": "calculated by REDCap; other columns decide it"}
    else:
        facts = _validated(field)
    return Entry(name, **(common | facts))  # type: ignore[arg-type]


def _validated(field: dict[str, str]) -> dict[str, object]:
    """Read a text field by its validation; without one it is free text unless its name is known."""
    validation = field["validation"].lower()
    limits = {"minimum": field["minimum"], "maximum": field["maximum"]}
    if validation == "integer":
        return {"kind": "integer", **limits}
    if validation.startswith("number"):
        comma = "comma_decimal" in validation
        remark = 'written with a decimal comma: add decimal: "," to the dialect' if comma else ""
        return {"kind": "number", "remark": remark, **limits}
    if validation.startswith(("date_", "datetime_")):
        kind = "datetime" if validation.startswith("datetime") else "date"
        return {"kind": kind, "format": "default", **limits}
    if validation in ("time", "time_hh_mm_ss"):
        return {"kind": TIME, "format": "default", **limits}
    if validation in ("email", "phone", "ssn", "mrn_10d", "mrn_generic") or "phone" in validation:
        return {"kind": FREE_TEXT, "identifying": True}
    if validation:
        return {"kind": TEXT, "remark": f"REDCap validates it as {validation[:40]}"}
    return {"kind": TEXT, "remark": "a text field without validation; drop it if it is free text"}


def _suffix(code: str) -> str:
    """Return a code as REDCap writes it into the name of a checkbox's column.

    >>> _suffix("-1"), _suffix("A")
    ('_1', 'a')
    """
    return re.sub(r"[^a-z0-9_]", "_", code.lower())


def _plain(text: str) -> str:
    """Return a label without HTML and line ends."""
    return " ".join(_TAGS.sub(" ", text).split())


MAX_FILE = 16 * 2**20  # bytes
MAX_ROWS = 20_000
MAX_COLUMNS = 500
MAX_CELL = 32_767  # characters, as in a workbook
Row = tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """The rows of a document that are not blank, each with its number in the file.

    Attributes:
        title: the name of the sheet; empty for a CSV file.
        rows: number, from 1, and trimmed cells.
    """

    title: str
    rows: tuple[tuple[int, Row], ...]


def read_bytes(path: Path) -> bytes:
    """Read a document whole.

    Raises:
        InputError: it cannot be read, is empty, or is larger than 16 MB.
    """
    content = read_whole(path, largest=MAX_FILE, never="a data dictionary is not")
    if not content.strip():
        raise InputError(f"{path} is empty; give a data dictionary")
    return content


def read_text_sheets(path: Path, delimiter: str | None, encoding: str) -> list[Sheet]:
    """Read a CSV file: one sheet for each delimiter that it may have, the likeliest first.

    A dictionary is public, so its delimiter may be tried; for a private table it is declared.

    Raises:
        InputError: it is not text in this encoding, or not a CSV file.
    """
    content = read_bytes(path)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    try:
        codecs.lookup(encoding)
        text = content.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except LookupError:
        raise InputError(f"{shown(encoding)} is not an encoding; try utf-8 or cp1252") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}, line {line}: this is not {encoding}; add --encoding, such as --encoding "
            "cp1252"
        ) from None
    if "\0" in text:
        raise InputError(f"{path} is not a text file; save it as CSV or .xlsx")
    signs = [delimiter] if delimiter else sorted(",;\t|", key=text.count, reverse=True)
    return [_text_sheet(path, text, sign) for sign in signs if sign in text or delimiter] or [
        _text_sheet(path, text, ",")
    ]


def _text_sheet(path: Path, text: str, delimiter: str) -> Sheet:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, Row]] = []
    try:
        for row in reader:
            add_row(rows, reader.line_num, row, str(path))
    except csv.Error:
        place = f"{path}, line {reader.line_num}"
        raise InputError(f"{place}: this is not CSV; check its quotes") from None
    return Sheet("", tuple(rows))


def add_row(rows: list[tuple[int, Row]], number: int, cells: list[str], source: str) -> None:
    """Add a row unless it is blank.

    Raises:
        InputError: a document has more rows, columns or text than a dictionary.
    """
    trimmed = [cell.strip() for cell in cells]
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    if not trimmed:
        return
    if len(rows) >= MAX_ROWS or len(trimmed) > MAX_COLUMNS:
        raise InputError(
            f"{source} has more than {MAX_ROWS} rows or {MAX_COLUMNS} columns; this is a table and "
            "not a data dictionary (one row for each column of the table)"
        )
    if any(len(cell) > MAX_CELL for cell in trimmed):
        raise InputError(f"{source}, row {number}: a cell is longer than {MAX_CELL} characters")
    rows.append((number, tuple(trimmed)))


MAX_PARTS = 2000
MAX_UNPACKED = 64 * 2**20  # bytes, of all parts together


def read_workbook(path: Path, title: str | None = None) -> list[Sheet]:
    """Read the sheets of a workbook.

    Args:
        path: a file that ends in ``.xlsx``.
        title: the only sheet to read; None for all.

    Raises:
        InputError: it is not a workbook, has macros or formulas, or is too large.
    """
    content = read_bytes(path)
    _check_parts(path, content)
    import openpyxl

    try:
        book = openpyxl.load_workbook(BytesIO(content), read_only=True, keep_links=False)
        titles = [sheet.title for sheet in book.worksheets]
        if title is not None and title not in titles:
            raise InputError(f"{path} has no sheet {shown(title)}; it has {listed(titles)}")
        return [_sheet(path, sheet) for sheet in book.worksheets if title in (None, sheet.title)]
    except InputError:
        raise
    except Exception:  # whatever a library does with a damaged file
        raise InputError(
            f"{path} cannot be read as a workbook; open it in a spreadsheet and save it again as "
            ".xlsx or .csv"
        ) from None


def _check_parts(path: Path, content: bytes) -> None:
    """Look at the ZIP file before a library unpacks it.

    Raises:
        InputError: it is not a workbook, or more than one with a dictionary can be.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            parts = archive.infolist()
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED:
                raise InputError(
                    f"{path} unpacks to more than {MAX_UNPACKED // 2**20} MB; a data dictionary "
                    "does not. Save its sheet as CSV"
                )
            if any(part.filename.lower().endswith(("vbaproject.bin", ".exe")) for part in parts):
                raise InputError(f"{path} has macros; save it as .xlsx without them, or as .csv")
            for part in parts:
                if b"<!ENTITY" in archive.read(part).replace(b"\0", b""):
                    raise InputError(f"{path} declares XML entities, which a workbook does not")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        locked = isinstance(error, RuntimeError) or content.startswith(b"\xd0\xcf\x11\xe0")
        why = "is locked by a password or in an old format (.xls)" if locked else "is damaged"
        raise InputError(f"{path} {why}; save it as .xlsx without a password") from None
    except (ValueError, zipfile.LargeZipFile, MemoryError):
        raise InputError(f"{path} is damaged; save it again as .xlsx") from None


def _sheet(path: Path, sheet: Any) -> Sheet:
    rows: list[tuple[int, Row]] = []
    source = f"{path}, sheet {plain(sheet.title)}"
    for number, row in enumerate(sheet.iter_rows(), 1):
        for cell in row:
            if cell.data_type == "f":
                raise InputError(
                    f"{source}, cell {cell.coordinate}: a formula is not computed; paste its value"
                )
        add_row(rows, number, [_text(cell.value) for cell in row], source)
        if number > 10 * 20_000:
            raise InputError(f"{source} has too many blank rows; save it as CSV")
    return Sheet(sheet.title, tuple(rows))


def _text(value: object) -> str:
    """Write a cell as a person reads it: 3 for 3.0, dates in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        midnight = value == datetime(value.year, value.month, value.day)
        return value.date().isoformat() if midnight else value.isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)
