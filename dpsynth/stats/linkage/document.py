"""Linkage on disk: a request, its certificate and noisy numbers; all else follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import as_object, digest, texts, written
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError
from dpsynth.privacy import Event
from dpsynth.privacy.answer_events import LINKAGE
from dpsynth.stats.claim import problems_of_claim
from dpsynth.stats.linkage.figures import tables_of
from dpsynth.stats.linkage.page import linkage_page
from dpsynth.stats.linkage.request import LinkageRequest
from dpsynth.stats.package import (
    MANIFEST,
    ChargedStatistics,
    data_package,
    read_paid,
    require_same,
    save_files,
)

FORMAT, VERSION = "dpsynth-linkage", 1
DOCUMENT, MODEL = "linkage.json", LINKAGE
_KEYS = ("format", "version", "request", "certificate", "numbers", "stamps", "sha256")


@dataclass(frozen=True, eq=False, repr=False)
class Linkage:
    """Numbers of linked pairs of two registers, with the certificate of what they cost.

    Attributes:
        request: what was asked for.
        certificate: the privacy certificate; it names both registers and both charges.
        numbers: noisy numbers of pairs from each threshold on, by class: ``[thresholds]``.
        stamps: reasons why they may not be released, such as ``no-ledger``.
    """

    request: LinkageRequest
    certificate: Certificate
    numbers: Mapping[str, npt.NDArray[np.int64]]
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the registers and the cost."""
        return short_repr(self, " and ".join(self.request.names), repr(self.certificate))

    @property
    def events(self) -> dict[str, Event]:
        """The events of the certificate, by name."""
        return {event.name: event for event in self.certificate.events}

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return what is published: ``thresholds`` and ``bands``; see `figures.tables_of`."""
        return tables_of(self.request, self.numbers, self.events)

    @property
    def digest(self) -> str:
        """SHA-256 by which the ledger knows them."""
        return str(self._document()["sha256"])

    @property
    def charged(self) -> ChargedStatistics:
        """What a ledger asks of something that it charged."""
        return ChargedStatistics(self.certificate.to_dict(), self.stamps, self.digest)

    def _document(self) -> dict[str, Any]:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "request": self.request.document,
            "certificate": self.certificate.to_dict(),
            "numbers": {name: part.tolist() for name, part in self.numbers.items()},
            "stamps": list(self.stamps),
        }
        return document | {"sha256": digest(document)}

    def files(self) -> dict[str, bytes]:
        """Return every file, by name."""
        request, tables = self.request, self.tables()
        found = {
            DOCUMENT: written(self._document()),
            "privacy.json": written(self.certificate.to_dict()),
            "schema-a.json": written(request.schemas[0].to_dict()),
            "schema-b.json": written(request.schemas[1].to_dict()),
            "report.html": linkage_page(request, self.certificate, self.stamps, tables),
        }
        for name, table in tables.items():
            found[f"{name}.csv"] = table.to_csv(index=False, lineterminator="\n").encode()
            found[f"{name}.json"] = written(self._described(name, table))
        named = {f"{name}.csv": table for name, table in tables.items()}
        title = {"title": f"Linkage: {request.title}"}
        return found | {MANIFEST: written(data_package(request.title, found, named) | title)}

    def _described(self, name: str, table: pd.DataFrame) -> dict[str, Any]:
        rows = table.astype(object).where(table.notna(), None)
        return {
            "name": name,
            "registers": list(self.request.names),
            "confidence": self.request.confidence,
            "intervals": "of the noise, about the figure of the candidate pairs that count",
            "events": [event.to_dict() for event in self.certificate.events],
            "columns": list(table.columns),
            "rows": [list(row) for row in rows.itertuples(index=False, name=None)],
        }

    def save(self, folder: str | Path) -> Path:
        """Write all files into a new folder, whole or not at all.

        Raises:
            InputError: the folder exists or cannot be written.
        """
        return save_files(self.files(), folder)

    @classmethod
    def load(cls, folder: str | Path) -> Linkage:
        """Read linkage from its folder, and check all that can be checked without a ledger.

        Raises:
            ArtifactError: a file is missing, damaged or changed, a number was not paid for, or the
                certificate claims less than the numbers cost, or names one register alone.
        """
        path = path_of(folder) / DOCUMENT
        document = read_paid(path, FORMAT, VERSION, _KEYS)
        try:
            request = LinkageRequest.from_dict(as_object(document["request"], f"{path}: request"))
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from error
        certificate = Certificate.from_dict(document["certificate"], f"{path}: certificate")
        stamps = texts(document["stamps"], f"{path}: stamps")
        first, second = request.schemas
        shares = request.shares()
        why = request.own_records
        if why is None:
            raise ArtifactError(f"{path}: the request declares no own_records, which it needs")
        wrong = problems_of_claim(first, shares, MODEL, certificate, stamps, second, why)
        charged = certificate.ledger is not None
        if charged and certificate.is_joint != request.same_people:
            wrong.append("the charges are not those of people who are, or are not, in both")
        if wrong:
            raise ArtifactError(f"{path}: {wrong[0]}")
        numbers = _numbers(document["numbers"], request, f"{path}: numbers")
        found = cls(request, certificate, numbers, stamps)
        require_same(found.files(), path)
        return found


def _numbers(document: Any, request: LinkageRequest, place: str) -> dict[str, Any]:
    """Read the numbers that were paid for, all of them, and no number more."""
    stated = as_object(document, place)
    if set(stated) != set(request.classes):
        raise ArtifactError(f"{place}: there must be numbers of {', '.join(request.classes)}")
    for part in stated.values():
        if not isinstance(part, list) or len(part) != len(request.thresholds):
            raise ArtifactError(f"{place}: there must be a number for each threshold")
        if not all(type(one) is int and abs(one) < 2**62 for one in part):
            raise ArtifactError(f"{place}: there must be whole numbers alone")
    return {name: np.array(stated[name], dtype=np.int64) for name in request.classes}
