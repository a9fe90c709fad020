"""The data dictionary that REDCap exports: a row for each field, under fixed headings.

Source: the columns of "Download the current Data Dictionary" and of the API's metadata export
(REDCap, Vanderbilt University). Exported tables differ from it in two ways that are kept here: each
choice of a checkbox becomes a column ``field___code``, and dates are written in ISO 8601 whatever
the form shows.
"""

from __future__ import annotations

import re
from pathlib import Path

from dpsynth._util.messages import listed
from dpsynth.draft.entry import CATEGORY, FREE_TEXT, KEY, TEXT, TIME, Entries, Entry
from dpsynth.draft.header import check_names
from dpsynth.draft.names import compact
from dpsynth.draft.sheets import Sheet
from dpsynth.errors import InputError

_HEADINGS = {
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
}
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
        for part, words in _HEADINGS.items()
    }
    if places["name"] < 0 or places["type"] < 0 or places["choices"] < 0:
        raise InputError(
            f"{path} is not a complete REDCap data dictionary: it needs the headings Variable / "
            "Field Name, Field Type and Choices; export it again from REDCap"
        )
    columns: list[Entry] = []
    numbers: list[str] = []
    for number, row in sheet.rows[1:]:
        field = {
            part: row[place] if 0 <= place < len(row) else "" for part, place in places.items()
        }
        if field["type"].lower() not in TYPES:
            raise InputError(
                f"{path}, row {number}: the field type is not one of REDCap's: {listed(TYPES)}"
            )
        entries = _entries(field, f"row {number}", first=not columns)
        columns += entries
        numbers += [f"row {number}"] * len(entries)
    if not columns:
        raise InputError(f"{path}: no field follows the headings")
    check_names([column.name for column in columns], str(path), numbers)
    return Entries(f"REDCap dictionary {path.name}", tuple(columns))


def choices(text: str) -> tuple[tuple[str, str], ...]:
    """Read choices.

    >>> choices("1, Yes | 2, No, thanks")
    (('1', 'Yes'), ('2', 'No, thanks'))
    """
    pairs = [piece.partition(",") for piece in re.split(r"\||\n", text)]
    return tuple((code.strip(), _plain(label)) for code, _, label in pairs if code.strip())


def _entries(field: dict[str, str], place: str, *, first: bool) -> list[Entry]:
    kind, name = field["type"].lower(), field["name"]
    common = {
        "place": place,
        "label": _plain(field["label"])[:200],
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
    return [_entry(field, kind, name, common)]


def _entry(field: dict[str, str], kind: str, name: str, common: dict[str, object]) -> Entry:
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
        return {"kind": "number", **limits}
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
