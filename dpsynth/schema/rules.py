"""Rules: what must hold within one row, such as ``sbp > dbp``.

A rule is a comparison between columns and values, or of a column with a list (``in (...)``), or
several of them joined by ``and``, ``or``, ``not`` and ``implies`` (grammar below).
Missing values follow Kleene's strong three-valued logic (Introduction to Metamathematics, 1952,
section 64): a comparison with a missing operand is unknown, unknown parts propagate, and an unknown
rule is not broken. So ``A implies B`` holds where A cannot be decided.

From the text of a rule to its tree: a small recursive-descent parser, nothing is evaluated.

Grammar, loosest first; ``implies`` groups to the right::

    rule        = either [ "implies" rule ]
    either      = both { "or" both }
    both        = negation { "and" negation }
    negation    = "not" negation | "(" rule ")" | comparison
    comparison  = operand sign operand { sign operand } | name [ "not" ] "in" values
    values      = "(" value { "," value } ")"
    sign        = "<" | "<=" | ">" | ">=" | "==" | "=" | "!="
    operand     = name | `name with any characters` | value
    value       = number | 'text' | "text" | true | false

A chain ``0 <= a <= b`` means that each link holds. ``a in (1, 2)`` is short for
``(a == 1 or a == 2)``, and ``a not in (1, 2)`` for its negation, so that both follow the same logic
of missing values.
``in`` is no reserved word: a column may have that name.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth._util.clock import clock_seconds
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import canonical_number
from dpsynth.schema.types import TYPES, ColumnType, Family

if TYPE_CHECKING:
    import pandas as pd


DATE, CLOCK = Family.TIME.value, Family.CLOCK.value
Truth = npt.NDArray[np.bool_]

_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Ruled(Protocol):
    """What a rule needs to know of a column."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def roles(self) -> frozenset[str]:
        """Its roles."""

    @property
    def kind(self) -> ColumnType:
        """Its type."""

    @property
    def modelled(self) -> bool:
        """Whether it is in the synthetic table."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Its categories."""

    @property
    def several(self) -> object:
        """How a cell holds several codes; None where it holds one value."""

    @property
    def discovers(self) -> bool:
        """Whether a fit finds out which codes occur."""


@dataclass(frozen=True)
class Rule:
    """One condition on a row, kept as its text and its tree.

    Attributes:
        text: as it is written.
        tree: what it says.
        order: whether it is kept by construction: the later column is modelled as a gap.
        longest: largest such gap, in the unit of the later column; None for what bounds allow.
    """

    text: str
    tree: Tree = field(compare=False, repr=False)
    order: bool = False
    longest: float | None = None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule; nothing in it is evaluated.

        >>> Rule.parse("age >= 18 implies `weight (kg)` > 30").columns
        ('age', 'weight (kg)')

        Raises:
            InputError: it is not a rule; says at which character and why.
        """
        return cls(text.strip(), parse(text))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rule names, each once, in order."""
        names = (
            operand.text
            for comparison in _comparisons(self.tree)
            for operand in (comparison.left, comparison.right)
            if isinstance(operand, Name)
        )
        return tuple(dict.fromkeys(names))

    def holds(self, frame: pd.DataFrame, *, missing: bool = True) -> Truth:
        """Tell for each row of decoded values whether the rule holds.

        Args:
            frame: numbers, strings, booleans, dates and times, as the codec decodes them.
            missing: the answer for a row whose missing values leave the rule undecided. True suits
                a rule ("not broken"), False a filter ("certainly satisfied").

        Returns:
            A boolean array with one entry a row.

        Raises:
            InputError: a column is absent, or two operands cannot be compared.
        """
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise InputError(f"rule {self.text!r} needs columns that are absent: {listed(absent)}")
        true, false = _decide(self.tree, frame, self.text)
        return ~false if missing else true

    def problems(self, columns: Iterable[Ruled]) -> list[str]:
        """List what is wrong with the rule for a table of these columns; empty if nothing is."""
        known = {column.name: column for column in columns}
        texts = (text for link in _comparisons(self.tree) for text in _problems(link, known))
        return list(dict.fromkeys(texts))  # each once: a list of values repeats its column


def _comparisons(tree: Tree) -> Iterator[Comparison]:
    if isinstance(tree, Comparison):
        yield tree
    else:
        for part in tree.parts:
            yield from _comparisons(part)


def _decide(tree: Tree, frame: pd.DataFrame, text: str) -> tuple[Truth, Truth]:
    """Return where the tree is certainly true and where it is certainly false."""
    if isinstance(tree, Comparison):
        return _compare(tree, frame, text)
    parts = [_decide(part, frame, text) for part in tree.parts]
    if tree.word == "not":
        return parts[0][1], parts[0][0]
    if tree.word == "implies":  # the same as: not the first, or the second
        parts[0] = (parts[0][1], parts[0][0])
    trues, falses = [part[0] for part in parts], [part[1] for part in parts]
    if tree.word == "and":
        return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
    return np.logical_or.reduce(trues), np.logical_and.reduce(falses)


def _compare(link: Comparison, frame: pd.DataFrame, text: str) -> tuple[Truth, Truth]:
    kinds, values = [], []
    absent = np.zeros(len(frame), dtype=bool)
    for operand in (link.left, link.right):
        if isinstance(operand, Name):
            kind, value, gaps = values_of(frame[operand.text])
            absent |= gaps
        else:
            kind, value = _literal_kind(operand.value), operand.value
        kinds.append(kind)
        values.append(value)
    if "empty" in kinds:
        return absent & False, absent & False
    wrong = _mismatch(link, kinds[0], kinds[1], {*spelled_families()} - {Family.NUMBER})
    family = next((kind for kind in kinds if kind != "text"), "text")
    if family == "number" and any(isinstance(value, str) for value in values):
        numbers = [_as_value(value, family) for value in values]  # such as a duration
        if all(number is not None for number in numbers):
            values, wrong = numbers, None
    elif not wrong and family in spelled_families():
        values = [_as_value(value, family) for value in values]
    if wrong or any(value is None for value in values):
        raise InputError(f"rule {text!r} {wrong or _no_value(family)}")
    true = np.broadcast_to(_SIGNS[link.sign](*values), absent.shape).astype(bool)
    return true & ~absent, ~true & ~absent


def values_of(series: pd.Series[Any]) -> tuple[str, Any, Truth]:
    """Return the kind of a column's values, the values as an array, and where they are missing."""
    import pandas as pd

    if series.dtype == object and pd.api.types.infer_dtype(series, skipna=False) == "string":
        return "text", series.to_numpy(), np.zeros(len(series), dtype=bool)  # the usual, quickly
    gaps = series.isna().to_numpy(dtype=bool)
    if gaps.all():
        return "empty", None, gaps
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "categorical":
        series = series.astype(object)
        kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind == "boolean":
        return "boolean", series.fillna(False).to_numpy(dtype=bool), gaps
    if kind in ("integer", "floating", "mixed-integer-float"):
        return "number", series.astype("Float64").to_numpy(dtype=float, na_value=np.nan), gaps
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":  # without objects, quickly
        return "date", series.to_numpy().astype("datetime64[us]"), gaps
    values = series.to_numpy(dtype=object)
    if kind in ("date", "datetime", "datetime64"):
        if kind == "datetime64":
            return "date", series.to_numpy(dtype="datetime64[us]"), gaps
        return "date", np.where(gaps, np.datetime64("NaT"), values).astype("datetime64[us]"), gaps
    if kind == "time":
        seconds = [np.nan if gap else clock_seconds(v) for v, gap in zip(values, gaps, strict=True)]
        return CLOCK, np.array(seconds), gaps
    return "text", np.where(gaps, "", values), gaps


def _literal_kind(value: float | str | bool) -> str:
    if isinstance(value, str):
        return "text"
    return "boolean" if isinstance(value, bool) else "number"


def _as_value(value: Any, family: str, kind: ColumnType | None = None) -> Any:
    """Turn a text literal into what values of a family are compared by, None if it is none of them.

    Args:
        value: the literal; an array of values is left alone.
        family: of the other operand: dates are compared as datetime64, others by their number.
        kind: the type of the other operand, if it is known.
    """
    if not isinstance(value, str):
        return value
    if family == DATE:
        with suppress(ValueError):
            return np.datetime64(datetime.fromisoformat(value).replace(tzinfo=None), "us")
    for one in TYPES.values() if kind is None else (kind,):
        if not one.is_spelled or family not in (one.family, "number" if one.is_number else None):
            continue
        assert one.read is not None
        if (number := one.read(value, None)) == number:
            return np.datetime64(one.bound(number), "us") if family == DATE else number
    return None


def spelled_families() -> dict[str, ColumnType]:
    """Return a type of each family whose values are compared with texts."""
    return {one.family.value: one for one in TYPES.values() if one.is_spelled}


def _no_value(family: str) -> str:
    if family == DATE:
        return "compares a date with a text that is not a date; write dates like '2015-12-31'"
    word = "times" if family == CLOCK else f"{family}s"
    example = spelled_families()[family].example
    return f"compares a {family} with a text that is none; write {word} like {example!r}"


def _mismatch(link: Comparison, left: str, right: str, spelled: Collection[str]) -> str | None:
    """Say why two kinds cannot be compared, if so.

    Args:
        link: the comparison.
        left: the kind of what stands left of its sign.
        right: the other one.
        spelled: the kinds whose values compare with a text. Numbers are among them only where the
            type of the column is known, since the text of most numbers is the number.
    """
    literal = any(isinstance(side, Literal) for side in (link.left, link.right))
    other = right if left == "text" else left
    if left != right and not (literal and "text" in (left, right) and other in spelled):
        quotes = literal and {left, right} == {"text", "number"}
        hint = "text is written in quotes, numbers without" if quotes else "use one kind"
        return f"compares {left} with {right}; {hint}"
    if left == right and left in ("text", "boolean") and link.sign not in ("==", "!="):
        return f"orders {left}, which has no order; use == or !="
    return None


def _problems(link: Comparison, known: dict[str, Ruled]) -> list[str]:
    """Check one comparison against the declared columns."""
    kinds = []
    for side in (link.left, link.right):
        if isinstance(side, Literal):
            kinds.append(_literal_kind(side.value))
        elif side.text not in known:
            return [
                f"there is no column {shown(side.text)}{did_you_mean(side.text, known)}; "
                "a value of text is written in quotes"
            ]
        elif not known[side.text].modelled:
            roles = listed(sorted(known[side.text].roles))
            return [f"column {side.text!r} has role {roles} and is not in the synthetic table"]
        elif known[side.text].several is not None:
            return [f"column {side.text!r} holds several codes; rules compare single values"]
        else:
            kinds.append(known[side.text].kind.family)
    named = [known[side.text].kind for side in (link.left, link.right) if isinstance(side, Name)]
    wrong = _mismatch(link, kinds[0], kinds[1], {one.family for one in named if one.is_spelled})
    if wrong:
        return [f"it {wrong}"]
    problems = []
    for side, other in ((link.left, link.right), (link.right, link.left)):
        if isinstance(side, Literal) and isinstance(other, Name):
            column = known[other.text]
            if column.kind.is_spelled:
                family = column.kind.family
                value = _as_value(side.value, family, column.kind)
                problems += [f"it {_no_value(family)}"] if value is None else []
            elif "boolean" not in kinds and column.levels and link.sign in ("==", "!="):
                text = side.value if isinstance(side.value, str) else canonical_number(side.value)
                if text not in column.levels:
                    meant = did_you_mean(text, column.levels)
                    if column.discovers:
                        meant += "; a code that no fit has found stands as its group or as other"
                    problems.append(f"column {other.text!r} has no category {shown(text)}{meant}")
    return problems


MAX_LENGTH = 2_000
MAX_DEPTH = 40


@dataclass(frozen=True)
class Name:
    """A column."""

    text: str


@dataclass(frozen=True)
class Literal:
    """A value written in the rule."""

    value: float | str | bool


@dataclass(frozen=True)
class Comparison:
    """Two operands and the sign between them: ``< <= > >= == !=``."""

    left: Name | Literal
    sign: str
    right: Name | Literal


@dataclass(frozen=True)
class Joined:
    """Parts joined by ``and``, ``or``, ``implies`` (two parts) or ``not`` (one)."""

    word: str
    parts: tuple[Tree, ...]


Tree = Comparison | Joined


def ordered(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that the comparisons of a rule order, the earlier first."""
    if isinstance(tree, Joined):
        for part in tree.parts:
            yield from ordered(part)
    elif isinstance(tree.left, Name) and isinstance(tree.right, Name):
        if tree.sign in ("<", "<="):
            yield tree.left.text, tree.right.text
        elif tree.sign in (">", ">="):
            yield tree.right.text, tree.left.text


_TOKENS = r"""\s*(?:
      (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<word>[^\W\d]\w*)
    | `(?P<quoted>[^`]+)`
    | '(?P<single>[^']*)'
    | "(?P<double>[^"]*)"
    | (?P<sign><=|>=|==|!=|<|>|=)
    | (?P<bracket>[()])
    | (?P<comma>,)
    )"""
TOKEN = re.compile(_TOKENS, re.VERBOSE)
DOTTED = re.compile(_TOKENS[:-1] + r"| (?P<dot>\.))", re.VERBOSE)  # table.column
_WORDS = frozenset({"and", "or", "not", "implies"})


def quoted(name: str) -> str:
    """Write the name of a column as a rule does.

    >>> quoted("age"), quoted("pack years"), quoted("or")
    ('age', '`pack years`', '`or`')
    """
    is_word = re.fullmatch(r"[^\W\d]\w*", name) is not None
    return name if is_word and name not in _WORDS else f"`{name}`"


@dataclass(frozen=True)
class Token:
    """A part of a rule that is not divided further, and where it begins."""

    kind: str
    text: str
    place: int


def parse(text: str) -> Tree:
    """Parse a rule.

    Raises:
        InputError: it is empty, too long, nested too deeply, or not a rule; says where and why.
    """
    return Parser(text).whole()


def tokens_of(text: str, pattern: re.Pattern[str]) -> list[Token]:
    """Split a rule into its tokens, the last one of kind ``end``."""
    tokens, place = [], 0
    while text[place:].strip():
        match = pattern.match(text, place)
        if match is None or match.lastgroup is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise mistake_at(text, place, "nothing that a rule can hold begins here")
        kind = match.lastgroup
        start = match.start(kind)
        if kind == "word" and match[kind] in _WORDS:
            kind = "keyword"
        tokens.append(Token(kind, match[match.lastgroup], start))
        place = match.end()
    return [*tokens, Token("end", "", len(text))]


def mistake_at(text: str, place: int, reason: str) -> InputError:
    """Word a mistake at a character of a rule, counted from 0."""
    return InputError(f"rule {text!r}, character {place + 1}: {reason}")


class Parser:
    """Where in the tokens the parser stands, and how deep in brackets.

    Another language of rules says what its operands are, see `dpsynth.schema.linked.temporal`.
    """

    pattern = TOKEN

    def __init__(self, text: str) -> None:
        """Split a text into tokens.

        Raises:
            InputError: it is too long, or holds what no rule can hold.
        """
        if len(text) > MAX_LENGTH:
            raise InputError(
                f"a rule has at most {MAX_LENGTH} characters; split it into several rules"
            )
        self.text = text
        self.tokens = tokens_of(text, self.pattern)
        self.index = 0
        self.depth = 0

    def whole(self) -> Tree:
        """Read the whole text."""
        tree = self.rule()
        if self.next.kind != "end":
            raise self.mistake("the rule should end here; join conditions with and, or, implies")
        return tree

    def rule(self) -> Tree:
        """Read what ``implies`` joins."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.mistake(f"brackets nest deeper than {MAX_DEPTH}")
        tree = self.either()
        if self.took("keyword", "implies"):
            tree = Joined("implies", (tree, self.rule()))
        self.depth -= 1
        return tree

    def either(self) -> Tree:
        """Read what ``or`` joins."""
        parts = [self.both()]
        while self.took("keyword", "or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Joined("or", tuple(parts))

    def both(self) -> Tree:
        """Read what ``and`` joins."""
        parts = [self.negation()]
        while self.took("keyword", "and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def negation(self) -> Tree:
        """Read a condition after ``not``, or in brackets."""
        negated = False
        while self.took("keyword", "not"):
            negated = not negated
        if self.took("bracket", "("):
            tree = self.rule()
            if not self.took("bracket", ")"):
                raise self.mistake("a closing bracket is missing")
        else:
            tree = self.comparison()
        return Joined("not", (tree,)) if negated else tree

    def comparison(self) -> Tree:
        """Read a chain of comparisons, or a list."""
        left = self.operand()
        if self.membership():
            return self.one_of(left)
        links: list[Tree] = []
        while self.next.kind == "sign":
            sign = self.take().text
            place = self.next.place
            right = self.operand()
            if isinstance(left, Literal) and isinstance(right, Literal):
                raise mistake_at(
                    self.text, place, "compare a column with something, not two values"
                )
            links.append(Comparison(left, "==" if sign == "=" else sign, right))
            left = right
        if not links:
            raise self.mistake(
                "a comparison is expected: < <= > >= == or != and a value, or in and values in "
                "brackets"
            )
        return links[0] if len(links) == 1 else Joined("and", tuple(links))

    def membership(self) -> bool:
        """Whether ``in`` or ``not in`` comes next."""
        place = self.index + ((self.next.kind, self.next.text) == ("keyword", "not"))
        token = self.tokens[min(place, len(self.tokens) - 1)]
        return (token.kind, token.text) == ("word", "in")

    def one_of(self, left: Name | Literal) -> Tree:
        """Read the values of a membership test, and spell it out as comparisons."""
        negated = self.took("keyword", "not")
        if isinstance(left, Literal):
            raise self.mistake("write a column before in, and values after it")
        self.take()
        example = "such as in ('a', 'b') or in (1, 2)"
        if not self.took("bracket", "("):
            raise self.mistake(f"in needs values in brackets, {example}")
        links: list[Tree] = [Comparison(left, "==", self.value(example))]
        while self.took("comma", ","):
            links.append(Comparison(left, "==", self.value(example)))
        if not self.took("bracket", ")"):
            raise self.mistake("a comma and another value, or a closing bracket, is expected")
        tree = links[0] if len(links) == 1 else Joined("or", tuple(links))
        return Joined("not", (tree,)) if negated else tree

    def value(self, example: str) -> Literal:
        """Read one value of a list."""
        token = self.next
        if token.kind in ("bracket", "comma", "end"):
            raise self.mistake(f"a value is expected, {example}")
        value = self.operand()
        if isinstance(value, Name):
            raise mistake_at(
                self.text, token.place, f"in compares with values, {example}; text needs quotes"
            )
        return value

    def operand(self) -> Name | Literal:
        """Read a column or a value."""
        token = self.next
        if token.kind in ("end", "keyword", "sign", "bracket", "comma"):
            raise self.mistake("a column or a value is expected")
        self.take()
        if token.kind == "number":
            value = float(token.text)
            if not math.isfinite(value):
                raise mistake_at(self.text, token.place, "the number is too large")
            return Literal(value)
        if token.kind in ("single", "double"):
            return Literal(token.text)
        if token.kind == "word" and token.text in ("true", "false"):
            return Literal(token.text == "true")
        return Name(token.text)

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.index]

    def take(self) -> Token:
        """Take the next token."""
        token = self.next
        self.index += 1
        return token

    def took(self, kind: str, text: str) -> bool:
        """Take the next token if it is this one."""
        if (self.next.kind, self.next.text) != (kind, text):
            return False
        self.index += 1
        return True

    def mistake(self, reason: str) -> InputError:
        """Word a mistake at the next token."""
        return mistake_at(self.text, self.next.place, reason)
