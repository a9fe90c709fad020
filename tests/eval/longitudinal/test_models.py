"""Models of histories: what is predicted, what is learned from, and who is tested."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dpsynth.encoding import Histories
from dpsynth.eval.core import PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, HistoryFacts, chosen
from dpsynth.eval.longitudinal.prediction import prediction, summaries, tasks, told_apart

from ...support.history_cohorts import codec, cohort, shuffled_between

CODEC = codec()
FACTS = HistoryFacts.of(CODEC)
TRAIN, HOLDOUT = cohort(700, seed=1), cohort(600, seed=2)


def compared(synthetic: Histories, holdout: Histories | None = HOLDOUT) -> Compared:
    """Cohorts side by side."""
    return Compared.of(CODEC, synthetic, TRAIN, holdout, np.random.default_rng(0))


def figure(part: PartResult, key: str) -> tuple[float, float, float]:
    """A figure and its references."""
    one = next(one.estimate for one in part.measures if one.key == key)
    assert one.reference is not None and one.chance is not None
    return one.value, one.reference, one.chance


@cache
def of_the_same_law() -> PartResult:
    """What is predicted from a cohort of the same law."""
    return prediction(compared(cohort(700, seed=3)), np.random.default_rng(1))


def test_what_is_predicted_follows_from_the_schema() -> None:
    titles = [one.title for one in tasks(Cohort.of(FACTS, TRAIN))]
    assert titles == [
        "labs: hdl: next value is high",
        "labs: hdl: another row follows",
        f"labs: smoke: next value is {titles[2].rpartition(' ')[2]}",
        "labs: smoke: another row follows",
        "visits: next stay is high",
        titles[5],
        "visits: another row follows",
        "1 within 912 days",
        "mi within 912 days",
    ]


def test_the_future_is_never_among_what_is_known() -> None:
    """No task can see what comes: the answer of a row is not a function of its features."""
    own = Cohort.of(FACTS, TRAIN)
    for task in tasks(own):
        examples = task.examples(own)
        names = set(examples.table.columns)
        assert "patient: dead" not in names and "patient: end" not in names
        for column in examples.table.columns.values():
            known = np.isfinite(column)
            low, high = (column[known & (examples.truth == one)] for one in (False, True))
            apart = len(low) and len(high) and (low.max() < high.min() or high.max() < low.min())
            assert not apart, task.title


@pytest.mark.long
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_next_row_is_learned_from_a_cohort_of_the_same_law_and_not_from_a_broken_twin() -> None:
    good = of_the_same_law()
    bad = prediction(
        compared(shuffled_between(cohort(700, seed=3, hazard=1.0))), np.random.default_rng(1)
    )
    value, real, again = figure(good, "tstr_next")
    assert value == pytest.approx(real, abs=0.03) and again == pytest.approx(real, abs=0.03)
    assert figure(bad, "tstr_next")[0] < real - 0.05
    assert figure(bad, "tstr_next")[1] == real  # the same models of real patients


@pytest.mark.long
def test_outcomes_are_learned_unless_they_depend_on_nothing() -> None:
    drawn = cohort(700, seed=3)
    rng = np.random.default_rng(5)
    who = rng.permutation(700)
    dealt = Histories(  # the follow-up of another patient
        np.column_stack([drawn.baseline[:, :2], drawn.baseline[who][:, 2:]]),
        drawn.ends[who],
        drawn.onsets[who],
        tuple(tuple(drawn_rows for drawn_rows in table) for table in drawn.rows),
    )
    value, real, _ = figure(of_the_same_law(), "tstr_outcome")
    assert value > real - 0.06 and real > 0.65
    found = figure(prediction(compared(dealt), np.random.default_rng(1)), "tstr_outcome")
    assert found[0] < 0.6


@pytest.mark.long
def test_without_a_holdout_a_part_of_train_is_tested_and_it_is_said() -> None:
    part = prediction(compared(cohort(700, seed=3), None), np.random.default_rng(1))
    assert any("no holdout" in note for note in part.notes)
    assert figure(part, "tstr_next")[1] > 0.6


@pytest.mark.long
def test_a_cohort_without_events_teaches_nothing() -> None:
    drawn = cohort(700, seed=3)
    never = Histories(
        np.column_stack([drawn.baseline[:, :3], 0 * drawn.baseline[:, 3]]),
        drawn.ends,
        np.full_like(drawn.onsets, np.iinfo(np.int64).min),
        drawn.rows,
    )
    part = prediction(compared(never), np.random.default_rng(1))
    assert figure(part, "tstr_outcome")[0] == 0.5


@pytest.mark.long
def test_patients_of_the_same_law_cannot_be_told_apart() -> None:
    same = told_apart(compared(cohort(700, seed=3)), np.random.default_rng(1))
    value, real, halves = figure(same, "trajectory_c2st")
    assert max(abs(x - 0.5) for x in (value, real, halves)) < 0.08


@pytest.mark.long
def test_patients_of_another_law_are_told_apart() -> None:
    twin = compared(shuffled_between(cohort(400, seed=3)), cohort(400, seed=4))
    other = told_apart(twin, np.random.default_rng(1))
    assert figure(other, "trajectory_c2st")[0] > 0.65
    assert other.details["telling"][0]["importance"] > 0


@pytest.mark.long
def test_copies_of_patients_are_in_one_fold_each() -> None:
    """A bootstrap as reference would be told apart by its copies; halves of train are not."""
    part = told_apart(compared(chosen(TRAIN, np.arange(600)), None), np.random.default_rng(1))
    one = part.measures[0].estimate
    assert one.reference is None and one.chance is not None and abs(one.chance - 0.5) < 0.09


def test_summaries_of_a_patient_by_hand() -> None:
    own = Cohort.of(FACTS, chosen(TRAIN, np.arange(40)))
    table = summaries(own)
    hdl = own.series[0]
    who = int(np.flatnonzero(hdl.counts > 2)[0])
    mine = hdl.patients == who
    values, days = hdl.numbers(0)[mine], hdl.days[mine]
    found = {name: column[who] for name, column in table.columns.items()}
    assert found["labs: hdl: rows"] == len(values)
    assert found["labs: hdl: mean"] == pytest.approx(values.mean())
    assert found["labs: hdl: spread"] == pytest.approx(values.std())
    assert (found["labs: hdl: first"], found["labs: hdl: last"]) == (values[0], values[-1])
    assert found["labs: hdl: mean change"] == pytest.approx(np.abs(np.diff(values)).mean())
    assert found["labs: hdl: longest gap"] == pytest.approx(np.log1p(np.diff(days)).max())
    assert np.isnan(table.columns["scans: first day"]).all()
    assert table.matrix.shape == (40, len(table.mask))
