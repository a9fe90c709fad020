"""Steps of `latent` between noisy counts and drawn rows, each against what is known of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import lognorm, norm

from dpsynth.encoding import SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories import HistoryTable, Series
from dpsynth.models.histories.domain import Inside
from dpsynth.models.histories.latent.codes import RowCodes, code_rows, coded_values, owned
from dpsynth.models.histories.latent.correlations import correlation_matrix
from dpsynth.models.histories.latent.courses import Memory
from dpsynth.models.histories.latent.laws import (
    NumberCells,
    denoised,
    from_haar,
    haar,
    normal_laws,
    spread_law,
    time_law,
)
from dpsynth.models.histories.latent.normal_scores import (
    both_above,
    correlations,
    hermite,
    scores_of,
)
from dpsynth.models.histories.latent.placing import Placing, cells_of, due_cells, inside_cells
from dpsynth.models.histories.latent.variables import CodeVariables, DayVariable, product_limit

from ...support.made_histories import feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Normal scores --------------------------------------------------------------------------------

COARSE = np.array([0.1, 0.5, 0.4])
FINE = np.full(20, 1 / 20)
TWO = np.array([0.75, 0.25])


def binned(z: Floats, shares: Floats) -> Ints:
    return np.searchsorted(norm.ppf(np.cumsum(shares)[:-1]), z)


@pytest.mark.parametrize("rho", [-0.8, -0.2, 0.0, 0.4, 0.9])
@pytest.mark.parametrize("others", [(COARSE, FINE), (COARSE, TWO), (FINE, FINE)])
def test_a_mean_product_of_scores_says_the_correlation(
    rho: float, others: tuple[Floats, Floats]
) -> None:
    z = rng_of(1).multivariate_normal([0, 0], [[1, rho], [rho, 1]], 400_000)
    scores = [scores_of(shares) for shares in others]
    codes = [binned(z[:, j], shares) for j, shares in enumerate(others)]
    product = np.mean(scores[0][codes[0]] * scores[1][codes[1]])
    one, other = (hermite(a, b) for a, b in zip(others, scores, strict=True))
    found, slopes = correlations(np.array([product]), one, other[None])
    assert found[0] == pytest.approx(rho, abs=0.02)
    assert slopes[0] > 0


def test_scores_are_means_of_the_parts_of_a_normal() -> None:
    z = rng_of(2).standard_normal(400_000)
    codes = binned(z, COARSE)
    means = np.bincount(codes, z) / np.bincount(codes)
    assert scores_of(COARSE) == pytest.approx(means, abs=0.01)
    assert abs(COARSE @ scores_of(COARSE)) < 1e-9


def test_how_likely_two_variables_are_above_cuts() -> None:
    cuts = np.array([-0.3, 1.1])
    z = rng_of(3).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400_000)
    seen = [np.mean((z[:, 0] > 0.5) & (z[:, 1] > cut)) for cut in cuts]
    assert both_above(0.5, cuts, np.full(2, 0.6)) == pytest.approx(seen, abs=0.02)
    assert both_above(0.5, cuts, np.zeros(2)) == pytest.approx(norm.sf(0.5) * norm.sf(cuts))


# Correlation matrices -------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
def test_contradictions_become_a_correlation_matrix(sign: int) -> None:
    """One goes with two others, which exclude each other, and pairs that nobody knows."""
    rng = rng_of(4)
    rho = np.triu(rng.uniform(-1, 1, (30, 30)), 1)
    rho[:3, :3] = sign * 0.95 * np.array([[0, 1, 1], [0, 0, -1], [0, 0, 0]])
    rho = rho + rho.T
    errors = np.full((30, 30), 0.01)
    errors[5] = errors[:, 5] = np.inf
    matrix, _ = correlation_matrix(rho, errors.copy())
    assert np.diag(matrix) == pytest.approx(np.ones(30), abs=0)
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix).min() > 1e-3


def test_a_matrix_that_is_one_is_found_again() -> None:
    loadings = rng_of(5).uniform(-0.7, 0.7, (20, 2))
    truth = loadings @ loadings.T
    np.fill_diagonal(truth, 1.0)
    noise = rng_of(6).normal(0, 0.02, truth.shape)
    rho = truth + np.triu(noise, 1) + np.triu(noise, 1).T
    matrix, begun = correlation_matrix(rho, np.full(truth.shape, 0.02))
    assert np.abs(matrix - truth).max() < 0.08
    again, _ = correlation_matrix(rho, np.full(truth.shape, 0.02), begun)
    assert np.abs(again - truth).max() < 0.08


def test_without_a_known_pair_nothing_goes_together() -> None:
    matrix, begun = correlation_matrix(np.ones((3, 3)), np.full((3, 3), np.inf))
    assert (matrix == np.eye(3)).all() and begun is None


# Laws -----------------------------------------------------------------------------------------


def test_haar_coefficients_are_orthonormal() -> None:
    cells = rng_of(7).normal(0, 1, 64)
    assert from_haar(haar(cells)) == pytest.approx(cells)
    assert np.linalg.norm(haar(cells)) == pytest.approx(np.linalg.norm(cells))
    assert haar(np.ones(4)) == pytest.approx([2.0, 0.0, 0.0, 0.0])


def test_noise_is_taken_from_cells_and_peaks_stay() -> None:
    truth = np.zeros(50)
    truth[17] = 500.0
    cells = truth + rng_of(8).normal(0, 5, 50)
    found = denoised(cells, 5.0)
    assert np.linalg.norm(found - truth) < np.linalg.norm(cells - truth) / 2
    assert denoised(truth, 0.0) == pytest.approx(truth)


CODES = 200
PLACES = (np.arange(CODES) + 0.5) / CODES


def one_code_each(low: float = 0.0) -> Feature:
    return Feature("value", CODES, CODES, (1,) * CODES, low=low)


@pytest.mark.parametrize(
    ("law", "low"),
    [
        (norm(0.4, 0.1), 0.1),
        (lognorm(0.5, 0, 0.08), 0.0),
        (None, 0.1),
    ],
    ids=["normal", "logarithms", "two normal ones"],
)
def test_a_law_is_found_in_exact_counts(law: object, low: float) -> None:
    ends = np.linspace(0, 1, CODES + 1)

    def share(ends: Floats) -> Floats:
        if law is None:
            return 0.7 * norm(0.25, 0.04).cdf(ends) + 0.3 * norm(0.7, 0.08).cdf(ends)
        return law.cdf(ends)  # type: ignore[attr-defined, no-any-return]

    truth = np.diff(share(ends))
    truth = truth / truth.sum()
    cells = NumberCells.of(one_code_each(low))
    counts = np.bincount(cells.cell, 1e6 * truth, minlength=cells.count)
    [(of_cells, of_codes)] = normal_laws([cells], [counts], sigma=20.0)
    assert of_cells.sum() == pytest.approx(1) and of_codes.sum() == pytest.approx(1)
    assert np.abs(of_cells - counts / counts.sum()).sum() < 0.01
    assert np.abs(of_codes - truth).sum() < 0.06


def test_a_peak_stands_out_of_a_law() -> None:
    """A fifth of the patients have the lowest value, such as one below the limit of detection."""
    truth = 0.8 * np.diff(norm(0.5, 0.1).cdf(np.linspace(0, 1, CODES + 1)))
    truth[0] += 0.2
    cells = NumberCells.of(one_code_each(0.1))
    counts = np.bincount(cells.cell, 1e5 * truth, minlength=cells.count)
    noisy = counts + rng_of(9).normal(0, 30, len(counts))
    [(of_cells, _)] = normal_laws([cells], [noisy], sigma=30.0)
    assert of_cells[0] == pytest.approx(counts[0] / counts.sum(), abs=0.01)


@pytest.mark.parametrize("size", [1, 2, 5, 64, 65, 600])
def test_each_code_has_a_cell(size: int) -> None:
    cells = NumberCells.of(Feature("value", size, size, (1,) * size))
    assert (np.diff(cells.cell) >= 0).all() and cells.count <= 64
    assert set(cells.cell.tolist()) == set(range(cells.count))
    assert cells.edges[0] == 0 and cells.edges[-1] == pytest.approx(1)


@pytest.mark.parametrize("sd", [0.3, 0.8, 1.2])
def test_the_spread_of_levels_is_found(sd: float) -> None:
    edges = np.linspace(-3.2, 3.2, 9)
    counts = 1e4 * np.diff(norm(0, sd).cdf(edges))
    assert spread_law(edges, counts, 10.0, 0.8) == pytest.approx(sd, rel=0.05)


# Days -----------------------------------------------------------------------------------------


def test_product_limit_by_hand() -> None:
    """Ten patients: 2 have it first; 2 are lost and 3 have it; one has it; two never do.

    Of those who are lost within a cell, half count as at risk of it.
    """
    found = product_limit(np.array([0.2, 0.3, 0.1]), np.array([0.0, 0.2, 0.0, 0.2]))
    hazards = [2 / 10, 3 / 7, 1 / 3]
    left = [1.0, 0.8, 0.8 * 4 / 7, 0.8 * 4 / 7 * 2 / 3]
    wanted = [left[0] * hazards[0], left[1] * hazards[1], left[2] * hazards[2], left[3]]
    assert found == pytest.approx(wanted)
    assert found.sum() == pytest.approx(1)


def test_product_limit_is_that_of_lifelines() -> None:
    lifelines = pytest.importorskip("lifelines")
    rng = rng_of(10)
    days, until = rng.integers(0, 12, 2_000), rng.integers(0, 30, 2_000)
    seen, time = days < until, np.minimum(days, until)
    kept = lifelines.KaplanMeierFitter().fit(2 * time + ~seen, seen)  # lost behind the event
    events = np.bincount(time[seen], minlength=12) / 2_000
    lost = np.bincount(np.minimum(time[~seen], 12), minlength=13) / 2_000
    found = 1 - np.cumsum(product_limit(events, lost))[:-1]
    assert found == pytest.approx(kept.predict(2 * np.arange(12)).to_numpy(), abs=0.03)


def test_days_are_drawn_as_they_would_be_without_loss() -> None:
    """Half of the patients are lost early, whatever their day would have been."""
    law = np.array([0.1, 0.2, 0.3, 0.4])
    events = np.array([0.1, 0.1, 0.15])
    lost = np.array([0.0, 0.45, 0.0, 0.2])  # behind the first cell
    variable = DayVariable.of(np.concatenate([events, lost]), 3)
    drawn = variable.draw(rng_of(11).standard_normal((100_000, 1)), rng_of())
    found = np.bincount(drawn, minlength=4) / 1e5
    assert found == pytest.approx(product_limit(events, lost), abs=0.01)
    assert found[0] == pytest.approx(law[0], abs=0.01)
    assert (np.diff(variable.scores[:3, 0]) > 0).all(), "later days are higher scores"
    assert (variable.scores[3:6, 0] > variable.scores[:3, 0]).all(), "lost is later than that day"


@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.5, 0.3, 0.15, 0.05), (0.6, 0.395, 0.004, 0.001)])
def test_codes_without_an_order_meet_their_shares(shares: tuple[float, ...]) -> None:
    variables = CodeVariables.of(np.array(shares))
    z = rng_of(12).standard_normal((50_000, variables.scores.shape[1]))
    drawn = np.bincount(variables.draw(z, rng_of(13)), minlength=len(shares)) / len(z)
    assert drawn == pytest.approx(shares, abs=0.01)


@pytest.mark.parametrize("shape", ["even", "early", "late", "spike"])
def test_a_time_has_the_law_of_its_noisy_cells(shape: str) -> None:
    """Some 12 events a cell under noise of 20 a cell: the law is nearer than cells could be."""
    middles = (np.arange(32) + 0.5) / 32
    law = {
        "even": np.ones(32),
        "early": np.exp(-6 * middles),
        "late": middles**2,
        "spike": np.where(np.arange(32) == 7, 40.0, 1.0),
    }[shape]
    law = 400 * law / law.sum()
    off = []
    for seed in range(20):
        found = time_law(law + rng_of(seed).normal(0, 20, 32), 20.0)
        assert (found >= 0).all()
        off.append(np.abs(np.cumsum(found / found.sum() - law / law.sum())).max())
    assert np.mean(off) < 0.2


# Codes of rows --------------------------------------------------------------------------------


def test_a_patient_owns_at_least_one_code_and_no_more_than_she_has_rows() -> None:
    tends = rng_of(14).normal(0, 1, (500, 6))
    counts = rng_of(15).integers(1, 5, 500)
    own = owned(tends, counts)
    assert (own.sum(axis=1) >= 1).all() and (own.sum(axis=1) <= counts).all()
    wanted = np.maximum((tends >= 0).sum(axis=1), 1)
    assert (own.sum(axis=1) == np.minimum(wanted, counts)).all()
    assert own[np.arange(500), tends.argmax(axis=1)].all(), "those she tends to most"


SERIES = Series("stays", (feature("ward", 0, 3), feature("drug", 0, 8)), 12)
PATIENTS = 3_000


def rows_of(counts: Ints) -> SeriesRows:
    who = np.repeat(np.arange(len(counts)), counts)
    return SeriesRows(who, np.zeros(len(who), np.int64), np.empty((len(who), 0), np.uint16))


@pytest.mark.parametrize("again", [0.3, 0.42])
def test_calibrated_codes_meet_prevalences_shares_and_repeats(again: float) -> None:
    rng = rng_of(16)
    drug = np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.04, 0.01])
    same = again * drug
    joint = drug[:, None] * np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1]] * 4)
    single = np.stack([drug - same, same], axis=1)
    codes = RowCodes.of([1e5 * single.T.ravel(), 1e5 * joint.ravel()], SERIES, 10.0)
    assert coded_values(SERIES) == [1, 0]
    assert codes.released.sum(axis=0) == pytest.approx(drug, abs=1e-3)
    assert codes.released[1].sum() == pytest.approx(again, abs=1e-3)
    counts = rng.integers(0, 9, PATIENTS)
    rows, owner = rows_of(counts), counts > 0
    tends = [rng.normal(-1, 1, (PATIENTS, 8)), rng.normal(0, 1, (PATIENTS, 3))]
    shares = [np.array([0.4, 0.35, 0.3, 0.25, 0.2, 0.1, 0.05, 0.02]), np.array([0.6, 0.5, 0.2])]
    for _ in range(2):
        codes = codes.calibrated(rows, tends, shares, PATIENTS, rng)
    own = owned(tends[0][owner] + codes.cuts[0], counts[owner])
    assert own.sum(axis=0) / PATIENTS == pytest.approx(shares[0], abs=0.01)
    drawn = codes.draw(rows, tends, rng)
    ever = np.zeros((PATIENTS, 8), dtype=bool)
    ever[rows.patients, drawn[:, 0]] = True
    assert ever.mean(axis=0) == pytest.approx(shares[0], abs=0.015)
    assert (ever[owner] == own).all(), "each of her codes is on a row, and no other one"
    weight = 1 / counts[rows.patients]
    often = np.bincount(drawn[:, 0], weight, minlength=8) / owner.sum()
    assert often == pytest.approx(drug, abs=0.04)
    repeats = (np.diff(drawn[:, 0]) == 0) & (np.diff(rows.patients) == 0)
    found = float(weight[1:] @ repeats) / owner.sum()
    assert found == pytest.approx(again, abs=0.06)


def test_few_codes_follow_each_other_as_released() -> None:
    """Codes 0 -> 1 -> 2 -> 0 in turns, or the same one again for a fifth of the rows."""
    rng, patients = rng_of(17), 4_000
    series = Series("smoking", (feature("status", 0, 3),), 12)
    step = np.array([[0.2, 0.75, 0.05], [0.05, 0.2, 0.75], [0.75, 0.05, 0.2]])
    counts = rng.integers(1, 7, patients)
    rows = rows_of(counts)
    truth = np.zeros(len(rows.patients), dtype=np.int64)
    truth[0] = 1
    for place in range(len(truth)):
        begins = place == 0 or rows.patients[place] != rows.patients[place - 1]
        shares = np.array([0.6, 0.3, 0.1]) if begins else step[truth[place - 1]]
        truth[place] = rng.choice(3, p=shares)
    real = SeriesRows(rows.patients, rows.days, truth[:, None].astype(np.uint16))
    laid = code_rows(real, series, patients, 1 << 20)
    counted = np.bincount(laid.cells[0], laid.weights, minlength=12)
    codes = RowCodes.of([counted.astype(np.float64)], series, 10.0)
    for _ in range(2):
        codes = codes.calibrated(rows, [None], [None], patients, rng)
    drawn = codes.draw(rows, [None], rng)[:, 0]
    later = np.flatnonzero(np.diff(rows.patients) == 0)
    for code, wanted in enumerate(step):
        after = drawn[later + 1][drawn[later] == code]
        assert np.bincount(after, minlength=3) / len(after) == pytest.approx(wanted, abs=0.03)


# Memory ---------------------------------------------------------------------------------------


def test_memories_are_fitted_to_a_semivariogram_of_two() -> None:
    lags = np.geomspace(0.5, 4_000, 9)
    curve = 0.3 + 0.3 * (1 - np.exp(-lags / 8)) + 0.4 * (1 - np.exp(-lags / 900))
    memory = Memory(curve, curve, np.ones(9), lags)
    parts, taus = memory.fitted()
    again = 1 - parts.sum() + (1 - np.exp(-lags[:, None] / taus)) @ parts
    assert again == pytest.approx(curve, abs=0.02)
    less = np.stack([curve - 0.1, 4.1 - curve], axis=1) / 4 * 1e6  # of drawn histories
    assert (memory.moved(less).asked > curve).all()
    none = np.zeros((9, 2))
    assert memory.moved(none).asked == pytest.approx(curve), "what is not drawn says nothing"


# Places ---------------------------------------------------------------------------------------


def visits(due: tuple[int, ...], within: int) -> HistoryTable:
    return HistoryTable(
        "visits", (Series("visits", (feature("stage", 0, 3),), 9),), True, 999, (False,),
        due=due, within=within,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("due", "within"),
    [((0, 100, 400), 20), ((-50, 0, 100), 20), ((0, 10, 20), 15), ((5, 300), 40), ((0, 7), 0)],
)
def test_rows_that_are_due_lie_near_their_due_days(due: tuple[int, ...], within: int) -> None:
    rng, table = rng_of(17), visits(due, within)
    placing = Placing.of(table, rng.uniform(0, 100, cells_of(table)), 1.0)
    ends = rng.integers(0, 500, 1_000)
    open_to = np.searchsorted(due, ends, side="right")
    counts = rng.integers(0, open_to + 1)
    drawn = placing.draw_due(counts, ends, rng, -60)
    assert (drawn.counts(1_000) == counts).all()
    assert (drawn.days <= ends[drawn.patients]).all() and drawn.days.min() >= -60
    apart = np.abs(drawn.days[:, None] - np.array(due))
    assert (apart.min(axis=1) <= within).all()
    same = np.diff(drawn.patients) == 0
    assert (np.diff(drawn.days)[same] > 0).all(), "in order, each due day once"
    full = placing.draw_due(open_to, ends, rng, -60)
    place = np.arange(len(full.days)) - full.starts(1_000)[full.patients]
    nearest = np.abs(full.days[:, None] - np.array(due)).min(axis=1)
    assert (np.abs(full.days - np.array(due)[place]) == nearest).all(), "each near its own"


def test_due_days_are_kept_as_often_as_was_counted() -> None:
    table = visits((0, 100), 2)
    counts = np.array([0.0, 0, 6, 0, 0, 1, 0, 2, 0, 1])
    placing = Placing.of(table, 1e4 * counts, 1.0)
    drawn = placing.draw_due(np.full(20_000, 2), np.full(20_000, 900), rng_of(18))
    second = np.bincount(due_cells(table, drawn.days), minlength=10)[5:] / 20_000
    assert second == pytest.approx([0.25, 0, 0.5, 0, 0.25], abs=0.02)


DRUGS = replace(visits((), 0), name="drugs", inside=Inside(0, 0, tuple(range(40))))


@pytest.mark.parametrize("apart", [True, False])
def test_rows_inside_others_lie_on_their_days(apart: bool) -> None:
    rng = rng_of(19)
    placing = Placing.of(DRUGS, rng.uniform(1, 9, cells_of(DRUGS)), 0.1)
    owners = np.sort(rng.choice(np.arange(0, 300, 2), 400))  # others have no stay
    starts, lengths = rng.integers(-50, 200, 400), rng.integers(1, 40, 400)
    ends = np.full(300, 210)
    counts = rng.integers(0, 30, 300)
    drawn = placing.draw_inside(counts, (owners, starts, lengths), ends, rng, apart=apart)
    covered = np.zeros((300, 600), dtype=bool)
    for owner, start, length in zip(owners, starts, lengths, strict=True):
        covered[owner, start + 100 : min(start + length, 211) + 100] = True
    assert covered[drawn.patients, drawn.days + 100].all()
    assert (np.diff(drawn.patients * 1_000 + drawn.days) >= 0).all()
    has = np.bincount(owners, minlength=300) > 0
    if apart:
        assert (drawn.counts(300) <= counts).all()
    else:
        assert (drawn.counts(300) == np.where(has, counts, 0)).all()


def test_days_in_a_stay_by_hand() -> None:
    """Stays from day -50 and 10 of one patient; another one's stay says nothing of her rows."""
    days = SeriesRows(np.array([0, 1, 1, 1, 1]), np.array([3, -60, -45, 10, 900]), np.empty((5, 0)))
    found = inside_cells(days, np.array([0, 1, 1]), np.array([1, -50, 10]), np.array([5, 9, 30]), 2)
    assert found.tolist() == [2, 0, 4, 0, 7]
    nothing = np.empty(0, dtype=np.int64)
    assert inside_cells(days, nothing, nothing, nothing, 2).tolist() == [0] * 5
