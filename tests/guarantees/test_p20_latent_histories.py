"""P20 for `latent`: what one patient adds to each event, and that it follows from her rows alone.

A fit on patients of as many and as odd rows as there may be is watched, with releases that are
always the same. Of each event's rows, what a patient adds to each histogram has an L2 norm of at
most the event's mass, and her rows are the same in a cohort of her alone. Products are bounded in
the same way, whichever of them are asked for, and the scores that they are of follow from releases.

Broken twins: tests that do not share a patient's mass; a norm of the patients who are there; rows
told by another patient's stay; products that are cut after they were added up; scores of a day
from the patients' own days; sums whose rounding follows from others; a norm of half of the pairs
that are asked for.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import NEVER, Cohort, Histories, SeriesRows
from dpsynth.errors import InputError
from dpsynth.models.histories import (
    FollowUp,
    HistoryDomain,
    HistoryTable,
    Series,
)
from dpsynth.models.histories.domain import Inside
from dpsynth.models.histories.latent import generator as latent
from dpsynth.models.histories.latent import presence, vector
from dpsynth.models.histories.latent.generator import LatentHistories
from dpsynth.models.histories.latent.vector import PatientVector
from dpsynth.privacy import (
    ChosenHistograms,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    WeightedRows,
    contrast_products,
    pair_statistics,
    products_of_units,
    weighted_histograms,
)

from ..support.bare_counts import Silence
from ..support.made_histories import feature, with_patient

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FIRST, LAST, WEEKS = -100, 1000, 41
LABS, MANY, MOST = 3, 18, 9
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


def domain_of() -> HistoryDomain:
    """Tables of every kind: few tests and many, stays and what lies in them, visits, orders."""
    hb = Series("hb", (feature("value", 30, 1),), MOST)
    labs = (
        hb,
        Series("crp", (feature("value", 90),), MOST),
        Series("abo", (feature("v", 0, 4),), 4),
    )
    many = tuple(Series(f"test {j}", (feature("value", 12),), MOST) for j in range(MANY))
    heart = tuple(Series(name, (feature("value", 25),), MOST) for name in ("pulse", "pressure"))
    stays = (feature("los", 12), feature("ward", 0, 3), feature("drug", 0, 40))
    visits = (feature("stage", 0, 3), feature("children", 10, 1))
    return HistoryDomain(
        (feature("age", 80), feature("male", 0, 2), feature("weeks", WEEKS)),
        ("chd", "mi", "death"),
        (
            HistoryTable("labs", labs, True, 900, (True,)),
            HistoryTable("many", many, True, 900, (True,)),
            HistoryTable("stays", (Series("stays", stays, MOST),), True, 900, (False,) * 3),
            HistoryTable(
                *("drugs", (Series("drugs", (feature("drug", 0, 6),), MOST),), True, 900, (False,)),
                inside=Inside(2, 0, tuple(range(12))),
            ),
            HistoryTable(
                *("visits", (Series("visits", visits, 4),), True, 900, (False,) * 2),
                due=(-50, 0, 100, 400),
                within=20,
            ),
            HistoryTable("heart", heart, True, 900, (True,)),
            HistoryTable(
                "orders", (Series("orders", (feature("c", 0, 70),), 8),), False, 1, (False,)
            ),
        ),
        FIRST,
        LAST,
        6,
        FollowUp(2, 25 * np.arange(WEEKS), event=2),
        ((1, 0, False),),
    )


DOMAIN = domain_of()


def patient(seed: int) -> Histories:
    """One patient of full, few or no rows: on one day, or anywhere; all alike, or not."""
    rng = np.random.default_rng(seed)
    weeks = int(rng.integers(0, WEEKS))
    end = 25 * weeks
    full, alike, steady, one_day = rng.random(4) < (0.6, 0.4, 0.3, 0.2)

    def rows(table: HistoryTable, series: Series) -> SeriesRows:
        counts = series.max_rows if full else int(rng.integers(0, series.max_rows + 1))
        sizes = np.array([value.size for value in series.values])
        days = np.sort(rng.integers(FIRST, end + 1, counts))
        if alike:  # numbers go up and down together, on days of their own
            days = np.arange(counts)
            values = np.where(np.arange(counts)[:, None] % 2, 3, 3 if steady else 8) % sizes
        else:
            values = rng.integers(0, sizes, (counts, len(sizes)))
        if one_day or not table.timed:
            days = np.zeros(counts, dtype=np.int64)
        return SeriesRows(np.zeros(counts, np.int64), days, values.astype(np.uint16))

    onsets = np.where(rng.random(3) < 0.5, rng.integers(FIRST, end + 1, 3), NEVER)
    onsets[2] = end if onsets[2] != NEVER else NEVER
    return Histories(
        np.array([[rng.integers(80), rng.integers(2), weeks]], dtype=np.uint16),
        np.array([end]),
        onsets[None],
        tuple(tuple(rows(table, one) for one in table.series) for table in DOMAIN.tables),
    )


def crowd(seed: int) -> list[Histories]:
    """Patients, each a cohort of her own."""
    return [patient(100 * seed + place) for place in range(DOMAIN.population)]


@dataclass(frozen=True)
class Laid:
    """Rows of an event: of all patients, and of each of them in a cohort of her own."""

    event: Any
    sizes: Any
    sigmas: Sequence[float]
    whole: WeightedRows
    alone: list[WeightedRows]


@dataclass(frozen=True)
class Multiplied:
    """Products of scores, and whose they are."""

    cohort: Any
    contrasts: Sequence[Ints]
    event: ChosenHistograms
    asked: Any


@dataclass
class Fit:
    """What a fit was about to release."""

    generator: Any = None
    laid: dict[str, Laid] = field(default_factory=dict)
    multiplied: list[Multiplied] = field(default_factory=list)


Twin = Callable[[pytest.MonkeyPatch], None]


def nobody(patch: pytest.MonkeyPatch) -> None:
    """Break nothing."""


def fitted(patients: Sequence[Histories], *, together: bool, twin: Twin = nobody) -> Fit:
    """Fit on patients, while what is released is always the same.

    Args:
        patients: each a cohort of her own.
        together: whether it is released that tests of a table of few are taken together.
        twin: what is broken.
    """
    found = Fit()
    lays: list[Callable[[Histories], WeightedRows]] = []

    class Watched(latent.Released):
        def __call__(self, name: str, lay: Any, sizes: Any) -> Any:
            lays.append(lambda one: lay(one, self.plan.event(name).mass))
            return super().__call__(name, lay, sizes)

    def counted(rows: Any, sizes: Any, sigmas: Any, event: Any, entropy: Any) -> list[Ints]:
        found.laid[event.name] = Laid(
            event, sizes, sigmas, rows, [lays[-1](one) for one in patients]
        )
        rng = np.random.default_rng(zlib.crc32(event.name.encode()))
        whole = [int(np.sum(size)) for size in sizes]
        counts = [rng.integers(0, 40, size) * event.mass for size in whole]
        if event.name == latent.CLOCKS:
            counts = [np.arange(whole[0]) % 2 == (0 if together else 1)]
        return [one.astype(np.int64) for one in counts]

    def multiplied(cohort: Any, contrasts: Any, event: Any, entropy: Any, asked: Any) -> Ints:
        found.multiplied.append(Multiplied(cohort, contrasts, event, asked))
        wanted = pair_statistics.pairs_asked([one.shape[1] for one in contrasts], asked)
        size = int(np.triu(wanted).sum())
        clear = np.random.default_rng(size).random(size) < 0.3
        return np.rint(5 * event.sigma_for(1.0) * clear).astype(np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "Released", Watched)
        patch.setattr(latent, "weighted_histograms", counted)
        patch.setattr(vector, "contrast_products", multiplied)
        patch.setattr(vector, "DRAWN", 50)
        patch.setattr(PatientVector, "_matrix", lambda self, *_: np.eye(self.ends[-1]))
        for name in ("_fit_days", "_settle", "sample"):
            patch.setattr(LatentHistories, name, lambda *_: None)
        twin(patch)
        generator = LatentHistories(DOMAIN)
        plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
        generator.fit(functools.reduce(with_patient, patients), plan, SeededEntropy(1))
    found.generator = generator
    return found


def norms(rows: WeightedRows, mass: int) -> list[float]:
    """The largest norm of what one patient adds to each histogram, in masses."""
    found = []
    for cells in rows.cells:
        added: dict[int, dict[int, int]] = {}
        for unit, cell, weight in zip(
            rows.units.tolist(), cells.tolist(), rows.weights.tolist(), strict=True
        ):
            own = added.setdefault(unit, {})
            own[cell] = own.get(cell, 0) + weight
        squares = [sum(weight**2 for weight in own.values()) for own in added.values()]
        found.append(max(squares, default=0) / mass**2)
    return found


def worst(fit: Fit) -> dict[str, float]:
    """The largest squared norm of each event: 1 is what is paid for."""
    return {name: max(norms(one.whole, one.event.mass)) for name, one in fit.laid.items()}


def of_unit(rows: WeightedRows, unit: int) -> list[tuple[int, ...]]:
    """Return one patient's rows, in some order."""
    own = rows.units == unit
    parts = np.zeros(len(own)) if rows.parts is None else rows.parts
    columns = [*rows.cells, rows.weights, parts]
    return sorted(tuple(map(int, row)) for row in np.column_stack(columns)[own])


def dependent(fit: Fit) -> set[str]:
    """Which events have other rows of a patient when others are there."""
    return {
        name
        for name, one in fit.laid.items()
        for unit, alone in enumerate(one.alone)
        if of_unit(one.whole, unit) != of_unit(alone, 0)
    }


SEEDS = range(3)


@functools.cache
def sound(seed: int, together: bool) -> Fit:
    return fitted(crowd(seed), together=together)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_patient_adds_no_more_than_the_mass_of_each_event(seed: int, together: bool) -> None:
    fit = sound(seed, together)
    plan = {share.event.name for share in fit.generator.shares(BUDGET)}
    assert plan == set(fit.laid) | {vector.PRODUCTS, vector.AGAIN}
    assert all(squares <= 1 for squares in worst(fit).values()), worst(fit)
    for name, one in fit.laid.items():
        of = np.bincount(one.whole.units[one.whole.weights > 0])
        assert of.max() <= one.event.rows_per_unit, name
        weighted_histograms(one.whole, one.sizes, one.sigmas, one.event, Silence())


def test_the_bounds_are_reached() -> None:
    """Patients of many rows come close to them: a looser bound would not be seen otherwise."""
    most: dict[str, float] = {}
    for seed in SEEDS:
        for together in (True, False):
            for name, squares in worst(sound(seed, together)).items():
                most[name] = max(squares, most.get(name, 0.0))
    assert {name: squares for name, squares in most.items() if squares < 0.75} == {}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_her_rows_do_not_depend_on_other_patients(seed: int, together: bool) -> None:
    fit = sound(seed, together)
    assert dependent(fit) == set()
    table, codes = fit.generator.table, fit.multiplied[0].cohort.codes
    for unit, one in enumerate(crowd(seed)):
        assert (table.codes(one)[0] == codes[unit, 0]).all()


# Broken twins ---------------------------------------------------------------------------------


def each_test_whole(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: each test weighs the mass, whatever others a patient has."""
    real = latent.weight_of
    patch.setattr(
        latent, "weight_of", lambda tests, rows, mass: real(np.ones_like(tests), rows, mass)
    )


def test_tests_that_do_not_share_the_mass_are_caught() -> None:
    fit = fitted(crowd(0), together=True, twin=each_test_whole)
    found = {name for name, squares in worst(fit).items() if squares > 1.5}
    assert {latent.VALUES, latent.TESTS, latent.PLACES} <= found
    for name in found:
        one = fit.laid[name]
        with pytest.raises(InputError, match="weigh more"):
            weighted_histograms(one.whole, one.sizes, one.sigmas, one.event, Silence())


def each_code_whole(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: a patient of many codes has the weight of one of few."""
    real = vector.code_rows_of

    def laid(has: Any, mass: int) -> WeightedRows:
        rows = real(has, mass)
        few = np.full(len(rows.units), int(mass / np.sqrt(vector.FEW_CODES)))
        return WeightedRows(rows.cells, rows.units, few, rows.parts)

    patch.setattr(vector, "code_rows_of", laid)


def to_the_public_bound(name: str) -> Twin:
    """Broken twin: a patient's matrix is divided by the public bound, however long it is."""

    def broken(patch: pytest.MonkeyPatch) -> None:
        real = getattr(latent, name)

        def laid(*arguments: Any) -> WeightedRows:
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr("numpy.maximum", lambda norm, public: np.full_like(norm, public))
                return real(*arguments)  # type: ignore[no-any-return]

        patch.setattr(latent, name, laid)

    return broken


@pytest.mark.parametrize(
    ("twin", "name"),
    [
        (each_code_whole, vector.EVERS),
        (to_the_public_bound("panel_rows"), "many, rows: at one time"),
        (to_the_public_bound("presence_rows"), "many, rows: taken together"),
    ],
)
def test_what_is_longer_than_the_mass_is_caught(twin: Twin, name: str) -> None:
    assert max(worst(fitted(crowd(seed), together=True, twin=twin))[name] for seed in SEEDS) > 1.2


def by_those_who_are_there(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: all matrices are divided by the norm of the longest one of the cohort."""
    real = latent.presence_rows

    def laid(rows: Any, asked: SeriesRows, patients: int, mass: int) -> WeightedRows:
        own = real(rows, asked, patients, 10**6)
        squares = np.bincount(own.units, own.weights.astype(float) ** 2)
        whole = np.floor(own.weights * mass / np.sqrt(max(squares.max(), 1.0)))
        return WeightedRows(own.cells, own.units, whole.astype(np.int64), own.parts)

    patch.setattr(latent, "presence_rows", laid)


def day_of_another(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: the day in a stay is told by the last stay of all that stand before the row."""

    def cells(days: SeriesRows, owners: Ints, starts: Ints, lengths: Ints, patients: int) -> Ints:
        width = int(max(days.days.max(initial=0), starts.max(initial=0))) + 2
        keys = np.sort(owners * width + starts)
        at = np.searchsorted(keys, days.patients * width + days.days, side="right") - 1
        begun = keys[np.maximum(at, 0)] % width if len(keys) else np.zeros_like(days.days)
        since = np.maximum(days.days - begun, 0)
        return np.asarray(np.searchsorted([0, 1, 2, 3, 4, 7, 14, 28], since, side="right") - 1)

    patch.setattr(latent, "inside_cells", cells)


@pytest.mark.parametrize(
    ("twin", "name"),
    [(by_those_who_are_there, "many, rows: taken together"), (day_of_another, latent.PLACES)],
)
def test_rows_that_follow_from_other_patients_are_caught(twin: Twin, name: str) -> None:
    assert any(dependent(fitted(crowd(one), together=True, twin=twin)) >= {name} for one in SEEDS)


# Rounding -------------------------------------------------------------------------------------


def bits_of_others(*, alone: Sequence[int]) -> list[int]:
    """Which patients' matrices have other bits in a crowd, with a mass that shows the last ones."""
    rng = np.random.default_rng(5)
    owner = np.repeat(np.arange(900), rng.integers(0, 40, 900))
    x = rng.uniform(-3, 3, (len(owner), 5))
    whole = presence.matrix_weights(x, occasions_of(owner), 900, 2**51)
    found = []
    for unit in alone:
        mine = owner == unit
        single = presence.matrix_weights(x[mine], occasions_of(owner[mine] - unit), 1, 2**51)
        in_crowd = np.stack(whole[1:])[:, whole[0] == unit]
        if not np.array_equal(in_crowd, np.stack(single[1:])):
            found.append(unit)
    return found


def occasions_of(owner: Ints) -> SeriesRows:
    nothing = np.empty((len(owner), 0), dtype=np.uint16)
    return SeriesRows(owner, np.arange(len(owner)), nothing)


def sums_up_to_her(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: a patient's sums are differences of sums over all patients before."""
    real = np.bincount

    def counted(owner: Ints, weights: Any = None, **more: Any) -> Any:
        if weights is None:
            return real(owner, **more)
        return np.diff(np.cumsum(weights)[np.cumsum(real(owner)) - 1], prepend=0.0)

    monkeypatch.setattr("numpy.bincount", counted)


@pytest.mark.parametrize("entries", [presence.ENTRIES, 1000])
def test_not_even_rounding_follows_from_other_patients(
    entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "ENTRIES", entries)
    assert bits_of_others(alone=range(0, 900, 7)) == []


def test_sums_of_all_patients_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sums_up_to_her(monkeypatch)
    assert bits_of_others(alone=range(0, 900, 7)) != []


# Scores and products --------------------------------------------------------------------------


def scores_differ(twin: Twin) -> bool:
    """Whether the scores of products differ between cohorts whose releases are the same."""
    one, other = (fitted(crowd(seed), together=False, twin=twin) for seed in (1, 2))
    return any(
        not np.array_equal(a, b)
        for first, second in zip(one.multiplied, other.multiplied, strict=True)
        for a, b in zip(first.contrasts, second.contrasts, strict=True)
    )


def days_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: censored patients are scored by the days that the patients really had."""
    real = PatientVector._one_way

    def looking(self: PatientVector, coded: Any, histograms: int, released: Any) -> Any:
        counts = real(self, coded, histograms, released)
        codes = coded(released.histories)
        return {
            place: (np.bincount(codes[:, place], minlength=len(own)).astype(float), 1e-6)
            for place, (own, _) in counts.items()
        }

    patch.setattr(PatientVector, "_one_way", looking)


def test_scores_follow_from_what_was_released() -> None:
    assert not scores_differ(nobody)


def test_scores_of_the_patients_own_days_are_caught() -> None:
    assert scores_differ(days_as_they_are)


def longest(products: Multiplied) -> float:
    """The norm of the longest patient's products by themselves, in parts of the bound."""
    norms = []
    for unit in range(len(products.cohort.codes)):
        own = Cohort(products.cohort.codes[unit : unit + 1], products.cohort.mask[unit : unit + 1])
        sums = contrast_products(own, products.contrasts, products.event, Silence(), products.asked)
        norms.append(float(np.linalg.norm(sums.astype(float))))
    assert products.event.unit_mass is not None
    return max(norms) / products.event.unit_mass


@pytest.mark.parametrize("seed", SEEDS)
def test_products_of_a_patient_are_bounded(seed: int) -> None:
    first, again = sound(seed, True).multiplied
    assert first.asked is None and again.asked is not None
    for one in (first, again):
        assert longest(one) <= 1
        alone = products_of_units(one.cohort, one.contrasts, one.event, one.asked).sum(axis=0)
        sums = contrast_products(one.cohort, one.contrasts, one.event, Silence(), one.asked)
        assert (alone == sums).all(), "each by herself"


WIDTHS, CODES = (1, 3, 2, 1), 5
EVENT = ChosenHistograms("products", 21, 1, noise_multiplier=3.0, unit_mass=2000)


def some_products(seed: int, half: str) -> Multiplied:
    """Long rows of random scores, some pairs of which are asked for, in one half or in both."""
    rng = np.random.default_rng(seed)
    contrasts = [rng.integers(-60, 61, (CODES, width)) for width in WIDTHS]
    codes = rng.integers(0, CODES, (40, 1, len(WIDTHS))).astype(np.uint16)
    asked = np.triu(rng.random((sum(WIDTHS),) * 2) < 0.6)
    asked = {"upper": asked, "both": asked | asked.T}[half]
    return Multiplied(Cohort(codes, np.ones((40, 1), bool)), contrasts, EVENT, asked)


@pytest.mark.parametrize("half", ["upper", "both"])
def test_products_that_are_asked_for_are_bounded(half: str) -> None:
    found = [longest(some_products(seed, half)) for seed in range(10)]
    assert 0.95 < max(found) <= 1


def one_half(widths: Sequence[int], asked: Any = None) -> Any:
    """Broken twin: pairs that are asked for in one half count for it alone."""
    column = np.repeat(np.arange(len(widths)), widths)
    apart = column[:, None] != column
    return apart if asked is None else apart & asked


def test_a_norm_of_one_half_of_the_pairs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_statistics, "pairs_asked", one_half)
    assert max(longest(some_products(seed, "upper")) for seed in range(10)) > 1.2


def test_products_that_are_cut_after_the_sum_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: no row is shrunk, and each noisy sum is cut to what a patient may add."""

    def as_they_are(rows: Any, counts: Any, contrasts: Any, mass: int, wanted: Any) -> Floats:
        scores = [one[rows[:, j]] for j, one in enumerate(contrasts)]
        return np.concatenate(scores, axis=1).astype(np.float64)

    def cut(*arguments: Any) -> Ints:
        return np.clip(contrast_products(*arguments), -EVENT.mass, EVENT.mass)

    monkeypatch.setattr(pair_statistics, "_bounded_scores", as_they_are)
    found = some_products(1, "both")
    one = Cohort(found.cohort.codes[:1], found.cohort.mask[:1])
    moved = cut(one, found.contrasts, EVENT, Silence(), found.asked)
    assert np.linalg.norm(moved.astype(float)) > 1.5 * EVENT.mass
