"""The list of rules of a table: text, or an order that holds by construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import shown
from dpsynth.errors import InputError
from dpsynth.schema.column import Column
from dpsynth.schema.row.following import check_following
from dpsynth.schema.row.orders import read_order, with_floors
from dpsynth.schema.rules import Rule


def read_rules(
    extra: FieldReader, columns: tuple[Column, ...], complete: bool
) -> tuple[tuple[Rule, ...], tuple[Column, ...]]:
    """Read the rules; their columns are checked only if every column could be read.

    Returns:
        The rules, and the columns, of which those that orders keep above others have floors.
    """
    texts: Any = extra.values.get("rules") or ()
    if not isinstance(texts, list | tuple):
        extra.mistake("rules", f"a list of rules is expected, not {shown(texts)}")
        return (), columns
    rules = [
        _read_rule(extra, place, value, columns, complete) for place, value in enumerate(texts)
    ]
    if complete:
        columns = with_floors(columns, rules, extra)
        check_following(columns, extra.findings)
    return tuple(rule for rule in rules if rule is not None), columns


def _read_rule(
    extra: FieldReader, place: int, value: object, columns: Sequence[Column], complete: bool
) -> Rule | None:
    key = f"rules[{place}]"
    if isinstance(value, Mapping):
        key += ".order"
        rule = read_order(FieldReader(value, extra.at(f"rules[{place}]"), extra.findings))
    else:
        text = extra.check_text(key, value)
        try:
            rule = None if text is None else Rule.parse(text)
        except InputError as error:
            extra.mistake(key, str(error))
            return None
    for problem in rule.problems(columns) if complete and rule is not None else ():
        extra.mistake(key, problem)
    return rule


def rule_document(rule: Rule) -> str | dict[str, Any]:
    """Write a rule as it stands in a schema.

    >>> rule_document(Rule.parse("a <= b"))
    'a <= b'
    """
    if not rule.order:
        return rule.text
    return {"order": rule.text} | ({} if rule.longest is None else {"longest": rule.longest})
