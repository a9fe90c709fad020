"""P25: scales that are fitted on people in the data.

The check: what an attack says of a non-member does not depend on who the members are; distances,
widths, bins and groups come from the schema, the released table and the reference. And of a table
that leaks nothing, the interval of the AUC contains 0.5 in at least 90 of 100 repeats. Both are
held against twins that take a scale from the members.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.eval.attack_stats import People, Roc, by_unit, groups_of, together
from dpsynth.eval.attacks import membership as module
from dpsynth.eval.attacks.membership import log_ratios
from dpsynth.eval.core import Tables, TableView
from dpsynth.eval.distances import Metric, Points, nearest

from ..support.evaluation_tables import number, tables, words

UNIT: dict[str, Any] = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
NUMBERS = [f"n{i}" for i in range(20)]
FIELDS = [UNIT, *(number(name, 0, 1000) for name in NUMBERS), words("p", "x", "y", "z")]
REPEATS = 100
UNITS = 80  # members, non-members, and rows of the released table


def drawn(units: int, seed: int, spread: float = 120.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells: dict[str, Any] = {"unit": [f"{seed}-{i}" for i in range(units)]}
    for name in NUMBERS:
        cells[name] = np.clip(500 + spread * rng.normal(size=units), 0, 1000).astype(int)
    cells["p"] = rng.choice(list("xyz"), units)
    return pd.DataFrame(cells)


def read(source: pd.DataFrame, holdout: pd.DataFrame, released: pd.DataFrame) -> Tables:
    one = {"max_rows": {"value": 1, "basis": "made for this test"}}
    return tables(FIELDS, source, released.drop(columns="unit"), holdout, **one)


LARGE = read(drawn(1500, 1), drawn(1500, 2), drawn(600, 3))
OTHERS = read(drawn(300, 4, spread=20.0), drawn(300, 5), drawn(5, 6)).source  # a narrow lot
PEOPLE = People.of(LARGE, np.random.default_rng(1), players=100)
NARROW = replace(PEOPLE, members=replace(OTHERS, units=OTHERS.units + 2**50))


def of_non_members(people: People) -> dict[str, np.ndarray]:
    """All that is computed of the non-members before anybody is told who is a member."""
    players = together(people.members, people.non_members)
    units = np.unique(players.units)
    inside = np.isin(units, people.members.units)
    metric = module.Metric.of(LARGE.codec)
    scores = module._scored(
        *(players, LARGE.synthetic, people.reference, LARGE, metric, inside),
        np.random.default_rng(1),
    )
    found = {score.key: score.values[~inside] for score in scores if score.judged.all()}
    rng = np.random.default_rng(1)
    ratios = log_ratios(players, LARGE.synthetic, people.reference, LARGE.codec, rng)
    non_members = np.isin(players.units, people.non_members.units)
    found["ratios"] = ratios[non_members].ravel()
    known = metric.points(people.reference)
    apart = nearest(metric, metric.points(players), known).squared[:, 0]
    found["exposure"] = by_unit(players, apart)[1][~inside]
    return found


def differing(monkeypatch: pytest.MonkeyPatch | None = None, twin: str = "") -> set[str]:
    """What changes for non-members when the members are other people."""
    found = []
    for people in (PEOPLE, NARROW):
        if monkeypatch is not None:
            BROKEN[twin](monkeypatch, people.members)
        found.append(of_non_members(people))
    assert found[0].keys() == {"distance", "density", "ratios", "exposure"}
    return {key for key, values in found[0].items() if not np.allclose(values, found[1][key])}


def fitted(members: TableView) -> Callable[..., Metric]:
    """A metric whose numbers are in multiples of the members' standard deviations."""
    of = Metric.of

    def metric(codec: Codec) -> Metric:
        plain = of(codec)
        spread = np.nanstd(plain.points(members).numbers, axis=0)
        share = np.minimum(1.0, 15.0 / spread)  # or numbers leave their declared range
        return replace(plain, step=share * plain.step, top=share * plain.top)

    return metric


def scaled(patch: pytest.MonkeyPatch, members: TableView) -> None:
    """Broken twin: numbers are standardised by the members."""

    class Fitted(Metric):
        of = staticmethod(fitted(members))  # type: ignore[assignment]

    patch.setattr(module, "Metric", Fitted)


def widened(patch: pytest.MonkeyPatch, members: TableView) -> None:
    """Broken twin: the kernel is as wide as members are far from the released table."""

    def width(metric: Metric, _: object, table: Any) -> float:
        apart = nearest(metric, metric.points(members), table).squared[:, 0]
        return float(np.median(np.sqrt(apart)))

    patch.setattr(module, "width_of", width)


BROKEN = {"scaled": scaled, "widened": widened}


def test_what_is_said_of_a_stranger_does_not_depend_on_who_is_a_member() -> None:
    assert differing() == set()


@pytest.mark.parametrize(
    ("twin", "seen"),
    [("scaled", {"distance", "density", "exposure"}), ("widened", {"density"})],
    ids=["scaled", "widened"],
)
def test_scales_of_the_members_would_be_seen(
    twin: str, seen: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differing(monkeypatch, twin) == seen


def test_a_distance_is_made_of_the_schema_alone() -> None:
    assert list(inspect.signature(Metric.of).parameters) == ["codec", "skip"]
    narrow = read(drawn(9, 7, spread=1.0), drawn(9, 8, spread=1.0), drawn(9, 9, spread=1.0))
    one, other = Metric.of(LARGE.codec), Metric.of(narrow.codec)
    assert np.array_equal(one.step, other.step) and np.array_equal(one.top, other.top)
    assert one.step == pytest.approx(np.full(20, 1 / 1000))  # of the declared range


def test_bins_and_groups_come_from_the_reference() -> None:
    """Nobody but those asked about, the released table and the reference is handed over."""
    assert list(inspect.signature(groups_of).parameters)[:2] == ["players", "reference"]
    assert list(inspect.signature(log_ratios).parameters)[:3] == ["queries", "table", "known"]
    few = PEOPLE.non_members.take(np.arange(50))
    metric = Metric.of(LARGE.codec)
    first, again = (
        log_ratios(few, LARGE.synthetic, known, LARGE.codec, np.random.default_rng(1))
        for known in (PEOPLE.reference, OTHERS)
    )
    assert not np.allclose(first, again)
    many = LARGE.source.take(np.arange(400))
    far = [groups_of(many, people, LARGE.codec, metric)[1] for people in (PEOPLE.reference, OTHERS)]
    assert far[0].key == far[1].key == "outliers"
    assert (far[0].belongs != far[1].belongs).any()


def whitened(side: Points, released: Points, basis: Points) -> np.ndarray:
    """Nearness to the released table after its numbers were whitened by some people."""
    half = np.linalg.inv(np.linalg.cholesky(np.cov(basis.numbers.T)))
    mine, table = (points.numbers @ half.T for points in (side, released))
    return np.asarray(-((mine[:, None, :] - table[None, :, :]) ** 2).sum(axis=2).min(axis=1))


def test_a_negative_control_is_at_one_half_unless_members_set_the_scale() -> None:
    metric = Metric.of(LARGE.codec)
    every = metric.points(LARGE.source)
    covered = {"schema": 0, "members": 0}
    for seed in range(REPEATS):
        some = np.random.default_rng(seed).permutation(every.rows)
        members, non_members, released = (
            every.take(some[at : at + UNITS]) for at in (0, UNITS, 2 * UNITS)
        )
        found = {
            "schema": [
                -nearest(metric, side, released).squared[:, 0] for side in (members, non_members)
            ],
            "members": [whitened(side, released, members) for side in (members, non_members)],
        }
        for key, (inside, outside) in found.items():
            auc = Roc(inside, outside).auc
            covered[key] += auc.low is not None and auc.low <= 0.5 <= (auc.high or 0.0)
    assert covered["schema"] >= 90
    assert covered["members"] < 50
