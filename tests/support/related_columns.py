"""Fields of a ward's table whose columns lean on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BASIS = {"bounds_basis": "made for this test"}
ADMITTED: dict[str, Any] = {
    "name": "admitted",
    "type": "date",
    "constraints": {"minimum": "2010-01-01", "maximum": "2014-12-31", "required": True},
    "dpsynth": BASIS,
}
DISCHARGED: dict[str, Any] = {
    "name": "discharged",
    "type": "date",
    "constraints": {"required": True},
    "dpsynth": BASIS | {"after": "admitted", "longest": 90},
}
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
    {
        "name": "weight",
        "type": "number",
        "constraints": {"minimum": 30, "maximum": 250},
        "dpsynth": BASIS | {"step": 0.5},
    },
    {
        "name": "height",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 220},
        "dpsynth": BASIS,
    },
)
BMI: dict[str, Any] = {
    "name": "bmi",
    "type": "number",
    "constraints": {"minimum": 8, "maximum": 100},
    "dpsynth": BASIS | {"derived": "weight / (height / 100) ^ 2", "step": 0.1},
}
AGE: dict[str, Any] = {
    "name": "age",
    "type": "integer",
    "constraints": {"minimum": 0, "maximum": 110},
    "dpsynth": BASIS | {"derived": "years(born, admitted)"},
}


def document(*fields: dict[str, Any], rules: Sequence[str] = ()) -> dict[str, Any]:
    """A schema document of these columns and a patient's key."""
    number = {"value": 300, "basis": "made for this test"}
    key = {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}}
    own: dict[str, Any] = {"version": 1, "population": number, "rows": number, "max_rows": number}
    return {
        "name": "ward",
        "missingValues": ["", "?"],
        "fields": [key, *fields],
        "dpsynth": own | ({"rules": list(rules)} if rules else {}),
    }
