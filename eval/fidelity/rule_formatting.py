"""Plain words for a row that breaks a rule: "diastolic pressure is at least systolic pressure"."""

from __future__ import annotations

from dpsynth.schema import Comparison, Joined, Literal, Name, Rule, Schema, Tree, canonical_number

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
    words = TIMES if column.kind.is_time or column.kind.is_clock else WORDS
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
