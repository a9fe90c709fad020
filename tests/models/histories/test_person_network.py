"""The network of the table of patients: which columns it draws, in what order, and by which law."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories import FollowUp, HistoryDomain, PersonTable, domain
from dpsynth.models.histories.networks import AutoregressiveHistories
from dpsynth.models.histories.networks.patient_units import PERSON
from dpsynth.models.histories.persons import NUMBERS, PersonNetwork, network
from dpsynth.models.histories.persons.network import order_of
from dpsynth.models.histories.persons.table import EVENTS, SERIES
from dpsynth.models.histories.settings import HistorySettings
from dpsynth.models.histories.steps import distilled
from dpsynth.models.marginals import Products
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import domain_of, histories_of, hostile, with_patient
from ...support.short_training import shorten_histories, shorten_networks

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
PATIENTS = 150


def with_ending() -> HistoryDomain:
    """Follow-up ends with the event, if it happens: one column of both."""
    domain = domain_of(PATIENTS)
    return replace(domain, end=replace(domain.end or FollowUp(0, np.arange(1)), event=0))


def test_what_became_of_a_patient_is_drawn_after_her_baseline() -> None:
    """When and how follow-up ended, then events, then what describes her series."""
    person = PersonTable(with_ending())
    order, given = order_of(person)
    names = [person.features[j].name for j in order]
    assert person.ending is not None
    assert names[:3] == ["age", "male", person.ending.feature.name] and given == 2
    person = PersonTable(domain_of(PATIENTS))
    order, given = order_of(person)
    names = [person.features[j].name for j in order]
    assert names[:4] == ["age", "male", "weeks", "day of stroke"] and given == 3
    assert sorted(order) == list(range(len(person.features)))
    nothing_else = PersonTable(replace(domain_of(PATIENTS), tables=(), events=()))
    assert order_of(nothing_else) == ((0, 1, 2), 0)


def test_numbers_of_rows_of_wide_tables_are_drawn_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given all that is known of her first row; earlier networks drew them before it."""
    monkeypatch.setattr(domain, "WIDE", 3)
    person = PersonTable(with_ending())
    (number,) = person.numbers_of_wide
    order, given = order_of(person)
    earlier, known = order_of(person, SERIES)
    assert order[-1] == number == earlier[-4] and given == known == 2
    assert [j for j in order if j != number] == [j for j in earlier if j != number]


def test_earlier_networks_were_given_the_baseline_and_drew_events_last() -> None:
    """When and how follow-up ended belongs to the baseline."""
    person = PersonTable(with_ending())
    order, given = order_of(person, EVENTS)
    assert person.ending is not None and given == 3
    assert [person.features[j].name for j in order[:3]] == [
        "age",
        "male",
        person.ending.feature.name,
    ]
    order, given = order_of(PersonTable(domain_of(PATIENTS)), EVENTS)
    features = PersonTable(domain_of(PATIENTS)).features
    assert given == 3 and features[order[-1]].name == "day of stroke"
    assert sorted(order) == list(range(len(features)))
    _, given = order_of(PersonTable(replace(domain_of(PATIENTS), tables=(), events=())), EVENTS)
    assert given == 0


def mixture_of(sizes: tuple[int, ...], components: int = 6) -> Products:
    rng = np.random.default_rng(1)
    tables = np.concatenate([rng.dirichlet(np.ones(k) / 2, components) for k in sizes], axis=1)
    return Products(sizes, rng.dirichlet(np.ones(components)), tables.astype(np.float32))


def small() -> tuple[PersonTable, tuple[int, ...]]:
    person = PersonTable(with_ending())
    return person, tuple(2 + j % 3 for j in range(len(person.features)))


@pytest.mark.parametrize("masked", [0, 6])
@pytest.mark.parametrize(
    ("last", "config"),
    [
        (NUMBERS, {}),
        (SERIES, {}),
        (SERIES, {"events_last": False}),
        (EVENTS, {"events_last": True}),
        (EVENTS, {}),
    ],
)
@pytest.mark.parametrize("alone", [False, True])
def test_it_is_rebuilt_from_its_arrays(
    alone: bool, last: str, config: dict[str, Any], masked: int
) -> None:
    """Those of earlier runs, too, which drew fewer columns in another order."""
    person, sizes = small()
    if alone:  # a baseline without histories
        person = PersonTable(replace(person.domain, tables=()))
        sizes = sizes[: len(person.features)]
    order, given = order_of(person, last)
    assert given == (2 if last != EVENTS else 0 if alone else 3)
    shape = Shape(tuple(sizes[j] for j in order), masked, given)
    network = Network(shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for layer in (network.skip, *([network.masked_out] if masked else [])):
            layer.weight.normal_(generator=torch.Generator().manual_seed(2))
    products = mixture_of(sizes)
    own = PersonNetwork(order, products.reordered(order), network, last)
    arrays = own.arrays()
    if last == EVENTS or config:  # earlier versions did not say it there
        del arrays["person.last"]
    rebuilt = PersonNetwork.restore(person, products, arrays, config)
    assert rebuilt is not None and rebuilt.network.shape == shape and rebuilt.last == last
    drawn = [one.draw(50, np.random.default_rng(3)) for one in (own, rebuilt)]
    assert np.array_equal(*drawn)
    assert drawn[0].shape == (50, len(sizes)) and (drawn[0] < np.array(sizes)).all()
    assert PersonNetwork.restore(person, products, {}, config) is None


def test_what_is_taught_has_the_law_of_the_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """One- and two-way shares of rows, columns where the table has them."""
    for module, name, few in (
        (distilled, "ROWS", 20_000),
        (distilled, "BATCH", 200),
        (network, "STEPS", 400),
    ):
        monkeypatch.setattr(module, name, few)
    person, sizes = small()
    products = mixture_of(sizes)
    taught = PersonNetwork.taught(person, products, np.random.default_rng(2))
    assert taught.network.shape.given == 2 and taught.last == NUMBERS
    drawn = taught.draw(20_000, np.random.default_rng(3))
    for i in range(len(sizes)):
        for j in range(i):
            expected = (products.column(i).T * products.weights) @ products.column(j)
            seen = np.zeros((sizes[i], sizes[j]))
            np.add.at(seen, (drawn[:, i], drawn[:, j]), 1 / len(drawn))
            assert np.abs(seen - expected).sum() / 2 < 0.06, (i, j)


@pytest.fixture(scope="module")
def fitted() -> AutoregressiveHistories:
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        shorten_networks(patch)
        generator = AutoregressiveHistories(domain_of(PATIENTS))
        plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
        generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1))
    return generator


def test_where_no_table_is_wide_the_patients_alone_have_a_network(
    fitted: AutoregressiveHistories,
) -> None:
    assert fitted.network is not None
    assert all(model.network is None for of_table in fitted.models for model in of_table)


def test_a_run_draws_as_what_was_fitted(fitted: AutoregressiveHistories) -> None:
    rebuilt = AutoregressiveHistories.restore(fitted.domain, fitted.config(), fitted.arrays())
    assert rebuilt.network is not None
    one, other = (each.sample(30, np.random.default_rng(1)) for each in (fitted, rebuilt))
    assert np.array_equal(one.baseline, other.baseline)
    assert np.array_equal(one.onsets, other.onsets)


def test_a_run_from_before_there_was_a_network_draws_by_its_mixture(
    fitted: AutoregressiveHistories,
) -> None:
    arrays = {
        name: array for name, array in fitted.arrays().items() if "person.network" not in name
    }
    rebuilt = AutoregressiveHistories.restore(fitted.domain, {}, arrays)
    assert rebuilt.network is None
    assert len(rebuilt.sample(30, np.random.default_rng(1))) == 30


def test_a_patient_is_coded_as_if_she_were_alone(fitted: AutoregressiveHistories) -> None:
    """Her row in a private step is hers: the same, whoever else there is."""
    everybody, other = histories_of(PATIENTS), hostile(20, equal=False, seed=2)
    joined = with_patient(everybody, other)
    network = fitted.network
    assert network is not None
    rows = [
        fitted._rows_and_steps(each, network, (), SeededEntropy(1)).tables[0].bins
        for each in (everybody, other, joined)
    ]
    assert np.array_equal(rows[2], np.concatenate(rows[:2]))
    assert len(np.unique(rows[0], axis=0)) > PATIENTS / 2


def test_a_canary_is_heard_with_her_row(fitted: AutoregressiveHistories) -> None:
    network = fitted.network
    assert network is not None
    units = fitted._rows_and_steps(histories_of(3), network, (), SeededEntropy(1))
    (rows, weights), mask = units.whole()
    assert rows.shape[:2] == mask.shape == (3, 1) and weights.tolist() == [[[PERSON]]] * 3


def test_a_second_fit_does_not_look_at_the_first(
    fitted: AutoregressiveHistories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was learned under one plan is no part of another's."""
    again = AutoregressiveHistories.restore(fitted.domain, fitted.config(), fitted.arrays())
    assert again.network is not None

    def counting(self: AutoregressiveHistories, *_: object) -> None:
        raise LookupError(self.network is None)

    monkeypatch.setattr(AutoregressiveHistories, "_count", counting)
    plan = PrivacyPlan.calibrate(BUDGET, again.shares(BUDGET))
    with pytest.raises(LookupError, match="True"):
        again.fit(histories_of(PATIENTS), plan, SeededEntropy(1))


@pytest.mark.parametrize(("population", "last"), [(1_000, NUMBERS), (10_000_000, SERIES)])
def test_numbers_are_drawn_last_unless_counts_are_very_clear(population: int, last: str) -> None:
    """A public rule: of the declared population and the budget."""
    assert HistorySettings.of(domain_of(population), BUDGET).last == last
