"""How the linked tables of a package fit their schema: exact figures, for the office alone.

Each table is read once, in chunks. What is kept of a row is its key, its day, its test, and the
cells that temporal rules and foreign keys name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpsynth.errors import NoRowsError
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.column_check import CellShares
from dpsynth.inspection.findings import (
    BROKEN,
    CROWD,
    DAMAGED,
    DUPLICATES,
    MANY_ROWS,
    REPEATED,
    ROWS,
    SCHEMA,
    TABLE,
    UNITS,
    UNLIKE,
    WORDS,
    WRITTEN,
    Finding,
)
from dpsynth.inspection.keys import FOR_PACKAGE, written_findings
from dpsynth.inspection.linked.child_read import ChildRead
from dpsynth.inspection.linked.count_findings import count_findings, crowds, named_findings
from dpsynth.inspection.linked.key_findings import (
    owner_findings,
    patient_findings,
    stranger_keys,
)
from dpsynth.inspection.linked.kinds import STRANGERS, TWICE
from dpsynth.inspection.linked.link_findings import link_findings
from dpsynth.inspection.linked.patient_read import Ints, PatientsRead, RowsRead
from dpsynth.inspection.linked.remedies import in_resource, of_test
from dpsynth.inspection.linked.rule_findings import rule_findings
from dpsynth.inspection.linked.time_findings import days_since_origin, time_findings
from dpsynth.inspection.suspects import Suspects
from dpsynth.inspection.table_check import logged_chunks, read_sizes, with_computed
from dpsynth.schema import LinkedSchema
from dpsynth.tables import OptOut, Progress, Source, Table, as_sources, open_linked
from dpsynth.tables.table import require_records
from dpsynth.tables.unit_keys import NO_KEY

_OWN_WORDS = (ROWS, MANY_ROWS, REPEATED)  # of which this check has findings of its own
_OF_KEYS = (WORDS, DAMAGED, WRITTEN, CROWD)  # judged in all tables together
_Links = Mapping[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, repr=False)
class LinkedCheck(CheckResult[LinkedSchema]):
    """What a check of linked tables found.

    Places are tables, ``table.column``, ``table.test`` in a long table, and the texts of rules.
    """


def check_linked(
    sources: Mapping[str, Source],
    schema: LinkedSchema,
    *,
    opt_out: OptOut | None = None,
    progress: Progress | None = None,
) -> LinkedCheck:
    """Compare the private tables of a package with its schema, and with each other.

    Args:
        sources: a file, an address or a DataFrame by the name of its table.
        schema: of the linked tables.
        opt_out: patients who are left out of all tables.
        progress: called with the fraction of all tables that has been read.

    Returns:
        Findings, each with its level and likely causes; none for tables without a flaw.

    Raises:
        TableError: a table cannot be read, or is not the one that the schema describes; or the
            table of patients has no row.
    """
    sources = as_sources(sources)
    tables, links = open_linked(sources, schema, whole=False), _linked_columns(schema)
    in_rules = _columns_in_rules(schema)

    def part(number: int) -> Progress | None:
        if progress is None:
            return None
        return lambda share: progress((number + share) / len(tables))

    own = schema.patients.name
    patients = PatientsRead(schema, in_rules[own], links[own], opt_out)
    _read(_widened(sources[own], tables[own], patients, links[own]), patients, part(0))
    children: dict[str, ChildRead] = {}
    for number, child in enumerate(schema.children, 1):
        name = child.name
        read = ChildRead(schema, child, in_rules[name], links[name], opt_out)
        children[name] = read
        try:
            _read(_widened(sources[name], tables[name], read, links[name]), read, part(number))
        except NoRowsError:
            continue
    return _judged(schema, patients, children)


def _judged(
    schema: LinkedSchema, patients: PatientsRead, children: Mapping[str, ChildRead]
) -> LinkedCheck:
    """Put what was found about each table, and about all of them, together."""
    numbers = patients.numbers()
    owners = {name: _owners(read, numbers) for name, read in children.items()}
    found = _of_table(schema.patients.name, patients, (*_OWN_WORDS, DUPLICATES))
    found += patient_findings(patients, schema)
    own, reads = schema.patients.name, [patients, *children.values()]
    found += written_findings([read.reading.written for read in reads], own, FOR_PACKAGE)
    of_keys = patients.reading.key_findings(own, FOR_PACKAGE)
    found += of_keys.findings
    texts, keys = list(numbers), {f"{own}:{TWICE}": patients.twice()}
    keys |= {f"{own}:{kind}": counts for kind, counts in of_keys.texts.items() if kind != CROWD}
    suspects = _suspects(schema.patients.name, patients)
    cells = _shares(schema.patients.name, patients)
    for name, read in children.items():
        mine = owners[name]
        found += owner_findings(read, mine, patients, schema)
        if len(read.units):
            found += _of_child(name, read)
            found += time_findings(read, mine, patients, schema)
            days = days_since_origin(read, mine, patients)
            found += count_findings(read, mine, days, len(numbers))
            many = crowds(read, mine, days)
            keys[f"{name}:{CROWD}"] = Counter({texts[one]: rows for one, rows in many.items()})
        for link in read.child.links:
            found += link_findings(read, link, mine, children[link.table], owners[link.table])
        suspects |= _suspects(name, read)
        cells |= _shares(name, read)
        keys[f"{name}:{STRANGERS}"] = stranger_keys(read, mine)
    found += rule_findings(schema, patients, children, owners)
    findings = tuple(sorted(found, key=lambda one: -one.level))
    named: dict[str, RowsRead] = {own: patients, **children}
    sizes = {name: read_sizes(read.log, read.reading.sizes) for name, read in named.items()}
    return LinkedCheck(schema, cells, findings, suspects, keys, sizes)


def _read(table: Table, read: RowsRead, progress: Progress | None) -> None:
    """Read a table.

    Raises:
        NoRowsError: it has none.
        TableError: all of its records are irregular.
    """
    read.reading.begin(table)
    read.log, chunks = logged_chunks(table, read.schema, progress)
    try:
        for chunk in chunks:
            read.add(chunk)
    except NoRowsError:
        require_records(table)
        raise


def _widened(
    source: Source, table: Table, read: RowsRead, links: tuple[tuple[str, ...], ...]
) -> Table:
    """Return a table with columns that a fit does not read: foreign keys and computed ones."""
    wanted = {*table.columns, *(name for link in links for name in link)}
    return with_computed(source, read.schema, wanted)


def _owners(read: ChildRead, numbers: Mapping[str, int]) -> Ints:
    """Return the patient of each row, `NO_KEY` of a row of none."""
    of_unit = [numbers.get(text, NO_KEY) for text in read.keys]
    return np.array([*of_unit, NO_KEY], dtype=np.int64)[read.units]


def _linked_columns(schema: LinkedSchema) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the groups of columns of each table that a foreign key names."""
    groups: dict[str, dict[tuple[str, ...], None]] = {name: {} for name in schema.table_names}
    for child in schema.children:
        for link in child.links:
            groups[child.name][link.columns] = None
            groups[link.table][link.target] = None
    return {name: tuple(found) for name, found in groups.items()}


def _columns_in_rules(schema: LinkedSchema) -> dict[str, frozenset[str]]:
    """Return the columns of each table that temporal rules name."""
    terms = [term for rule in schema.rules for term in rule.terms.values()]
    return {
        name: frozenset(str(term.column) for term in terms if term.table == name)
        for name in schema.table_names
    }


def _of_table(name: str, read: RowsRead, left_out: tuple[str, ...]) -> list[Finding]:
    """Return what the check of a single table finds, with the table in its places."""
    found = []
    for one in read.reading.found(log=read.log).findings:
        if one.kind in (*left_out, *_OF_KEYS):
            continue
        if one.place == TABLE:
            place = name
        elif one.kind in (BROKEN, SCHEMA) and one.place not in read.reading.columns:
            place = f"{name}: {one.place}"
        else:
            place = f"{name}.{one.place}"
        found.append(in_resource(replace(one, place=place), name))
    return found


def _of_child(name: str, read: ChildRead) -> list[Finding]:
    left_out = (*_OWN_WORDS, UNITS, UNLIKE, *((DUPLICATES,) if read.child.once is not None else ()))
    named = {f"{name}.{one.place}": one for one in named_findings(read)}
    found = [one for one in _of_table(name, read, left_out) if one.place not in named]
    found += [replace(one, place=place) for place, one in named.items()]
    for test in read.tests.values():
        numeric = not test.column.is_categorical
        found += [of_test(one, name, numeric=numeric) for one in test.findings()]
    return found


def _suspects(name: str, read: RowsRead) -> dict[str, Suspects]:
    checks = dict(read.reading.columns)
    if isinstance(read, ChildRead):
        checks |= read.tests
        if read.time is not None:
            checks[str(read.child.time)] = read.time
    return {f"{name}.{column}": check.suspects for column, check in checks.items()}


def _shares(name: str, read: RowsRead) -> dict[str, CellShares]:
    checks = dict(read.reading.columns)
    if isinstance(read, ChildRead):
        checks |= read.tests
    return {f"{name}.{column}": check.shares for column, check in checks.items()}
