"""Keys from table to table: found, checked, and never in a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.schema.linked.facts import Link
from dpsynth.schema.linked.resources import Resource

EXAMPLE = "write foreignKeys: [{fields: [id], reference: {resource: patients, fields: [id]}}]"


def read_primary_key(patients: Resource) -> str | None:
    """Read the key of the table of patients: one column."""
    part = patients.schema
    if part.has("foreignKeys"):
        part.mistake("foreignKeys", "the table of patients points to no other table; remove it")
    if not part.has("primaryKey"):
        part.mistake("primaryKey", "is missing: the column of the patient's key")
        return None
    names = _names(part, "primaryKey")
    if len(names) > 1:
        part.mistake("primaryKey", f"a patient's key is one column, not {len(names)}; join them")
        return None
    return patients.known(names[0], part, "primaryKey") if names else None


def read_links(table: Resource, tables: Mapping[str, Resource]) -> tuple[Link, ...]:
    """Read the foreign keys of a child table."""
    part, links = table.schema, []
    values = part.values.get("foreignKeys") if part.has("foreignKeys") else []
    if not isinstance(values, list | tuple):
        part.mistake("foreignKeys", f"a list of keys is expected, not {shown(values)}; {EXAMPLE}")
        return ()
    for index, value in enumerate(values):
        link = FieldReader(value, part.at(f"foreignKeys[{index}]"), table.findings)
        link.refuse_unknown(("fields", "reference"))
        reference = link.part("reference")
        reference.refuse_unknown(("resource", "fields"))
        for owner, key in ((link, "fields"), (reference, "resource"), (reference, "fields")):
            if not owner.has(key):
                owner.mistake(key, f"is missing; {EXAMPLE}")
        columns, name = _names(link, "fields"), reference.text("resource")
        target = _names(reference, "fields")
        columns = tuple(c for c in columns if table.known(c, link, "fields"))
        if name is None or not columns or not target:
            continue
        other = tables.get(name)
        if other is None:
            meant = did_you_mean(name, tables)
            reference.mistake("resource", f"there is no table {shown(name)}{meant}")
            continue
        if len(columns) != len(target):
            reference.mistake("fields", "as many columns as in 'fields' are expected")
        elif all(other.known(column, reference, "fields") for column in target):
            links.append(Link(columns, name, target))
    return tuple(links)


def key_of(table: Resource, links: Sequence[Link], patients: Resource, key: str) -> str | None:
    """Return the column of a child that points to the patient's key; note it if none does."""
    own = [link for link in links if link.table == patients.name]
    if not own:
        if not table.schema.has("foreignKeys"):
            table.schema.mistake("foreignKeys", f"is missing: the key of the patient; {EXAMPLE}")
        elif isinstance(table.schema.values["foreignKeys"], list | tuple):
            table.schema.mistake(
                "foreignKeys",
                f"no key of {table.name} points to the table of patients, {patients.name}; "
                f"{EXAMPLE}",
            )
        return None
    if len(own) > 1:
        table.schema.mistake("foreignKeys", f"one key points to {patients.name}, not {len(own)}")
        return None
    if own[0].target != (key,):
        table.schema.mistake(
            "foreignKeys", f"the patient's key is {shown(key)}, not {listed(own[0].target)}"
        )
        return None
    return own[0].columns[0]


def check_circles(links: Mapping[str, Sequence[Link]], top: FieldReader) -> None:
    """Note each circle of keys once."""
    done: set[str] = set()
    for start in links:
        way: list[str] = []
        _walk(start, links, way, done, top)


def _walk(
    table: str,
    links: Mapping[str, Sequence[Link]],
    way: list[str],
    done: set[str],
    top: FieldReader,
) -> None:
    if table in way:
        circle = [*way[way.index(table) :], table]
        top.mistake(
            "resources",
            f"keys go in a circle: {' -> '.join(circle)}; remove one of these foreignKeys",
        )
    elif table not in done:
        way.append(table)
        for link in links.get(table, ()):
            _walk(link.table, links, way, done, top)
        way.pop()
    done.add(table)


def _names(part: FieldReader, key: str) -> tuple[str, ...]:
    """Read a column's name, or a list of them."""
    if isinstance(part.values.get(key), str):
        name = part.text(key)
        return () if name is None else (name,)
    return tuple(name for name in part.texts(key) or () if name)
