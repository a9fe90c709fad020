"""One cohort of a comparison: its histories, dealt into groups of patients, and its sums.

Every sum is made once for the whole cohort and once without each group of patients, so that a
delete-a-group jackknife over patients costs one pass. Rows never count on their own: in each
figure about rows, a patient with rows weighs one, however many she has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Histories, HistoryCodec, SeriesRows
from dpsynth.errors import InputError
from dpsynth.eval.core import JackknifeEstimate, Measure, Variants, absolute, jackknife_error, plain
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.fidelity.relations import half_l1
from dpsynth.eval.longitudinal.facts import Field, HistoryFacts, SeriesFacts

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
