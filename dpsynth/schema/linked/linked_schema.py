"""Every public fact about linked tables, checked, and never learned.

A schema of linked tables is a Data Package whose resources are Table Schemas, with a ``dpsynth``
object for the package and one for each resource (docs/cohorts.md is the reference).

>>> schema = LinkedSchema.load("nafld")
>>> schema.table_names, schema.child("labs").kind
(('patients', 'labs', 'events'), 'long')

Linked tables whose columns have codes that a fit discovers: as declared, and as found.

As of one table (`dpsynth.schema.discovered`): a plan, a charge and a digest are about what was
declared, and a run holds what was found.

The schema of a part of a table: the same columns, and public sizes of the part.

Where a share of the units is held out, a fit sees the rest. How many that are is a public number
times a public share, so that nothing is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import digest
from dpsynth.schema.column import Column, Declared
from dpsynth.schema.discovered import as_declared, with_found
from dpsynth.schema.linked.declared import declared_document, implied_document
from dpsynth.schema.linked.facts import TIME_UNITS, ChildTable, Link, LinkedFacts
from dpsynth.schema.linked.reader import read_package
from dpsynth.schema.linked.resources import (
    CUMULATIVE,
    EXACTLY,
    ROWS_WHERE,
    chosen_by,
    series_document,
)
from dpsynth.schema.reader import read_schema
from dpsynth.schema.schema import Schema, SchemaDocument
from dpsynth.schema.solver import require_consistent
from dpsynth.schema.writer import schema_document

SHIPPED = ".package.yaml"


@dataclass(frozen=True, repr=False)
class LinkedSchema(SchemaDocument, LinkedFacts):
    """The public facts of a table of patients and of tables of what happened to them.

    >>> LinkedSchema.load("clinic").table_names
    ('patients', 'visits', 'labs', 'events')
    """

    shipped_suffix: ClassVar[str] = SHIPPED

    @classmethod
    def _read(cls, document: object, source: str, **default_name: str) -> Self:
        return read_package(cls, document, source, **default_name)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; ``LinkedSchema.from_dict`` of it gives an equal one."""
        return package_document(self)

    def hash(self) -> str:
        """SHA-256, in hex, of the document as declared, without codes that a fit has found."""
        return digest(package_document(tables_as_declared(self)))


def shipped_packages() -> list[str]:
    """List the names of the schemas of linked tables that come with dpsynth."""
    from dpsynth.schema.files import shipped_names

    return shipped_names(SHIPPED)


AnySchema = Schema | LinkedSchema


def load_any(name_or_path: str | Path) -> AnySchema:
    """Read a schema of one table, or of linked tables; a document with ``resources`` is of these.

    Raises:
        InputError: there is no such schema or file. SchemaError: its mistakes, all listed.

    >>> load_any("nafld"), load_any("demo").name
    (<LinkedSchema nafld, 3 tables>, 'demo')
    """
    from dpsynth.schema.files import TABLE, read_document  # with yaml, which a codec does not need

    document, source, name = read_document(name_or_path, (TABLE, SHIPPED))
    if is_linked(document):
        return read_package(LinkedSchema, document, source, default_name=name)
    return read_schema(Schema, document, source, default_name=name)


def any_from_dict(document: Mapping[str, Any], source: str = "<dict>") -> AnySchema:
    """Build either from a parsed document; ``source`` is what error messages call it.

    Raises:
        SchemaError: with all the mistakes of the document.
    """
    kind = LinkedSchema if is_linked(document) else Schema
    return kind.from_dict(document, source)


def is_linked(document: object) -> bool:
    """Tell whether a parsed document is about linked tables."""
    return isinstance(document, Mapping) and "resources" in document


def require_consistent_tables(schema: AnySchema) -> None:
    """Refuse rules within the rows of a table that contradict each other.

    Raises:
        SchemaError: names the fewest declarations that no row can meet.
    """
    if isinstance(schema, Schema):
        require_consistent(schema)
        return
    for table in (schema.patients, *(child.schema for child in schema.children)):
        require_consistent(table)


PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"


def package_document(schema: LinkedFacts) -> dict[str, Any]:
    """Write the whole document; what equals a default is left out."""
    document: dict[str, Any] = {"$schema": PROFILE, "name": schema.name}
    document |= _filled(title=schema.title, description=schema.description)
    patients = schema_document(schema.patients)
    placed = {schema.key, *chosen_by(schema.patients.rows_where)}
    table, own = _resource(patients, placed), _own(patients)
    own |= _filled(repeated=schema.repeated or None)
    table["schema"] = {"primaryKey": [schema.key]} | table["schema"]
    if own:
        table["dpsynth"] = own
    key = Link((), schema.patients.name, (schema.key,))
    document["resources"] = [table, *(_child(child, key) for child in schema.children)]
    extra: dict[str, Any] = {"version": 1, "patients": schema.patients.name}
    extra["population"] = patients["dpsynth"]["population"]
    if schema.window is not None:
        window = schema.window
        extra["window"] = {"first": window.first, "last": window.last, "basis": window.basis}
        extra["window"] |= {} if window.unit == TIME_UNITS[0] else {"unit": window.unit}
    rules = [rule.text for rule in schema.rules]
    extra |= _filled(end=schema.end, ended_by=schema.ended_by, last_day=schema.last_day or None)
    extra |= _filled(
        implies=[implied_document(one) for one in schema.implies] or None, rules=rules or None
    )
    extra |= {
        name: patients["dpsynth"][name] for name in ("key", "person") if name in patients["dpsynth"]
    }
    extra |= _filled(source=schema.source, draft=schema.draft or None)
    document["dpsynth"] = extra
    return document


def _child(child: ChildTable, patients: Link) -> dict[str, Any]:
    written = schema_document(child.schema)
    tested = None if child.series is None else child.series.column
    placed = {*child.needed, *chosen_by(child.schema.rows_where)}
    table = _resource(written, placed, tested)
    for field in table["schema"]["fields"]:
        if field["name"] in child.cumulative:
            field["dpsynth"] = {**field.get("dpsynth", {}), CUMULATIVE: True}
    links = [Link((child.key,), patients.table, patients.target), *child.links]
    table["schema"] = {"foreignKeys": [_link(link) for link in links]} | table["schema"]
    origin = child.origin.isoformat() if isinstance(child.origin, date) else child.origin
    own = _filled(time=child.time, origin=origin, order=child.order, once=child.once)
    if child.series is not None:
        value = child.schema.column(child.series.value)
        own["series"] = series_document(child.series, value, child.schema.dialect)
    own |= declared_document(child)
    if child.once is None:
        if child.exactly is None or child.schema.unit.max_rows_basis != EXACTLY:
            own["max_rows"] = written["dpsynth"]["max_rows"]
        if child.schema.unit.keep != "random":
            own["keep"] = child.schema.unit.keep
    own |= _filled(longest_gap=child.longest_gap) | _own(written)
    return table | {"dpsynth": own}


def _link(link: Link) -> dict[str, Any]:
    reference = {"resource": link.table, "fields": list(link.target)}
    return {"fields": list(link.columns), "reference": reference}


def _own(written: dict[str, Any]) -> dict[str, Any]:
    """Return what a resource says of its rows."""
    keys = ("dialect", ROWS_WHERE, "rules")
    return {key: written["dpsynth"][key] for key in keys if key in written["dpsynth"]}


def _resource(
    written: dict[str, Any], placed: set[str], tested: str | None = None
) -> dict[str, Any]:
    """Return a resource with its columns; those with a place of their own have no role."""
    table: dict[str, Any] = {"name": written["name"]}
    table |= {key: written[key] for key in ("title", "description") if key in written}
    fields = []
    for field in written["fields"]:
        field = dict(field)
        own = dict(field.pop("dpsynth", {}))
        if field["name"] in placed:
            own.pop("role", None)
        if field["name"] == tested:
            own = {key: own[key] for key in ("values", "case") if key in own}
            field.pop("constraints", None)
        fields.append(field | ({"dpsynth": own} if own else {}))
    schema: dict[str, Any] = {"fields": fields}
    if "missingValues" in written:
        schema = {"missingValues": written["missingValues"]} | schema
    return table | {"schema": schema}


def _filled(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


AnyLinked = TypeVar("AnyLinked", bound=LinkedFacts)
FoundInTables = Mapping[str, Mapping[str, tuple[str, ...]]]  # codes by table, then by column


@dataclass(frozen=True, repr=False)
class Discovering:
    """A table with columns whose codes a fit discovers.

    Attributes:
        schema: of the table.
        columns: those of them.
        rows: of a patient that are looked at, at most: in a table of tests, of all of them.
    """

    schema: Schema
    columns: tuple[Column, ...]
    rows: int

    def __repr__(self) -> str:
        """Name the table."""
        return short_repr(self, self.schema.name)


def discovering(schema: LinkedFacts) -> tuple[Discovering, ...]:
    """Return the tables that have columns whose codes a fit discovers, that of patients first."""
    tables = [(schema.patients, 1)]
    tables += [
        (child.schema, child.schema.unit.max_rows * max(1, len(child.tests)))
        for child in schema.children
    ]
    found = []
    for table, rows in tables:
        if columns := tuple(column for column in table.modelled if column.discovers):
            found.append(Discovering(table, columns, rows))
    return tuple(found)


def tables_with_found(schema: AnyLinked, found: FoundInTables) -> AnyLinked:
    """Return the schema whose columns have the codes that a fit has found."""
    return replace(
        schema,
        patients=with_found(schema.patients, found.get(schema.patients.name, {})),
        children=tuple(
            replace(child, schema=with_found(child.schema, found.get(child.name, {})))
            for child in schema.children
        ),
    )


def tables_as_declared(schema: AnyLinked) -> AnyLinked:
    """Return the schema as it was before any fit found a code."""
    if not discovering(schema):
        return schema
    return replace(
        schema,
        patients=as_declared(schema.patients),
        children=tuple(
            replace(child, schema=as_declared(child.schema)) for child in schema.children
        ),
    )


def without_share(schema: AnySchema, held_out: float) -> AnySchema:
    """Return the schema of what is left when a share of the units is held out.

    Population and rows are scaled, to two significant digits, and their bases say so.

    >>> demo = Schema.load("demo")
    >>> without_share(demo, 0.2).population.value
    16000
    >>> without_share(demo, 0.0) is demo
    True
    """
    if not held_out:
        return schema
    if isinstance(schema, LinkedSchema):
        population = _scaled(schema.population, held_out)

        def sized(own: Schema) -> Schema:
            return replace(own, population=population, rows=population)

        children = tuple(replace(one, schema=sized(one.schema)) for one in schema.children)
        return replace(schema, patients=sized(schema.patients), children=children)
    return replace(
        schema,
        population=_scaled(schema.population, held_out),
        rows=_scaled(schema.rows, held_out),
    )


def _scaled(number: Declared, held_out: float) -> Declared:
    rest = number.value * (1 - held_out)
    whole = max(1, round(rest))
    value = max(1, round(whole, 2 - len(str(whole))))
    return Declared(
        value,
        f"{1 - held_out:.2g} of {number.value} ({number.basis}); the rest is held out of the fit",
    )
