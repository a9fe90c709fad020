"""Tables without a flaw for `linked_tables.package`, to break one thing at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd

from .linked_rows import COLUMNS
from .linked_tables import package

PATIENTS = 60
RULES = ["each(visits).date >= patients.index", "patients.end >= last(labs).days"]


def ward() -> dict[str, Any]:
    """The schema, with rules, a link from orders to visits, and a gap."""
    document = copy.deepcopy(package())
    document["dpsynth"]["population"]["value"] = PATIENTS
    document["dpsynth"]["rules"] = list(RULES)
    document["resources"][3]["dpsynth"]["longest_gap"] = 400
    orders = document["resources"][4]["schema"]
    reference = {"resource": "visits", "fields": ["id", "visit"]}
    orders["foreignKeys"].append({"fields": ["id", "visit"], "reference": reference})
    return document


def tables() -> dict[str, pd.DataFrame]:
    """Tables of text that fit, of 60 patients whose keys have leading zeros."""
    rows: dict[str, list[list[str]]] = {name: [] for name in COLUMNS}
    rng = np.random.default_rng(1)
    for number in range(PATIENTS):
        key, day = f"00{number + 100}", np.datetime64("2004-01-01") + number
        rows["patients"].append([key, "FM"[number % 2], "2000", str(day)])
        rows["labs"] += [[key, str(5 + step), "hdl", str(40 + step), "no"] for step in range(3)]
        rows["labs"].append([key, "9", "smoke", str(number % 2), "yes"])
        rows["events"].append([key, str(10 + number), "mi" if number % 2 else "stroke", "x"])
        for visit in range(3):
            date = str(day + 100 * visit + int(rng.integers(50)))
            rows["visits"].append([key, date, str(visit), str(100 + number), "ab"[visit % 2]])
            rows["orders"].append([key, str(visit + 1), str(visit), "xy"[number % 2]])
    return {
        name: pd.DataFrame(rows[name], columns=columns, dtype=object)
        for name, columns in COLUMNS.items()
    }
