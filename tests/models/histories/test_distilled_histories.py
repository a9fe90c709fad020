"""`distilled` of linked tables: the counts of `cohort`, and a network that nothing else reads."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories import CohortGenerator, DistilledHistories, PersonTable
from dpsynth.models.histories.networks import choice, choose_linked, shares_of_linked
from dpsynth.models.histories.persons import table
from dpsynth.models.registry import COHORT
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import domain_of, histories_of
from ...support.short_training import shorten_histories

PATIENTS = 150
BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


@pytest.fixture(scope="module")
def fitted() -> DistilledHistories:
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        generator = DistilledHistories(domain_of(PATIENTS))
        plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
        generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1))
    return generator


def test_it_spends_what_cohort_spends() -> None:
    domain = domain_of(PATIENTS)
    shares = [kind(domain).shares(BUDGET) for kind in (CohortGenerator, DistilledHistories)]
    assert shares[0] == shares[1]
    assert shares[1] == shares_of_linked("distilled", domain, BUDGET)


def test_a_run_draws_as_what_was_fitted(fitted: DistilledHistories) -> None:
    assert fitted.network is not None and fitted.network.network.shape.given == 3
    rebuilt = DistilledHistories.restore(fitted.domain, fitted.config(), fitted.arrays())
    drawn = [one.sample(40, np.random.default_rng(1)) for one in (fitted, rebuilt)]
    assert np.array_equal(drawn[0].baseline, drawn[1].baseline)
    assert np.array_equal(drawn[0].onsets, drawn[1].onsets)


def test_after_the_counts_nobody_is_read(
    fitted: DistilledHistories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Histories and plan could as well be gone: the network follows from the mixture alone."""
    shorten_histories(monkeypatch)
    gone: object = None
    networks = []
    for entropy in (SeededEntropy(3), SeededEntropy(3)):
        again = DistilledHistories.restore(fitted.domain, fitted.config(), fitted.arrays())
        again._train(gone, {}, gone, entropy, lambda *_: None, gone)  # type: ignore[arg-type]
        assert again.network is not None
        networks.append(again.network.arrays())
    for name, array in networks[0].items():
        assert np.array_equal(array, networks[1][name])


def test_auto_leaves_tables_of_very_many_codes_to_the_mixture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = domain_of(PATIENTS)
    monkeypatch.setattr(choice, "WIDE", 0)
    codes = sum(min(one.size, 16) for one in PersonTable(domain).features)
    for limit, chosen in ((codes, "distilled"), (codes - 1, COHORT)):
        monkeypatch.setattr(table, "MOST_CODES", limit)
        assert choose_linked(domain, BUDGET)[0] == chosen
