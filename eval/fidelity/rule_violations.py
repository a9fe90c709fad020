"""Impossible records: rows that break a rule that the schema declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Estimate, Measure, PartResult, Rate, Tables, TableView, plain
from dpsynth.eval.core.estimate import LEVEL
from dpsynth.schema import Comparison, Joined, Literal, Name, Rule, Schema, Tree, canonical_number

Bools = npt.NDArray[np.bool_]

MEANING = (
    "Share of rows that break at least one rule of the schema: impossible records. The reference "
    "shows how many real rows do."
)


def rules(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Count broken rules in all rows of each table.

    A row whose missing values leave a rule undecided does not break it. The interval is the exact
    one of Clopper and Pearson for rows of the synthetic table; `chance` is the share of a bootstrap
    of the source's rows. Each entry of the details has the rule's ``text`` (also as ``rule``), in
    ``plain`` words what is true of a row that breaks it, and the share of such rows by table.
    """
    declared = tables.schema.rules
    if not declared:
        return PartResult((), {"rules": []}, ("the schema declares no rules",))
    details = [_detail(rule, tables) for rule in declared]
    broken = breaks(tables.synthetic, declared)
    hits, rows = int(broken.sum()), len(broken)
    low, high = Rate(hits, rows).bounds((1 - LEVEL) / 2)
    real = breaks(tables.source, declared)
    estimate = Estimate(
        hits / rows,
        low,
        high,
        rows,
        reference=None if tables.holdout is None else _share(tables.holdout, declared),
        chance=float(rng.choice(real, size=min(rows, len(real))).mean()),
    )
    measure = Measure("rules", "Impossible records", estimate, 0.0, MEANING)
    return PartResult((measure,), {"rules": details})


def breaks(view: TableView, declared: tuple[Rule, ...]) -> Bools:
    """Tell which rows break at least one of the rules."""
    broken = np.zeros(view.rows, dtype=bool)
    for rule in declared:
        broken |= ~rule.holds(view.frame if view.published is None else view.published)
    return broken


def _share(view: TableView, declared: tuple[Rule, ...]) -> float:
    return float(breaks(view, declared).mean())


def _detail(rule: Rule, tables: Tables) -> dict[str, Any]:
    holdout = tables.holdout
    return {
        "rule": rule.text,
        "text": rule.text,
        "plain": broken(rule, tables.codec.published),
        "source": plain(_share(tables.source, (rule,))),
        "synthetic": plain(_share(tables.synthetic, (rule,))),
        "holdout": None if holdout is None else plain(_share(holdout, (rule,))),
        "n": tables.synthetic.rows,
    }


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
WORDS = {"<": "below ", "<=": "at most ", ">": "above ", ">=": "at least ", "==": "", "!=": "not "}
TIMES = {**WORDS, "<": "before ", "<=": "not after ", ">": "after ", ">=": "not before "}


def broken(rule: Rule, schema: Schema) -> str:
    """Say in words what is true of a row that breaks the rule.

    Columns are called by their titles, categories by their labels.
    """
    return _words(rule.tree, schema, negated=True)


def _words(tree: Tree, schema: Schema, *, negated: bool) -> str:
    if isinstance(tree, Comparison):
        return _comparison(tree, schema, negated)
    if tree.word == "not":
        return _words(tree.parts[0], schema, negated=not negated)
    if tree.word == "implies":
        first = _words(tree.parts[0], schema, negated=not negated)
        second = _words(tree.parts[1], schema, negated=negated)
        return f"{_bracketed(tree.parts[0], first)}, {'but' if negated else 'or'} {second}"
    parts = [_bracketed(part, _words(part, schema, negated=negated)) for part in tree.parts]
    both = (tree.word == "and") != negated
    return (" and " if both else " or ").join(parts)


def _bracketed(tree: Tree, text: str) -> str:
    """Put brackets around what has parts of its own."""
    joined = isinstance(tree, Joined) and tree.word != "not"
    return f"({text})" if joined else text


def _comparison(link: Comparison, schema: Schema, negated: bool) -> str:
    left, sign, right = link.left, link.sign, link.right
    if isinstance(left, Literal):
        left, sign, right = right, MIRROR[sign], left
    assert isinstance(left, Name)  # the parser refuses two literals
    sign = OPPOSITE[sign] if negated else sign
    column = schema.column(left.text)
    words = TIMES if column.kind.is_point else WORDS
    if isinstance(right, Name):
        verb = "the same as " if sign == "==" else "not the same as " if sign == "!=" else ""
        return f"{_name(schema, left)} is {verb or words[sign]}{_name(schema, right)}"
    value = right.value
    if isinstance(value, bool):
        sign, value = "==", "true" if value == (sign == "==") else "false"
    elif isinstance(value, float):
        value = canonical_number(value)
    return f"{_name(schema, left)} is {words[sign]}{column.labels.get(value, value)}"


def _name(schema: Schema, operand: Name) -> str:
    return schema.column(operand.text).title or operand.text
