"""Public objects show themselves in one line: no dump of all fields, and no private value."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import dpsynth
from dpsynth import inspection
from dpsynth._util.short_repr import MAX_LENGTH, Document
from dpsynth.assessment import Candidate, evaluate
from dpsynth.encoding import Codec, read_cohort
from dpsynth.eval.core import RealTables
from dpsynth.ledger import Ledger
from dpsynth.privacy import OsEntropy, Unit
from dpsynth.schema import Schema
from dpsynth.synthesis import Sampler
from dpsynth.tables import OptOut, open_table, simulate
from dpsynth.workflow import ResolvedSettings, Settings

ROOMS = (
    *("assessment", "bundle", "certificate", "draft", "encoding", "inspection", "ledger"),
    *("policy", "privacy", "schema", "synthesis", "tables", "workflow"),
)
MAX_FIELDS = 8  # more than so many are not named one by one
ARRAYS = ("Answer", "Counts", "Deviation")  # noisy counts and their expected errors: public
CANARY = "zzcanaryzz"


def offered() -> list[type]:
    """The data classes that the rooms offer, and those of ``import dpsynth``."""
    kinds = []
    for room in ROOMS:
        face = import_module(f"dpsynth.{room}")
        stub = Path(inspect.getfile(face)).with_suffix(".pyi").read_text()
        kinds += [getattr(face, name) for name in re.findall(r"import \w+ as (\w+)", stub)]
    kinds += [getattr(dpsynth, name) for name in dpsynth.__all__]
    return [kind for kind in dict.fromkeys(kinds) if dataclasses.is_dataclass(kind)]


@pytest.mark.parametrize("kind", offered(), ids=lambda kind: kind.__name__)
def test_no_class_dumps_all_its_fields(kind: type) -> None:
    """A generated repr names every field: only for few, and for none that holds rows."""
    if not hasattr(kind.__repr__, "__wrapped__"):  # its own
        return
    fields = [field for field in dataclasses.fields(kind) if field.repr]
    assert len(fields) <= MAX_FIELDS
    rows = re.compile(r"DataFrame|NDArray|Codes|Floats|Bools|Source\b")
    exact = {field.name for field in fields if rows.search(str(field.type))}
    assert kind.__name__ in ARRAYS or not exact


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """One object of each kind that a person meets; the table has a canary in every text cell."""
    folder = tmp_path_factory.mktemp("reprs")
    schema = Schema.load("demo")
    frame = simulate(60, seed=1).astype(str).replace({"nan": "", "<NA>": ""})
    frame["patient_id"] = CANARY + frame["patient_id"]
    frame["ward"] = CANARY
    frame.to_csv(folder / "table.csv", index=False)
    (folder / "absent.txt").write_text(f"{CANARY}1\n")
    budget = {"epsilon": 3.0, "delta": 1e-6, "dataset": "cohort"}
    run = dpsynth.fit(
        simulate(60, seed=1), schema, model="independent", without_ledger=True, **budget
    )
    settings = Settings.of(
        schema="demo", data="postgresql://me@host/db#secret", output=folder / "b", **budget
    )
    codec, table = Codec(schema), open_table(frame, schema)
    real = RealTables.read(schema, frame)
    file_settings = Settings.of(
        schema="demo", data=folder / "table.csv", output=folder / "b", **budget
    )
    order = ResolvedSettings.of(file_settings)
    return {
        "run": run,
        "schema": schema,
        "column": schema.modelled[1],
        "unit": Unit.of(schema),
        "privacy unit": schema.unit,
        "plan": order.prepared.plan,
        "prepared": order.prepared,
        "budget": order.prepared.plan.budget,
        "settings": settings,
        "order": order,
        "ledger": Ledger.create(folder / "ledger.sqlite"),
        "state": Ledger(folder / "ledger.sqlite").state(),
        "check": inspection.check(frame, schema),
        "opt-out": OptOut.load(folder / "absent.txt", schema),
        "table": table,
        "codec": codec,
        "cohort": read_cohort(table, codec, schema, OsEntropy()),
        "sampler": Sampler.of(run, where="age > 50"),
        "real tables": real,
        "tables": real.beside(simulate(60, seed=2).drop(columns="patient_id")),
        "view": real.source,
        "candidate": Candidate("theirs", pd.DataFrame({"a": [CANARY]})),
    }


KINDS = (
    *("run", "schema", "column", "unit", "privacy unit", "plan", "prepared", "budget"),
    *("settings", "order", "ledger", "state", "check", "opt-out", "table", "codec", "cohort"),
    *("sampler", "real tables", "tables", "view", "candidate"),
)


@pytest.mark.parametrize("name", KINDS)
def test_one_line_without_a_private_value(objects: dict[str, object], name: str) -> None:
    text = repr(objects[name])
    assert "\n" not in text and len(text) <= MAX_LENGTH
    assert CANARY not in text and "secret" not in text
    assert type(objects[name]).__name__ in text
    assert str(objects[name]) == text


def test_every_object_is_tried(objects: dict[str, object]) -> None:
    assert set(KINDS) == set(objects)


def test_what_they_say(objects: dict[str, object]) -> None:
    assert repr(objects["schema"]) == "<Schema demo, 16 columns>"
    assert repr(objects["settings"]).startswith("<Settings dataset cohort, epsilon 3, delta 1e-06")
    assert repr(objects["sampler"]).endswith("where age > 50>")
    assert repr(objects["opt-out"]) == "<OptOut keys of units>"


@pytest.mark.long
def test_a_document_of_results_is_one_line_and_still_a_dictionary() -> None:
    people = simulate(120, seed=1)
    candidate = Candidate("theirs", simulate(60, seed=2).drop(columns="patient_id"))
    document = evaluate(Schema.load("demo"), people, candidate)
    assert isinstance(document, Document) and document["measures"]
    text = repr(document)
    assert text.startswith("<Document dpsynth-evaluation, internal, keys: ")
    assert "\n" not in text and len(text) <= MAX_LENGTH
