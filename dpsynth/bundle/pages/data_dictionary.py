"""A column of a synthetic table in words: kind, unit, bounds, and what its values are like."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal

from dpsynth._util.formatting import percent, quantity
from dpsynth.bundle.gates import ColumnProfile
from dpsynth.schema import Bound, Column, relation_of, unit_of
from dpsynth.schema.code_systems import Codes

_ROLES = {
    "target": "prediction target",
    "sensitive": "sensitive",
    "quasi_identifier": "could help someone recognise a person",
    "group": "divides people into groups",
    "time": "time",
    "event": "event",
}


@dataclass(frozen=True)
class Fact:
    """One line of a data dictionary."""

    name: str
    value: str


def facts_of(profile: ColumnProfile, error: float | None = None) -> tuple[Fact, ...]:
    """List what is declared of a column, and what its synthetic values are like.

    Args:
        profile: of the column.
        error: standard error of the count of one of its values, if it is known.
    """
    column, unit = profile.column, unit_of(profile.column)
    facts = []
    if unit:
        facts.append(Fact("Unit", unit))
    if column.minimum is not None and column.maximum is not None:
        ends = _bound(column.minimum, column), _bound(column.maximum, column)
        facts.append(Fact("Bounds", " to ".join(ends)))
    if relation := relation_of(column):
        facts.append(Fact("Relation", relation))
    if column.several is not None:
        facts.append(Fact("Cell", column.several.words))
    if column.is_categorical and not column.kind.is_truth:
        found = len(_found(column))
        words = f"{len(column.levels) - found} declared"
        facts.append(Fact("Categories", f"{words}, {found} found" if found else words))
    if column.codes is not None:
        facts.append(Fact("Codes", _codes(column, column.codes)))
    if column.bounds_basis is not None:
        facts.append(Fact("Basis of bounds", column.bounds_basis))
    if roles := [words for role, words in _ROLES.items() if role in column.roles]:
        facts.append(Fact("Role", ", ".join(roles)))
    facts.append(Fact("Missing", _missing(profile)))
    if error is not None:
        facts.append(Fact("Standard error of a count", quantity(error)))
    if profile.mean is not None:
        facts.append(Fact("Mean", quantity(profile.mean)))
    if profile.five:
        low, first, median, third, high = profile.five
        facts.append(Fact("Median", median))
        facts.append(Fact("Middle half", f"{first} to {third}"))
        facts.append(Fact("Range", f"{low} to {high}"))
    return tuple(facts)


def _found(column: Column) -> tuple[str, ...]:
    """Return the codes that the fit found; they are categories beside the declared ones."""
    return () if column.discovery is None else column.discovery.found or ()


def _codes(column: Column, codes: Codes) -> str:
    """Say where the codes of a column come from."""
    groups = f"{codes.system}, grouped by {codes.rollup}"
    if not column.discovers:
        return groups
    rest = f"every other code stands in its group ({groups})" if codes.system else "others are not"
    return f"listed are those that enough of the source has, counted with noise; {rest}"


def summary_of(profile: ColumnProfile) -> str:
    """Say in a few words what the values are like."""
    if profile.constant:
        return "one value only"
    if not profile.distinct:
        return "no values"
    if profile.five:
        unit = unit_of(profile.column)
        low, first, median, third, high = profile.five
        words = f"median {median}{' ' + unit if unit else ''}"
        return f"{words}, middle half {first} to {third}"
    maximum = max(profile.bins, key=lambda item: item.rows)
    share = percent(maximum.rows / profile.rows)
    values = "1 value" if profile.distinct == 1 else f"{profile.distinct} values"
    return f"{values}, most often {maximum.label} ({share})"


def _missing(profile: ColumnProfile) -> str:
    if profile.column.required:
        return "never (declared)"
    if not profile.rows:
        return "no rows"
    return percent(profile.missing / profile.rows)


def _bound(bound: Bound, column: Column) -> str:
    """Write a bound in full, as the figures beside it are."""
    if isinstance(bound, datetime):
        return bound.isoformat(sep=" ", timespec="minutes")
    if isinstance(bound, date):
        return bound.isoformat()
    if isinstance(bound, time):
        return bound.isoformat("minutes")
    comma = "," if column.kind.is_quantity else ""
    text = f"{Decimal(repr(bound)):{comma}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
