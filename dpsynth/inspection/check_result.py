"""What a check found, of one table or of linked ones; internal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth._util.short_repr import short_repr
from dpsynth.inspection.causes import Suspects, texts_of_finding
from dpsynth.inspection.column_check import CellShares
from dpsynth.inspection.findings import Finding, Level
from dpsynth.inspection.row_check import UnitShares
from dpsynth.schema import AnySchema, Schema


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What a check found; internal.

    Places are columns; of linked tables, tables, ``table.column``, ``table.test`` in a long table,
    and the texts of rules.

    Attributes:
        schema: what was compared with.
        cells: shares of cells, by place.
        findings: the worst first.
        suspects: PRIVATE: by place, the cells that are not taken as they stand.
        keys: PRIVATE: by the key of a finding, the units' keys that it is about, with their rows.
        read: by table, how many lines and records (of a text file), rows and units were read.
        units: how the rows of one table divide into units; None where each row is one.
    """

    schema: AnySchema
    cells: dict[str, CellShares]
    findings: tuple[Finding, ...]
    suspects: dict[str, Suspects] = field(repr=False)
    keys: dict[str, Counter[str]] = field(repr=False)
    read: dict[str, dict[str, int]]
    units: UnitShares | None = None

    def __repr__(self) -> str:
        """Say what it is about; internal."""
        return short_repr(
            self,
            f"schema {self.schema.name}",
            "clean" if self.level is None else self.level.word,
            counted(len(self.findings), "finding"),
        )

    @property
    def level(self) -> Level | None:
        """The worst level; None where nothing was found."""
        return max((finding.level for finding in self.findings), default=None)

    @property
    def serious(self) -> tuple[str, ...]:
        """The keys of the serious findings, such as ``hba1c:unreadable``."""
        return tuple(finding.key for finding in self.findings if finding.level is Level.SERIOUS)

    def texts(self, finding: Finding) -> Counter[str] | None:
        """Return the cells or keys of a finding with their counts, None for none; PRIVATE."""
        if finding.key in self.keys:
            return self.keys[finding.key]
        return texts_of_finding(self.suspects, finding)

    def to_dict(self) -> dict[str, Any]:
        """Write it without any cell; internal."""
        document: dict[str, Any] = {
            "level": "clean" if self.level is None else self.level.word,
            "serious": list(self.serious),
            "read": self.read,
            "findings": [finding.to_dict() for finding in self.findings],
            "cells": {name: vars(shares) for name, shares in self.cells.items()},
        }
        if isinstance(self.schema, Schema):
            document["units"] = None if self.units is None else vars(self.units)
        return document
