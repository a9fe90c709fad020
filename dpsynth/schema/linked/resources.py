"""The table schema of one resource, read as a schema of its own.

A resource states no unit and no sizes: the package does, once. So its fields go to the reader of
single tables with a plain unit beside them, and what that reader notes is put in the package's
places.

The tests of a long table, each with the bounds of its values.

A test declares in one flat mapping what a field of a Table Schema declares in three, because it
says nothing but its values::

    tests:
      hdl: {minimum: 5, maximum: 200, ucum: mg/dL, bounds_basis: "range of the analyser"}
      smoke: {enum: [0, 1], bounds_basis: "questionnaire, item 7"}

The time of a table as the date from which other dates of its rows count.

A stay has a day of admission, which is the time of its row, and a date of discharge, an interval
after it. The time is modelled as the day of the row and not as a column. So the reader of single
tables sees its bounds only while it checks the dates that lean on it: they are those of the window,
from the first to the last origin that the schema allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth._util.messages import closest, did_you_mean, shown
from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.column import Bound, Column, Dialect
from dpsynth.schema.columns import TableFacts, read_column
from dpsynth.schema.linked.facts import DROP, LongSeries, Window
from dpsynth.schema.schema import Schema
from dpsynth.schema.types import DAY
from dpsynth.schema.writer import field_document

RESOURCE_KEYS = (
    *("name", "schema", "dpsynth", "path", "title", "description", "$schema", "type", "profile"),
    *("format", "mediatype", "bytes", "hash", "sources", "licenses", "homepage"),
)
ELSEWHERE = {
    "dialect": "is not read here: say how the file is written in dpsynth.dialect of the resource",
    "encoding": "is not read here: write dpsynth: {dialect: {encoding: ...}} in the resource",
    "data": "rows stand in files, never in a schema; remove it",
    "foreignKeys": "belongs inside 'schema' of the resource",
    "primaryKey": "belongs inside 'schema' of the resource",
}
NOT_DISCOVERED = (
    "which tests and events there are decides how histories are modelled, so a fit cannot discover "
    "them, or the codes of a test; declare a list, or a table of rows with a column of codes"
)
NAME = re.compile(r"[A-Za-z0-9._-]+")
STRUCTURE = ("unit", "order")
CUMULATIVE = "cumulative"
"""The key of a field of a wide table whose value never falls from row to row of a patient."""
ROWS_WHERE = "rows_where"
"""The key of a resource that chooses its rows among those of its source, by their own cells."""
EXACTLY = "each patient has exactly so many rows"
"""The basis of a ``max_rows`` that follows from ``rows: {exactly: ...}``."""
_PLAIN: Mapping[str, Any] = {"value": 1, "basis": "stands for what the package declares"}


RowsWhere = tuple[tuple[str, tuple[str, ...]], ...]


def chosen_by(rows_where: RowsWhere) -> tuple[str, ...]:
    """Return the columns that have one text in all rows of a table, so that none is modelled."""
    return tuple(name for name, texts in rows_where if len(texts) == 1)


@dataclass
class Resource:
    """One resource of a document, while it is read.

    Attributes:
        part: the resource. schema: its table schema. own: its ``dpsynth`` object.
        name: of the table; a substitute if it has none.
        fields: its fields, as they stand.
        columns: the names of all of them.
        places: of the fields, by name, as messages call them.
        meant: columns that a misspelt name probably means, so that they raise no mistakes more.
        cumulative: columns that are declared so; filled while the schema is read.
    """

    part: FieldReader
    schema: FieldReader
    own: FieldReader
    name: str
    fields: list[Any]
    columns: tuple[str, ...]
    places: dict[str, str] = field(default_factory=dict)
    meant: set[str] = field(default_factory=set)
    cumulative: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, value: object, index: int, findings: FieldFindings) -> Resource:
        """Read what every resource has."""
        part = FieldReader(value, f"resources[{index}]", findings)
        for key in part.values:
            if key in ELSEWHERE:
                part.mistake(key, ELSEWHERE[key])
            elif key not in RESOURCE_KEYS and (meant := did_you_mean(key, RESOURCE_KEYS)):
                part.mistake(key, f"there is no such key here{meant}")
        name = part.text("name")
        if not part.has("name"):
            part.mistake("name", "is missing: the table's name, by which others point to it")
        elif name is not None and not NAME.fullmatch(name):
            part.mistake("name", "a table's name has letters, digits, '.', '_' and '-' only")
            name = None
        if not part.has("schema"):
            part.mistake("schema", "is missing: the table's columns, as a Table Schema with fields")
        schema, own = part.part("schema"), part.part("dpsynth")
        if "dpsynth" in schema.values:
            schema.mistake("dpsynth", "belongs beside 'schema': write it in the resource")
        listed = schema.values.get("fields")
        fields = list(listed) if isinstance(listed, list | tuple) else []
        names = [f.get("name") if isinstance(f, Mapping) else None for f in fields]
        columns = tuple(dict.fromkeys(n for n in names if isinstance(n, str)))
        places = {
            name: schema.at(f"fields[{place}]") + f" {shown(name)}"
            for place, name in reversed(list(enumerate(names)))
            if isinstance(name, str)
        }
        return cls(part, schema, own, name or f"table-{index}", fields, columns, places)

    @property
    def findings(self) -> FieldFindings:
        """Where notes go."""
        return self.part.findings

    def column(self, key: str) -> str | None:
        """Read a key of ``dpsynth`` that names a column of this table."""
        name = self.own.text(key)
        return name if name is None else self.known(name, self.own, key)

    def known(self, name: str, part: FieldReader, key: str) -> str | None:
        """Return the name of a column that this table has; note one that it does not have."""
        if name in self.columns:
            return name
        near, hint = closest(name, self.columns), did_you_mean(name, self.columns)
        self.meant |= set() if near is None else {near}
        part.mistake(key, f"table {self.name} has no column {shown(name)}{hint}")
        return None

    def read_rows_where(self, placed: Mapping[str, str | None]) -> RowsWhere:
        """Read which rows of the source are those of the table.

        Args:
            placed: columns with another part to play, by what it is called.
        """
        part, chosen = self.own.part(ROWS_WHERE), dict[str, tuple[str, ...]]()
        if self.own.has(ROWS_WHERE) and not part.values:
            part.mistake(None, "name a column, and what it holds in the rows of this table")
        for name, value in part.values.items():
            if not part.has(name):
                part.gap(name, 'is missing: a text or a list of texts; "" for an empty cell')
                continue
            several = isinstance(value, list | tuple)
            texts = FieldReader({name: value if several else [value]}, part.place, self.findings)
            found = texts.texts(name)
            others = [what for what, column in placed.items() if column == name]
            if others:
                part.mistake(name, f"{shown(name)} is {others[0]} already; name another column")
            elif found == ():
                part.mistake(name, "a text or a list of texts is expected, not an empty list")
            elif self.known(name, part, name) is not None and found:
                fields = (one for one in self.fields if isinstance(one, Mapping))
                kind = next(one.get("type") for one in fields if one.get("name") == name)
                if kind != "string":
                    part.mistake(name, f"a column of type string is expected, not {shown(kind)}")
                chosen[name] = found
        return tuple(chosen.items())

    def read_schema(
        self,
        *,
        unit: str | None,
        plain: tuple[str, ...],
        tests: Tested | None,
        draft: bool,
        capped: bool,
        base: BaseTime | None = None,
        exactly: int | None = None,
        rows_where: RowsWhere = (),
    ) -> Schema | None:
        """Read the table schema; None if it has mistakes, which are noted.

        Args:
            unit: the column of the patient's key.
            plain: columns with a place of their own: time, order, the value of a long table.
            tests: the column of tests, whose categories they are.
            draft: whether gaps may be left.
            capped: whether it says how many rows of a patient are kept.
            base: the time, if another date of the row is an interval after or before it.
            exactly: how many rows each patient has, where that is declared.
            rows_where: see `read_rows_where`.
        """
        plain = (*plain, *chosen_by(rows_where))
        if not isinstance(self.part.values.get("schema"), Mapping):
            return None  # noted
        fields = [self._field(value, unit, plain, tests, base) for value in self.fields]
        document = {k: v for k, v in self.schema.values.items() if k not in ("dpsynth", "name")}
        document |= {"name": self.name}
        if isinstance(self.schema.values.get("fields"), list | tuple):
            document |= {"fields": fields}
        plainly = {"version": 1, "draft": draft, "population": _PLAIN, "rows": _PLAIN}
        names = ("dialect", "rules", *(["max_rows"] if capped else []))
        own = {key: self.own.values[key] for key in names if key in self.own.values}
        if exactly is not None and "max_rows" not in own:
            own["max_rows"] = {"value": exactly, "basis": EXACTLY}
        document["dpsynth"] = plainly | ({} if capped else {"max_rows": _PLAIN}) | own
        try:
            schema = Schema.from_dict(document)
        except SchemaError as error:
            for problem in error.problems:
                self.findings.mistake(self._place(problem, tests), problem.message)
            return None
        for column in schema.modelled:
            if column.several is not None:
                self.findings.mistake(
                    f"{self.places[column.name]}.dpsynth.codes.several",
                    "a cell of linked tables holds one code; put the codes into a table of their "
                    "own, a row for each",
                )
        if base is not None:
            schema = self._with_time(schema, base)
        for gap in schema.gaps:
            self.findings.gap(self._place(gap, tests), gap.message)
        title, text = self.part.text("title"), self.part.text("description")
        return replace(
            schema,
            title=schema.title if title is None else title,
            description=schema.description if text is None else text,
            draft=False,
            gaps=(),
            rows_where=rows_where,
        )

    def _field(
        self,
        value: Any,
        unit: str | None,
        plain: tuple[str, ...],
        tests: Tested | None,
        base: BaseTime | None,
    ) -> Any:
        """Return a field with the role that its place gives it."""
        name = value.get("name") if isinstance(value, Mapping) else None
        own = {} if not isinstance(value, Mapping) else value.get("dpsynth")
        own = {} if own is None else own
        if not isinstance(name, str) or not isinstance(own, Mapping):
            return value
        place = self.places[name]
        if CUMULATIVE in own:
            declared = FieldReader({CUMULATIVE: own[CUMULATIVE]}, f"{place}.dpsynth", self.findings)
            self.cumulative |= {name} if declared.flag(CUMULATIVE, False) else set()
            own = {key: content for key, content in own.items() if key != CUMULATIVE}
            value = {**value, "dpsynth": own}
        role = own.get("role")
        roles = role if isinstance(role, list | tuple) else (role,)
        if tests is not None and name == tests.column:
            return tests.field(value, own, place, self.findings)
        if name == unit or name in plain or name in self.meant:
            if role is not None:
                self.findings.mistake(f"{place}.dpsynth.role", "its place says it; remove the role")
            if base is not None and name == base.column:
                return base.field(value)
            return {**value, "dpsynth": {**own, "role": "unit" if name == unit else "drop"}}
        for word in STRUCTURE:
            if any(isinstance(one, str) and one == word for one in roles):
                key = "primaryKey and foreignKeys" if word == "unit" else "dpsynth.order"
                self.findings.mistake(
                    f"{place}.dpsynth.role",
                    f"linked tables declare no role {word}: {key} of the resource says it",
                )
                return {**value, "dpsynth": {**own, "role": "drop"}}
        return value

    def _with_time(self, schema: Schema, base: BaseTime) -> Schema:
        """Return the schema with the time as it stands; note what a rule or its field gets wrong.

        A rule of the rows sees modelled columns only, and the day of a row is none of them.
        """
        for number, rule in enumerate(schema.rules):
            if base.column in rule.columns:
                text = f"{shown(base.column)} is the time of the table; write a temporal rule"
                self.findings.mistake(self.own.at(f"rules[{number}]"), text)
        for column in schema.modelled:
            if column.present_if is not None and base.column in column.present_if.columns:
                text = f"{shown(base.column)} is the time of the table; name another column"
                self.findings.mistake(f"{self.places[column.name]}.dpsynth.present_if", text)
        field = next(one for one in self.fields if one.get("name") == base.column)
        try:
            return base.in_place(schema, field)
        except SchemaError as error:
            for problem in error.problems:
                place = problem.place.partition("fields[0]")[2].partition("'.")[2]
                self.findings.mistake(f"{self.places[base.column]}.{place}", problem.message)
            return schema

    def _place(self, problem: Problem, tests: Tested | None) -> str:
        place = problem.place
        if place.split(".")[0] == "dpsynth":
            return self.part.at(None) + "." + place
        place = self.part.at("schema") + "." + place
        if tests is not None and place.startswith(self.places[tests.column] + ".constraints"):
            return self.own.at("series") + ".tests"
        return place


@dataclass(frozen=True)
class Tested:
    """The column of a long table that names the test: its categories are the tests.

    A cell that names no test is missing there, so that its row is dropped, or refused.
    """

    column: str
    names: tuple[str, ...]
    on_unknown: str

    def field(
        self, value: Mapping[str, Any], own: Mapping[str, Any], place: str, findings: FieldFindings
    ) -> dict[str, Any]:
        """Return the field with the tests as categories; what it says of them itself is noted."""
        for key in ("constraints", "categories"):
            if value.get(key) is not None:
                findings.mistake(f"{place}.{key}", "its categories are the tests; remove it")
        for key in own:
            if key not in ("values", "case"):
                findings.mistake(
                    f"{place}.dpsynth.{key}",
                    "the column of tests declares values and case only; remove it",
                )
        kept = {key: own[key] for key in ("values", "case") if key in own}
        policy = "refuse" if self.on_unknown == "refuse" else "missing"
        kept |= {"on_unknown": policy, "on_bad": policy, "bounds_basis": "the tests of the table"}
        field = {k: v for k, v in value.items() if k not in ("constraints", "categories")}
        return field | {"constraints": {"enum": list(self.names)}, "dpsynth": kept}


FIELD = (
    *("type", "title", "description", "format", "missingValues", "trueValues", "falseValues"),
    "categories",
)
CONSTRAINTS = ("minimum", "maximum", "enum", "required")
OWN = ("step", "ucum", "bounds_basis", "on_bad", "on_unknown", "codes")
KEYS = (*CONSTRAINTS, *OWN, *FIELD)
_REMEDIES = {
    "censored": "let the source write a number for such results, such as the limit",
    "unit_from": "convert values in the source, or name a test for each unit there",
    "values": "let the source write the declared categories",
    "case": "let the source write the declared categories",
    "missing": 'write missingValues: ["", "WORD"]',
    "after": "a test has a value and no date; declare a wide table",
    "derived": "leave the test out, and compute it afterwards",
    "present_if": "a test has rows only where it was measured; remove it",
    "role": "a test has no role; leave out a test that is not needed",
}
POLICIES = (DROP, "refuse")


def read_series(table: Resource) -> LongSeries | None:
    """Read ``dpsynth.series``; None if it lacks a column or a test, which is noted."""
    part = table.own.part("series")
    part.refuse_unknown(("column", "value", "tests", "on_unknown"))
    names = {"column": "that names the test", "value": "that holds its value"}
    columns = {}
    for key, what in names.items():
        if not part.has(key):
            part.mistake(key, f"is missing: the column {what}")
        name = part.text(key)
        columns[key] = None if name is None else table.known(name, part, key)
    on_unknown = part.choice("on_unknown", POLICIES, DROP)
    tests = part.part("tests")
    if not tests.values:
        part.gap("tests", "is missing: each test, with the bounds of its value")
    column, value = columns["column"], columns["value"]
    if column is not None and column == value:
        part.mistake("value", "the test and its value are two columns")
        return None
    if column is None or value is None:
        return None
    field = next(f for f in table.fields if isinstance(f, Mapping) and f.get("name") == value)
    read = [_read_test(name, tests, field, table) for name in tests.values]
    return LongSeries(column, value, tuple(one for one in read if one is not None), on_unknown)


def _read_test(
    name: str, tests: FieldReader, value: Mapping[str, Any], table: Resource
) -> Column | None:
    """Read one test as a column of its own name."""
    if not tests.has(name):
        tests.mistake(name, "is missing: the bounds of its value, or its categories")
        return None
    part = tests.part(name)
    for key in part.values:
        if key in _REMEDIES:
            part.mistake(key, f"a test of a long table cannot declare it: {_REMEDIES[key]}")
    part.refuse_unknown((*KEYS, *_REMEDIES))
    type_ = part.values.get("type", value.get("type"))
    if "type" in part.values and value.get("type") not in ("string", type_):
        part.mistake("type", "a test of a type of its own needs a value column of type string")
    field: dict[str, Any] = {"name": name, "type": type_}
    missing = value.get("missingValues", table.schema.values.get("missingValues"))
    if isinstance(missing, list | tuple):
        field["missingValues"] = missing
    field |= {key: part.values[key] for key in FIELD if key in part.values}
    field["constraints"] = {k: part.values[k] for k in CONSTRAINTS if k in part.values}
    field["dpsynth"] = {key: part.values[key] for key in OWN if key in part.values}
    found = FieldFindings()
    column = read_column(FieldReader(field, "", found), TableFacts(("",), _decimal(table)))
    for problem in found.everything:
        place = problem.place.removeprefix("constraints.").removeprefix("dpsynth.")
        if place == "type" and not isinstance(type_, str):
            continue  # the column of values has none, which is noted there
        note = table.findings.gap
        if problem in found.mistakes:
            note = table.findings.mistake
        note(part.at(place), problem.message)
    if column is not None and column.discovers:
        part.mistake("codes", NOT_DISCOVERED)
    return column


def _decimal(table: Resource) -> str:
    dialect = table.own.values.get("dialect")
    decimal = dialect.get("decimal") if isinstance(dialect, Mapping) else None
    return decimal if decimal in (".", ",") else "."


def series_document(tests: LongSeries, value: Column, dialect: Dialect) -> dict[str, Any]:
    """Write ``dpsynth.series``."""
    written: dict[str, Any] = {"column": tests.column, "value": tests.value}
    if tests.on_unknown != DROP:
        written["on_unknown"] = tests.on_unknown
    written["tests"] = {}
    for column in tests.columns:
        field = field_document(column, value.missing_values, dialect)
        flat = field.pop("constraints", {}) | field.pop("dpsynth", {})
        field.pop("name")
        field.pop("decimalChar", None)
        if field["type"] == value.type:
            field.pop("type")
        written["tests"][column.name] = field | flat
    return written


_ANY = (date(1900, 1, 1), date(2100, 1, 1))  # while window or origin have a mistake, which is noted


@dataclass(frozen=True)
class BaseTime:
    """The column of the time, and its bounds.

    Attributes:
        column: its name.
        minimum: the earliest day that a row may have.
        maximum: the latest one; for a datetime, the midnight that ends it.
    """

    column: str
    minimum: Bound
    maximum: Bound

    def field(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field with its bounds; a row without a time is left out, so it has one."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum, "required": True}
        own = {"bounds_basis": "the window"}
        return {key: value[key] for key in _READ if key in value} | {
            "constraints": bounds,
            "dpsynth": own,
        }

    def in_place(self, schema: Schema, field: Mapping[str, Any]) -> Schema:
        """Return the schema with the time as it stands in the document, and not modelled.

        Raises:
            SchemaError: the field has a mistake, at ``fields[0]``.
        """
        own = {**field.get("dpsynth", {}), "role": "drop"}
        other = {"name": f"not {self.column}", "type": "boolean"}
        one = {"value": 1, "basis": "stands for what the package declares"}
        document = {
            "name": schema.name,
            "fields": [{**field, "dpsynth": own}, other],
            "dpsynth": {
                "version": 1,
                "draft": True,
                "population": one,
                "rows": one,
                "max_rows": one,
            },
        }
        column = Schema.from_dict(document).column(self.column)
        kept = replace(column, missing_values=schema.column(self.column).missing_values)
        columns = [kept if one.name == kept.name else one for one in schema.columns]
        return replace(schema, columns=tuple(columns))


_READ = ("name", "type", "title", "description", "format", "missingValues")


def base_time(
    fields: Sequence[Any],
    time: str | None,
    origin: str | date | None,
    patients: Schema | None,
    window: Window | None,
) -> BaseTime | None:
    """Return the time of a table if another date of the row counts from it; else None.

    Args:
        fields: of the table, as the document has them.
        time: the column of its day.
        origin: the column of patients, or the date, from which dates count; None where days are
            numbers.
        patients: the schema of their table, unless it has a mistake.
        window: of the package, unless it has a mistake.
    """
    own = [field.get("dpsynth") for field in fields if isinstance(field, Mapping)]
    named = [one.get(key) for one in own if isinstance(one, Mapping) for key in ("after", "before")]
    if time is None or time not in named:
        return None
    kinds = [f.get("type") for f in fields if isinstance(f, Mapping) and f.get("name") == time]
    if kinds[:1] == ["integer"]:
        return BaseTime(time, 0, 1)  # no date: the reader says so
    low, high = _ANY
    if patients is not None and origin is not None and window is not None:
        ends: tuple[Bound | None, Bound | None] = (None, None)
        if isinstance(origin, date):
            ends = origin, origin
        else:
            start = patients.column(origin)
            ends = start.minimum, start.maximum
        if isinstance(ends[0], date) and isinstance(ends[1], date):
            low = ends[0] + timedelta(days=window.first * window.seconds // DAY)
            high = ends[1] + timedelta(days=window.last * window.seconds // DAY + 1)
    return BaseTime(time, _day(low), _day(high))


def _day(moment: date) -> date:
    return date(moment.year, moment.month, moment.day)
