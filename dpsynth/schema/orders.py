"""Orders: rules of the form ``a <= b`` that hold by construction, because b is a gap above a.

**Sensitivity.** Which columns are ordered, and how long a gap can be, follows from the schema. The
gap of a row is computed from its own cells (`dpsynth.encoding.relations`). So a unit moves its own
coded rows and no others, and the sensitivity of every event is what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import write_bound
from dpsynth.schema.column import CellForms, Column
from dpsynth.schema.declarations import check_following
from dpsynth.schema.lattice import Lattice, in_units, lattice_of
from dpsynth.schema.relations import Floor
from dpsynth.schema.rules import Comparison, Name, Rule, Tree

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ORDER_KEYS = ("order", "longest")
_FORM = "an order compares columns, such as 'diastolic < systolic' or 'a <= b <= c'"


def read_order(part: FieldReader) -> Rule | None:
    """Read one entry ``{order: diastolic < systolic, longest: 150}`` of the list of rules."""
    part.refuse_unknown(ORDER_KEYS)
    text, longest = part.text("order"), part.number("longest")
    if text is None:
        if not part.has("order"):
            part.mistake(None, "a rule is text, or a mapping such as {order: 'a <= b'}")
        return None
    try:
        rule = Rule.parse(text)
        pairs = list(ordered_pairs(rule.tree))
    except (InputError, ValueError) as error:
        part.mistake("order", str(error))
        return None
    if longest is not None and (longest <= 0 or len(pairs) > 1):
        part.mistake("longest", "is a positive gap of one pair of columns; write an order for each")
        longest = None
    return replace(rule, order=True, longest=longest)


def ordered_pairs(tree: Tree) -> Iterator[tuple[str, str, bool]]:
    """Yield lower column, upper column, and whether they differ, of each link of an order.

    Raises:
        ValueError: the rule is no order of columns.
    """
    links = [tree] if isinstance(tree, Comparison) else tree.parts
    if not isinstance(tree, Comparison) and tree.word != "and":
        raise ValueError(_FORM)
    for link in links:
        if not isinstance(link, Comparison):
            raise ValueError(_FORM)
        left, right = link.left, link.right
        if not (isinstance(left, Name) and isinstance(right, Name)) or left == right:
            raise ValueError(_FORM)
        if link.sign in ("<", "<="):
            yield left.text, right.text, link.sign == "<"
        elif link.sign in (">", ">="):
            yield right.text, left.text, link.sign == ">"
        else:
            raise ValueError(_FORM)


def with_floors(
    columns: tuple[Column, ...], rules: Sequence[Rule | None], extra: FieldReader
) -> tuple[Column, ...]:
    """Give the upper column of each order its floor; what is wrong with an order is noted.

    Args:
        columns: all of them, settled.
        rules: by their place in the list; None for one that could not be read.
        extra: of the table, for notes.
    """
    known = {column.name: column for column in columns}
    for place, rule in enumerate(rules):
        if rule is None or not rule.order or not all(name in known for name in rule.columns):
            continue
        for low, high, strict in ordered_pairs(rule.tree):
            problem = why_no_order(known[low], known[high], strict=strict)
            if problem:
                extra.mistake(f"rules[{place}].order", problem)
                continue
            floor = known[high].floor or Floor(())
            bases = dict(floor.bases)
            bases[low] = bases.get(low, False) or strict
            ends = [end for end in (floor.longest, rule.longest) if end is not None]
            floor = Floor(tuple(bases.items()), min(ends, default=None))
            known[high] = replace(known[high], floor=floor)
    return tuple(known[column.name] for column in columns)


def why_no_order(low: Column, high: Column, *, strict: bool) -> str | None:
    """Say why a column cannot be a gap above another one; None if it can."""
    sign = "<" if strict else "<="
    for column in (low, high):
        if column.is_categorical or not (column.kind.is_number or column.kind.is_time):
            return f"orders numbers or dates with bounds, and {column.name!r} is not one"
    if (low.kind.family, low.kind.unit) != (high.kind.family, high.kind.unit):
        return f"{low.name!r} is of type {low.type} and {high.name!r} of type {high.type}"
    if (held := _held(low, high, strict=strict)) is not None:
        return held
    if high.interval is not None:
        side = "before" if high.interval.before else "after"
        return (
            f"{high.name!r} is modelled by its gap {side} {high.interval.base!r} already, and a "
            f"column has one gap; write the order as text: '{low.name} {sign} {high.name}'"
        )
    if high.is_computed:
        return (
            f"{high.name!r} is derived, and so is not modelled; write the order as text: "
            f"'{low.name} {sign} {high.name}'"
        )
    if high.calendar:
        return f"{high.name!r} keeps a calendar; declare it by its gap: dpsynth: {{after: ...}}"
    if high.forms.is_censored or high.forms.reasons:
        return (
            f"{high.name!r} has a status column; write the order as text: "
            f"'{low.name} {sign} {high.name}'"
        )
    if None in (low.minimum, low.maximum, high.minimum, high.maximum):
        return None  # a draft
    assert low.maximum is not None and high.maximum is not None
    lattice, end = lattice_of(high), float(in_units(low.maximum, low.kind))
    last = float(lattice.values(np.array(lattice.points - 1)))
    if end > last or (strict and end == last):
        return (
            f"the maximum of {low.name!r} is {shown(write_bound(low.maximum, low.kind))}, and that "
            f"of {high.name!r}, {shown(write_bound(high.maximum, high.kind))}, is not "
            f"{'above' if strict else 'at or above'} it: no row could have both; lower the one, or "
            "raise the other"
        )
    return None


def _held(low: Column, high: Column, *, strict: bool) -> str | None:
    """Say what to do where one of two dates is declared by its gap to the other; None else."""
    for column, other in ((high, low), (low, high)):
        interval = column.interval
        if interval is None or interval.base != other.name:
            continue
        side = "before" if interval.before else "after"
        declared = f"{column.name!r} is declared by its gap {side} {other.name!r} already"
        if (other if interval.before else column) is low:
            return f"{declared}, which is the opposite of this order; remove one of both"
        if interval.shortest >= int(strict):
            return f"{declared}, so no drawn row breaks this order; remove the order"
        return f"{declared}; remove the order, and declare the gap with shortest: {int(strict)}"
    return None


def lowest(floor: Floor, lattice: Lattice, values: Mapping[str, Floats]) -> Ints:
    """Return the lowest position on a column's lattice that its row allows, ``[rows]``.

    A missing value allows every position. Values of two lattices with the same decimal text are the
    same float64, so that comparing them is exact.

    >>> from dpsynth.schema.lattice import lattice_of_bounds
    >>> pressures = lattice_of_bounds(60, 260, step=1)
    >>> floor = Floor((("diastolic", True),))
    >>> lowest(floor, pressures, {"diastolic": np.array([80.0, 30.0, np.nan])}).tolist()
    [21, 0, 0]

    Args:
        floor: of the column.
        lattice: of the column.
        values: of each other column, in the unit of the lattice, NaN where missing.
    """
    least = np.zeros(len(next(iter(values.values()))), dtype=np.int64)
    for name, strict in floor.bases:
        known = ~np.isnan(values[name])
        places = lattice.positions(np.where(known, values[name], 0.0))
        at = lattice.values(places)
        short = at <= values[name] if strict else at < values[name]
        least = np.maximum(least, np.where(known, places + short, 0))
    return np.minimum(least, lattice.points - 1)


def _least(column: Column) -> float:
    """Return the least value of a column in its unit, NaN if its cells may be missing."""
    if column.nullable:
        return np.nan
    return 0.0 if column.minimum is None else float(in_units(column.minimum, column.kind))


def gap_column(column: Column, columns: Sequence[Column]) -> Column:
    """Return what a column with a floor is modelled as: a gap, in steps of the column.

    Args:
        column: with a floor.
        columns: of the schema; bounds of the gap follow from theirs.
    """
    floor, known = column.floor, {one.name: one for one in columns}
    assert floor is not None
    lattice = lattice_of(column)
    starts = {name: np.array([_least(known[name])]) for name in floor.names}
    points = lattice.points - 1 - int(lowest(floor, lattice, starts)[0])
    unit = 10**lattice.decimals
    if floor.longest is not None:
        points = min(points, max(1, int(floor.longest * unit / lattice.stride + 1e-9)))
    ends = 0, points * lattice.stride
    whole = unit == 1
    titles = ", ".join(known[name].title or name for name in floor.names)
    return replace(
        column,
        type="integer" if whole else "number",
        minimum=ends[0] if whole else 0.0,
        maximum=ends[1] if whole else ends[1] / unit,
        step=lattice.stride if whole else lattice.stride / unit,
        format=None,
        missing_values=("",),
        floor=None,
        forms=CellForms(),
        ucum=column.kind.ucum or column.ucum,
        title=f"{column.title or column.name}: above {titles}",
    )


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
