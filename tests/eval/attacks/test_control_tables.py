"""The tables of controls: what is copied, moved, learned and crossed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import People
from dpsynth.eval.attacks import controls as module
from dpsynth.eval.attacks.controls import COPIED, jittered, learned, with_copies
from dpsynth.eval.core import TableView
from dpsynth.eval.distances import Metric

from ...support.evaluation_tables import number, tables, words
from .test_controls import of

FIELDS = [*(number(name, 0, 300) for name in "abc"), words("p", "x", "y", "z", "v", "w")]


def flat(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells: dict[str, Any] = {name: rng.integers(0, 301, rows) for name in "abc"}
    cells["a"] = pd.array(np.where(rng.random(rows) < 0.1, None, cells["a"]), dtype="Int64")
    cells["p"] = rng.choice(list("xyzvw"), rows)
    return pd.DataFrame(cells)


SMALL = tables(FIELDS, flat(300, 1), flat(250, 2), flat(280, 3))


PEOPLE = People.of(SMALL, np.random.default_rng(1))


def apart(one: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Squared distances of all pairs of rows, from the cells."""
    total = np.zeros((len(one), len(other)))
    for name in one.columns:
        if name == "p":
            total += one[name].to_numpy(str)[:, None] != other[name].to_numpy(str)[None, :]
            continue
        a, b = (
            frame[name].astype("Float64").to_numpy(float, na_value=np.nan) for frame in (one, other)
        )
        part = ((a[:, None] - b[None, :]) / 300) ** 2
        unlike = np.isnan(a)[:, None] != np.isnan(b)[None, :]
        total += np.where(np.isnan(part), unlike, part)
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_jittered_table_passes_the_usual_test_and_holds_all_members(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases: list[TableView] = []
    first = module.members_first
    monkeypatch.setattr(module, "members_first", lambda *a: bases.append(first(*a)) or bases[-1])
    metric = Metric.of(SMALL.codec)
    moved, passes = jittered(SMALL, PEOPLE, metric, 250, np.random.default_rng(seed))
    cut = np.quantile(apart(moved.frame, SMALL.source.frame).min(axis=1), 0.05)
    usual = np.quantile(apart(PEOPLE.others.frame, SMALL.source.frame).min(axis=1), 0.05)
    assert passes and cut >= usual - 1e-12 and usual > 0
    base = bases[0]
    assert moved.rows == base.rows == 250 == len(of(base))
    assert of(PEOPLE.members) <= of(base) <= of(SMALL.source)
    # each row keeps cells of its own patient, and has moved no farther than it had to
    assert (moved.codes == base.codes).any(axis=1).mean() > 0.9
    assert (moved.codes != base.codes).any(axis=1).mean() > 0.98
    own = np.diag(apart(moved.frame, base.frame))
    assert np.quantile(own, 0.05) >= usual - 1e-12 and np.median(own) < 1.5
    consistent(moved)


def test_all_members_are_jittered_even_if_more_than_the_rows_asked_for() -> None:
    metric = Metric.of(SMALL.codec)
    moved, _ = jittered(SMALL, PEOPLE, metric, 5, np.random.default_rng(1))
    assert moved.rows == PEOPLE.members.rows > 5


def consistent(view: TableView) -> None:
    """Cells and codes tell of the same rows, and rows are units."""
    assert np.array_equal(SMALL.codec.encode(view.frame), view.codes)
    assert view.units.tolist() == list(range(view.rows)) == view.frame.index.tolist()


def test_one_row_in_ten_is_copied() -> None:
    source, synthetic = of(SMALL.source), of(SMALL.synthetic)
    assert not source & synthetic
    for rows in (200, 250):
        view = with_copies(SMALL, rows, np.random.default_rng(1))
        copies = sum(row.tobytes() in source for row in view.codes)
        assert view.rows == rows and copies == round(COPIED * rows)
        assert len(of(view)) == rows
        consistent(view)


def test_the_stranger_knows_fresh_people_only() -> None:
    view = learned(PEOPLE.fresh, SMALL, 400, np.random.default_rng(1))
    other = replace(SMALL, source=SMALL.synthetic, synthetic=SMALL.source)
    again = learned(PEOPLE.fresh, other, 400, np.random.default_rng(1))
    assert np.array_equal(view.codes, again.codes) and view.rows == 400
    for place in range(4):
        assert set(view.codes[:, place]) <= set(PEOPLE.fresh.codes[:, place])
    assert len(of(view) - of(PEOPLE.fresh)) > 200  # and it is no copy of them
    consistent(view)


def test_cells_are_crossed_where_it_says_so() -> None:
    first, second = SMALL.source.take(np.arange(4)), SMALL.source.take(np.arange(4, 8))
    swapped = np.eye(4, dtype=bool)
    view = module.crossed(first, second, swapped)
    for row in range(4):
        for column in range(4):
            side = second if row == column else first
            assert view.codes[row, column] == side.codes[row, column]
    consistent(view)


def test_parts_of_the_distance_add_up_to_it() -> None:
    metric = Metric.of(SMALL.codec)
    first, second = SMALL.source.take(np.arange(200)), SMALL.source.take(np.arange(100, 300))
    parts = module.by_cell(metric, first, second)
    assert parts.shape == (200, 4)
    whole = np.diag(apart(first.frame, second.frame))
    assert parts.sum(axis=1) == pytest.approx(whole, abs=1e-12)
    only_p = np.diag(apart(first.frame[["p"]], second.frame[["p"]]))
    assert parts[:, SMALL.codec.names.index("p")] == pytest.approx(only_p)
