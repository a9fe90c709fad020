"""Which columns of a row a column follows from, and the order in which they can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpsynth.schema.column import Column


def needs(column: Column) -> tuple[str, ...]:
    """Return the columns that a column follows from, each once.

    >>> from dpsynth.schema.relations import Floor
    >>> needs(Column("systolic", "integer", floor=Floor((("diastolic", True),))))
    ('diastolic',)
    """
    names: list[str] = []
    if column.interval is not None:
        names.append(column.interval.base)
    if column.floor is not None:
        names += column.floor.names
    if column.derived is not None:
        names += [*column.derived.numbers, *column.derived.dates]
    if column.grouping is not None:
        names.append(column.grouping.base)
    if column.present_if is not None:
        names += column.present_if.columns
    return tuple(dict.fromkeys(names))


def why_needed(column: Column, other: str) -> str:
    """Say by which declaration a column follows from another one, in a few words.

    >>> from dpsynth.schema.relations import Floor
    >>> why_needed(Column("systolic", "integer", floor=Floor((("diastolic", True),))), "diastolic")
    "'systolic' follows from 'diastolic' by an order"
    """
    floor, presence, interval = column.floor, column.present_if, column.interval
    if interval is not None and interval.base == other:
        way = f"its gap, {'before' if interval.before else 'after'}"
    elif floor is not None and other in floor.names:
        way = "an order"
    elif presence is not None and other in presence.columns:
        way = "present_if"
    else:
        way = "derived"
    return f"{column.name!r} follows from {other!r} by {way}"


def in_order(columns: Iterable[Column]) -> list[str]:
    """Name the columns so that each comes after those that it follows from.

    Columns of a circle are left out.

    >>> from dpsynth.schema.relations import Interval
    >>> in_order([Column("b", "date", interval=Interval("a", "d", 9)), Column("a", "date")])
    ['a', 'b']
    """
    waiting = {column.name: needs(column) for column in columns}
    names: list[str] = []
    while True:
        ready = [name for name, own in waiting.items() if not any(one in waiting for one in own)]
        if not ready:
            return names
        names += ready
        waiting = {name: own for name, own in waiting.items() if name not in ready}


def with_needs(names: Iterable[str], columns: Mapping[str, Column]) -> frozenset[str]:
    """Return the names, and those of all columns that these follow from."""
    found: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop()
        if name in found or name not in columns:
            continue
        found.add(name)
        open_names += needs(columns[name])
    return frozenset(found)


def circle(name: str, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return a shortest way from a column back to itself; empty if there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while ways:
        longer: list[tuple[str, ...]] = []
        for way in ways:
            for other in needs(columns[way[-1]]):
                if other == name:
                    return (*way, name)
                if other in columns and other not in seen:
                    seen.add(other)
                    longer.append((*way, other))
        ways = longer
    return ()
