"""A privacy unit in words: the one place that says "patient", "row" or "value of a column".

"Patient" stands in a document only where the schema names a person so: ``person: {name: patient}``.
Everything else is a row, or a value of the key column, because that is all that the fit knows.
"""

from __future__ import annotations

from dpsynth._util.formatting import shown
from dpsynth.privacy.unit import Unit

_PEOPLE = {"person": "people", "child": "children", "man": "men", "woman": "women"}


def unit_of(unit: Unit) -> str:
    """Name one unit of a fit: what epsilon of the certificate is about.

    >>> unit_of(Unit("stay", 1, "random", True, False, True, "drop", None, (), 1, None))
    "value of column 'stay'"
    """
    if unit.person is not None and unit.max_units == 1:
        return unit.person
    return "row" if unit.name is None else f"value of column '{shown(unit.name)}'"


def source_unit(unit: Unit) -> str:
    """Name one unit of a fit where it may not be clear of which table it is."""
    return "row of the source table" if unit_of(unit) == "row" else unit_of(unit)


def units_of(unit: Unit) -> str:
    """Name several units of a fit."""
    return _plural(unit_of(unit))


def counted_of(unit: Unit) -> str:
    """Name whom the ledger counts: the person, where the schema names one, else the unit."""
    return unit.person or unit_of(unit)


def counted_several(unit: Unit) -> str:
    """Name several of those whom the ledger counts."""
    return _plural(counted_of(unit))


def short_of(unit: Unit) -> str:
    """Name one unit in a word, for sentences that name the column elsewhere."""
    return unit_of(unit) if unit.name is None or unit_of(unit) == unit.person else "unit"


def whom(unit: Unit) -> str:
    """Name whom figures are about, with an article, in a word or two.

    >>> whom(Unit("id", 4, "random", True, False, True, "drop", "infant", (), 1, None))
    'an infant'
    """
    return with_article(unit.person or short_of(unit))


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun.

    >>> with_article("unit"), with_article("infant")
    ('a unit', 'an infant')
    """
    vowel = noun[0] in "aeiou" and not noun.startswith(("uni", "use", "eu", "one"))
    return f"an {noun}" if vowel else f"a {noun}"


def described(unit: Unit) -> str:
    """Say what a fit counts, with how it is told apart, for the office.

    >>> described(Unit(None, 1, "random", True, False, True, "drop", "patient", (), 3, ""))
    'a patient, who has at most 3 rows of the table'
    >>> described(Unit("id", 4, "random", True, True, True, "own", None, (), 1, None))
    "a value of column 'id' (keys: trimmed, regardless of case; a row without a key is a unit)"
    """
    several = "rows" if unit.name is None else f"values of column '{shown(unit.name)}'"
    if unit.max_units > 1:
        if unit.missing_key == "own":
            several += " and rows without one"
        return f"{whom(unit)}, who has at most {unit.max_units} {several} of the table"
    if unit.name is None:
        return "a row" if unit.person is None else f"{whom(unit)}, who has one row of the table"
    who = "" if unit.person is None else f"{whom(unit)}, by "
    return f"{who}a value of column '{shown(unit.name)}' ({_reading(unit)})"


def _reading(unit: Unit) -> str:
    """Say how keys are compared."""
    how = ["trimmed" if unit.trim else "with blanks at their ends"]
    how += ["regardless of case"] if unit.case else []
    how += [] if unit.leading_zeros else ["without leading zeros"]
    missing = "a unit" if unit.missing_key == "own" else "left out"
    return f"keys: {', '.join(how)}; a row without a key is {missing}"


def _plural(noun: str) -> str:
    if noun.startswith("value of"):
        return "values" + noun.removeprefix("value")
    head, space, last = noun.rpartition(" ")
    if last in _PEOPLE:
        last = _PEOPLE[last]
    elif last.endswith("y") and last[-2:-1] not in tuple("aeiou"):
        last = last[:-1] + "ies"
    else:
        last += "es" if last.endswith(("s", "x", "ch", "sh")) else "s"
    return head + space + last
