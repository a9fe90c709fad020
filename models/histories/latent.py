"""`latent`: histories of patients from facts that sum them up, and from how their rows follow.

A generator of one table learns the table of patients (`patients`). The rows of a drawn patient then
follow from her facts: their days (`calendar`), which tests are taken together (`presence`), their
numbers (`courses`) and their codes (`codes`). Each of these keeps what was released of all rows, so
that no history walks away from what was seen. All releases are events of one plan, and each is made
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Histories, Roundings, SeriesRows
from dpsynth.models import (
    NO_CHECKPOINTS,
    Checkpoints,
    Progress,
    choose,
    generator_class,
    shares_of,
    silent,
)
from dpsynth.models.histories.calendar import Calendar, calendar_rows, class_of
from dpsynth.models.histories.codes import RowCodes, code_rows, code_sizes, coded_values
from dpsynth.models.histories.courses import (
    CLASSES,
    LAGS,
    SPREADS,
    Course,
    Deviations,
    lag_edges,
    memory_of,
    memory_rows,
    numbers_of,
    scores_of,
    semivariogram,
    shares_of_spreads,
    spread_rows,
)
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.patients import (
    SPANS,
    Clock,
    PatientTable,
    level_drawn,
    occasions,
)
from dpsynth.models.histories.persons.table import one_row_each
from dpsynth.models.histories.presence import Presence, presence_rows
from dpsynth.models.histories.row_grains import count_grains, with_row_grains
from dpsynth.models.histories.roundings import roundings
from dpsynth.models.histories.steps.stack import _levelled, _size
from dpsynth.models.histories.steps.table import MASS, weight_of
from dpsynth.models.marginals import AdaptiveCells, noisy_total
from dpsynth.privacy import (
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    WeightedRows,
    weighted_histograms,
)
from dpsynth.privacy.events import UNDECIDED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

VALUES, SPREAD, MEMORY, CODES, TOGETHER = "values", "spreads", "memory", "codes", "taken together"
DAYS = "days of rows"
PARTS = {VALUES: 0.09, SPREAD: 0.03, MEMORY: 0.04, CODES: 0.05, TOGETHER: 0.05, DAYS: 0.08}
"""Of the budget, where there is such an event; the table of patients has the rest."""
DRAWN = 4_000  # patients on whom days are fitted


def event_name(table: HistoryTable, kind: str) -> str:
    """Name an event of a table's rows."""
    return f"{table.name}, rows: {kind}"


def rows_event(name: str, histograms: int, rows: int) -> JointHistograms:
    """Return an event of rows, before its noise is set."""
    return JointHistograms(name, histograms, max(1, min(rows, MASS)), UNDECIDED, MASS)


def latent_events(domain: HistoryDomain) -> Iterator[tuple[str, JointHistograms]]:
    """Yield the events of rows with their kinds: public facts."""
    table_of = PatientTable(domain)
    for place, table in enumerate(domain.tables):
        rows = sum(series.max_rows for series in table.series)
        if numbers := numbers_of(table):
            levels = max(len(table.series[s].values[v].levels) for s, v in numbers)
            yield VALUES, rows_event(event_name(table, VALUES), levels, len(numbers) * rows)
            yield SPREAD, rows_event(event_name(table, SPREAD), 1, len(numbers))
            cells = 2 * len(numbers) * (LAGS + 1)
            yield MEMORY, rows_event(event_name(table, MEMORY), 1, cells)
        for series in table.series:
            if coded_values(series):
                name = f"{event_name(table, CODES)} of {series.name}"
                yield CODES, rows_event(name, len(code_sizes(series)), series.max_rows)
        if any(one.shared for one in table_of.clocks if one.table == place):
            tests = len(table.series)
            cells = tests * (tests + 1) // 2
            yield TOGETHER, rows_event(event_name(table, TOGETHER), 1, cells)
    clocks = [one for one in table_of.clocks if one.first >= 0]
    if clocks:
        rows = sum(
            sum(domain.tables[one.table].series[j].max_rows for j in one.series) for one in clocks
        )
        yield DAYS, rows_event(DAYS, 2, rows)


def model_of_patients(domain: HistoryDomain, budget: PrivacyBudget) -> str:
    """Name the generator of the table of patients: a public choice."""
    name, _ = choose(PatientTable(domain).as_domain, budget)
    return "distilled" if name == "autoregressive" else name


def shares_of_latent(domain: HistoryDomain, budget: PrivacyBudget) -> tuple[Share, ...]:
    """Name every mechanism of a fit, with its share of the budget."""
    events = [*latent_events(domain)]
    kinds = [kind for kind, _ in events]
    shares = [Share(event, PARTS[kind] / kinds.count(kind)) for kind, event in events]
    rest = 1.0 - sum(PARTS[kind] for kind in set(kinds))
    model = model_of_patients(domain, budget)
    own = shares_of(model, PatientTable(domain).as_domain, budget)
    shares += [Share(share.event, rest * share.fraction) for share in own]
    return with_row_grains(shares, domain)


@dataclass(frozen=True)
class Released:
    """Runs the events of rows, and shows them to an observer."""

    histories: Histories
    plan: PrivacyPlan | ObservedPlan
    entropy: Entropy

    def __call__(
        self,
        name: str,
        lay: Callable[[Histories, int], WeightedRows],
        sizes: Sequence[int] | Sequence[Sequence[int]],
    ) -> tuple[list[Floats], float]:
        """Return noisy histograms, and the noise of a count."""
        event = self.plan.event(name)
        assert isinstance(event, JointHistograms)
        rows = lay(self.histories, event.mass)
        sigmas = [event.sigma] * len(sizes)
        noisy = weighted_histograms(rows, sizes, sigmas, event, self.entropy)
        if isinstance(self.plan, ObservedPlan):
            observer = self.plan.observer
            observer.weighed(noisy, sigmas, *(lay(one, event.mass) for one in observer.histories))
        return [one.astype(np.float64) for one in noisy], event.sigma


class LatentHistories:
    """A table of patients, and how rows follow from it."""

    name = "latent"

    def __init__(self, domain: HistoryDomain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain
        self.table = PatientTable(domain)
        self.rounding: Roundings | None = None
        self.courses: dict[tuple[int, int, int], Course] = {}
        self.codes: dict[tuple[int, int], RowCodes] = {}
        self.presence: dict[int, Presence] = {}
        self.calendars: list[Calendar] = []

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name every mechanism that ``fit`` will run, with its share of the budget."""
        return shares_of_latent(self.domain, budget)

    def fit(
        self,
        histories: Histories,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Self:
        """Run the plan's events on the histories, each once, and learn from what they release."""
        released = Released(histories, plan, entropy)
        grains = count_grains(histories, self.domain, plan, entropy)
        progress("rows", 0.0)
        shares = {place: self._values(place, released) for place in self._with_numbers}
        scores = [
            [
                [
                    scores_of(_ordered(shares[place][s, v], value.cells))
                    if (s, v) in shares.get(place, {})
                    else np.empty(0)
                    for v, value in enumerate(series.values)
                ]
                for s, series in enumerate(table.series)
            ]
            for place, table in enumerate(self.domain.tables)
        ]
        self.table = PatientTable(self.domain, tuple(tuple(map(tuple, one)) for one in scores))
        for place in self._with_numbers:
            self._courses(place, shares[place], released)
        self._codes(released)
        self._presence(released)
        counts = self._days(released)
        progress("rows", 1.0)
        model = model_of_patients(self.domain, plan.budget)
        codes = one_row_each(self.table.codes(histories))
        kind: Any = generator_class(model)
        self.patients = kind(self.table.as_domain).fit(codes, plan, entropy, progress)
        self._fit_days(counts, entropy.generator())
        if grains:
            drawn = self.sample(min(DRAWN, self.domain.population), entropy.generator())
            self.rounding = roundings(grains, self.domain, drawn)
        return self

    @property
    def _with_numbers(self) -> list[int]:
        return [place for place, table in enumerate(self.domain.tables) if numbers_of(table)]

    def _values(self, place: int, released: Released) -> dict[tuple[int, int], Floats]:
        """Release the distribution of all values of each number of a table."""
        table = self.domain.tables[place]
        numbers = numbers_of(table)
        features = [table.series[s].values[v] for s, v in numbers]
        levels = max(len(feature.levels) for feature in features)
        sizes = [[_size(feature, level) for feature in features] for level in range(levels)]

        def lay(histories: Histories, mass: int) -> WeightedRows:
            rows = [histories.rows[place][s] for s, _ in numbers]
            counts = [one.counts(len(histories)) for one in rows]
            shared = np.sum([count > 0 for count in counts], axis=0)
            cells = []
            for level in range(levels):
                starts = np.cumsum([0, *sizes[level]])
                cells.append(
                    np.concatenate(
                        [
                            start + _levelled(one.values[:, v].astype(np.int64), feature, level)
                            for start, one, (_, v), feature in zip(
                                starts, rows, numbers, features, strict=False
                            )
                        ]
                    )
                )
            owners = np.concatenate([one.patients for one in rows])
            own = np.concatenate(
                [count[one.patients] for count, one in zip(counts, rows, strict=True)]
            )
            parts = np.repeat(np.arange(len(rows)), [len(one.patients) for one in rows])
            return WeightedRows(tuple(cells), owners, weight_of(shared[owners], own, mass), parts)

        noisy, sigma = released(event_name(table, VALUES), lay, sizes)
        found = {}
        for part, (number, feature) in enumerate(zip(numbers, features, strict=True)):
            counts = [
                np.split(one, np.cumsum(widths)[:-1])[part].astype(np.int64)
                for one, widths in zip(noisy, sizes, strict=True)
            ][: len(feature.levels)]
            total = max(noisy_total([counts[-1]]), sigma)
            leaves = AdaptiveCells.of(feature, counts, total=total, sigma=sigma)
            found[number] = leaves.code_shares(total)
        return found

    def _courses(
        self, place: int, shares: Mapping[tuple[int, int], Floats], released: Released
    ) -> None:
        """Release spreads and memory of each number of a table."""
        table = self.domain.tables[place]
        numbers, edges = numbers_of(table), lag_edges(table)

        def deviations(histories: Histories) -> list[Deviations]:
            return [
                Deviations.of(histories.rows[place][s], v, self.table.scores[place][s][v], edges)
                for s, v in numbers
            ]

        def spread(histories: Histories, mass: int) -> WeightedRows:
            return spread_rows(deviations(histories), len(histories), mass)

        def memory(histories: Histories, mass: int) -> WeightedRows:
            return memory_rows(deviations(histories), len(histories), mass)

        widths = [[SPREADS * len(CLASSES)] * len(numbers)]
        (counts,), sigma = released(event_name(table, SPREAD), spread, widths)
        spreads = shares_of_spreads(counts.reshape(len(numbers), len(CLASSES), SPREADS), sigma)
        widths = [[2] * (len(numbers) * (LAGS + 1))]
        (counts,), sigma = released(event_name(table, MEMORY), memory, widths)
        pairs = counts.reshape(len(numbers), LAGS + 1, 2)
        pooled = semivariogram(pairs, sigma)
        ends = np.append(edges[1:], table.longest + 1).astype(np.float64)
        lags = np.zeros(LAGS + 1)
        lags[: len(edges)] = np.sqrt(np.maximum(edges, 0.1) * np.maximum(ends - 1, edges + 0.1))
        lags[len(edges) :] = lags[len(edges) - 1]
        for number, (s, v) in enumerate(numbers):
            noise, tau = memory_of(pairs[number], pooled, sigma, lags)
            cells = table.series[s].values[v].cells
            self.courses[place, s, v] = Course(shares[s, v], cells, spreads[number], noise, tau)

    def _codes(self, released: Released) -> None:
        """Release codes of rows."""
        for place, table in enumerate(self.domain.tables):
            for s, series in enumerate(table.series):
                if not coded_values(series):
                    continue

                def lay(histories: Histories, mass: int, at: tuple[int, int] = (place, s)) -> Any:
                    own = self.domain.tables[at[0]].series[at[1]]
                    return code_rows(histories.rows[at[0]][at[1]], own, len(histories), mass)

                name = f"{event_name(table, CODES)} of {series.name}"
                noisy, sigma = released(name, lay, code_sizes(series))
                self.codes[place, s] = RowCodes.of(noisy, series, sigma)

    def _presence(self, released: Released) -> None:
        """Release which tests are taken together, where a table has one clock."""
        for clock in self.table.clocks:
            if not clock.shared:
                continue
            table, tests = self.domain.tables[clock.table], len(clock.series)

            def lay(histories: Histories, mass: int, clock: Clock = clock) -> WeightedRows:
                rows = [histories.rows[clock.table][j] for j in clock.series]
                return presence_rows(rows, occasions(rows), len(histories), mass)

            widths = [[1] * (tests * (tests + 1) // 2)]
            (counts,), sigma = released(event_name(table, TOGETHER), lay, widths)
            # entries are in parts of a bounded matrix; what a patient's bound is cancels in ratios
            from dpsynth.models.histories.presence import bound

            unit = MASS / bound(tests)
            self.presence[clock.table] = Presence.of(
                counts / unit, float(self.domain.population), tests, sigma / unit
            )

    def _days(self, released: Released) -> list[tuple[tuple[Floats, Floats], float]]:
        """Release days and gaps of all timed clocks."""
        clocks = [clock for clock in self.table.clocks if clock.first >= 0]
        self.calendars = [
            Calendar.even(
                self.domain.first, self.domain.last, self.domain.tables[clock.table].longest
            )
            for clock in clocks
        ]
        if not clocks:
            return []

        def lay(histories: Histories, mass: int) -> WeightedRows:
            rows = [
                occasions([histories.rows[clock.table][j] for j in clock.series])
                for clock in clocks
            ]
            pairs = [*zip(self.calendars, rows, strict=True)]
            return calendar_rows(pairs, len(histories), mass)

        sizes = [[one.sizes[kind] for one in self.calendars] for kind in (0, 1)]
        (days, gaps), sigma = released(DAYS, lay, sizes)
        split = [
            np.split(one, np.cumsum(own)[:-1])
            for one, own in zip((days, gaps), sizes, strict=True)
        ]
        return [(pair, sigma) for pair in zip(*split, strict=True)]

    def _fit_days(
        self, released: Sequence[tuple[tuple[Floats, Floats], float]], rng: np.random.Generator
    ) -> None:
        """Fit the days of drawn patients to those that were released."""
        if not released:
            return
        number = min(DRAWN, self.domain.population)
        codes = self.patients.sample(number, rng).astype(np.int64)
        ends = self.table.persons.ends_of(self.table.persons.baseline_of(self._own(codes)))
        timed = [clock for clock in self.table.clocks if clock.first >= 0]
        starts = [self._starts(codes, clock, ends, rng) for clock in timed]
        shared = np.sum([one[0] >= 3 for one in starts], axis=0)
        self.calendars = [
            calendar.fitted(*counts, start, shared, MASS, rng)
            for calendar, counts, start in zip(self.calendars, released, starts, strict=True)
        ]

    def _own(self, codes: Ints) -> Ints:
        return codes[:, : len(self.table.persons.features)]

    def _starts(
        self, codes: Ints, clock: Clock, ends: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, Ints]:
        """Return the number of rows, the first and the last day of each drawn patient."""
        table = self.domain.tables[clock.table]
        series = table.series[clock.series[0]]
        counts = np.minimum(series.counts.draw(codes[:, clock.count], rng), series.max_rows)
        if clock.first < 0:
            return counts, np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        grid = self.domain.days
        first = _filled(codes[:, clock.first], counts > 0, grid.cells, rng)
        days = np.where(counts > 0, grid.draw(first, ends, rng), 0)
        spans = _filled(codes[:, clock.span], counts > 1, SPANS.cells, rng)
        return counts, days, days + SPANS.draw(spans, ends - days, rng)

    def sample(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Histories:
        """Draw so many patients with all their rows; reads nothing but what was learned."""
        codes = self.patients.sample(patients, rng, even=even).astype(np.int64)
        persons = self.table.persons
        baseline = persons.baseline_of(self._own(codes))
        ends = persons.ends_of(baseline)
        onsets = persons.onsets_of(self._own(codes), ends, rng)
        rows: list[list[SeriesRows]] = [[] for _ in self.domain.tables]
        timed = 0
        for clock in self.table.clocks:
            counts, first, last = self._starts(codes, clock, ends, rng)
            if clock.first >= 0:
                asked = self.calendars[timed].draw(counts, first, last, rng)
                timed += 1
            else:
                owner = np.repeat(np.arange(patients), counts)
                asked = SeriesRows(owner, np.zeros(len(owner), np.int64), np.empty((len(owner), 0)))
            rows[clock.table] += self._rows(clock, asked, codes, rng)
        return Histories(
            baseline.astype(np.uint16), ends, onsets, tuple(tuple(one) for one in rows)
        )

    def _rows(
        self, clock: Clock, asked: SeriesRows, codes: Ints, rng: np.random.Generator
    ) -> list[SeriesRows]:
        """Draw the rows of the series of a clock, values included."""
        table = self.domain.tables[clock.table]
        if clock.shared:
            columns = [self.table.facts[clock.table][j].taken for j in clock.series]
            found = self.presence[clock.table].draw(asked, codes[:, columns], rng)
            own = [
                SeriesRows(asked.patients[taken], asked.days[taken], asked.values[taken])
                for taken in found.T
            ]
        else:
            own = [asked]
        drawn = []
        for j, rows in zip(clock.series, own, strict=True):
            series = table.series[j]
            cap = _capped(rows, series.max_rows)
            rows = SeriesRows(rows.patients[cap], rows.days[cap], rows.values[cap])
            values = np.zeros((len(rows.patients), len(series.values)), dtype=np.uint16)
            if len(rows.patients):
                self._values_of(values, rows, clock.table, j, codes, rng)
            drawn.append(SeriesRows(rows.patients, rows.days, values))
        return drawn

    def _values_of(
        self,
        values: npt.NDArray[np.uint16],
        rows: SeriesRows,
        place: int,
        j: int,
        codes: Ints,
        rng: np.random.Generator,
    ) -> None:
        series, facts = self.domain.tables[place].series[j], self.table.facts[place][j]
        coded = coded_values(series)
        if coded:
            start = facts.ever[coded[0]]
            size = series.values[coded[0]].size
            ever = codes[:, start : start + size] == 1 if start >= 0 else None
            values[:, coded] = self.codes[place, j].draw(rows, ever, rng)
        for v in range(len(series.values)):
            course = self.courses.get((place, j, v))
            if course is None:
                continue
            level = codes[:, facts.levels[v]]
            cells = self.table.features[facts.levels[v]].cells
            has = np.zeros(len(codes), dtype=bool)
            has[rows.patients] = True
            levels = level_drawn(_filled(level, has, cells, rng), rng)
            paths = course.paths(rows, rng)
            values[:, v] = course.draw(rows, levels, paths, rng)


def _ordered(shares: Floats, cells: int) -> Floats:
    """Return the shares of ordered codes among them."""
    own = np.maximum(shares[:cells], 0.0)
    return np.asarray(own / own.sum()) if own.sum() > 0 else np.full(cells, 1 / cells)


def _filled(
    codes: Ints, wanted: npt.NDArray[np.bool_], none: int, rng: np.random.Generator
) -> Ints:
    """Put another patient's code where one is wanted and there is none; 0 where none is wanted."""
    has = codes < none
    known = codes[wanted & has]
    filled = np.where(has, codes, 0)
    gaps = np.flatnonzero(wanted & ~has)
    if len(gaps) and len(known):
        filled[gaps] = rng.choice(known, len(gaps))
    return filled


def _capped(rows: SeriesRows, most: int) -> Ints:
    """Return the places of each patient's first rows, so many at most."""
    if not len(rows.patients):
        return np.empty(0, dtype=np.int64)
    starts = np.searchsorted(rows.patients, rows.patients, side="left")
    return np.flatnonzero(np.arange(len(rows.patients)) - starts < most)
