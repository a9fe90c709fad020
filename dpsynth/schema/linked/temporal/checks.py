"""What is wrong with a temporal rule for the tables of a package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.schema.column import Column
from dpsynth.schema.linked.temporal.rule import TemporalRule
from dpsynth.schema.linked.temporal.terms import (
    COUNT,
    EACH,
    EVENT,
    OF_ROWS,
    PATIENT,
    RowTable,
    Tables,
    Term,
    event_tables,
)


def temporal_problems(rule: TemporalRule, schema: Tables) -> list[str]:
    """List what is wrong with a rule for these tables; empty if nothing is.

    Names are checked first; then what is compared with what, as in a rule of one row.
    """
    problems, columns = [], []
    for term in rule.terms.values():
        found = next(_term_problems(term, schema), None)
        if found is not None:
            problems.append(found)
        else:
            columns.append(replace(_column(term, schema), name=term.text, roles=frozenset()))
    ranged = {(term.table, term.named): term.text for term in rule.terms.values() if term.ranges}
    if len(ranged) > 1:
        problems.append(
            f"a rule goes through the rows of one table, not of {listed(ranged.values())}; use "
            "first, last or count for the other, or write two rules"
        )
    return problems or [_worded(text) for text in rule.rule.problems(columns)]


def _worded(text: str) -> str:
    """Call a term what it is: the rule of one row knows columns only."""
    mixed = "number with date" in text or "date with number" in text
    hint = "; days count from the origin, dates do not" if mixed else ""
    return text.replace("column '", "'") + hint


def _term_problems(term: Term, schema: Tables) -> Iterator[str]:
    """Yield what is wrong with the names of a term."""
    patients, tables = schema.patients, {table.name: table for table in schema.children}
    if term.function == EVENT:
        yield from _event_problems(term, schema)
        return
    name = str(term.table)
    table = tables.get(name)
    if table is None and name != patients.name:
        meant = did_you_mean(name, (patients.name, *tables))
        yield f"{term.text}: there is no table {shown(name)}{meant}"
    elif term.function == PATIENT and table is not None:
        ways = ", ".join(f"{way}({name}).{term.column}" for way in OF_ROWS[:3])
        yield f"{term.text}: a patient has several rows in {name}; say which: {ways}"
    elif table is None and term.function == COUNT:
        yield f"{term.text}: a patient has one row in {name}; count the rows of another table"
    elif table is None and term.function != PATIENT:
        yield f"{term.text}: a patient has one row in {name}; write {name}.{term.column}"
    elif table is None:
        yield from _column_problems(term, patients.columns, (schema.key,), ())
    else:
        yield from _row_problems(term, table)


def _row_problems(term: Term, table: RowTable) -> Iterator[str]:
    """Yield what is wrong with a term of a table of rows."""
    tests = tuple(test.name for test in table.tests)
    events = _events(table)
    if term.named is not None and not (tests or events):
        yield f"{term.text}: table {table.name} is wide; it has no tests and no events"
    elif term.named is not None and term.named not in (*tests, *events):
        what = "test" if tests else "event"
        meant = did_you_mean(term.named, (*tests, *events))
        yield f"{term.text}: table {table.name} has no {what} {shown(term.named)}{meant}"
    if term.column is None:
        return
    if term.column == table.value_column:
        if term.named is None:
            example = Term(term.function, table.name, tests[0], term.column).text
            yield f"{term.text}: values are of several tests; name one, such as {example}"
        return
    if term.column == table.order:
        yield f"{term.text}: the order is a number that the sampler gives, so it is no value"
    placed = (table.time, table.once, table.test_column)
    yield from _column_problems(
        term, table.schema.columns, (table.key,), tuple(name for name in placed if name)
    )


def _column_problems(
    term: Term, columns: tuple[Column, ...], keys: tuple[str, ...], placed: tuple[str, ...]
) -> Iterator[str]:
    """Yield what is wrong with the column of a term."""
    known = {column.name: column for column in columns}
    name = str(term.column)
    if name not in known:
        meant = did_you_mean(name, known)
        yield f"{term.text}: table {term.table} has no column {shown(name)}{meant}"
    elif name in keys:
        yield f"{term.text}: a key is no value; each patient gets a fresh one"
    elif not known[name].modelled and name not in placed:
        roles = listed(sorted(known[name].roles))
        yield f"{term.text}: the column has role {roles} and is not in the synthetic table"


def _event_problems(term: Term, schema: Tables) -> Iterator[str]:
    """Yield what is wrong with an event."""
    event, tables = str(term.named), [table for table in schema.children if table.once is not None]
    if not tables:
        yield f"{term.text}: no table lists events; declare one with once"
    elif term.table is not None and term.table not in [table.name for table in tables]:
        names = [table.name for table in tables]
        meant = did_you_mean(term.table, names)
        yield f"{term.text}: there is no table of events {shown(term.table)}{meant}"
    else:
        found = [table.name for table in event_tables(schema, event)]
        if not found or (term.table is not None and term.table not in found):
            every = [level for one in tables for level in _events(one)]
            meant = did_you_mean(event, every)
            yield f"{term.text}: there is no event {shown(event)}{meant}; events: {listed(every)}"
        elif term.table is None and len(found) > 1:
            yield (
                f"{term.text}: tables {listed(found)} have this event; name one: "
                f"{Term(EVENT, found[0], event).text}"
            )


def _events(table: RowTable) -> tuple[str, ...]:
    return () if table.once is None else table.schema.column(table.once).levels


def _column(term: Term, schema: Tables) -> Column:
    """Return the declaration of what a term's values are."""
    if term.function == PATIENT:
        return schema.patients.column(str(term.column))
    if term.function == COUNT:
        return Column(term.text, "integer")
    if term.function == EVENT:
        table = next(
            one for one in event_tables(schema, str(term.named)) if term.table in (None, one.name)
        )
        return table.schema.column(str(table.time))
    table = next(one for one in schema.children if one.name == term.table)
    if term.column == table.value_column and term.function in (*OF_ROWS, EACH):
        return next(test for test in table.tests if test.name == term.named)
    return table.schema.column(str(term.column))
