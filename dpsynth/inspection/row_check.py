"""What the rows of a table are: rules that they break, duplicates, and how they divide into units.

Rows are compared by 64-bit hashes of their texts, so that the memory is 8 bytes a row. Two
different rows of ten million share a hash with probability below 1 in 100,000.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth.encoding import Codec
from dpsynth.encoding.column_codecs import Kind
from dpsynth.inspection.column_check import ColumnCheck, Kinds
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
from dpsynth.tables import texts_of
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class RowCheck:
    """Counts the rows of a table, chunk by chunk.

    Attributes:
        judged: rows of which each rule could be judged, ``[rules]``.
        broken: those that break it, ``[rules]``.
    """

    def __init__(self, schema: Schema) -> None:
        """Take the declared unit, order and rules."""
        self._schema = schema
        self.broken = np.zeros(len(schema.rules), dtype=np.int64)
        self._codec = Codec(schema)
        self.judged = np.zeros(len(schema.rules), dtype=np.int64)
        self._units: list[Ints] = []
        self._whole: list[Hashes] = []
        self._visits: list[Hashes] = []

    def add(
        self,
        chunk: pd.DataFrame,
        units: Ints,
        kinds: dict[str, Kinds],
        columns: dict[str, ColumnCheck],
    ) -> None:
        """Count the rows of a chunk.

        Args:
            chunk: its cells.
            units: the unit of each row.
            kinds: of the cells of each modelled column.
            columns: their checks.
        """
        self._units.append(units)
        if self._schema.unit.column is not None:
            self._whole.append(_hashes(chunk)[units != NO_KEY])
        order = self._schema.order_column
        if self._schema.unit.column is not None and order is not None:
            texts = texts_of(chunk[order]).to_pandas().str.strip()
            known = (units != NO_KEY) & texts.notna().to_numpy() & (texts != "").to_numpy()
            visits = pd.DataFrame({"unit": units.astype(str), "order": texts.astype(object)})
            self._visits.append(_hashes(visits)[known])
        self.add_rules(chunk, kinds, columns)

    def add_rules(
        self,
        chunk: pd.DataFrame,
        kinds: dict[str, Kinds],
        columns: dict[str, ColumnCheck],
        rules: Collection[int] | None = None,
        numbers: Ints | None = None,
    ) -> None:
        """Judge the rules on the rows of a chunk.

        Args:
            chunk: its cells.
            kinds: of the cells of each modelled column that a rule names.
            columns: their checks.
            rules: the places of those that are judged; all if None.
            numbers: how often each row is there; once if None.
        """
        cells = self._codec.bounded(chunk) if self._schema.rules else chunk
        each = np.ones(len(chunk), dtype=np.int64) if numbers is None else numbers
        for place, rule in enumerate(self._schema.rules):
            if not set(rule.columns) <= set(columns) or (rules is not None and place not in rules):
                continue  # it names a column that the table does not have, only the codes
            judged = np.ones(len(chunk), dtype=bool)
            for name in rule.columns:
                judged &= kinds[name] == Kind.VALID
            holds = rule.holds(cells)
            self.judged[place] += each[judged].sum()
            self.broken[place] += each[judged & ~holds].sum()

    @property
    def units(self) -> Ints:
        """The unit of each row."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._units])

    def facts(self) -> RowFacts:
        """Return what was counted."""
        units = self.units
        sizes, numbers = np.unique(np.bincount(units[units != NO_KEY]), return_counts=True)
        return RowFacts(
            self._schema,
            len(units),
            int((units == NO_KEY).sum()),
            {
                rows: number
                for rows, number in zip(sizes.tolist(), numbers.tolist(), strict=True)
                if rows
            },
            self.judged,
            self.broken,
            {DUPLICATES: _again(self._whole), REPEATED: _again(self._visits)},
        )


def _again(hashes: list[Hashes]) -> tuple[int, int]:
    """Return how many rows repeat another one, and how many there are."""
    every = np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)
    return len(every) - len(np.unique(every)), len(every)


def _hashes(frame: pd.DataFrame) -> Hashes:
    """Return a hash of each row, of the texts of its cells."""
    texts = pd.DataFrame(
        {place: texts_of(frame.iloc[:, place]).to_pandas() for place in range(frame.shape[1])}
    )
    return np.asarray(pd.util.hash_pandas_object(texts.fillna(""), index=False), dtype=np.uint64)


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
