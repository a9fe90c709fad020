"""One budget counts one unit: epsilons for a row and for a patient must not be added.

Two fits that are each epsilon-private for *the same* unit are 2 epsilon-private for it together.
Where one hides a row and the other a patient, no such sum means anything: a patient of five rows
pays five times the first epsilon. So all fits of a budget (a dataset with those that share its
patients) have to count the same:

- a row; or
- a value of one key column, read in one way (trimming, case, leading zeros, rows without a key),
  since keys that are read otherwise are other units; or
- a person whom the schemas name: there one value of a key column is one person, or a person has a
  declared number of rows or values, and pays for as many by group privacy (`privacy.unit`).

A key column stands for a person where one schema of the budget says so, by its own key column or
by ``same_as``, which lists the key columns of other extracts. Where another schema says that a
person has several values of this column, one of both is wrong, and nothing is added up.
How many rows of a unit count, and which ones (``max_rows``, ``keep``), may differ: each fit is
private for the unit with all its rows, whatever number of them it uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth.privacy import Unit, counted_of, described


def kinds(units: Iterable[Unit]) -> list[Unit]:
    """Give one unit for each thing that is counted; a single one if all count the same.

    Units that count the same are those that some chain of units connects.
    """
    distinct = list(dict.fromkeys(units))
    single: dict[str | None, Unit] = {key: unit for unit in distinct for key in unit.same_as}
    single |= {unit.name: unit for unit in distinct if unit.person is not None and unit.reading}
    for unit in distinct:
        declared = single.get(unit.name)
        if _has_several(unit) and declared not in (None, unit):
            return [declared, unit]
    keys = single.keys()
    counted: dict[object, Unit] = {}
    for unit in distinct:
        person = unit.person is not None or (unit.name is not None and unit.name in keys)
        counted.setdefault(("person",) if person else ("column", unit.name), unit)
    named = {unit.person: unit for unit in reversed(distinct) if unit.person is not None}
    by_reading = {unit.reading: unit for unit in reversed(distinct) if unit.reading is not None}
    several = (named, by_reading)
    return list(next((group for group in several if len(group) > 1), counted).values())


def _has_several(unit: Unit) -> bool:
    """Whether a person may have several values of the key column, and not only rows without one."""
    return unit.max_units > 1 and unit.name is not None and unit.missing_key == "drop"


def conflict(unit: Unit, others: Iterable[Unit]) -> str | None:
    """Say why a fit cannot be added to others, and what to do; None if it can."""
    past = list(others)
    if len(kinds([*past, unit])) <= 1:
        return None
    other = next((earlier for earlier in past if len(kinds([earlier, unit])) > 1), past[0])
    return (
        f"this fit counts {described(unit)}, and earlier fits count {described(other)}: epsilons "
        f"of different units do not add up. {_remedy(unit, other)}"
    )


def _remedy(unit: Unit, other: Unit) -> str:
    """Say which declaration would make both count the same."""
    if unit.person and unit.person == other.person and _has_several(unit) != _has_several(other):
        return (
            f"One schema treats a value of a key column as one {unit.person}, and the other says "
            f"that a {unit.person} has several: declare in this schema what the schemas of the "
            "earlier fits declare"
        )
    if unit.person and other.person and unit.person != other.person:
        return f"If both are the same, name the person '{other.person}' in this schema too"
    if unit.reading and other.reading and unit.reading != other.reading:
        return "Let the schema read keys (key, missing_key) as the schema of the earlier fits does"
    if other.name is None and other.person is None:
        return "Earlier fits cannot be counted again: fit by rows as they did, or do not fit"
    name = f"name: {other.person or 'patient'}"
    same = "" if other.person else f", same_as: ['{other.name}']"
    if unit.name is None or unit.missing_key == "own":
        return (
            f"Declare in this schema how many of its units one {counted_of(other)} has at most: "
            f"person: {{{name}{same}, max_units: {{value: ..., basis: ...}}}}"
        )
    return (
        "If the keys mean the same, give the key column the same name, or declare it in this "
        f"schema: person: {{{name}{same}}}; add max_units if one person can have several"
    )
