"""The distribution of the table of patients: one normal variable a fact, one correlation a pair.

Five releases say what it is; a patient has one row:

- **one-way**: her code in each column but those below, each 1 of c columns: an L2 norm of sqrt(c).
- **codes**: of the k codes that she ever has, and events that she has, each weighs
  floor(M / sqrt(max(k, F))) in one histogram in which each code is a part: a norm of at most M; F
  is `FEW_CODES`, or the number of codes, if fewer. What those with more codes lose by it, drawn
  patients show, and it is given back.
- **tests** (in `latent`): share, level and spread of each test, likewise.
- **products**: of the scores of all pairs of columns (`dpsynth.privacy.pair_statistics`), shrunk to
  a norm that `WIDER` times the root mean square of what released shares make it.
- **products again**: of the pairs that stood `CLEAR` errors out: few, so with less noise.

From a mean product follows a correlation (`normal_scores`), from all of them a matrix
(`correlations`). Rows that were shrunk make products too small: drawn patients that are shrunk
alike show by how much, and it is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpsynth.encoding import Histories
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.histories.latent.correlations import Loadings, correlation_matrix
from dpsynth.models.histories.latent.laws import denoised, time_law
from dpsynth.models.histories.latent.normal_scores import both_above, correlations
from dpsynth.models.histories.latent.patients import (
    DAY,
    END,
    EVER,
    LEVEL,
    PARTS,
    SHARE,
    SPAN,
    TIME,
    PatientTable,
)
from dpsynth.models.histories.latent.variables import (
    MOST_CODES,
    TINY,
    Variables,
    positive,
    variables_of,
)
from dpsynth.models.histories.persons.table import one_row_each
from dpsynth.models.histories.steps.table import MASS
from dpsynth.models.marginals import leaves_of, levelled, sizes_of
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyPlan,
    WeightedRows,
    contrast_products,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.pair_statistics import PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN, pairs_asked

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ONE_WAY, EVERS = "patients: one-way", "patients: codes"
PRODUCTS, AGAIN = PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN
FEW_CODES = 12  # codes of a patient up to which each counts whole
WIDER = 1.25  # times the usual norm of a patient's products, that none is above
PARTS_OF_PRODUCTS = 2**19

STEP = 0.6  # of what drawn patients show, that correlations move by at a look
SHORT = 0.5  # length of the scores of first days and spans
UNSEEN = 3.0  # errors up to which nobody has a code that is not declared
SMOOTH = 2.0  # errors by which times of events and ends depart from even ones
CLEAR = 2.0  # errors that a product has to stand out to be asked for again
LOOKS = 2  # at drawn patients, which show what shrinking takes
DRAWN = 10_000
FAR = 8.0  # standard deviations, at which nobody has a fact
RARE = 2.0  # noise of a code's count, below which it has no variable


def is_sparse(kind: str) -> bool:
    """Whether a column is counted with the codes or tests that a patient has."""
    return kind in (EVER, LEVEL)


def dense_columns(table: PatientTable) -> list[int]:
    """Return the columns of the one-way histograms."""
    taken = {one.taken for of_table in table.facts for one in of_table}
    return [
        place
        for place, column in enumerate(table.columns)
        if not is_sparse(column.kind) and place not in taken
    ]


def dense_domain(table: PatientTable) -> Domain:
    """Return those columns as a flat table."""
    features = tuple(table.columns[place].feature for place in dense_columns(table))
    return Domain(features, table.domain.population, 1)


def code_columns(table: PatientTable) -> list[tuple[int, int]]:
    """Return what a patient may ever have: column, and for the end of follow-up the status."""
    found = []
    for place, column in enumerate(table.columns):
        if column.kind in (TIME, EVER):
            found.append((place, 1))
        elif column.kind == END and table.endings is not None:
            found += [(place, status) for status in range(1, table.endings.statuses)]
    return found


def vector_events(table: PatientTable) -> dict[str, JointHistograms | ChosenHistograms]:
    """Return the events of the vector, before their noise is set: public facts."""
    columns = len(sizes_of(dense_domain(table)))
    events: dict[str, JointHistograms | ChosenHistograms] = {
        ONE_WAY: JointHistograms(ONE_WAY, columns, 1, UNDECIDED)
    }
    if codes := len(code_columns(table)):
        events[EVERS] = JointHistograms(EVERS, 1, codes, UNDECIDED, MASS)
    widths = [_variables(table, column.feature, column.kind) for column in table.columns]
    products = max(1, sum(widths) ** 2 // 2)
    for name in (PRODUCTS, AGAIN):
        events[name] = ChosenHistograms(name, products, 1, UNDECIDED, PARTS_OF_PRODUCTS)
    return events


def _variables(table: PatientTable, feature: Feature, kind: str) -> int:
    """Return how many variables a column may have, at most."""
    if kind == TIME:
        return 1
    if kind == END:
        return 1 if table.endings is None else table.endings.statuses
    if feature.cells <= 1:
        return min(feature.size, MOST_CODES)
    return feature.size - feature.cells + 1


def code_rows_of(has: Bools, mass: int) -> WeightedRows:
    """Lay out what patients ever have: a part for each code.

    Args:
        has: ``[patients, codes]``.
        mass: of a patient.
    """
    patients, codes = np.nonzero(has)
    few = min(FEW_CODES, has.shape[1])
    weight = np.floor(mass / np.sqrt(np.maximum(has.sum(axis=1), few))).astype(np.int64)
    return WeightedRows((codes,), patients, weight[patients], codes)


@dataclass(eq=False)
class PatientVector:
    """The distribution of the table of patients.

    Attributes:
        table: what its columns say.
        shares: of the codes of each column.
        root: of the correlation matrix of all variables, ``[variables, variables]``.
        parts: the columns as variables.
        products: mean products, their errors, and by how much drawn patients have more than their
            variables say; in a fit.
        begun: loadings of the correlations found last; in a fit.
        days: noisy counts of days and ends, by column, and their noise; in a fit.
        counted: noisy shares of patients who ever have something, and their noise; in a fit.
        lost: how much more often days and ends have to be asked for than they are drawn, by what
            `code_columns` names; in a fit.
    """

    table: PatientTable
    shares: list[Floats] = field(default_factory=list)
    root: Floats = field(default_factory=lambda: np.empty((0, 0)))
    parts: list[Variables] = field(default_factory=list)
    products: tuple[Floats, Floats, Floats] = (np.empty(0),) * 3
    begun: Loadings | None = None
    days: dict[int, tuple[Floats, float]] = field(default_factory=dict)
    counted: tuple[Floats, float] = field(default_factory=lambda: (np.empty(0), 0.0))
    lost: dict[tuple[int, int], float] = field(default_factory=dict)

    def learn(self) -> None:
        """Make variables of the shares."""
        endings = self.table.endings
        ways = 1 if endings is None else endings.statuses
        self.parts = [
            variables_of(column, own, self.table.times.cells, ways)
            for column, own in zip(self.table.columns, self.shares, strict=True)
        ]

    def has_of(self, given: int) -> float:
        """Return the share of patients who have what a column gives, by its shares."""
        if given < 0:
            return 1.0
        column, shares = self.table.columns[given], self.shares[given]
        return float(np.clip(shares[1 : column.feature.cells].sum(), 1e-3, 1.0))

    @property
    def ends(self) -> Ints:
        """Where the variables of each column begin, and the end."""
        return np.cumsum([0, *(part.scores.shape[1] for part in self.parts)])

    def fit(
        self,
        histories: Histories,
        tests: Mapping[int, Floats],
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        released: Callable[..., tuple[list[Floats], float]],
    ) -> None:
        """Run the events of the vector.

        Args:
            histories: of the patients.
            tests: shares of the codes of the columns of tests, as released.
            plan: has the events.
            entropy: of the noise.
            released: runs an event of weighted rows.
        """
        number = float(self.table.domain.population)
        codes = self.table.codes(histories)

        def coded(some: Histories) -> Codes:
            return codes if some is histories else self.table.codes(some)

        self.shares = [np.empty(0)] * len(self.table.columns)
        one_way = plan.event(ONE_WAY)
        assert isinstance(one_way, JointHistograms)
        self.days = self._one_way(coded, one_way.histograms, released)
        for place, own in tests.items():
            given = self.table.columns[place].given
            if self.table.columns[place].kind == SHARE:
                # what is released are shares of all patients; the rest of those who have
                # occasions are never tested
                has = self.has_of(given)
                some = own[1:] * min(1.0, 0.999 * has / max(float(own[1:].sum()), TINY))
                own = np.concatenate([[has - some.sum()], some, [1 - has]])
            self.shares[place] = own
        if evers := len(code_columns(self.table)):
            (totals,), sigma = released(
                EVERS, lambda some, mass: code_rows_of(self.has(coded(some)), mass), [[1] * evers]
            )
            unit = MASS / np.sqrt(min(FEW_CODES, evers)) * number
            self.counted = totals / unit, sigma / unit
        rng = entropy.generator()
        self.set_codes()
        self.learn()
        products, errors = self._products(codes, PRODUCTS, None, plan, entropy, number)
        self.root = self._matrix(products, errors)
        for _ in range(LOOKS):
            drawn = self.sample_codes(DRAWN, rng)
            first = products + self._shrunk(drawn, None)
            self.root = self._matrix(first, errors)
        asked = np.abs(first) > CLEAR * errors
        if not asked.any():
            asked = np.isfinite(errors)
        if asked.any():
            again, errors2 = self._products(codes, AGAIN, asked, plan, entropy, number)
            drawn = self.sample_codes(DRAWN, rng)
            again = np.where(asked, again + self._shrunk(drawn, asked), 0.0)
            w1, w2 = 1 / errors**2, np.where(asked, 1 / errors2**2, 0.0)
            known = w1 + w2 > 0
            first = np.divide(w1 * first + w2 * again, w1 + w2, where=known, out=0.0 * first)
            errors = np.where(known, 1 / np.sqrt(np.maximum(w1 + w2, TINY)), np.inf)
            self.root = self._matrix(first, errors)
        self.products = first, errors, np.zeros_like(first)

    def settle(self, codes: Codes) -> None:
        """Move shares and correlations by what drawn patients show.

        Args:
            codes: of drawn patients, as those of real ones would be coded.
        """
        first, errors, apart = self.products
        expected = self.implied()
        own = np.concatenate(
            [part.scores[codes[:, j].astype(np.int64)] for j, part in enumerate(self.parts)], axis=1
        )
        seen = own.T @ own / len(codes)
        # an average over looks, as drawn patients are few
        apart = np.where(np.isfinite(errors), apart + STEP * (seen - expected - apart), 0.0)
        self.products = first, errors, apart
        self.set_codes(codes)
        self.learn()
        self.root = self._matrix(first - apart, errors)

    def implied(self) -> Floats:
        """Return the mean products that the variables' correlations say."""
        rho = self.root @ self.root.T
        column = np.repeat(np.arange(len(self.parts)), np.diff(self.ends))
        hermites = np.concatenate([part.hermites for part in self.parts])
        share = self._both(rho)[column][:, column]
        found = np.zeros_like(rho)
        for power, own in enumerate(hermites.T, start=1):
            found += np.outer(own, own) * rho**power
        return found * share

    def _one_way(
        self,
        coded: Callable[[Histories], Codes],
        histograms: int,
        released: Callable[..., tuple[list[Floats], float]],
    ) -> dict[int, tuple[Floats, float]]:
        """Release one-way histograms; return the counts of days and ends, and their noise."""
        dense, domain = dense_columns(self.table), dense_domain(self.table)
        sizes = sizes_of(domain)
        # a plan pays for the columns that there may be; those that are not are one cell each
        none = histograms - len(sizes)

        def lay(some: Histories, mass: int) -> WeightedRows:
            own = one_row_each(coded(some)[:, dense])
            rows = levelled(own, domain).codes[:, 0].astype(np.int64)
            cells = (*rows.T, *(np.zeros(len(rows), dtype=np.int64),) * none)
            return WeightedRows(cells, np.arange(len(rows)), np.full(len(rows), mass))

        counted, sigma = released(ONE_WAY, lay, [*sizes, *(1,) * none])
        noisy = [own.astype(np.int64) for own in counted]
        total = float(self.table.domain.population)
        leaves = leaves_of(domain, noisy, total=total, sigma=sigma)
        raw = iter(noisy)
        counts = {}
        for place, feature, own in zip(dense, domain.features, leaves, strict=True):
            finest = [next(raw) for _ in feature.levels][-1].astype(np.float64)
            kind = self.table.columns[place].kind
            if kind in (TIME, END):
                counts[place] = (finest, sigma)
                if kind == END:
                    self.shares[place] = self._by_status(finest, sigma, {})
            else:
                shares = own.code_shares(total)
                for code in feature.unlisted:
                    if shares[code] * total < UNSEEN * sigma:
                        shares[code] = 0.0
                self.shares[place] = shares / shares.sum()
        return counts

    def _block(self, kind: str) -> int:
        endings = self.table.endings
        return self.table.times.cells if kind == TIME or endings is None else endings.cells

    def has(self, codes: Codes) -> Bools:
        """Return who has each of the days, codes and statuses, ``[patients, codes]``."""
        columns = []
        for place, status in code_columns(self.table):
            own, kind = codes[:, place].astype(np.int64), self.table.columns[place].kind
            if kind == TIME:
                columns.append(own < self.table.times.cells)
            elif kind == EVER:
                columns.append(own == 1)
            else:
                columns.append(own // self._block(kind) == status)
        return np.column_stack(columns)

    def set_codes(self, codes: Codes | None = None) -> None:
        """Set the shares of what patients ever have, and of the days of those who have it.

        Args:
            codes: of drawn patients, who show what those with many codes lose; None where none
                were drawn yet.
        """
        totals, noise = self.counted
        if not len(totals):
            return
        few = min(FEW_CODES, len(totals))
        # k codes that weigh sqrt(F / k) each are sqrt(F k) together: a first guess of the weight
        kept = np.full(len(totals), min(1.0, few / max(float(totals.sum()), few)))
        had: Sequence[float | None] = [None] * len(totals)
        if codes is not None:
            has = self.has(codes)
            weight = np.sqrt(few / np.maximum(has.sum(axis=1), few))
            often, had = has.sum(axis=0), has.mean(axis=0).tolist()
            kept = np.where(
                often > 0, (has * weight[:, None]).sum(axis=0) / np.maximum(often, 1), 1
            )
        cells, lead, statuses = self.table.times.cells, self.table.times.before + 1, {}
        every = zip(code_columns(self.table), totals / kept, had, strict=True)
        for (place, status), total, drawn in every:
            share = float(np.clip(total, 0.1 * noise, 0.999))
            kind = self.table.columns[place].kind
            if self.table.columns[place].undeclared and total < UNSEEN * noise:
                share = TINY
            if kind == EVER:
                has_rows = self.has_of(self.table.columns[place].given)
                share = min(share, 0.999 * has_rows)
                self.shares[place] = np.array([has_rows - share, share, 1 - has_rows])
                continue
            raw, sigma = self.days[place]
            if kind == END:
                statuses[status] = min(share * self._lost((place, status), share, drawn), 0.999)
                self.shares[place] = self._by_status(raw, sigma, statuses)
                continue
            share = min(share * self._lost((place, status), share, drawn), 0.999)
            days = self._times(raw[:cells], sigma, lead)
            never = self._times(raw[cells:], sigma, lead)
            self.shares[place] = np.concatenate([share * days, (1 - share) * never])

    def _lost(self, code: tuple[int, int], wanted: float, had: float | None) -> float:
        """Return how much more often a day or an end is asked for than it is to be drawn.

        Of days some are drawn after the end of follow-up, and of several ends the first one counts.
        """
        if had is not None:
            step = (wanted / max(had, 0.1 * wanted)) ** STEP
            self.lost[code] = float(np.clip(self.lost.get(code, 1.0) * step, 0.5, 2.0))
        return self.lost.get(code, 1.0)

    def _by_status(self, raw: Floats, sigma: float, statuses: Mapping[int, float]) -> Floats:
        """Return shares of ends of follow-up whose statuses are known to be so frequent."""
        block = self._block(END)
        table = np.stack(
            [
                self._times(own, sigma, 0) * max(float(own.sum()), sigma)
                for own in raw.reshape(-1, block)
            ]
        )
        whole = np.maximum(raw.reshape(-1, block).sum(axis=1), sigma)
        shares = whole / whole.sum()
        for status, share in statuses.items():
            shares[status] = share
        rest = [status for status in range(len(shares)) if status not in statuses]
        left = max(1 - sum(statuses.values()), TINY)
        shares[rest] *= left / max(float(shares[rest].sum()), TINY)
        return np.asarray((table / table.sum(axis=1, keepdims=True) * shares[:, None]).ravel())

    def _times(self, counts: Floats, sigma: float, lead: int) -> Floats:
        """Return shares of the cells of a time.

        Args:
            counts: noisy, of cells up to the origin, of the window, and of one behind it, if any.
            sigma: their noise.
            lead: how many cells there are up to the origin, its own included.
        """
        end = lead + PARTS if len(counts) > lead else lead
        past = denoised(counts[: max(lead - 1, 0)], sigma, SMOOTH)
        alone = np.concatenate([counts[max(lead - 1, 0) : lead], counts[end:]])
        alone = alone * np.maximum(0.0, 1 - (SMOOTH * sigma / np.maximum(alone, TINY)) ** 2)
        here = time_law(counts[lead:end], sigma)
        parts = [past, alone[: min(lead, 1)], here, alone[min(lead, 1) :]]
        return positive(np.maximum(np.concatenate(parts), 0.0))

    @property
    def lengths(self) -> Floats:
        """What scores are multiplied by, of each variable: days of rows matter less than others."""
        own = [SHORT if one.kind in (DAY, SPAN) else 1.0 for one in self.table.columns]
        return np.repeat(own, np.diff(self.ends))

    def contrasts(self, asked: Bools | None) -> tuple[list[Ints], float]:
        """Return whole scores of each column, and what 1 is in them.

        A patient's products have a norm of C = `WIDER` sqrt(sum of the products of mean squares),
        so `PARTS_OF_PRODUCTS` is C times the square of the unit.
        """
        parts = np.split(self.lengths, self.ends[1:-1])
        scores = [part.scores * own for part, own in zip(self.parts, parts, strict=True)]
        squares = np.concatenate(
            [positive(own) @ part**2 for own, part in zip(self.shares, scores, strict=True)]
        )
        pairs = pairs_asked(np.diff(self.ends), asked)
        usual = np.sqrt(max(float(squares @ pairs @ squares) / 2, TINY))
        unit = np.sqrt(PARTS_OF_PRODUCTS / (WIDER * usual))
        widest = sum(float((np.abs(part).max(axis=0) ** 2).sum()) for part in scores)
        unit = min(unit, np.sqrt(2**30 / max(widest, TINY)))
        return [np.rint(one * unit).astype(np.int64) for one in scores], float(unit)

    def _products(
        self,
        codes: Codes,
        name: str,
        asked: Bools | None,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        number: float,
    ) -> tuple[Floats, Floats]:
        """Release mean products; returns them, and their errors."""
        event = plan.event(name)
        assert isinstance(event, ChosenHistograms)
        whole, unit = self.contrasts(asked)
        noisy = contrast_products(one_row_each(codes), whole, event, entropy, asked)
        if isinstance(plan, ObservedPlan):
            canaries, others = (
                one_row_each(self.table.codes(side)) for side in plan.observer.histories
            )
            plan.observer.multiplied(noisy, whole, event, (canaries, others), asked)
        found = np.zeros((self.ends[-1],) * 2)
        wanted = pairs_asked(np.diff(self.ends), asked)
        first, second = np.nonzero(np.triu(wanted))
        scale = unit**2 * number * np.outer(self.lengths, self.lengths)
        found[first, second] = noisy
        found = (found + found.T) / scale
        errors = np.where(wanted, event.sigma_for(1.0) / scale, np.inf)
        return found, errors

    def _shrunk(self, drawn: Codes, asked: Bools | None) -> Floats:
        """Return what shrinking takes from the mean products of drawn patients."""
        whole, unit = self.contrasts(asked)
        scores = np.concatenate(
            [one[drawn[:, j].astype(np.int64)] for j, one in enumerate(whole)], axis=1
        ).astype(np.float64)
        pairs = pairs_asked(np.diff(self.ends), asked)
        squares = scores**2
        norms = np.sqrt((squares * (squares @ pairs)).sum(axis=1) / 2)
        keep = np.minimum(1.0, PARTS_OF_PRODUCTS / np.maximum(norms, TINY))
        scale = unit**2 * len(drawn) * np.outer(self.lengths, self.lengths)
        rest = (scores * (1 - keep)[:, None]).T @ scores / scale
        return np.where(pairs, rest, 0.0)

    def _matrix(self, products: Floats, errors: Floats) -> Floats:
        """Return a root of the correlation matrix that mean products say."""
        variables = len(products)
        hermites = np.concatenate([part.hermites for part in self.parts])
        column = np.repeat(np.arange(len(self.parts)), np.diff(self.ends))
        rho, se = np.zeros((variables,) * 2), np.full((variables,) * 2, np.inf)
        # first as if who has one thing said nothing of who has another; then by what was found of
        # the columns that say who has what
        for late in (False, True):
            share = self._both(rho if late else np.zeros_like(rho))[column][:, column]
            for a in range(variables):
                rho[a], slopes = correlations(products[a] / share[a], hermites[a], hermites)
                plain = np.maximum(np.abs(hermites[a, 0] * hermites[:, 0]), 1e-3)
                steep = share[a] * np.maximum(np.abs(slopes), 0.5 * plain)
                se[a] = errors[a] / np.maximum(steep, TINY)
            rho = (rho + rho.T) / 2
            se = np.maximum(se, se.T)
        # of codes of one column, who has one has less room for another: rows see to that
        block = np.array([one.block for one in self.table.columns])[column]
        rivals = (block[:, None] == block) & (block[:, None] >= 0) & (rho < 0)
        se[rivals] = np.inf
        np.fill_diagonal(se, np.inf)
        rho[~np.isfinite(se)] = 0.0
        matrix, self.begun = correlation_matrix(rho, se, self.begun)
        return np.asarray(np.linalg.cholesky(matrix))

    def _chain(self, column: int) -> list[int]:
        """Return a column, that which says who has it, that of this one, and so on."""
        found = [column]
        while self.table.columns[found[-1]].given >= 0:
            found.append(self.table.columns[found[-1]].given)
        return found

    def _both(self, rho: Floats) -> Floats:
        """Return the share of patients who have both of two columns, ``[columns, columns]``.

        Who has a column is said by another one, and who has that one again, up to a root, such as
        the number of a patient's stays.

        Args:
            rho: correlations of all variables, as far as they are known.
        """
        number = len(self.parts)
        chains = [self._chain(column) for column in range(number)]
        has = np.array([part.has for part in self.parts])
        ends = self.ends
        # the columns that say who has something, and how likely two of them say so
        askers = sorted({chain[1] for chain in chains if len(chain) > 1})
        cuts = np.array([self.parts[one].ordered[1] for one in askers])  # type: ignore[attr-defined]
        at = {one: place for place, one in enumerate(askers)}
        places = ends[askers] if askers else np.empty(0, dtype=np.int64)
        above = np.array(
            [
                both_above(float(cut), cuts, rho[a, places])
                for cut, a in zip(cuts, places, strict=True)
            ]
        ).reshape(len(askers), len(askers))
        alone = ndtr(-cuts)
        lifts = (above / np.maximum(np.outer(alone, alone), TINY)).tolist()
        owned = has.tolist()
        gives = {one: self.has_of(one) for chain in chains for one in chain[1:]}
        found = np.empty((number, number))
        for a, one in enumerate(chains):
            for b in range(a, number):
                other = chains[b]
                if b in one or a in other:
                    both = min(owned[a], owned[b])
                elif len(one) == 1 or len(other) == 1:
                    both = owned[a] * owned[b]
                elif one[1] == other[1]:
                    both = owned[a] * owned[b] / gives[one[1]]
                else:
                    lift = lifts[at[one[1]]][at[other[1]]]
                    whole = 1.0
                    if one[-1] == other[-1]:
                        whole = 1 / gives[one[-1]]
                        if one[1] == one[-1] or other[1] == other[-1]:
                            lift = 1.0
                    both = owned[a] * owned[b] * lift * whole
                found[a, b] = found[b, a] = max(min(both, owned[a], owned[b]), 1e-4)
        return found

    def sample_codes(self, number: int, rng: np.random.Generator) -> Codes:
        """Draw rows of patients; days are observed codes up to the drawn ends."""
        return self._observed(self.codes_of(self.draw(number, rng), rng), rng)

    def draw(self, number: int, rng: np.random.Generator, *, even: bool = True) -> Floats:
        """Draw normal variables of patients, ``[patients, variables]``.

        Args:
            number: of patients.
            rng: of the draws.
            even: whether each variable has quantiles of the normal distribution, in place of
                independent draws: shares are then met as well as so many patients can.
        """
        z = np.asarray(rng.standard_normal((number, len(self.root))) @ self.root.T)
        if even and len(z) > 1:
            order = np.argsort(z, axis=0)
            ranks = np.empty_like(z)
            points = ndtri((np.arange(len(z)) + 0.5) / len(z))
            np.put_along_axis(ranks, order, np.broadcast_to(points[:, None], z.shape), axis=0)
            z = ranks
        return z

    def tends(self, z: Floats, first: int, size: int) -> Floats:
        """Return how much patients tend to each of some codes: above 0 they have it."""
        places = self.ends[first : first + size]
        cuts = np.array(
            [self.parts[first + j].ordered[1] for j in range(size)]  # type: ignore[attr-defined]
        )
        return np.asarray(z[:, places] - cuts)

    def codes_of(self, z: Floats, rng: np.random.Generator) -> Ints:
        """Return the codes of normal variables."""
        ends = self.ends
        columns = [
            part.draw(z[:, start:end], rng)
            for part, start, end in zip(self.parts, ends, ends[1:], strict=False)
        ]
        codes = np.column_stack(columns)
        for place, column in enumerate(self.table.columns):
            if column.given >= 0:
                asked = codes[:, column.given]
                none = (asked == 0) | (asked >= self.table.columns[column.given].feature.cells)
                codes[none, place] = column.feature.size - 1
        return codes

    def kept_apart(self, z: Floats, codes: Ints, rng: np.random.Generator) -> Ints:
        """Give facts that some patients never have to others, who have them most nearly.

        A man who was drawn with a code of pregnancy and the woman without it who is nearest to
        having it exchange the normal variable of the code. So each fact stays as frequent as it was
        learned, and nobody is drawn again for it.

        Args:
            z: normal variables, which are changed, ``[patients, variables]``.
            codes: what they stand for.
            rng: of the draws.

        Returns:
            The codes that z stands for then.
        """
        found = codes.copy()
        for one in self.table.domain.excluded:
            place = self._place_of(one.event, one.table, one.value, one.code)
            if one.column not in self.table.kept or place is None:
                continue
            if self.ends[place + 1] == self.ends[place]:
                continue  # so rare that it has no variable
            never = np.isin(codes[:, self.table.kept.index(one.column)], one.codes)
            part, start = self.parts[place], self.ends[place]
            timed = self.table.columns[place].kind == TIME
            own = found[:, place]
            has = own < self.table.times.cells if timed else own == 1
            could = ~has if timed else own == 0
            sign = -1.0 if timed else 1.0  # a low value is an early day
            taken, free = np.flatnonzero(never & has), np.flatnonzero(~never & could)
            nearest = free[np.argsort(-sign * z[free, start], kind="stable")[: len(taken)]]
            z[nearest, start] = z[taken[: len(nearest)], start]
            z[never, start] = -sign * FAR
            moved = np.concatenate([nearest, np.flatnonzero(never & (has | could))])
            own[moved] = part.draw(z[moved, start : start + 1], rng)
        return found

    def _place_of(self, event: int, table: int, value: int, code: int) -> int | None:
        """Return the column that says of patients whether they have an event, or a code of rows."""
        if event >= 0:
            if event not in self.table.timed:
                return None
            first = next(j for j, one in enumerate(self.table.columns) if one.kind == TIME)
            return first + self.table.timed.index(event)
        ever = self.table.facts[table][0].ever[value]
        return ever + code if ever >= 0 else None

    def _observed(self, codes: Ints, rng: np.random.Generator) -> Codes:
        """Return drawn rows as they would be observed: days are censored at the drawn end."""
        found, times = codes.copy(), self.table.times
        ends = np.full(len(codes), times.last)
        for place, column in enumerate(self.table.columns):
            if column.kind == END and self.table.endings is not None:
                ends, _ = self.table.endings.draw(codes[:, place], rng)
        until = np.where(ends >= times.last, times.cells, times.cell(ends))
        for place, column in enumerate(self.table.columns):
            if column.kind == TIME:
                late = codes[:, place] > until
                never = late | (codes[:, place] >= times.cells)
                found[:, place] = np.where(never, times.cells + until, codes[:, place])
        return found.astype(np.uint16)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give what was learned by name."""
        sizes = np.array([len(one) for one in self.shares])
        return {
            "vector.shares": np.concatenate(self.shares),
            "vector.sizes": sizes,
            "vector.root": self.root,
        }

    @classmethod
    def restore(cls, table: PatientTable, arrays: Mapping[str, npt.NDArray[Any]]) -> PatientVector:
        """Read what `arrays` gave."""
        ends = np.cumsum(arrays["vector.sizes"])[:-1]
        shares = list(np.split(arrays["vector.shares"], ends))
        found = cls(table, shares, np.asarray(arrays["vector.root"]))
        found.learn()
        return found
