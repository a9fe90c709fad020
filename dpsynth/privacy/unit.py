"""The privacy unit of a fit: whose presence its epsilon is about, and whom a ledger counts.

The unit of a fit is a row, or all rows with one value of a key column, read in one way. The ledger
counts a *person* where the schema names one (a patient): a person is at most ``max_units`` units of
the table. That number is an assumption. A table without keys does not say whose a row is, so
nothing can check it, and certificates state it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import check_keys, matching, names, several, text, truth, whole
from dpsynth.errors import ArtifactError
from dpsynth.privacy.group_privacy import group_cost

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
