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

from dpsynth.certificate.certificate import (
    ADJACENCY,
    LINKED,
    VERSION,
    Certificate,
    certify,
    json_schema,
)
from dpsynth.certificate.override import OVERRIDABLE
from dpsynth.errors import ArtifactError, InputError
from dpsynth.models.registry import NAMES
from dpsynth.schema.schema import Schema
from dpsynth.synthesis.preparation import prepare

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
    assert list(properties) == [*document, "tables"]  # of linked tables alone
    assert list(document) == SCHEMA["required"]
    assert properties["version"]["enum"] == [VERSION, LINKED]
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


def test_epsilon_can_be_computed_without_dpsynth(bundle: Path, tmp_path: Path) -> None:
    """The program of docs/certificate.md agrees, and refuses a claim that is too small."""
    text = (ROOT / "docs/certificate.md").read_text()
    result = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert result is not None and "dpsynth" not in result[1]
    (tmp_path / "recompute.py").write_text(result[1])

    def run(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "recompute.py"), str(path)]
        return subprocess.run(command, capture_output=True, text=True)

    schema = Schema.load("demo")
    plan = prepare(schema, epsilon=2.0, delta=1e-6, model="tvae", publish_quality=0.05).plan
    trained = tmp_path / "privacy.json"
    trained.write_text(json.dumps(certify(schema, plan, model="tvae", charge=None)))
    for path in (bundle / "privacy.json", trained):
        document = json.loads(path.read_text())
        done = run(path)
        assert done.returncode == 0, done.stderr
        computed = float(done.stdout.rpartition("computed ")[2])
        assert computed == pytest.approx(document["composed_epsilon"], rel=5e-3)
        document["epsilon"] *= 0.9
        (tmp_path / "less.json").write_text(json.dumps(document))
        assert run(tmp_path / "less.json").returncode == 1
