"""A request of statistics: which an office wants of a table, their plan, and what follows from it.

Which tables of a schema can be asked, and the codes of their columns, are public facts alone. All
events of all statistics are calibrated together, before any data. From noisy answers to tables is
post-processing, the same for whoever has the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import figure, figure_at_most
from dpsynth._util.messages import did_you_mean, listed
from dpsynth._util.strict_json import as_object
from dpsynth._util.strict_yaml import SUFFIXES
from dpsynth._util.written_files import read_document
from dpsynth.certificate import Certificate
from dpsynth.encoding import Codec, HistoryCodec
from dpsynth.errors import ArtifactError, InputError
from dpsynth.policy.policy import STATISTICS
from dpsynth.privacy import Event, KeyCounts, LaplaceCounts, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy import epsilon as epsilon_of
from dpsynth.schema import AnySchema, ChildTable, LinkedSchema, Schema
from dpsynth.schema.files import MAX_FILE
from dpsynth.stats.answer_request import (
    ChargedRequest,
    Kind,
    Numbers,
    PrecisionPreview,
    Result,
    file_stem,
)
from dpsynth.stats.counts import Counts, agreed, meaningful
from dpsynth.stats.entries import EntryReader, check_keys, read_any_schema
from dpsynth.stats.page import sections_of
from dpsynth.stats.statistic import MAX_CONFIDENCE, Statistic, normal_quantile

KEYS = ("schema", "confidence", "statistics")
MAX_STATISTICS = 200


MAX_NUMBERS = 5_000_000
"""Noisy numbers of all statistics of a request: about a minute of noise, and a gigabyte."""


@dataclass(frozen=True, eq=False)
class StatisticsRequest(ChargedRequest):
    """Statistics of one table, or of linked ones.

    Attributes:
        document: as it was written, with the defaults filled in.
        schema: of the table; of linked tables, that of patients.
        codec: of the schema.
        confidence: of every interval.
        statistics: in order.
        tables: the table that each of them is of; None where there is one table alone.
        linked: linked tables; None where there is one table alone.
    """

    document: dict[str, Any]
    schema: Schema
    codec: Codec
    confidence: float
    statistics: tuple[Statistic, ...]
    tables: tuple[str | None, ...] = ()
    linked: LinkedTables | None = None
    kind: ClassVar[Kind] = Kind(
        STATISTICS,
        "the statistics",
        "Statistics",
        "statistics.json",
        "dpsynth-statistics",
        ("request", "answers"),
    )

    @property
    def facts(self) -> AnySchema:
        """The schema of the table, or of all linked ones: what is certified and charged."""
        return self.schema if self.linked is None else self.linked.schema

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<Request of {len(self.statistics)} statistics of schema {self.facts.name}>"

    @classmethod
    def load(cls, path: str | Path) -> StatisticsRequest:
        """Read a request from YAML or JSON; the schema's path is relative to it.

        Raises:
            InputError: the document is not exactly a request, with the place and what to do.
        """
        place = path_of(path, "the path of a request")
        document = _document(place)
        if not isinstance(document, dict):
            raise InputError(f"{place} is not a request: it must be an object with statistics")
        where = document.get("schema")
        if isinstance(where, str) and (place.parent / where).is_file():
            document = document | {"schema": str(place.parent / where)}
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> StatisticsRequest:
        """Read a request from plain values; its schema may be a name, a path, or a document.

        Raises:
            InputError: as `load`.

        Example:
            >>> request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [
            ...     {"name": "patients by sex", "count": "patients", "by": ["sex"]},
            ...     {"name": "age", "quantiles": "age", "shares": [0.25, 0.5, 0.75]}]})
            >>> [statistic.name for statistic in request.statistics]
            ['patients by sex', 'age']
        """
        check_keys(document, "the request", KEYS, ("schema", "statistics"))
        facts = read_any_schema(document["schema"])
        confidence = document.get("confidence", 0.95)
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise InputError("confidence must be a number such as 0.95")
        if not 0.5 <= confidence <= MAX_CONFIDENCE:
            raise InputError(f"confidence must be at least 0.5 and at most {MAX_CONFIDENCE}")
        entries = document["statistics"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_STATISTICS:
            raise InputError(f"statistics must be a list of 1 to {MAX_STATISTICS} entries")
        if isinstance(facts, LinkedSchema) and any(
            column.discovers
            for table in (facts.patients, *(child.schema for child in facts.children))
            for column in table.modelled
        ):
            raise InputError(
                "statistics of linked tables need declared codes; list them in the schema, and "
                "remove discover"
            )
        linked = LinkedTables.of(facts) if isinstance(facts, LinkedSchema) else None
        if isinstance(facts, LinkedSchema):
            assert linked is not None
            read = [_of_table(linked, entry, place) for place, entry in enumerate(entries, 1)]
            schema, codec = facts.patients, linked.codec.patients
        else:
            schema, codec = facts, Codec(facts)
            reader = EntryReader(schema, codec)
            read = [(None, reader.statistic(entry, n)) for n, entry in enumerate(entries, 1)]
        tables, found = tuple(name for name, _ in read), tuple(one for _, one in read)
        names = [one.name.lower() for one in found]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two statistics are called '{name}'; give each its own name")
        whole = {
            "schema": facts.to_dict(),
            "confidence": float(confidence),
            "statistics": [dict(entry) for entry in entries],
        }
        return cls(whole, schema, codec, float(confidence), found, tables, linked)

    @property
    def title(self) -> str:
        """The title of the schema, or its name."""
        return self.facts.title or self.facts.name

    @property
    def schemas(self) -> tuple[AnySchema, ...]:
        """The schema of the table, or of all linked ones."""
        return (self.facts,)

    def shares(self, certificate: Certificate | None = None) -> tuple[Share, ...]:
        """Divide the budget of a certificate as its plan did; see `shares_of_request`."""
        assert certificate is not None
        laplace = may_be_laplace(self) and all(
            isinstance(event, LaplaceCounts) for event in certificate.events
        )
        return shares_of_request(self, certificate.delta, laplace=laplace)

    def plan(self, epsilon: float, delta: float) -> PrivacyPlan:
        """Calibrate the noise of all statistics together.

        Raises:
            InputError: the budget cannot be met, or the answers would not fit in memory.

        Example:
            >>> request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [
            ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
            >>> plan = request.plan(epsilon=0.5, delta=1e-7)
            >>> [event.name for event in plan.events], plan.epsilon <= 0.5
            (['by sex'], True)
        """
        if sum(one.numbers for one in self.statistics) > MAX_NUMBERS:
            raise InputError(
                f"the statistics need more than {MAX_NUMBERS:,} noisy numbers together; ask for "
                "fewer"
            )
        budget = PrivacyBudget(epsilon, delta)
        plan = PrivacyPlan.calibrate(budget, shares_of_request(self, delta))
        if may_be_laplace(self):
            other = PrivacyPlan.calibrate(budget, shares_of_request(self, delta, laplace=True))
            plan = min((other, plan), key=lambda tried: _widest(self, tried, plan))
        return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge

    def expected(self, plan: PrivacyPlan) -> PrecisionPreview:
        """Say for each statistic how far its figures will be off, from public facts alone."""
        events: dict[str, Event] = {event.name: event for event in plan.events}
        total = fsum(one.weight for one in self.statistics)
        z = normal_quantile(self.confidence)
        each = [
            {
                "name": one.name,
                "share": one.weight / total,
                "precision": one.expected(events, z),
            }
            for one in self.statistics
        ]
        width = max(len(one.name) for one in self.statistics)
        return PrecisionPreview(
            {"composed_epsilon": plan.epsilon, "statistics": each},
            [f"{one['name']:<{width}}  {one['precision']}" for one in each],
        )

    def cost(self, plan: PrivacyPlan) -> tuple[dict[str, Any], list[str]]:
        """Say what all statistics cost together, and what they would if a unit were replaced."""
        replaced = replaced_epsilon(plan)
        return {"epsilon_if_replaced": replaced}, [
            f"cost: epsilon {figure(plan.epsilon)} for all statistics together",
            f"if one unit replaces another: epsilon {figure_at_most(replaced)}",
        ]

    def foreseen(self, tried: Mapping[float, PrecisionPreview]) -> tuple[dict[str, Any], list[str]]:
        """Say for each statistic how precise it would be at each budget."""
        values: list[dict[str, Any]] = []
        lines = []
        for place, one in enumerate(self.statistics):
            each = {
                f"{epsilon:g}": preview.values["statistics"][place]["precision"]
                for epsilon, preview in tried.items()
            }
            values.append({"name": one.name, "precision": each})
            lines += [one.name, *[f"  epsilon {at:<5} {words}" for at, words in each.items()]]
        return {"statistics": values}, lines

    @classmethod
    def read(cls, document: Mapping[str, Any], path: Path) -> StatisticsRequest:
        """Read a request back from the document of answers."""
        return cls.from_dict(as_object(document["request"], f"{path}: request"))

    def numbers(
        self, document: Mapping[str, Any], events: Mapping[str, Event], path: Path
    ) -> Numbers:
        """Read the answers that were paid for, all of them, and no number more."""
        answers = _answers(document["answers"], f"{path}: answers")
        paid = {name for one in self.statistics for name in one.sizes()}
        if set(answers) != paid or not all(one.fits(answers) for one in self.statistics):
            raise ArtifactError(f"{path} has answers that are not those of its request")
        return answers

    def asked(self) -> dict[str, Any]:
        """Return the request as keys of the document."""
        return {"request": self.document}

    def paid(self, numbers: Numbers) -> dict[str, Any]:
        """Return the answers as keys of the document."""
        stated = {name: [part.tolist() for part in parts] for name, parts in numbers.items()}
        return {"answers": stated}

    def results(self, numbers: Numbers, events: Mapping[str, Event]) -> tuple[Result, ...]:
        """Make the tables from noisy answers.

        Tables of counts of the same rows are made to agree on the margins that they share.
        """
        z = normal_quantile(self.confidence)
        counts: dict[str | None, list[Counts]] = {}
        for table, one in zip(self.tables, self.statistics, strict=True):
            if isinstance(one, Counts) and one.adds_up:
                counts.setdefault(table, []).append(one)  # rows of two tables are not the same rows
        alike = {}
        for several in counts.values():
            noisy = [one.noisy(numbers, events) for one in several]
            for one, before, after in zip(several, noisy, agreed(noisy), strict=True):
                gain = 1 - (after.sd / before.sigma) ** 2
                alike[one.name] = one.listed(after.counts, after.sd, one.reach(events, z)), gain
        found = []
        for place, one in enumerate(self.statistics, 1):
            stem = f"{place:02d}-{file_stem(one.name)}"
            if one.name in alike:
                found.append(Result(one.name, alike[one.name][0], stem, alike[one.name][1]))
            else:
                cells = meaningful(one.table(numbers, events, z))
                found.append(Result(one.name, cells, stem, facts=one.facts(numbers, events)))
        return tuple(found)

    def described(self, result: Result, events: Mapping[str, Event]) -> dict[str, Any]:
        """Say what is known of the noise of a table."""
        return {
            "name": result.name,
            "confidence": self.confidence,
            "intervals": "of the noise, about the figure of the extract itself",
            "events": [
                event.to_dict()
                for name, event in events.items()
                if name == result.name or name.startswith(f"{result.name}: ")
            ],
            "variance_cut_by_agreement": round(result.gain, 6),
            "facts": result.facts,
        }

    def page(
        self, numbers: Numbers, certificate: Certificate | None, results: Sequence[Result]
    ) -> dict[str, object]:
        """Return a section for each table."""
        assert certificate is not None
        return {
            "confidence": f"{100 * self.confidence:g} %",
            "results": sections_of({event.name: event for event in certificate.events}, results),
        }

    def summary(self, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
        """Name the tables."""
        return {"tables": [one.name for one in results]}, f"{len(results)} tables"


def _of_table(linked: LinkedTables, entry: Any, number: int) -> tuple[str | None, Statistic]:
    """Read an entry about one of linked tables."""
    if not isinstance(entry, Mapping):
        entry, name = {}, linked.schema.patients.name
    else:
        try:
            name = linked.table_of(entry)
        except InputError as error:
            raise InputError(f"statistic {number}: {error}") from None
    table = linked.asked[name]
    rest = {key: value for key, value in entry.items() if key != TABLE}
    return name, EntryReader(table.schema, table.codec).statistic(rest, number)


def is_request(path: str | Path) -> bool:
    """Whether a path is of a request of statistics, and not of a schema.

    Raises:
        InputError: there is a file that cannot be read.
    """
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES or not place.is_file():
        return False
    document = _document(place)
    return isinstance(document, dict) and "statistics" in document


def _document(place: Path) -> Any:
    return read_document(place, "request", largest=MAX_FILE, never="a request is not")


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


DELTA_PART = 0.1
"""Of the budget's delta: for all thresholds of undeclared keys together, as in a fit."""


MOST_MOVED = 12
"""Cells that a unit moves in all counts of a request: with more, Gaussian noise is narrower."""


def shares_of_request(
    request: StatisticsRequest, delta: float, *, laplace: bool = False
) -> tuple[Share, ...]:
    """Divide a budget by the weights of a request, and each part among a statistic's events.

    Args:
        request: what is asked.
        delta: of the budget, of which thresholds take a part.
        laplace: whether counts get Laplace noise; see `may_be_laplace`.
    """
    total = fsum(one.weight for one in request.statistics)
    thresholds = sum(bool(one.undeclared) for one in request.statistics)

    def decided(event: Event) -> Event:
        if not isinstance(event, KeyCounts):
            return event
        return replace(event, delta=DELTA_PART * delta / thresholds)

    return tuple(
        Share(in_laplace(one) if laplace else decided(event), one.weight / total * part)
        for one in request.statistics
        for event, part in one.events()
    )


def in_laplace(one: Statistic) -> LaplaceCounts:
    """Return the event of a count with Laplace noise."""
    event = one.in_laplace() if isinstance(one, Counts) else None
    assert event is not None
    return event


def may_be_laplace(request: StatisticsRequest) -> bool:
    """Whether all that is asked are counts, and few: a public fact."""
    counts = [one for one in request.statistics if isinstance(one, Counts)]
    plain = len(counts) == len(request.statistics) and all(one.in_laplace() for one in counts)
    return plain and sum(one.rows_per_unit for one in counts) <= MOST_MOVED


def replaced_epsilon(plan: PrivacyPlan) -> float:
    """Return epsilon at the plan's delta where one unit takes another's place: substitution.

    Example:
        >>> request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> plan = request.plan(epsilon=0.5, delta=1e-7)
        >>> round(replaced_epsilon(plan) / plan.epsilon, 1)  # of Laplace noise; of Gaussian 1.4
        2.0
    """
    return epsilon_of([event.substituted() for event in plan.events], plan.budget.delta)


def _widest(request: StatisticsRequest, tried: PrivacyPlan, plan: PrivacyPlan) -> float:
    """Return the largest interval of a plan of counts over that of another with Gaussian noise."""
    z, widths = normal_quantile(request.confidence), []
    for one in request.statistics:
        assert isinstance(one, Counts)
        reached = [
            one.half_width({event.name: event for event in each.events}, z)
            for each in (tried, plan)
        ]
        widths.append(reached[0] / reached[1])
    return max(widths)


TABLE = "table"
"""The key of an entry that names its table."""


@dataclass(frozen=True, eq=False)
class AskedTable:
    """A table whose rows also have the columns of their patient.

    Attributes:
        codec: of these columns: those of the patient first, then the table's own.
        of_patient: the places of the patient's columns among those of the table of patients; a
            column that the table has as well is the table's.
        child: which of the tables of repeated rows it is; None for that of patients.
    """

    codec: Codec
    of_patient: tuple[int, ...]
    child: int | None

    @property
    def schema(self) -> Schema:
        """The schema of these columns; its unit is the patient, with the table's cap."""
        return self.codec.schema


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Linked tables, as they can be asked.

    Attributes:
        schema: of them.
        codec: of their histories.
        asked: each table by name, that of patients first.
        refused: why a table cannot be asked, by name.
    """

    schema: LinkedSchema
    codec: HistoryCodec
    asked: Mapping[str, AskedTable]
    refused: Mapping[str, str]

    @classmethod
    def of(cls, schema: LinkedSchema) -> LinkedTables:
        """Derive what can be asked from public facts.

        Raises:
            SchemaError: a column's bounds and step do not make a lattice.

        Example:
            >>> tables = LinkedTables.of(LinkedSchema.load("clinic"))
            >>> list(tables.asked), tables.asked["visits"].codec.names[-3:]
            (['patients', 'visits'], ('systolic', 'weight', 'drugs'))
        """
        codec = HistoryCodec(schema)
        patients = schema.patients
        everything = tuple(range(len(codec.patients.names)))
        own = Codec(replace(codec.patients.schema, rules=()))
        asked, refused = {patients.name: AskedTable(own, everything, None)}, {}
        place = 0
        for one in codec.children:
            why = _refusal(one.child, patients)
            if why is None:
                asked[one.child.name] = _beside(codec.patients, one.codec, one.child, place)
            else:
                refused[one.child.name] = why
            place += one.child.once is None
        return cls(schema, codec, asked, refused)

    def table_of(self, entry: Mapping[str, Any]) -> str:
        """Return the table that an entry names; that of patients if it names none.

        Raises:
            InputError: there is no such table, or it cannot be asked.
        """
        name = entry.get(TABLE, self.schema.patients.name)
        if name in self.refused:
            raise InputError(self.refused[name])
        if not isinstance(name, str) or name not in self.asked:
            meant = did_you_mean(str(name), list(self.asked))
            raise InputError(f"'table' must be one of {listed(list(self.asked))}{meant}")
        return name


def _refusal(child: ChildTable, patients: Schema) -> str | None:
    """Say why a table cannot be asked; None if it can."""
    if child.kind != "wide":
        rows = "a test in each row" if child.kind == "long" else "events that happen once"
        return f"table '{child.name}' has {rows}; statistics are of tables with a row a visit"
    if child.schema.dialect.decimal != patients.dialect.decimal:
        return f"table '{child.name}' writes decimals otherwise than that of patients"
    return None


def _beside(patients: Codec, own: Codec, child: ChildTable, place: int) -> AskedTable:
    """Put the columns of patients beside those of a table."""
    kept = tuple(i for i, name in enumerate(patients.names) if name not in own.names)
    columns = (*(patients.schema.modelled[i] for i in kept), *own.schema.modelled)
    codec = Codec(replace(own.schema, columns=columns, rules=()))
    sizes = (*(patients.sizes[i] for i in kept), *own.sizes)
    if codec.sizes != sizes:
        raise InputError(f"table '{child.name}' has columns whose codes follow from other columns")
    return AskedTable(codec, kept, place)
