"""What a column declares of cells that hold several codes, such as ``J44.9;I10;E11.9``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.formatting import counted
from dpsynth._util.messages import shown

KEYS = ("separator", "most", "ordered")
MAX_PLACES = 20
"""Codes of a cell at most: each place is modelled as a column of its own."""


@dataclass(frozen=True)
class Several:
    """A cell holds a set of codes, or a list of them, each once.

    Attributes:
        separator: the one character between two codes.
        most: codes of a cell at most; public.
        ordered: whether their order means something, as where the principal diagnosis comes first.

    Example:
        >>> Several(";", 3).join(["I10", "J45"]), Several(";", 3, ordered=True).words
        ('I10;J45', "up to 3 codes, separated by ';', in an order that means something")
    """

    separator: str
    most: int
    ordered: bool = False

    def join(self, codes: Iterable[str]) -> str:
        """Write codes as one cell."""
        return self.separator.join(codes)

    def split(self, text: str) -> list[str]:
        """Return the codes of one cell, without blanks around them; empty parts are left out."""
        return [part for raw in text.split(self.separator) if (part := raw.strip())]

    @property
    def words(self) -> str:
        """Say it for a data dictionary."""
        order = "in an order that means something" if self.ordered else "without an order"
        return f"up to {self.most} codes, separated by {shown(self.separator)}, {order}"


def read_several(codes: FieldReader, known: Sequence[str]) -> Several | None:
    """Read ``several`` of a column's codes.

    Args:
        codes: the column's ``codes``.
        known: its categories, which must not hold the separator.

    Returns:
        None where it is not declared, or wrong, which is noted.
    """
    if not codes.has("several"):
        return None
    part = codes.part("several")
    part.refuse_unknown(KEYS)
    separator, most = part.values.get("separator"), part.whole("most", minimum=2)
    ordered = part.flag("ordered", False)
    if not isinstance(separator, str) or len(separator) != 1 or not _separates(separator):
        part.mistake(
            "separator", 'name the one character between two codes, in quotes, such as ";" or "|"'
        )
        return None
    if most is None:
        if not part.has("most"):
            part.gap("most", "is missing: the number of codes of a cell at most, a public number")
        return None
    if most > MAX_PLACES:
        part.mistake("most", f"is {most}; at most {MAX_PLACES} codes of a cell are modelled")
        return None
    if holding := [code for code in known if separator in code]:
        part.mistake(
            "separator",
            f"{shown(separator)} is part of {counted(len(holding), 'code')} of the list, such as "
            f"{shown(holding[0])}; codes are cut apart there, so choose another",
        )
        return None
    return Several(separator, most, ordered)


def _separates(character: str) -> bool:
    return character in ("\t", " ") or (
        character.isprintable() and not character.isalnum() and character not in ".'\""
    )
