"""From the text of a rule to its tree: a small recursive-descent parser, nothing is evaluated.

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
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpsynth.errors import InputError

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
