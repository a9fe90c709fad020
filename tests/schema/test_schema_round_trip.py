"""Round trip: any valid document, read and written, gives the same facts and the same document."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import frictionless
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth.schema import Schema

LEAST, GREATEST = date(100, 1, 1), date(9900, 1, 1)  # intervals end a little outside
words = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S"), exclude_characters="`"),
    min_size=1,
)
texts = words.filter(lambda text: text not in ("TODO", "?"))


@st.composite
def fields(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A valid field of any modelled kind."""
    kind = draw(st.sampled_from(["integer", "number", "date", "datetime", "year", "boolean"] * 2))
    kind = draw(st.sampled_from([kind, "string", "codes", "coded integer"]))
    required = draw(st.booleans())
    field: dict[str, Any] = {"name": name, "type": kind, "constraints": {"required": required}}
    own: dict[str, Any] = {"bounds_basis": draw(texts)}
    bad = ["refuse", *([] if required else ["missing"])]
    if kind in ("string", "coded integer"):
        values: Any = draw(st.lists(texts if kind == "string" else st.integers(-50, 50))) or None
        values = list(dict.fromkeys(values or (["a"] if kind == "string" else [0])))
        field |= {"type": "string" if kind == "string" else "integer"}
        field["constraints"]["enum"] = values
        field["categories"] = [{"value": v, "label": draw(texts)} for v in values]
        bad += [*values, *(["other"] if kind == "string" else [])]
        own |= draw(st.fixed_dictionaries({}, optional={"on_unknown": st.sampled_from(bad)}))
    elif kind == "codes":
        field["type"] = "string"
        own["codes"] = {"system": "ICD-9-CM", "rollup": "chapter-diabetes"}
    elif kind != "boolean":
        bad += ["minimum", "maximum"]
        source: dict[str, st.SearchStrategy[Any]] = {
            "integer": st.integers(-(2**53), 2**53),
            "number": st.floats(-1e300, 1e300),
            "date": st.dates(LEAST, GREATEST).map(str),
            "datetime": st.dates(LEAST, GREATEST).map(lambda day: f"{day}T12:34:56"),
            "year": st.integers(1, 9999),
        }
        low, high = sorted([draw(source[kind]), draw(source[kind])])
        field["constraints"] |= {"minimum": low, "maximum": high}
        if kind != "number" and draw(st.booleans()):
            own["step"] = draw(st.integers(1, 100))
    own |= draw(st.fixed_dictionaries({}, optional={"on_bad": st.sampled_from(bad)}))
    own |= draw(st.fixed_dictionaries({}, optional={"ucum": texts, "role": st.just("sensitive")}))
    field |= draw(st.fixed_dictionaries({}, optional={"title": texts, "description": texts}))
    return field | {"dpsynth": own}


@st.composite
def related(draw: st.DrawFn, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Columns that lean on others: intervals to a date, a calendar, a derived number."""
    added: list[dict[str, Any]] = []
    dates = [f for f in fields if f["type"] in ("date", "datetime")]
    for place, base in enumerate(dates):
        if draw(st.booleans()):
            base["dpsynth"]["calendar"] = draw(st.sampled_from(["month", ["weekday", "month"]]))
        kind = draw(st.sampled_from(["date", "datetime"]))
        units = ["d", "wk", "a"] if kind == "date" else ["s", "min", "h", "d"]
        side = draw(st.sampled_from(["after", "before"]))
        own: dict[str, Any] = {side: base["name"], "bounds_basis": draw(texts)}
        own |= {"longest": draw(st.integers(5, 40)), "unit": draw(st.sampled_from(units))}
        own |= draw(st.fixed_dictionaries({}, optional={"shortest": st.integers(0, 5)}))
        added.append({"name": f"{side} {place}", "type": kind, "dpsynth": own})
        formula = f"days(`{base['name']}`, `{side} {place}`) / 7 + 1"
        derived = {"derived": formula, "bounds_basis": draw(texts)}
        bounds = {"minimum": -100, "maximum": 100}
        added.append(
            {"name": f"weeks {place}", "type": "number", "constraints": bounds, "dpsynth": derived}
        )
    return added


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    declared = st.fixed_dictionaries({"value": st.integers(1, 99), "basis": texts})
    own = {"population": draw(declared), "rows": draw(declared)}
    if draw(st.booleans()):
        own |= {"draft": True, "source": draw(texts)}
    table = {"version": 1} | own
    columns = [draw(fields(name)) for name in names]
    columns += draw(related(columns))
    return {"fields": columns, "missingValues": ["", "?"], "dpsynth": table}


def check_document(document: dict[str, Any]) -> None:
    schema = Schema.from_dict(document)
    written = schema.to_dict()
    assert Schema.from_dict(written) == schema
    assert Schema.from_dict(written).to_dict() == written
    for descriptor in (written, schema.to_table_schema()):
        frictionless.Schema.from_descriptor(copy.deepcopy(descriptor))


@settings(max_examples=60, deadline=None)
@given(documents())
def test_documents_round_trip(document: dict[str, Any]) -> None:
    check_document(document)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(documents())
def test_many_documents_round_trip(document: dict[str, Any]) -> None:
    check_document(document)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=documents())
def test_files_round_trip(tmp_path: Path, suffix: str, document: dict[str, Any]) -> None:
    schema = Schema.from_dict(document)
    file = tmp_path / f"table{suffix}"
    schema.save(file)
    assert Schema.load(file) == schema
    assert Schema.load(file).hash() == schema.hash()
