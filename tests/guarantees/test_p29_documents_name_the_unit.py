"""P29: every fit gives its unit, and every document says whose epsilon it states.

A patient is named where patients were counted and nowhere else; an assumed number of units stands
in every document.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import dpsynth
from dpsynth.certificate import Certificate, protected, readings
from dpsynth.errors import BudgetError, SchemaError
from dpsynth.ledger import Ledger
from dpsynth.privacy import Unit
from dpsynth.privacy.unit import group_cost
from dpsynth.schema import Schema

from ..support.source_code import nodes_of
from .units import clinic, fit, past_now


def test_every_fit_gives_its_unit(ledger: Ledger) -> None:
    fit(ledger, clinic("patient_id"))
    [entry] = ledger.entries()
    assert entry.unit == Unit.of(clinic("patient_id")) and entry.unit.name == "patient_id"
    for other in (clinic(), clinic("encounter_id"), clinic("patient_id", missing_key="own")):
        with pytest.raises(BudgetError, match="Nothing was charged"):
            fit(ledger, other)
    assert len(ledger.entries()) == 1


def test_one_place_reserves_and_gives_the_schemas_unit() -> None:
    """Fits, audits on real rows and refits go through `charged`; nothing else reserves."""
    root = Path(dpsynth.__file__).parent
    calls = [
        (path.name, {word.arg for word in node.keywords})
        for path in root.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("reserve", "reserve_all")
    ]
    assert {name for name, _ in calls} == {"charging.py", "stages.py", "ledger.py"}
    assert all("unit" in words for name, words in calls if name == "charging.py" and words)
    assert "unit=Unit.of(schema)," in (root / "ledger/charging.py").read_text()


@pytest.mark.parametrize("key", [None, "encounter_id"])
def test_nobody_is_called_a_patient_where_none_was_counted(
    key: str | None, ledger: Ledger, tmp_path: Path
) -> None:
    from dpsynth.bundle import release
    from dpsynth.ledger.balances import Snapshot
    from dpsynth.ledger.board_page import page

    fit(ledger, clinic(key), output=tmp_path / "run")
    release(tmp_path / "run", tmp_path / "bundle", size=50, seed=1, ledger=ledger)
    texts = {
        path.name: path.read_text().replace("patient_id", "").lower()
        for path in (tmp_path / "bundle").rglob("*")
        if path.suffix in (".html", ".md", ".json", ".csv")
    }
    assert len(texts) > 4 and [name for name, text in texts.items() if "patient" in text] == []
    unit = "row of the source table" if key is None else "encounter_id"
    assert unit in texts["report.html"]
    shown = page(Snapshot.of(ledger, past_now()))
    assert "patient" not in shown.replace("such as a patient or a row", "").lower()


def test_documents_say_patient_where_one_was_counted(ledger: Ledger) -> None:
    named = clinic("patient_id", person={"name": "patient"})
    certificate = Certificate.from_dict(fit(ledger, named).certificate)
    text = protected(certificate.unit)
    assert "The guarantee protects a patient, identified by column 'patient_id'" in text
    assert "in sum for each patient" in certificate.not_covered[0]


def test_an_assumed_number_of_units_stands_in_every_document(ledger: Ledger) -> None:
    schema = clinic(person={"name": "patient", "max_units": {"value": 3, "basis": "form 7"}})
    certificate = Certificate.from_dict(fit(ledger, schema, epsilon=0.2).certificate)
    text = " ".join(certificate.not_covered)
    assert "is an assumption, which nothing checks (why: form 7)" in text
    assert certificate.ledger is not None and certificate.ledger.epsilon_total == 0.6
    assert (certificate.epsilon, certificate.cost[0]) == (0.2, 0.6)
    assert "at most 3 rows" in protected(certificate.unit)
    [reading] = readings(certificate)  # the only fit: no sum beside it
    assert reading.epsilon == pytest.approx(3 * certificate.composed_epsilon)
    assert reading.delta == group_cost(certificate.composed_epsilon, 1e-6, 3)[1]
    [entry] = ledger.entries()
    assert entry.unit.max_units_basis == "form 7"
    json.dumps(entry.to_dict())


def test_a_schema_says_how_many_where_one_may_have_several() -> None:
    for facts in ({"key": None}, {"key": "patient_id", "missing_key": "own"}):
        with pytest.raises(SchemaError, match="max_units"):
            clinic(**facts, person={"name": "patient"})
    for person in ({"name": "Ms Miller"}, {}, {"name": "patient", "max_units": {"value": 2}}):
        with pytest.raises(SchemaError, match="person"):
            clinic("patient_id", person=person)
    several = {"value": 2, "basis": "form"}
    person = {"name": "patient", "same_as": ["mrn"], "max_units": several}
    schema = clinic("encounter_id", person=person)
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["dpsynth"]["person"] == person
