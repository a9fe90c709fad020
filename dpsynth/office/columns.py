"""The columns of a schema as one table: what each is, where that comes from, and what is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth._util.field_reader import PROPOSAL, TODO, is_proposal, is_todo
from dpsynth.draft import flow
from dpsynth.office.written_yaml import Place, WrittenYaml, at, with_part

OPEN, PROPOSED, CONFIRMED, DROPPED, DECLARED = STATES = (
    *("open", "proposed", "confirmed", "dropped", "declared"),
)
MEANING = {
    OPEN: "something is still TODO",
    PROPOSED: "complete, and nobody has confirmed it",
    CONFIRMED: "somebody has named a source",
    DROPPED: "left out of the synthetic table",
    DECLARED: "a key or a time, which has no source of its own",
}
_LONG = 12  # values of a list that are shown
_QUIET = ("bounds_basis", "role", "ucum")  # of a column: shown elsewhere in its row


@dataclass(frozen=True)
class ColumnRow:
    """One column, or one test of a long table.

    Attributes:
        place: of it in the document.
        table: that it is a column of; empty in a schema of one table.
        name: of it.
        title: what it means.
        kind: its type, ``test`` for a test.
        role: its roles, in words.
        content: bounds, values and unit, in words.
        basis: where they come from.
        state: one of `STATES`.
        notes: what the file says and asks about it.
    """

    place: Place
    table: str
    name: str
    title: str
    kind: str
    role: str
    content: str
    basis: str
    state: str
    notes: tuple[str, ...]

    @property
    def key(self) -> str:
        """How a form calls it."""
        return "/".join(map(str, self.place))


def tables_of(document: Any) -> list[tuple[Place, str]]:
    """List the places of tables in a document with their names; that of a single table is empty."""
    if isinstance(document, Mapping) and "resources" in document:
        each = document["resources"] if isinstance(document["resources"], list) else []
        return [
            (("resources", number), str(at(one, ("name",)) or f"table {number + 1}"))
            for number, one in enumerate(each)
        ]
    return [((), "")]


def columns_of(file: WrittenYaml) -> list[ColumnRow]:
    """List all columns of a schema, and the tests of its long tables, in the order of the file."""
    rows = []
    for place, table in tables_of(file.document):
        inside: Place = (*place, "schema", "fields") if place else ("fields",)
        fields = at(file.document, inside)
        for number, field in enumerate(fields if isinstance(fields, list) else []):
            if isinstance(field, Mapping):
                rows.append(_row(file, (*inside, number), table, field))
        tests: Place = (*place, "dpsynth", "series", "tests")
        each = at(file.document, tests)
        for name, test in each.items() if place and isinstance(each, Mapping) else ():
            if isinstance(test, Mapping):
                rows.append(_row(file, (*tests, name), table, {"name": name, **test}, test=True))
    return rows


def _row(
    file: WrittenYaml, place: Place, table: str, field: Mapping[str, Any], *, test: bool = False
) -> ColumnRow:
    extra = field if test else field.get("dpsynth")
    extra = extra if isinstance(extra, Mapping) else {}
    role = extra.get("role", "")
    roles = [role] if isinstance(role, str) else list(role) if isinstance(role, list) else []
    basis = extra.get("bounds_basis")
    basis = "" if not isinstance(basis, str) or is_todo(basis) else basis
    return ColumnRow(
        place=place,
        table=table,
        name=str(field.get("name", "")),
        title=str(field.get("title") or ""),
        kind="test" if test else str(field.get("type", "")),
        role=", ".join("to decide" if is_todo(one) else str(one) for one in roles if one),
        content="; ".join(_content(field, {} if test else extra)),
        basis=basis,
        state=_state(field, roles, basis, _needs_basis(field, extra, test)),
        notes=file.notes(place),
    )


def _needs_basis(field: Mapping[str, Any], extra: Mapping[str, Any], test: bool) -> bool:
    return test or "constraints" in field or bool(set(extra) - {"role"})


def _state(field: Mapping[str, Any], roles: list[str], basis: str, needed: bool) -> str:
    if has_todo(field):
        return OPEN
    if "drop" in roles:
        return DROPPED
    if is_proposal(basis):
        return PROPOSED
    return CONFIRMED if basis or needed else DECLARED


def has_todo(value: Any) -> bool:
    """Whether something in a part is still TODO."""
    if isinstance(value, Mapping):
        return any(map(has_todo, value.values()))
    return any(map(has_todo, value)) if isinstance(value, list) else is_todo(value)


def _content(field: Mapping[str, Any], extra: Mapping[str, Any]) -> Iterator[str]:
    """Say what is declared of the values."""
    limits = field.get("constraints", field)
    limits = limits if isinstance(limits, Mapping) else {}
    low, high = limits.get("minimum"), limits.get("maximum")
    if low is not None or high is not None:
        unit = extra.get("ucum") or field.get("ucum") or ""
        unit = "unit to decide" if is_todo(unit) else str(unit)
        yield f"{_word(low)} to {_word(high)} {unit}".rstrip()
    values = limits.get("enum")
    if is_todo(values):
        yield "values to list"
    elif isinstance(values, list):
        yield (
            "values: "
            + ", ".join(map(str, values[:_LONG]))
            + (f" and {len(values) - _LONG} more" if len(values) > _LONG else "")
        )
    if "trueValues" in field:
        yield f"yes: {_listed(field['trueValues'])}; no: {_listed(field.get('falseValues'))}"
    if "format" in field:
        yield f"format: {_word(field['format'])}"
    for key, value in extra.items():
        if key not in _QUIET:
            yield f"{key}: {'to decide' if is_todo(value) else flow(value)}"


def _word(value: Any) -> str:
    return "to decide" if is_todo(value) else "?" if value is None else str(value)


def _listed(values: Any) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) else _word(values)


def confirmed(basis: str, name: str) -> str:
    """Return a proposed basis as somebody confirms it.

    >>> confirmed("proposal: body height, 25 to 250 cm: confirm", "A. Nyqvist")
    'confirmed by A. Nyqvist: body height, 25 to 250 cm'
    """
    words = basis.strip()[len(PROPOSAL) :].strip().removesuffix("confirm").rstrip(" :")
    return f"confirmed by {name}: {words}"


def with_confirmed(file: WrittenYaml, rows: list[ColumnRow], name: str) -> Any:
    """Return the document with these columns confirmed by somebody; others stay as they are."""
    document = file.document
    for row in rows:
        if row.state == PROPOSED:
            inside: Place = () if row.kind == "test" else ("dpsynth",)
            basis = confirmed(row.basis, name)
            document = with_part(document, (*row.place, *inside, "bounds_basis"), basis)
    return document


def place_of(key: str) -> Place:
    """Read what a form calls a place."""
    return tuple(int(step) if step.isdigit() else step for step in key.split("/") if step)


__all__ = [
    "CONFIRMED",
    "DECLARED",
    "DROPPED",
    "MEANING",
    "OPEN",
    "PROPOSED",
    "STATES",
    "TODO",
    "ColumnRow",
    "columns_of",
    "confirmed",
    "has_todo",
    "place_of",
    "tables_of",
    "with_confirmed",
]
