"""The cohorts of a comparison: their public facts, their groups of patients, and their sums.

What is public follows from the schema: columns, bins, series, events and groups. Bins are cuts of
the declared codes, never of the data, so that what is left out or put together does not depend on
any patient.

Every sum is made once for the whole cohort and once without each group of patients, so that a
delete-a-group jackknife over patients costs one pass. Rows never count on their own: in each
figure about rows, a patient with rows weighs one, however many rows they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import CodedColumn, Histories, HistoryCodec, SeriesRows, code_values
from dpsynth.errors import InputError
from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    Variants,
    absolute,
    jackknife_error,
    levels_of,
    plain,
)
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.fidelity.relations import half_l1
from dpsynth.schema import Column, LinkedSchema, unit_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def checked(histories: Histories, facts: HistoryFacts, name: str) -> Histories:
    """Return histories that fit the schema, with rows in order of patient.

    Raises:
        InputError: they have no patient, or other columns, series or codes than the schema.
    """
    size, wrong = len(histories), f"the {name} histories do not fit schema {facts.name}"
    if not size:
        raise InputError(f"the {name} histories have no patient; evaluate tables that have some")
    found = [len(table) for table in histories.rows]
    wanted = [sum(one.place[0] == n for one in facts.series) for n in range(len(facts.tables))]
    if found != wanted or histories.baseline.shape[1] != len(facts.baseline):
        raise InputError(f"{wrong}: other tables or columns; read all of them with one codec")
    if histories.onsets.shape != (size, len(facts.events)) or len(histories.ends) != size:
        raise InputError(f"{wrong}: other events; read all of them with one codec")
    checks = [(histories.baseline, facts.baseline)]
    for series in facts.series:
        rows = histories.rows[series.place[0]][series.place[1]]
        checks.append((rows.values, series.fields))
        if len(rows.patients) and not 0 <= rows.patients.min() <= rows.patients.max() < size:
            raise InputError(f"{wrong}: a row of {series.name} belongs to no patient")
    for codes, fields in checks:
        sizes = np.array([field.size for field in fields])
        if codes.shape[1] != len(fields) or (codes >= sizes).any():
            raise InputError(f"{wrong}: other codes; read all of them with one codec")
    tables = tuple(tuple(map(_sorted, table)) for table in histories.rows)
    return Histories(histories.baseline, histories.ends, histories.onsets, tables)


def chosen(histories: Histories, who: Ints) -> Histories:
    """Return some patients with all their rows; one who is chosen twice becomes two."""
    size = len(histories)
    return Histories(
        histories.baseline[who],
        histories.ends[who],
        histories.onsets[who],
        tuple(tuple(_chosen(one, who, size) for one in table) for table in histories.rows),
    )


def _chosen(rows: SeriesRows, who: Ints, size: int) -> SeriesRows:
    counts, starts = rows.counts(size)[who], rows.starts(size)[who]
    before = np.cumsum(counts) - counts
    at = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return SeriesRows(np.repeat(np.arange(len(who)), counts), rows.days[at], rows.values[at])


def _sorted(rows: SeriesRows) -> SeriesRows:
    if (np.diff(rows.patients) >= 0).all():
        return rows
    at = np.argsort(rows.patients, kind="stable")
    return SeriesRows(rows.patients[at], rows.days[at], rows.values[at])


@dataclass(frozen=True, eq=False, repr=False)
class SeriesView:
    """The rows of one series of a cohort, and their steps: pairs of consecutive rows of a patient.

    Attributes:
        facts: of the series.
        patients, days, values: as in `SeriesRows`.
        size: how many patients the cohort has.
    """

    facts: SeriesFacts
    patients: Ints
    days: Ints
    values: npt.NDArray[np.uint16]
    size: int

    @cached_property
    def counts(self) -> Ints:
        """Rows of each patient."""
        return np.bincount(self.patients, minlength=self.size).astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """The place of each patient's first row."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def index(self) -> Ints:
        """The number of each row within its patient, from 0."""
        return np.asarray(np.arange(len(self.patients)) - self.starts[self.patients])

    @cached_property
    def weights(self) -> Floats:
        """One over the rows of the patient."""
        return np.asarray(1.0 / self.counts[self.patients])

    @cached_property
    def later(self) -> Ints:
        """The places of rows that have one before them: the ends of steps."""
        return np.flatnonzero(self.index > 0)

    @cached_property
    def step_weights(self) -> Floats:
        """One over the steps of the patient, for each step."""
        return np.asarray(1.0 / (self.counts[self.patients[self.later]] - 1))

    @cached_property
    def gaps(self) -> Ints:
        """The days of each step."""
        return np.asarray(self.days[self.later] - self.days[self.later - 1])

    def common(self, place: int) -> int:
        """Return the commonest known code of a value; 0 without rows."""
        field = self.facts.fields[place]
        codes = self.values[:, place]
        return int(np.bincount(codes[codes != field.missing], minlength=field.size).argmax())

    def numbers(self, place: int) -> Floats:
        """Return a value as a number in its unit; NaN where missing or a category."""
        return self.facts.fields[place].numbers[self.values[:, place]]


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Patients with their histories.

    Attributes:
        facts: of the schema.
        histories: of the patients.
        seats: the group of each patient; zeros where there are no groups.
        groups: how many there are; 0 for a cohort that only serves as a reference.
    """

    facts: HistoryFacts
    histories: Histories
    seats: Ints
    groups: int

    def __repr__(self) -> str:
        """Show no code: the patients may be real."""
        return short_repr(self, "patients with their histories")

    @classmethod
    def of(
        cls,
        facts: HistoryFacts,
        histories: Histories,
        groups: int = 0,
        rng: np.random.Generator | None = None,
    ) -> Cohort:
        """Deal patients into groups of equal size by chance; none without a source of chance."""
        size = len(histories)
        groups = min(groups, size)
        if rng is None or groups < 2:
            return cls(facts, histories, np.zeros(size, dtype=np.int64), 0)
        return cls(facts, histories, rng.permutation(size) % groups, groups)

    def __len__(self) -> int:
        """Return the number of patients."""
        return len(self.histories)

    def take(self, who: Ints) -> Cohort:
        """Return some patients, without groups."""
        return Cohort.of(self.facts, chosen(self.histories, who))

    @cached_property
    def series(self) -> tuple[SeriesView, ...]:
        """The rows of every series."""
        found = []
        for series in self.facts.series:
            rows = self.histories.rows[series.place[0]][series.place[1]]
            found.append(SeriesView(series, rows.patients, rows.days, rows.values, len(self)))
        return tuple(found)

    def codes(self, place: int) -> Ints:
        """Return a baseline column."""
        return self.histories.baseline[:, place].astype(np.int64)

    def sums(
        self, weights: Floats | Bools, patients: Ints | None = None, keys: Ints | None = None,
        cells: int = 1,
    ) -> Floats:  # fmt: skip
        """Add up weights by cell: ``[variants, cells]``, of the cohort and without each group.

        Args:
            weights: of each row.
            patients: whose each row is; patients in order where None.
            keys: the cell of each row; one cell where None.
            cells: how many there are.
        """
        seats = self.seats if patients is None else self.seats[patients]
        where = seats * cells + (0 if keys is None else keys)
        count = max(1, self.groups)
        found = np.bincount(where, weights=weights, minlength=count * cells).reshape(count, cells)
        total = found.sum(axis=0, keepdims=True)
        return np.concatenate([total, total - found]) if self.groups else total

    def shares(
        self, keys: Ints, cells: int, patients: Ints | None = None, weights: Floats | None = None
    ) -> Floats:
        """Return the shares of cells ``[variants, cells + 1]``; the last cell is one of nothing.

        It is 1 where there is no row at all, so that a cohort without rows is as far as can be from
        one with rows, and equal to another one without.
        """
        weights = np.ones(len(keys)) if weights is None else weights
        sums = np.maximum(self.sums(weights, patients, keys, cells), 0.0)
        total = sums.sum(axis=1, keepdims=True)
        nothing = total <= 1e-9
        return np.concatenate([np.where(nothing, 0.0, sums / np.where(nothing, 1.0, total)),
                               nothing.astype(float)], axis=1)  # fmt: skip


def pair_keys(first: Ints, field: Field, second: Ints, other: Field) -> tuple[Ints, int]:
    """Number the cells that two columns of codes span, in their bins for pairs."""
    width = int(other.pair_bins.max()) + 1
    keys = field.pair_bins[first] * width + other.pair_bins[second]
    return keys, (int(field.pair_bins.max()) + 1) * width


Statistic = Callable[[Cohort], Floats]

GROUPS = 20  # of patients, for the jackknife
MIN_REPEATED = 50  # patients of train with two rows or more, for figures on what follows what


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """What is compared: each of three cohorts of ``n`` patients with all patients of train.

    Attributes:
        facts: of the schema.
        train: all patients whom the generator saw.
        synthetic: a sample.
        holdout: a sample of other real patients; None if there are none.
        chance: a bootstrap of train: patients drawn with replacement, each with all her rows.
    """

    facts: HistoryFacts
    train: Cohort
    synthetic: Cohort
    holdout: Cohort | None
    chance: Cohort

    def __repr__(self) -> str:
        """Show no code."""
        return short_repr(self, f"schema {self.facts.name}")

    @classmethod
    def of(
        cls,
        codec: HistoryCodec,
        synthetic: Histories,
        train: Histories,
        holdout: Histories | None,
        rng: np.random.Generator,
    ) -> Compared:
        """Check, sample to equal sizes, and deal patients into groups.

        Raises:
            InputError: histories do not fit the schema, or have no patient.
        """
        facts = HistoryFacts.of(codec)
        real = checked(train, facts, "train")
        drawn = checked(synthetic, facts, "synthetic")
        other = None if holdout is None else checked(holdout, facts, "holdout")
        sizes = [len(one) for one in (real, drawn, other) if one is not None]
        size = min(sizes)

        def sample(histories: Histories, groups: int) -> Cohort:
            whole = Cohort.of(facts, histories)
            if size < len(histories):
                whole = whole.take(np.sort(rng.choice(len(histories), size, replace=False)))
            return Cohort.of(facts, whole.histories, groups, rng)

        bootstrap = Cohort.of(facts, real).take(rng.integers(len(real), size=size))
        return cls(
            facts,
            Cohort.of(facts, real, GROUPS, rng),
            sample(drawn, GROUPS),
            None if other is None else sample(other, 0),
            bootstrap,
        )

    @property
    def n(self) -> int:
        """Patients of the cohorts that are compared with train."""
        return len(self.synthetic)

    def repeated(self, number: int) -> bool:
        """Say whether enough patients of train have several rows of a series."""
        return bool((self.train.series[number].counts > 1).sum() >= MIN_REPEATED)

    def each(self, statistic: Statistic) -> Variants:
        """Compute a statistic of each cohort."""
        holdout = None if self.holdout is None else statistic(self.holdout)
        return Variants(
            statistic(self.train), statistic(self.synthetic), holdout, statistic(self.chance)
        )

    def distance(self, statistic: Statistic) -> JackknifeEstimate:
        """Return the total variation distance of shares ``[variants, cells]``."""
        found = JackknifeEstimate.of(half_l1, self.each(statistic))
        assert found is not None  # shares are finite
        return found

    def difference(self, statistic: Statistic) -> JackknifeEstimate | None:
        """Return the absolute difference of a number; None if it cannot be computed."""
        return JackknifeEstimate.of(absolute, self.each(statistic))

    def measure(
        self, key: str, title: str, figures: Sequence[JackknifeEstimate], meaning: str
    ) -> list[Measure]:
        """Return the mean of figures as a measure; none of no figure."""
        if not figures:
            return []
        estimate = JackknifeEstimate.mean(figures).estimate(self.n)
        return [Measure(key, title, estimate, 0.0, meaning)]

    def spoken(self, name: str, unit: str, statistic: Statistic) -> dict[str, Any]:
        """Return a number of each cohort in plain units, with intervals, in JSON types."""
        train, synthetic, holdout, _ = self.each(statistic)
        return {
            "name": name,
            "unit": unit,
            "source": _interval(train),
            "synthetic": _interval(synthetic),
            "holdout": None if holdout is None else plain(holdout.reshape(-1)[0]),
        }


def _interval(values: Floats) -> dict[str, float | None]:
    """Return a number with the normal interval of a jackknife over patients."""
    values = values.reshape(-1)
    value = plain(values[0])
    parts = values[1:][np.isfinite(values[1:])]
    if value is None or len(parts) < 2:
        return {"value": value, "low": None, "high": None}
    half = Z * jackknife_error(parts)
    return {"value": value, "low": plain(values[0] - half), "high": plain(values[0] + half)}


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    return np.where(below > 1e-9, above / np.where(below > 1e-9, below, 1.0), np.nan)


BINS = 32  # of one column
PAIR_BINS = 16  # of each of two columns
GAP_EDGES = (
    *(0, 1, 2, 8, 15, 31, 61, 92, 122, 183, 275, 366, 457, 549, 732, 1096, 1462, 2193, 2923),
    *(4384, 7306, 14612),
)
COUNT_EDGES = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 51, 101, 201, 501, 1001)


@dataclass(frozen=True, eq=False)
class Field:
    """A column of patients or of rows.

    Attributes:
        name: of the column.
        title: its name for people.
        unit: of its numbers; empty without one.
        numbers: what each code stands for, ``[codes]``; NaN for categories and missing.
        labels: of each code of a category; empty for numbers.
        missing: the code of missing; -1 if nothing can be missing.
        ordered: whether its codes are numbers in order.
        target: whether the schema gives it role target.
    """

    name: str
    title: str
    unit: str
    numbers: Floats
    labels: tuple[str, ...]
    missing: int
    ordered: bool
    target: bool

    @classmethod
    def of(cls, coded: CodedColumn, column: Column, decimal: str) -> Field:
        """Read the declaration of a column."""
        numbers = code_values(column, decimal)
        labels = tuple(str(column.labels.get(level, level)) for level in column.levels)
        return cls(
            column.name,
            column.title or column.name,
            unit_of(column).strip("{}"),
            numbers,
            labels if column.is_categorical else (),
            coded.size - 1 if column.nullable else -1,
            coded.cells > 0,
            "target" in column.roles,
        )

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.numbers)

    @cached_property
    def bins(self) -> Ints:
        """The bin of each code when the column is looked at alone."""
        return self._cut(BINS)

    @cached_property
    def pair_bins(self) -> Ints:
        """The bin of each code when it is looked at with another one."""
        return self._cut(PAIR_BINS)

    def _cut(self, count: int) -> Ints:
        """Cut codes in declared order into bins of equally many; missing has one of its own."""
        present = self.size - (self.missing >= 0)
        width = min(count, present)
        bins = np.arange(self.size) * width // max(present, 1)
        if self.missing >= 0:
            bins[self.missing] = width
        return bins


@dataclass(frozen=True, eq=False)
class SeriesFacts:
    """Rows of one kind that a patient has in order: a wide table, or one test of a long one.

    Attributes:
        name: of the table, with the test in a long one.
        title: the same for people.
        place: where the rows stand in `Histories.rows`: table, series.
        fields: the columns of a row.
        timed: whether rows have a day.
        longest: days that two rows lie apart at most.
        max_rows: of a patient.
    """

    name: str
    title: str
    place: tuple[int, int]
    fields: tuple[Field, ...]
    timed: bool
    longest: int
    max_rows: int


@dataclass(frozen=True, eq=False)
class PatientGroup:
    """A column by which the schema tells patients apart.

    Attributes:
        title: its name for people.
        names: of its levels.
        of_code: the level of each of its codes; -1 for none.
        place: of the column in the baseline.
    """

    title: str
    names: tuple[str, ...]
    of_code: Ints
    place: int


@dataclass(frozen=True, eq=False)
class HistoryFacts:
    """The public facts of one schema of linked tables.

    Attributes:
        name, title, sha256: of the schema.
        baseline: columns of patients.
        series: of all tables.
        tables: the names of the tables of repeated rows.
        events: what can happen once.
        groups: columns of role group.
        ending: what the end of follow-up may be, such as death: a name, the column's place in the
            baseline, and the code that says that it came; None if the schema has no such column.
        end: place of the baseline column with the end of follow-up; -1 without one.
        first: first day of the window.
        last: its last day.
        schema: of the tables, with what histories keep by declaration.
    """

    name: str
    title: str
    sha256: str
    baseline: tuple[Field, ...]
    series: tuple[SeriesFacts, ...]
    tables: tuple[str, ...]
    events: tuple[str, ...]
    groups: tuple[PatientGroup, ...]
    ending: tuple[str, int, int] | None
    end: int
    first: int
    last: int
    schema: LinkedSchema

    @classmethod
    def of(cls, codec: HistoryCodec) -> HistoryFacts:
        """Read them off a codec; no data is involved."""
        schema, patients = codec.schema, codec.patients
        columns = patients.schema.modelled
        decimal = schema.patients.dialect.decimal
        pairs = zip(codec.baseline, columns, strict=True)
        baseline = _distinct_titles(Field.of(coded, column, decimal) for coded, column in pairs)
        return cls(
            name=schema.name,
            title=schema.title or schema.name,
            sha256=schema.hash(),
            baseline=baseline,
            series=_series(codec),
            tables=tuple(table.name for table in codec.tables),
            events=codec.events,
            groups=_groups(codec, baseline),
            ending=_ending(codec),
            end=-1 if codec.end is None else codec.end[0],
            first=codec.first,
            last=codec.last,
            schema=schema,
        )

    @property
    def timed(self) -> bool:
        """Whether anything has a day."""
        return self.last > self.first

    def day_bins(self, days: Ints, count: int = PAIR_BINS) -> Ints:
        """Return the bin of each day: ``count`` before day 0, day 0, and ``count`` after it."""
        before = (days - self.first) * count // max(-self.first, 1)
        after = count + 1 + (days - 1) * count // max(self.last, 1)
        bins = np.where(days < 0, before, np.where(days == 0, count, after))
        return np.asarray(np.clip(bins, 0, 2 * count))


def count_bins(counts: Ints) -> Ints:
    """Return the bin of each number of rows."""
    return np.searchsorted(COUNT_EDGES, counts, side="right") - 1


def gap_bins(gaps: Ints) -> Ints:
    """Return the bin of each number of days between two rows."""
    return np.searchsorted(GAP_EDGES, np.maximum(gaps, 0), side="right") - 1


def _series(codec: HistoryCodec) -> tuple[SeriesFacts, ...]:
    """Flatten the series of all tables."""
    found = []
    repeated = [one for one in codec.children if one.child.once is None]
    for number, (child, table) in enumerate(zip(repeated, codec.tables, strict=True)):
        decimal = child.child.schema.dialect.decimal
        columns = child.codec.schema.modelled
        rest = [columns[place] for place in child.others]
        tests = () if child.child.series is None else child.child.series.columns
        for place, series in enumerate(table.series):
            own = [tests[place], *rest] if tests else rest
            pairs = zip(series.values, own, strict=True)
            fields = _distinct_titles(Field.of(coded, column, decimal) for coded, column in pairs)
            title = f"{table.name}: {fields[0].title}" if tests else table.name
            facts = (title, (number, place), fields, table.timed, table.longest, series.max_rows)
            found.append(SeriesFacts(series.name, *facts))
    return tuple(found)


def _distinct_titles(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Put the names of columns behind titles that several of them have."""
    every = tuple(fields)
    often = Counter(field.title for field in every)
    return tuple(
        replace(field, title=f"{field.title} ({field.name})") if often[field.title] > 1 else field
        for field in every
    )


def _groups(codec: HistoryCodec, baseline: tuple[Field, ...]) -> tuple[PatientGroup, ...]:
    """Return the groups, with the level of each code."""
    found = []
    for levels in levels_of(codec.patients, "group"):
        field = baseline[levels.place]
        if levels.column.is_categorical:
            codes = np.arange(field.size)
            of_code = np.where(codes < len(levels.names), codes, -1)
        else:
            of_code = np.searchsorted(levels.cuts, field.numbers, side="right")
            of_code = np.where(np.isnan(field.numbers), -1, of_code)
        found.append(
            PatientGroup(levels.title, levels.names, of_code.astype(np.int64), levels.place)
        )
    return tuple(found)


def _ending(codec: HistoryCodec) -> tuple[str, int, int] | None:
    """Name how follow-up may end, if it ends in one of two ways; the last category is the event."""
    if codec.status is None:
        return None
    column = codec.patients.schema.modelled[codec.status]
    if len(column.levels) != 2:
        return None
    return str(column.labels.get(column.levels[1], column.levels[1])), codec.status, 1
