"""The draft of one field: a document for the schema reader, and comments for the person who checks.

Everything that a fit would use is a proposal or a ``TODO``. A proposal has a ``bounds_basis`` that
begins with ``proposal:``; the schema reader counts it as a gap until a person rewrites it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dpsynth._util.field_reader import PROPOSAL, TODO
from dpsynth.draft.clinical import CODES, DROP, Match, Range, Variable, find, fits
from dpsynth.draft.clinical import KEY as KEY_TYPE
from dpsynth.draft.entry import CATEGORY, FREE_TEXT, KEY, NUMERIC, SEVERAL, TEXT, TIME, Entry
from dpsynth.draft.stems import moment_of
from dpsynth.draft.type_words import code_system
from dpsynth.draft.units import common_unit
from dpsynth.draft.value_lists import read_number, truth_words
from dpsynth.schema.types import TYPES

_TYPES = tuple(TYPES)
_SPELLED = ("yearmonth", "duration")
_NUMBERS = ("integer", "number", "year")
_FORMAT = 'how it is written, such as "%d.%m.%Y", or default for 2015-12-31'
_FORMAT_OF_TIMES = 'such as "%d.%m.%Y %H:%M", or default for 2015-12-31T08:30:00'
_ARTICLE = {
    "patient key": "the key of a patient (or unit, if each value is one patient to protect)",
    "encounter key": "the number of a stay",
    "specimen number": "the number of a specimen",
    "identity number": "a number that identifies a person",
    "name": "the name of a person",
    "address": "an address or a town",
    "contact": "a way to reach a person",
    "staff": "a member of the staff",
    "free text": "free text",
    "date of birth": "a date of birth",
}
_PERIOD = "period of the extract"
_NAMED_CODES = "as the document names the codes; confirm"
_CODES = "such as {system: ICD-9-CM, rollup: chapter}, or an enum"
_LISTED = "list those that you need in constraints.enum, or declare a list of your own"
_VERSION = "which national version? such as {system: ICD-10-GM, rollup: chapter}, or an enum"


@dataclass
class Proposal:
    """One field of a draft.

    Attributes:
        document: the field as the schema reader takes it.
        comments: for a key of the document (``dpsynth.role``), what stands behind it in the file.
        notes: lines above the field.
        variable: the clinical variable that the column was taken for.
        question: what the column may be, where that identifies a person and its name is not sure.
    """

    document: dict[str, Any]
    comments: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    variable: Variable | None = None
    question: str = ""

    @property
    def is_open(self) -> bool:
        """Whether a part is still TODO, so that a person has to look it up."""
        return _has_todo(self.document)

    @property
    def is_dropped(self) -> bool:
        """Whether the column is left out of the synthetic table."""
        return bool(self.document.get("dpsynth", {}).get("role") == "drop")


def propose(entry: Entry, source: str) -> Proposal:
    """Propose a field for one column.

    >>> propose(Entry("hba1c", unit="%"), "header").document["constraints"]
    {'minimum': 3, 'maximum': 20}
    """
    matches = [one for text in (entry.name, entry.label) if text and (one := find(text))]
    fitting = sorted(
        (one for one in matches if fits(entry, one.variable)), key=lambda one: not one.is_sure
    )
    match = fitting[0] if fitting else None
    draft = Proposal({"name": entry.name, "type": TODO})
    identifying = [one for one in matches if one.variable.type in (DROP, KEY_TYPE)]
    if match is None and identifying and entry.kind != "boolean":
        draft.question = identifying[0].variable.name  # but the document has values or bounds
    if match is not None and not match.is_sure:
        draft.question, match = match.variable.name, None
    if entry.label:
        draft.document["title"] = entry.label
    if match is not None:
        draft.variable = match.variable
    if entry.remark:
        draft.notes.append(entry.remark)
    _decide(draft, entry, match, source)
    if draft.question and match is None and not draft.is_dropped:
        _ask_of_values(draft)
    if entry.condition and not draft.is_dropped:
        draft.inner.append(
            f'if other rows are empty, as on the form: present_if: "{entry.condition}"'
        )
    _reasons(draft, entry)
    return draft


def _decide(draft: Proposal, entry: Entry, match: Match | None, source: str) -> None:
    """Choose what the column is, the surest sign first."""
    variable = draft.variable
    kind = entry.kind if entry.kind in _TYPES else None
    table = variable.type if variable is not None else None
    if table == KEY_TYPE or entry.kind == KEY:
        _key(draft, variable)
    elif entry.identifying or table == DROP:
        why = "the document marks it as identifying" if entry.identifying else _named(variable)
        _drop(draft, entry, why)
    elif entry.kind == FREE_TEXT:
        _drop(draft, entry, "free text cannot be made private")
    elif entry.kind == TIME:
        _clock(draft, entry, source)
    elif kind in ("date", "datetime") or table == "date":
        _date(draft, entry, kind or moment_of(entry.name) or "date", source)
    elif entry.kind == SEVERAL:
        draft.document["dpsynth"] = {"bounds_basis": TODO}
        draft.comments["type"] = "a cell has several answers: export a column for each answer"
    elif kind in _SPELLED:
        _spelled(draft, entry, kind, source)
    elif kind == "boolean" or (truth_words(entry.values) and kind is None):
        _boolean(draft, entry, source)
    elif entry.values:
        _categories(draft, entry, source)
    elif kind in _NUMBERS or entry.kind == NUMERIC or (variable and variable.is_numeric):
        _number(draft, entry, match, source)
    elif table == "boolean":
        _boolean(draft, entry, source)
    elif (codes := code_system(entry)) is not None:
        draft.document |= {"type": "string", "dpsynth": {"role": "sensitive", "codes": codes}}
        draft.comments["dpsynth.codes"] = _VERSION if codes == TODO else _NAMED_CODES
        draft.notes.clear()
    elif table == CODES:
        draft.document["type"] = "string"
        extra = {"role": variable.role} if variable and variable.role else {}
        draft.document["dpsynth"] = {**extra, "codes": TODO}
        procedures = variable is not None and variable.name == "procedure code"
        draft.comments["dpsynth.codes"] = _LISTED if procedures else _CODES
    elif draft.question and entry.kind in (None, TEXT, "string"):
        _ask(draft, entry)
    elif entry.kind in (TEXT, CATEGORY, "string") or table == "string":
        _texts(draft, entry)
    elif entry.kind is None and (moment := moment_of(entry.name)) is not None:
        _date(draft, entry, moment, source)
    elif entry.kind is None and (entry.unit or _are_numbers(entry)):
        _number(draft, entry, match, source)
    else:
        draft.document["dpsynth"] = {"bounds_basis": TODO}
        draft.comments["type"] = "one of " + ", ".join(_TYPES) + "; or give it role drop"


def _are_numbers(entry: Entry) -> bool:
    """Tell whether a document states bounds that are numbers."""
    limits = [text for text in (entry.minimum, entry.maximum) if text]
    return bool(limits) and all(read_number(text) is not None for text in limits)


_WHY = {
    "address": "address: identifies a person; for a region, list its values instead",
    "identity number": "identity number: identifies a person; unit, if no other column is the key "
    "of patients",
    "free text": "free text cannot be made private",
}


def _named(variable: Variable | None) -> str:
    if variable is None:
        return "identifies a person"
    return _WHY.get(variable.name, f"{variable.name}: identifies a person")


def _ask_of_values(draft: Proposal) -> None:
    """Leave to a person whether a column with declared values names somebody."""
    extra = draft.document.get("dpsynth") or {}
    if "role" not in extra:
        draft.document["dpsynth"] = {"role": TODO} | extra
        draft.comments["dpsynth.role"] = (
            f"drop, if it is {_ARTICLE[draft.question]}; else remove the role"
        )


def _ask(draft: Proposal, entry: Entry) -> None:
    """Leave to a person whether a column names somebody."""
    draft.document |= {
        "type": "string" if entry.kind in (TEXT, "string") else TODO,
        "dpsynth": {"role": TODO},
    }
    draft.comments["dpsynth.role"] = (
        f"drop, if it is {_ARTICLE[draft.question]}; else remove the role, and declare its values"
    )


def _key(draft: Proposal, variable: Variable | None) -> None:
    draft.document |= {"type": "string", "dpsynth": {"role": TODO}}
    one = "stay" if variable is not None and variable.name.startswith("encounter") else "patient"
    draft.comments["dpsynth.role"] = f"unit, if each value is one {one} to protect; else drop"


def _drop(draft: Proposal, entry: Entry, why: str) -> None:
    known = entry.kind if entry.kind in _TYPES else "string"
    draft.document |= {"type": known, "dpsynth": {"role": "drop"}}
    draft.comments["dpsynth.role"] = why


def _date(draft: Proposal, entry: Entry, kind: str, source: str) -> None:
    document = draft.document
    document["type"] = kind
    if entry.format != "default":
        document["format"] = entry.format or TODO
        if entry.format is None:
            draft.comments["format"] = _FORMAT if kind == "date" else _FORMAT_OF_TIMES
    limits = {
        "minimum": moment_text(entry.minimum, entry.format, kind, last=False) or TODO,
        "maximum": moment_text(entry.maximum, entry.format, kind, last=True) or TODO,
    }
    _missing(draft, entry)
    document["constraints"] = limits
    known = TODO not in limits.values()
    basis = f"{source}, {entry.place}" if known else ""
    hours = {"calendar": ["hour"]} if kind == "datetime" else {}
    basis = _proposed(basis) if known else TODO
    document["dpsynth"] = _role(draft) | hours | {"bounds_basis": basis}
    if hours:
        draft.comments["dpsynth.calendar"] = "keeps how the hours of the day differ"
    if not known:
        draft.comments["constraints"] = _PERIOD


def _clock(draft: Proposal, entry: Entry, source: str) -> None:
    """Propose a time of day; its bounds are the day where the document names none."""
    document = draft.document
    document["type"] = "time"
    if entry.format not in (None, "default"):
        document["format"] = entry.format
    else:
        draft.comments["type"] = 'cells like 08:30; else declare a format, such as "%H.%M"'
    _missing(draft, entry)
    written = {"minimum": entry.minimum, "maximum": entry.maximum}
    if limits := {key: text for key, text in written.items() if text}:
        document["constraints"] = limits
    basis = f"{source}, {entry.place}" if limits else "the whole day"
    document["dpsynth"] = _role(draft) | {"bounds_basis": _proposed(basis)}


def _spelled(draft: Proposal, entry: Entry, kind: str, source: str) -> None:
    """Propose a year and month, or a duration, with the bounds that the document names."""
    document = draft.document
    document["type"] = kind
    if entry.format not in (None, "default"):
        document["format"] = entry.format
    _missing(draft, entry)
    limits = {"minimum": entry.minimum or TODO, "maximum": entry.maximum or TODO}
    document["constraints"] = limits
    known = TODO not in limits.values()
    basis = _proposed(f"{source}, {entry.place}") if known else TODO
    document["dpsynth"] = _role(draft) | {"bounds_basis": basis}
    if not known:
        draft.comments["constraints"] = f'written like "{TYPES[kind].example}"'


def _boolean(draft: Proposal, entry: Entry, source: str) -> None:
    truths = truth_words(entry.values) or (_checked(entry) if entry.kind == "boolean" else None)
    document = draft.document
    if truths is None and entry.values:
        _categories(draft, entry, source)
        return
    document["type"] = "boolean"
    if truths is None:
        document |= {"trueValues": TODO, "falseValues": TODO}
        draft.comments["trueValues"] = 'how yes is written, such as ["1", "ja"]'
        basis = TODO
    else:
        document |= {"trueValues": [truths[0]], "falseValues": [truths[1]]}
        basis = _proposed(f"{source}, {entry.place}")
    _missing(draft, entry)
    document["dpsynth"] = _role(draft) | {"bounds_basis": basis}


def _checked(entry: Entry) -> tuple[str, str] | None:
    """Return 1 and 0 for the boxes of a REDCap checkbox."""
    codes = [code for code, _ in entry.values]
    return ("1", "0") if codes == ["1", "0"] else None


def _categories(draft: Proposal, entry: Entry, source: str) -> None:
    codes = [code for code, _ in entry.values]
    whole = entry.kind not in (TEXT, "string") and all(_is_whole(code) for code in codes)
    values: list[str | int] = [int(code) if whole else code for code in codes]
    document = draft.document
    document["type"] = "integer" if whole else "string"
    _missing(draft, entry)
    document["constraints"] = {"enum": values}
    if any(label for _, label in entry.values):
        document["categories"] = [
            {"value": value, "label": label} if label else {"value": value}
            for value, (_, label) in zip(values, entry.values, strict=True)
        ]
    basis = _proposed(f"{source}, {entry.place}, {len(codes)} values")
    document["dpsynth"] = _role(draft) | {"bounds_basis": basis}


def _is_whole(code: str) -> bool:
    number = read_number(code)
    return number is not None and code == str(int(number)) and abs(number) < TOP


def _texts(draft: Proposal, entry: Entry) -> None:
    draft.document["type"] = "string"
    _missing(draft, entry)
    draft.document |= {"constraints": {"enum": TODO}}
    draft.document["dpsynth"] = _role(draft) | {"bounds_basis": TODO}
    draft.comments["constraints"] = 'list every category, such as ["F", "M"]; or give it role drop'


_ROMAN = {"NYHA class": "I, II, III, IV", "ASA class": "I, II, III, IV, V, VI"}
"""Scales that many write in Roman numbers."""


def _number(draft: Proposal, entry: Entry, match: Match | None, source: str) -> None:
    variable = draft.variable
    unit = entry.unit or (match.unit if match is not None else None)
    range_ = variable.range_in(unit) if variable is not None else None
    limits = bounds_of(entry, variable, range_, source)
    document = draft.document
    kind = entry.kind if entry.kind in _NUMBERS else None
    document["type"] = kind or (range_.type if range_ else _only_type(variable)) or "number"
    _missing(draft, entry)
    document["constraints"] = {"minimum": limits.minimum, "maximum": limits.maximum}
    if limits.hint:
        draft.comments["constraints"] = limits.hint
    elif variable is not None and variable.name in _ROMAN:
        draft.comments["constraints"] = (
            f"if cells are Roman: type: string, constraints: {{enum: [{_ROMAN[variable.name]}]}}"
        )
    document["dpsynth"] = _role(draft) | _measured(draft, entry, range_, limits)


def _measured(
    draft: Proposal, entry: Entry, range_: Range | None, limits: Limits
) -> dict[str, Any]:
    """Return unit, step and basis of a number."""
    extra: dict[str, Any] = {}
    several = draft.variable is not None and len(draft.variable.ranges) > 1
    if range_ is not None and range_.ucum:
        extra["ucum"] = range_.ucum
        if range_.step is not None and draft.document["type"] == "number":
            extra["step"] = number_text(range_.step)
    elif ucum := common_unit(entry.unit):
        extra["ucum"] = ucum
    elif several:
        extra["ucum"] = TODO
        if entry.unit:
            draft.notes.append(f"the unit {entry.unit[:30]} is not in dpsynth's table")
    elif entry.unit:
        extra["ucum"] = TODO
        draft.comments["dpsynth.ucum"] = f"the document says {entry.unit[:30]}; write it in UCUM"
    known = TODO not in (limits.minimum, limits.maximum)
    return extra | {"bounds_basis": _proposed(limits.basis) if known else TODO}


def _only_type(variable: Variable | None) -> str | None:
    """Return the type of a variable, number if it differs between units."""
    if variable is None:
        return None
    types = {one.type for one in variable.ranges}
    return types.pop() if len(types) == 1 else "number"


def _role(draft: Proposal) -> dict[str, Any]:
    role = draft.variable.role if draft.variable is not None else ""
    return {"role": role} if role else {}


def _missing(draft: Proposal, entry: Entry) -> None:
    if entry.missing:
        draft.document["missingValues"] = ["", *entry.missing]


def _reasons(draft: Proposal, entry: Entry) -> None:
    """Propose the reasons of missing values, where the column is modelled."""
    extra = draft.document.setdefault("dpsynth", {})
    if entry.reasons and extra.get("role") not in (TODO, "drop"):
        extra["missing"] = {reason: list(texts) for reason, texts in entry.reasons}
        draft.comments["dpsynth.missing"] = "why a value is missing; confirm"


def _proposed(basis: str) -> str:
    return f"{PROPOSAL} {basis}: confirm"


def _has_todo(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_todo, value.values()))
    return any(map(_has_todo, value)) if isinstance(value, list) else value == TODO


TOP = 2**53
_TIME = re.compile(r"[T _-]+%H.*$")  # the end of a format of datetimes
Bound = float | int | str


@dataclass(frozen=True)
class Limits:
    """Minimum and maximum, or TODO, the source of both, and a hint for the person who checks."""

    minimum: Bound
    maximum: Bound
    basis: str
    hint: str = ""


def bounds_of(entry: Entry, variable: Variable | None, range_: Range | None, source: str) -> Limits:
    """Choose the bounds of a number.

    Args:
        entry: what the document says; a bound that can mean two numbers counts as absent.
        variable: the clinical variable, if the column is one.
        range_: its range in the column's unit, None where the unit is not known.
        source: what to call the document.
    """
    written = {"minimum": entry.minimum, "maximum": entry.maximum}
    read = {key: read_number(text) for key, text in written.items()}
    unclear = [text for key, text in written.items() if text and read[key] is None]
    table = {key: getattr(range_, key) if range_ else None for key in written}
    chosen = {key: table[key] if read[key] is None else read[key] for key in written}
    if unclear:
        chosen = {"minimum": None, "maximum": None}
    low, high = (TODO if chosen[key] is None else number_text(chosen[key]) for key in written)
    parts = []
    if any(number is not None for number in read.values()):
        parts.append(f"{source}, {entry.place}")
    if range_ is not None and any(read[key] is None for key in written):
        parts.append(_named_range(variable, range_))
    basis = f"{'; '.join(parts)}, {low} to {high} {range_.ucum if range_ else entry.unit}".rstrip()
    if range_ is not None and range_.basis and all(number is None for number in read.values()):
        basis += f", {range_.basis}"
    hint = ""
    if unclear:
        hint = f"the document says {unclear[0][:30]}, which is not one clear number"
    elif TODO in (low, high):
        hint = _options(variable) if range_ is None else ""
    return Limits(low, high, basis, hint)


def number_text(number: float | None) -> float | int:
    """Return a whole number without a point.

    >>> number_text(3.0), number_text(0.5)
    (3, 0.5)
    """
    assert number is not None
    return int(number) if number == int(number) and abs(number) < TOP else number


def _named_range(variable: Variable | None, range_: Range) -> str:
    name = variable.name if variable is not None else ""
    return f"{name}, LOINC {range_.loinc}" if range_.loinc else name


def _options(variable: Variable | None) -> str:
    """Say which range would be proposed in each unit that a variable can have."""
    if variable is None or variable.ranges[0].minimum is None:
        return ""
    options = (
        f"{number_text(one.minimum)} to {number_text(one.maximum)} {one.ucum}"
        for one in variable.ranges
    )
    return f"{variable.name}: " + " or ".join(options)


def moment_text(text: str, pattern: str | None, kind: str, *, last: bool) -> str:
    """Return a bound of a datetime that names the day only with its time; others as they stand.

    Args:
        text: as written; empty for none.
        pattern: of the column's dates, ``default`` for ISO 8601, None if it is not known.
        kind: ``date`` or ``datetime``.
        last: whether it is the maximum, which holds its whole day.

    >>> moment_text("31/12/2024", "%d/%m/%Y %H:%M", "datetime", last=True)
    '2024-12-31T23:59:00'
    >>> moment_text("2023-01-01", "default", "datetime", last=False)
    '2023-01-01T00:00:00'
    >>> moment_text("soon", "%d/%m/%Y %H:%M", "datetime", last=False)
    'soon'
    """
    if kind != "datetime" or not text or pattern is None:
        return text
    days = "%Y-%m-%d" if pattern == "default" else _TIME.sub("", pattern)
    try:
        day = datetime.strptime(text.strip(), days)
    except ValueError:
        return text
    return f"{day:%Y-%m-%d}T{'23:59:00' if last else '00:00:00'}"
