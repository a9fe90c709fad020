"""Attackers that learn: judged on people whom they were not told about."""

from __future__ import annotations

import numpy as np

from dpsynth.eval.attack_stats import People, Roc, together
from dpsynth.eval.attacks import membership as module
from dpsynth.eval.distances import Metric

from .test_membership import law, read


def test_classifiers_are_judged_on_people_whom_they_were_not_told_about() -> None:
    """With more features than people, who was told about is known by heart: a twin shows it."""
    honest, twin = [], []
    for seed in range(8):
        cohort = read(*(law(260, 50 * seed + i) for i in (1, 2, 3)))
        people = People.of(cohort, np.random.default_rng(seed))
        players = together(people.members, people.non_members)
        inside = np.isin(np.unique(players.units), people.members.units)
        scores = {
            one.key: one
            for one in module._scored(
                players,
                cohort.synthetic,
                people.reference,
                cohort,
                Metric.of(cohort.codec),
                inside,
                np.random.default_rng(seed),
            )
        }
        assert scores["distance"].judged.all() and scores["density"].judged.all()
        for key in ("queries", "ensemble"):
            judged, values = scores[key].judged, scores[key].values
            assert 0.2 < judged.mean() < 0.8 and (~judged).sum() < 200  # as queries alone
            honest.append(Roc(values[judged & inside], values[judged & ~inside]).auc.value)
            trained = ~judged
            twin.append(Roc(values[trained & inside], values[trained & ~inside]))
    assert 0.44 < np.mean(honest) < 0.56
    assert np.mean([one.auc.value for one in twin]) > 0.65
    assert np.mean([one.found for one in twin]) > 0.7


def test_a_classifier_that_was_told_of_one_side_only_says_nothing() -> None:
    taught, inside = np.array([True, True, False, False]), np.array([True, True, False, True])
    assert module._learned(np.eye(4), inside, taught).tolist() == [0.0] * 4
