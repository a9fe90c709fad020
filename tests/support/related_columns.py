"""Fields of a ward's table whose columns lean on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
ADMITTED = schema_field(
    "admitted", "date", BASIS, minimum="2010-01-01", maximum="2014-12-31", required=True
)
DISCHARGED = schema_field(
    "discharged", "date", BASIS | {"after": "admitted", "longest": 90}, required=True
)
BORN: dict[str, Any] = {
    "name": "born",
    "type": "date",
    "dpsynth": BASIS | {"before": "admitted", "longest": 110, "unit": "a"},
}
SEEN: dict[str, Any] = {
    "name": "seen",
    "type": "datetime",
    "dpsynth": BASIS | {"after": "admitted", "longest": 48, "unit": "h"},
}
SIZES: tuple[dict[str, Any], ...] = (
    schema_field("weight", "number", BASIS | {"step": 0.5}, minimum=30, maximum=250),
    schema_field("height", "integer", BASIS, minimum=0, maximum=220),
)
BMI = schema_field(
    "bmi",
    "number",
    BASIS | {"derived": "weight / (height / 100) ^ 2", "step": 0.1},
    minimum=8,
    maximum=100,
)
AGE = schema_field(
    "age", "integer", BASIS | {"derived": "years(born, admitted)"}, minimum=0, maximum=110
)


def document(*fields: dict[str, Any], rules: Sequence[str] = ()) -> dict[str, Any]:
    """A schema document of these columns and a patient's key."""
    number = {"value": 300, "basis": "made for this test"}
    key = {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}
    facts: dict[str, Any] = {"version": 1, "population": number, "rows": number, "max_rows": number}
    return {
        "name": "ward",
        "missingValues": ["", "?"],
        "fields": [key, *fields],
        "dpsynth": facts | ({"rules": list(rules)} if rules else {}),
    }
