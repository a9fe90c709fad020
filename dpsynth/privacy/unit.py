"""The privacy unit of a fit: whose presence its epsilon is about, and whom a ledger counts.

The unit of a fit is a row, or all rows with one value of a key column, read in one way. The ledger
counts a *person* where the schema names one (a patient): a person is at most ``max_units`` units of
the table. That number is an assumption. A table without keys does not say whose a row is, so
nothing can check it, and certificates state it.

A privacy unit in words: the one place that says "patient", "row" or "value of a column".

"Patient" stands in a document only where the schema names a person so: ``person: {name: patient}``.
Everything else is a row, or a value of the key column, because that is all that the fit knows.

Group privacy: what a guarantee for one unit is worth to somebody who has several of them.

Let M be (epsilon, delta)-private for adding or removing one unit, and let D and D' differ by k of
them. Remove them one by one: D = D_0, ..., D_k = D'. Then for every set S

    P[M(D_0) in S] <= e^epsilon P[M(D_1) in S] + delta
                   <= e^(2 epsilon) P[M(D_2) in S] + e^epsilon delta + delta
                   <= ... <= e^(k epsilon) P[M(D_k) in S] + delta (1 + ... + e^((k - 1) epsilon)),

and the same from D_k to D_0. So M is (k epsilon, delta sum_{i < k} e^(i epsilon))-private for k
units; for fewer it is so all the more. The sum is (e^(k epsilon) - 1) / (e^epsilon - 1). Vadhan,
The Complexity of Differential Privacy (2017), Lemma 2.2, bounds it by k e^(k epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.formatting import shown
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import check_keys, matching, names, several, text, truth, whole
from dpsynth.errors import ArtifactError
from dpsynth.privacy.filter import exactly, upwards

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema


_MISSING = "drop|own"


@dataclass(frozen=True)
class Unit:
    """Whose presence is hidden, how it is told apart, and what of it counts.

    Attributes:
        name: the key column; None where each row is a unit.
        max_rows: at most this many rows of a unit count.
        keep: which ones: random, or window.
        trim: whether keys are compared without blanks at their ends.
        case: whether they are compared regardless of case.
        leading_zeros: whether 007 and 7 are two keys.
        missing_key: what a row without a key is: drop (left out) or own (a unit of its own).
        person: whom the ledger counts; None where it counts the unit itself.
        same_as: key columns of other extracts whose values are the same persons.
        max_units: how many units one person has at most.
        max_units_basis: why; None where a person is one unit by declaration.
    """

    name: str | None
    max_rows: int
    keep: str
    trim: bool
    case: bool
    leading_zeros: bool
    missing_key: str
    person: str | None
    same_as: tuple[str, ...]
    max_units: int
    max_units_basis: str | None

    def __repr__(self) -> str:
        """Name the unit and the bound."""
        return short_repr(self, self.name or "a row", f"at most {self.max_rows} rows")

    @classmethod
    def of(cls, schema: AnySchema) -> Self:
        """Read the unit off a schema."""
        settings = vars(schema.unit)
        same = {name: settings[name] for name in names(cls) if name in settings}
        return cls(name=schema.unit.column, **same)

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what ``to_dict`` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, or of the wrong type.
        """
        check_keys(document, place, names(cls))
        lines = {
            key: None if document[key] is None else _line(document[key], f"{place}.{key}")
            for key in ("name", "person", "max_units_basis")
        }
        unit = cls(
            **lines,
            max_rows=whole(document["max_rows"], f"{place}.max_rows", minimum=1),
            keep=_line(document["keep"], f"{place}.keep"),
            trim=truth(document["trim"], f"{place}.trim"),
            case=truth(document["case"], f"{place}.case"),
            leading_zeros=truth(document["leading_zeros"], f"{place}.leading_zeros"),
            missing_key=matching(document["missing_key"], f"{place}.missing_key", _MISSING, "rule"),
            same_as=several(_line, document["same_as"], f"{place}.same_as"),
            max_units=whole(document["max_units"], f"{place}.max_units", minimum=1),
        )
        if unit.max_units > 1 and (unit.person is None or unit.max_units_basis is None):
            raise ArtifactError(f"{place}: max_units is about a person, and has a basis")
        return unit

    def to_dict(self) -> dict[str, Any]:
        """Give the unit in JSON types."""
        return vars(self) | {"same_as": list(self.same_as)}

    @property
    def reading(self) -> tuple[bool, bool, bool, str] | None:
        """How keys tell one person from another; None where keys do not, or not alone."""
        if self.name is None or self.max_units > 1:
            return None
        return self.trim, self.case, self.leading_zeros, self.missing_key

    def cost(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Give what (epsilon, delta) for a unit is for the person whom the ledger counts."""
        return group_cost(epsilon, delta, self.max_units)


def _line(value: Any, place: str) -> str:
    if not text(value, place).isprintable():
        raise ArtifactError(f"{place}: one line of printable text is expected")
    return str(value)


EACH_ROW = Unit(
    name=None,
    max_rows=1,
    keep="random",
    trim=True,
    case=False,
    leading_zeros=True,
    missing_key="drop",
    person=None,
    same_as=(),
    max_units=1,
    max_units_basis=None,
)
"""Each row is a unit, and the ledger counts rows."""


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


_ROUNDING = 1 + 1e-12  # above what floats lose in the sum


@lru_cache(maxsize=4096)
def group_cost(epsilon: float, delta: float, units: int) -> tuple[float, float]:
    """Epsilon and delta for whoever has at most so many units, rounded up.

    Args:
        epsilon: for one unit, at least 0.
        delta: for one unit.
        units: at least 1.

    Returns:
        Both; delta is 1 where nothing is left of the guarantee.

    >>> group_cost(0.1, 1e-9, 1), group_cost(0.1, 1e-9, 3)[0]
    ((0.1, 1e-09), 0.3)
    """
    if units == 1:
        return epsilon, delta
    if (units - 1) * epsilon > _MAX_EXPONENT:
        return upwards(units * exactly(epsilon)), 1.0
    growth = math.fsum(math.exp(index * epsilon) for index in range(units))
    return upwards(units * exactly(epsilon)), min(1.0, delta * growth * _ROUNDING)


_MAX_EXPONENT = 700.0  # e^700 is about the largest float
