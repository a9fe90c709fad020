"""Schemas of a few columns, and the codes that cells of them get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}


def schema_of(*fields: Mapping[str, Any], **own: Any) -> Schema:
    number = {"value": 90, "basis": "made for this test"}
    named = [{"name": f"c{i}"} | dict(field) for i, field in enumerate(fields)]
    for field in named:
        field["dpsynth"] = BASIS | dict(field.get("dpsynth", {}))
    return Schema.from_dict(
        {
            "missingValues": ["", "?"],
            "fields": named,
            "dpsynth": {"version": 1, "population": number, "rows": number} | own,
        }
    )


def field(type_: str, required: bool = False, **more: Any) -> dict[str, Any]:
    """A field; bounds and enum are constraints, all else belongs to dpsynth."""
    limits = {key: more.pop(key) for key in ("minimum", "maximum", "enum") if key in more}
    top = {key: more.pop(key) for key in ("format", "trueValues", "missingValues") if key in more}
    return {
        "type": type_,
        "constraints": limits | ({"required": True} if required else {}),
        "dpsynth": more,
    } | top


def codes_of(column: dict[str, Any], cells: Any, **own: Any) -> list[int]:
    """Encode one column; the cells may be a list, an array or a Series."""
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    encoded = Codec(schema_of(column, **own)).encode(pd.DataFrame({"c0": series}))
    assert encoded.dtype == np.uint16
    return encoded[:, 0].tolist()


STAY = field("integer", minimum=1, maximum=14)  # codes 0 .. 13, missing 14
TEMPERATURE = field("number", minimum=35.0, maximum=42.0, step=0.1)  # 71 points, missing 71
SEX = field("string", enum=["F", "M"], required=True)  # F, M, other
ARM = field("integer", enum=[2, 1])  # 2, 1, missing
SMOKER = field("boolean")  # false, true, missing
DOSE = field("number", enum=[0.5, 1, 2.5])
BORN = field("date", minimum="2000-01-01", maximum="2000-01-31")  # 31 days, missing 31
SEEN = field("datetime", minimum="2000-01-01T00:00:00", maximum="2000-01-01T02:00:00")
YEAR = field("year", minimum=1999, maximum=2008)
GRADE = field("string", enum=["low", "high", "Other"], required=True)

ALL = [STAY, TEMPERATURE, SEX, ARM, SMOKER, DOSE, BORN, SEEN, YEAR, GRADE]
