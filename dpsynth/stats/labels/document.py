"""Labels on disk: a task, its certificate, public rows and noisy votes; all else follows.

``labels.json`` holds what was paid for. The labels of the table, the student and the page are
derived from it and from the public rows, and `Labels.load` derives them anew.

The student: what the noisy votes say of every public row, by a regression that knows the noise.

All of it is post-processing of noisy votes and public rows. The share of votes for each class is
regressed on the features. Weights are normal a priori; their spread, and the part of the votes that
no weights explain, are those under which the noisy votes are likeliest, given the noise that was
added. The noise of n queries is about sqrt(n) times that of one, and n queries tell n times as
much: so a student gets no worse where more is asked, however little a single label is worth.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import figure
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import as_object, digest, read_plain_bytes, texts, written
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError
from dpsynth.privacy import TeacherVotes
from dpsynth.privacy.answer_events import LABELS
from dpsynth.stats.claim import problems_of_claim
from dpsynth.stats.labels.queries import Queries
from dpsynth.stats.labels.task import Task
from dpsynth.stats.labels.teachers import Bits, Features, Ints
from dpsynth.stats.package import (
    MANIFEST,
    ChargedStatistics,
    data_package,
    read_paid,
    require_same,
    save_files,
)
from dpsynth.stats.page import rendered

FORMAT, VERSION = "dpsynth-labels", 1
DOCUMENT, MODEL = "labels.json", LABELS
TABLE, VOTES = "labelled.csv", "votes.csv"
_KEYS = (
    *("format", "version", "task", "queries", "written", "certificate", "votes", "student"),
    *("stamps", "sha256"),
)
_TOLERANCE = 1000  # of a weight, in GRAIN: what another machine's arithmetic may come to


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Public rows with labels, and the certificate of what they cost.

    Attributes:
        task: what was labelled.
        queries: the public rows.
        certificate: the privacy certificate.
        votes: noisy numbers of votes, ``[asked, classes]``.
        student: what was learned from them.
        stamps: reasons why they may not be released, such as ``no-ledger``.
    """

    task: Task
    queries: Queries
    certificate: Certificate
    votes: npt.NDArray[np.int64]
    student: Student
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the label and the cost."""
        return short_repr(self, f"of column {self.task.label}", repr(self.certificate))

    @property
    def event(self) -> TeacherVotes:
        """The event of the votes."""
        (event,) = self.certificate.events
        assert isinstance(event, TeacherVotes)
        return event

    @cached_property
    def scores(self) -> npt.NDArray[np.int64]:
        """The share of votes that the student expects, in millionths, ``[queries, classes]``."""
        return self.student.scores(_features(self.task, self.queries)[0])

    def table(self) -> pd.DataFrame:
        """Return the public rows with the student's label of each, as text."""
        names = np.array(self.task.axis.labels, dtype=object)
        return self.queries.cells.assign(**{self.task.label: names[self.scores.argmax(axis=1)]})

    def shares(self) -> pd.DataFrame:
        """Return what teachers and student say of each public row, and of each class.

        Columns: ``row`` from 1; ``teachers``, the label with the most noisy votes, empty where
        they were not asked; ``student``; and for each class the noisy number of ``votes`` and the
        ``share`` of them that the student expects.
        """
        names = np.array(self.task.axis.labels, dtype=object)
        chosen = np.full(self.queries.count, "", dtype=object)
        chosen[: self.task.asked] = names[self.votes.argmax(axis=1)]
        found = pd.DataFrame({"row": np.arange(1, self.queries.count + 1), "teachers": chosen})
        found["student"] = names[self.scores.argmax(axis=1)]
        blank = [""] * (self.queries.count - self.task.asked)
        known = np.clip(self.scores, 0, None) + 1
        shares = known * 10_000 // known.sum(axis=1, keepdims=True)
        for place, name in enumerate(self.task.axis.labels):
            found[f"votes: {name}"] = [*map(str, self.votes[:, place].tolist()), *blank]
            found[f"share: {name}"] = shares[:, place] / 10_000
        return found

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
            "task": self.task.to_dict(),
            "queries": self.queries.digest,
            "written": self.queries.written,
            "certificate": self.certificate.to_dict(),
            "votes": self.votes.tolist(),
            "student": self.student.weights.tolist(),
            "stamps": list(self.stamps),
        }
        return document | {"sha256": digest(document)}

    def files(self) -> dict[str, bytes]:
        """Return every file, by name."""
        tables = {TABLE: self.table(), VOTES: self.shares()}
        found = {
            DOCUMENT: written(self._document()),
            "privacy.json": written(self.certificate.to_dict()),
            "schema.json": written(self.task.schema.to_dict()),
            "report.html": labels_page(self.task, self.certificate, self.stamps, tables[VOTES]),
        }
        for name, table in tables.items():
            found[name] = table.to_csv(index=False, lineterminator="\n").encode()
        title = self.task.schema.title or self.task.schema.name
        package = data_package(title, found, tables) | {"title": f"Labels: {title}"}
        return found | {MANIFEST: written(package)}

    def save(self, folder: str | Path) -> Path:
        """Write all files into a new folder, whole or not at all.

        Raises:
            InputError: the folder exists or cannot be written.
        """
        return save_files(self.files(), folder)

    @classmethod
    def load(cls, folder: str | Path) -> Labels:
        """Read labels from their folder, and check all that can be checked without a ledger.

        Raises:
            ArtifactError: a file is missing, damaged or changed, the votes are not those that were
                paid for, or the certificate claims less than they cost.
        """
        path = path_of(folder) / DOCUMENT
        document = read_paid(path, FORMAT, VERSION, _KEYS)
        try:
            task = Task.from_dict(as_object(document["task"], f"{path}: task"))
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from error
        certificate = Certificate.from_dict(document["certificate"], f"{path}: certificate")
        stamps = texts(document["stamps"], f"{path}: stamps")
        if wrong := problems_of_claim(task.schema, task.shares(), MODEL, certificate, stamps):
            raise ArtifactError(f"{path}: {wrong[0]}")
        votes = _whole(document["votes"], (task.asked, task.axis.size), f"{path}: votes")
        queries = _queries(Path(folder) / TABLE, task, document)
        event = certificate.events[0]
        assert isinstance(event, TeacherVotes)
        features, student = taught(task, queries, votes, event)
        shape = (1 + features.count, task.axis.size)
        stated = _whole(document["student"], shape, f"{path}: student")
        if np.abs(stated - student.weights).max() > _TOLERANCE:
            raise ArtifactError(f"{path} has a student that did not learn from its votes")
        found = cls(task, queries, certificate, votes, Student(stated), stamps)
        require_same(found.files(), path)
        return found


def taught(
    task: Task, queries: Queries, votes: npt.NDArray[np.int64], event: TeacherVotes
) -> tuple[Features, Student]:
    """Teach a student by noisy votes, from what is published alone.

    Args:
        task: what was asked.
        queries: the public rows.
        votes: noisy, ``[asked, classes]``.
        event: that paid for them.
    """
    bits, features = _features(task, queries)
    return features, Student.taught(bits[: task.asked], votes, task.teachers, event.sigma)


def _features(task: Task, queries: Queries) -> tuple[npt.NDArray[np.uint8], Features]:
    codes = queries.codes(task)
    features = Features.cut(task.codec, codes, task.axis.place)
    return features.of(codes), features


def _queries(path: Path, task: Task, document: dict[str, Any]) -> Queries:
    """Read the public rows back from the table that they are labelled in."""
    if not isinstance(document["written"], bool):
        raise ArtifactError(f"{path.parent / DOCUMENT}: written must be true or false")
    content = read_plain_bytes(path, largest=2**30)
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
        place = rows[0].index(task.label)
        cells = pd.DataFrame([row[:place] + row[place + 1 :] for row in rows[1:]])
        cells.columns = pd.Index(rows[0][:place] + rows[0][place + 1 :])
        queries = Queries(cells, document["written"])
        same = queries.digest == document["queries"] and queries.count >= task.asked
    except (ValueError, IndexError, csv.Error):
        same = False
    if not same:
        raise ArtifactError(f"{path} is not what {DOCUMENT} gives: it was changed")
    return queries


def _whole(document: Any, shape: tuple[int, int], place: str) -> npt.NDArray[np.int64]:
    """Read a matrix of whole numbers of this shape, no more and no fewer."""
    fits = isinstance(document, list) and len(document) == shape[0]
    if not fits or not all(isinstance(row, list) and len(row) == shape[1] for row in document):
        raise ArtifactError(f"{place}: there must be {shape[0]} lists of {shape[1]} whole numbers")
    if not all(type(cell) is int and abs(cell) < 2**62 for row in document for cell in row):
        raise ArtifactError(f"{place}: there must be whole numbers alone")
    return np.array(document, dtype=np.int64).reshape(shape)


def labels_page(
    task: Task, certificate: Certificate, stamps: Sequence[str], shares: pd.DataFrame
) -> bytes:
    """Return the page as HTML; it holds what the files beside it hold, and nothing else.

    Args:
        task: what was labelled.
        certificate: of the labels.
        stamps: reasons why they may not be released.
        shares: what teachers and student say of each row, as `Labels.shares` has it.
    """
    (event,) = certificate.events
    assert isinstance(event, TeacherVotes)
    return rendered(
        "labels.html",
        certificate,
        stamps,
        title=task.schema.title or task.schema.name,
        label=task.label,
        teachers=f"{event.teachers:,}",
        sigma=figure(event.sigma),
        asked=f"{task.asked:,}",
        rows=f"{len(shares):,}",
        classes=[_class(name, shares) for name in task.axis.labels],
    ).encode()


def _class(name: str, shares: pd.DataFrame) -> dict[str, Any]:
    return {
        "name": name,
        "student": f"{int((shares['student'] == name).sum()):,}",
        "teachers": f"{int((shares['teachers'] == name).sum()):,}",
        "share": f"{float(shares[f'share: {name}'].mean()):.3f}",
    }


Floats = npt.NDArray[np.float64]
GRAIN = 1_000_000
"""Weights are whole numbers of this part, so that scores are exact on every machine."""

_SPREADS = np.geomspace(1e-4, 1.0, 17)  # of a weight, a priori
_REMAINDERS = (0.0, 0.03, 0.1, 0.3)  # sd of shares that no weights explain
_LIMIT = 4.0  # weights beyond it are no weights of shares


@dataclass(frozen=True, eq=False)
class Student:
    """A linear model of the share of votes for each class.

    Attributes:
        weights: in `GRAIN`, ``[1 + features, classes]``; the first row is the intercept.
    """

    weights: Ints

    @classmethod
    def taught(cls, features: Bits, votes: Ints, teachers: int, sigma: float) -> Student:
        """Learn from noisy votes.

        Args:
            features: of the rows that were asked, ``[queries, features]``.
            votes: noisy numbers of votes, ``[queries, classes]``.
            teachers: how many voted, at most.
            sigma: the scale of the noise on each number.
        """
        rows = features.astype(np.float64)
        shares = votes / teachers
        middle, share = rows.mean(axis=0), shares.mean(axis=0)
        centred, wanted = rows - middle, shares - share
        strengths, axes = np.linalg.eigh(centred.T @ centred)
        strengths = np.maximum(strengths, 0)
        along = axes.T @ (centred.T @ wanted)
        spread, noise = _likeliest(strengths, along, wanted, (sigma / teachers) ** 2)
        weights = axes @ (along / (strengths + noise / spread)[:, None])
        all_weights = np.vstack([share - middle @ weights, weights])
        whole = np.rint(np.clip(all_weights, -_LIMIT, _LIMIT) * GRAIN)
        return cls(whole.astype(np.int64))

    def scores(self, features: Bits) -> Ints:
        """Return the share of votes to expect of each row and class, in `GRAIN`."""
        found: Ints = self.weights[0] + features.astype(np.int64) @ self.weights[1:]
        return found


def _likeliest(
    strengths: Floats, along: Floats, wanted: Floats, known: float
) -> tuple[float, float]:
    """Return the variances of a weight and of a share, under which the shares are likeliest."""
    rows, classes = wanted.shape
    total, squares = float((wanted**2).sum()), (along**2).sum(axis=1)
    best = (-np.inf, 0.0, 0.0)
    for spread in _SPREADS**2:
        for rest in _REMAINDERS:
            noise = known + rest**2 + 1e-6
            variances = spread * strengths + noise
            fit = (total - float((spread * squares / variances).sum())) / noise
            size = float(np.log(variances).sum()) + (rows - len(strengths)) * np.log(noise)
            if (likelihood := -(fit + classes * size) / 2) > best[0]:
                best = (likelihood, float(spread), float(noise))
    return best[1], best[2]
