"""Parts of a document as fields of a form, and back: what a form does not show is kept as YAML.

Nothing here judges a value: the reader of the document does, and its sentences stand beside the
fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from dpsynth._util.field_reader import TODO, is_todo
from dpsynth._util.strict_yaml import parse_yaml, yaml_text
from dpsynth.errors import InputError, Problem, SchemaError
from dpsynth.office.columns import has_todo
from dpsynth.office.written_yaml import Place, at, with_part
from dpsynth.schema.types import TYPES

TEXT, NUMBER, LINES, VALUES, FLAG, CHOICE, ROLES, YAML = (
    *("text", "number", "lines", "values", "flag", "choice", "roles", "yaml"),
)
REST = "rest"
_ROLES = ("target", "quasi_identifier", "sensitive", "group", "unit", "order", "drop")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?|[-+]?\.\d+")
_NUMERIC = ("integer", "number", "year")
_UNRANGED = ("string", "boolean", TODO)  # types whose values have no bounds


@dataclass(frozen=True)
class Input:
    """One field of a form.

    Attributes:
        place: of its value in the part.
        label: what it is.
        hint: what is expected.
        kind: one of those above.
        options: of a choice.
        group: the heading that it stands below, with those beside it of the same group.
    """

    place: Place
    label: str
    hint: str = ""
    kind: str = TEXT
    options: tuple[str, ...] = ()
    group: str = ""

    @property
    def name(self) -> str:
        """How the form calls it."""
        return ".".join(map(str, self.place))


def grouped(inputs: Sequence[Input]) -> list[tuple[str, list[Input]]]:
    """Put fields below their headings."""
    return [(title, list(group)) for title, group in groupby(inputs, lambda one: one.group)]


def _below(group: str, *inputs: Input) -> tuple[Input, ...]:
    return tuple(replace(one, group=group) for one in inputs)


_SOURCE = Input(
    ("dpsynth", "bounds_basis"),
    "Where this comes from",
    "a form, a device range, a protocol, a coding manual; never the data. It is published.",
)
COLUMN = (
    *_below(
        "What it is",
        Input(("title",), "Meaning", "a title for readers"),
        Input(("type",), "Type", "", CHOICE, tuple(TYPES)),
        Input(("dpsynth", "role"), "Roles", "", ROLES, _ROLES),
        Input(("constraints", "required"), "No cell is missing", "", FLAG),
    ),
    *_below(
        "If it is a number or a date",
        Input(("constraints", "minimum"), "Minimum", "a number, or a date like 2015-12-31", NUMBER),
        Input(("constraints", "maximum"), "Maximum", "", NUMBER),
        Input(("dpsynth", "ucum"), "Unit (UCUM)", "such as mg/dL"),
        Input(("dpsynth", "step"), "Step", "the finest difference that counts", NUMBER),
        Input(("format",), "Format of dates", "such as %d.%m.%Y, or default for 2015-12-31"),
    ),
    *_below(
        "If it has a list of values",
        Input(
            ("constraints", "enum"), "Values", "one a line; with a label: 1 = never smoked", VALUES
        ),
    ),
    *_below(
        "If it is yes or no",
        Input(("trueValues",), "How yes is written", "one a line", LINES),
        Input(("falseValues",), "How no is written", "one a line", LINES),
    ),
    *_below("Source", _SOURCE),
)
TEST = (
    *_below(
        "What it is",
        Input(("title",), "Meaning"),
        Input(("required",), "No value is missing", "", FLAG),
    ),
    *_below(
        "If it is a number",
        Input(("minimum",), "Minimum", "", NUMBER),
        Input(("maximum",), "Maximum", "", NUMBER),
        Input(("step",), "Step", "the finest difference that counts", NUMBER),
        Input(("ucum",), "Unit (UCUM)", "such as mg/dL"),
    ),
    *_below("If it has a list of values", Input(("enum",), "Values", "one a line", VALUES)),
    *_below("Source", replace(_SOURCE, place=("bounds_basis",))),
)
_PEOPLE = _below(
    "Patients",
    Input(
        ("population", "value"), "Number of patients", "two digits, such as 12000; public", NUMBER
    ),
    Input(("population", "basis"), "Where that number comes from", "such as: annual report 2025"),
)
_DIALECT = _below(
    "How the text file is written",
    Input(("dialect", "delimiter"), "Delimiter"),
    Input(("dialect", "encoding"), "Encoding", "such as utf-8 or cp1252"),
    Input(("dialect", "decimal"), "Decimal sign", "", CHOICE, (".", ",")),
)
_MOST = _below(
    "What of a patient counts",
    Input(("max_rows", "value"), "Rows of a patient that count", "at most so many; public", NUMBER),
    Input(("max_rows", "basis"), "Where that limit comes from", "such as: protocol, four visits"),
)
ONE_TABLE = (
    *_PEOPLE,
    *_below(
        "Rows",
        Input(("rows", "value"), "Number of rows", "two digits; public", NUMBER),
        Input(("rows", "basis"), "Where that number comes from", "such as: annual report 2025"),
    ),
    *_MOST,
    *_DIALECT,
)
PACKAGE = (
    *_PEOPLE,
    *_below("Patients", Input(("patients",), "Table with one row a patient")),
    *_below(
        "Time",
        Input(("window", "first"), "First day kept", "from each patient's day 0, as -3650", NUMBER),
        Input(("window", "last"), "Last day kept", "such as 1826", NUMBER),
        Input(("window", "basis"), "Where the window comes from", "such as: protocol"),
        Input(("end",), "Column with the last day of follow-up", "empty if there is none"),
    ),
)
ROWS_TABLE = (
    *_below(
        "Time",
        Input(("time",), "Column of the day"),
        Input(("origin",), "Date of patients from which days count", "a column; or one date"),
    ),
    *_MOST,
    *_DIALECT,
)
PATIENTS_TABLE = _DIALECT


def shown_values(
    part: Any, inputs: Sequence[Input], *, always: Iterable[str] = ()
) -> dict[str, str]:
    """Return the text of each field of a form, and of what no field shows.

    Args:
        part: of a document.
        inputs: the fields of the form.
        always: keys that no form may change; they are not shown.
    """
    part = part if isinstance(part, Mapping) else {}
    values, rest = {}, {key: value for key, value in part.items() if key not in always}
    for one in inputs:
        value = at(part, one.place)
        text = _text(one, value, part)
        if text is None:
            values[one.name] = ""
            continue
        values[one.name] = text
        if value is not None:
            rest = with_part(rest, one.place, None)
            if one.kind == VALUES and _labels(part):
                rest = with_part(rest, ("categories",), None)
    rest = _without_empty(rest, part)
    values[REST] = yaml_text(rest) if rest else ""
    return values


def _without_empty(rest: Any, part: Any) -> Any:
    """Leave out mappings that fields have emptied."""
    return {
        key: _without_empty(value, part.get(key)) if isinstance(value, Mapping) else value
        for key, value in rest.items()
        if not (value == {} and part.get(key) != {})
    }


def _text(one: Input, value: Any, part: Mapping[str, Any]) -> str | None:
    """Write a value into its field; None for one that the field cannot hold."""
    if value is None or is_todo(value):
        return ("TODO" if one.kind == ROLES else "") if is_todo(value) else ""
    if one.kind == FLAG:
        return {True: "yes", False: ""}.get(value) if isinstance(value, bool) else None
    if one.kind == ROLES:
        roles = [value] if isinstance(value, str) else value
        return (
            " ".join(roles) if isinstance(roles, list) and set(roles) <= set(one.options) else None
        )
    if one.kind in (LINES, VALUES):
        if not isinstance(value, list) or not all(map(_is_line, value)):
            return None
        labels = _labels(part) if one.kind == VALUES else {}
        if labels is None or (one.kind == VALUES and any("=" in str(v) for v in value)):
            return None
        return "\n".join(f"{v} = {labels[v]}" if v in labels else str(v) for v in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and (value != value.strip() or not value.isprintable()):
        return None
    return str(value)


def _is_line(value: Any) -> bool:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return plain and str(value).isprintable() and str(value) == str(value).strip() != ""


def _labels(part: Mapping[str, Any]) -> dict[Any, str] | None:
    """Return the labels of values; None if they are more than labels of the values listed."""
    categories = part.get("categories")
    if categories is None:
        return {}
    if not isinstance(categories, list):
        return None
    found = {}
    for one in categories:
        if not isinstance(one, Mapping) or not set(one) <= {"value", "label"}:
            return None
        if "label" in one:
            if "=" in str(one["label"]) or not str(one["label"]).isprintable():
                return None
            found[one.get("value")] = str(one["label"])
    listed = [one.get("value") for one in categories]
    return found if listed == at(part, ("constraints", "enum")) and found else None


def written_part(
    old: Any, inputs: Sequence[Input], given: Mapping[str, str], *, always: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a part as a form says it.

    Args:
        old: the part before; a field that is left empty where it was TODO stays TODO.
        inputs: the fields of the form.
        given: their texts, and that of what no field shows.
        always: keys that no form may change; they stay.

    Raises:
        InputError: what no field shows is not YAML, or has a key that no form may change.
    """
    old = old if isinstance(old, Mapping) else {}
    rest = _rest(given.get(REST, ""))
    if barred := sorted({*always} & {*rest}):
        raise InputError(f"{', '.join(barred)}: not among these lines")
    part: Any = {key: old[key] for key in always if key in old} | rest
    kind = given.get("type") or str(old.get("type", ""))
    for one in inputs:
        value = _value(one, given.get(one.name, "").strip(), kind)
        if value is None and is_todo(at(old, one.place)) and one.kind != ROLES:
            value = TODO
        if one.kind == VALUES and isinstance(value, list):
            value, categories = _labelled(value)
            if categories:
                part = with_part(part, ("categories",), categories)
        if value is not None:
            part = with_part(part, one.place, value)
    return _in_order(_settled(part), old)


def _rest(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        rest = parse_yaml(text.replace("\r\n", "\n").encode(), "other keys")
    except SchemaError as error:
        raise InputError("; ".join(map(str, error.problems))) from None
    if not isinstance(rest, dict) or not all(isinstance(key, str) for key in rest):
        raise InputError("lines such as key: value are expected")
    return rest


def _value(one: Input, text: str, kind: str) -> Any:
    if one.kind == FLAG:
        return True if text else None
    if one.kind == ROLES:
        roles = text.split()
        return (
            None if not roles else TODO if TODO in roles else roles[0] if len(roles) == 1 else roles
        )
    if not text:
        return None
    if one.kind in (LINES, VALUES):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [_typed(line, kind) for line in lines] if one.kind == VALUES else lines
    dated = kind not in (*_NUMERIC, "") and one.place[:1] == ("constraints",)
    return _number(text) if one.kind == NUMBER and not dated else text


def _typed(line: str, kind: str) -> Any:
    """Read a line of a list of values; its label, if any, stays with it."""
    value, sign, label = line.partition("=")
    read = _number(value.strip()) if kind in _NUMERIC else value.strip()
    return (read, label.strip()) if sign else read


def _labelled(lines: list[Any]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Part values from their labels."""
    values = [line[0] if isinstance(line, tuple) else line for line in lines]
    if not any(isinstance(line, tuple) for line in lines):
        return values, []
    return values, [
        {"value": line[0], "label": line[1]}
        if isinstance(line, tuple) and line[1]
        else {"value": v}
        for line, v in zip(lines, values, strict=True)
    ]


def _number(text: str) -> Any:
    """Read a number as YAML writes it; another text stays one, and the reader refuses it."""
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _settled(part: dict[str, Any]) -> dict[str, Any]:
    """Take out what a decision has made pointless: a column that is dropped declares no values."""
    extra = part.get("dpsynth")
    extra = extra if isinstance(extra, Mapping) else {}
    role = extra.get("role", ())
    codes = extra.get("codes")
    if "type" not in part:
        return part
    pointless: list[Place] = []
    if role == "drop":
        pointless = [
            *(("constraints", key) for key in ("minimum", "maximum", "enum")),
            *(("dpsynth", key) for key in ("bounds_basis", "codes", "ucum", "longest")),
            *((key,) for key in ("trueValues", "falseValues", "format")),
        ]
        if is_todo(part["type"]):
            part = {**part, "type": "string"}
    else:
        low = at(part, ("constraints", "minimum"))
        if part["type"] not in _UNRANGED and low is not None and not is_todo(low):
            pointless.append(("constraints", "enum"))
        if part["type"] in ("string", "boolean") or at(part, ("constraints", "enum")):
            pointless += [("constraints", "minimum"), ("constraints", "maximum")]
        if part["type"] == "boolean" or (codes is not None and not has_todo(codes)):
            pointless.append(("constraints", "enum"))
        if codes is not None or role in ("unit", "order"):
            pointless += [("dpsynth", "bounds_basis"), ("constraints", "enum")]
        if part["type"] != "boolean":
            pointless += [("trueValues",), ("falseValues",)]
    for place in pointless:
        if is_todo(at(part, place)):
            part = with_part(part, place, None)
            if len(place) > 1 and at(part, place[:1]) == {}:
                part = with_part(part, place[:1], None)
    return part


def _in_order(part: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Put keys that were there before in their old order, so that the file changes little."""
    names = [*(key for key in old if key in part), *(key for key in part if key not in old)]
    return {
        key: _in_order(part[key], old[key])
        if isinstance(part[key], dict) and isinstance(old.get(key), Mapping)
        else part[key]
        for key in names
    }


def beside(
    problems: Iterable[Problem], inputs: Sequence[Input], prefix: str
) -> dict[str, list[str]]:
    """Put the reader's sentences beside the fields that they are about.

    Args:
        problems: of the reader.
        inputs: the fields of the form.
        prefix: how the places of the part begin, such as ``fields[3] 'sbp'``.

    Returns:
        Sentences by the name of a field; those about no field, by an empty name.
    """
    found: dict[str, list[str]] = {}
    for problem in problems:
        own = problem.place.startswith(prefix) and problem.place[len(prefix) :].lstrip(".")
        names = [one.name for one in inputs if own and own.split("[")[0].startswith(one.name)]
        best = max(names, key=len, default="")
        words = problem.message if best else str(problem)
        found.setdefault(best, []).append(words)
    return found
