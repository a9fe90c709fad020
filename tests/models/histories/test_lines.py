"""The line of a measurement: found again from few noisy cells, and not led by their noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models import Feature
from dpsynth.models.histories.steps.lines import (
    GROUPS,
    PRIOR,
    Line,
    cuts_of,
    line_cells,
)

CELLS, ROWS = 200, 20_000
VALUE = Feature("value", CELLS + 1, CELLS, (1,) * CELLS)


def drawn(correlation: float, spread: float = 8.0) -> tuple[np.ndarray, np.ndarray]:
    """Levels, and codes of the next value whose mean follows them."""
    rng = np.random.default_rng(5)
    levels = rng.normal(80, spread, ROWS)
    noise = rng.normal(0, spread * np.sqrt(1 - correlation**2), ROWS)
    codes = np.rint(80 + correlation * (levels - 80) + noise)
    return levels, np.clip(codes, 0, CELLS - 1).astype(np.int64)


def table_of(levels: np.ndarray, codes: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    cells = line_cells(levels, codes, VALUE, cuts)
    counts = np.bincount(cells, minlength=GROUPS**2 + 1)
    return counts[:-1].reshape(GROUPS, GROUPS).astype(float)


def cuts_at(codes: np.ndarray) -> np.ndarray:
    return cuts_of(np.bincount(codes, minlength=CELLS) / len(codes))


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_without_noise_the_line_is_that_of_least_squares(correlation: float) -> None:
    levels, codes = drawn(correlation)
    cuts = cuts_at(codes)
    line = Line.of(table_of(levels, codes, cuts), 1e-6, cuts)
    slope, intercept = np.polyfit(levels, codes, 1)
    assert line.slope == pytest.approx(max(slope, 0), abs=0.03)
    assert line.at(np.array([80.0])) == pytest.approx(intercept + slope * 80, abs=0.5)
    assert line.mean == pytest.approx(80, abs=0.5)


@pytest.mark.parametrize(("ratio", "error"), [(40, 0.25), (160, 0.08)])
def test_noise_moves_the_slope_by_little(ratio: float, error: float) -> None:
    levels, codes = drawn(0.9)
    cuts, rng = cuts_at(codes), np.random.default_rng(1)
    table, sigma = table_of(levels, codes, cuts), ROWS / ratio
    noisy = [table + rng.normal(0, sigma, table.shape) for _ in range(40)]
    slopes = np.array([Line.of(one, sigma, cuts).slope for one in noisy])
    assert np.sqrt(((slopes - 0.9) ** 2).mean()) < error


def test_noise_alone_gives_what_is_expected_of_a_measurement() -> None:
    rng, cuts = np.random.default_rng(1), np.array([60, 80, 100])
    slopes = [Line.of(rng.normal(0, 1e6, (GROUPS, GROUPS)), 1e6, cuts).slope for _ in range(50)]
    assert np.mean(slopes) == pytest.approx(PRIOR, abs=0.1)


def test_a_step_without_level_or_value_has_a_cell_of_its_own() -> None:
    cuts = np.array([50, 80, 110])
    levels, codes = np.array([np.nan, 60.0, 49.4, 49.6]), np.array([60, CELLS, 10, 199])
    last = GROUPS * GROUPS
    assert line_cells(levels, codes, VALUE, cuts).tolist() == [last, last, 0, GROUPS + 3]


def test_cuts_are_within_the_codes_whatever_was_released() -> None:
    for shares in (np.zeros(5), np.eye(5)[0], np.eye(5)[4], -np.ones(5), np.ones(2)):
        cuts = cuts_of(shares)
        assert len(cuts) == GROUPS - 1 and (np.diff(cuts) >= 0).all()
        assert cuts.min() >= 1 and cuts.max() <= len(shares) - 1
    assert cuts_of(np.empty(0)).tolist() == [0, 0, 0]
    table = np.full((GROUPS, GROUPS), 3.0)
    assert np.isfinite(Line.of(table, 1.0, cuts_of(np.eye(5)[0])).slope)
    assert np.isfinite(Line.of(-table, 1.0, cuts_of(np.eye(5)[0])).slope)
