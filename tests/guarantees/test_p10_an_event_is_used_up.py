"""P10: a mechanism is asked again, and its answers are averaged: less noise than was paid for.

The check: every mechanism is asked twice under one plan, and draws are counted. The second time
nothing is drawn. The broken twin is a source of noise that keeps no count of events.
"""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from dpsynth.errors import BudgetError, InputError
from dpsynth.models.dpsgd import DpSgd, Linear
from dpsynth.models.generators import independent
from dpsynth.models.presets import ONE_WAY
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Contributions,
    Counts,
    Event,
    JointHistograms,
    KeyCounts,
    LaplaceCounts,
    LinkCounts,
    Links,
    Occurrences,
    OsEntropy,
    PaidEntropy,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    RowSums,
    SeededEntropy,
    Share,
    Stays,
    StaySums,
    TeacherVotes,
    TopChoice,
    WeightedRows,
    ask,
    chosen_histograms,
    contrast_products,
    departures,
    joint_histograms,
    key_counts,
    laplace_counts,
    link_counts,
    noisy_votes,
    row_sums,
    select_codes,
    stay_sums,
    top_choice,
    weighted_histograms,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.tables import simulate

from ..support.bare_counts import Rows, Silence
from ..support.quick_fit import quick_fit
from ..support.source_code import ROOT, nodes_of

Ask = Callable[[Any], Any]

UNITS = np.arange(40)
COHORT = Rows(np.zeros((40, 1, 2), np.uint16), np.ones((40, 1), bool))
SIZES = (2, 3)
PAIR = [(0, 1)]
NOBODY = Occurrences(np.empty(0, np.int64), np.empty(0, np.int64))
CONTRASTS = [np.array([[-3], [3]]), np.array([[-3], [0], [3]])]

JOINT = JointHistograms("joint", histograms=2, rows_per_unit=1, sigma=5.0)
CHOSEN = ChosenHistograms("chosen", most=1, rows_per_unit=1, noise_multiplier=5.0)
WHOLE = CHOSEN.sigma_for(1.0)
IN_PARTS = replace(CHOSEN, unit_mass=100)
STEP = PoissonSgd("steps", sampling_rate=0.5, steps=2, noise_multiplier=1.0)
CODES = CodeDiscovery("codes", 1, 1, delta=1e-6, noise_multiplier=4.0)
KEYS = KeyCounts("keys", 1, once=True, delta=1e-6, sigma=4.0)
SUMS = RowSums("sums", 1, 1, largest=1, signed=False, once=False, shared=False, sigma=5.0)
LAPLACE = LaplaceCounts("few", rows_per_unit=1, once=False, scale=2.0)
BEDS = StaySums("beds", 5, longest=3, stays_per_unit=1, sigma=1e4)
BEST = TopChoice("best", 1, 4, sensitivity=1, monotone=True, scale=2.0)
VOTES = TeacherVotes("votes", teachers=3, queries=2, classes=2, sigma=3.0)
LINKS = LinkCounts("links", cells=1, cap=1, records=1, sigma=3.0)

WEIGHTED = WeightedRows((UNITS % 2, UNITS % 3), UNITS, np.ones(40, np.int64))
ADDED = Contributions(UNITS, np.zeros((40, 1), np.int64))
STAYS = Stays(*np.array([[0, 1], [0, 0], [0, 1], [2, 1]]))
SCORES = np.array([3, 5, 4, 0], np.int64)
CANDIDATES = Links(np.array([0, 1]), np.array([0, 1]), np.ones((2, 1), bool))
EXPECTED = [np.ones(SIZES)]
ONE_CELL = Counts(lambda rows: np.zeros(len(rows), np.int64), 1)


def trainer(source: Any, event: PoissonSgd = STEP) -> DpSgd:
    layer = Linear(1, 1, generator=torch.Generator().manual_seed(0))
    made = DpSgd(
        layer,
        event=event,
        clipping_norm=1.0,
        population=40,
        learning_rate=0.1,
        entropy=source,
        schedule="constant",
        optimizer="sgd",
    )
    made.loss = lambda x, activations: layer(x, activations).sum(-1)  # type: ignore[attr-defined]
    return made


def all_steps(source: Any) -> None:
    """Train anew: a second trainer knows nothing of the first."""
    made = trainer(source)
    for _ in range(made.event.steps):
        chosen = made.sample_batch(40)
        made.step(made.loss, torch.ones(len(chosen), 1, 1), torch.ones(len(chosen), 1))


MECHANISMS: dict[str, tuple[Any, Ask]] = {
    "joint": (JOINT, lambda source: joint_histograms(COHORT, SIZES, JOINT, source)),
    "joint, weighted": (
        JOINT,
        lambda source: weighted_histograms(WEIGHTED, [2, 3], [5.0, 5.0], JOINT, source),
    ),
    "chosen": (
        CHOSEN,
        lambda source: chosen_histograms(COHORT, SIZES, PAIR, [WHOLE], CHOSEN, source),
    ),
    "chosen, weighted": (
        CHOSEN,
        lambda source: weighted_histograms(
            WeightedRows((UNITS % 2,), UNITS, np.ones(40, np.int64)), [2], [WHOLE], CHOSEN, source
        ),
    ),
    "questions": (
        replace(CHOSEN, most=2),
        lambda source: ask(COHORT, SIZES, [ONE_CELL], [0.6, 0.8], replace(CHOSEN, most=2), source),
    ),
    "products": (IN_PARTS, lambda source: contrast_products(COHORT, CONTRASTS, IN_PARTS, source)),
    "departures": (
        IN_PARTS,
        lambda source: departures(COHORT, SIZES, PAIR, EXPECTED, IN_PARTS, source),
    ),
    "codes": (CODES, lambda source: select_codes(Occurrences(UNITS, UNITS), CODES, source)),
    "codes of nobody": (CODES, lambda source: select_codes(NOBODY, CODES, source)),
    "keys": (KEYS, lambda source: key_counts(Occurrences(UNITS, UNITS), KEYS, source)),
    "keys of nobody": (KEYS, lambda source: key_counts(NOBODY, KEYS, source)),
    "sums": (SUMS, lambda source: row_sums(ADDED, [2], SUMS, source)),
    "few counts": (LAPLACE, lambda source: laplace_counts(ADDED, 2, LAPLACE, source)),
    "stays": (BEDS, lambda source: stay_sums(STAYS, 1, BEDS, source)),
    "choice": (BEST, lambda source: top_choice(SCORES, BEST, source)),
    "votes": (VOTES, lambda source: noisy_votes(np.zeros((3, 2), np.int64), VOTES, source)),
    "links": (LINKS, lambda source: link_counts(CANDIDATES, LINKS, source)),
    "steps": (STEP, all_steps),
}
of_each = pytest.mark.parametrize("name", MECHANISMS)


class Counting(SeededEntropy):
    """Counts draws of noise."""

    def __init__(self) -> None:
        super().__init__(1)
        self.draws = 0

    def normal(self, *of: Any) -> Any:
        self.draws += 1
        return super().normal(*of)

    def discrete_gaussian(self, *of: Any) -> Any:
        self.draws += 1
        return super().discrete_gaussian(*of)

    def discrete_laplace(self, *of: Any) -> Any:
        self.draws += 1
        return super().discrete_laplace(*of)

    def top(self, *of: Any) -> Any:
        self.draws += 1
        return super().top(*of)


def noise_of_a_second_answer(mechanism: Ask, source: Any, below: Counting) -> int:
    """Ask twice; return how many draws of noise the second answer got."""
    mechanism(source)
    before = below.draws
    try:
        mechanism(source)
    except BudgetError:
        pass
    return below.draws - before


def test_every_kind_of_event_has_its_mechanism_here() -> None:
    assert {type(event) for event, _ in MECHANISMS.values()} == set(get_args(Event))


@of_each
def test_a_second_answer_gets_no_noise(name: str) -> None:
    event, mechanism = MECHANISMS[name]
    if "nobody" not in name:  # where nothing is drawn at all
        broken = Counting()  # the twin: without a plan, any number of answers
        assert noise_of_a_second_answer(mechanism, broken, broken) > 0
    below = Counting()
    source = PaidEntropy([event], below)
    assert source.unused == (event.name,)
    assert noise_of_a_second_answer(mechanism, source, below) == 0
    assert source.unused == ()
    with pytest.raises(BudgetError, match=f"'{event.name}'"):
        mechanism(source)


@of_each
def test_an_event_of_another_plan_gets_no_noise(name: str) -> None:
    event, mechanism = MECHANISMS[name]
    others = [replace(event, name="another"), event.with_mu(event.mu() / 2)]
    for other in others:
        below = Counting()
        with pytest.raises(BudgetError, match="not one of the open plan"):
            mechanism(PaidEntropy([other], below))
        assert below.draws == 0


@of_each
def test_the_operating_system_gives_no_noise_without_a_plan(name: str) -> None:
    event, mechanism = MECHANISMS[name]
    with pytest.raises(BudgetError, match=r"plan\.opened"):
        mechanism(OsEntropy())
    mechanism(PaidEntropy([event], OsEntropy()))


def test_noise_of_another_scale_is_refused_before_it_is_drawn() -> None:
    """Also if a mechanism has forgotten to check it: all noise of a plan has its event's scale."""
    for event, _ in MECHANISMS.values():
        source = PaidEntropy([event], Counting())
        less = (WHOLE if isinstance(event, ChosenHistograms) else event.noise_scale) / 2
        with pytest.raises(BudgetError, match="not the plan's"):
            source.noise_of(event, [less])
        assert source.unused == (event.name,)


def test_no_noise_is_drawn_beside_the_events() -> None:
    source: Any = PaidEntropy([JOINT], SeededEntropy(1))
    for draw in (
        lambda: source.discrete_gaussian(JOINT.sigma, 5),
        lambda: source.discrete_laplace(JOINT.sigma, 5),
        lambda: source.normal(5),
        lambda: source.top(SCORES, 1, 2.0),
    ):
        with pytest.raises(BudgetError, match="for an event of the plan"):
            draw()
    assert len(source.uniform(3)) == len(source.permutation(3)) == len(source.integers(0, 2, 3))
    assert source.generator().random() < 1


def test_chosen_histograms_are_counted_down_by_their_scales() -> None:
    """Each histogram counts with its own noise: two of half the precision, and then no more."""
    event = ChosenHistograms("pairs", most=4, rows_per_unit=1, noise_multiplier=5.0)
    half, source = event.sigma_for(0.5**0.5), PaidEntropy([event], SeededEntropy(1))

    def release(sigma: float) -> Any:
        return chosen_histograms(COHORT, SIZES, PAIR, [sigma], event, source)

    for _ in range(2):
        release(half)
    with pytest.raises(BudgetError, match="used up"):
        release(half)
    with pytest.raises(BudgetError, match="used up"):
        release(100 * half)  # a little more is too much
    rough = PaidEntropy([replace(event, most=2)], SeededEntropy(1))
    for _ in range(2):
        chosen_histograms(COHORT, SIZES, PAIR, [1e6], replace(event, most=2), rough)
    with pytest.raises(BudgetError, match="used up"):  # no more than are accounted for
        chosen_histograms(COHORT, SIZES, PAIR, [1e6], replace(event, most=2), rough)


def test_each_chosen_histogram_has_its_own_noise() -> None:
    """The twin: the least noise of all for each of them, which the event does not pay for."""
    event = ChosenHistograms("pairs", most=2, rows_per_unit=1, noise_multiplier=5.0)
    sigmas = [event.sigma_for(0.9**0.5), event.sigma_for(0.1**0.5)]
    weighted = WeightedRows((UNITS % 2, UNITS % 3), UNITS, np.ones(40, np.int64))
    two = Rows(np.zeros((40, 1, 3), np.uint16), np.ones((40, 1), bool))
    releases: list[Callable[[Any, list[float]], Any]] = [
        lambda source, of: chosen_histograms(two, (2, 3, 2), [(0, 1), (1, 2)], of, event, source),
        lambda source, of: weighted_histograms(weighted, [6, 6], of, event, source),
        lambda source, of: ask(
            COHORT, SIZES, [replace(ONE_CELL, size=6)], [0.9**0.5, 0.1**0.5], event, source
        ),
    ]
    for place, release in enumerate(releases):
        below = Silence()
        release(PaidEntropy([event], below), sigmas)
        assert below.asked == [(sigmas[0], 1 if place == 2 else 6), (sigmas[1], 6)]
    for release in releases[:2]:
        with pytest.raises(InputError, match="does not pay"):
            release(PaidEntropy([event], Silence()), [min(sigmas)] * 2)
    with pytest.raises(BudgetError, match="does not pay"):  # nor where a mechanism forgot to ask
        PaidEntropy([event], Silence()).noise_of(event, [min(sigmas)] * 2)


def scales_looked_at(event: PoissonSgd, patch: pytest.MonkeyPatch) -> int:
    """How many scales are compared while all steps of an event are taken."""
    looked: list[int] = []
    pays_for = PoissonSgd.pays_for

    def counted(self: PoissonSgd, scales: Any) -> bool:
        looked.append(len(scales))
        return pays_for(self, scales)

    source = PaidEntropy([event], SeededEntropy(1))
    with patch.context() as patched:
        patched.setattr(PoissonSgd, "pays_for", counted)
        for _ in range(event.steps):
            source.noise_of(event, [event.noise_scale])
    assert source.unused == ()
    return sum(looked)


def test_a_step_is_checked_in_the_same_time_however_many_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = replace(STEP, steps=200)
    assert scales_looked_at(event, monkeypatch) == 200
    monkeypatch.setattr(PoissonSgd, "bounded_together", True)  # broken: it looks at all again
    assert scales_looked_at(event, monkeypatch) == 200 * 201 / 2


def test_departures_count_one_by_one() -> None:
    event = ChosenHistograms("pairs", 6, 1, noise_multiplier=5.0, unit_mass=100)
    cohort = Rows(np.zeros((40, 1, 3), np.uint16), np.ones((40, 1), bool))
    pairs, source = [(0, 1), (0, 2), (1, 2)], PaidEntropy([event], SeededEntropy(1))
    departures(cohort, (2, 2, 2), pairs, [np.ones((2, 2))] * 3, event, source)
    with pytest.raises(BudgetError, match="used up"):
        departures(cohort, (2, 2, 2), pairs, [np.ones((2, 2))] * 3, event, source)


def test_steps_are_counted_down_over_trainers_and_processes() -> None:
    source = PaidEntropy([STEP], SeededEntropy(1))
    trainer(source)._noise()
    assert source.unused == (STEP.name,)
    with pytest.raises(BudgetError, match="used up"):
        all_steps(source)  # one is left of two
    later = PaidEntropy([STEP], SeededEntropy(1))
    later.take_over({STEP.name: 1})
    trainer(later)._noise()
    assert later.unused == ()
    with pytest.raises(BudgetError, match="used up"):
        trainer(later)._noise()
    with pytest.raises(BudgetError, match="cannot go on"):
        later.take_over({STEP.name: 0})
    with pytest.raises(BudgetError, match="cannot go on"):
        PaidEntropy([STEP], SeededEntropy(1)).take_over({STEP.name: 3})


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_the_randomness_of_a_plan_is_not_copied(how: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="cannot be copied"):
        how(PaidEntropy([JOINT], SeededEntropy(1)))


def test_a_plan_is_not_opened_over_another() -> None:
    with pytest.raises(BudgetError, match="open already"):
        PaidEntropy([JOINT], PaidEntropy([CHOSEN], SeededEntropy(1)))


def averaged(cohort: Any, sizes: Any, event: Any, entropy: Any) -> list[Any]:
    answers = [joint_histograms(cohort, sizes, event, entropy) for _ in range(2)]
    return [(first + second) // 2 for first, second in zip(*answers, strict=True)]


def exact(cohort: Any, sizes: Any, event: Any, entropy: Any) -> list[Any]:
    rows = cohort.codes[cohort.mask]
    return [np.bincount(rows[:, j], minlength=size) for j, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("broken", "words"), [(averaged, "used up before"), (exact, "before it used event")]
)
def test_a_fit_that_strays_from_its_plan_is_not_kept(
    broken: Any, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows, output = simulate(60, seed=1), tmp_path / "run"
    monkeypatch.setattr(independent, "joint_histograms", broken)
    with pytest.raises(BudgetError, match=words):
        quick_fit(rows, "demo", output=output)
    assert not output.exists()
    monkeypatch.undo()
    assert quick_fit(rows, "demo", output=output).certificate is not None


def test_a_plan_pays_for_each_fit_that_opens_it() -> None:
    share = Share(replace(JOINT, name=ONE_WAY, sigma=UNDECIDED), 1.0)
    plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon=1, delta=1e-6), (share,))
    source = plan.opened(SeededEntropy(1))
    joint_histograms(COHORT, SIZES, plan.event(ONE_WAY), source)  # type: ignore[arg-type]
    assert source.unused == () and not source.releasable
    assert plan.opened(OsEntropy()).unused == (ONE_WAY,)
    assert plan.opened(OsEntropy()).releasable


NOISE = {"discrete_gaussian", "discrete_laplace", "top", "normal"}
OF_NOISE = {"dpsynth/privacy/payments.py"}
OPENS = {
    "dpsynth/privacy/plan.py": "what opens a plan",
    "dpsynth/synthesis/charged_fit.py": "a fit, once charged",
    "dpsynth/stats/charged_answers.py": "answers, once charged",
    "dpsynth/assessment/published_quality.py": "the share for figures, once spent",
    "dpsynth/assessment/training_audit.py": "a fit of an audit",
    "dpsynth/assessment/fitted_controls.py": "a fit to simulated patients",
    "dpsynth/assessment/shadow_models.py": "a fit that is attacked",
    "models/outside/desk.py": "a rehearsal on made-up rows",
}


def calls(of_interest: Callable[[str], bool]) -> set[str]:
    """The files with a call of such a function, by the text of what is called."""
    found = set()
    for path in [*(ROOT / "dpsynth").rglob("*.py"), *(ROOT / "models").rglob("*.py")]:
        place = str(path.relative_to(ROOT))
        if not place.startswith(("dpsynth/models", "dpsynth/eval")):
            named = (ast.unparse(one.func) for one in nodes_of(path) if isinstance(one, ast.Call))
            if any(map(of_interest, named)):
                found.add(place)
    return found


def draws_noise(called: str) -> bool:
    owner, _, name = called.rpartition(".")
    return name in NOISE and any(word in owner.lower() for word in ("entropy", "source"))


def opens_a_plan(called: str) -> bool:
    return called.endswith("plan.opened") or called.rpartition(".")[2] == "PaidEntropy"


def test_noise_is_drawn_and_plans_are_opened_in_known_places_only() -> None:
    assert draws_noise("self.entropy.normal") and draws_noise("OsEntropy().discrete_gaussian")
    assert calls(draws_noise) == OF_NOISE
    assert calls(opens_a_plan) == set(OPENS)
