"""What may be declared better, known without data: notes, which stop nothing and may be ignored."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.errors import Problem
from dpsynth.schema import Family, Schema, why_no_order
from dpsynth.schema.row.orders import ordered_pairs


def schema_notes(schema: Schema) -> tuple[Problem, ...]:
    """List what may be declared better; places are columns or rules.

    A rule of text that is an order of numbers: it could hold by construction. (Of two dates, see
    `schema_warnings`: they need a gap.)

    >>> schema_notes(Schema.load("demo"))
    ()
    """
    return tuple(dict.fromkeys(_orders(schema)))


def _orders(schema: Schema) -> Iterator[Problem]:
    columns = {column.name: column for column in schema.modelled}
    for rule in schema.rules:
        if rule.order:
            continue
        try:
            pairs = list(ordered_pairs(rule.tree))
        except ValueError:
            continue  # it says something else
        for low, high, strict in pairs:
            if columns[high].kind.family is Family.TIME or columns[high].floor is not None:
                continue
            if why_no_order(columns[low], columns[high], strict=strict) is None:
                order = f"{low} {'<' if strict else '<='} {high}"
                yield Problem(
                    rule.text,
                    "rows that break it are drawn again. It could also hold by construction, which "
                    "is better if drawn rows often break it (dpsynth sample says how often): write "
                    f'- order: "{order}" in place of the rule',
                )
