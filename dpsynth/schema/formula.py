"""A derived column's formula: arithmetic over the columns of a row, parsed and never executed.

Grammar, loosest first; ``^`` groups to the right::

    sum      = product { ("+" | "-") product }
    product  = signed { ("*" | "/") signed }
    signed   = "-" signed | power
    power    = operand [ "^" signed ]
    operand  = number | column | `column with any characters` | "(" sum ")"
             | ("days" | "years") "(" date "," date ")"
             | ("year" | "month" | "weekday") "(" date ")"

``days`` counts days from the first date to the second, ``years`` completed years, as ages are;
``weekday`` is 1 for Monday to 7 for Sunday.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.schema.relations import completed_years

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_LENGTH = 500
MAX_DEPTH = 20
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<word>[^\W\d]\w*)
    | `(?P<quoted>[^`]+)`
    | (?P<sign>[-+*/^(),])
    )""",
    re.VERBOSE,
)
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": np.power,
}
FUNCTIONS = {"days": 2, "years": 2, "year": 1, "month": 1, "weekday": 1}


@dataclass(frozen=True)
class Part:
    """A node: ``number``, ``column``, a function of dates, or a sign between parts."""

    kind: str
    value: float | str = 0.0
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Formula:
    """Arithmetic over the columns of a row, kept as its text and its tree.

    >>> bmi = Formula.parse("weight / (height / 100) ^ 2")
    >>> bmi.numbers, bmi.dates
    (('weight', 'height'), ())
    >>> bmi.values({"weight": np.array([80.0]), "height": np.array([200.0])})
    array([20.])
    """

    text: str
    tree: Part = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read a formula; nothing in it is executed.

        Raises:
            InputError: it is not a formula; says at which character and why.
        """
        text = text.strip()
        if len(text) > MAX_LENGTH:
            raise InputError(f"a formula has at most {MAX_LENGTH} characters")
        return cls(text, _Parser(text).whole())

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that are taken as numbers, each once, in order."""
        return tuple(dict.fromkeys(name for name, dated in _names(self.tree) if not dated))

    @property
    def dates(self) -> tuple[str, ...]:
        """The columns that are taken as dates, each once, in order."""
        return tuple(dict.fromkeys(name for name, dated in _names(self.tree) if dated))

    def values(self, cells: Mapping[str, Floats]) -> Floats:
        """Compute the formula for each row; NaN where a cell is missing or there is no result.

        Args:
            cells: numbers of each column, dates as days since 1970-01-01, NaN where missing.
        """
        size = len(next(iter(cells.values())))
        with np.errstate(all="ignore"):
            values = np.broadcast_to(_value(self.tree, cells), size).astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def _names(part: Part, dated: bool = False) -> list[tuple[str, bool]]:
    if part.kind == "column":
        return [(str(part.value), dated)]
    below = part.kind in FUNCTIONS
    return [name for inner in part.parts for name in _names(inner, below)]


def _value(part: Part, cells: Mapping[str, Floats]) -> Any:
    if part.kind == "number":
        return np.float64(part.value)
    if part.kind == "column":
        return cells[str(part.value)]
    values = [_value(inner, cells) for inner in part.parts]
    if part.kind not in FUNCTIONS:
        return _SIGNS[part.kind](*values)
    missing = np.isnan(values).any(axis=0)
    days = [np.where(missing, 0.0, value).astype(np.int64) for value in values]
    return np.where(missing, np.nan, _of_dates(part.kind, days))


def _of_dates(function: str, days: list[Ints]) -> Ints:
    """Compute a function of dates."""
    months = days[0].astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    match function:
        case "days":
            return days[1] - days[0]
        case "years":
            return completed_years(days[0], days[1])
        case "year":
            return 1970 + months // 12
        case "month":
            return 1 + months % 12
    return 1 + (days[0] + 3) % 7  # 1970 began on a Thursday


class _Parser:
    """Where in the tokens the parser stands, and how deep in brackets."""

    def __init__(self, text: str) -> None:
        self.text, self.index, self.depth = text, 0, 0
        self.tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                place += len(text[place:]) - len(text[place:].lstrip())
                raise self.mistake("nothing that a formula can hold begins here", place)
            kind = match.lastgroup
            self.tokens.append((kind, match[kind], match.start(kind)))
            place = match.end()
        self.tokens.append(("end", "", len(text)))

    def whole(self) -> Part:
        tree = self.sum()
        if self.tokens[self.index][0] != "end":
            raise self.mistake("a sign + - * / ^ is expected")
        if not _names(tree):
            raise self.mistake("a formula needs a column", 0)
        return tree

    def sum(self) -> Part:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.mistake(f"brackets nest deeper than {MAX_DEPTH}")
        left = self.product()
        while sign := self.took("+", "-"):
            left = Part(sign, parts=(left, self.product()))
        self.depth -= 1
        return left

    def product(self) -> Part:
        left = self.signed()
        while sign := self.took("*", "/"):
            left = Part(sign, parts=(left, self.signed()))
        return left

    def signed(self) -> Part:
        negated = False
        while self.took("-"):
            negated = not negated
        power = self.power()
        return Part("-", parts=(Part("number", 0.0), power)) if negated else power

    def power(self) -> Part:
        left = self.operand()
        if not self.took("^"):
            return left
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.mistake(f"powers nest deeper than {MAX_DEPTH}")
        right = self.signed()
        self.depth -= 1
        return Part("^", parts=(left, right))

    def operand(self) -> Part:
        kind, text, place = self.tokens[self.index]
        if kind in ("end", "sign") and text != "(":
            raise self.mistake("a column or a number is expected")
        self.index += 1
        if text == "(" and kind == "sign":
            inner = self.sum()
            self.need(")", "a closing bracket is missing")
            return inner
        if kind == "number":
            if not math.isfinite(float(text)):
                raise self.mistake("the number is too large", place)
            return Part("number", float(text))
        if kind == "word" and self.took("("):
            return self.function(text, place)
        return Part("column", text)

    def function(self, name: str, place: int) -> Part:
        if name not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise self.mistake(f"there is no function {name!r}; functions: {known}", place)
        parts = [self.date()]
        while self.took(","):
            parts.append(self.date())
        self.need(")", "a closing bracket is missing")
        if len(parts) != FUNCTIONS[name]:
            raise self.mistake(f"{name} takes {FUNCTIONS[name]} column(s), not {len(parts)}", place)
        return Part(name, parts=tuple(parts))

    def date(self) -> Part:
        part = self.operand()
        if part.kind != "column":
            raise self.mistake("a function of dates takes names of columns")
        return part

    def took(self, *signs: str) -> str | None:
        kind, text, _ = self.tokens[self.index]
        if kind != "sign" or text not in signs:
            return None
        self.index += 1
        return text

    def need(self, sign: str, reason: str) -> None:
        if not self.took(sign):
            raise self.mistake(reason)

    def mistake(self, reason: str, place: int | None = None) -> InputError:
        at = self.tokens[self.index][2] if place is None else place
        return InputError(f"formula {self.text!r}, character {at + 1}: {reason}")
