"""Fields of a ward's table: orders, a group of a code, and a column that is empty in some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.schema import Schema

from .related_columns import BASIS, document
from .schema_fields import schema_field

LOW = schema_field("low", "integer", BASIS, minimum=30, maximum=159, required=True)
HIGH = schema_field("high", "integer", BASIS, minimum=60, maximum=260)
TOP = schema_field("top", "number", BASIS | {"step": 0.5}, minimum=60, maximum=300)
SEX = schema_field("sex", "string", BASIS, enum=["F", "M"], required=True)
BORN = schema_field("born", "integer", BASIS, minimum=1900, maximum=2000)
AGE = schema_field("age", "integer", BASIS | {"derived": "2020 - born"}, minimum=0, maximum=120)
PREGNANT = schema_field("pregnant", "boolean", BASIS | {"present_if": "sex == 'F' and age < 55"})
DIAGNOSIS = schema_field(
    "diagnosis", "string", {"codes": {"system": "ICD-10-CM", "rollup": "block"}}, required=True
)
CHAPTER: dict[str, Any] = {
    "name": "chapter",
    "type": "string",
    "dpsynth": {"derived": {"group": "diagnosis", "level": "chapter"}},
}
ORDER = {"order": "low < high <= top"}
EVERY = (LOW, HIGH, TOP, SEX, PREGNANT, AGE, BORN, CHAPTER, DIAGNOSIS)


def schema_of(*fields: dict[str, Any], rules: Any = ()) -> Schema:
    """A schema of these columns and a patient's key."""
    return Schema.from_dict(document(*fields, rules=list(rules)))


WHOLE = schema_of(*EVERY, rules=[ORDER])


def drawn(schema: Schema, rows: int = 2_000, seed: int = 1) -> pd.DataFrame:
    """Rows of codes drawn evenly, as they are published."""
    codec, rng = Codec(schema), np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, rows) for size in codec.sizes], axis=1)
    return codec.decode(codes, rng)


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells as a CSV file holds them."""
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    return texts.replace({"True": "true", "False": "false"})
