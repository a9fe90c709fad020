"""Controls: they pass where attacks work, and fail where an attack is deaf or accuses everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.attack_stats.people import People
from dpsynth.eval.attack_stats.result import Attack, Finding, Power
from dpsynth.eval.attack_stats.table_attack import TableAttack
from dpsynth.eval.attacks import controls as module
from dpsynth.eval.attacks.controls import COPIED, Control, controls, jittered, learned, with_copies
from dpsynth.eval.attacks.membership import membership
from dpsynth.eval.attacks.memorization import memorization
from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.core.result import PartResult
from dpsynth.eval.core.tables import Tables, TableView
from dpsynth.eval.distances.metric import Metric
from dpsynth.eval.distances.nearest import nearest
from dpsynth.schema.schema import Schema
from dpsynth.tables.simulated import simulate
from dpsynth.tables.splitting import split

from ...support.evaluation_tables import number, tables, words

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


FIELDS = [*(number(name, 0, 300) for name in "abc"), words("p", "x", "y", "z", "v", "w")]


def flat(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cells: dict[str, Any] = {name: rng.integers(0, 301, rows) for name in "abc"}
    cells["a"] = pd.array(np.where(rng.random(rows) < 0.1, None, cells["a"]), dtype="Int64")
    cells["p"] = rng.choice(list("xyzvw"), rows)
    return pd.DataFrame(cells)


SMALL = tables(FIELDS, flat(300, 1), flat(250, 2), flat(280, 3))
PEOPLE = People.of(SMALL, np.random.default_rng(1))


@pytest.fixture(scope="module")
def clinic() -> Tables:
    return demo(900, 1)


@pytest.fixture(scope="module")
def people(clinic: Tables) -> People:
    return People.of(clinic, np.random.default_rng(1))


AttackOf = Callable[[Tables, People, np.random.Generator], Attack]


def played(
    held: Tables, people: People, seed: int = 2, others: Mapping[str, AttackOf] | None = None
) -> list[Control]:
    """Play the controls; some attacks in the places of dpsynth's own."""
    return controls(held, people, np.random.default_rng(seed), records(others or {}))[0]


def records(others: Mapping[str, AttackOf]) -> list[TableAttack]:
    return [
        replace(one, run=others[one.key], uses_claim=False) if one.key in others else one
        for one in ATTACKS
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


def test_all_controls_pass_where_attacks_work(ordinary: list[Control]) -> None:
    assert pairs(ordinary, passed=True) == POSITIVE | NEGATIVE
    assert not pairs(ordinary, passed=False) and not any(one.cached for one in ordinary)
    by_kind = {one.kind: pairs([c for c in ordinary if c.kind == one.kind]) for one in ordinary}
    assert by_kind == {"positive": POSITIVE, "negative": NEGATIVE}
    said = {one.key: one.sentence for one in ordinary}
    assert said["jittered"].endswith("the usual test of distances passes it")
    assert "others: more than chance allows" in said["copied"]
    assert said["fresh"] == said["stranger"] == "nothing was found, as it must be"


def deaf(attack: AttackOf) -> AttackOf:
    """An attack that never looks at the synthetic table, but at people of no side."""

    def blunted(held: Tables, people: People, rng: np.random.Generator) -> Attack:
        return attack(replace(held, synthetic=people.fresh), people, rng)

    return blunted


def accusing(attack: AttackOf) -> AttackOf:
    """An attack that says that it found something, whatever it sees."""

    def loud(held: Tables, people: People, rng: np.random.Generator) -> Attack:
        made = attack(held, people, rng)
        return replace(made, findings=tuple(replace(f, found=True) for f in made.findings))

    return loud


def oracle(*keys: str) -> AttackOf:
    """A quick attack that finds what is there: most synthetic rows are rows of the source."""

    def attack(held: Tables, people: People, rng: np.random.Generator) -> Attack:
        leaks = len(of(held.source) & of(held.synthetic)) > held.synthetic.rows / 3
        said = "more than chance allows" if leaks else "no more than chance allows"
        powers = tuple(Power(key, 0.1, "share", "would have been seen") for key in keys)
        return Attack(PartResult(), tuple(Finding(key, key, leaks, said) for key in keys), powers)

    return attack


QUICK = {
    "attribute": oracle("attribute:p"),
    "linkability": oracle("linkability"),
    "singling_out": oracle("singling_out:one", "singling_out:many"),
}
REAL = {"memorization": memorization, "membership": membership}


def test_they_pass_on_a_smaller_cohort_and_again_with_the_same_generator() -> None:
    held = demo(700, 7)
    people = People.of(held, np.random.default_rng(3))
    found = played(held, people, others=QUICK)
    assert pairs(found, passed=True) == POSITIVE | NEGATIVE == pairs(found)
    assert played(held, people, others=QUICK) == found


@pytest.mark.parametrize("broken", [deaf, accusing], ids=["deaf", "accusing"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_attack_fails_its_controls_and_no_others(
    name: str,
    broken: Callable[[AttackOf], AttackOf],
    clinic: Tables,
    people: People,
) -> None:
    others = REMEMBERED | QUICK | {name: broken((REAL | QUICK)[name])}  # real ones take longer
    found = played(clinic, people, others=others)
    assert pairs(found) == POSITIVE | NEGATIVE
    failing = {one for one in POSITIVE if one[1].split(":")[0] == name}
    if broken is accusing:
        failing = {one for one in NEGATIVE if one[1] == name}
    assert pairs(found, passed=False) == failing != set()


def by_kind_of_table(*keys: str) -> AttackOf:
    """An oracle of jittered rows too: they lie nearer to the source than to fresh people."""

    def attack(held: Tables, people: People, rng: np.random.Generator) -> Attack:
        copied = len(of(held.source) & of(held.synthetic)) > 0
        metric = Metric.of(held.codec)
        points = [metric.points(view) for view in (held.synthetic, held.source, people.fresh)]
        near, far = (nearest(metric, points[0], one).squared[:, 0] for one in points[1:])
        leaks = copied or float(np.median(near)) < 0.7 * float(np.median(far)) and far.min() > 0
        said = "more than chance allows" if leaks else "no more than chance allows"
        return Attack(PartResult(), tuple(Finding(key, key, bool(leaks), said) for key in keys))

    return attack


REMEMBERED = {
    "memorization": by_kind_of_table("memorization:copies"),
    "membership": by_kind_of_table("membership:density"),
}


def test_a_jittered_table_that_fails_the_usual_test_shows_nothing(
    clinic: Tables, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "jittered", lambda held, *_: (held.source, False))
    made = played(clinic, people, others=REMEMBERED | QUICK)
    [found] = [one for one in made if one.key == "jittered"]
    assert not found.passed and "more than chance allows" in found.sentence
    assert "does not pass it, so that this control shows nothing" in found.sentence


def test_an_attack_without_the_finding_that_decides_is_no_control() -> None:
    with pytest.raises(ValueError, match="no finding membership:density"):
        module.caught("key", "title", "membership:density", Attack(PartResult()))
    assert module.silent("key", "title", "membership", Attack(PartResult())).passed


def test_a_negative_control_says_what_was_found(clinic: Tables, people: People) -> None:
    leaking = replace(clinic, synthetic=clinic.source)
    table = module.ControlTable("fresh", "title", leaking, leaks=False)
    for one in table.play(records(QUICK), people, np.random.default_rng(1)):
        assert not one.passed and "more than chance allows" in one.sentence


def apart(one: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Squared distances of all pairs of rows, from the cells."""
    total = np.zeros((len(one), len(other)))
    for name in one.columns:
        if name == "p":
            total += one[name].to_numpy(str)[:, None] != other[name].to_numpy(str)[None, :]
            continue
        a, b = (
            frame[name].astype("Float64").to_numpy(float, na_value=np.nan) for frame in (one, other)
        )
        part = ((a[:, None] - b[None, :]) / 300) ** 2
        unlike = np.isnan(a)[:, None] != np.isnan(b)[None, :]
        total += np.where(np.isnan(part), unlike, part)
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_jittered_table_passes_the_usual_test_and_holds_all_members(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases: list[TableView] = []
    first = module.members_first
    monkeypatch.setattr(module, "members_first", lambda *a: bases.append(first(*a)) or bases[-1])
    metric = Metric.of(SMALL.codec)
    moved, passes = jittered(SMALL, PEOPLE, metric, 250, np.random.default_rng(seed))
    found = np.quantile(apart(moved.frame, SMALL.source.frame).min(axis=1), 0.05)
    usual = np.quantile(apart(PEOPLE.others.frame, SMALL.source.frame).min(axis=1), 0.05)
    assert passes and found >= usual - 1e-12 and usual > 0
    base = bases[0]
    assert moved.rows == base.rows == 250 == len(of(base))
    assert of(PEOPLE.members) <= of(base) <= of(SMALL.source)
    # each row keeps cells of its own patient, and has moved no farther than it had to
    assert (moved.codes == base.codes).any(axis=1).mean() > 0.9
    assert (moved.codes != base.codes).any(axis=1).mean() > 0.98
    own = np.diag(apart(moved.frame, base.frame))
    assert np.quantile(own, 0.05) >= usual - 1e-12 and np.median(own) < 1.5
    consistent(moved)


def test_all_members_are_jittered_even_if_more_than_the_rows_asked_for() -> None:
    metric = Metric.of(SMALL.codec)
    moved, _ = jittered(SMALL, PEOPLE, metric, 5, np.random.default_rng(1))
    assert moved.rows == PEOPLE.members.rows > 5


def consistent(view: TableView) -> None:
    """Cells and codes tell of the same rows, and rows are units."""
    assert np.array_equal(SMALL.codec.encode(view.frame), view.codes)
    assert view.units.tolist() == list(range(view.rows)) == view.frame.index.tolist()


def of(view: TableView) -> set[bytes]:
    return {row.tobytes() for row in view.codes}


def test_one_row_in_ten_is_copied() -> None:
    source, synthetic = of(SMALL.source), of(SMALL.synthetic)
    assert not source & synthetic
    for rows in (200, 250):
        made = with_copies(SMALL, rows, np.random.default_rng(1))
        copies = sum(row.tobytes() in source for row in made.codes)
        assert made.rows == rows and copies == round(COPIED * rows)
        assert len(of(made)) == rows
        consistent(made)


def test_the_stranger_knows_fresh_people_only() -> None:
    made = learned(PEOPLE.fresh, SMALL, 400, np.random.default_rng(1))
    other = replace(SMALL, source=SMALL.synthetic, synthetic=SMALL.source)
    again = learned(PEOPLE.fresh, other, 400, np.random.default_rng(1))
    assert np.array_equal(made.codes, again.codes) and made.rows == 400
    for place in range(4):
        assert set(made.codes[:, place]) <= set(PEOPLE.fresh.codes[:, place])
    assert len(of(made) - of(PEOPLE.fresh)) > 200  # and it is no copy of them
    consistent(made)


def test_cells_are_crossed_where_it_says_so() -> None:
    first, second = SMALL.source.take(np.arange(4)), SMALL.source.take(np.arange(4, 8))
    swapped = np.eye(4, dtype=bool)
    made = module.crossed(first, second, swapped)
    for row in range(4):
        for column in range(4):
            side = second if row == column else first
            assert made.codes[row, column] == side.codes[row, column]
    consistent(made)


def test_parts_of_the_distance_add_up_to_it() -> None:
    metric = Metric.of(SMALL.codec)
    first, second = SMALL.source.take(np.arange(200)), SMALL.source.take(np.arange(100, 300))
    parts = module.by_cell(metric, first, second)
    assert parts.shape == (200, 4)
    whole = np.diag(apart(first.frame, second.frame))
    assert parts.sum(axis=1) == pytest.approx(whole, abs=1e-12)
    only_p = np.diag(apart(first.frame[["p"]], second.frame[["p"]]))
    assert parts[:, SMALL.codec.names.index("p")] == pytest.approx(only_p)
