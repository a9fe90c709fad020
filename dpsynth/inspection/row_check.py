"""What the rows of a table are: rules that they break, duplicates, and how they divide into units.

Rows are compared by 64-bit hashes of their texts, so that the memory is 8 bytes a row. Two
different rows of ten million share a hash with probability below 1 in 100,000.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from dpsynth.schema import Schema
from dpsynth.tables import texts_of
from dpsynth.tables.unit_keys import NO_KEY

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class UnitShares:
    """How the rows divide into privacy units.

    Attributes:
        keyless_rows: number of rows without a key.
        over_max_rows: share of the units that have more rows than ``max_rows``.
    """

    keyless_rows: int
    over_max_rows: float


class RowCheck:
    """Counts the rows of a table, chunk by chunk."""

    def __init__(self, schema: Schema) -> None:
        """Take the declared unit, order and rules."""
        self._schema = schema
        self._broken = np.zeros(len(schema.rules), dtype=np.int64)
        self._codec = Codec(schema)
        self._judged = np.zeros(len(schema.rules), dtype=np.int64)
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
        cells = self._codec.bounded(chunk) if self._schema.rules else chunk
        for place, rule in enumerate(self._schema.rules):
            if not set(rule.columns) <= set(columns):
                continue  # it names a column that the table does not have, only the codes
            judged = np.ones(len(chunk), dtype=bool)
            for name in rule.columns:
                judged &= kinds[name] == Kind.VALID
            holds = rule.holds(cells)
            self._judged[place] += judged.sum()
            self._broken[place] += (judged & ~holds).sum()

    @property
    def units(self) -> UnitShares | None:
        """How the rows divide into units; None where each row is one.

        Rows without a key are units of one row each if the schema says ``own``, else no unit.
        """
        if self._schema.unit.column is None:
            return None
        keyless, rows_of_unit, total = self._divided()
        over = int((rows_of_unit > self._schema.unit.max_rows).sum())
        return UnitShares(keyless_rows=keyless, over_max_rows=over / total if total else 0.0)

    def _divided(self) -> tuple[int, Ints, int]:
        """Return rows without a key, the rows of each unit, and the number of units."""
        units = np.concatenate(self._units)
        keyless = int((units == NO_KEY).sum())
        rows_of_unit = np.bincount(units[units != NO_KEY])
        rows_of_unit = rows_of_unit[rows_of_unit > 0]  # units that opted out have none
        keyless_units = keyless if self._schema.unit.missing_key == "own" else 0
        return keyless, rows_of_unit, len(rows_of_unit) + keyless_units

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
                self._schema.rules, self._broken.tolist(), self._judged.tolist(), strict=True
            )
            if broken
        ]
        return [*rules, *self._sizes(), *self._of_units(), *self._duplicates()]

    def _sizes(self) -> list[Finding]:
        """Compare rows and units with the declared numbers."""
        rows = sum(map(len, self._units))
        sizes = [(ROWS, "rows", rows, self._schema.rows.value)]
        if self._schema.unit.column is not None:
            units = self._divided()[2]
            sizes.append((UNITS, "units", units, self._schema.population.value))
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
        if self._schema.unit.column is None:
            return []
        keyless, rows_of_unit, total = self._divided()
        rows, findings = sum(map(len, self._units)), []
        if keyless:
            dropped = self._schema.unit.missing_key == "drop"
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
        most = self._schema.unit.max_rows
        over = int((rows_of_unit > most).sum())
        level = LIMITS[MANY_ROWS].level(over / total if total else 0.0, over)
        if level is not Level.NOTE:  # a few are expected
            findings.append(
                Finding(
                    TABLE,
                    MANY_ROWS,
                    level,
                    f"{share_text(over, total, 'unit')} have more than {counted(most, 'row')}; the "
                    "other rows do not count",
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
        order = self._schema.order_column
        for kind, hashes, words in (
            (DUPLICATES, self._whole, "repeat another row of the same unit in every column"),
            (REPEATED, self._visits, f"have the same {order} as another row of the same unit"),
        ):
            every = np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)
            again = len(every) - len(np.unique(every))
            if not again:
                continue
            level = LIMITS[kind].level(again / len(every), again)
            if kind == DUPLICATES and order is None:
                level = min(level, Level.WARNING)  # two visits may well be alike
            findings.append(
                Finding(
                    TABLE,
                    kind,
                    level,
                    f"{share_text(again, len(every), 'row')} {words}",
                    again,
                    len(every),
                    "remove rows that a join or a second export has doubled",
                )
            )
        return findings


def _hashes(frame: pd.DataFrame) -> Hashes:
    """Return a hash of each row, of the texts of its cells."""
    texts = pd.DataFrame(
        {place: texts_of(frame.iloc[:, place]).to_pandas() for place in range(frame.shape[1])}
    )
    return np.asarray(pd.util.hash_pandas_object(texts.fillna(""), index=False), dtype=np.uint64)
