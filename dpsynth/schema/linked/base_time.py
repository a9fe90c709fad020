"""The time of a table as the date from which other dates of its rows count.

A stay has a day of admission, which is the time of its row, and a date of discharge, an interval
after it. The time is modelled as the day of the row and not as a column. So the reader of single
tables sees its bounds only while it checks the dates that lean on it: they are those of the window,
from the first to the last origin that the schema allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from dpsynth.schema.column import Bound
from dpsynth.schema.linked.facts import Window
from dpsynth.schema.schema import Schema

_ANY = (date(1900, 1, 1), date(2100, 1, 1))  # while window or origin have a mistake, which is noted


@dataclass(frozen=True)
class BaseTime:
    """The column of the time, and its bounds.

    Attributes:
        column: its name.
        minimum: the earliest day that a row may have.
        maximum: the latest one; for a datetime, the midnight that ends it.
    """

    column: str
    minimum: Bound
    maximum: Bound

    def field(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field with its bounds; a row without a time is left out, so it has one."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum, "required": True}
        own = {"bounds_basis": "the window"}
        return {key: value[key] for key in _READ if key in value} | {
            "constraints": bounds,
            "dpsynth": own,
        }

    def in_place(self, schema: Schema, field: Mapping[str, Any]) -> Schema:
        """Return the schema with the time as it stands in the document, and not modelled.

        Raises:
            SchemaError: the field has a mistake, at ``fields[0]``.
        """
        own = {**field.get("dpsynth", {}), "role": "drop"}
        other = {"name": f"not {self.column}", "type": "boolean"}
        one = {"value": 1, "basis": "stands for what the package declares"}
        document = {
            "name": schema.name,
            "fields": [{**field, "dpsynth": own}, other],
            "dpsynth": {
                "version": 1,
                "draft": True,
                "population": one,
                "rows": one,
                "max_rows": one,
            },
        }
        column = Schema.from_dict(document).column(self.column)
        kept = replace(column, missing_values=schema.column(self.column).missing_values)
        columns = [kept if one.name == kept.name else one for one in schema.columns]
        return replace(schema, columns=tuple(columns))


_READ = ("name", "type", "title", "description", "format", "missingValues")


def base_time(
    fields: Sequence[Any],
    time: str | None,
    origin: str | None,
    patients: Schema | None,
    window: Window | None,
) -> BaseTime | None:
    """Return the time of a table if another date of the row counts from it; else None.

    Args:
        fields: of the table, as the document has them.
        time: the column of its day.
        origin: the date of patients from which dates count; None where days are numbers.
        patients: the schema of their table, unless it has a mistake.
        window: of the package, unless it has a mistake.
    """
    own = [field.get("dpsynth") for field in fields if isinstance(field, Mapping)]
    named = [one.get(key) for one in own if isinstance(one, Mapping) for key in ("after", "before")]
    if time is None or time not in named:
        return None
    kinds = [f.get("type") for f in fields if isinstance(f, Mapping) and f.get("name") == time]
    if kinds[:1] == ["integer"]:
        return BaseTime(time, 0, 1)  # no date: the reader says so
    low, high = _ANY
    if patients is not None and origin is not None and window is not None:
        start = patients.column(origin)
        if isinstance(start.minimum, date) and isinstance(start.maximum, date):
            low = start.minimum + timedelta(days=window.first)
            high = start.maximum + timedelta(days=window.last + 1)
    return BaseTime(time, _day(low), _day(high))


def _day(moment: date) -> date:
    return date(moment.year, moment.month, moment.day)
