"""Columns drawn more evenly than chance: each row keeps its law, and pairs have less error."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.marginals import draw_evenly, places_at
from dpsynth.models.marginals.even_draws import LEAST_PART, MOST, _Feedback, _parts

ROWS, COLUMNS, SIDE = 16_000, 8, 5


def made(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Laws that differ by row, the first bin rare and the last one empty, and leading columns."""
    rng = np.random.default_rng(7)
    leading = rng.integers(0, SIDE, (rows, COLUMNS))
    laws = rng.dirichlet([0.1, 1.0, 2.0], rows) * (1 + leading[:, :1] * [0.0, 0.5, 0.0])
    return np.column_stack([laws, np.zeros(rows)]).astype(np.float32), leading


def pair_errors(bins: np.ndarray, laws: np.ndarray, leading: np.ndarray) -> np.ndarray:
    """Rows too many in each cell of a leading column's bin and a drawn bin."""
    extra = np.eye(laws.shape[1])[bins] - laws / laws.sum(axis=1, keepdims=True)
    return np.concatenate([np.eye(SIDE)[column].T @ extra for column in leading.T])


def test_pairs_with_all_leading_columns_have_less_error() -> None:
    laws, leading = made()
    errors = {"even": [], "independent": []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        bins = draw_evenly(laws, leading, rng)
        errors["even"].append(pair_errors(bins, laws, leading))
        errors["independent"].append(pair_errors(places_at(laws, rng.random(ROWS)), laws, leading))
    even, independent = (np.std(errors[kind]) for kind in ("even", "independent"))
    assert even < 0.45 * independent
    blind = [
        pair_errors(draw_evenly(laws, leading[:, :2], np.random.default_rng(seed)), laws, leading)
        for seed in range(10)
    ]
    assert even < 0.6 * np.std(blind)  # columns that do not lead are not cared for


@pytest.mark.parametrize(
    "rows", [2 * LEAST_PART, pytest.param(5 * LEAST_PART, marks=pytest.mark.long)]
)
def test_every_row_keeps_its_law(rows: int) -> None:
    laws, leading = made(rows)
    found, rng = np.zeros(laws.shape), np.random.default_rng(1)
    repeats = 1_500
    for _ in range(repeats):
        order = rng.permutation(rows)  # so that each row is in each part, with others beside it
        bins = np.empty(rows, dtype=np.int64)
        bins[order] = draw_evenly(laws[order], leading[order], rng)
        found[np.arange(rows), bins] += 1
    laws = laws / laws.sum(axis=1, keepdims=True)
    known = laws * repeats > 20
    apart = (found / repeats - laws)[known] / np.sqrt(laws * (1 - laws) / repeats)[known]
    assert np.std(apart) == pytest.approx(1.0, abs=0.06)
    assert np.abs(apart).max() < 5.5
    assert not found[:, 3].any()  # its law never has it


def test_the_last_rows_keep_their_law_on_average_over_cells() -> None:
    """Rows of the last part, whose laws are tilted most: no bin is favoured."""
    laws, leading = made(4 * LEAST_PART)
    sums = np.zeros((COLUMNS * SIDE, 4))
    for seed in range(400):
        bins = draw_evenly(laws, leading, np.random.default_rng(seed))
        late = slice(-LEAST_PART, None)
        sums += pair_errors(bins[late], laws[late], leading[late])
    one = np.sqrt(LEAST_PART / SIDE * 0.25 * 400)
    assert np.abs(sums).max() < 5.5 * one


def test_few_tilts_are_cut_off() -> None:
    laws, leading = made()
    laws = laws / laws.sum(axis=1, keepdims=True)
    feedback, rng = _Feedback(laws, leading), np.random.default_rng(2)
    for part in _parts(ROWS):
        tilted = feedback.tilted(part)
        assert (tilted >= 0).all()
        np.testing.assert_allclose(tilted.sum(axis=1), 1.0, atol=1e-5)
        bins = places_at(tilted, rng.random(len(tilted)))
        feedback.note(part, bins)
        some = laws[part] > 1e-3
        moved = np.abs(tilted[some] / laws[part][some] - 1.0)
        assert (moved > MOST).mean() < 0.02
    assert np.abs(moved).max() > 0.05  # it does something


@pytest.mark.parametrize("rows", [1, 7, 2 * LEAST_PART - 1, 2 * LEAST_PART, 3 * LEAST_PART + 1])
def test_any_number_of_rows_is_drawn(rows: int) -> None:
    laws, leading = made(rows)
    for own in (leading, leading[:, :0]):
        bins = draw_evenly(laws, own, np.random.default_rng(3))
        assert bins.shape == (rows,) and set(bins) <= {0, 1, 2}
    parts = list(_parts(rows))
    assert parts[0].start == 0 and parts[-1].stop == rows
    assert all(one.stop == other.start for one, other in zip(parts, parts[1:], strict=False))


def test_bins_that_no_leading_row_has_do_no_harm() -> None:
    laws, leading = made()
    leading[:, 0] = 4  # one bin for all, and a gap before it
    bins = draw_evenly(laws, leading, np.random.default_rng(4))
    assert np.abs(pair_errors(bins, laws, leading)).max() < 300
