"""Statistics on disk: a request, its certificate and its noisy answers; all else follows from them.

``statistics.json`` holds what was paid for. The tables, as CSV and JSON, are derived from it, and
`check` derives them anew: a file that differs in a byte is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth._util.arguments import path_of
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    as_object,
    digest,
    texts,
    written,
)
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError
from dpsynth.privacy import Event
from dpsynth.stats.claim import claim_problems
from dpsynth.stats.package import (
    MANIFEST,
    ChargedStatistics,
    data_package,
    read_paid,
    require_same,
    save_files,
    slug,
)
from dpsynth.stats.page import statistics_page
from dpsynth.stats.request import Request
from dpsynth.stats.results import Result, results_of
from dpsynth.stats.statistic import Answers

FORMAT, VERSION = "dpsynth-statistics", 1
DOCUMENT = "statistics.json"
_KEYS = ("format", "version", "request", "certificate", "answers", "stamps", "sha256")


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Answers of a request, with the certificate of what they cost.

    Attributes:
        request: what was asked for.
        certificate: the privacy certificate.
        answers: noisy whole numbers by event.
        stamps: reasons why they may not be released, such as ``no-ledger``.
    """

    request: Request
    certificate: Certificate
    answers: Answers
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the schema and the cost."""
        return short_repr(self, f"schema {self.request.facts.name}", repr(self.certificate))

    @property
    def events(self) -> dict[str, Event]:
        """The events of the certificate, by name."""
        return {event.name: event for event in self.certificate.events}

    def results(self) -> tuple[Result, ...]:
        """Return a table for each statistic."""
        return results_of(self.request, self.answers, self.events)

    def table(self, name: str) -> Any:
        """Return the table of one statistic, a DataFrame.

        Raises:
            KeyError: there is none of this name.
        """
        return {result.name: result.table for result in self.results()}[name]

    @property
    def digest(self) -> str:
        """SHA-256 by which the ledger knows them."""
        return str(self._document()["sha256"])

    def _document(self) -> dict[str, Any]:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "request": self.request.document,
            "certificate": self.certificate.to_dict(),
            "answers": {
                name: [part.tolist() for part in parts] for name, parts in self.answers.items()
            },
            "stamps": list(self.stamps),
        }
        return document | {"sha256": digest(document)}

    def files(self) -> dict[str, bytes]:
        """Return every file, by name: the document, the certificate, and the tables."""
        found = {
            DOCUMENT: written(self._document()),
            "privacy.json": written(self.certificate.to_dict()),
            "schema.json": written(self.request.facts.to_dict()),
        }
        tables, results = {}, self.results()
        for number, result in enumerate(results, 1):
            stem = f"{number:02d}-{slug(result.name)}"
            tables[f"{stem}.csv"] = result.table
            found[f"{stem}.csv"] = result.table.to_csv(index=False, lineterminator="\n").encode()
            found[f"{stem}.json"] = written(self._described(result))
        page = statistics_page(
            self.request.facts,
            self.certificate,
            self.request.confidence,
            self.stamps,
            results,
        )
        found["report.html"] = page.encode()
        title = self.request.facts.title or self.request.facts.name
        return found | {MANIFEST: written(data_package(title, found, tables))}

    def save(self, folder: str | Path) -> Path:
        """Write all files into a new folder, whole or not at all.

        Raises:
            InputError: the folder exists or cannot be written.
        """
        return save_files(self.files(), folder)

    @property
    def charged(self) -> ChargedStatistics:
        """What a ledger asks of something that it charged."""
        return ChargedStatistics(self.certificate.to_dict(), self.stamps, self.digest)

    def _described(self, result: Result) -> dict[str, Any]:
        """Return a table as JSON: its cells, and what is known of its noise."""
        events = [
            event.to_dict()
            for name, event in self.events.items()
            if name == result.name or name.startswith(f"{result.name}: ")
        ]
        return {
            "name": result.name,
            "confidence": self.request.confidence,
            "intervals": "of the noise, about the figure of the extract itself",
            "events": events,
            "variance_cut_by_agreement": round(result.gain, 6),
            "facts": result.facts,
            "columns": list(result.table.columns),
            "rows": [[_plain(cell) for cell in row] for row in result.table.to_numpy().tolist()],
        }

    @classmethod
    def load(cls, folder: str | Path) -> Statistics:
        """Read statistics from their folder, and check all that can be checked without a ledger.

        Raises:
            ArtifactError: a file is missing, damaged or changed, an event was not paid for, or the
                certificate claims less than its events cost.
        """
        path = path_of(folder) / DOCUMENT
        document = read_paid(path, FORMAT, VERSION, _KEYS)
        try:
            request = Request.from_dict(as_object(document["request"], f"{path}: request"))
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from error
        certificate = Certificate.from_dict(document["certificate"], f"{path}: certificate")
        stamps = texts(document["stamps"], f"{path}: stamps")
        if problems := claim_problems(request, certificate, stamps):
            raise ArtifactError(f"{path}: {problems[0]}")
        answers = _answers(document["answers"], f"{path}: answers")
        if not _answer_exactly(request, answers):
            raise ArtifactError(f"{path} has answers that are not those of its request")
        found = cls(request, certificate, answers, stamps)
        try:
            expected = found.files()
        except (ValueError, IndexError, KeyError, TypeError, AssertionError) as error:
            raise ArtifactError(f"{path} has answers that are not those of its request") from error
        require_same(expected, path)
        return found


def _answer_exactly(request: Request, answers: Answers) -> bool:
    """Whether there are the answers that were paid for, all of them, and no number more."""
    paid = {name for one in request.statistics for name in one.sizes()}
    return set(answers) == paid and all(one.fits(answers) for one in request.statistics)


def _answers(document: Any, place: str) -> dict[str, list[Any]]:
    answers = {}
    for name, parts in as_object(document, place).items():
        if not isinstance(parts, list) or not all(_is_whole(p) or _is_texts(p) for p in parts):
            raise ArtifactError(f"{place}: every answer is a list of lists of whole numbers")
        answers[name] = [np.array(p, np.int64 if _is_whole(p) else np.str_) for p in parts]
    return answers


def _is_texts(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and all(isinstance(text, str) for text in part)


def _is_whole(part: Any) -> bool:
    return isinstance(part, list) and all(
        isinstance(n, int) and not isinstance(n, bool) and abs(n) < 2**62 for n in part
    )


def _plain(cell: Any) -> Any:
    if isinstance(cell, str | bool | int | float) or cell is None:
        return cell
    return str(cell)
