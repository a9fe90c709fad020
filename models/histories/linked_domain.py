"""The public facts of linked tables, from the codec of their schema."""

from __future__ import annotations

from dataclasses import replace

from dpsynth.encoding import CodedColumn, CodedTable, HistoryCodec
from dpsynth.models import Feature, with_most
from dpsynth.models.histories.domain import (
    WIDE,
    FollowUp,
    HistoryDomain,
    HistoryTable,
    Series,
    drawn_as_changes,
)
from dpsynth.schema import LinkedSchema, tables_as_declared


def domain_of(codec: HistoryCodec) -> HistoryDomain:
    """Read the domain off a codec; no data is involved."""
    end = None
    if codec.end is not None:
        end = FollowUp(*codec.end, status=codec.status, event=codec.ended_by)
    return HistoryDomain(
        baseline=tuple(map(_feature, codec.baseline)),
        events=codec.events,
        tables=tuple(map(_table, codec.tables)),
        first=codec.first,
        last=codec.last,
        population=codec.schema.population.value,
        end=end,
    )


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
