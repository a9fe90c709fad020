"""Linked tables with codes in each, for the games on their discovery."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from dpsynth.encoding import code_search
from dpsynth.privacy.discovery import Occurrences, Selected
from dpsynth.privacy.discovery_events import CodeDiscovery
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked

TABLES, ROWS = ("stays", "drugs", "tests"), 3  # beside the table of patients; rows of each patient


def package(patients: int) -> LinkedSchema:
    """Return linked tables with a column of codes in each, all of which are discovered."""
    codes = {"codes": {"discover": True, "pattern": "[A-Z][0-9]{3}"}}
    key, code = {"name": "id", "type": "string"}, {"name": "code", "type": "string"}
    code["dpsynth"] = codes  # type: ignore[assignment]
    foreign = [{"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}]
    number = {"name": "number", "type": "integer"}
    own = {"order": "number", "max_rows": {"value": ROWS, "basis": "game"}}
    resources: list[dict[str, Any]] = [
        {"name": "patients", "schema": {"primaryKey": "id", "fields": [key, code]}}
    ]
    for name in TABLES:
        fields = {"foreignKeys": foreign, "fields": [key, number, code]}
        resources.append({"name": name, "schema": fields, "dpsynth": own})
    population = {"value": patients, "basis": "game"}
    facts = {"version": 1, "patients": "patients", "population": population}
    return LinkedSchema.from_dict({"name": "ward", "resources": resources, "dpsynth": facts})


def in_tables(event: CodeDiscovery, *, member: bool, others: int, apart: bool) -> Occurrences:
    """Return what the search asks of the mechanism about linked tables.

    Args:
        event: any; the mechanism is only asked.
        member: whether there is a patient with as many different codes in each table as count.
        others: patients with each of these codes, and no other.
        apart: the broken twin: a patient is somebody else in each table.
    """
    names = [f"{letter}{place:03}" for letter in "ABCD" for place in range(ROWS)]
    rows: dict[str, list[tuple[str, int, str]]] = {name: [] for name in ("patients", *TABLES)}
    for table, letter in zip(rows, "ABCD", strict=True):
        several = names[:1] if table == "patients" else [c for c in names if c[0] == letter]
        for code in several:
            rows[table] += [(f"{code}-{other}", 0, code) for other in range(others)]
        if member:
            rows[table] += [("member", place, code) for place, code in enumerate(several)]
    ids = {"nobody", *(row[0] for own in rows.values() for row in own)}
    rows["patients"] += [(one, 0, "") for one in sorted(ids - {row[0] for row in rows["patients"]})]
    tables = {
        name: pd.DataFrame(own, columns=["id", "number", "code"]).astype(str)
        for name, own in rows.items()
    }
    tables["patients"] = tables["patients"][["id", "code"]]
    schema, asked, kept, calls = package(max(others, 1)), [], code_search._kept, []

    def watched(occurrences: Occurrences, *_: Any) -> Selected:
        asked.append(occurrences)
        return Selected(np.empty(0, np.int64), np.empty(0, np.int64))

    def elsewhere(*arguments: Any) -> Any:
        owners, codes = kept(*arguments)
        calls.append(1)
        return owners + (len(ids) * len(calls) if apart else 0), codes

    with (
        mock.patch.object(code_search, "select_codes", watched),
        mock.patch.object(code_search, "_kept", elsewhere),
    ):
        opened = open_linked(tables, schema)
        code_search.find_codes_of_patients(opened, schema, event, SeededEntropy(0))
    return asked[0]
