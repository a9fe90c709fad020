"""What is damaged: good schemas, a policy, runs, a bundle and a ledger, made once in a folder."""

from __future__ import annotations

import copy
import os
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from dpsynth.schema.files import shipped_names
from dpsynth.schema.schema import Schema

Files = dict[str, bytes]

BASIS = {"bounds_basis": "protocol of the study"}
_SPAN = {"minimum": "2015-01-01", "maximum": "2020-12-31"}
_ENUM = {"enum": ["A", "B", "C"], "required": True}


def _field(name: str, type_: str, own: dict[str, Any], **constraints: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "constraints": constraints, "dpsynth": own}


CLINIC: dict[str, Any] = {
    "name": "clinic",
    "missingValues": ["", "NA", "-9"],
    "fields": [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        {"name": "visited", "type": "datetime", "dpsynth": {"role": "order"}},
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
        {"name": "ward", "type": "string", "constraints": _ENUM, "dpsynth": BASIS},
        _field("weight", "number", BASIS | {"step": 0.5}, minimum=30, maximum=200),
        _field("age", "integer", BASIS, minimum=18, maximum=99, required=True),
        _field("grade", "integer", BASIS, enum=[1, 2, 3]),
        {"name": "smoker", "type": "boolean", "dpsynth": {}},
        _field("admitted", "date", BASIS | {"calendar": ["weekday", "month"]}, **_SPAN),
        {
            "name": "discharged",
            "type": "date",
            "dpsynth": BASIS | {"after": "admitted", "longest": 90},
        },
        {"name": "followed", "type": "date", "constraints": _SPAN, "dpsynth": BASIS},
        _field(
            "stay",
            "integer",
            BASIS | {"derived": "days(admitted, discharged)"},
            minimum=0,
            maximum=90,
        ),
        _field(
            "measured",
            "datetime",
            BASIS,
            minimum="2015-01-01T00:00:00",
            maximum="2015-02-01T00:00:00",
        ),
        _field("born", "year", BASIS, minimum=1900, maximum=2000),
    ],
    "dpsynth": {
        "version": 1,
        "max_rows": {"value": 2, "basis": "office policy"},
        "keep": "window",
        "population": {"value": 300, "basis": "annual report"},
        "rows": {"value": 250, "basis": "annual report"},
        "rules": ["admitted <= followed"],
    },
}
POLICY: dict[str, Any] = {
    "dpsynth_policy": 1,
    "name": "Data-sharing office, 2026",
    "delta": 1e-5,
    "caps": {
        "release": {"epsilon": 4, "basis": "law"},
        "year": {"epsilon": 5, "basis": "ethics board"},
        "total": {"epsilon": 50, "basis": "ethics board"},
    },
    "tiers": {
        "rare-disease": {"releases_a_year": 1, "least": {"epsilon": 0.17, "basis": "accuracy"}},
        "standard": {"releases_a_year": 2, "caps": {"year": {"epsilon": 3, "basis": "board"}}},
    },
    "datasets": {"clinics": ["clinic-2019", "clinic-2020"]},
    "models": ["autoregressive", "independent", "mixture", "tvae"],
    "minimum_population": {"value": 50, "basis": "ethics board"},
    "allow_refuse": True,
    "gates": ["fidelity"],
    "sign_off": {"people": 0},
}
MODELS = ("independent", "mixture")
_LARGE = 4  # columns of a schema that is damaged; more would only take longer


@dataclass(frozen=True)
class Good:
    """The files that are damaged, by their paths within their folder.

    Attributes:
        runs: run folders by model.
        bundle: a bundle.
        ledger: the bytes of a ledger of three fits under a policy.
    """

    runs: dict[str, Files]
    bundle: Files
    ledger: bytes

    @classmethod
    def at(cls, folder: Path) -> Good:
        """Read what `make` wrote."""
        return cls(
            runs={model: files_of(folder / model) for model in MODELS},
            bundle=files_of(folder / "bundle"),
            ledger=(folder / "ledger.sqlite").read_bytes(),
        )


def documents() -> list[dict[str, Any]]:
    """Return the schema documents that are damaged."""
    return [copy.deepcopy(CLINIC), *(Schema.load(name).to_dict() for name in shipped_names())]


def fewer_columns(rng: Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with some of the columns of a large one, and the rules about them."""
    fields, own = document["fields"], document["dpsynth"]
    if len(fields) <= _LARGE:
        return document
    kept = standing([fields[place] for place in sorted(rng.sample(range(len(fields)), _LARGE))])
    gone = {field["name"] for field in fields} - {field["name"] for field in kept}
    rules = [rule for rule in own.get("rules", ()) if not any(name in rule for name in gone)]
    return document | {"fields": kept, "dpsynth": own | {"rules": rules}}


def standing(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fields without those that lean on a date which is not there."""
    names = {field["name"] for field in fields}
    kept = [field for field in fields if _leans_on(field) <= names]
    return fields if len(kept) == len(fields) else standing(kept)


def _leans_on(field: dict[str, Any]) -> set[str]:
    own = field.get("dpsynth", {})
    return {own.get("after", field["name"])} | set(re.findall("[a-z]+ed", own.get("derived", "")))


def files_of(folder: Path) -> Files:
    """Read all files below a folder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def write_files(folder: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def make(folder: Path) -> None:
    """Fit small runs, release one under a policy, and leave all that in a folder; seconds."""
    import dpsynth
    from dpsynth.bundle.writer import release
    from dpsynth.ledger.actions import adopt
    from dpsynth.ledger.ledger import Ledger
    from dpsynth.policy.policy import Policy
    from dpsynth.synthesis.sample_log import record_sample

    ledger = folder / "ledger.sqlite"
    os.environ["DPSYNTH_LEDGER"] = str(ledger)
    schema, book = Schema.from_dict(CLINIC), Ledger.create(ledger)
    for model in MODELS:
        output = folder / model
        frame = good_rows(60)
        dpsynth.fit(
            frame, schema, epsilon=2.0, delta=1e-6, dataset="clinics", model=model, output=output
        )
        (folder / "table.csv").write_text("x")
        record_sample(output, folder / "table.csv", size=1, seed=1)
        if model == "independent":
            release(output, folder / "bundle", size=30, seed=7, ledger=book)
            adopt(book, Policy.from_dict(POLICY | {"tiers": {}}, "policy"))


def good_rows(count: int) -> Any:
    """Return a table of text cells that fits the clinic's schema."""
    import pandas as pd

    day = "20{:02}-0{}-1{}"
    rows = [
        {
            "patient": f"p{i // 2}",
            "visited": f"2016-01-{1 + i % 28:02}T08:30:00",
            "note": "free text",
            "ward": "ABC"[i % 3],
            "weight": f"{60 + i / 2:g}",
            "age": str(20 + i),
            "grade": str(1 + i % 3),
            "smoker": ("true", "false")[i % 2],
            "admitted": day.format(15 + i % 5, 1 + i % 9, i % 5),
            "discharged": day.format(15 + i % 5, 1 + i % 9, i % 9),
            "followed": day.format(16 + i % 5, 1 + i % 9, i % 5),
            "measured": f"2015-01-{1 + i % 31:02}T00:00:00",
            "born": str(1950 + i % 40),
        }
        for i in range(count)
    ]
    return pd.DataFrame(rows)
