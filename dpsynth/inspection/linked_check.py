"""How the linked tables of a package fit their schema: exact figures, for the office alone.

Each table is read once, in chunks. What is kept of a row is its key, its day, its test, and the
cells that temporal rules and foreign keys name.

What to do about a finding, in the places of a package: a resource, and a test of a long table.

A test declares its values in one flat mapping with fewer keys than a field, so a remedy that holds
for a column may be one that a test cannot have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth._util.formatting import counted, percent
from dpsynth._util.messages import listed
from dpsynth.errors import NoRowsError
from dpsynth.inspection.causes import Suspects
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.column_check import CellShares
from dpsynth.inspection.findings import (
    ABSENT,
    BROKEN,
    CLIPPED,
    CROWD,
    DAMAGED,
    DUPLICATES,
    MANY_ROWS,
    REPEATED,
    REPLACED,
    ROWS,
    SCHEMA,
    TABLE,
    UNITS,
    UNKNOWN,
    UNLIKE,
    UNREADABLE,
    WORDS,
    WRITTEN,
    Cause,
    Finding,
    Level,
)
from dpsynth.inspection.hints import REST, SHOW
from dpsynth.inspection.keys import FOR_PACKAGE, written_findings
from dpsynth.inspection.linked_findings import (
    STRANGERS,
    TWICE,
    count_findings,
    crowds,
    days_since_origin,
    link_findings,
    named_findings,
    owner_findings,
    patient_findings,
    rule_findings,
    stranger_keys,
    time_findings,
    unchosen_finding,
)
from dpsynth.inspection.linked_read import ChildRead, Ints, PatientsRead, RowsRead
from dpsynth.inspection.schema_warnings import lost_years
from dpsynth.inspection.table_check import logged_chunks, read_sizes, with_computed
from dpsynth.schema import Column, LinkedSchema, Schema, declared_columns
from dpsynth.tables import (
    NamedSource,
    OptOut,
    Progress,
    Source,
    Table,
    chosen,
    linked_sources,
    open_columns,
    open_linked,
)
from dpsynth.tables.rows_where import cells_of
from dpsynth.tables.table import require_records
from dpsynth.tables.unit_keys import NO_KEY

_OWN_WORDS = (ROWS, MANY_ROWS, REPEATED)  # of which this check has findings of its own
_OF_KEYS = (WORDS, DAMAGED, WRITTEN, CROWD)  # judged in all tables together
_Links = Mapping[str, tuple[tuple[str, ...], ...]]


def check_linked(
    data: Source | Mapping[str, Source],
    schema: LinkedSchema,
    opt_out: OptOut | None,
    progress: Progress | None,
) -> CheckResult:
    """Compare the private tables of a package with its schema, and with each other: `check`."""
    sources = linked_sources(data, schema)
    tables, links = open_linked(sources, schema, whole=False), _linked_columns(schema)
    in_rules = _columns_in_rules(schema)

    def part(number: int) -> Progress | None:
        if progress is None:
            return None
        return lambda share: progress((number + share) / len(tables))

    together = _together(sources, schema)
    beside = _beside(together, tables)
    own = schema.patients.name
    patients = PatientsRead(schema, in_rules[own], links[own], opt_out)
    whole = _widened(sources[own], tables[own], patients, links[own])
    _read(whole, patients, part(0), beside[own])
    children: dict[str, ChildRead] = {}
    for number, child in enumerate(schema.children, 1):
        name = child.name
        read = ChildRead(schema, child, in_rules[name], links[name], opt_out)
        children[name] = read
        try:
            whole = _widened(sources[name], tables[name], read, links[name])
            _read(whole, read, part(number), beside[name])
        except NoRowsError:
            continue
    found = _judged(schema, patients, children)
    for group in together:
        if all(one.rows_where for one in group):
            found = _with_unchosen(found, sources[group[0].name], group)
    return found


def _together(sources: Mapping[str, NamedSource], schema: LinkedSchema) -> list[list[Schema]]:
    """Return the tables that lie in one source, for each source."""
    groups: dict[object, list[Schema]] = {}
    for own in (schema.patients, *(child.schema for child in schema.children)):
        source = sources[own.name]
        place = id(source) if isinstance(source, pd.DataFrame) else str(source)
        groups.setdefault(place, []).append(own)
    return list(groups.values())


def _beside(
    together: Sequence[Sequence[Schema]], tables: Mapping[str, Table]
) -> dict[str, Collection[str]]:
    """Return for each table the columns of its source that are of others, or told of before."""
    beside: dict[str, Collection[str]] = {}
    every = _columns([own for group in together for own in group if own.rows_where])
    for first, *others in together:
        beside[first.name] = every if first.rows_where else ()
        beside |= {own.name: tables[own.name].header for own in others}
    return beside


def _columns(tables: Sequence[Schema]) -> dict[str, Column]:
    return {column.name: column for own in tables for column in own.columns}


def _with_unchosen(
    found: CheckResult, source: NamedSource, tables: Sequence[Schema]
) -> CheckResult:
    """Add the rows of a source that no table chooses, if there are any."""
    names = tuple(dict.fromkeys(name for own in tables for name, _ in own.rows_where))
    columns = tuple(_columns(tables)[name] for name in names)
    whole = replace(tables[0], columns=columns, rows_where=())
    _, chunks = logged_chunks(open_columns(source, whole, names, private=True), whole, None)
    rows, texts, filled = 0, Counter[str](), np.zeros(len(tables), dtype=bool)
    for chunk in chunks:
        of_tables = np.stack([chosen(chunk, own.rows_where) for own in tables])
        filled |= of_tables.any(axis=1)
        rest = chunk.iloc[np.flatnonzero(~of_tables.any(axis=0))]
        cells = [cells_of(rest, name).to_pylist() for name in names]
        texts.update(map(", ".join, zip(*cells, strict=True)))
        rows += len(chunk)
    if not texts:
        return found
    empty = [own.name for own, has_rows in zip(tables, filled, strict=True) if not has_rows]
    one = unchosen_finding(tables[0].name, names, texts.total(), rows, empty)
    findings = sorted((*found.findings, one), key=lambda one: -one.level)
    return replace(found, findings=tuple(findings), keys=found.keys | {one.key: texts})


def _judged(
    schema: LinkedSchema, patients: PatientsRead, children: Mapping[str, ChildRead]
) -> CheckResult:
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
            noun = "day" if schema.window is None else schema.window.noun
            found += count_findings(read, mine, days, len(numbers), noun)
            many = crowds(read, mine, days)
            keys[f"{name}:{CROWD}"] = Counter({texts[one]: rows for one, rows in many.items()})
        for link in read.child.links:
            found += link_findings(read, link, mine, children[link.table], owners[link.table])
        suspects |= _suspects(name, read)
        cells |= _shares(name, read)
        keys[f"{name}:{STRANGERS}"] = stranger_keys(read, mine)
    found += rule_findings(schema, patients, children, owners)
    found += [
        Finding(problem.place, SCHEMA, Level.WARNING, problem.message)
        for problem in lost_years(schema)
    ]
    findings = tuple(sorted(found, key=lambda one: -one.level))
    named: dict[str, RowsRead] = {own: patients, **children}
    sizes = {name: read_sizes(read.log, read.reading.sizes) for name, read in named.items()}
    return CheckResult(schema, cells, findings, suspects, keys, sizes)


def _read(table: Table, read: RowsRead, progress: Progress | None, beside: Collection[str]) -> None:
    """Read a table; ``beside`` are the columns of the tables that lie in its source.

    Raises:
        NoRowsError: it has none.
        TableError: all of its records are irregular.
    """
    read.reading.begin(table, beside)
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
    """Return the columns of each table that temporal rules and declarations of histories name."""
    terms = [term for rule in schema.rules for term in rule.terms.values()]
    return {
        name: columns | {str(term.column) for term in terms if term.table == name}
        for name, columns in declared_columns(schema).items()
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


_END = "set at the end of the schema: "
_LIMIT = (
    "a test cannot declare limits of detection: let the source write a number, such as the limit, "
    "and say so in the test's bounds_basis"
)
_UNIT = (
    "a test has one unit: convert results of another one in the source by their column of units, "
    "or name a test for each unit there, such as glucose_mg_dl and glucose_mmol_l"
)
_WORDS = f"let the source write the categories that the test declares; {SHOW}"
_OF_TEST = {
    "missing-word": 'add the word to the test: missingValues: ["", "WORD"]',
    "missing-code": (
        'add the code to the test, if its coding manual says so: missingValues: ["", "CODE"]'
    ),
    "censored-low": _LIMIT,
    "censored-high": _LIMIT,
    "thousands": "let the source write numbers without it: 5000, not 5,000",
    "reader-word": 'add the word to the test: missingValues: ["", "WORD"]',
    "rounded": "if the rest matters, declare a smaller step in the test: step",
    "unit-text": "let the source write the number alone, and declare the unit of the test: ucum",
    "unit": _UNIT,
    "fraction": "set type: number for the column of values",
    **dict.fromkeys(("label", "case", "zeros", "dots", "spelling", "typing"), _WORDS),
}
_NO_NUMBERS = (
    "if its results are words and not numbers: give the column of values type: string, declare the "
    "words in the test's enum, and add type: number to each test of numbers"
)
_WHAT = {
    UNREADABLE: "are unreadable",
    UNKNOWN: "are of categories that are not declared",
    CLIPPED: "are outside the bounds",
    ABSENT: "are missing",
    REPLACED: "come back from a fit as something else, or are not used",
}
MAX_ALONE = 2  # findings of tests that are shown one by one


def in_resource(finding: Finding, table: str) -> Finding:
    """Name the resource in remedies that a schema of one table has at its end."""
    causes = (
        replace(one, remedy=one.remedy.replace(_END, f"set in resource {table}: "))
        for one in finding.causes
    )
    return replace(finding, causes=tuple(causes))


def of_test(finding: Finding, table: str, *, numeric: bool) -> Finding:
    """Give a finding about a test its place, and remedies that a test can have.

    Args:
        finding: about the values of a test, whose place is its name.
        table: the long table.
        numeric: whether the test declares numbers.
    """
    causes = tuple(_cause_of_test(one) for one in finding.causes)
    remedy = finding.remedy.replace(REST, "to keep the rest, add to the test: on_unknown: other")
    found = replace(finding, place=f"{table}.{finding.place}", causes=causes, remedy=remedy)
    if numeric and finding.kind == UNREADABLE and 2 * finding.unexplained > finding.total:
        found = replace(found, remedy=_NO_NUMBERS)
    if numeric and finding.kind == CLIPPED and not causes:
        found = replace(
            found, remedy=f"compare the bounds with their source (bounds_basis); {_UNIT}"
        )
    return in_resource(found, table)


def _cause_of_test(cause: Cause) -> Cause:
    plain = cause.remedy.replace("the column: dpsynth:", "the test:").replace("column", "test")
    return replace(cause, remedy=_OF_TEST.get(cause.key, plain))


def together(findings: Iterable[Finding], schema: LinkedSchema) -> list[Finding]:
    """Put findings of many tests of one table that say the same into one; for a person's eyes.

    Findings agree if kind, level, remedy and causes do. Up to two stay as they are.

    Args:
        findings: the worst first.
        schema: of the linked tables.
    """
    tests = {f"{one.name}.{test.name}": one.name for one in schema.children for test in one.tests}
    groups: dict[tuple[str, object], list[Finding]] = {}
    for number, one in enumerate(findings):
        causes = tuple((cause.key, cause.remedy) for cause in one.causes)
        table = tests.get(one.place, "")
        alone = number if not table or one.kind not in _WHAT else None
        same = one.kind, one.level, one.remedy, causes, alone
        groups.setdefault((table, same), []).append(one)
    shown = []
    for (table, _), group in groups.items():
        shown += [_joined(table, group)] if len(group) > MAX_ALONE else group
    return shown


def _joined(table: str, group: Sequence[Finding]) -> Finding:
    """Return one finding about several tests of a table."""
    first, names = group[0], [one.place.removeprefix(f"{table}.") for one in group]
    causes = [
        replace(cause, cells=sum(one.causes[place].cells for one in group))
        for place, cause in enumerate(first.causes)
    ]
    shares = sorted(one.count / one.total for one in group if one.total)
    count, total = sum(one.count for one in group), sum(one.total for one in group)
    effect = first.message.partition("; ")[2]
    span = " to ".join(dict.fromkeys([percent(shares[0]), percent(shares[-1])]))
    message = (
        f"{counted(count, 'cell')} of {counted(len(group), 'test')} {_WHAT[first.kind]}, "
        f"{span} of those of a test"
        f"{'; ' if effect else ''}{effect}: {listed(names)}"
    )
    return replace(
        first,
        place=table,
        message=message,
        count=count,
        total=total,
        causes=tuple(causes),
        unseen=sum(one.unseen for one in group),
    )
