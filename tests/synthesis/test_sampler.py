"""Sampling: the same table from the same run, seed and rows; rules and conditions hold.

The run is `independent` with flat histograms: each code of a column is equally likely, so the
expected shares are known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pandas.testing
import pytest

import dpsynth
from dpsynth._util.seeds import check_seed, fresh_seed
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.schema import Rule
from dpsynth.synthesis import Run, Sampler
from dpsynth.synthesis.sampler import BLOCK
from dpsynth.tables import write_table


def joined(run: Run, rows: int, seed: int, where: str | None = None) -> pd.DataFrame:
    return pd.concat(Sampler.of(run, where=where).frames(rows, seed=seed), ignore_index=True)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("dpsynth.synthesis.sampler.BLOCK", 64)
    return 64


# Rows, blocks, seeds --------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_as_many_rows_as_asked_in_frames_of_a_block(
    made_run: Run, rows: int, small_blocks: int
) -> None:
    frames = list(Sampler.of(made_run).frames(rows, seed=1))
    assert sum(map(len, frames)) == rows
    assert [len(frame) for frame in frames[:-1]] == [small_blocks] * (len(frames) - 1)
    for frame in frames:
        assert list(frame.index) == list(range(len(frame)))
        assert list(frame.columns) == [column.name for column in made_run.schema.modelled]


def test_the_real_block_is_kept_to(made_run: Run) -> None:
    frames = list(Sampler.of(made_run).frames(BLOCK + 10, seed=1))
    assert [len(frame) for frame in frames] == [BLOCK, 10]


def test_the_same_seed_gives_the_same_table(made_run: Run) -> None:
    first, again, other = (joined(made_run, 300, seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_a_block_does_not_depend_on_those_before_it(made_run: Run, small_blocks: int) -> None:
    """Whole blocks are the same in a longer table, and whatever else is drawn in between."""
    short = list(Sampler.of(made_run).frames(3 * small_blocks, seed=2))
    sampler = Sampler.of(made_run)
    long, aside = sampler.frames(5 * small_blocks, seed=2), sampler.frames(1000, seed=3)
    for frame in short:
        next(aside)
        pd.testing.assert_frame_equal(next(long), frame)


def test_blocks_differ_from_one_another(made_run: Run, small_blocks: int) -> None:
    frames = list(Sampler.of(made_run).frames(4 * small_blocks, seed=2))
    assert not any(frames[0].equals(frame) for frame in frames[1:])
    assert not frames[0].equals(next(Sampler.of(made_run).frames(small_blocks, seed=3)))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_the_same_file_however_the_frames_are_cut(
    made_run: Run, tmp_path: Path, small_blocks: int, suffix: str
) -> None:
    frames = list(Sampler.of(made_run).frames(200, seed=4))
    write_table(frames, tmp_path / f"blocks{suffix}", made_run.schema)
    whole = pd.concat(frames, ignore_index=True)
    write_table([whole], tmp_path / f"whole{suffix}", made_run.schema)
    odd = [whole.iloc[:7], whole.iloc[7:150], whole.iloc[150:]]
    write_table(odd, tmp_path / f"odd{suffix}", made_run.schema)
    contents = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(contents) == 1


def test_blocks_have_the_same_types(made_run: Run, small_blocks: int) -> None:
    """Also where rows were drawn again: an append must not turn Int64 into float."""
    types = Sampler.of(made_run).codec.decode(
        np.zeros((1, len(made_run.schema.modelled)), dtype=np.uint16), np.random.default_rng(0)
    )
    where = "smoker == true"
    for frame in Sampler.of(made_run, where=where).frames(200, seed=5):
        pd.testing.assert_series_equal(frame.dtypes, types.dtypes)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63 - 1])
def test_seeds_of_the_whole_range(made_run: Run, seed: int) -> None:
    assert len(dpsynth.sample(made_run, 5, seed=seed)) == 5
    check_seed(seed)


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64])
def test_seeds_outside_are_refused(made_run: Run, seed: int) -> None:
    with pytest.raises(InputError, match="seed must lie between 0 and 9223372036854775807"):
        dpsynth.sample(made_run, 5, seed=seed)


def test_fresh_seeds_are_fresh_and_in_range() -> None:
    seeds = {fresh_seed() for _ in range(50)}
    assert len(seeds) == 50  # false alarm: 50^2 / 2^64
    for seed in seeds:
        check_seed(seed)


@pytest.mark.parametrize("rows", [0, -5])
def test_no_rows_are_refused(made_run: Run, rows: int) -> None:
    with pytest.raises(InputError, match="rows must be at least 1"):
        dpsynth.sample(made_run, rows, seed=1)


def test_progress_rises_to_one(made_run: Run, small_blocks: int) -> None:
    parts: list[float] = []
    list(Sampler.of(made_run).frames(200, seed=1, progress=parts.append))
    assert parts == sorted(parts) and parts[-1] == 1.0 and len(parts) == 4


def test_rows_are_what_the_run_says(made_run: Run) -> None:
    """Flat histograms: 82 ages, 3 levels of smoker with missing. Five standard errors."""
    drawn = dpsynth.sample(made_run, 50_000, seed=7)
    ages = drawn["age"].value_counts(normalize=True)
    assert set(ages.index) == set(range(18, 100))
    # the rule drops rows by their dates only, which are drawn apart from age
    assert (abs(ages - 1 / 82) < 5 * np.sqrt(1 / 82 / 50_000)).all()
    assert drawn["smoker"].isna().mean() == pytest.approx(1 / 3, abs=5 * np.sqrt(0.25 / 50_000))


# Rules and conditions -------------------------------------------------------------------------


def test_the_rules_of_the_schema_hold(made_run: Run) -> None:
    """About half of the drawn pairs of dates break the rule; none may be left."""
    drawn = dpsynth.sample(made_run, 5000, seed=8)
    both = drawn["admitted"].notna()
    assert (drawn["admitted"][both] <= drawn["discharged"][both]).all()
    assert (~both).any()  # an undecided rule is not broken
    assert Codec(made_run.schema).conforms(drawn) == []
    free = replace(made_run, schema=replace(made_run.schema, rules=()))
    unruled = dpsynth.sample(free, 5000, seed=8)
    assert (unruled["admitted"] > unruled["discharged"]).mean() > 0.3


def test_rejection_keeps_the_law_of_what_is_left(made_run: Run) -> None:
    """Given admitted <= discharged, two flat dates are a triangle: P(discharged in the first half)
    is 1/4 where admitted is present. Expected by hand, five standard errors."""
    drawn = dpsynth.sample(made_run, 40_000, seed=9)
    present = drawn[drawn["admitted"].notna()]
    middle = pd.Timestamp("2018-01-01")  # of 2015-01-01 to 2020-12-31, a day off at most
    share = (present["discharged"] < middle).mean()
    assert share == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / len(present)) + 0.002)


def test_a_condition_holds_in_every_row(made_run: Run) -> None:
    drawn = joined(made_run, 500, 10, where="age >= 65 and sex == 'F'")
    assert len(drawn) == 500
    assert (drawn["age"] >= 65).all() and (drawn["sex"] == "F").all()
    both = drawn["admitted"].notna()
    assert (drawn["admitted"][both] <= drawn["discharged"][both]).all()


@pytest.mark.parametrize(
    ("where", "column"),
    [("weight > 50", "weight"), ("not sex == 'F'", "sex"), ("born != 1950", "born")],
)
def test_a_condition_is_not_met_by_a_missing_value(made_run: Run, where: str, column: str) -> None:
    """A rule of the schema is not broken by what is unknown; a filter is not satisfied by it."""
    drawn = joined(made_run, 500, 11, where=where)
    assert drawn[column].notna().all()
    assert Rule.parse(where).holds(drawn, missing=False).all()


@pytest.mark.parametrize("rows", [1, 2, 10])
@pytest.mark.parametrize("seed", range(8))
def test_a_rare_condition_is_met_whatever_the_number_of_rows(
    made_run: Run, rows: int, seed: int
) -> None:
    """One row in 82 has this age: rare, but far above the limit of one in 1000."""
    drawn = joined(made_run, rows, seed, where="age == 20")
    assert (drawn["age"] == 20).all() and len(drawn) == rows


@pytest.mark.parametrize("rows", [1, 1000])
def test_an_impossible_condition_ends_with_a_clear_error(made_run: Run, rows: int) -> None:
    with pytest.raises(InputError, match="age > 200") as caught:
        joined(made_run, rows, 1, where="age > 200")
    assert "the declared bounds or categories exclude it" in str(caught.value)


def test_a_condition_that_only_drawn_rows_can_rule_out_is_told_from_the_rules(
    made_run: Run,
) -> None:
    rule = Rule.parse("age > 40 or (age == 20 and weight == 77.5 and weight < 78)")
    ruled = replace(made_run, schema=replace(made_run.schema, rules=(rule,)))
    with pytest.raises(InputError) as caught:
        joined(ruled, 1000, 1, where="age < 30")
    message = f"the condition age < 30 and meets the schema's rules {rule.text}; loosen the cond"
    assert message in str(caught.value)


def test_a_condition_that_the_rules_exclude_is_refused_before_a_row_is_drawn(
    made_run: Run,
) -> None:
    ruled = replace(made_run, schema=replace(made_run.schema, rules=(Rule.parse("age > 40"),)))
    words = "no row can meet 'age < 30' beside what the schema declares: 'age > 40'"
    with pytest.raises(InputError, match=words):
        joined(ruled, 1, 1, where="age < 30")


def test_rules_that_contradict_each_other_end_with_a_clear_error(made_run: Run) -> None:
    rules = (Rule.parse("age < 30"), Rule.parse("age > 40"))
    contradictory = replace(made_run, schema=replace(made_run.schema, rules=rules))
    with pytest.raises(InputError, match="age < 30; age > 40"):
        dpsynth.sample(contradictory, 100, seed=1)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("weigth > 50", "did you mean 'weight'"),
        ("key == 'a'", "key"),  # the unit's key is not drawn
        ("grade == 7", "no category '?7"),
        ("age == 'old'", "age"),
        ("admitted > 'yesterday'", "date"),
        ("age >", "age >"),
        ("age > 20; import os", "character"),
        ("", "a column or a value is expected"),  # perhaps a shell variable that is not set
    ],
)
def test_a_wrong_condition_is_refused_before_a_row_is_drawn(
    made_run: Run, where: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Sampler.of(made_run, where=where)
