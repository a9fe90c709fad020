"""What counts of each linked table: which rows of a patient, and how many at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import check_keys, matching, names, text, whole
from dpsynth.errors import ArtifactError
from dpsynth.schema import AnySchema, ChildTable, Schema, Window

PATIENTS = "patients"
_KINDS = "patients|wide|long|once"
_KEEP = "random|window"


@dataclass(frozen=True)
class TableBound:
    """What of a patient counts in one table.

    Attributes:
        name: of the table.
        kind: patients (one row each), wide, long (rows of tests) or once (events).
        series: tests of a long table, events of a table of events, otherwise 1.
        max_rows: at most so many rows of a patient count, in each series.
        keep: which ones: random, or window.
        first_day: earlier days count as this one; None without time.
        last_day: later days count as this one, and days after the end of follow-up as its end.
    """

    name: str
    kind: str
    series: int
    max_rows: int
    keep: str
    first_day: int | None
    last_day: int | None

    def __repr__(self) -> str:
        """Name the table and the bound."""
        return short_repr(self, self.name, f"at most {self.max_rows} rows")

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what `Certificate.to_dict` wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or out of range.
        """
        check_keys(document, place, names(cls))
        days = (document["first_day"], document["last_day"])
        if days != (None, None) and not all(type(day) is int for day in days):
            raise ArtifactError(f"{place}: first_day and last_day are whole numbers, or both null")
        return cls(
            name=text(document["name"], f"{place}.name"),
            kind=matching(document["kind"], f"{place}.kind", _KINDS, "kind"),
            series=whole(document["series"], f"{place}.series", minimum=1),
            max_rows=whole(document["max_rows"], f"{place}.max_rows", minimum=1),
            keep=matching(document["keep"], f"{place}.keep", _KEEP, "rule"),
            first_day=days[0],
            last_day=days[1],
        )

    @property
    def words(self) -> str:
        """Say which rows of a patient count.

        >>> TableBound("labs", "long", 2, 8, "random", -10, 99).words
        'at most 8 rows of each of 2 tests of table labs, chosen at random'
        """
        rows = f"at most {counted(self.max_rows, 'row')}"
        order = "consecutive ones" if self.keep == "window" else "chosen at random"
        match self.kind:
            case "patients":
                return f"one row of table {self.name}"
            case "once":
                return (
                    f"the first day of each of {counted(self.series, 'event')} of table {self.name}"
                )
            case "long":
                rows += f" of each of {counted(self.series, 'test')}"
        return f"{rows} of table {self.name}, {order}"


def rows_that_count(tables: Sequence[TableBound], who: str) -> str:
    """Say in a sentence what of a patient counts in all tables."""
    counted_rows = "; ".join(one.words for one in tables)
    return (
        f"Of each {who}, no more than this counts in each measurement: {counted_rows}. Two "
        "measurements may use different rows."
    )


def bounds_of(schema: AnySchema) -> tuple[TableBound, ...]:
    """Read the bounds off a schema of linked tables; that of a single one has them in its unit."""
    if isinstance(schema, Schema):
        return ()
    patients = TableBound(schema.patients.name, PATIENTS, 1, 1, "random", None, None)
    return (patients, *(_bound(child, schema.window) for child in schema.children))


def _bound(child: ChildTable, window: Window | None) -> TableBound:
    series = 1
    if child.series is not None:
        series = len(child.series.columns)
    elif child.once is not None:
        series = len(child.schema.column(child.once).levels)
    timed = child.time is not None and window is not None
    return TableBound(
        name=child.name,
        kind=child.kind,
        series=series,
        max_rows=child.schema.unit.max_rows,
        keep=child.schema.unit.keep,
        first_day=window.first if timed and window else None,
        last_day=window.last if timed and window else None,
    )
