"""Facts about pairs of columns, on tables whose answers are known by hand."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Measure, PairedTables, PartResult
from dpsynth.eval.fidelity import relations as module
from dpsynth.eval.fidelity.columns import missingness, undeclared_levels
from dpsynth.eval.fidelity.relations import pair_facts

from ...support.evaluation_tables import number, tables, words

SEX = words("sex", "f", "m")
WARD = words("ward", "birth", "heart")
FIELDS = [SEX, WARD]


def ward(cells: dict[tuple[str, str], int]) -> pd.DataFrame:
    """So many rows of each sex and ward."""
    rows = [pair for pair, count in cells.items() for _ in range(count)]
    return pd.DataFrame(rows, columns=["sex", "ward"])


REAL = ward({("f", "birth"): 400, ("f", "heart"): 100, ("m", "birth"): 0, ("m", "heart"): 500})


def facts(
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame | None = None,
    *,
    source: pd.DataFrame = REAL,
    fields: list[dict[str, Any]] | None = None,
) -> PartResult:
    compared = tables(FIELDS if fields is None else fields, source, synthetic, holdout)
    return pair_facts(PairedTables.of(compared, np.random.default_rng(0)))


def by_key(part: PartResult) -> dict[str, Measure]:
    return {measure.key: measure for measure in part.measures}


def test_independent_columns_have_all_of_what_never_happens() -> None:
    # 1000 rows, half men, 400 of birth: 200 expected men giving birth, and none in the source
    apart = ward(
        {("f", "birth"): 200, ("f", "heart"): 300, ("m", "birth"): 200, ("m", "heart"): 300}
    )
    found = by_key(facts(apart, REAL))
    assert found["never"].estimate.value == pytest.approx(1.0)
    assert found["never_rows"].estimate.value == pytest.approx(0.2)
    assert found["never"].estimate.reference == found["never_rows"].estimate.reference == 0
    assert found["strongest"].estimate.value == pytest.approx(0.0, abs=0.01)
    assert found["strongest"].estimate.reference == pytest.approx(1.0)


def test_a_quarter_of_what_never_happens_and_fewer_rows_than_the_source() -> None:
    some = ward({("f", "birth"): 175, ("f", "heart"): 75, ("m", "birth"): 25, ("m", "heart"): 225})
    found = by_key(facts(some))  # 25 of 500 rows are 50 of 1000, of 200 expected
    assert found["never"].estimate.value == pytest.approx(0.25)
    assert found["never_rows"].estimate.value == pytest.approx(0.05)
    interval = found["never_rows"].estimate
    assert interval.low is not None and 0.02 < interval.low < 0.05 < (interval.high or 0) < 0.08


def test_a_row_in_two_such_cells_is_one_row() -> None:
    fields = [SEX, WARD, words("form", "a", "b")]
    source = REAL.assign(form=np.where(REAL["ward"] == "birth", "a", "b"))
    wrong = source.copy()
    wrong.loc[wrong.index[-100:], ["ward", "form"]] = ["birth", "a"]  # men: two cells a row
    found = by_key(facts(wrong, source=source, fields=fields))
    assert found["never_rows"].estimate.value == pytest.approx(0.1)
    # of 200 expected men with birth, 200 men with form a, 160 + 240 mixed cells of ward and form
    assert found["never"].estimate.value == pytest.approx(200 / (200 + 200 + 240 + 240))


def test_what_is_rare_and_real_is_counted_over_its_real_rows() -> None:
    source = ward({("f", "birth"): 4_000, ("f", "heart"): 1_000, ("m", "birth"): 120}
                  | {("m", "heart"): 4_880})  # fmt: skip
    doubled = ward({("f", "birth"): 3_880, ("f", "heart"): 1_120, ("m", "birth"): 240}
                   | {("m", "heart"): 4_760})  # fmt: skip
    found = by_key(facts(doubled, source, source=source))
    assert found["seldom"].estimate.value == pytest.approx(2.0)
    assert found["seldom"].estimate.reference == pytest.approx(1.0)
    deleted = source[~((source["sex"] == "m") & (source["ward"] == "birth"))]
    assert by_key(facts(deleted, source=source))["seldom"].estimate.value == 0


def test_ratios_of_few_rows_are_not_measured_and_a_note_says_so() -> None:
    few = REAL.iloc[::2]  # 100 expected men giving birth, and no pair is rare
    part = facts(few, source=few)
    assert {"never", "seldom"}.isdisjoint(by_key(part)) and len(part.notes) == 2
    assert by_key(part)["never_rows"].estimate.value == 0


def test_relations_are_listed_by_name_the_strongest_first() -> None:
    rng = np.random.default_rng(1)
    strong = rng.integers(0, 2, 2_000)
    weak = np.where(rng.random(2_000) < 0.7, strong, 1 - strong)
    names = ("no", "yes")
    source = pd.DataFrame({"a": strong, "b": strong, "c": weak})
    half = source.assign(b=np.where(rng.random(2_000) < 0.5, strong, rng.integers(0, 2, 2_000)))
    fields = [words(name, *names) for name in "abc"]
    source, half = (one.map(lambda code: names[code]) for one in (source, half))
    part = facts(half, source, source=source, fields=fields)
    first, *others = part.details["strongest"]
    assert first["columns"] == ["a", "b"]
    assert first["source"] == first["holdout"] == pytest.approx(1.0, abs=1e-3)
    assert first["synthetic"] == pytest.approx(0.5, abs=0.06)
    assert [one["source"] for one in others] == pytest.approx([0.4, 0.4], abs=0.06)
    kept = [min(1.0, one["synthetic"] / one["source"]) for one in part.details["strongest"]]
    assert by_key(part)["strongest"].estimate.value == pytest.approx(np.mean(kept), abs=1e-4)


def test_real_rows_of_other_people_keep_all_facts() -> None:
    rng = np.random.default_rng(2)
    some, other = (REAL.sample(800, replace=True, random_state=rng.integers(9)) for _ in range(2))
    found = by_key(facts(some, other))
    assert found["never"].estimate.value == found["never_rows"].estimate.value == 0
    assert found["strongest"].estimate.value > 0.9


def test_a_table_of_one_column_has_no_pairs() -> None:
    part = facts(REAL[["sex"]], source=REAL[["sex"]], fields=[SEX])
    assert not part.measures and part.details == {"unseen": [], "strongest": []}


def test_the_examples_of_the_docstrings_hold() -> None:
    tried = doctest.testmod(module)
    assert tried.failed == 0 and tried.attempted > 0


def test_other_counts_where_no_real_row_has_it_and_a_declared_level_does_not() -> None:
    level = words("ward", "birth", "heart", "child")
    level["dpsynth"] |= {"on_bad": "other"}
    fields = [level, number("age", 0, 100)]
    source = pd.DataFrame({"ward": ["birth"] * 200, "age": [40] * 200})
    made = source.assign(ward=["other"] * 20 + ["child"] * 30 + ["birth"] * 150)
    compared = tables(fields, source, made, source)
    part = undeclared_levels(PairedTables.of(compared, np.random.default_rng(0)))
    [measure] = part.measures
    assert measure.estimate.value == pytest.approx(0.05)  # 10 % of one of two columns
    assert measure.estimate.reference == 0
    [entry] = part.details["undeclared_levels"]
    assert entry == {"column": "ward", "synthetic": 0.1, "holdout": 0.0}
    real = source.assign(ward=["other"] * 2 + ["birth"] * 198)
    sides = PairedTables.of(tables(fields, real, made), np.random.default_rng(0))
    assert undeclared_levels(sides).measures[0].estimate.value == 0


def test_a_pattern_of_missing_cells_that_no_real_row_has() -> None:
    fields = [number("height", 0, 9), number("weight", 0, 9)]
    both = pd.DataFrame({"height": [1.0] * 150 + [None] * 50, "weight": [2.0] * 150 + [None] * 50})
    torn = both.assign(weight=[2.0] * 120 + [None] * 80)  # 30 rows with a height alone
    sides = PairedTables.of(tables(fields, both, torn, both), np.random.default_rng(0))
    found = by_key(missingness(sides))
    assert found["patterns_unseen"].estimate.value == pytest.approx(0.15)
    assert found["patterns_unseen"].estimate.reference == 0
