"""Round trip and fuzz: documents of linked tables, read and written, give the same facts."""

from __future__ import annotations

import copy
import csv
import gzip
import os
from pathlib import Path
from typing import Any

import frictionless
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import LinkedSchema, Schema, shipped_packages

from ..support.linked_tables import choice, field, key, number, package, plain
from .test_schema_fuzz import Changes, changes_of, check_changed
from .test_schema_round_trip import fields, texts

BASE = package()
declared = st.fixed_dictionaries({"value": st.integers(1, 99), "basis": texts})
declarations = st.fixed_dictionaries(
    {
        "schedule": st.one_of(
            st.lists(st.integers(-50, 99), min_size=1, max_size=9, unique=True).map(sorted),
            st.fixed_dictionaries(
                {
                    "from": st.integers(-50, 0),
                    "every": st.integers(1, 9),
                    "times": st.integers(1, 9),
                }
            ),
        )
    },
    optional={"schedule_within": st.integers(0, 9)},
)


@st.composite
def children(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A child table of any kind."""
    columns = [plain("id"), plain("at", draw(st.sampled_from(["integer", "date", "datetime"])))]
    timed = draw(st.booleans())
    own: dict[str, Any] = {"time": "at"} if timed else {"order": "at"}
    if timed and columns[1]["type"] != "integer":
        own["origin"] = "index"
    kind = draw(st.sampled_from(["wide", "long", "once"]))
    if kind == "once":
        own = {"time": "at", "once": "event"}
        own |= {"origin": "index"} if columns[1]["type"] != "integer" else {}
        columns.append(choice("event", *draw(st.lists(texts, min_size=1, max_size=3, unique=True))))
    else:
        own |= {"max_rows": draw(declared), "keep": draw(st.sampled_from(["random", "window"]))}
        own |= {"longest_gap": draw(st.integers(1, 99))} if timed else {}
        own |= draw(declarations) if timed else {}
        taken = ("id", "at", "test", "value")
        names = draw(st.lists(texts.filter(lambda t: t not in taken), min_size=1, unique=True))
        columns += [draw(fields(name)) for name in names[:3]]
    if kind == "long":
        columns += [plain("test"), plain("value", "number")]
        values = st.fixed_dictionaries(
            {"minimum": st.integers(-9, 0), "maximum": st.integers(1, 9), "bounds_basis": texts},
            optional={"ucum": texts, "required": st.booleans(), "title": texts},
        )
        tests = draw(st.dictionaries(texts.filter(lambda t: t not in names), values, min_size=1))
        own["series"] = {"column": "test", "value": "value", "tests": tests}
        own["series"]["on_unknown"] = draw(st.sampled_from(["drop", "refuse"]))
    schema = {"foreignKeys": [key()], "fields": columns, "missingValues": ["", "?"]}
    return {"name": name, "schema": schema, "dpsynth": own}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    index = field("index", "date", {"bounds_basis": "period of the study"})
    index["constraints"] |= {"minimum": "2000-01-01", "maximum": "2010-12-31"}
    patients = [plain("id"), index, number("end", 0, 3650), choice("sex", "F", "M")]
    names = draw(st.lists(st.from_regex("[a-o][a-z0-9._-]*", fullmatch=True), unique=True))[:3]
    own = {"version": 1, "patients": "patients", "population": draw(declared)}
    own |= {"window": {"first": -draw(st.integers(50, 99)), "last": 99, "basis": draw(texts)}}
    own |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "end": st.just("end"),
                "source": texts,
                "draft": st.just(True),
                "key": st.just({"case": True}),
                "person": st.just({"name": "patient"}),
            },
        )
    )
    tables = [draw(children(name)) for name in names]
    table = {"name": "patients", "schema": {"primaryKey": "id", "fields": patients}}
    return {"resources": draw(st.permutations([table, *tables])), "dpsynth": own}


@pytest.mark.long
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_documents_round_trip(document: dict[str, Any]) -> None:
    schema = LinkedSchema.from_dict(document)
    written = schema.to_dict()
    assert LinkedSchema.from_dict(written) == schema
    assert LinkedSchema.from_dict(written).to_dict() == written
    for resource in written["resources"]:
        frictionless.Schema.from_descriptor(copy.deepcopy(resource["schema"]))


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=documents())
def test_files_round_trip(tmp_path: Path, suffix: str, document: dict[str, Any]) -> None:
    schema = LinkedSchema.from_dict(document)
    file = tmp_path / f"tables{suffix}"
    schema.save(file)
    assert LinkedSchema.load(file) == schema or "name" not in document
    assert LinkedSchema.from_dict(schema.to_dict()).hash() == schema.hash()


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(changes_of(BASE))
def test_any_value_anywhere_gives_a_schema_or_a_schema_error(changes: Changes) -> None:
    check_changed(LinkedSchema, BASE, changes)


def test_shipped_packages_are_complete() -> None:
    assert shipped_packages() == ["clinic", "nafld"]
    schema = LinkedSchema.load("nafld")
    schema.require_complete()
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    for column in (*schema.patients.modelled, *schema.child("labs").series.columns):  # type: ignore[union-attr]
        assert column.title and column.bounds_basis and len(column.bounds_basis) >= 20, column.name
    with pytest.raises(InputError, match="no shipped schema is called 'nafl'"):
        LinkedSchema.load("nafl")
    with pytest.raises(SchemaError, match="this is a Data Package"):
        Schema.from_dict(schema.to_dict())


@pytest.mark.parametrize("name", ["patients", "labs", "events"])
def test_the_header_of_the_real_table_matches(name: str) -> None:
    folder = os.environ.get("DPSYNTH_DATA")
    if not folder:
        pytest.skip("DPSYNTH_DATA is not set: it names the folder with the real tables")
    linked = LinkedSchema.load("nafld")
    schema = linked.patients if name == "patients" else linked.child(name).schema
    with gzip.open(Path(folder) / f"nafld_{name}.csv.gz", "rt", encoding="utf-8") as file:
        assert next(csv.reader(file)) == [column.name for column in schema.columns]
