"""Presets: settings and shares are functions of the domain and the budget, and of nothing else."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.models import (
    Domain,
    Feature,
    Preset,
    choose,
    generator_class,
    presets,
    shares_of,
    spec_of,
)
from dpsynth.models.presets import (
    MAX_PAIRS,
    MIN_UNITS,
    ONE_WAY,
    PAIRS,
    STEPS,
    mass_of,
    one_way_event,
)
from dpsynth.models.registry import NAMES
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
)

NEURAL = [name for name in NAMES if spec_of(name).neural]

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)


@pytest.mark.parametrize("width", ["masked", "hidden", "latent"])
def test_widths_that_no_fit_has_are_refused_before_a_network_is_built(width: str) -> None:
    settings = asdict(Preset.of("autoregressive", domain(), BUDGET))
    assert Preset(**settings | {width: 512})
    for absurd in (-1, 10**9):
        with pytest.raises(ValueError, match="widths lie between 0 and 4096"):
            Preset(**settings | {width: absurd})


def domain(columns: int = 12, population: int = 50_000, max_rows: int = 1) -> Domain:
    features = tuple(Feature(f"column {j}", 2 + j, 0) for j in range(columns))
    return Domain(features, population, max_rows)


domains = st.builds(domain, st.integers(1, 300), st.integers(1, 10**9), st.integers(1, 5040))
budgets = st.builds(
    PrivacyBudget,
    epsilon=st.floats(1e-6, 1e3),
    delta=st.floats(-9.9, -0.1).map(lambda power: 10**power),
)


# Public alone ---------------------------------------------------------------------------------


def test_nothing_but_public_facts_goes_in() -> None:
    assert list(inspect.signature(Preset.of).parameters) == ["model", "domain", "budget"]
    assert list(inspect.signature(shares_of).parameters) == ["model", "domain", "budget"]
    assert {field.name for field in fields(Domain)} == {
        "features",
        "population",
        "max_rows",
        "order",
    }
    assert {field.name for field in fields(PrivacyBudget)} == {"epsilon", "delta"}


@pytest.mark.long
def test_the_same_facts_give_the_same_settings_in_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No clock, no machine, no state: what a verifier computes is what the office computed."""
    shipped = presets.distilled_training.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(presets, "distilled_training", shipped)
    code = (
        "import json; from dataclasses import asdict\n"
        "from dpsynth.models import Domain, Feature, Preset, shares_of\n"
        "from dpsynth.privacy import PrivacyBudget, PrivacyPlan\n"
        "features = tuple(Feature(f'column {j}', 2 + j, 0) for j in range(12))\n"
        "domain, budget = Domain(features, 50_000, 3), PrivacyBudget(3.0, 1e-6)\n"
        "def told(model):\n"
        "    plan = PrivacyPlan.calibrate(budget, shares_of(model, domain, budget))\n"
        "    return [asdict(Preset.of(model, domain, budget)), plan.to_dict()]\n"
        f"print(json.dumps([told(model) for model in {NAMES!r}]))\n"
        "import sys; assert 'torch' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    facts = domain(max_rows=3)
    expected = [
        [
            asdict(Preset.of(model, facts, BUDGET)),
            PrivacyPlan.calibrate(BUDGET, shares_of(model, facts, BUDGET)).to_dict(),
        ]
        for model in NAMES
    ]
    assert json.loads(ran.stdout) == json.loads(json.dumps(expected))


def test_names_and_order_of_columns_do_not_matter() -> None:
    facts = domain(5)
    turned = replace(facts, features=facts.features[::-1])
    for model in NAMES:
        assert Preset.of(model, facts, BUDGET) == Preset.of(model, turned, BUDGET)
        assert shares_of(model, facts, BUDGET) == shares_of(model, turned, BUDGET)


def test_presets_and_the_check_of_certificates_are_light() -> None:
    """A plan is made, and a bundle verified, without torch, pyarrow's tables or a database."""
    code = (
        "import sys\n"
        "from dpsynth.models import Preset, check_model\n"
        "assert not {'torch', 'pandas', 'sqlalchemy', 'dp_accounting'} & set(sys.modules)\n"
        "from dpsynth.bundle.checks import check_certificate\n"
        "assert 'torch' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_model_is_chosen_by_public_facts() -> None:
    """One unit more or less in the table changes nothing: the table is not asked."""
    assert list(inspect.signature(choose).parameters) == ["domain", "budget"]
    large = replace(BUDGET, epsilon=10.0)
    name, reason = choose(domain(population=MIN_UNITS - 1), large)
    assert name == "mixture" and str(MIN_UNITS) in reason
    name, reason = choose(domain(population=MIN_UNITS), large)
    assert name == "distilled" and "noise of DP-SGD" in reason
    name, reason = choose(domain(population=50 * MIN_UNITS), large)
    assert name == "autoregressive" and "DP-SGD adds" in reason
    name, reason = choose(domain(columns=100, population=MIN_UNITS), large)
    assert name == "distilled" and "columns" in reason
    small = replace(BUDGET, epsilon=0.01)
    assert choose(domain(), small)[0] == "distilled"
    assert choose(domain(columns=9), small)[0] == "mixture"


# Shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", NAMES)
@given(domains, budgets)
def test_shares_are_positive_and_add_up_to_one(
    model: str, facts: Domain, budget: PrivacyBudget
) -> None:
    shares = shares_of(model, facts, budget)
    assert math.fsum(share.fraction for share in shares) == pytest.approx(1, abs=1e-12)
    assert all(0.02 < share.fraction <= 1 for share in shares)
    assert len({share.event.name for share in shares}) == len(shares)
    assert not any(share.event.decided for share in shares)


@given(domains, budgets)
def test_settings_are_within_reason(facts: Domain, budget: PrivacyBudget) -> None:
    for model in NAMES:
        preset = Preset.of(model, facts, budget)
        assert 2 <= preset.bins <= 64 and 10 <= preset.components <= 2000
        assert 10 <= preset.mixture_steps <= 5000
        assert 0.1 <= preset.one_way <= 0.25
        assert (preset.training > 0) == (model in NEURAL) == (preset.steps > 0)
        assert 0 < preset.sampling_rate <= 1 and preset.anchor >= 0


def test_more_budget_never_means_a_smaller_network() -> None:
    sizes = []
    for epsilon in (0.1, 1.0, 2.0, 3.0, 6.0, 10.0, 100.0):
        preset = Preset.of("autoregressive", domain(), replace(BUDGET, epsilon=epsilon))
        sizes.append((preset.masked, preset.latent, preset.steps, preset.components))
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("max_rows", [1, 5])
@pytest.mark.parametrize("columns", [1, 2, 7])
def test_the_events_of_each_model_by_hand(columns: int, max_rows: int) -> None:
    """With several rows a unit there is one column more, and its pairs."""
    facts = domain(columns, max_rows=max_rows)
    all_columns = columns + (max_rows > 1)
    pairs = max(1, all_columns * (all_columns - 1) // 2)
    mass = {1: None, 5: 60}[max_rows]
    weighted = [
        JointHistograms(ONE_WAY, all_columns, max_rows, math.inf, mass),
        ChosenHistograms(PAIRS, pairs, max_rows, math.inf, mass),
    ]
    steps = PoissonSgd(STEPS, 0.1, Preset.of("tvae", facts, BUDGET).steps, math.inf)
    expected = {
        "independent": [JointHistograms(ONE_WAY, columns, max_rows, math.inf)],
        "mixture": weighted,
        "autoregressive": [*weighted, steps],
        "tvae": [*weighted, steps],  # so certificates of the time before it had its own name hold
    }
    for model, events in expected.items():
        assert [share.event for share in shares_of(model, facts, BUDGET)] == events


def test_many_columns_do_not_all_get_their_pairs() -> None:
    event = shares_of("mixture", domain(120, population=10**6), BUDGET)[1].event
    assert isinstance(event, ChosenHistograms)
    assert event.most == MAX_PAIRS < 120 * 119 // 2


@pytest.mark.parametrize("max_rows", [1, 4])
@pytest.mark.parametrize("model", NAMES)
def test_a_generator_plans_what_a_verifier_expects(model: str, max_rows: int) -> None:
    """Also when the generator has put the hidden column in before it asks."""
    facts = domain(4, max_rows=max_rows)
    assert generator_class(model)(facts).shares(BUDGET) == shares_of(model, facts, BUDGET)
    if model != "independent":
        assert shares_of(model, facts.with_visits(), BUDGET) == shares_of(model, facts, BUDGET)


@pytest.mark.parametrize("max_rows", [1, 5, 11])
@pytest.mark.parametrize("model", NAMES)
def test_every_share_can_be_calibrated(model: str, max_rows: int) -> None:
    for epsilon in (0.3, 10.0):
        budget = PrivacyBudget(epsilon, 1e-6)
        facts = domain(8, max_rows=max_rows)
        plan = PrivacyPlan.calibrate(budget, shares_of(model, facts, budget))
        assert 0.99 * epsilon < plan.epsilon <= epsilon
        for share in shares_of(model, facts, budget):
            assert plan.event(share.event.name).undecided() == share.event


def test_the_weighted_event_is_the_models_and_the_plain_one_the_baselines() -> None:
    facts = domain(3, max_rows=5)
    assert one_way_event(facts, weighted=False).mass == 5
    assert one_way_event(facts, weighted=True).mass == mass_of(5) == 60
    single = domain(3)
    assert one_way_event(single, weighted=True) == one_way_event(single, weighted=False)
    assert isinstance(shares_of("mixture", single, BUDGET)[0], Share)


def test_tables_too_wide_for_their_pairs_are_refused_in_public() -> None:
    """Known from the schema, so before any charge; one-way histograms alone have no limit."""
    wide = Domain(tuple(Feature(f"c{j}", 100, 100) for j in range(700)), 1000, 1)
    with pytest.raises(InputError, match="about 11200 bins; at most 10000 fit into memory"):
        shares_of("autoregressive", wide, BUDGET)
    assert shares_of("independent", wide, BUDGET)
    narrow = Domain(wide.features[:600], 1000, 1)
    assert shares_of("tvae", narrow, BUDGET)
