"""A floor: columns of its row that a number or date is never below, so that it is kept as a gap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Floor:
    """Which columns a column is never below.

    Attributes:
        bases: the other columns, and whether the column is above each, not equal to it.
        longest: largest gap above the lowest value that the others allow, in the column's unit
            (days or seconds for dates); None for what its bounds allow.

    >>> Floor((("diastolic", True), ("first", False))).words
    'above diastolic, at least first'
    """

    bases: tuple[tuple[str, bool], ...]
    longest: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The other columns."""
        return tuple(name for name, _ in self.bases)

    @property
    def words(self) -> str:
        """Say it in a few words."""
        return ", ".join(
            f"above {name}" if strict else f"at least {name}" for name, strict in self.bases
        )
