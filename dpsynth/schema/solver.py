"""Whether a row can meet several rules at once: a search over the declared values of its columns.

Rules are cut into comparisons, one alternative of each ``or`` at a time. Comparisons of numbers and
times that are left (``x >= 3``, ``x < y``) are closed under taking the smaller of two solutions, so
raising each column to the least value that the others allow finds a solution if there is one
(Jeavons and Cooper, Tractable constraints on ordered domains, Artificial Intelligence 79, 1995).
Categories are narrowed as sets. The answer is exact, except where a search grows too large: then a
row counts as possible, so that nothing is refused that could be met.

Rules that contradict each other, or the declared bounds: found before any data is opened.

A missing value breaks no rule, so every set of rules can be met by rows with enough empty cells. A
rule that no row can meet with a value in each of its columns is a mistake all the same. The
smallest set of declarations that leaves no such row is named: each of them is taken away in turn,
and stays away while the others still contradict each other.

Conditions that no row can meet: `sample --where`, before anything is drawn.

A missing value never meets a condition, unlike a rule. So a condition is cut into alternatives of
comparisons that must all be true; the columns of one are filled in, and all others may be empty.
The parts that the user joined by ``and``, and the declarations of the schema, are taken away one
after the other, so that the fewest are named which contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

import numpy as np

from dpsynth._util.messages import listed
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.column import Column, Facts
from dpsynth.schema.lattice import Lattice, lattice_of
from dpsynth.schema.relations import converted
from dpsynth.schema.rules import Comparison, Joined, Literal, Name, Rule, Tree
from dpsynth.schema.types import TYPES

MAX_NODES = 2_000  # alternatives of a search
MAX_RAISES = 2_000  # of one column
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class TooLarge(Exception):
    """A search has too many alternatives."""


@dataclass(frozen=True)
class Values:
    """The values that cells of an ordered column can have, ascending: numbers, or seconds."""

    listed: tuple[float, ...] = ()
    lattice: Lattice | None = None
    scale: int = 1

    @classmethod
    def of(cls, column: Column) -> Values:
        """Return those of a column of numbers or times, with bounds or with categories."""
        if column.is_categorical:
            return cls(tuple(sorted(float(level) for level in column.levels)))
        kind, lattice = column.kind, lattice_of(column)
        if kind.is_time and not kind.seconds:  # its values are not equally far apart
            values = lattice.values(np.arange(lattice.points))
            return cls(tuple(converted(values, kind, TYPES["datetime"]).tolist()))
        return cls((), lattice, kind.seconds or 1)

    def least(self, bound: float, *, strict: bool) -> float | None:
        """Return the least value that is not below a bound, or above it if strict."""
        if self.lattice is None:
            met = (one for one in self.listed if (one > bound if strict else one >= bound))
            return next(met, None)
        place = int(self.lattice.positions(np.array([max(bound / self.scale, -1e300)]))[0])
        for at in (place, place + 1):
            value = self._at(at)
            if value is not None and (value > bound if strict else value >= bound):
                return value
        return None

    @property
    def first(self) -> float:
        """The least of all."""
        return self.listed[0] if self.lattice is None else float(self._at(0) or 0.0)

    def _at(self, place: int) -> float | None:
        assert self.lattice is not None
        if place >= self.lattice.points:
            return None
        return float(self.lattice.values(np.array([place]))[0]) * self.scale


@dataclass(frozen=True)
class State:
    """What is known of a row so far.

    Attributes:
        low: least value that each ordered column can have.
        below: bounds from above: column, bound, and whether it is excluded.
        edges: ordered pairs of columns: the lower, the higher, and whether they differ.
        levels: categories that are left of each other column.
    """

    low: Mapping[str, float]
    levels: Mapping[str, frozenset[str]]
    below: tuple[tuple[str, float, bool], ...] = ()
    edges: tuple[tuple[str, str, bool], ...] = ()


@dataclass
class Search:
    """A search for a row of given columns that breaks none of some rules.

    Attributes:
        columns: of the schema, by name.
        filled: those that have a value; all others are missing.
    """

    columns: Mapping[str, Column]
    filled: frozenset[str]
    nodes: int = 0
    values: dict[str, Values] = field(default_factory=dict)

    def possible(self, trees: Iterable[Tree]) -> bool:
        """Tell whether a row breaks none of these rules; True where that takes too long to find."""
        levels = {}
        for name in self.filled:
            column = self.columns[name]
            if column.kind.is_text or column.kind.is_truth:
                levels[name] = frozenset(column.levels)
            else:
                self.values[name] = Values.of(column)
        low = {name: values.first for name, values in self.values.items()}
        try:
            return self._met(State(low, levels), [(tree, True) for tree in trees], [])
        except TooLarge:
            return True

    def _met(
        self,
        state: State,
        goals: Sequence[tuple[Tree, bool]],
        either: list[list[tuple[Tree, bool]]],
    ) -> bool:
        """Tell whether all goals, and one of each list of alternatives, can be met together."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge
        goals, either = list(goals), list(either)
        while goals:
            tree, wanted = goals.pop()
            if isinstance(tree, Comparison):
                found = self._compared(state, tree, wanted=wanted)
                if found is None:
                    return False
                if isinstance(found, list):
                    either.append(found)
                else:
                    state = found
                continue
            senses = [wanted] * len(tree.parts)
            if tree.word == "not":
                senses = [not wanted]
            elif tree.word == "implies":
                senses[0] = not wanted
            parts = list(zip(tree.parts, senses, strict=True))
            if tree.word == "not" or (tree.word == "and") == wanted:
                goals += parts
            else:
                either.append(parts)
        raised = self._raised(state)
        if raised is None:
            return False
        if not either:
            return True
        either.sort(key=len)
        return any(self._met(raised, [part], either[1:]) for part in either[0])

    def _compared(
        self, state: State, link: Comparison, *, wanted: bool
    ) -> State | list[tuple[Tree, bool]] | None:
        """Return the state with a comparison met, alternatives, or None if it cannot be."""
        left, sign, right = link.left, link.sign, link.right
        names = [side.text for side in (left, right) if isinstance(side, Name)]
        if not self.filled.issuperset(names):
            return state  # a missing value leaves it undecided, so that it breaks nothing
        if isinstance(left, Literal):
            left, sign, right = right, _TURNED[sign], left
        assert isinstance(left, Name)
        sign = sign if wanted else NEGATED[sign]
        if sign == "!=" and left.text in self.values:
            return [(Comparison(left, one, right), True) for one in ("<", ">")]
        if isinstance(right, Name):
            return self._between(state, left, sign, right)
        if left.text in state.levels:
            word = str(right.value).lower() if isinstance(right.value, bool) else str(right.value)
            kept = state.levels[left.text] & {word}
            kept = kept if sign == "==" else state.levels[left.text] - {word}
            return replace(state, levels={**state.levels, left.text: kept}) if kept else None
        return self._bounded(state, left.text, sign, _number(right, self.columns[left.text]))

    def _bounded(self, state: State, name: str, sign: str, bound: float) -> State | None:
        low, below = dict(state.low), list(state.below)
        if sign in (">", ">=", "=="):
            least = self.values[name].least(bound, strict=sign == ">")
            if least is None:
                return None
            low[name] = max(low[name], least)
        if sign in ("<", "<=", "=="):
            below.append((name, bound, sign == "<"))
        return replace(state, low=low, below=tuple(below))

    def _between(
        self, state: State, left: Name, sign: str, right: Name
    ) -> State | list[tuple[Tree, bool]]:
        if left.text in state.levels:
            both = sorted(state.levels[left.text] | state.levels[right.text])
            return [
                (
                    Joined(
                        "and",
                        (
                            Comparison(left, "==", Literal(level)),
                            Comparison(right, sign, Literal(level)),
                        ),
                    ),
                    True,
                )
                for level in both
            ]
        edges = list(state.edges)
        if sign in ("<", "<=", "=="):
            edges.append((left.text, right.text, sign == "<"))
        if sign in (">", ">=", "=="):
            edges.append((right.text, left.text, sign == ">"))
        return replace(state, edges=tuple(edges))

    def _raised(self, state: State) -> State | None:
        """Raise columns to the least values that the others allow; None if one cannot be."""
        low, raises = dict(state.low), 0
        if _strict_circle(state.edges):
            return None
        changed = True
        while changed:
            changed = False
            for first, second, strict in state.edges:
                if low[second] > low[first] or (low[second] == low[first] and not strict):
                    continue
                least = self.values[second].least(low[first], strict=strict)
                if least is None:
                    return None
                low[second], changed = least, True
                raises += 1
                if raises > MAX_RAISES:
                    raise TooLarge
        for name, bound, excluded in state.below:
            if low[name] > bound or (excluded and low[name] == bound):
                return None
        return replace(state, low=low)


def _strict_circle(edges: Sequence[tuple[str, str, bool]]) -> bool:
    """Tell whether columns that cannot be equal are ordered in a circle."""
    after: dict[str, set[str]] = {}
    for first, second, _ in edges:
        after.setdefault(first, set()).add(second)
    for first, second, strict in edges:
        if not strict:
            continue
        reached, waiting = {second}, [second]
        while waiting:
            for other in after.get(waiting.pop(), set()) - reached:
                reached.add(other)
                waiting.append(other)
        if first in reached:
            return True
    return False


def _number(literal: Literal, column: Column) -> float:
    """Return a value of a rule as cells of a column are compared: a number, or seconds."""
    if not isinstance(literal.value, str):
        return float(literal.value)
    kind, seconds = column.kind, TYPES["datetime"]
    assert kind.read is not None and seconds.read is not None
    if not kind.is_time:
        return kind.read(literal.value, None)
    number = seconds.read(literal.value, None)
    if number == number:
        return number
    return float(converted(np.array(kind.read(literal.value, None)), kind, seconds))


@dataclass(frozen=True)
class Statement:
    """What a row must meet.

    Attributes:
        words: as it is declared.
        tree: what it says.
        columns: that it names.
        of: the column that is filled in only if it holds; None where it always must.
    """

    words: str
    tree: Tree
    columns: tuple[str, ...]
    of: str | None = None


def require_consistent(schema: Facts) -> None:
    """Refuse rules that contradict each other.

    Raises:
        SchemaError: no row with a value in each column of some rule can meet the rules; names the
            fewest declarations that make it so.
    """
    problems = [Problem("dpsynth.rules", words) for words in contradictions(schema)]
    if problems:
        raise SchemaError(schema.name, problems)


def contradictions(schema: Facts) -> Iterator[str]:
    """Yield what is contradictory, each set of rules once.

    >>> from dpsynth.schema.schema import Schema
    >>> print(*contradictions(Schema.load("demo")))
    <BLANKLINE>
    """
    statements = list(statements_of(schema))
    every = [name for one in statements for name in one.columns]
    if not _smallest(schema, statements, every):
        return  # a row without empty cells meets them all
    told: set[str] = set()
    for one in statements:
        smallest = _smallest(schema, statements, one.columns)
        if smallest and (words := _words(smallest)) not in told:
            told.add(words)
            yield words


def incomplete_only(schema: Facts) -> str | None:
    """Say which rules leave only rows with empty cells; None if a whole row can meet them all."""
    statements = list(statements_of(schema))
    every = [name for one in statements for name in one.columns]
    smallest = _smallest(schema, statements, every)
    return None if not smallest else _words(smallest)


def statements_of(schema: Facts) -> Iterator[Statement]:
    """Yield what rows must meet: rules, intervals, and the conditions of columns."""
    for rule in schema.rules:
        yield Statement(repr(rule.text), rule.tree, rule.columns)
    columns = {column.name: column for column in schema.modelled}
    for column in columns.values():
        interval = column.interval
        base = None if interval is None else columns.get(interval.base)
        same = base is not None and base.kind.unit == column.kind.unit
        if interval is not None and same and interval.shortest >= 0:
            first, last = (
                (column.name, interval.base) if interval.before else (interval.base, column.name)
            )
            sign = "<" if interval.shortest > 0 else "<="
            tree: Tree = Comparison(Name(first), sign, Name(last))
            key = "before" if interval.before else "after"
            words = f"{column.name!r} {key} {interval.base!r}"
            yield Statement(words, tree, (first, last))
        if column.present_if is not None:
            text = f"present_if of {column.name!r}: {column.present_if.text!r}"
            names = (column.name, *column.present_if.columns)
            yield Statement(text, column.present_if.tree, names, of=column.name)


def filled_in(
    schema: Facts, statements: Sequence[Statement], names: Iterable[str]
) -> frozenset[str]:
    """Return the columns that have a value where some have: required ones, and what these need."""
    filled = {*names, *(column.name for column in schema.modelled if column.required)}
    while added := {
        name for one in statements if one.of in filled for name in one.columns if name not in filled
    }:
        filled |= added
    return frozenset(filled)


def _smallest(
    schema: Facts, statements: Sequence[Statement], names: Iterable[str]
) -> list[Statement]:
    """Return the fewest statements that no row with values of these columns can meet."""
    filled = filled_in(schema, statements, names)
    columns = {column.name: column for column in schema.modelled}

    def possible(kept: Sequence[Statement]) -> bool:
        trees = [one.tree for one in kept if one.of is None or one.of in filled]
        return Search(columns, filled).possible(trees)

    kept = list(statements)
    if possible(kept):
        return []
    for one in statements:
        fewer = [other for other in kept if other is not one]
        if not possible(fewer):
            kept = fewer
    return kept


def _words(statements: Sequence[Statement]) -> str:
    names = list(dict.fromkeys(name for one in statements for name in one.columns))
    if len(statements) == 1:
        return (
            f"{statements[0].words} contradicts the declared bounds or categories: no row with "
            f"values of {listed(names)} can meet it; correct it"
        )
    return (
        f"contradict each other: no row with values of {listed(names)} can meet all of "
        f"{', '.join(one.words for one in statements)}; correct or remove one of them"
    )


MAX_ALTERNATIVES = 200  # of a condition; one of more is not refused
Links = tuple[Comparison, ...]


def impossible(schema: Facts, condition: Rule) -> str | None:
    """Say why no row of a schema can meet a condition; None if one may.

    Args:
        schema: with the published columns.
        condition: whose columns exist and can be compared.

    >>> from dpsynth.schema.schema import Schema
    >>> demo = Schema.load("demo")
    >>> impossible(demo, Rule.parse("age > 40 and sex == 'female'"))
    >>> impossible(demo, Rule.parse("age > 40 and sex == 'female' and age < 30"))
    "no row can meet both 'age > 40' and 'age < 30'; correct one of them"
    """
    tree = condition.tree
    parts: list[Tree] = [tree]
    if not isinstance(tree, Comparison) and tree.word == "and":
        parts = list(tree.parts)
    facts = list(statements_of(schema))
    if _possible(schema, parts, facts):
        return None
    for part in list(parts):
        fewer = [other for other in parts if other is not part]
        if not _possible(schema, fewer, facts):
            parts = fewer
    for fact in list(facts):
        rest = [other for other in facts if other is not fact]
        if not _possible(schema, parts, rest):
            facts = rest
    words = [repr(written(part)) for part in parts]
    if len(parts) + len(facts) == 1:
        return f"no row can meet {words[0]}: the declared bounds or categories exclude it"
    if len(parts) == 2 and not facts:
        return f"no row can meet both {words[0]} and {words[1]}; correct one of them"
    if not facts:
        return f"no row can meet all of {listed(words)}; correct one of them"
    declared = listed([one.words for one in facts])
    return f"no row can meet {' and '.join(words)} beside what the schema declares: {declared}"


def _possible(schema: Facts, parts: Sequence[Tree], facts: Sequence[Statement]) -> bool:
    columns = {column.name: column for column in schema.modelled}
    every = product(*(_some(_alternatives(part, wanted=True)) for part in parts))
    tried = list(islice(every, MAX_ALTERNATIVES + 1))
    if len(tried) > MAX_ALTERNATIVES:
        return True
    for chosen in tried:
        links = [link for alternative in chosen for link in alternative]
        named = [
            side.text
            for link in links
            for side in (link.left, link.right)
            if isinstance(side, Name)
        ]
        filled = filled_in(schema, facts, named)
        rules = [one.tree for one in facts if one.of is None or one.of in filled]
        if Search(columns, filled).possible([*links, *rules]):
            return True
    return False


def _alternatives(tree: Tree, *, wanted: bool) -> Iterator[Links]:
    """Yield lists of comparisons; if all of one are true, so is the tree, or else it is false."""
    if isinstance(tree, Comparison):
        yield (tree if wanted else Comparison(tree.left, NEGATED[tree.sign], tree.right),)
        return
    senses = [wanted] * len(tree.parts)
    if tree.word == "not":
        senses = [not wanted]
    elif tree.word == "implies":
        senses[0] = not wanted
    parts = [
        _alternatives(part, wanted=sense) for part, sense in zip(tree.parts, senses, strict=True)
    ]
    if tree.word == "not" or (tree.word == "and") == wanted:
        for chosen in product(*map(_some, parts)):
            yield tuple(link for links in chosen for link in links)
    else:
        for part in parts:
            yield from part


def _some(alternatives: Iterator[Links]) -> list[Links]:
    return list(islice(alternatives, MAX_ALTERNATIVES + 1))


def written(tree: Tree) -> str:
    """Write a part of a condition in the language of rules.

    >>> written(Rule.parse("not (a in (1, 2)) or `b c` == 'x'").tree)
    "not (a == 1 or a == 2) or `b c` == 'x'"
    """
    if isinstance(tree, Comparison):
        return f"{_side(tree.left)} {tree.sign} {_side(tree.right)}"
    parts = [
        written(part)
        if isinstance(part, Comparison) or part.word == "not"
        else f"({written(part)})"
        for part in tree.parts
    ]
    if tree.word == "not":
        inner = parts[0] if parts[0].startswith("(") else f"({parts[0]})"
        return f"not {inner}"
    return f" {tree.word} ".join(parts)


def _side(side: Name | Literal) -> str:
    if isinstance(side, Name):
        return side.text if side.text.isidentifier() else f"`{side.text}`"
    if isinstance(side.value, bool):
        return str(side.value).lower()
    if isinstance(side.value, str):
        return repr(side.value)
    return str(int(side.value)) if side.value == int(side.value) else repr(side.value)
