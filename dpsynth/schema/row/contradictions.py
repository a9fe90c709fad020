"""Rules that contradict each other, or the declared bounds: found before any data is opened.

A missing value breaks no rule, so every set of rules can be met by rows with enough empty cells. A
rule that no row can meet with a value in each of its columns is a mistake all the same. The
smallest set of declarations that leaves no such row is named: each of them is taken away in turn,
and stays away while the others still contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpsynth._util.messages import listed
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.facts import Facts
from dpsynth.schema.row.assignments import Search
from dpsynth.schema.rule_parser import Comparison, Name, Tree


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
        same = base is not None and base.kind.in_days == column.kind.in_days
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
