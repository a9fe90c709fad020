"""Labels by PATE: which rows are labelled, by whom, and what follows from noisy votes.

Public or synthetic rows get a label that only private rows tell. Each patient belongs to one
teacher; how many teachers vote for each label of a row is published with noise
(`dpsynth.stats.labelling`), and all else follows from that: the labels by majority, and a student
that labels every row.

**Public rows** are published with their labels, so nobody may take private rows for them. A column
of the label, if they have one, is left out before anything else is done.

**The student** is a regression that knows the noise. The share of votes for each class is regressed
on the features. Weights are normal a priori; their spread, and the part of the votes that no
weights explain, are those under which the noisy votes are likeliest, given the noise that was
added. The noise of n queries is about sqrt(n) times that of one, and n queries tell n times as
much: so a student gets no worse where more is asked, however little a single label is worth. All of
it is post-processing of noisy votes and public rows.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth._util.messages import did_you_mean, listed
from dpsynth._util.strict_json import as_object, bytes_digest, read_plain_bytes
from dpsynth.certificate import Certificate
from dpsynth.encoding import Codec
from dpsynth.errors import ArtifactError, DpsynthError, InputError, TableError
from dpsynth.privacy import Event, PrivacyPlan, Share, TeacherVotes
from dpsynth.privacy.answer_events import LABELS
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import AnySchema, PrivacyUnit, Schema
from dpsynth.stats.answer_request import ChargedRequest, Kind, Numbers, PrecisionPreview, Result
from dpsynth.stats.axes import Axis
from dpsynth.stats.entries import check_keys, table_schema
from dpsynth.tables import (
    Source,
    Table,
    as_source,
    as_written,
    needed_columns,
    open_columns,
    texts_of,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]

BEST, DRAWN = "best", "drawn"
WAYS = (BEST, DRAWN)
"""A vote names the likeliest class, or one drawn by how likely each is."""

EVENT = "votes of teachers"
MAX_CLASSES = 50
MAX_TEACHERS = 20_000
MAX_COUNTS = 1_000_000
"""Noisy counts: a quarter of a minute of noise."""
MAX_VOTES = 100_000_000
"""Votes of all teachers on all rows: 200 MB."""
USUAL_ASKED = 5_000
_UNITS_OF_A_TEACHER = 70  # about; a student gains more by many teachers than by good ones
_KEYS = ("schema", "label", "teachers", "asked", "vote")
MAX_QUERIES = 200_000
TABLE, VOTES = "labelled", "votes"
_TOLERANCE = 1000  # of a weight, in GRAIN: what another machine's arithmetic may come to
LEADS = (0.2, 0.4, 0.6)
_Z = 1.6448536269514722  # of which a normal number is below with this probability


@dataclass(frozen=True, eq=False)
class LabelsRequest(ChargedRequest):
    """What is to be labelled, and how; all of it is public.

    Attributes:
        queries: the public rows.
        schema: of the private table.
        codec: of the schema.
        axis: the label's classes: which of its codes is which class.
        teachers: among whom the patients are dealt.
        voted: how many public rows they vote on, the first ones.
        vote: whether a vote names the likeliest class (``best``), or one that is drawn (``drawn``).
    """

    queries: Queries
    schema: Schema
    codec: Codec
    axis: Axis
    teachers: int
    voted: int
    vote: str
    kind: ClassVar[Kind] = Kind(
        LABELS,
        "the labels",
        "Labels",
        "labels.json",
        "dpsynth-labels",
        ("task", "queries", "written", "votes", "student"),
    )

    def __repr__(self) -> str:
        """Name the label and the schema."""
        return f"<LabelsRequest of {self.label} in schema {self.schema.name}>"

    @classmethod
    def of(
        cls,
        queries: Source | Queries,
        schema: Schema | str,
        label: str,
        *,
        teachers: int | None = None,
        asked: int | None = None,
        vote: str = BEST,
    ) -> LabelsRequest:
        """Set a task, and read the public rows; no private row is read.

        Args:
            queries: public rows: a CSV or Parquet file, or a DataFrame.
            schema: of the private table: a schema, its path, or the name of a shipped one.
            label: the column to tell, with 2 to 50 declared values.
            teachers: how many there are; as a rule, one for 70 of the declared population.
            asked: on how many rows they vote, the first ones; the first 5,000 if None, or fewer.
            vote: ``best`` or ``drawn``.

        Raises:
            InputError: one of them is wrong, or the votes would not fit in memory.

        Example:
            >>> from dpsynth.tables import simulate
            >>> request = LabelsRequest.of(simulate(50, seed=2), "demo", "diabetes")
            >>> request.axis.labels, request.voted == request.queries.count
            (('False', 'True'), True)
        """
        schema = table_schema(schema.to_dict() if isinstance(schema, Schema) else schema)
        if any(column.discovers for column in schema.modelled):
            raise InputError(
                "labels need declared codes; list them in the schema, and remove discover"
            )
        codec = Codec(schema)
        if label not in codec.names:
            raise InputError(
                f"the label must be a column of the schema{did_you_mean(label, codec.names)}"
            )
        if len(codec.names) < 2:
            raise InputError("the schema has no other column, by which a label could be told")
        axis = Axis.of(codec, label, None).known()
        if not 2 <= axis.size <= MAX_CLASSES:
            raise InputError(
                f"column '{label}' has {axis.size} values; a label has 2 to {MAX_CLASSES}"
            )
        if teachers is None:
            teachers = max(10, min(schema.population.value // _UNITS_OF_A_TEACHER, 5_000))
        if type(teachers) is not int or not 2 <= teachers <= MAX_TEACHERS:
            raise InputError(f"the number of teachers must be from 2 to {MAX_TEACHERS:,}")
        most = min(MAX_COUNTS // axis.size, MAX_VOTES // teachers)
        if asked is not None and (type(asked) is not int or not 1 <= asked <= most):
            raise InputError(
                f"{teachers:,} teachers and {axis.size} classes can vote on 1 to {most:,} rows"
            )
        if vote not in WAYS:
            raise InputError(f"a vote is one of {listed(WAYS)}")
        rows = queries if isinstance(queries, Queries) else Queries.read(queries, schema, label)
        if asked is not None and asked > rows.count:
            raise InputError(f"the queries have {rows.count:,} rows; no more can be asked")
        voted = min(USUAL_ASKED, rows.count, most) if asked is None else asked
        return cls(rows, schema, codec, axis, teachers, voted, vote)

    @classmethod
    def read(cls, document: Mapping[str, Any], path: Path) -> LabelsRequest:
        """Read a task back from the document of labels, and the public rows from their table."""
        task = as_object(document["task"], f"{path}: task")
        check_keys(task, "the task", _KEYS, _KEYS)
        if not all(isinstance(task[key], str) for key in ("label", "vote")):
            raise InputError("the task's label and vote must be texts")
        if type(task["teachers"]) is not int or type(task["asked"]) is not int:
            raise InputError("the task's teachers and asked rows must be whole numbers")
        return cls.of(
            _queries(path, task["label"], document),
            table_schema(task["schema"]),
            task["label"],
            teachers=task["teachers"],
            asked=task["asked"],
            vote=task["vote"],
        )

    def asked(self) -> dict[str, Any]:
        """Return the task as keys of the document."""
        task = {
            "schema": self.schema.to_dict(),
            "label": self.label,
            "teachers": self.teachers,
            "asked": self.voted,
            "vote": self.vote,
        }
        return {"task": task, "queries": self.queries.digest, "written": self.queries.written}

    @property
    def label(self) -> str:
        """The column to tell."""
        return self.axis.column

    @property
    def title(self) -> str:
        """The title of the schema, or its name."""
        return self.schema.title or self.schema.name

    @property
    def schemas(self) -> tuple[AnySchema, ...]:
        """The schema of the private table."""
        return (self.schema,)

    @cached_property
    def codes(self) -> npt.NDArray[np.uint16]:
        """The codes of the public rows, ``[rows, columns]``."""
        codec = Codec(as_written(self.schema)) if self.queries.written else self.codec
        return self.queries.codes(codec, self.label, self.axis.labels[0])

    @cached_property
    def features(self) -> Features:
        """The features of every row, as the public rows cut them."""
        return Features.cut(self.codec, self.codes, self.axis.place)

    def shares(self, certificate: Certificate | None = None) -> tuple[Share, ...]:
        """Return its one event, which has the whole budget."""
        votes = TeacherVotes(EVENT, self.teachers, self.voted, self.axis.size, UNDECIDED)
        return (Share(votes, 1.0),)

    def expected(self, plan: PrivacyPlan) -> PrecisionPreview:
        """Say how far noise will hide the votes.

        Of the values, ``student_sd`` is what noise adds to a share of votes that the student
        states, over the rows that are asked, an upper bound. ``right_at_lead`` has, for each lead
        of the first class over the second as a share of the teachers, the chance that the noisy
        votes of one row alone name the first. ``answerable_by_votes`` is how many rows could be
        asked if a lead of 40 % were to win in 95 of 100.
        """
        sigma = _votes_of({event.name: event for event in plan.events}).sigma
        apart = math.sqrt(2) * sigma  # sd of the difference of two numbers
        each = sigma / math.sqrt(self.voted)  # at which a row alone would be asked
        answerable = math.floor((0.4 * self.teachers / (_Z * math.sqrt(2) * each)) ** 2)
        learned = min(1.0, (1 + self.features.count) / self.voted)
        student = sigma / self.teachers * math.sqrt(learned)
        right = {lead: _normal(lead * self.teachers / apart) for lead in LEADS}
        units = self.schema.population.value / self.teachers
        chances = ", ".join(
            f"{100 * p:.0f} % if it leads by {100 * x:.0f} %" for x, p in right.items()
        )
        return PrecisionPreview(
            {
                "composed_epsilon": plan.epsilon,
                "sigma": sigma,
                "teachers": self.teachers,
                "units_each": units,
                "student_sd": student,
                "right_at_lead": {f"{lead:g}": chance for lead, chance in right.items()},
                "answerable_by_votes": answerable,
            },
            [
                f"teachers: {self.teachers:,}, each trained on about {units:,.0f} units",
                f"noise on each number of votes: {sigma:,.0f} votes (standard deviation)",
                f"student: noise changes its estimate of a share of votes by about {student:.3f} "
                "(standard deviation)",
                "one row alone: noisy votes name the leading class with a probability of "
                f"{chances}",
                f"without a student: for 95 % correct labels at a lead of 40 %, ask about at most "
                f"{answerable:,} rows",
            ],
        )

    def cost(self, plan: PrivacyPlan) -> tuple[dict[str, Any], list[str]]:
        """Say what all labels cost together."""
        return {}, [f"cost: epsilon {figure(plan.epsilon)} for all labels together"]

    def learned(self, votes: Ints, sigma: float) -> Student:
        """Teach a student by noisy votes, from what is published alone.

        Args:
            votes: noisy, ``[voted, classes]``.
            sigma: of their noise.
        """
        bits = self.features.of(self.codes[: self.voted])
        return Student.taught(bits, votes, self.teachers, sigma)

    def numbers(
        self, document: Mapping[str, Any], events: Mapping[str, Event], path: Path
    ) -> Numbers:
        """Read the votes that were paid for, and the student, who must have learned from them."""
        votes = _whole(document["votes"], (self.voted, self.axis.size), f"{path}: votes")
        shape = (1 + self.features.count, self.axis.size)
        stated = _whole(document["student"], shape, f"{path}: student")
        student = self.learned(votes, _votes_of(events).sigma)
        if np.abs(stated - student.weights).max() > _TOLERANCE:
            raise ArtifactError(f"{path} has a student that did not learn from its votes")
        return {"votes": votes, "student": stated}

    def paid(self, numbers: Numbers) -> dict[str, Any]:
        """Return the votes and the student as keys of the document."""
        return {name: numbers[name].tolist() for name in ("votes", "student")}

    def results(self, numbers: Numbers, events: Mapping[str, Event]) -> tuple[Result, ...]:
        """Return the public rows with the student's label, and what was said of each of them.

        ``votes`` has the columns ``row`` from 1; ``teachers``, the label with the most noisy votes,
        empty where they were not asked; ``student``; and for each class the noisy number of
        ``votes`` and the ``share`` of them that the student expects.
        """
        names, votes = np.array(self.axis.labels, dtype=object), numbers["votes"]
        scores = Student(numbers["student"]).scores(self.features.of(self.codes))
        chosen = np.full(self.queries.count, "", dtype=object)
        chosen[: self.voted] = names[votes.argmax(axis=1)]
        found = pd.DataFrame({"row": np.arange(1, self.queries.count + 1), "teachers": chosen})
        found["student"] = names[scores.argmax(axis=1)]
        blank = [""] * (self.queries.count - self.voted)
        known = np.clip(scores, 0, None) + 1
        shares = known * 10_000 // known.sum(axis=1, keepdims=True)
        for place, name in enumerate(self.axis.labels):
            found[f"votes: {name}"] = [*map(str, votes[:, place].tolist()), *blank]
            found[f"share: {name}"] = shares[:, place] / 10_000
        labelled = self.queries.cells.assign(**{self.label: found["student"].to_numpy()})
        return Result(TABLE, labelled, TABLE), Result(VOTES, found, VOTES)

    def page(
        self, numbers: Numbers, certificate: Certificate | None, results: Sequence[Result]
    ) -> dict[str, object]:
        """Return how the labels are spread."""
        assert certificate is not None
        shares = results[1].table
        return {
            "label": self.label,
            "teachers": f"{self.teachers:,}",
            "sigma": figure(_votes_of({one.name: one for one in certificate.events}).sigma),
            "asked": f"{self.voted:,}",
            "rows": f"{len(shares):,}",
            "classes": [_class(name, shares) for name in self.axis.labels],
        }

    def summary(self, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
        """Say how many rows were labelled, and by how many teachers."""
        values = {"rows": self.queries.count, "asked": self.voted, "teachers": self.teachers}
        return values, (
            f"{self.queries.count:,} rows, {self.voted:,} of them by the votes of "
            f"{self.teachers:,} teachers"
        )


def _votes_of(events: Mapping[str, Event]) -> TeacherVotes:
    event = events[EVENT]
    assert isinstance(event, TeacherVotes)
    return event


def _normal(value: float) -> float:
    return (1 + math.erf(value / math.sqrt(2))) / 2


def _whole(document: Any, shape: tuple[int, int], place: str) -> npt.NDArray[np.int64]:
    """Read a matrix of whole numbers of this shape, no more and no fewer."""
    fits = isinstance(document, list) and len(document) == shape[0]
    if not fits or not all(isinstance(row, list) and len(row) == shape[1] for row in document):
        raise ArtifactError(f"{place}: there must be {shape[0]} lists of {shape[1]} whole numbers")
    if not all(type(cell) is int and abs(cell) < 2**62 for row in document for cell in row):
        raise ArtifactError(f"{place}: there must be whole numbers alone")
    return np.array(document, dtype=np.int64).reshape(shape)


def _class(name: str, shares: pd.DataFrame) -> dict[str, Any]:
    return {
        "name": name,
        "student": f"{int((shares['student'] == name).sum()):,}",
        "teachers": f"{int((shares['teachers'] == name).sum()):,}",
        "share": f"{float(shares[f'share: {name}'].mean()):.3f}",
    }


@dataclass(frozen=True, eq=False)
class Queries:
    """Public rows.

    Attributes:
        cells: their cells as text, without the label; an empty one is an empty text.
        written: whether cells are written as in a synthetic table, and not as in the private one.
    """

    cells: pd.DataFrame
    written: bool

    @classmethod
    def read(cls, source: Source, schema: Schema, label: str) -> Queries:
        """Read public rows, in the dialect of the schema or as a synthetic table is written.

        Args:
            source: a CSV or Parquet file, or a DataFrame.
            schema: of the private table.
            label: the column to leave out; it need not be there.

        Raises:
            InputError: the table cannot be read, lacks a column, or has too many rows.
        """
        table, written = _opened(source, schema, label)
        frames, rows = [], 0
        for chunk in table.chunks():
            rows += len(chunk)
            if rows > MAX_QUERIES:
                raise InputError(f"the queries have more than {MAX_QUERIES:,} rows; give fewer")
            frames.append(pd.DataFrame({name: _texts(chunk[name]) for name in chunk}))
        return cls.from_csv(_csv(pd.concat(frames, ignore_index=True)), written)

    @classmethod
    def from_csv(cls, content: bytes, written: bool) -> Queries:
        """Read back what `csv` wrote.

        Raises:
            TableError: it is no such table.
        """
        try:
            cells = pd.read_csv(
                io.BytesIO(content), dtype=str, na_filter=False, skip_blank_lines=False
            )
        except (ValueError, pd.errors.ParserError, UnicodeDecodeError):
            raise TableError("the table of queries is damaged") from None
        if _csv(cells) != content:
            raise TableError("the queries have a cell that does not survive being written")
        return cls(cells, written)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.cells)

    def csv(self) -> bytes:
        """Return the cells as a CSV file."""
        return _csv(self.cells)

    @property
    def digest(self) -> str:
        """SHA-256 of the cells."""
        return bytes_digest(self.csv())

    def codes(self, codec: Codec, label: str, filler: str) -> npt.NDArray[np.uint16]:
        """Return the codes of the rows, ``[rows, columns]``; those of the label are of a filler.

        Raises:
            InputError: a cell breaks a column that refuses, or a column is missing.
        """
        try:
            return codec.encode(self.cells.assign(**{label: filler}))
        except DpsynthError as error:
            raise InputError(f"the queries: {error}") from None


def columns_of(schema: Schema, label: str) -> tuple[str, ...]:
    """Return the columns that public rows need: those that are modelled, but the label and keys."""
    plain = replace(schema, unit=PrivacyUnit(column=None, max_rows=1, max_rows_basis=None))
    return tuple(name for name in needed_columns(plain) if name != label)


def _opened(source: Source, schema: Schema, label: str) -> tuple[Table, bool]:
    """Open in the schema's dialect, or else as a synthetic table; say which."""
    source, needed = as_source(source), columns_of(schema, label)
    try:
        return open_columns(source, schema, needed, private=False), False
    except TableError as error:
        if isinstance(source, pd.DataFrame):
            raise
        try:
            return open_columns(source, as_written(schema), needed, private=False), True
        except TableError:
            raise error from None


def _texts(cells: pd.Series[Any]) -> list[str]:
    return ["" if text is None else text for text in texts_of(cells).to_pylist()]


def _csv(cells: pd.DataFrame) -> bytes:
    return cells.to_csv(index=False, lineterminator="\n").encode()


def _queries(path: Path, label: str, document: Mapping[str, Any]) -> Queries:
    """Read the public rows back from the table that they are labelled in."""
    if not isinstance(document["written"], bool):
        raise ArtifactError(f"{path}: written must be true or false")
    labelled = path.parent / f"{TABLE}.csv"
    content = read_plain_bytes(labelled, largest=2**30)
    try:
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
        place = rows[0].index(label)
        cells = pd.DataFrame([row[:place] + row[place + 1 :] for row in rows[1:]])
        cells.columns = pd.Index(rows[0][:place] + rows[0][place + 1 :])
        queries = Queries(cells, document["written"])
        same = queries.digest == document["queries"]
    except (ValueError, IndexError, csv.Error):
        same = False
    if not same:
        raise ArtifactError(f"{labelled} is not what {path.name} gives: it was changed")
    return queries


PARTS = 12  # into which the public rows cut an ordered column
MAX_LEVELS = 24  # of a category that have a feature of their own
MIN_SHARE = 0.005  # of the public rows, for a feature of its own


@dataclass(frozen=True, eq=False)
class Features:
    """Features of coded rows.

    An ordered column has a feature for each of its cuts, 1 from the cut on: equal steps make a
    line, unequal ones any curve. A category has one for each of its commonest values but the first.

    Attributes:
        tables: of each column, the features of each code, ``[codes, features]``.
    """

    tables: tuple[Bits, ...]

    @classmethod
    def cut(cls, codec: Codec, codes: npt.NDArray[np.integer], label: int) -> Features:
        """Cut every column but the label where public rows are: all of it is public.

        Args:
            codec: of the schema.
            codes: of public rows, ``[rows, columns]``.
            label: the place of the label among the columns, which has no feature.
        """
        tables = []
        for place, size in enumerate(codec.sizes):
            if place == label:
                tables.append(np.zeros((size, 0), dtype=np.uint8))
            else:
                tables.append(_table(codes[:, place].astype(np.int64), size, codec.cells[place]))
        return cls(tuple(tables))

    @property
    def count(self) -> int:
        """How many features there are."""
        return sum(table.shape[1] for table in self.tables)

    def of(self, codes: npt.NDArray[np.integer]) -> Bits:
        """Return the features of rows, ``[rows, features]``, from their codes."""
        parts = [table[codes[:, place]] for place, table in enumerate(self.tables)]
        return np.concatenate(parts, axis=1)


def _table(codes: Ints, size: int, ordered: int) -> Bits:
    """Return the features of each code of one column."""
    every = np.arange(size)
    found: list[npt.NDArray[np.bool_]] = []
    if ordered > 1:
        known = np.sort(codes[codes < ordered])
        places = np.arange(1, PARTS) * len(known) // PARTS
        cuts = np.unique(known[places]) if len(known) else every[:0]
        found += [(every >= cut) & (every < ordered) for cut in cuts if cut > 0]
    counts = np.bincount(codes, minlength=size)
    counts[:ordered] = 0
    common = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    common = common[counts[common] >= max(1.0, MIN_SHARE * len(codes))]
    found += [every == code for code in common[0 if ordered else 1 :]]
    return np.array(found, dtype=np.uint8).reshape(len(found), size).T


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
