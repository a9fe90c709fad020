"""What one hostile patient may bring to a table of others, and the shape of what is public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.privacy import Answer
from dpsynth.schema import Schema
from dpsynth.tables import simulate

KEPT = ("patient_id", "sex", "age", "smoker", "ward", "readmitted_30d")
PATIENT = "hostile"


def strict() -> Schema:
    """A few columns, some of which refuse what they do not declare."""
    document = Schema.load("demo").to_dict()
    document["fields"] = [field for field in document["fields"] if field["name"] in KEPT]
    for field in document["fields"]:
        if field["name"] == "age":
            field.setdefault("dpsynth", {})["on_bad"] = "refuse"
        if field["name"] == "ward":
            field.setdefault("dpsynth", {})["on_unknown"] = "refuse"
    del document["dpsynth"]["rules"]
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 300
    return Schema.from_dict(document)


STRICT = strict()


def rows(**cells: Any) -> pd.DataFrame:
    ordinary = {"sex": "female", "age": "50", "smoker": "never", "ward": "obstetrics"}
    ordinary |= {"readmitted_30d": "false", "patient_id": PATIENT}
    return pd.DataFrame([ordinary | cells])[list(KEPT)]


HOSTILE: dict[str, pd.DataFrame] = {
    "a refused number": rows(age="none of your business"),
    "a refused category": rows(ward="moon"),
    "all missing": rows(**{name: "" for name in KEPT if name != "patient_id"}),
    "nothing but a key": rows(**{name: None for name in KEPT if name != "patient_id"}),
    "out of bounds": rows(age="1e300"),
    "many rows": pd.concat([rows(age=str(20 + one % 60)) for one in range(500)]),
    "some refused": pd.concat([rows(), rows(age="x"), rows()]),
    "no key": rows(patient_id=""),
}
"""What one patient may bring; all else is as it was without."""


def others(units: int = 40) -> pd.DataFrame:
    table = simulate(units, seed=1)[list(KEPT)].astype(str)
    return table.replace({"nan": "", "<NA>": "", "True": "true", "False": "false"})


def same_answers(*words: Any) -> tuple[Answer, ...]:
    """Answer as if there was one real row in each cell, whoever is there."""
    cohort, sizes, questions, parts, event, _ = words
    assert cohort.codes.shape[1:] == (STRICT.unit.max_rows, len(sizes))
    found = [Answer(np.array([300]), event.sigma_for(parts[0]))]
    codes = np.zeros((1, len(sizes)), dtype=np.uint16)
    for question, part in zip(questions, parts[1:], strict=True):
        found.append(Answer(np.ones_like(question.exact(codes, 300.0)), event.sigma_for(part)))
    return tuple(found)


def shape(value: Any) -> Any:
    """Keys and types of a document; lists by their lengths."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


def public_shape(bundle: Path) -> dict[str, Any]:
    """Every file of a bundle, with its keys where it has some."""
    return {
        path.relative_to(bundle).as_posix(): shape(json.loads(path.read_text()))
        if path.suffix == ".json"
        else None
        for path in sorted(bundle.rglob("*"))
        if path.is_file()
    }
