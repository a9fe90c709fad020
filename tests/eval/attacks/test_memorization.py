"""Memorisation: copied and approached people are found, generalisation is not."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dpsynth.eval.attack_stats import Attack, MatchedGroups, People
from dpsynth.eval.attack_stats.result import ALARM
from dpsynth.eval.attacks.memorization import ClosestRecord, memorization
from dpsynth.eval.core import Tables

from ...support.evaluation_tables import number, tables, words

UNIT = {"name": "unit", "type": "string", "dpsynth": {"role": "unit"}}
NUMBERS = ("u", "v", "w")
LEVELS = ("a", "b", "c", "d")


def roled(field: dict[str, Any], role: str) -> dict[str, Any]:
    return field | {"dpsynth": field["dpsynth"] | {"role": role}}


FIELDS = [
    UNIT,
    *(number(name, 0, 10_000) for name in NUMBERS),
    roled(words("p", *LEVELS), "quasi_identifier"),
    roled(number("q", 0, 60), "quasi_identifier"),
    roled(number("r", 0, 40), "quasi_identifier"),
    roled(words("s", *LEVELS), "sensitive"),
]
PLAIN = [UNIT, *(words(f"c{i}", *LEVELS) for i in range(8))]
ROWS = {"max_rows": {"value": 100, "basis": "made for this test"}}


def law(units: int, seed: int, rows: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = units * rows
    factor = np.repeat(rng.normal(size=units), rows)
    cells: dict[str, Any] = {"unit": np.repeat([f"{seed}-{i}" for i in range(units)], rows)}
    for name in NUMBERS:
        cells[name] = np.clip(5000 + 1200 * (factor + rng.normal(size=n)), 0, 10_000).astype(int)
    cells["p"] = rng.choice(LEVELS, n)
    cells["q"] = rng.integers(0, 61, n)
    cells["r"] = rng.integers(0, 41, n)
    cells["s"] = rng.choice(LEVELS, n)
    return pd.DataFrame(cells)


def plain(units: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells = {f"c{i}": rng.choice(LEVELS, units) for i in range(8)}
    return pd.DataFrame({"unit": [f"{seed}-{i}" for i in range(units)]} | cells)


def read(
    source: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    fields: list[dict[str, Any]] = FIELDS,
) -> Tables:
    return tables(fields, source, synthetic.drop(columns="unit"), holdout, **ROWS)


def attacked(read_tables: Tables, seed: int = 0) -> Attack:
    people = People.of(read_tables, np.random.default_rng(seed))
    return memorization(read_tables, people, np.random.default_rng(seed))


def found(attack: Attack) -> set[str]:
    return {
        finding.key.removeprefix("memorization:") for finding in attack.findings if finding.found
    }


def values(attack: Attack) -> dict[str, float]:
    return {measure.key: measure.estimate.value for measure in attack.part.measures}


def partly(source: pd.DataFrame, share: float, seed: int, jitter: int = 0) -> pd.DataFrame:
    """A table of the same law, of which some rows are the source's, moved a bit."""
    rng = np.random.default_rng(seed)
    rows = law(len(source), seed)
    some = rng.choice(len(source), round(share * len(source)), replace=False)
    kept = source.iloc[some].copy()
    for name in NUMBERS if jitter else ():
        kept[name] = np.clip(kept[name] + rng.integers(-jitter, jitter + 1, len(kept)), 0, 10_000)
    return pd.concat([rows.iloc[: len(rows) - len(kept)], kept], ignore_index=True)


SOURCE, HOLDOUT = law(1500, 1), law(900, 2)


def test_ten_percent_of_copied_rows_are_found_in_every_way() -> None:
    attack = attacked(read(SOURCE, partly(SOURCE, 0.1, 3), HOLDOUT))
    assert found(attack) >= {"copies", "near", "unique"}
    got = values(attack)
    assert got["copies_units"] == pytest.approx(0.1, abs=0.03)
    assert got["copies_rows"] == got["copies_units"]
    assert 0.52 < got["closer"] < 0.58
    least = {power.key.removeprefix("memorization:"): power.least for power in attack.powers}
    assert list(least) == [finding.key.removeprefix("memorization:") for finding in attack.findings]
    assert least["copies"] is not None and least["copies"] < 0.1
    assert least["closer"] is not None and 0.1 < least["closer"] < 1  # so it may miss this leak


def test_a_table_of_copies_is_seen_at_outliers_and_in_ratios() -> None:
    attack = attacked(read(SOURCE, partly(SOURCE, 0.9, 3), HOLDOUT))
    assert found(attack) == {"copies", "near", "closer", "unique", "outliers"}
    [ratio] = [m for m in attack.part.measures if m.key == "distance_ratio"]
    assert ratio.estimate.high is not None and ratio.estimate.reference is not None
    assert ratio.estimate.high < ratio.estimate.reference == ratio.best
    assert values(attack)["outliers"] > 0.6


def test_moved_copies_are_no_copies_but_near() -> None:
    attack = attacked(read(SOURCE, partly(SOURCE, 0.1, 3, jitter=100), HOLDOUT))
    assert "near" in found(attack) and "copies" not in found(attack)
    assert values(attack)["copies_near_units"] == pytest.approx(0.1, abs=0.03)
    half = attacked(read(SOURCE, partly(SOURCE, 0.6, 3, jitter=100), HOLDOUT))
    assert {"near", "closer"} <= found(half) and "copies" not in found(half)


@pytest.mark.long
@pytest.mark.parametrize(
    ("samples", "least"), [(10, 7), pytest.param(30, 25, marks=pytest.mark.long)]
)
def test_a_fresh_sample_of_the_law_raises_no_alarm(samples: int, least: int) -> None:
    covered = 0
    for seed in range(samples):
        source, synthetic, holdout = (law(250, 100 * seed + i) for i in range(1, 4))
        attack = attacked(read(source, synthetic, holdout), seed)
        assert found(attack) == set(), seed
        [closer] = [m.estimate for m in attack.part.measures if m.key == "closer"]
        assert closer.low is not None and closer.high is not None
        covered += closer.low <= 0.5 <= closer.high
    assert covered >= least


def test_people_with_many_rows_count_once() -> None:
    source, holdout = law(400, 1, rows=4), law(300, 2, rows=4)
    cohort = read(source, pd.concat([law(300, 3), source.iloc[:80]]), holdout)
    attack = attacked(cohort)
    copies = {copy["what"]: copy["success"] for copy in attack.part.details["copies"]}
    units = copies["People with a row equal to a synthetic row"]["members"]
    rows = copies["Rows equal to a synthetic row"]["members"]
    assert units["runs"] == attack.part.details["units"] < 300
    assert rows["runs"] == 4 * units["runs"] == attack.part.details["rows"]["source"]
    assert rows["hits"] == 4 * units["hits"] and units["hits"] <= 20


def test_a_unit_of_fifty_equal_rows_counts_once() -> None:
    """Half of the synthetic rows are one person's row, fifty times in the source."""
    source, holdout = law(250, 1), law(250, 2)
    source = pd.concat([source, source.iloc[[0] * 49]])
    synthetic = pd.concat([law(150, 3), source.iloc[[0] * 150]])
    read_tables = read(source, synthetic, holdout)
    for seed in range(9):
        attack = attacked(read_tables, seed)
        if values(attack)["closer"] > 0.6:  # the person was drawn
            break
    else:
        raise AssertionError("the person was never drawn")
    copies = attack.part.details["copies"]
    assert [copy["success"]["members"]["hits"] for copy in copies][:2] == [50, 1]
    assert found(attack) == set()
    [closer] = [m.estimate for m in attack.part.measures if m.key == "closer"]
    assert closer.low is not None and closer.low < 0.5 < 0.7 < closer.value


def test_the_shares_error_is_that_of_flipping_pairs() -> None:
    source, holdout = np.array([3.0, 1.0, 0.5]), np.array([0.0, 2.0, 0.5])
    closest = ClosestRecord(source, holdout)
    assert closest.share == pytest.approx(4.5 / 7)
    flips = np.array(np.meshgrid(*[[False, True]] * 3)).reshape(3, -1).T
    shares = [np.where(flip, source, holdout).sum() / 7 for flip in flips]
    assert closest.error == pytest.approx(np.std(shares))
    assert not closest.found


@pytest.mark.long
def test_a_weighted_sum_of_coins_is_found_as_seldom_as_promised() -> None:
    """The bound of the test against the law of sixty pairs, equal and uneven."""
    rng = np.random.default_rng(1)
    for weights in (np.ones(60), rng.pareto(1.0, 60) + 0.01, np.r_[20.0, np.ones(59)]):
        coins = rng.random((20_000, 60)) < 0.5
        alarms = sum(ClosestRecord(weights * coin, weights * ~coin).found for coin in coins)
        assert alarms <= 20_000 * ALARM + 3 * math.sqrt(20_000 * ALARM)
    least = norm.isf(ALARM / 3.18) / (2 * math.sqrt(60))
    inside = math.ceil((0.5 + least) * 60)
    for count in (inside - 1, inside):
        one = np.arange(60) < count
        assert ClosestRecord(1.0 * one, 1.0 * ~one).found == (count == inside)


def test_the_power_counts_rows_of_people_who_were_not_drawn() -> None:
    one = np.arange(5000) % 2
    closest = ClosestRecord(2.0 * one, 2.0 * (1 - one))
    every, some = closest.power(5000).least, closest.power(15_000).least
    assert every is not None and some == pytest.approx(3 * every)
    share = 0.5 + every / 2  # of nearer rows
    assert norm.cdf((share - 0.5) / closest.error - norm.isf(ALARM / 3.18)) == pytest.approx(0.9)
    assert ClosestRecord(2.0 * one[:6], 2.0 * (1 - one[:6])).power(6).least is None
    assert not ClosestRecord(np.ones(5), np.ones(5)).found


def test_the_answer_is_the_generators_and_json() -> None:
    read_tables = read(law(300, 1), law(300, 3), law(250, 2))
    first, second, other = (attacked(read_tables, seed) for seed in (5, 5, 6))
    assert first == second and first != other
    details = json.loads(json.dumps(first.part.details, allow_nan=False))
    assert set(details) == {
        *("units", "rows", "distances", "histogram", "ratios", "copies", "unique", "outliers"),
    }
    assert sum(details["histogram"]["source"]) == pytest.approx(1)
    assert len(details["histogram"]["edges"]) == len(details["histogram"]["source"]) + 1
    assert [one["columns"] for one in details["unique"]] == [
        *(["p", "q", "r"], ["p", "q"], ["p", "r"], ["q", "r"]),
    ]
    assert all("smoke test" in measure.meaning for measure in first.part.measures)


def test_a_table_of_categories_without_quasi_identifiers() -> None:
    source, holdout = plain(400, 1), plain(300, 2)
    quiet = attacked(read(source, plain(400, 3), holdout, PLAIN))
    assert found(quiet) == set()
    assert {finding.key.split(":")[1] for finding in quiet.findings} == {
        *("copies", "near", "closer", "outliers"),
    }
    assert any("no quasi-identifier is declared" in note for note in quiet.part.notes)
    assert not [measure for measure in quiet.part.measures if measure.key.startswith("unique")]
    copied = attacked(read(source, pd.concat([plain(300, 3), source[:100]]), holdout, PLAIN))
    assert found(copied) >= {"copies", "near"}
    got = values(copied)
    assert got["copies_units"] == got["copies_near_units"] > 0.15


def test_unique_people_are_those_whom_nobody_of_either_side_equals() -> None:
    """Counted by hand, where all of both sides are compared: sixty combinations of p and q."""
    source, holdout = law(120, 1), law(150, 2)
    for table in (source, holdout):
        table["q"] = table["q"] % 15
    fields = [field for field in FIELDS if field["name"] != "r"]
    synthetic = pd.concat([law(200, 3), source.iloc[:60].assign(u=0, v=0, w=0)])
    read_tables = read(source, synthetic, holdout, fields)
    some = [read_tables.source] + [read_tables.holdout.take(np.arange(i, 150, 3)) for i in range(3)]
    others = People(*some, others=read_tables.holdout)
    sides = MatchedGroups.of(read_tables, others.others, np.random.default_rng(4))
    attack = memorization(read_tables, others, np.random.default_rng(4))
    known, learned = ["p", "q"], ["p", "q", "s"]
    pair = [side.view.frame[learned].astype(object) for side in (sides.source, sides.holdout)]
    alone = ~pd.concat(pair).duplicated(known, keep=False).to_numpy()
    drawn = set(synthetic[learned].itertuples(index=False, name=None))
    [only] = attack.part.details["unique"]
    assert 0 < alone[:120].sum() < (~pair[0].duplicated(known, keep=False)).sum() < 120
    for name, frame, single in zip(
        ("members", "controls"), pair, (alone[:120], alone[120:]), strict=True
    ):
        rows = list(frame[single].itertuples(index=False, name=None))
        assert only["success"][name]["runs"] == len(rows)
        assert only["success"][name]["hits"] == sum(row in drawn for row in rows)
    assert 0 < only["success"]["members"]["hits"] < only["success"]["members"]["runs"]


def test_unusual_people_are_compared_with_unusual_people() -> None:
    """Only people whom nobody resembles are remembered: nothing else than outliers shows it."""
    source, holdout = law(3000, 1), law(2500, 2)
    far = [table.index[::15] for table in (source, holdout)]
    for table, rows in zip((source, holdout), far, strict=True):
        table.loc[rows, ["u", "v"]] = np.random.default_rng(len(rows)).permuted(
            np.tile([[0, 10_000]], (len(rows), 1)), axis=1
        )
        table.loc[rows, "w"] = np.random.default_rng(1 + len(rows)).integers(0, 10_001, len(rows))
    kept = source.loc[far[0]]
    attack = attacked(read(source, pd.concat([law(2000, 3), kept]), holdout))
    units = attack.part.details["outliers"]["units"]
    assert "outliers" in found(attack) and values(attack)["outliers"] > 0.8
    whole = People.of(read(source, kept, holdout), np.random.default_rng(0)).non_members
    assert sum(units.values()) == round(0.05 * 2 * len(np.unique(whole.units)))
    usual = source.drop(far[0]).sample(len(kept), random_state=0)
    other = attacked(read(source, pd.concat([law(2000, 3), usual]), holdout))
    assert "outliers" not in found(other) and "copies" in found(other)


def test_of_many_quasi_identifiers_some_sets_are_tried() -> None:
    fields = [UNIT, *(roled(words(f"c{i}", *LEVELS), "quasi_identifier") for i in range(8))]
    attack = attacked(read(plain(300, 1), plain(300, 3), plain(300, 2), fields))
    tried = [tuple(one["columns"]) for one in attack.part.details["unique"]]
    assert len(tried) <= 20 and len(set(tried)) == len(tried) and len(tried[0]) == 8
    assert any("20 were tried" in note for note in attack.part.notes)
    assert "unique:8" in values(attack) and "unique" not in found(attack)
