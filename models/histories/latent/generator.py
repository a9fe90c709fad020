"""`latent`: histories of patients from facts that sum them up, and from how their rows follow.

The table of patients (`patients`) is learned as correlated normal variables (`vector`). The rows of
a drawn patient then follow from her facts: their days (`calendar`, `placing`), which tests are
taken together (`presence`), their numbers (`courses`, `panels`) and their codes (`codes`). Each of
these keeps what was released of all rows, so that no history walks away from what was seen. What is
declared holds by construction: nothing is rejected. All releases are events of one plan, and each
is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpsynth.encoding import NEVER, Histories, Roundings, SeriesRows
from dpsynth.models import NO_CHECKPOINTS, Checkpoints, Progress, silent
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.grids import filled
from dpsynth.models.histories.latent.calendar import Calendar, calendar_rows
from dpsynth.models.histories.latent.codes import RowCodes, code_rows, code_sizes, coded_values
from dpsynth.models.histories.latent.courses import (
    CLASSES,
    LAGS,
    SPREADS,
    Course,
    Deviations,
    Memory,
    lag_edges,
    memory_rows,
    numbers_of,
    paths,
    semivariogram,
    shares_of_spreads,
    spread_cells,
)
from dpsynth.models.histories.latent.laws import NumberCells, denoised, normal_laws, spread_law
from dpsynth.models.histories.latent.normal_scores import scores_of
from dpsynth.models.histories.latent.panels import deviations, panel_root, panel_rows
from dpsynth.models.histories.latent.patients import (
    DENSITY,
    END,
    HIGHEST,
    LEVELS,
    SPANS,
    TAKEN,
    Clock,
    PatientTable,
    level_drawn,
    may_share,
    occasions,
    occupied,
    parent_days,
    parent_spans,
    rows_due,
    share_drawn,
)
from dpsynth.models.histories.latent.placing import Placing, cells_of, due_cells, inside_cells
from dpsynth.models.histories.latent.presence import Presence, bound, presence_rows
from dpsynth.models.histories.latent.vector import (
    AGAIN,
    EVERS,
    ONE_WAY,
    PRODUCTS,
    UNSEEN,
    WIDER,
    PatientVector,
    vector_events,
)
from dpsynth.models.histories.roundings import roundings
from dpsynth.models.histories.row_grains import count_grains, weight_of, with_row_grains
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals.projection import project
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    WeightedRows,
    gaussian_mu,
    weighted_histograms,
)
from dpsynth.privacy.events import UNDECIDED

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CLOCKS = "tables: clocks"
VALUES, TESTS = "rows: values", "patients: tests"
MEMORY, PANEL, CODES, TOGETHER = "memory", "at one time", "codes", "taken together"
DAYS, PLACES = "rows: days", "rows: places"
PARTS = {
    CLOCKS: 0.01,
    ONE_WAY: 0.07,
    EVERS: 0.10,
    VALUES: 0.10,
    TESTS: 0.09,
    PRODUCTS: 0.20,
    AGAIN: 0.22,
    MEMORY: 0.04,
    PANEL: 0.03,
    TOGETHER: 0.04,
    DAYS: 0.04,
    PLACES: 0.02,
    CODES: 0.06,
}
"""Of the budget, where there are such events; what has none goes to the others in proportion."""
FINE = 0.04
"""Error of a mean product, below which half of what products have is spent on single facts: these
are then what noise takes most from."""
PER_CELL = 8  # cells of a level that are counted as one
FEW_TESTS = 16  # tests of a patient up to which each counts whole
LOOKS = 4  # at drawn histories
LEAST_DRAWN, MOST_DRAWN = 4_000, 10_000  # patients in each of them: two for each real one
DRAWN = 4_000  # patients on whom days are fitted


def event_name(table: HistoryTable, kind: str) -> str:
    """Name an event of a table's rows."""
    return f"{table.name}, rows: {kind}"


def rows_event(name: str, histograms: int, rows: int) -> JointHistograms:
    """Return an event of rows, before its noise is set."""
    return JointHistograms(name, histograms, max(1, min(rows, MASS)), UNDECIDED, MASS)


@dataclass(frozen=True)
class Number:
    """A number of a series: its place."""

    table: int
    series: int
    value: int


def numbers(domain: HistoryDomain) -> list[Number]:
    """Return the numbers of all tables."""
    return [
        Number(place, series, value)
        for place, table in enumerate(domain.tables)
        for series, value in numbers_of(table)
    ]


def measured(table: PatientTable) -> list[tuple[int, int, int]]:
    """Return (table, series, value) of what the event of tests counts; -1 for a test of codes."""
    found = []
    for place, of_table in enumerate(table.facts):
        for series, facts in enumerate(of_table):
            own = [value for value, level in enumerate(facts.levels) if level >= 0]
            if not own and facts.taken >= 0:
                own = [-1]
            found += [(place, series, value) for value in own]
    return found


def latent_events(domain: HistoryDomain) -> Iterator[tuple[str, Any]]:
    """Yield the events with their kinds: public facts.

    Whether the tests of some tables share a clock is released first; events are large enough for
    either answer.
    """
    sharing = [place for place, table in enumerate(domain.tables) if may_share(table)]
    if sharing:
        yield CLOCKS, rows_event(CLOCKS, 1, 2 * len(sharing))
    layouts = [PatientTable(domain), PatientTable(domain, shared=tuple(sharing))]
    either = [vector_events(one) for one in layouts]
    for name in either[0]:
        yield name, max((one[name] for one in either), key=_size_of)
    every = numbers(domain)
    if every:
        rows = sum(domain.tables[one.table].series[one.series].max_rows for one in every)
        yield VALUES, rows_event(VALUES, 1, rows)
    if tests := max(len(measured(one)) for one in layouts):
        yield TESTS, rows_event(TESTS, 3, tests)
    for place, table in enumerate(domain.tables):
        if own := numbers_of(table):
            cells = 2 * len(own) * (LAGS + 1)
            yield MEMORY, rows_event(event_name(table, MEMORY), 1, cells)
            if len(own) > 1:
                cells = len(own) * (len(own) + 1) // 2
                yield PANEL, rows_event(event_name(table, PANEL), 1, cells)
        for series in table.series:
            if coded_values(series):
                name = f"{event_name(table, CODES)} of {series.name}"
                yield CODES, rows_event(name, len(code_sizes(series)), series.max_rows)
        if any(one.shared for one in layouts[1].clocks if one.table == place):
            tests_of = len(table.series)
            cells = tests_of * (tests_of + 1) // 2
            yield TOGETHER, rows_event(event_name(table, TOGETHER), 1, cells)
    for name, histograms, kinds in ((DAYS, 2, timed_clocks), (PLACES, 1, placed_clocks)):
        most = max(sum(_rows_of(domain, one.clocks[j]) for j in kinds(one)) for one in layouts)
        if most:
            yield name, rows_event(name, histograms, most)


def _size_of(event: JointHistograms | ChosenHistograms) -> tuple[int, int]:
    many = event.most if isinstance(event, ChosenHistograms) else event.histograms
    return many, event.rows_per_unit


def timed_clocks(table: PatientTable) -> list[int]:
    """Return the clocks whose days are drawn by themselves."""
    return [place for place, one in enumerate(table.clocks) if one.first >= 0]


def placed_clocks(table: PatientTable) -> list[int]:
    """Return the clocks whose days follow from declared facts."""
    tables = table.domain.tables
    return [place for place, one in enumerate(table.clocks) if cells_of(tables[one.table])]


def _rows_of(domain: HistoryDomain, clock: Clock) -> int:
    return sum(domain.tables[clock.table].series[j].max_rows for j in clock.series)


def shares_of_latent(domain: HistoryDomain, budget: PrivacyBudget) -> tuple[Share, ...]:
    """Name every mechanism of a fit, with its share of the budget."""
    events = [*latent_events(domain)]
    kinds = [kind for kind, _ in events]
    parts = {kind: PARTS[kind] for kind in kinds}
    if noise_of_a_product(domain, budget) < FINE:
        moved = (parts[PRODUCTS] + parts[AGAIN]) / 2
        parts[ONE_WAY] += moved
        parts |= {PRODUCTS: parts[PRODUCTS] / 2, AGAIN: parts[AGAIN] / 2}
    whole = sum(parts.values())
    shares = [Share(event, parts[kind] / whole / kinds.count(kind)) for kind, event in events]
    return with_row_grains(shares, domain)


def noise_of_a_product(domain: HistoryDomain, budget: PrivacyBudget) -> float:
    """Return the standard error of a mean product of two facts, about: a public number."""
    facts = len(PatientTable(domain).columns)
    mu = gaussian_mu(budget.epsilon, budget.delta) * np.sqrt(PARTS[PRODUCTS])
    return float(WIDER * facts / np.sqrt(2) / (mu * domain.population))


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
        self.vector = PatientVector(self.table)
        self.rounding: Roundings | None = None
        self.courses: dict[tuple[int, int, int], Course] = {}
        self.memories: dict[tuple[int, int, int], Memory] = {}  # in a fit
        self.panels: dict[int, Floats] = {}
        self.codes: dict[tuple[int, int], RowCodes] = {}
        self.presence: dict[int, Presence] = {}
        self.calendars: dict[int, Calendar] = {}
        self.placings: dict[int, Placing] = {}
        self.uncut: set[tuple[int, int]] = set()
        self.unscaled: set[tuple[int, int]] = set()

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
        shared = self._clocks(released)
        self.table = PatientTable(self.domain, shared=shared)
        grains = count_grains(histories, self.domain, plan, entropy)
        progress("rows", 0.0)
        shares = self._values(released)
        scores = [
            [
                [
                    scores_of(_ordered(shares[place, s, v], value.cells))
                    if (place, s, v) in shares
                    else np.empty(0)
                    for v, value in enumerate(series.values)
                ]
                for s, series in enumerate(table.series)
            ]
            for place, table in enumerate(self.domain.tables)
        ]
        self.table = PatientTable(
            self.domain, tuple(tuple(map(tuple, one)) for one in scores), shared
        )
        panels = self._presence(released)
        self.table = replace(self.table, panels=panels)
        self.vector = PatientVector(self.table)
        tests, spreads = self._tests(released)
        for place, table in enumerate(self.domain.tables):
            if numbers_of(table):
                self._courses(place, shares, spreads, released)
        self._codes(released)
        days, places = self._days(released)
        progress("rows", 1.0)
        progress("patients", 0.0)
        self.vector.fit(histories, tests, plan, entropy, released)
        progress("patients", 1.0)
        self._fit_days(days, places, entropy.generator())
        self._settle(entropy.generator())
        drawn = self.sample(min(DRAWN, self.domain.population), entropy.generator())
        if grains:
            self.rounding = roundings(grains, self.domain, drawn)
        return self

    def _settle(self, rng: np.random.Generator) -> None:
        """Move what was learned by how drawn histories differ from what their laws say.

        Rows leave no room for some of a patient's codes, and ask for others; levels are cut into
        cells; days lie within follow-up. So drawn histories relate less than the variables that
        they are made of. By how much is seen in them, and given to the variables.
        """
        for _ in range(LOOKS):
            self.uncut = set(self.codes)
            self.unscaled = {at[:2] for at in self.courses}
            number = int(np.clip(2 * self.domain.population, LEAST_DRAWN, MOST_DRAWN))
            drawn = self.sample(number, rng)
            self._settle_memories(drawn)
            self.vector.settle(self.table.codes(drawn))
        self.uncut = set(self.codes)
        self.sample(DRAWN, rng)

    def _clocks(self, released: Released) -> tuple[int, ...]:
        """Release whether the tests of a table are taken together, where that is not public."""
        places = [place for place, table in enumerate(self.domain.tables) if may_share(table)]
        if not places:
            return ()

        def lay(histories: Histories, mass: int) -> WeightedRows:
            found = [occupied(histories.rows[place], len(histories)) for place in places]
            owner = np.concatenate([who for who, _ in found])
            part = np.repeat(np.arange(len(places)), [len(who) for who, _ in found])
            share = np.concatenate([own for _, own in found])
            tables = np.bincount(owner, minlength=len(histories))
            weights = weight_of(tables[owner], np.ones(len(owner), dtype=np.int64), mass)
            together = np.floor(weights * share).astype(np.int64)
            return WeightedRows(
                (np.concatenate([2 * part, 2 * part + 1]),),
                np.concatenate([owner, owner]),
                np.concatenate([together, weights - together]),
                np.concatenate([part, part]),
            )

        (counts,), _ = released(CLOCKS, lay, [[2] * len(places)])
        return tuple(
            place
            for place, (together, apart) in zip(places, counts.reshape(-1, 2), strict=True)
            if together > apart
        )

    def _values(self, released: Released) -> dict[tuple[int, int, int], Floats]:
        """Release the distribution of all values of each number."""
        every = numbers(self.domain)
        if not every:
            return {}
        features = [self._feature(one) for one in every]
        cells = [NumberCells.of(feature) for feature in features]
        sizes = [
            own.count + feature.size - feature.cells
            for own, feature in zip(cells, features, strict=True)
        ]
        starts = np.cumsum([0, *sizes])
        cell_of = [
            np.concatenate([own.cell, own.count + np.arange(feature.size - feature.cells)])
            for own, feature in zip(cells, features, strict=True)
        ]

        def lay(histories: Histories, mass: int) -> WeightedRows:
            rows = [histories.rows[one.table][one.series] for one in every]
            counts = [one.counts(len(histories)) for one in rows]
            shared = np.sum([count > 0 for count in counts], axis=0)
            found = np.concatenate(
                [
                    start + of[one.values[:, number.value].astype(np.int64)]
                    for start, one, number, of in zip(starts, rows, every, cell_of, strict=False)
                ]
            )
            owners = np.concatenate([one.patients for one in rows])
            own = np.concatenate(
                [count[one.patients] for count, one in zip(counts, rows, strict=True)]
            )
            parts = np.repeat(np.arange(len(rows)), [len(one.patients) for one in rows])
            tests = np.maximum(shared[owners], min(FEW_TESTS, len(every)))
            return WeightedRows((found,), owners, weight_of(tests, own, mass), parts)

        (noisy,), sigma = released(VALUES, lay, [sizes])
        found = {}
        ordered = [
            noisy[start : start + own.count] for start, own in zip(starts, cells, strict=False)
        ]
        laws = normal_laws(cells, ordered, sigma)
        for number, own, start, size, (_, codes) in zip(
            every, cells, starts, sizes, laws, strict=False
        ):
            counts = noisy[start : start + size]
            loose = counts[own.count :]  # of no value, such as missing ones
            loose = np.where(loose > UNSEEN * sigma, loose, 0.0)
            total = max(float(np.sum(denoised(counts[: own.count], sigma))), sigma)
            shares = np.concatenate([codes * total, loose])
            found[number.table, number.series, number.value] = shares / shares.sum()
        return found

    def _feature(self, one: Number) -> Any:
        return self.domain.tables[one.table].series[one.series].values[one.value]

    def _tests(
        self, released: Released
    ) -> tuple[dict[int, Floats], dict[tuple[int, int, int], Floats]]:
        """Release shares, levels and spreads of tests.

        Returns:
            Shares of the codes of each column of tests, and shares of spreads of each number.
        """
        every = measured(self.table)
        if not every:
            return {}, {}
        edges = {place: lag_edges(table) for place, table in enumerate(self.domain.tables)}
        taken, level, spread = TAKEN + 1, LEVELS // PER_CELL, SPREADS * len(CLASSES) + 1
        few = min(FEW_TESTS, len(every))
        first = {
            self.table.facts[one[0]][one[1]].taken: place
            for place, one in reversed([*enumerate(every)])
        }

        def lay(histories: Histories, mass: int) -> WeightedRows:
            number = len(histories)
            codes = self.table.codes(histories)
            cells: list[list[Ints]] = [[], [], []]
            owners, parts = [], []
            for place, (t, s, v) in enumerate(every):
                facts = self.table.facts[t][s]
                has = histories.rows[t][s].counts(number) > 0
                own = np.full(number, 0)
                if v >= 0:
                    own = codes[:, facts.levels[v]].astype(np.int64)
                    has &= own < LEVELS
                who = np.flatnonzero(has)
                shares = np.zeros(len(who), dtype=np.int64)
                if facts.taken >= 0 and first[facts.taken] == place:
                    shares = codes[who, facts.taken].astype(np.int64)
                spreads = np.full(number, SPREADS * len(CLASSES))
                if v >= 0:
                    one = Deviations.of(
                        histories.rows[t][s], v, self.table.scores[t][s][v], edges[t]
                    )
                    spreads[one.patients] = spread_cells(one)
                cells[0].append(place * taken + shares)
                cells[1].append(place * level + np.minimum(own[who] // PER_CELL, level - 1))
                cells[2].append(place * spread + spreads[who])
                owners.append(who)
                parts.append(np.full(len(who), place))
            owner = np.concatenate(owners)
            shared = np.bincount(owner, minlength=number)
            tests = np.maximum(shared[owner], few)
            weights = weight_of(tests, np.ones(len(owner), dtype=np.int64), mass)
            return WeightedRows(
                tuple(map(np.concatenate, cells)), owner, weights, np.concatenate(parts)
            )

        sizes = [[width] * len(every) for width in (taken, level, spread)]
        (shares, levels, spreads), sigma = released(TESTS, lay, sizes)
        unit = MASS / np.sqrt(few) * self.domain.population
        columns: dict[int, Floats] = {}
        edges_of = np.linspace(-HIGHEST, HIGHEST, level + 1)
        numbers_in = [place for place, one in enumerate(every) if one[2] >= 0]
        pooled = np.sum([levels[one * level : (one + 1) * level] for one in numbers_in], axis=0)
        usual = 1.0
        if numbers_in:
            usual = spread_law(edges_of, pooled, sigma * np.sqrt(len(numbers_in)), 0.8)
        of_spreads = shares_of_spreads(
            spreads.reshape(len(every), spread)[:, :-1].reshape(len(every), len(CLASSES), SPREADS),
            sigma,
        )
        found = {}
        for place, (t, s, v) in enumerate(every):
            facts = self.table.facts[t][s]
            if facts.taken >= 0 and first[facts.taken] == place:
                own = shares[place * taken : (place + 1) * taken] / unit
                total = float(np.clip(own[1:].sum(), 1e-3, 0.999))
                own = total * project(own[1:], total)
                columns[facts.taken] = np.concatenate([[1 - own.sum()], own])
            if v < 0:
                continue
            counts = levels[place * level : (place + 1) * level]
            sd = spread_law(edges_of, counts, sigma, usual)
            law = np.diff(ndtr(np.linspace(-HIGHEST, HIGHEST, LEVELS + 1) / sd))
            total = float(np.clip(np.maximum(counts, 0).sum() / unit, 1e-4, 0.999))
            if facts.taken >= 0:
                total = 1 - float(columns[facts.taken][0])
            columns[facts.levels[v]] = np.concatenate([law / law.sum() * total, [1 - total]])
            found[t, s, v] = of_spreads[place]
        return columns, found

    def _courses(
        self,
        place: int,
        shares: Mapping[tuple[int, int, int], Floats],
        spreads: Mapping[tuple[int, int, int], Floats],
        released: Released,
    ) -> None:
        """Release memory of each number of a table, and how they go together."""
        table = self.domain.tables[place]
        own, edges = numbers_of(table), lag_edges(table)
        scores = [self.table.scores[place][s][v] for s, v in own]

        def memory(histories: Histories, mass: int) -> WeightedRows:
            return self._memory_rows(histories, place, mass)

        def panel(histories: Histories, mass: int) -> WeightedRows:
            asked = occasions([histories.rows[place][s] for s in range(len(table.series))])
            rows = [(histories.rows[place][s], v) for s, v in own]
            return panel_rows(deviations(rows, scores, asked), asked, len(histories), mass)

        widths = [[2] * (len(own) * (LAGS + 1))]
        (counts,), sigma = released(event_name(table, MEMORY), memory, widths)
        pairs = counts.reshape(len(own), LAGS + 1, 2)
        pooled = semivariogram(pairs.sum(axis=0), sigma * np.sqrt(len(own)))
        ends = np.append(edges[1:], table.longest + 1).astype(np.float64)
        lags = np.zeros(LAGS + 1)
        lags[: len(edges)] = np.sqrt(np.maximum(edges, 0.1) * np.maximum(ends - 1, edges + 0.1))
        lags[len(edges) :] = lags[len(edges) - 1]
        for number, (s, v) in enumerate(own):
            wanted = semivariogram(pairs[number], sigma, pooled)
            seen = np.maximum(pairs[number].sum(axis=1), 0.0) + sigma
            weights = seen / seen.max()
            self.memories[place, s, v] = Memory(wanted, wanted, weights, lags)
            parts, taus = self.memories[place, s, v].fitted()
            cells = table.series[s].values[v].cells
            self.courses[place, s, v] = Course(
                shares[place, s, v], cells, spreads[place, s, v], parts, taus
            )
        self.panels[place] = np.eye(len(own))
        if len(own) > 1:
            both = [[1] * (len(own) * (len(own) + 1))]
            (counts,), sigma = released(event_name(table, PANEL), panel, both)
            self.panels[place] = panel_root(counts, len(own), sigma)

    def _memory_rows(self, histories: Histories, place: int, mass: int) -> WeightedRows:
        table = self.domain.tables[place]
        found = [
            Deviations.of(
                histories.rows[place][s], v, self.table.scores[place][s][v], lag_edges(table)
            )
            for s, v in numbers_of(table)
        ]
        return memory_rows(found, len(histories), mass)

    def _settle_memories(self, drawn: Histories) -> None:
        """Move memories by how those of drawn histories differ from what was released."""
        for place, table in enumerate(self.domain.tables):
            own = [(place, *one) for one in numbers_of(table)]
            if not own:
                continue
            rows = self._memory_rows(drawn, place, MASS)
            cells = 2 * len(own) * (LAGS + 1)
            counts = np.bincount(rows.cells[0], rows.weights, minlength=cells).astype(np.float64)
            for at, pairs in zip(own, counts.reshape(len(own), LAGS + 1, 2), strict=True):
                self.memories[at] = self.memories[at].moved(pairs)
                parts, taus = self.memories[at].fitted()
                self.courses[at] = replace(self.courses[at], parts=parts, taus=taus)

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

    def _presence(self, released: Released) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Release which tests are taken together; returns the panels of tables of one clock.

        It is released whether or not the tests of a table share a clock: which events a fit runs is
        public.
        """
        shared = [clock.table for clock in self.table.clocks if clock.shared]
        for place, table in enumerate(self.domain.tables):
            tests = len(table.series)
            if tests == 1:
                continue

            def lay(histories: Histories, mass: int, place: int = place) -> WeightedRows:
                rows = histories.rows[place]
                return presence_rows(rows, occasions(rows), len(histories), mass)

            widths = [[1] * (tests * (tests + 1) // 2)]
            (counts,), sigma = released(event_name(table, TOGETHER), lay, widths)
            if place not in shared:
                continue
            unit = MASS / bound(tests)
            self.presence[place] = Presence.of(
                counts / unit, float(self.domain.population), tests, sigma / unit
            )
        return tuple((place, tuple(one.panels.tolist())) for place, one in self.presence.items())

    def _days(
        self, released: Released
    ) -> tuple[dict[int, tuple[tuple[Floats, Floats], float]], dict[int, tuple[Floats, float]]]:
        """Release days and gaps of clocks, and places of rows whose days follow from others."""
        clocks = timed_clocks(self.table)
        self.calendars = {
            place: Calendar.even(
                self.domain.first,
                self.domain.last,
                self.domain.tables[self.table.clocks[place].table].longest,
            )
            for place in clocks
        }
        days: dict[int, tuple[tuple[Floats, Floats], float]] = {}
        if clocks:

            def lay(histories: Histories, mass: int) -> WeightedRows:
                pairs = [
                    (self.calendars[place], self._occasions(histories, place)) for place in clocks
                ]
                return calendar_rows(pairs, len(histories), mass)

            sizes = [[self.calendars[place].sizes[kind] for place in clocks] for kind in (0, 1)]
            both, sigma = released(DAYS, lay, sizes)
            split = [
                np.split(one, np.cumsum(own)[:-1]) for one, own in zip(both, sizes, strict=True)
            ]
            days = {place: ((split[0][j], split[1][j]), sigma) for j, place in enumerate(clocks)}
        tables = self.domain.tables
        placed = placed_clocks(self.table)
        places: dict[int, tuple[Floats, float]] = {}
        if placed:
            widths = [cells_of(tables[self.table.clocks[place].table]) for place in placed]
            starts = np.cumsum([0, *widths])

            def lay_places(histories: Histories, mass: int) -> WeightedRows:
                cells, owners, own, parts = [], [], [], []
                for part, place in enumerate(placed):
                    rows = self._occasions(histories, place)
                    cells.append(starts[part] + self._places(histories, place, rows))
                    owners.append(rows.patients)
                    own.append(rows.counts(len(histories))[rows.patients])
                    parts.append(np.full(len(rows.patients), part))
                owner = np.concatenate(owners)
                shared = np.sum(
                    [np.bincount(one, minlength=len(histories)) > 0 for one in owners], axis=0
                )
                weights = weight_of(shared[owner], np.concatenate(own), mass)
                return WeightedRows((np.concatenate(cells),), owner, weights, np.concatenate(parts))

            (counts,), sigma = released(PLACES, lay_places, [widths])
            places = {
                place: (counts[starts[part] : starts[part + 1]], sigma)
                for part, place in enumerate(placed)
            }
        return days, places

    def _occasions(self, histories: Histories, clock: int) -> SeriesRows:
        one = self.table.clocks[clock]
        return occasions([histories.rows[one.table][j] for j in one.series])

    def _places(self, histories: Histories, clock: int, rows: SeriesRows) -> Ints:
        table = self.domain.tables[self.table.clocks[clock].table]
        if table.inside is None:
            return due_cells(table, rows.days)
        owners, starts, lengths = parent_spans(histories.rows, table)
        return inside_cells(rows, owners, starts, lengths, len(histories))

    def _fit_days(
        self,
        days: Mapping[int, tuple[tuple[Floats, Floats], float]],
        places: Mapping[int, tuple[Floats, float]],
        rng: np.random.Generator,
    ) -> None:
        """Fit the days of drawn patients to those that were released."""
        number = min(DRAWN, self.domain.population)
        if days:
            _, codes = self._patients(number, rng)
            ends, _ = self._ends(codes, rng)
            starts = {
                place: self._starts(codes, self.table.clocks[place], ends, rng) for place in days
            }
            shared = np.sum([one[0] >= 3 for one in starts.values()], axis=0)
            for place, (counts, sigma) in days.items():
                self.calendars[place] = self.calendars[place].fitted(
                    counts, sigma, starts[place], shared, MASS, rng
                )
        for place, (counted, sigma) in places.items():
            table = self.domain.tables[self.table.clocks[place].table]
            self.placings[place] = Placing.of(table, counted, sigma)
        if any(self.domain.tables[self.table.clocks[place].table].inside for place in places):
            even = {
                place: Placing(one.table, np.ones(len(one.weights)))
                for place, one in self.placings.items()
            }
            wanted, self.placings = self.placings, even
            drawn = self.sample(number, rng)
            for place, one in wanted.items():
                if one.table.inside is None:
                    self.placings[place] = one
                    continue
                rows = self._occasions(drawn, place)
                own = rows.counts(number)[rows.patients]
                cell = self._places(drawn, place, rows)
                drawn_so = np.bincount(cell, 1 / own, minlength=len(one.weights))
                self.placings[place] = one.weighed(drawn_so.astype(np.float64))

    def _patients(
        self, number: int, rng: np.random.Generator, *, even: bool = True
    ) -> tuple[Floats, Ints]:
        """Draw normal variables and codes of patients."""
        z = self.vector.draw(number, rng, even=even)
        return z, self.vector.codes_of(z, rng)

    def _ends(self, codes: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return the last day of each patient, and how her follow-up ended."""
        endings = self.table.endings
        if endings is None:
            return np.full(len(codes), self.domain.last), np.zeros(len(codes), dtype=np.int64)
        place = next(j for j, one in enumerate(self.table.columns) if one.kind == END)
        return endings.draw(codes[:, place], rng)

    def _starts(
        self, codes: Ints, clock: Clock, ends: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, Ints]:
        """Return the number of rows, the first and the last day of each drawn patient."""
        table = self.domain.tables[clock.table]
        series = table.series[clock.series[0]]
        if table.exactly is not None:
            counts = np.full(len(codes), table.exactly)
        else:
            counts = np.minimum(series.counts.draw(codes[:, clock.count], rng), series.max_rows)
        if clock.first < 0:
            return counts, np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        grid = self.domain.days
        first = filled(codes[:, clock.first], counts > 0, grid.cells, rng)
        days = np.where(counts > 0, grid.draw(first, ends, rng), 0)
        spans = filled(codes[:, clock.span], counts > 1, SPANS.cells, rng)
        spans = np.minimum(SPANS.draw(spans, ends - days, rng), (counts - 1) * table.longest)
        return counts, days, days + np.maximum(spans, 0)

    def sample(self, patients: int, rng: np.random.Generator, *, even: bool = True) -> Histories:
        """Draw so many patients with all their rows; reads nothing but what was learned."""
        z, codes = self._patients(patients, rng, even=even)
        ends, status = self._ends(codes, rng)
        baseline = self._baseline(codes, ends, status)
        onsets = self._onsets(codes, ends, status, rng)
        rows: list[list[SeriesRows]] = [[] for _ in self.domain.tables]
        for place, clock in enumerate(self.table.clocks):
            asked = self._asked(place, codes, ends, rows, rng)
            rows[clock.table] += self._rows(clock, asked, z, codes, rng)
        return Histories(
            baseline.astype(np.uint16), ends, onsets, tuple(tuple(one) for one in rows)
        )

    def _baseline(self, codes: Ints, ends: Ints, status: Ints) -> Ints:
        found = np.zeros((len(codes), len(self.domain.baseline)), dtype=np.int64)
        found[:, self.table.kept] = codes[:, : len(self.table.kept)]
        end = self.domain.end
        if end is not None:
            ordered = self.domain.baseline[end.column].cells
            place = np.searchsorted(end.days[:ordered], ends, side="right") - 1
            found[:, end.column] = np.maximum(place, 0)
            endings = self.table.endings
            if endings is not None and endings.missing is not None:
                at = next(j for j, one in enumerate(self.table.columns) if one.kind == END)
                found[endings.unstated(codes[:, at]), end.column] = endings.missing
            if end.status is not None:
                found[:, end.status] = status
        return found

    def _onsets(self, codes: Ints, ends: Ints, status: Ints, rng: np.random.Generator) -> Ints:
        """Return the day of each event, `NEVER` without one; those that imply others first."""
        found = np.full((len(codes), len(self.domain.events)), NEVER)
        times, start = self.table.times, len(self.table.kept) + (self.table.endings is not None)
        for j, event in enumerate(self.table.timed):
            cells = codes[:, start + j]
            who = np.flatnonzero(cells < times.cells)
            days = times.draw(cells[who], rng)
            days = np.maximum(days, self.domain.first)
            kept = days <= ends[who]
            found[who[kept], event] = days[kept]
        end = self.domain.end
        if end is not None and end.event is not None:
            # what implies the end of follow-up comes with it, or not at all
            for event in [end.event, *_causes_of(end.event, self.domain.implies)]:
                has = (status == 1) & ((event == end.event) | (found[:, event] != NEVER))
                found[:, event] = np.where(has, ends, NEVER)
        for cause, implied, same in _causes_first(self.domain.implies):
            has = found[:, cause] != NEVER
            by_it = has & (
                same | (found[:, implied] == NEVER) | (found[:, implied] > found[:, cause])
            )
            found[by_it, implied] = found[by_it, cause]
        # of several events that imply one on the same day, the first one's day is that of all
        for cause, implied, same in [*self.domain.implies] * len(self.domain.events):
            has = np.flatnonzero(found[:, cause] != NEVER)
            first = np.minimum(found[has, cause], found[has, implied])
            found[has, implied] = first
            if same:
                found[has, cause] = first
        return found

    def _asked(
        self,
        place: int,
        codes: Ints,
        ends: Ints,
        rows: Sequence[Sequence[SeriesRows]],
        rng: np.random.Generator,
    ) -> SeriesRows:
        """Draw the times of a clock."""
        clock = self.table.clocks[place]
        table, patients = self.domain.tables[clock.table], len(codes)
        if table.inside is not None:
            spans = parent_spans(rows, table)
            days = parent_days(rows, table, patients)
            if table.exactly is not None:
                counts = np.full(patients, table.exactly)
            else:
                cells = filled(codes[:, clock.count], days > 0, len(DENSITY), rng)
                edges = np.append(DENSITY, 2 * DENSITY[-1])
                low, high = edges[cells], edges[cells + 1]
                density = low + rng.random(patients) * (high - low)
                density = np.where(low == 1.0, 1.0, density)
                counts = np.floor(density * days + rng.random(patients)).astype(np.int64)
                counts = np.where(cells > 0, np.maximum(counts, 1), 0)
                counts = np.minimum(counts, _most(table, clock))
            counts = np.where(days > 0, counts, 0)
            return self.placings[place].draw_inside(counts, spans, ends, rng, apart=clock.shared)
        if table.due:
            due = rows_due(table, ends)
            if table.exactly is not None:
                counts = np.minimum(due, table.exactly)
            else:
                cells = codes[:, clock.count]
                share = share_drawn(cells, rng)
                counts = np.where(cells > 0, np.maximum(np.ceil(share * due), 1), 0)
                counts = np.where(cells == TAKEN, due, counts).astype(np.int64)
                counts = np.minimum(counts, due)
            return self.placings[place].draw_due(counts, ends, rng, self.domain.first)
        counts, first, last = self._starts(codes, clock, ends, rng)
        if clock.first >= 0:
            return self.calendars[place].draw(counts, first, last, rng)
        owner = np.repeat(np.arange(patients), counts)
        none = np.empty((len(owner), 0), dtype=np.uint16)
        return SeriesRows(owner, np.zeros(len(owner), np.int64), none)

    def _rows(
        self, clock: Clock, asked: SeriesRows, z: Floats, codes: Ints, rng: np.random.Generator
    ) -> list[SeriesRows]:
        """Draw the rows of the series of a clock, values included."""
        table = self.domain.tables[clock.table]
        number = len(asked.patients)
        taken = np.ones((number, len(clock.series)), dtype=bool)
        if clock.shared and table.exactly is None:
            columns = [self.table.facts[clock.table][j].taken for j in clock.series]
            taken = self.presence[clock.table].draw(asked, codes[:, columns], rng)
        own = [place for place, one in enumerate(numbers_of(table)) if one[0] in clock.series]
        every = numbers_of(table)
        of_clock = [self.courses[clock.table, *every[place]] for place in own]
        moves = np.zeros((number, len(own)))
        if own:
            root = self.panels[clock.table]
            own_root = np.asarray(np.linalg.cholesky((root @ root.T)[np.ix_(own, own)]))
            moves = paths(asked, of_clock, own_root, rng)
        drawn = []
        for at, j in enumerate(clock.series):
            series = table.series[j]
            here = np.flatnonzero(taken[:, at])
            rows = SeriesRows(asked.patients[here], asked.days[here], asked.values[here])
            cap = _capped(rows, series.max_rows, table.longest)
            here = here[cap]
            rows = SeriesRows(rows.patients[cap], rows.days[cap], rows.values[cap])
            values = np.zeros((len(rows.patients), len(series.values)), dtype=np.uint16)
            if len(rows.patients):
                of_series = {
                    every[place][1]: moves[here, k]
                    for k, place in enumerate(own)
                    if every[place][0] == j
                }
                self._values_of(values, rows, (clock.table, j), of_series, z, codes, rng)
            drawn.append(SeriesRows(rows.patients, rows.days, values))
        return drawn

    def _values_of(
        self,
        values: npt.NDArray[np.uint16],
        rows: SeriesRows,
        at: tuple[int, int],
        moves: Mapping[int, Floats],
        z: Floats,
        codes: Ints,
        rng: np.random.Generator,
    ) -> None:
        table = self.domain.tables[at[0]]
        series, facts = table.series[at[1]], self.table.facts[at[0]][at[1]]
        coded = coded_values(series)
        if coded:
            tends = self._tends(at, z)
            if at in self.uncut:
                self._calibrate(at, rows, tends, len(codes), rng)
            values[:, coded] = self.codes[at].draw(rows, tends, rng)
        for v, path in moves.items():
            level = codes[:, facts.levels[v]]
            has = np.zeros(len(codes), dtype=bool)
            has[rows.patients] = True
            levels = level_drawn(filled(level, has, LEVELS, rng), rng)
            if at in self.unscaled:
                self.courses[*at, v] = self.courses[*at, v].scaled(rows, levels, rng)
            values[:, v] = self.courses[*at, v].draw(rows, levels, path, rng)
        self.unscaled.discard(at)
        for v, ranks in table.cumulative:
            values[:, v] = _rising(rows.patients, values[:, v], np.asarray(ranks))

    def _tends(self, at: tuple[int, int], z: Floats) -> list[Floats | None]:
        """Return how much patients tend to the codes of each coded value of a series."""
        series, facts = self.domain.tables[at[0]].series[at[1]], self.table.facts[at[0]][at[1]]
        return [
            self.vector.tends(z, facts.ever[v], series.values[v].size)
            if facts.ever[v] >= 0
            else None
            for v in coded_values(series)
        ]

    def _calibrate(
        self,
        at: tuple[int, int],
        rows: SeriesRows,
        tends: Sequence[Floats | None],
        patients: int,
        rng: np.random.Generator,
    ) -> None:
        """Find the cuts of a series' codes on drawn patients: once, in a fit."""
        series, facts = self.domain.tables[at[0]].series[at[1]], self.table.facts[at[0]][at[1]]
        shares = [
            np.array(
                [
                    self.vector.shares[facts.ever[v] + code][1]
                    for code in range(series.values[v].size)
                ]
            )
            if facts.ever[v] >= 0
            else None
            for v in coded_values(series)
        ]
        self.codes[at] = self.codes[at].calibrated(rows, tends, shares, patients, rng)
        self.uncut.discard(at)

    def config(self) -> dict[str, Any]:
        """Describe the fitted generator in plain JSON values."""
        return {
            "shared": [*self.table.shared],
            "panels": [[place, [*own]] for place, own in self.table.panels],
            "courses": [
                [*at, one.parts.tolist(), one.taus.tolist(), one.scale]
                for at, one in self.courses.items()
            ],
            "codes": [[*at, one.noise] for at, one in self.codes.items()],
        }

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the learned arrays by name."""
        found = self.vector.arrays()
        for (place, s, v), course in self.courses.items():
            found[f"values.{place}.{s}.{v}"] = course.shares
            found[f"spreads.{place}.{s}.{v}"] = course.spreads
        for place, root in self.panels.items():
            found[f"panel.{place}"] = root
        for (place, s), own in self.codes.items():
            name = f"codes.{place}.{s}"
            found[f"{name}.released"], found[f"{name}.follows"] = own.released, own.follows
            found |= {f"{name}.given.{j}": table for j, table in enumerate(own.others, start=1)}
            found |= {f"{name}.cuts.{j}": cut for j, cut in enumerate(own.cuts)}
        for place, one in self.presence.items():
            found[f"together.{place}.root"], found[f"together.{place}.often"] = one.root, one.often
        for place, calendar in self.calendars.items():
            name = f"days.{place}"
            found |= {f"{name}.days": calendar.days, f"{name}.apart": calendar.apart}
            found[f"{name}.often"] = calendar.often
        for place, placing in self.placings.items():
            found[f"places.{place}"] = placing.weights
        return found | ({} if self.rounding is None else self.rounding.arrays())

    @classmethod
    def restore(
        cls,
        domain: HistoryDomain,
        config: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Rebuild a fitted generator from its ``config`` and ``arrays``."""
        found = cls(domain)
        panels = tuple((place, tuple(own)) for place, own in config["panels"])
        found.table = PatientTable(domain, shared=tuple(config["shared"]), panels=panels)
        found.vector = PatientVector.restore(found.table, arrays)
        for place, s, v, parts, taus, scale in config["courses"]:
            cells = domain.tables[place].series[s].values[v].cells
            name = f"{place}.{s}.{v}"
            found.courses[place, s, v] = Course(
                arrays[f"values.{name}"],
                cells,
                arrays[f"spreads.{name}"],
                np.asarray(parts),
                np.asarray(taus),
                scale,
            )
        for place, s, noise in config["codes"]:
            series, name = domain.tables[place].series[s], f"codes.{place}.{s}"
            columns = range(len(coded_values(series)))
            found.codes[place, s] = RowCodes(
                series,
                arrays[f"{name}.released"],
                noise,
                tuple(arrays[f"{name}.given.{j}"] for j in columns[1:]),
                tuple(arrays[f"{name}.cuts.{j}"] for j in columns),
                arrays[f"{name}.follows"],
            )
        for place in range(len(domain.tables)):
            if f"panel.{place}" in arrays:
                found.panels[place] = arrays[f"panel.{place}"]
            if f"together.{place}.root" in arrays:
                root, often = arrays[f"together.{place}.root"], arrays[f"together.{place}.often"]
                found.presence[place] = Presence(root, often, np.asarray(dict(panels)[place]))
        for place, clock in enumerate(found.table.clocks):
            name, table = f"days.{place}", domain.tables[clock.table]
            if f"{name}.days" in arrays:
                even = Calendar.even(domain.first, domain.last, table.longest)
                days, apart, often = (arrays[f"{name}.{key}"] for key in ("days", "apart", "often"))
                found.calendars[place] = replace(even, days=days, apart=apart, often=often)
            if f"places.{place}" in arrays:
                found.placings[place] = Placing(table, arrays[f"places.{place}"])
        series_of = [len(table.series) for table in domain.tables]
        found.rounding = Roundings.restore(arrays, series_of)
        return found


def _most(table: HistoryTable, clock: Clock) -> int:
    """Return how many occasions a patient may have."""
    return max(table.series[j].max_rows for j in clock.series)


def _causes_first(implies: Sequence[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Return what implies what, such that no event is moved after it has moved others."""
    left, found = [*implies], []
    while left:
        implied = {one[1] for one in left}
        free = [one for one in left if one[0] not in implied] or left
        found += free
        left = [one for one in left if one not in free]
    return found


def _causes_of(event: int, implies: Sequence[tuple[int, int, bool]]) -> list[int]:
    """Return the events that imply one, directly or by others."""
    found = [event]
    for one in found:
        found += [cause for cause, implied, _ in implies if implied == one and cause not in found]
    return found[1:]


def _rising(patients: Ints, codes: npt.NDArray[np.uint16], ranks: Ints) -> npt.NDArray[np.uint16]:
    """Return the highest code so far of each patient; codes without a rank stay."""
    code_of = np.argsort(ranks, kind="stable")
    own = ranks[codes]
    step = len(ranks) + 1
    highest = np.maximum.accumulate(patients.astype(np.int64) * step + own + 1) % step - 1
    found = code_of[np.maximum(highest, 0) + int((ranks < 0).sum())]
    return np.where(own < 0, codes, found).astype(np.uint16)


def _ordered(shares: Floats, cells: int) -> Floats:
    """Return the shares of ordered codes among them."""
    own = np.maximum(shares[:cells], 0.0)
    return np.asarray(own / own.sum()) if own.sum() > 0 else np.full(cells, 1 / cells)


def _capped(rows: SeriesRows, most: int, longest: int) -> Ints:
    """Return the places of each patient's first rows, so many at most, up to too long a gap."""
    if not len(rows.patients):
        return np.empty(0, dtype=np.int64)
    starts = np.searchsorted(rows.patients, rows.patients, side="left")
    far = np.diff(rows.days, prepend=rows.days[0]) > longest
    gone = np.cumsum(far & (np.arange(len(far)) > starts))
    return np.flatnonzero((np.arange(len(far)) - starts < most) & (gone == gone[starts]))
