"""The places of a cell that holds several codes: each is modelled as a column of one code.

The first place holds the first code, so a cell of two codes has two places filled. The places of a
column without an order hold its codes in the order of the declared list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dpsynth._util.messages import listed, shown
from dpsynth.schema.column import CellForms, Column

ROLES = frozenset({"sensitive", "quasi_identifier"})  # that a column of several codes may have


def place_names(column: Column) -> tuple[str, ...]:
    """Name the coded columns of a column of several codes; none for any other column."""
    several = column.several
    return () if several is None else tuple(f"{column.name}: {i + 1}" for i in range(several.most))


def single(column: Column) -> Column:
    """Return what is declared of one code of a cell: an empty part is no code, and left out."""
    assert column.codes is not None
    return replace(
        column, codes=replace(column.codes, several=None), required=False, on_bad="missing"
    )


def code_places(column: Column) -> Iterator[Column]:
    """Yield a coded column for each place; only the first may be required."""
    assert column.codes is not None
    for number, name in enumerate(place_names(column), start=1):
        required = column.required and number == 1
        yield replace(
            column,
            name=name,
            codes=replace(column.codes, several=None),
            required=required,
            on_bad=column.on_bad if required else "missing",
            missing_values=("",),
            forms=CellForms(),
            title=f"{column.title or column.name}: code {number}",
        )


def problems_of(column: Column, known: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield what a column of several codes declares and cannot have: the key, and a sentence."""
    if column.several is None:
        return
    if roles := sorted(column.roles - ROLES):
        yield (
            "role",
            f"a column of several codes has no role {listed(roles)}; declare a column of its own "
            "for what is predicted or compared",
        )
    if column.forms.reasons:
        yield "missing", "reasons are for cells of one code; list their texts in missingValues"
    for name in place_names(column):
        if name in known:
            yield "codes.several", f"{shown(name)} is the name of a column; rename that one"
