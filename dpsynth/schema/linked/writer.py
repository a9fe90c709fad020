"""From a `LinkedSchema` back to a document."""

from __future__ import annotations

from typing import Any

from dpsynth.schema.linked.facts import ChildTable, Link, LinkedFacts
from dpsynth.schema.linked.series import series_document
from dpsynth.schema.writer import schema_document

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"


def package_document(schema: LinkedFacts) -> dict[str, Any]:
    """Write the whole document; what equals a default is left out."""
    document: dict[str, Any] = {"$schema": PROFILE, "name": schema.name}
    document |= _filled(title=schema.title, description=schema.description)
    patients = schema_document(schema.patients)
    table, own = _resource(patients, {schema.key}), _own(patients)
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
    rules = [rule.text for rule in schema.rules]
    extra |= _filled(end=schema.end, ended_by=schema.ended_by, rules=rules or None)
    extra |= {
        name: patients["dpsynth"][name] for name in ("key", "person") if name in patients["dpsynth"]
    }
    extra |= _filled(source=schema.source, draft=schema.draft or None)
    document["dpsynth"] = extra
    return document


def _child(child: ChildTable, patients: Link) -> dict[str, Any]:
    written = schema_document(child.schema)
    tested = None if child.series is None else child.series.column
    table = _resource(written, {*child.needed}, tested)
    links = [Link((child.key,), patients.table, patients.target), *child.links]
    table["schema"] = {"foreignKeys": [_link(link) for link in links]} | table["schema"]
    own = _filled(time=child.time, origin=child.origin, order=child.order, once=child.once)
    if child.series is not None:
        value = child.schema.column(child.series.value)
        own["series"] = series_document(child.series, value, child.schema.dialect)
    if child.once is None:
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
    return {
        key: written["dpsynth"][key] for key in ("dialect", "rules") if key in written["dpsynth"]
    }


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
