"""The declarations of a column's cells, back in a schema document."""

from __future__ import annotations

from typing import Any

from dpsynth.schema.bounds import write_bound
from dpsynth.schema.column import Column


def write_forms(column: Column) -> dict[str, Any]:
    """Write the keys of a field's ``dpsynth`` object; what equals a default is left out."""
    forms = column.forms
    extra: dict[str, Any] = {}
    if forms.values:
        extra["values"] = dict(forms.values)
    if not forms.case:
        extra["case"] = False
    if forms.reasons:
        extra["missing"] = {reason: list(texts) for reason, texts in forms.reasons}
    if forms.is_censored:
        limits = {"low": forms.low, "high": forms.high}
        extra["censored"] = {
            side: [write_bound(limit) for limit in side_limits]
            for side, side_limits in limits.items()
            if side_limits
        }
    if forms.status is not None:
        extra["status"] = forms.status
    if forms.unit is not None:
        extra["unit_from"] = {"column": forms.unit.column} | {
            text: _factor(times, plus) for text, times, plus in forms.unit.factors
        }
    if forms.formats:
        extra["formats"] = list(forms.formats)
    return extra


def _factor(times: float, plus: float) -> Any:
    if plus == 0:
        return write_bound(times)
    return {"times": write_bound(times), "plus": write_bound(plus)}
