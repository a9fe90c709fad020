"""Who plays: disjoint units, all rows of one together, and coins that are fair."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from dpsynth.errors import InputError
from dpsynth.eval.attack_stats import People, by_unit, right
from dpsynth.eval.attack_stats.people import MIN_UNITS, PARTS, PLAYERS
from dpsynth.eval.core import Tables, TableView

from ...support.evaluation_tables import number, tables

UNIT = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
ROWS = {"max_rows": {"value": 9, "basis": "made for this test"}}
SHARES = (0.1, 0.2, 0.5, 0.8)  # of the units, in the holdout


def visits(units: range, rows: int = 1) -> pd.DataFrame:
    names = [f"p{unit}" for unit in units for _ in range(1 + unit % rows)]
    return pd.DataFrame({"unit": names, "a": np.arange(len(names)) % 100})


def read(source: pd.DataFrame, holdout: pd.DataFrame | None) -> Tables:
    drawn = pd.DataFrame({"a": [1, 2, 3]})
    return tables([UNIT, number("a", 0, 100)], source, drawn, holdout, **ROWS)


def bare(units: np.ndarray) -> TableView:
    return TableView(pd.DataFrame({"a": units}), np.zeros((len(units), 1), np.uint16), units)


def dealt(inside: np.ndarray, outside: np.ndarray, seed: int, **more: int) -> People:
    """Deal out units that have one row each, without reading tables."""
    cohort = replace(SMALL, source=bare(inside), holdout=bare(outside))
    return People.of(cohort, np.random.default_rng(seed), **more)


def sets(people: People) -> dict[str, set[int]]:
    return {field.name: set(getattr(people, field.name).units.tolist()) for field in fields(people)}


SMALL = read(visits(range(400)), visits(range(400, 800)))
ENOUGH = round(2 * MIN_UNITS / PARTS[1])


@settings(max_examples=25, deadline=None)
@given(st.integers(400, 700), st.integers(400, 700), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_sets_share_no_unit_and_keep_all_rows_of_each(
    inside: int, outside: int, rows: int, seed: int
) -> None:
    cohort = read(visits(range(inside), rows), visits(range(inside, inside + outside), rows))
    people = People.of(cohort, np.random.default_rng(seed))
    assert cohort.holdout is not None
    got = sets(people)
    assert got["members"] <= set(cohort.source.units.tolist())
    assert got["non_members"] | got["reference"] | got["fresh"] == set(
        cohort.holdout.units.tolist()
    )
    assert got["others"] == got["non_members"] | got["reference"]
    apart = [got[name] for name in ("members", "non_members", "reference", "fresh")]
    assert len(set().union(*apart)) == sum(map(len, apart))
    for field in fields(people):
        view = getattr(people, field.name)
        side = cohort.source if field.name == "members" else cohort.holdout
        assert view.rows == sum(unit in got[field.name] for unit in side.units.tolist())
        assert np.array_equal(view.frame["a"], side.frame["a"][np.isin(side.units, view.units)])


def test_rows_are_units_where_no_column_names_them() -> None:
    frame = pd.DataFrame({"a": np.arange(500) % 100})
    cohort = tables([number("a", 0, 100)], frame, frame.head(3), frame)
    people = People.of(cohort, np.random.default_rng(1))
    assert people.members.rows == len(sets(people)["members"]) > 50
    assert not sets(people)["members"] & sets(people)["others"]


def split(units: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As `dpsynth split` does: a coin of its own for each unit."""
    held = rng.random(units) < share
    return np.flatnonzero(~held), np.flatnonzero(held)


def enough(share: float) -> int:
    """Units of which some 300 are on the smaller side."""
    return round(300 / min(share, 1 - share))


@pytest.mark.long
@pytest.mark.parametrize("share", SHARES)
def test_each_unit_that_plays_is_a_member_with_chance_one_half(share: float) -> None:
    """Over many splits, for each unit and over all: chi-square; and coins do not stick together."""
    rng = np.random.default_rng(round(100 * share))
    units, repeats = enough(share), 200
    coins = np.zeros((repeats, units))
    for repeat in range(repeats):
        inside, outside = split(units, share, rng)
        people = dealt(inside, outside, repeat)
        coins[repeat, people.members.units] = 1
        coins[repeat, people.non_members.units] = -1
    played = np.abs(coins).sum(axis=0)
    squares = coins.sum(axis=0) ** 2 / np.maximum(played, 1)  # (in - out)^2 / (in + out)
    assert played.sum() > 10 * units
    assert chi2.cdf(squares.sum(), (played > 0).sum()) < 0.9999
    assert coins.sum() ** 2 / played.sum() < chi2.isf(1e-4, 1)
    # by halves of the players: if coins were alike, the sums of two halves would go together
    halves = coins[:, ::2].sum(axis=1), coins[:, 1::2].sum(axis=1)
    assert np.corrcoef(*halves)[0, 1] < 0.2
    assert coins.sum(axis=1).var() < 1.3 * np.abs(coins).sum(axis=1).mean()


@pytest.mark.long
@pytest.mark.parametrize("share", SHARES)
def test_a_blind_attacker_guesses_right_as_often_as_fair_coins_fall(share: float) -> None:
    """What bounds of epsilon count: right guesses of r, at their 5 % tail."""
    rng = np.random.default_rng(7 + round(100 * share))
    tails: dict[float, list[bool]] = {part: [] for part in (0.1, 0.4, 1.0)}
    for repeat in range(200):
        people = dealt(*split(enough(share), share, rng), repeat)
        included = np.repeat([True, False], [people.members.rows, people.non_members.rows])
        for part, found in tails.items():
            guesses = 2 * round(part * len(included) / 2)
            hits = right(rng.random(len(included)), included, guesses)
            found.append(bool(binom.sf(hits - 1, guesses, 0.5) < 0.05))
    for found in tails.values():
        assert np.mean(found) < 0.1


@pytest.mark.parametrize("share", SHARES)
def test_a_share_that_ignores_the_sizes_would_be_seen(share: float) -> None:
    """Broken twin: members and non-members are the same share of source and holdout."""
    rng = np.random.default_rng(3)
    balance = players = 0
    for _ in range(400):
        inside, outside = split(400, share, rng)
        members, non_members = (
            int((rng.random(len(one)) < 0.45).sum()) for one in (inside, outside)
        )
        balance, players = balance + members - non_members, players + members + non_members
    refuted = balance**2 / players > chi2.isf(1e-4, 1)
    assert refuted == (share != 0.5)


def test_no_more_than_so_many_play() -> None:
    inside, outside = np.arange(4000), np.arange(4000, 7000)
    for players in (100, 200, 1000):
        for seed in range(10):
            people = dealt(inside, outside, seed, players=players)
            for side in (people.members, people.non_members):
                assert abs(side.rows - players) < 5 * players**0.5
            assert people.fresh.rows == pytest.approx(PARTS[2] * 3000, abs=5 * 600**0.5)
            rest = 3000 - people.non_members.rows - people.fresh.rows
            assert people.reference.rows == rest  # who does not play is known to the attacker
    assert PLAYERS == 5000 and sum(PARTS) == 1


def test_a_small_source_limits_both_sides_alike() -> None:
    people = dealt(np.arange(300), np.arange(300, 3300), 1)
    for side in (people.members, people.non_members):
        assert abs(side.rows - PARTS[0] * 300) < 5 * 135**0.5


def test_the_same_generator_deals_the_same_sets() -> None:
    first, again, other = (sets(People.of(SMALL, np.random.default_rng(s))) for s in (1, 1, 2))
    assert first == again != other


def test_without_a_holdout_the_words_say_what_to_do() -> None:
    with pytest.raises(InputError, match="name a holdout; `dpsynth split` makes one"):
        People.of(read(visits(range(300)), None), np.random.default_rng(1))


@pytest.mark.parametrize("sizes", [(40, 300), (300, 40), (20, 20)], ids=str)
def test_too_few_people_are_refused_with_a_number_that_is_enough(sizes: tuple[int, int]) -> None:
    cohort = read(visits(range(sizes[0])), visits(range(sizes[0], sum(sizes))))
    with pytest.raises(InputError, match=f"about {ENOUGH} units each"):
        People.of(cohort, np.random.default_rng(1))
    for seed in range(200):
        people = dealt(np.arange(ENOUGH), np.arange(ENOUGH, 2 * ENOUGH), seed)
        sides = (people.members, people.non_members, people.reference)
        assert min(side.rows for side in sides) >= MIN_UNITS


@pytest.mark.parametrize("both", [("members", "reference"), ("non_members", "fresh")], ids=str)
def test_sets_that_share_a_unit_are_refused(both: tuple[str, str]) -> None:
    people = People.of(SMALL, np.random.default_rng(1))
    with pytest.raises(InputError, match="share a unit"):
        replace(people, **{both[1]: getattr(people, both[0]).take(np.array([0]))})


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=20))
def test_a_figure_of_a_unit_is_the_mean_over_its_rows(rows: list[tuple[int, int]]) -> None:
    of, values = np.array([r[0] for r in rows]), np.array([float(r[1]) for r in rows])
    units, means = by_unit(bare(of), values)
    assert units.tolist() == sorted(set(of.tolist()))
    for unit, mean in zip(units, means, strict=True):
        mine = [value for whose, value in rows if whose == unit]
        assert mean == pytest.approx(sum(mine) / len(mine))
