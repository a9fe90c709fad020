"""Round trip: any valid document, read and written, gives the same facts and the same document."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import frictionless
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth.schema.schema import Schema

words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1)
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
            "date": st.dates().map(str),
            "datetime": st.datetimes().map(lambda t: t.replace(microsecond=0).isoformat()),
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
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    declared = st.fixed_dictionaries({"value": st.integers(1, 99), "basis": texts})
    own = {"population": draw(declared), "rows": draw(declared)}
    if draw(st.booleans()):
        own |= {"draft": True, "source": draw(texts)}
    table = {"version": 1} | own
    columns = [draw(fields(name)) for name in names]
    return {"fields": columns, "missingValues": ["", "?"], "dpsynth": table}


@settings(max_examples=200, deadline=None)
@given(documents())
def test_documents_round_trip(document: dict[str, Any]) -> None:
    schema = Schema.from_dict(document)
    written = schema.to_dict()
    assert Schema.from_dict(written) == schema
    assert Schema.from_dict(written).to_dict() == written
    for descriptor in (written, schema.to_table_schema()):
        frictionless.Schema.from_descriptor(copy.deepcopy(descriptor))


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=documents())
def test_files_round_trip(tmp_path: Path, suffix: str, document: dict[str, Any]) -> None:
    schema = Schema.from_dict(document)
    file = tmp_path / f"table{suffix}"
    schema.save(file)
    assert Schema.load(file) == schema
    assert Schema.load(file).hash() == schema.hash()
