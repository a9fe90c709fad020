"""A schema with a column of several codes, and cells of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.schema import Schema

CODES = ["A", "A1", "A2", "A3", "B", "B1", "B2", "C", "C1", "C2"]
PARENTS = [code[0] if len(code) > 1 else "" for code in CODES]
NUMBER = {"value": 900, "basis": "report"}
SEX = {
    "name": "sex",
    "type": "string",
    "constraints": {"enum": ["f", "m"], "required": True},
    "dpsynth": {"bounds_basis": "form"},
}


def several(most: int = 3, **more: Any) -> dict[str, Any]:
    return {"separator": ";", "most": most, **more}


def codes_field(required: bool = False, role: str = "sensitive", **own: Any) -> dict[str, Any]:
    """A column of codes; `several` in its codes, what else is declared beside them."""
    codes = {"system": "own", "list": {"codes": CODES, "parents": PARENTS}}
    codes |= {"several": own.pop("several", several())}
    return {
        "name": "dx",
        "type": "string",
        "constraints": {"required": required},
        "missingValues": ["", "?"],
        "dpsynth": {"role": role, "codes": codes} | own,
    }


def document(field: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    own = {"version": 1, "population": NUMBER, "rows": NUMBER}
    return {"name": "stays", "fields": [SEX, field, *more], "dpsynth": own}


def schema_of(**declared: Any) -> Schema:
    return Schema.from_dict(document(codes_field(**declared)))


def frame_of(*cells: str | None) -> pd.DataFrame:
    return pd.DataFrame({"sex": ["f"] * len(cells), "dx": pd.Series(cells, dtype=object)})


def many_cells(rows: int, seed: int = 0) -> pd.DataFrame:
    """Cells of 0 to 5 codes; some are common, and A1 and B1 go together."""
    rng = np.random.default_rng(seed)
    shares = np.geomspace(1.0, 0.05, len(CODES))
    cells = []
    for number in rng.integers(0, 5, rows):
        codes = rng.choice(CODES, number, replace=False, p=shares / shares.sum()).tolist()
        cells.append(";".join(dict.fromkeys([*codes, "B1"] if "A1" in codes else codes)))
    return frame_of(*cells).assign(sex=rng.choice(["f", "m"], rows))
