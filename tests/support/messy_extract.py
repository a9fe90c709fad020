"""An extract with keys under several spellings and awkward cells, and its schema."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.schema import Schema

from .schema_fields import schema_field

UNITS = 400

# Keys are compared without case, without blanks around them, without leading zeros.
SPELLINGS: tuple[Callable[[int], str], ...] = (
    lambda unit: f"A{unit}",
    lambda unit: f" a{unit}",
    lambda unit: f"00A{unit} ",
    lambda unit: f"0a{unit}",
)


def described(**table: Any) -> Schema:
    return Schema.from_dict(
        {
            "name": "messy",
            "missingValues": ["", "NA"],
            "fields": [
                {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
                schema_field(
                    "weight",
                    "number",
                    {"bounds_basis": "the scale", "step": 0.5},
                    minimum=0,
                    maximum=300,
                ),
                {"name": "smoker", "type": "boolean"},
            ],
            "dpsynth": {
                "version": 1,
                "max_rows": {"value": 3, "basis": "policy"},
                "population": {"value": UNITS, "basis": "report"},
                "rows": {"value": 2 * UNITS, "basis": "report"},
                "key": {"case": True, "leading_zeros": False},
                "dialect": {"delimiter": ";", "decimal": ",", "encoding": "latin-1"},
                **table,
            },
        }
    )


def unit_of(text: str) -> str:
    """Compare a key as the messy schema declares, by hand."""
    return text.strip().casefold().lstrip("0")


HEADER = "weight; note ;key;smoker"


def records(path: Path) -> list[str]:
    """Cut a file into rows: a row of this source ends with CR and LF, and no cell has both."""
    content = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    assert content.endswith(b"\r\n")
    return content.decode("latin-1").split("\r\n")[:-1]


def units_of(rows: list[str]) -> set[str]:
    return {unit_of(row.split(";")[-2].strip('"')) for row in rows}


def frame(units: int) -> pd.DataFrame:
    keys = [SPELLINGS[i % 4](int(unit)) for i, unit in enumerate(np.repeat(np.arange(units), 2))]
    return pd.DataFrame({"key": keys, "weight": "1,5", "smoker": True})
