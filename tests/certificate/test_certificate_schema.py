"""privacy.json has a JSON Schema, as strict as its reader, and anybody can do its arithmetic."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpsynth.certificate import Certificate, certify, json_schema
from dpsynth.certificate.certificate import ADJACENCY, VERSION
from dpsynth.certificate.charge import OVERRIDABLE
from dpsynth.errors import ArtifactError, InputError
from dpsynth.models.registry import NAMES
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(json_schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def document(bundle: Path) -> dict[str, Any]:
    text: dict[str, Any] = json.loads((bundle / "privacy.json").read_text())
    return text


def test_it_is_a_sound_schema_of_this_version(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    properties = SCHEMA["properties"]
    assert list(properties) == list(document) == SCHEMA["required"]
    assert properties["version"]["const"] == VERSION == 1
    assert properties["adjacency"]["const"] == ADJACENCY
    assert tuple(SCHEMA["$defs"]["override"]["properties"]["gate"]["enum"]) == OVERRIDABLE


def test_every_entry_is_described() -> None:
    def undescribed(node: Any, place: str) -> Iterator[str]:
        for name, entry in node.get("properties", {}).items():
            if "description" not in entry and "const" not in entry:
                yield f"{place}.{name}"
            yield from undescribed(entry, f"{place}.{name}")

    for name, node in {"": SCHEMA, **SCHEMA["$defs"]}.items():
        assert list(undescribed(node, name)) == []


@pytest.mark.parametrize("model", NAMES)
def test_the_certificate_of_every_model_fits(model: str) -> None:
    schema = Schema.load("demo")
    plan = prepare(schema, epsilon=2.0, delta=1e-6, model=model, publish_quality=0.05).plan
    VALIDATOR.validate(certify(schema, plan, model=model, charge=None))


CHANGES = {
    "a key more": lambda d: d.update(note="x"),
    "a key less": lambda d: d.pop("delta"),
    "another version": lambda d: d.update(version=4),
    "a text for a number": lambda d: d.update(epsilon="3"),
    "no epsilon": lambda d: d.update(epsilon=0),
    "no attack": lambda d: d["attack_rates"].update(advantage=0),
    "an attack beyond all": lambda d: d["attack_rates"].update(tpr_at_1_percent=1.5),
    "another attack": lambda d: d["attack_rates"].update(auc=0.5),
    "no events": lambda d: d.update(events=[]),
    "an unknown event": lambda d: d["events"][0].update(kind="laplace"),
    "an event with more": lambda d: d["events"][0].update(seed=1),
    "an event without noise": lambda d: d["events"][0].update(sigma=0),
    "no rows of a unit": lambda d: d["unit"].update(max_rows=0),
    "a seal that is none": lambda d: d["ledger"].update(seal="x"),
    "an override of cells": lambda d: d.update(
        overrides=[{"gate": "cells", "reason": "r", "by": "b"}]
    ),
    "an override by nobody": lambda d: d.update(
        overrides=[{"gate": "audit", "reason": "r", "by": ""}]
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_schema_and_reader_refuse_the_same(document: dict[str, Any], name: str) -> None:
    VALIDATOR.validate(document)
    CHANGES[name](document)
    assert not VALIDATOR.is_valid(document)
    with pytest.raises((ArtifactError, InputError)):
        Certificate.from_dict(document)


EACH = """
import io, runpy, sys
from contextlib import redirect_stdout
program, *places = sys.argv[1:]
for place in places:  # as a program of its own, whose status comes after what it prints
    sys.argv[1:], status = [place], 0
    with redirect_stdout(io.StringIO()) as said:
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as end:
            status = int(end.code or 0)
    print(" ".join(said.getvalue().split()), status)
print("dpsynth" in sys.modules)
"""


@pytest.mark.long
def test_epsilon_can_be_computed_without_dpsynth(bundle: Path, tmp_path: Path) -> None:
    """The program of docs/certificate.md agrees, and refuses a claim that is too small."""
    text = (ROOT / "docs/certificate.md").read_text()
    result = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert result is not None and "dpsynth" not in result[1]
    (tmp_path / "recompute.py").write_text(result[1])

    schema = Schema.load("demo")
    plan = prepare(schema, epsilon=2.0, delta=1e-6, model="tvae", publish_quality=0.05).plan
    trained = certify(schema, plan, model="tvae", charge=None)
    places, claimed = [], []
    for place, document in enumerate((json.loads((bundle / "privacy.json").read_text()), trained)):
        for part in (1.0, 0.9):
            places.append(tmp_path / f"{part} of {place}.json")
            claimed.append((document["composed_epsilon"], document["attack_rates"].values()))
            less = document | {"epsilon": document["epsilon"] * part}
            places[-1].write_text(json.dumps(less))
    done = subprocess.run(
        [sys.executable, "-c", EACH, str(tmp_path / "recompute.py"), *map(str, places)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    *results, imported = done.stdout.splitlines()
    assert imported == "False"
    assert [line.split()[-1] for line in results] == ["0", "1"] * 2
    for line, (epsilon, rates) in zip(results, claimed, strict=True):
        words = line.split()
        found = [float(word) for word in (words[1], words[2], words[4])]
        assert found == pytest.approx(list(rates), rel=5e-3)
        computed = float(line.rpartition("computed ")[2].split()[0])
        assert computed == pytest.approx(epsilon, rel=5e-3)
