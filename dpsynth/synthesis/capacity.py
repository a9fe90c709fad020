"""What a population and a budget can carry: a closed form of public facts, before any fit.

A column is carried if its expected distance from the source, alone and in pairs with others, is
within what an evaluation allows (`eval/gates.yaml`: tvd1 and tvd2, beyond the distance by chance).
No row is drawn and nothing is simulated: the plan says the noise of a count, and `Assumption` how
often each value is assumed to occur ("typical", as in a forecast). Then, with shares p, noise sd
(over the number of patients) and g bins of each column that noise leaves:

- a bin is known from its one-way count and from the sums of the column's pairs, by precision:
  1 / sd^2 = 1 / s1^2 + sum over partners of 1 / (s2^2 g), as `marginals.pairs` averages them;
- a column is off by half the sum over its bins of min(`MISSED` * E|noise|, p), and by `DRAWN` of
  what as many drawn rows differ by chance;
- a pair is off by its columns, by chance, and by the smaller of the noise in its cells and of the
  relation itself: what shrinking an estimate leaves, x^2 y^2 / (x^2 + y^2).

The few numbers were fitted to simulated fits of random schemas, none of them a real table
(`bench/capacity.py --simulate`); docs/benchmarks.md, Capacity, has the figures.

Linked tables: tests of a patient share the weight of one patient, so each of them counts as a part
of the patients, and its mean is off by `SPREAD` times the noise of a count over that part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpsynth._util.formatting import counted, percent
from dpsynth._util.short_repr import short_repr
from dpsynth.certificate import noise_sd
from dpsynth.models import Assumption, Domain, Feature, Preset, shares_of, spec_of
from dpsynth.models.assumed_shares import LOADINGS, TYPICAL
from dpsynth.models.histories import HistoryDomain
from dpsynth.models.histories.latent import EVERS as OF_CODES
from dpsynth.models.histories.latent import FEW_CODES
from dpsynth.models.histories.latent import ONE_WAY as OF_FACTS
from dpsynth.models.histories.latent import TESTS as OF_TESTS
from dpsynth.models.histories.settings import person_event
from dpsynth.models.histories.steps.events import event_name
from dpsynth.models.presets import AGAIN, ONE_WAY, PAIRS
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    PrivacyPlan,
    Unit,
    gaussian_mu,
    units_of,
)
from dpsynth.privacy.pair_statistics import PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN, PRODUCTS
from dpsynth.synthesis.preparation import Preparation, Prepared, PreparedCohort

Floats = npt.NDArray[np.float64]

COLUMN_GATE, PAIR_GATE = 0.03, 0.06  # beyond chance: tvd1 and tvd2 of eval/gates.yaml
MARGIN = 1.25  # times what is expected, that is still allowed: one fit differs from another
VALUE_GATE = 0.3  # standard deviations that a value of a test may be off: `values` there

MISSED = 1.2  # of a bin's expected noise: noise also decides bins, and the model fits all at once
FINER, FINEST = (
    1 / 6,
    300,
)  # power of the cells of a decile, and cells: codes in a bin add their own
DRAWN = 0.3  # of the distance by chance: rows are drawn evenly, so it is less than 1
PRODUCTS_TELL = 2.0  # times the pairs' tables, what products also say of a column
BOTH_COLUMNS = 1.2  # of the squared distances of both columns, that a pair has
DRAWN_PAIRS = 0.4  # of the squared distance by chance, that a pair has
SMOOTHED = {
    False: 0.65,
    True: 0.35,
}  # of a pair's noise, that the model leaves; with products first

KEPT = 2.0  # standard deviations of its noise, that a relation has to be
GROUP = 3.0  # the same of a group: codes below are pooled (marginals.histograms.merge)
STRONG = 0.5  # correlation: a column of which only such relations are kept has lost its relations
DECILES = 10  # bins of an ordered column in an evaluation
POOL = 0.004  # share below which a code is pooled; as in `marginals.histograms.merge`

SPREAD = 4.0  # noise of a mean over that of a count: a sum over 16 bins, of values in their sd
FEW_PATIENTS = 1_000  # below it, a plan says what helps
MANY_CODES = 40  # events and codes, of which fewer are advised
FEW_COLUMNS = 10  # that are tried
POOLED = 4  # times as many patients
TABLES = 10  # of counts, that statistics could answer
HELD_OUT = 0.2  # by default, in a run
MEAN_NOISE = math.sqrt(2 / math.pi)  # of a normal number, absolute, over its standard deviation


@dataclass(frozen=True)
class ColumnCapacity:
    """What is expected of a column.

    Attributes:
        name: of the column.
        error: its expected distance from the source, 0 to 1.
        chance: the distance of as many rows drawn from the source itself.
        pairs: its expected distance together with another column, mean over others.
        pairs_chance: by chance.
        weakest: correlation with a typical other column, below which the relation is lost.
    """

    name: str
    error: float
    chance: float
    pairs: float
    pairs_chance: float
    weakest: float

    @property
    def carried(self) -> bool:
        """Whether the column and its pairs are within what an evaluation allows, by a margin."""
        return (
            MARGIN * self.error - self.chance <= COLUMN_GATE
            and MARGIN * self.pairs - self.pairs_chance <= PAIR_GATE
        )


@dataclass(frozen=True)
class RowsCapacity:
    """What is expected of the values of a table's rows.

    Attributes:
        table: its name.
        tests: how many tests share a patient's weight there; 1 in a wide table.
        weight: patients that one of them counts as, if all are taken alike.
        noise: standard deviation of the noise of a count, in patients.
    """

    table: str
    tests: int
    weight: float
    noise: float

    @property
    def error(self) -> float:
        """How far the mean of one of them is expected to be off, in standard deviations."""
        return SPREAD * self.noise / self.weight

    @property
    def carried(self) -> bool:
        """Whether that is within what an evaluation allows."""
        return self.error <= VALUE_GATE


@dataclass(frozen=True)
class CodesCapacity:
    """What is expected of events, and of codes of rows: diagnoses, drugs.

    Attributes:
        number: how many there are in all tables.
        noise: standard deviation of the noise of how many patients have one, in patients.
        group: patients who have one, below which it is mostly noise.
    """

    number: int
    noise: float
    group: int


@dataclass(frozen=True)
class Remedy:
    """Something that helps, with its figures.

    Attributes:
        what: a name for programs.
        words: one sentence.
    """

    what: str
    words: str


@dataclass(frozen=True, repr=False)
class Capacity:
    """What a fit can carry.

    Attributes:
        noun: whom it counts, such as patients.
        population: how many there are.
        epsilon: of the fit.
        columns: what is expected of each; of linked tables, those of the table of patients.
        count_noise: standard deviation of the noise in a count of one column.
        pair_noise: that in a count of two columns together; None where none is counted.
        group: patients below which a group is noise.
        tests: of linked tables, what is expected of their rows.
        codes: of linked tables, what is expected of events and codes of rows; None without any.
        remedies: what helps.
    """

    noun: str
    population: int
    epsilon: float
    columns: tuple[ColumnCapacity, ...]
    count_noise: float
    pair_noise: float | None
    group: int
    tests: tuple[RowsCapacity, ...] = ()
    codes: CodesCapacity | None = None
    remedies: tuple[Remedy, ...] = ()

    def __repr__(self) -> str:
        """Say how much is carried."""
        return short_repr(self, f"{self.carried} of {counted(len(self.columns), 'column')} carried")

    @property
    def carried(self) -> int:
        """How many columns are carried."""
        return sum(column.carried for column in self.columns)

    @property
    def error(self) -> float:
        """Mean expected distance of a column."""
        return float(np.mean([column.error for column in self.columns] or [0.0]))

    @property
    def pairs(self) -> float:
        """Mean expected distance of a pair of columns."""
        return float(np.mean([column.pairs for column in self.columns] or [0.0]))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON types."""
        return {
            "units": self.noun,
            "population": self.population,
            "carried": self.carried,
            "expected_error": {"columns": self.error, "pairs": self.pairs},
            "count_noise": self.count_noise,
            "pair_noise": self.pair_noise,
            "smallest_group": self.group,
            "columns": [{**asdict(one), "carried": one.carried} for one in self.columns],
            "tests": [
                {**asdict(one), "error": one.error, "carried": one.carried} for one in self.tests
            ],
            "codes": None if self.codes is None else asdict(self.codes),
            "helps": [asdict(one) for one in self.remedies],
        }

    @property
    def sentence(self) -> str:
        """Say before a charge that the table asks for too much; empty where it does not."""
        lost = [one.table for one in self.tests if not one.carried]
        if 2 * self.carried >= len(self.columns) and not lost:
            return ""
        values = f"; values in {', '.join(lost)} are mostly noise" if lost else ""
        return (
            f"{self.population:,} {self.noun} and epsilon {self.epsilon:g} carry about "
            f"{self.carried} of {counted(len(self.columns), 'column')} well{values}. Before you "
            "spend the budget, run `dpsynth plan` with the same options: it says what will be "
            "lost, and what helps."
        )


@dataclass(frozen=True)
class _Noise:
    """The noise of a plan, in patients.

    Attributes:
        one_way: of a count of one column.
        pairs: of a count of two columns; infinite where none is counted.
        products: whether products of scores come first, or all there is.
        partners: how many other columns a column is counted with.
        correlation: where products are all there is, the noise of a correlation; else None.
    """

    one_way: float
    pairs: float
    products: bool
    partners: int
    correlation: float | None = None

    @property
    def left(self) -> float:
        """What the model leaves of the noise of a pair's count."""
        return SMOOTHED[self.products] * self.pairs


def capacity(prepared: Preparation[Any, Any], *, remedies: bool = True) -> Capacity:
    """Say what a fit can carry, from public facts alone.

    Args:
        prepared: the fit.
        remedies: whether to say what helps, where patients are few or much is lost.
    """
    if isinstance(prepared, Prepared):
        found = _of_table(prepared, prepared.domain, prepared.plan)
    else:
        assert isinstance(prepared, PreparedCohort)
        found = _of_tables(prepared)
    if not remedies or (found.population >= FEW_PATIENTS and not found.sentence):
        return found
    if isinstance(prepared, Prepared):
        return replace(found, remedies=tuple(_remedies(prepared, found)))
    return replace(found, remedies=tuple(_linked_remedies(found)))


def _of_table(prepared: Prepared, domain: Domain, plan: PrivacyPlan) -> Capacity:
    """Say what one table carries, of a domain that may have other columns or patients."""
    whole = domain.with_visits()
    bins = Preset.of(prepared.model, whole, plan.budget).bins if _has_preset(prepared.model) else 8
    noise = _noise_of(plan, ONE_WAY, PAIRS, AGAIN, len(whole.features) - 1)
    return _capacity(units_of(Unit.of(prepared.schema)), domain, plan, noise, bins)


def _has_preset(model: str) -> bool:
    return spec_of(model).measures_pairs and spec_of(model).outside is None


def _noise_of(plan: PrivacyPlan, one_way: str, pairs: str, again: str, partners: int) -> _Noise:
    tables = [_sd(plan, name) for name in (pairs, again) if plan.has(name)]
    together = math.fsum(sd**-2 for sd in tables) ** -0.5 if tables else math.inf
    return _Noise(_sd(plan, one_way), together, plan.has(PRODUCTS), partners)


def _sd(plan: PrivacyPlan, name: str) -> float:
    event = plan.event(name)
    assert isinstance(event, JointHistograms | ChosenHistograms)
    return noise_sd(event)


def _capacity(noun: str, domain: Domain, plan: PrivacyPlan, noise: _Noise, most: int) -> Capacity:
    """Return what is expected of the columns of a domain.

    Args:
        noun: whom the fit counts.
        domain: the columns.
        plan: of the fit.
        noise: of its counts.
        most: bins that a smooth numeric column is cut into, about.
    """
    units = float(domain.population)
    nullable = tuple(feature.nullable for feature in domain.features)
    shares = Assumption.of(TYPICAL, domain, nullable).shares
    looks = [
        _Look.of(feature, own, units, noise.one_way, most)
        for feature, own in zip(domain.features, shares, strict=True)
    ]
    bins = np.array([one.bins for one in looks], dtype=np.float64)
    sums = noise.partners / (noise.pairs**2 * np.mean(bins if len(bins) else 1.0))
    sums *= PRODUCTS_TELL if noise.products else 1.0
    sd = float((noise.one_way**-2 + sums) ** -0.5 / units)
    chance = np.array([one.chance(units) for one in looks])
    errors = np.hypot([one.missed(sd, noise.one_way / units) for one in looks], DRAWN * chance)
    pairs, by_chance = _pair_errors(looks, errors, noise, units)
    weakest = np.where(np.minimum.outer(bins, bins) > 1, noise.left / units, np.inf)
    weakest *= KEPT * np.sqrt(np.outer(bins, bins))
    if noise.correlation is not None:
        weakest = np.full_like(weakest, KEPT * noise.correlation)
    columns = tuple(
        ColumnCapacity(
            *(domain.features[j].name, float(errors[j]), float(chance[j])),
            *(_mean_of_others(pairs, j), _mean_of_others(by_chance, j)),
            min(1.0, _median_of_others(weakest, j)),
        )
        for j in range(len(looks))
    )
    noisy = noise.one_way if math.isinf(noise.pairs) else max(noise.one_way, noise.left)
    pair_noise = None if math.isinf(noise.pairs) else noise.pairs
    return Capacity(
        *(noun, domain.population, plan.budget.epsilon, columns),
        *(noise.one_way, pair_noise, _rounded(GROUP * noisy)),
    )


@dataclass(frozen=True)
class _Look:
    """A column as an evaluation and a generator see it.

    Attributes:
        shares: assumed, of the bins of an evaluation.
        pooled: which of them lie within a generator's bin, so that only one-way counts tell them.
        bins: that noise leaves a generator.
        finer: by how much noise weighs more, as an evaluation cuts the column at its deciles.
    """

    shares: Floats
    pooled: npt.NDArray[np.bool_]
    bins: int
    finer: float

    @classmethod
    def of(cls, feature: Feature, shares: Floats, units: float, sd: float, most: int) -> _Look:
        """Look at the assumed shares of a column's codes."""
        cells, counts = feature.cells, shares * units
        least = max(units / most, 4 * sd)
        ordered = _merged(counts[:cells], least)
        rare = counts[cells:] < max(GROUP * sd, POOL * units)
        kept, thin = shares[:cells], counts[:cells] < least
        if cells > DECILES:
            before = np.cumsum(kept) - kept
            places = (DECILES * before / max(kept.sum(), 1e-12)).astype(np.int64)
            sums = np.bincount(np.clip(places, 0, DECILES - 1), weights=kept)
            kept = np.asarray(sums[sums > 0], dtype=np.float64)
            thin = np.zeros(len(kept), dtype=np.bool_)
        bins = ordered + int((~rare).sum()) + int(rare.any())
        together = np.append(kept, shares[cells:]), np.append(thin, rare)
        finer = max(1.0, min(cells, FINEST) / DECILES) ** FINER
        return cls(*together, max(bins, 1), finer)

    @cached_property
    def roots(self) -> float:
        """Sum of the square roots of the shares: what chance in a pair grows with."""
        return float(np.sqrt(self.shares).sum())

    @cached_property
    def slope(self) -> float:
        """How far the bins' mean normal scores lie apart: what a correlation moves between them."""
        ends = np.clip(np.cumsum(self.shares), 1e-9, 1 - 1e-9)[:-1]
        density = np.exp(-(np.asarray(ndtri(ends)) ** 2) / 2) / math.sqrt(2 * math.pi)
        return float(np.abs(np.diff(density, prepend=0.0, append=0.0)).sum())

    def chance(self, units: float) -> float:
        """Return the distance of as many patients drawn from the source: half of mean deviations.

        Rows of a patient are alike, so patients count, not rows.
        """
        variances = self.shares * (1 - self.shares) / units
        return float(MEAN_NOISE * np.sqrt(variances).sum() / 2)

    def missed(self, sd: float, alone: float) -> float:
        """Return the distance that noise leaves; a bin cannot lose more than it has.

        Args:
            sd: noise of a bin's share, from all counts.
            alone: the same from one-way counts.
        """
        free = math.sqrt(1 - 1 / max(len(self.shares), 2))  # shares sum to 1
        noise = MISSED * self.finer * MEAN_NOISE * free * np.where(self.pooled, alone, sd)
        return float(np.minimum(noise, self.shares).sum() / 2)


def _merged(counts: Floats, least: float) -> int:
    """Return how many bins ordered cells are merged into, each of so many patients at least."""
    bins, held = 0, 0.0
    for count in counts.tolist():
        held += count
        if held >= least:
            bins, held = bins + 1, 0.0
    return bins + int(held > 0 and bins == 0)


def _pair_errors(
    looks: Sequence[_Look], errors: Floats, noise: _Noise, units: float
) -> tuple[Floats, Floats]:
    """Return the expected distance of each pair, and what it is by chance, ``[columns, columns]``.

    The relation of two columns is that of the typical assumption: normal scores with a correlation
    of the product of their loadings.
    """
    roots = np.array([one.roots for one in looks])
    slopes = np.array([one.slope for one in looks])
    bins = np.array([one.bins for one in looks], dtype=np.float64)
    loadings = np.resize(LOADINGS, len(looks))
    by_chance = MEAN_NOISE / math.sqrt(units) * np.outer(roots, roots) / 2
    related = np.outer(loadings * slopes, loadings * slopes) / 2
    if noise.correlation is None:
        free = np.sqrt(bins * np.maximum(bins - 1, 0.5))  # the columns are known already
        noisy = MEAN_NOISE * noise.left / units * np.outer(free, free) / 2
    else:
        noisy = noise.correlation * np.outer(slopes, slopes) / 2
    relation = related**2 + by_chance**2
    if np.isinf(noisy).any():
        lost = relation
    else:
        lost = noisy**2 * relation / np.maximum(noisy**2 + relation, 1e-18)
    squared = BOTH_COLUMNS * np.add.outer(errors**2, errors**2) + DRAWN_PAIRS * by_chance**2
    return np.sqrt(squared + lost), by_chance


def _mean_of_others(pairs: Floats, place: int) -> float:
    others = np.delete(pairs[place], place)
    return float(others.mean()) if len(others) else 0.0


def _median_of_others(pairs: Floats, place: int) -> float:
    others = np.delete(pairs[place], place)
    return float(np.median(others)) if len(others) else 0.0


def _rounded(number: float) -> int:
    """Round up to two significant digits."""
    step = 10.0 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(math.ceil(number / step) * step)


def _remedies(prepared: Prepared, found: Capacity) -> list[Remedy]:
    """Say what helps, with figures from the same closed form."""
    noun, budget, remedies = found.noun, prepared.plan.budget, []

    def other(domain: Domain) -> Capacity:
        plan = PrivacyPlan.calibrate(budget, shares_of(prepared.model, domain, budget))
        return _of_table(prepared, domain, plan)

    domain, whole = prepared.domain, len(found.columns)
    if whole > FEW_COLUMNS:
        order = np.argsort([column.pairs for column in found.columns], kind="stable")
        chosen = tuple(domain.features[j] for j in sorted(order[:FEW_COLUMNS].tolist()))
        fewer = other(Domain(chosen, domain.population, domain.max_rows))
        remedies.append(
            Remedy(
                "columns",
                f"Fewer columns. Of the {FEW_COLUMNS} columns that are easiest, {fewer.carried} "
                f"would be carried well{_noise_words(fewer, found)}.",
            )
        )
    pooled = other(replace(domain, population=POOLED * domain.population))
    remedies.append(
        Remedy(
            "pooling",
            f"More {noun}, such as those of other sites or years. With {pooled.population:,}, "
            f"{pooled.carried} of {counted(whole, 'column')} would be carried well.",
        )
    )
    counts = math.sqrt(TABLES) / gaussian_mu(budget.epsilon, budget.delta)
    remedies.append(
        Remedy(
            "stats",
            f"Statistics in place of rows. `dpsynth stats` answers {TABLES} tables of counts with "
            f"this budget, each count to within about {_figure(2 * counts)} {noun}.",
        )
    )
    held = other(replace(domain, population=max(1, round((1 - HELD_OUT) * domain.population))))
    remedies.append(
        Remedy(
            "holdout",
            f"No holdout. `dpsynth run` sets a fifth of the {noun} aside: then the expected error "
            f"of {_error_words(held)} in place of {_error_words(found, short=True)}. "
            f"--holdout 0 keeps all {noun} in the fit, but then the evaluation has no other "
            f"{noun} to compare with.",
        )
    )
    return remedies


def _error_words(found: Capacity, *, short: bool = False) -> str:
    several = len(found.columns) > 1
    error = percent(found.pairs if several else found.error)
    return error if short else f"{'two columns' if several else 'a column'} is {error}"


def _figure(number: float) -> str:
    """Write a number with two significant digits."""
    return f"{float(f'{number:.2g}'):,g}"


def _noise_words(fewer: Capacity, found: Capacity) -> str:
    if fewer.pair_noise is None or found.pair_noise is None:
        return ""
    return (
        f", and a count of two columns would have noise of {_figure(fewer.pair_noise)} "
        f"{found.noun} in place of {_figure(found.pair_noise)}"
    )


def _of_tables(prepared: PreparedCohort) -> Capacity:
    """Say what linked tables carry: columns of patients, and values of rows."""
    domain, plan = prepared.domain, prepared.plan
    patients = Domain(domain.baseline, domain.population, 1)
    noise = _noise_of_patients(plan, domain)
    noun = units_of(Unit.of(prepared.schema))
    found = _capacity(noun, patients, plan, noise, 8)
    return replace(found, tests=tuple(_tests(domain, plan)), codes=_codes(plan))


def _codes(plan: PrivacyPlan) -> CodesCapacity | None:
    """Return what is expected of events and of codes of rows, of a plan that counts them."""
    if not plan.has(OF_CODES):
        return None
    event = plan.event(OF_CODES)
    assert isinstance(event, JointHistograms)
    number = event.rows_per_unit
    noise = noise_sd(event) * math.sqrt(min(FEW_CODES, number))
    return CodesCapacity(number, noise, _rounded(GROUP * noise))


def _noise_of_patients(plan: PrivacyPlan, domain: HistoryDomain) -> _Noise:
    """Return the noise of what is counted of patients, one row each."""
    if not plan.has(OF_FACTS):
        one_way, pairs, again = (person_event(kind) for kind in (ONE_WAY, PAIRS, AGAIN))
        event = plan.event(pairs)
        assert isinstance(event, ChosenHistograms)
        partners = round(math.sqrt(2 * event.most))  # of so many columns, in so many pairs
        return _noise_of(plan, one_way, pairs, again, partners)
    precision = 0.0
    for name in (PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN):
        event = plan.event(name)
        assert isinstance(event, ChosenHistograms)
        precision += (domain.population / event.noise_multiplier) ** 2 / event.most
    return _Noise(_sd(plan, OF_FACTS), math.inf, True, 0, min(1.0, precision**-0.5))


def _tests(domain: HistoryDomain, plan: PrivacyPlan) -> list[RowsCapacity]:
    """Return what is expected of the numbers of each table's rows."""
    found, patients = [], domain.population
    for table in domain.tables:
        if not any(value.cells for series in table.series for value in series.values):
            continue
        steps = event_name(table, ONE_WAY)
        if plan.has(steps):
            tests = len(table.series)
            noise, weight = _sd(plan, steps), patients / tests
        elif plan.has(OF_TESTS):
            event = plan.event(OF_TESTS)
            assert isinstance(event, JointHistograms)
            tests = event.rows_per_unit
            noise, weight = noise_sd(event), patients / math.sqrt(tests)
        else:
            continue
        found.append(RowsCapacity(table.name, tests, weight, noise))
    return found


def _linked_remedies(found: Capacity) -> list[Remedy]:
    """Say what helps linked tables."""
    remedies = []
    if found.codes is not None and found.codes.number > MANY_CODES:
        remedies.append(
            Remedy(
                "codes",
                f"Fewer events and codes. {found.codes.number:,} share one budget: list those that "
                "an analysis needs, or roll codes up to chapters.",
            )
        )
    if lost := [one for one in found.tests if not one.carried]:
        worst = max(lost, key=lambda one: one.error)
        needed = _rounded(found.population * worst.error / VALUE_GATE)
        remedies.append(
            Remedy(
                "pooling",
                f"More {found.noun}. From about {needed:,} on, the mean of a test in {worst.table} "
                f"would be within {VALUE_GATE:g} standard deviations.",
            )
        )
        if worst.tests > FEW_COLUMNS:
            remedies.append(
                Remedy(
                    "columns",
                    f"Fewer tests. Declare only those that you need: {worst.tests} tests share the "
                    "weight of one patient.",
                )
            )
    remedies.append(
        Remedy(
            "stats",
            "Statistics in place of rows. `dpsynth stats` spends the budget only on the counts "
            "that you name.",
        )
    )
    return remedies
