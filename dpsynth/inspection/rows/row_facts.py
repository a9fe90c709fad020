"""What was counted of the rows of a table, and the findings that follow, whoever counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import counted
from dpsynth.inspection.findings import (
    BROKEN,
    DUPLICATES,
    KEYLESS,
    LIMITS,
    MANY_ROWS,
    REPEATED,
    ROWS,
    TABLE,
    UNITS,
    Finding,
    Level,
    share_text,
)
from dpsynth.inspection.keys import CROWDED, crowd_findings
from dpsynth.schema import Schema

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UnitShares:
    """How the rows divide into privacy units.

    Attributes:
        keyless_rows: number of rows without a key.
        over_max_rows: share of the units that have more rows than ``max_rows``.
    """

    keyless_rows: int
    over_max_rows: float


@dataclass(frozen=True, eq=False)
class RowFacts:
    """Counts of rows.

    Attributes:
        schema: of the table.
        rows: of the table.
        keyless: rows without a key.
        units: by how many rows a unit has, how many units have so many.
        judged: rows of which each rule could be judged, ``[rules]``.
        broken: those that break it, ``[rules]``.
        again: of `DUPLICATES` and `REPEATED`: how many rows repeat another one, and of how many.
    """

    schema: Schema
    rows: int
    keyless: int
    units: Mapping[int, int]
    judged: Ints
    broken: Ints
    again: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def shares(self) -> UnitShares | None:
        """How the rows divide into units; None where each row is one.

        Rows without a key are units of one row each if the schema says ``own``, else no unit.
        """
        if self.schema.unit.column is None:
            return None
        total = self._all_units
        return UnitShares(self.keyless, self._over / total if total else 0.0)

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows and units there are."""
        return {
            "rows": self.rows,
            "units": self.rows if self.schema.unit.column is None else self._all_units,
        }

    @property
    def _all_units(self) -> int:
        own = self.keyless if self.schema.unit.missing_key == "own" else 0
        return sum(self.units.values()) + own

    @property
    def _over(self) -> int:
        most = self.schema.unit.max_rows
        return sum(units for rows, units in self.units.items() if rows > most)

    def findings(self) -> list[Finding]:
        """List what is wrong with the rows."""
        rules = [
            Finding(
                rule.text,
                BROKEN,
                LIMITS[BROKEN].level(broken / judged, broken),
                f"{share_text(broken, judged, 'row')} break this rule",
                broken,
                judged,
                "correct these rows in the source, or leave the rule out: dpsynth never draws a "
                "row that breaks it",
            )
            for rule, broken, judged in zip(
                self.schema.rules, self.broken.tolist(), self.judged.tolist(), strict=True
            )
            if broken
        ]
        return [*rules, *self._sizes(), *self._of_units(), *self._duplicates()]

    def _sizes(self) -> list[Finding]:
        """Compare rows and units with the declared numbers."""
        sizes = [(ROWS, "rows", self.rows, self.schema.rows.value)]
        if self.schema.unit.column is not None:
            sizes.append((UNITS, "units", self._all_units, self.schema.population.value))
        findings = []
        for kind, noun, actual, declared in sizes:
            factor = max(actual, 1) / max(declared, 1)
            level = LIMITS[kind].level(max(factor, 1 / factor))
            if level is not Level.NOTE:
                findings.append(
                    Finding(
                        TABLE,
                        kind,
                        level,
                        f"the table has about {factor:.2g} times the declared number of {noun}",
                        remedy="is this the whole extract? If so, correct the declared number from "
                        "its source; never count the file",
                    )
                )
        return findings

    def _of_units(self) -> list[Finding]:
        """Judge rows without a key, and units with more rows than count."""
        if self.schema.unit.column is None:
            return []
        keyless, rows, total = self.keyless, self.rows, self._all_units
        findings = []
        if keyless:
            dropped = self.schema.unit.missing_key == "drop"
            findings.append(
                Finding(
                    TABLE,
                    KEYLESS,
                    LIMITS[KEYLESS].level(keyless / rows, keyless),
                    f"{share_text(keyless, rows, 'row')} have no key; a fit "
                    + ("leaves them out" if dropped else "takes each for a unit of its own"),
                    keyless,
                    rows,
                    "complete the key in the source",
                )
            )
        most = self.schema.unit.max_rows
        many = sum(units for size, units in self.units.items() if size >= CROWDED * most)
        largest = max(self.units, default=0)
        findings += crowd_findings(TABLE, many, largest, total, counted(most, "row"), "unit")
        over = self._over
        level = LIMITS[MANY_ROWS].level(over / total if total else 0.0, over)
        if over:  # a few are expected, and then it is a note
            lost = sum((size - most) * units for size, units in self.units.items() if size > most)
            findings.append(
                Finding(
                    TABLE,
                    MANY_ROWS,
                    level,
                    f"{share_text(over, total, 'unit')} have more than {counted(most, 'row')}; the "
                    f"other rows, {share_text(lost, rows, 'row')}, do not count",
                    over,
                    total,
                    "a larger max_rows keeps more rows but needs more noise; take it from a "
                    "publication",
                )
            )
        return findings

    def _duplicates(self) -> list[Finding]:
        """Judge rows that repeat another row of the same unit, or its place in the order."""
        findings = []
        order = self.schema.order_column
        for kind, words in (
            (DUPLICATES, "repeat another row of the same unit in every column"),
            (REPEATED, f"have the same {order} as another row of the same unit"),
        ):
            again, every = self.again.get(kind, (0, 0))
            if not again:
                continue
            level = LIMITS[kind].level(again / every, again)
            if kind == DUPLICATES and order is None:
                level = min(level, Level.WARNING)  # two visits may well be alike
            findings.append(
                Finding(
                    TABLE,
                    kind,
                    level,
                    f"{share_text(again, every, 'row')} {words}",
                    again,
                    every,
                    "remove rows that a join or a second export has doubled",
                )
            )
        return findings
