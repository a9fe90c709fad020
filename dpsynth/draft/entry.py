"""What a document says about one column, in dpsynth's words and before anything is proposed."""

from __future__ import annotations

from dataclasses import dataclass

# Kinds of a column. The document may state none, and these say less or more than a column's type.
NUMERIC, CATEGORY, SEVERAL, TEXT, FREE_TEXT, KEY, TIME = (
    *("numeric", "category", "several", "text", "free text", "key", "time"),
)


@dataclass(frozen=True)
class Entry:
    """One column of a dictionary.

    Attributes:
        name: of the column, as in the header of the table.
        place: where the document describes it, such as ``row 12``; empty for a header.
        label: a title for readers.
        kind: a column type of a schema, such as ``integer``, one of the kinds above, or None if
            nothing is said.
        values: codes and their labels; a label may be empty.
        minimum, maximum: as written; a decimal comma is read.
        unit: as written.
        format: of dates, a strptime pattern or ``default``.
        missing: texts that stand for a missing value.
        reasons: why a value is missing, each with its texts.
        identifying: whether the document marks the column as identifying.
        remark: what else a reader of the draft should know.
        table: that it is a column of, where the document says so.
        condition: the rule by which a form shows the field, where the document says so.
        form: of REDCap that has the field.
    """

    name: str
    place: str = ""
    label: str = ""
    kind: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    minimum: str = ""
    maximum: str = ""
    unit: str = ""
    format: str | None = None
    missing: tuple[str, ...] = ()
    reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()
    identifying: bool = False
    remark: str = ""
    table: str = ""
    condition: str = ""
    form: str = ""


@dataclass(frozen=True)
class Entries:
    """All columns that a document describes, and what to call it in the draft.

    Attributes:
        source: for `bounds_basis`, such as ``data dictionary ward.xlsx``.
        columns: in the order of the document.
        dialect: how the table is written, where it is not the usual.
        catalog: name of the SAS format catalogue whose value labels are used; None without one.
        unused: headings of a dictionary that are none of its known parts.
        also: columns that an export may have besides, as the state of each form.
    """

    source: str
    columns: tuple[Entry, ...]
    dialect: tuple[tuple[str, str | int], ...] = ()
    catalog: str | None = None
    also: tuple[Entry, ...] = ()
    unused: tuple[str, ...] = ()
