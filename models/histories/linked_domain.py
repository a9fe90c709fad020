"""The public facts of linked tables, from the codec of their schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.encoding import ChildCodec, CodedColumn, CodedTable, HistoryCodec
from dpsynth.models import Feature, with_most
from dpsynth.models.histories.domain import (
    WIDE,
    Excluded,
    FollowUp,
    HistoryDomain,
    HistoryTable,
    Inside,
    Series,
    drawn_as_changes,
)
from dpsynth.schema import (
    LinkedSchema,
    TemporalRule,
    level_cell,
    rising,
    tables_as_declared,
)
from dpsynth.schema.linked.temporal import COUNT, EACH, PATIENT, Term


def domain_of(codec: HistoryCodec) -> HistoryDomain:
    """Read the domain off a codec; no data is involved."""
    end = None
    if codec.end is not None:
        end = FollowUp(*codec.end, status=codec.status, event=codec.ended_by)
    repeated = [one for one in codec.children if one.child.once is None]
    tables = [
        replace(_table(table), **_declared(child, repeated, codec.schema.time_seconds))
        for table, child in zip(codec.tables, repeated, strict=True)
    ]
    return HistoryDomain(
        baseline=tuple(map(_feature, codec.baseline)),
        events=codec.events,
        tables=tuple(tables),
        first=codec.first,
        last=codec.last,
        population=codec.schema.population.value,
        end=end,
        implies=tuple(_implied(codec)),
        excluded=tuple(_excluded(codec)),
    )


def _declared(coded: ChildCodec, repeated: Sequence[ChildCodec], seconds: int) -> dict[str, Any]:
    """Return what is declared of a table's rows."""
    child = coded.child
    names = [one.child.name for one in repeated]
    inside = None
    if child.inside is not None:
        parent = repeated[names.index(child.inside.table)]
        place = parent.codec.names.index(child.inside.length)
        days = tuple(parent.least_days(place, seconds).tolist())
        inside = Inside(names.index(child.inside.table), parent.others.index(place), days)
    due = () if child.schedule is None else child.schedule.days
    within = 0 if child.schedule is None else child.schedule.within or 0
    columns = [coded.codec.names[place] for place in coded.others]
    return {
        "inside": inside,
        "due": due,
        "within": within,
        "exactly": child.exactly,
        "cumulative": tuple(
            (columns.index(name), _ranks(coded, name)) for name in child.cumulative
        ),
    }


def _ranks(coded: ChildCodec, name: str) -> tuple[int, ...]:
    """Return the ranks of the codes of a cumulative column; -1 for a code of no value."""
    column = coded.codec.schema.column(name)
    size = coded.codec.sizes[coded.codec.names.index(name)]
    if not column.is_categorical:
        cells = coded.codec.cells[coded.codec.names.index(name)]
        return (*range(cells), *(-1 for _ in range(size - cells)))
    listed, order = column.categories or (), rising(column)
    return (*(order.index(one) for one in listed), *(-1 for _ in range(size - len(listed))))


def _implied(codec: HistoryCodec) -> Iterator[tuple[int, int, bool]]:
    """Yield which events imply others, by their places."""
    several = sum(one.child.once is not None for one in codec.children) > 1
    for one in codec.schema.implies:
        pair = [f"{one.table} {name}" if several else name for name in (one.event, one.implies)]
        if all(name in codec.events for name in pair):
            yield codec.events.index(pair[0]), codec.events.index(pair[1]), one.same_day


def _excluded(codec: HistoryCodec) -> Iterator[Excluded]:
    """Yield which patients never have an event or a code: by rules about one fact of both.

    A rule counts that compares one column of categories of patients with codes of rows, or with
    how often an event comes: `each(stays).dx == 'O80' implies patients.sex == 'F'`. It is tried out
    on each pair. What other rules say is met by drawing again.
    """
    patients = codec.patients
    repeated = [one for one in codec.children if one.child.once is None]
    several = sum(one.child.once is not None for one in codec.children) > 1
    for rule in codec.schema.rules:
        own = [term for term in rule.terms.values() if term.function == PATIENT]
        rest = [term for term in rule.terms.values() if term.function != PATIENT]
        if len(own) != 1 or own[0].column not in patients.names or not rest:
            continue
        place = patients.names.index(str(own[0].column))
        column = patients.schema.column(str(own[0].column))
        if not column.is_categorical or column.several is not None:
            continue
        levels = [level_cell(column, level) for level in column.levels]
        if all(term.function == COUNT and term.named is not None for term in rest):
            for term in rest:
                child = next((one for one in codec.children if one.child.name == term.table), None)
                named = f"{term.table} {term.named}" if several else str(term.named)
                if child is None or child.child.once is None or named not in codec.events:
                    continue
                counts = {other.text: [0] for other in rest} | {term.text: [1]}
                [never] = _breaking(rule, own[0], levels, counts)
                if 0 < len(never) < len(levels):
                    yield Excluded(place, never, event=codec.events.index(named))
        elif len(rest) == 1 and rest[0].function == EACH and rest[0].named is None:
            [term] = rest
            found = [one for one in repeated if one.child.name == term.table and not one.tests]
            if not found or term.column not in found[0].codec.names:
                continue
            [child] = found
            code_column = child.codec.schema.column(str(term.column))
            value = child.codec.names.index(str(term.column))
            if not code_column.is_categorical or value not in child.others:
                continue
            cells = [level_cell(code_column, level) for level in code_column.levels]
            at = repeated.index(child)
            for code, never in enumerate(_breaking(rule, own[0], levels, {term.text: cells})):
                if 0 < len(never) < len(levels):
                    yield Excluded(
                        place, never, table=at, value=child.others.index(value), code=code
                    )


def _breaking(
    rule: TemporalRule, own: Term, levels: Sequence[Any], cells: Mapping[str, Sequence[Any]]
) -> list[tuple[int, ...]]:
    """Return the codes of a column of patients with which other cells break a rule, by case."""
    cases = len(next(iter(cells.values())))
    frame = pd.DataFrame({name: np.repeat(case, len(levels)) for name, case in cells.items()})
    frame[own.text] = list(levels) * cases
    broken = ~rule.rule.holds(frame).reshape(cases, len(levels))
    return [tuple(np.flatnonzero(one).tolist()) for one in broken]


def planned_histories(schema: LinkedSchema) -> HistoryDomain:
    """Return the domain that a plan is made with: public, and the same before and after a fit.

    A column whose codes a fit discovers has as many codes as it may have at most.
    """
    declared = tables_as_declared(schema)
    domain = domain_of(HistoryCodec(declared))
    schemas = {child.name: child.schema for child in declared.children}
    tables = [
        replace(
            table,
            series=tuple(
                replace(one, values=with_most(one.values, schemas[table.name]))
                for one in table.series
            ),
        )
        for table in domain.tables
    ]
    baseline = with_most(domain.baseline, declared.patients)
    return replace(domain, baseline=baseline, tables=tuple(tables))


def _feature(column: CodedColumn) -> Feature:
    return Feature(
        *(column.name, column.size, column.cells, column.points),
        parents=column.parents,
        grains=column.grains,
        raised=column.raised,
        low=column.low,
        unlisted=column.undeclared,
    )


def _table(table: CodedTable) -> HistoryTable:
    series = tuple(
        Series(one.name, tuple(map(_feature, one.values)), one.max_rows) for one in table.series
    )
    by_place = zip(*(one.values for one in series), strict=True)
    wide = len(series[0].values) >= WIDE
    changes = tuple(
        any(drawn_as_changes(value, wide=wide) for value in values) for values in by_place
    )
    return HistoryTable(table.name, series, table.timed, table.longest, changes)
