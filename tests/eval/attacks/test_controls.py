"""Controls: they pass where attacks work, and fail where an attack is deaf or accuses everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from dpsynth import split
from dpsynth.eval.attack_stats import Attack, Finding, People, Power, TableAttack
from dpsynth.eval.attacks import Control, caught, silent
from dpsynth.eval.attacks import controls as module
from dpsynth.eval.attacks.controls import CONTROLS, control_table
from dpsynth.eval.attacks.membership import membership
from dpsynth.eval.attacks.memorization import memorization
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core import PartResult, Tables, TableView
from dpsynth.eval.distances import Metric, nearest
from dpsynth.schema import Schema
from dpsynth.tables import simulate

NAMES = ("memorization", "membership", "attribute", "linkability", "singling_out")
POSITIVE = {
    ("copied", "memorization:copies"),
    ("jittered", "membership:density"),
    ("repeated", "linkability"),
    ("repeated", "singling_out:many"),
    ("repeated", "attribute"),
}
NEGATIVE = {(key, attack) for key in ("fresh", "stranger") for attack in NAMES}


def demo(patients: int, seed: int) -> Tables:
    """A cohort by `tables.simulated`; its "synthetic" table is other patients of the same law."""
    schema = Schema.load("demo")
    source, holdout = split(simulate(patients, seed=seed), schema, holdout=0.4, seed=seed)
    synthetic = simulate(patients, seed=seed + 1).iloc[: len(source)]
    return Tables.read(schema, source, synthetic.drop(columns=[schema.unit.column]), holdout)


@pytest.fixture(scope="module")
def clinic() -> Tables:
    return demo(900, 1)


@pytest.fixture(scope="module")
def people(clinic: Tables) -> People:
    return People.of(clinic, np.random.default_rng(1))


AttackOf = Callable[[Tables, People, np.random.Generator], Attack]


def played(
    cohort: Tables, people: People, seed: int = 2, others: Mapping[str, AttackOf] | None = None
) -> list[Control]:
    """Play the controls; some attacks in the places of dpsynth's own."""
    rng, attacks = np.random.default_rng(seed), records(others or {})
    tables = [control_table(key, cohort, people, rng) for key in CONTROLS]
    return [control for table in tables for control in table.play(attacks, people, rng)]


def records(others: Mapping[str, AttackOf]) -> list[TableAttack]:
    return [
        replace(attack, run=others[attack.key], uses_claim=False)
        if attack.key in others
        else attack
        for attack in ATTACKS
    ]


def pairs(found: list[Control], *, passed: bool | None = None) -> set[tuple[str, str]]:
    """Controls by key and attack; the column that is guessed does not matter."""
    return {
        (one.key, "attribute" if one.attack.startswith("attribute:") else one.attack)
        for one in found
        if passed is None or one.passed == passed
    }


@pytest.fixture(scope="module")
def ordinary(clinic: Tables, people: People) -> list[Control]:
    return played(clinic, people)


@pytest.mark.long
def test_all_controls_pass_where_attacks_work(ordinary: list[Control]) -> None:
    assert pairs(ordinary, passed=True) == POSITIVE | NEGATIVE
    assert not pairs(ordinary, passed=False) and not any(one.cached for one in ordinary)
    by_kind = {one.kind: pairs([c for c in ordinary if c.kind == one.kind]) for one in ordinary}
    assert by_kind == {"positive": POSITIVE, "negative": NEGATIVE}
    sentences = {one.key: one.sentence for one in ordinary}
    assert sentences["jittered"].endswith("the usual test of distances passes it")
    assert "others: more than chance allows" in sentences["copied"]
    assert sentences["fresh"] == sentences["stranger"] == "nothing was found, as it must be"


def deaf(attack: AttackOf) -> AttackOf:
    """An attack that never looks at the synthetic table, but at people of no side."""

    def blunted(cohort: Tables, people: People, rng: np.random.Generator) -> Attack:
        return attack(replace(cohort, synthetic=people.fresh), people, rng)

    return blunted


def accusing(attack: AttackOf) -> AttackOf:
    """An attack that says that it found something, whatever it sees."""

    def loud(cohort: Tables, people: People, rng: np.random.Generator) -> Attack:
        outcome = attack(cohort, people, rng)
        return replace(outcome, findings=tuple(replace(f, found=True) for f in outcome.findings))

    return loud


def oracle(*keys: str) -> AttackOf:
    """A quick attack that finds what is there: most synthetic rows are rows of the source."""

    def attack(cohort: Tables, people: People, rng: np.random.Generator) -> Attack:
        leaks = len(of(cohort.source) & of(cohort.synthetic)) > cohort.synthetic.rows / 3
        text = "more than chance allows" if leaks else "no more than chance allows"
        powers = tuple(Power(key, 0.1, "share", "would have been seen") for key in keys)
        return Attack(PartResult(), tuple(Finding(key, key, leaks, text) for key in keys), powers)

    return attack


QUICK = {
    "attribute": oracle("attribute:p"),
    "linkability": oracle("linkability"),
    "singling_out": oracle("singling_out:one", "singling_out:many"),
}
REAL = {"memorization": memorization, "membership": membership}


@pytest.mark.long
def test_they_pass_on_a_smaller_cohort_and_again_with_the_same_generator() -> None:
    cohort = demo(700, 7)
    people = People.of(cohort, np.random.default_rng(3))
    outcome = played(cohort, people, others=QUICK)
    assert pairs(outcome, passed=True) == POSITIVE | NEGATIVE == pairs(outcome)
    assert played(cohort, people, others=QUICK) == outcome


@pytest.mark.parametrize("broken", [deaf, accusing], ids=["deaf", "accusing"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_attack_fails_its_controls_and_no_others(
    name: str,
    broken: Callable[[AttackOf], AttackOf],
    clinic: Tables,
    people: People,
) -> None:
    others = REMEMBERED | QUICK | {name: broken((REAL | QUICK)[name])}  # real ones take longer
    outcome = played(clinic, people, others=others)
    assert pairs(outcome) == POSITIVE | NEGATIVE
    failing = {one for one in POSITIVE if one[1].split(":")[0] == name}
    if broken is accusing:
        failing = {one for one in NEGATIVE if one[1] == name}
    assert pairs(outcome, passed=False) == failing != set()


def by_kind_of_table(*keys: str) -> AttackOf:
    """An oracle of jittered rows too: they lie nearer to the source than to fresh people."""

    def attack(cohort: Tables, people: People, rng: np.random.Generator) -> Attack:
        copied = len(of(cohort.source) & of(cohort.synthetic)) > 0
        metric = Metric.of(cohort.codec)
        points = [metric.points(view) for view in (cohort.synthetic, cohort.source, people.fresh)]
        near, far = (nearest(metric, points[0], point).squared[:, 0] for point in points[1:])
        leaks = copied or float(np.median(near)) < 0.7 * float(np.median(far)) and far.min() > 0
        text = "more than chance allows" if leaks else "no more than chance allows"
        return Attack(PartResult(), tuple(Finding(key, key, bool(leaks), text) for key in keys))

    return attack


REMEMBERED = {
    "memorization": by_kind_of_table("memorization:copies"),
    "membership": by_kind_of_table("membership:density"),
}


def test_a_jittered_table_that_fails_the_usual_test_shows_nothing(
    clinic: Tables, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "jittered", lambda held, *_: (held.source, False))
    results = played(clinic, people, others=REMEMBERED | QUICK)
    [found] = [result for result in results if result.key == "jittered"]
    assert not found.passed and "more than chance allows" in found.sentence
    assert "does not pass it, so that this control shows nothing" in found.sentence


def test_an_attack_without_the_finding_that_decides_is_no_control() -> None:
    with pytest.raises(ValueError, match="no finding membership:density"):
        caught("key", "title", "membership:density", Attack(PartResult()))
    assert silent("key", "title", "membership", Attack(PartResult()), 1).passed


def test_a_negative_control_says_what_was_found(clinic: Tables, people: People) -> None:
    leaking = replace(clinic, synthetic=clinic.source)
    table = module.ControlTable("fresh", "title", leaking, leaks=False)
    for one in table.play(records(QUICK), people, np.random.default_rng(1)):
        assert not one.passed and "more than chance allows" in one.sentence


def test_negative_controls_share_the_chance_of_a_false_alarm(
    clinic: Tables, people: People
) -> None:
    """One finding in a thousand is chance; of thirty, none may break an audit for it."""

    def lucky(chance: float, *keys: str) -> AttackOf:
        found = tuple(Finding(key, key, chance < 1e-3, "odd", chance) for key in keys)
        return lambda cohort, people, rng: Attack(PartResult(), found)

    for chance, passed in ((9e-4, True), (1.3e-4, True), (1.2e-4, False)):
        others = {name: lucky(chance, f"{name}:a", f"{name}:b") for name in NAMES[:2]}
        attacks = [one for one in records(others) if one.key in others]
        table = module.ControlTable("fresh", "title", clinic, leaks=False)
        played = table.play(attacks, people, np.random.default_rng(1))
        assert [one.passed for one in played] == [passed] * 2  # 1e-3 over 2 tables of 4 findings
        assert passed == (played[0].sentence == "no more was found than chance explains in 8 tests")


def of(view: TableView) -> set[bytes]:
    return {row.tobytes() for row in view.codes}
