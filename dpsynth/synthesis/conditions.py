"""Rows under a condition: drawn where the condition holds, not thrown away where it does not.

A condition is cut into boxes of codes, and the generator is kept to each of them. A row of a box
that lies in an earlier one, too, is left out, so that no row counts twice.

A condition on rows as boxes of codes: where a conditioned model is to draw.

A box allows some codes of some columns. Every row that meets the condition has its codes in one of
the boxes. A row in a box need not meet it, since a code may stand for several values, and columns
that follow from several codes (gaps, parts of a date, formulas, cells with a status or a condition)
are not narrowed. So rows that are drawn from boxes are still compared with the condition itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec, Codes, code_ends
from dpsynth.errors import InputError
from dpsynth.models import Conditional, Generator, Law, Weighed
from dpsynth.schema import Column, Comparison, Literal, Name, Rule, Tree, needs

Floats = npt.NDArray[np.float64]


class ImpossibleCondition(InputError):
    """No row of the schema, or of what the model has learned, can meet a condition."""


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A generator that is kept to boxes.

    Attributes:
        boxes: of the condition.
        laws: of the generator within the bins of each box.
        shares: of all rows, within the bins of each box.
    """

    boxes: tuple[Box, ...]
    laws: tuple[Law, ...]
    shares: Floats

    @classmethod
    def of(cls, generator: Generator, condition: Rule, codec: Codec) -> Conditioned | None:
        """Keep a generator to a condition; None if it cannot be, or nothing would be gained.

        Raises:
            ImpossibleCondition: no row of the schema, or of what was learned, meets it.
        """
        boxes = boxes_of(condition, codec)
        if not isinstance(generator, Conditional) or any(not box.allowed for box in boxes):
            return None
        laws = [(box, *generator.given(box.allowed)) for box in boxes]
        kept = [(box, law, share) for box, law, share in laws if law is not None and share > 0]
        if not kept:
            raise ImpossibleCondition(
                "by the schema, or by what the model has learned, no row can meet "
                f"{condition.text!r}; loosen the condition"
            )
        boxes, found, shares = zip(*kept, strict=True)
        return cls(boxes, found, np.array(shares))

    def effective(self, rows: int) -> float | None:
        """Return about how many effective proposals so many rows are chosen from.

        Returns:
            None where rows are drawn under the condition, and not chosen.
        """
        chances = self.shares / self.shares.sum()
        found = [
            law.effective(max(1, round(rows * chance)))
            for law, chance in zip(self.laws, chances, strict=True)
            if isinstance(law, Weighed)
        ]
        return float(sum(found)) if found else None

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw codes in the boxes: about ``rows`` of them, fewer where boxes overlap."""
        parts = []
        chances = self.shares / self.shares.sum()
        for place, number in enumerate(rng.multinomial(rows, chances)):
            if number == 0:
                continue
            codes = self.laws[place].sample(int(number), rng, even=even)
            kept = self.boxes[place].holds(codes)
            for earlier in self.boxes[:place]:
                kept &= ~earlier.holds(codes)
            parts.append(codes[kept])
        found: Codes = np.concatenate(parts)
        return rng.permutation(found) if len(self.boxes) > 1 else found


Truth = npt.NDArray[np.bool_]

MOST = 200
"""Boxes of one condition at most; one of more is not narrowed."""
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, eq=False)
class Box:
    """Allowed codes of some columns, by place; all codes of the others."""

    allowed: Mapping[int, Truth]

    def both(self, other: Box) -> Box | None:
        """Return what two boxes have in common; None if that is nothing."""
        allowed = dict(self.allowed)
        for place, codes in other.allowed.items():
            allowed[place] = allowed[place] & codes if place in allowed else codes
        return Box(allowed) if all(codes.any() for codes in allowed.values()) else None

    def holds(self, codes: Codes) -> Truth:
        """Tell which rows of codes ``[rows, columns]`` lie in the box."""
        parts = [allowed[codes[:, place]] for place, allowed in self.allowed.items()]
        return np.logical_and.reduce(parts) if parts else np.ones(len(codes), dtype=bool)


def boxes_of(condition: Rule, codec: Codec) -> tuple[Box, ...]:
    """Return boxes that hold every row which certainly meets a condition.

    Args:
        condition: whose columns exist and can be compared.
        codec: of the table.

    Returns:
        The boxes, which may overlap; none if no row can meet the condition.
    """
    boxes = _boxes(condition.tree, codec, wanted=True)
    return (Box({}),) if boxes is None else tuple(boxes)


def _boxes(tree: Tree, codec: Codec, *, wanted: bool) -> list[Box] | None:
    """Return boxes where a tree is certainly true, or false; None if they would be too many."""
    if isinstance(tree, Comparison):
        return [box] if (box := _compared(tree, codec, wanted=wanted)) is not None else []
    if tree.word == "not":
        return _boxes(tree.parts[0], codec, wanted=not wanted)
    senses = [wanted] * len(tree.parts)
    if tree.word == "implies":  # the same as: not the first, or the second
        senses[0] = not wanted
    parts = [
        _boxes(part, codec, wanted=sense) for part, sense in zip(tree.parts, senses, strict=True)
    ]
    if (tree.word == "and") == wanted:
        return _product(parts)
    known = [part for part in parts if part is not None]
    either = [box for part in known for box in part]
    return either if len(known) == len(parts) and len(either) <= MOST else None


def _product(parts: list[list[Box] | None]) -> list[Box] | None:
    """Return the boxes in which all parts hold; parts that are too many narrow nothing."""
    common = [Box({})]
    for part in parts:
        if part is None:
            continue
        common = [box for one in common for two in part if (box := one.both(two)) is not None]
        if len(common) > MOST:
            return None
    return common


def _compared(link: Comparison, codec: Codec, *, wanted: bool) -> Box | None:
    """Return the box of one comparison; None if no code can meet it."""
    left, sign, right = link.left, link.sign, link.right
    if isinstance(left, Literal):
        left, sign, right = right, _TURNED[sign], left
    if not (isinstance(left, Name) and isinstance(right, Literal)):
        return Box({})
    sign = sign if wanted else _NEGATED[sign]
    column = codec.published.column(left.text)
    if (groups := column.grouping) is not None and stands_alone(groups.base, codec):
        allowed = _met(Comparison(left, sign, right), _groups(column, codec))
        return Box({codec.names.index(groups.base): allowed}) if allowed.any() else None
    if left.text not in codec.names or not stands_alone(left.text, codec):
        return Box({})
    allowed = _allowed(Comparison(left, sign, right), codec)
    return Box({codec.names.index(left.text): allowed}) if allowed.any() else None


def stands_alone(name: str, codec: Codec) -> bool:
    """Whether a cell of the published column is its code's, whatever else the row holds."""
    columns = codec.published.modelled
    column = next((column for column in columns if column.name == name), None)
    if column is None:  # a part of one: of the calendar, or a place of several codes
        return False
    related = needs(column) or column.calendar
    with_status = any(name in (other.name, other.status_of) for other in columns if other.status_of)
    return not related and not with_status


def _allowed(link: Comparison, codec: Codec) -> Truth:
    """Return which codes of a column hold a value that meets a comparison."""
    assert isinstance(link.left, Name)
    column = codec.schema.column(link.left.text)
    first, last = code_ends(column, codec.published.dialect.decimal)
    ordered = codec.cells[codec.names.index(column.name)] > 0
    if link.sign == "==" and ordered:  # between both ends of a code
        low, high = (Comparison(link.left, sign, link.right) for sign in ("<=", ">="))
        return _met(low, first) & _met(high, last)
    if link.sign == "!=" and ordered:  # a code of several values holds another one
        return _met(link, first) | _met(link, last) | first.ne(last).fillna(False).to_numpy(bool)
    return _met(link, first) | _met(link, last)


def _groups(column: Column, codec: Codec) -> pd.Series[Any]:
    """Return the group of each code of the column that a column is the group of."""
    assert column.grouping is not None
    base = codec.published.column(column.grouping.base)
    groups = column.grouping.groups(base.codes, base.levels)
    cells = code_ends(base, codec.published.dialect.decimal)[0]
    return pd.Series([groups.get(text) for text in cells.tolist()], dtype=object)


def _met(link: Comparison, cells: pd.Series[Any]) -> Truth:
    assert isinstance(link.left, Name)
    rule = Rule(link.left.text, link)
    return rule.holds(cells.to_frame(link.left.text), missing=False)
