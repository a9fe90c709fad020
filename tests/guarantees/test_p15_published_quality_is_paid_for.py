"""P15: quality scores computed on real rows and published, without being paid for.

Here they are an event of the plan. These tests hold what its bound rests on (a patient moves each
answer by his rows at most), play the distinguishing game on the published answers, and hold that
the share is spent once: before the first row is read, and whatever happens then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import publish_quality, published_quality
from dpsynth.encoding import Codec, Cohort
from dpsynth.errors import BudgetError, GateError, InputError
from dpsynth.eval import Questionnaire
from dpsynth.ledger import Ledger
from dpsynth.privacy import ChosenHistograms, Deviation, Entropy, SeededEntropy, ask, quality_event
from dpsynth.privacy.accounting import gaussian_delta
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, record_sample
from dpsynth.tables import simulate, write_table

from ..support.bench_programs import bench_module
from ..support.quick_fit import quick_fit

Game = bench_module("distinguishing_game").Game
GaussianCurve = bench_module("tradeoff_curves").GaussianCurve
DEMO = Schema.load("demo")
CODEC = Codec(DEMO)
ROWS = DEMO.unit.max_rows


@pytest.fixture(scope="module")
def asked() -> Questionnaire:
    return Questionnaire.of(CODEC, CODEC.encode(simulate(700, seed=3)))


def event(multiplier: float) -> ChosenHistograms:
    return replace(quality_event(DEMO), noise_multiplier=multiplier)


def cohort_of(units: int, seed: int) -> Cohort:
    rng = np.random.default_rng(seed)
    rows = CODEC.encode(simulate(units, seed=seed))
    codes = rows[rng.integers(len(rows), size=(units, ROWS))]
    mask = np.arange(ROWS) < rng.integers(1, ROWS + 1, size=(units, 1))
    return Cohort(codes, mask)


def joined(one: Cohort, unit: np.ndarray) -> Cohort:
    """Add a unit with all its rows."""
    codes = np.zeros((1, ROWS, one.codes.shape[2]), np.uint16)
    codes[0, : len(unit)] = unit
    mask = (np.arange(ROWS) < len(unit))[None]
    return Cohort(np.concatenate([one.codes, codes]), np.concatenate([one.mask, mask]))


def exact(asked: Questionnaire, cohort: Cohort, total: float) -> list[np.ndarray]:
    rows = cohort.codes[cohort.mask]
    return [question.exact(rows, total) for question in asked.questions]


def worst_units() -> list[np.ndarray]:
    """Units of as many rows as count: equal ones, extreme ones, ordinary ones."""
    last = np.array(CODEC.sizes) - 1
    first = np.zeros(len(last), dtype=int)
    ordinary = CODEC.encode(simulate(30, seed=9))[:ROWS]
    return [np.tile(last, (ROWS, 1)), np.tile(first, (ROWS, 1)), ordinary, ordinary[:1]]


@pytest.mark.parametrize("total", [1.0, 57.0, 3000.0])
def test_a_patient_moves_each_answer_by_the_rows_that_count(
    asked: Questionnaire, total: float
) -> None:
    without = cohort_of(40, seed=4)
    reached = 0.0
    for unit in worst_units():
        within = joined(without, unit)
        for a, b in zip(exact(asked, without, total), exact(asked, within, total), strict=True):
            shift = float(np.linalg.norm(a - b))
            assert shift <= ROWS
            reached = max(reached, shift)
    assert reached == ROWS  # the bound is not slack: less noise would be too little


def test_the_plan_pays_for_every_answer(asked: Questionnaire) -> None:
    paid = event(5.0)
    assert len(asked.parts) == len(asked.questions) + 1 <= paid.most
    assert math.fsum(part**2 for part in asked.parts) <= 1
    assert paid.covers([paid.sigma_for(part) for part in asked.parts])


def game(asked: Questionnaire, name: str, share: float) -> Game:
    """The attacker knows everybody else, and weighs each answer by how far the patient moves it.

    ``share``: of the noise that was paid for; below 1 is the broken twin.
    """
    claimed = event(1.0)
    without, unit = cohort_of(60, seed=5), worst_units()[0]
    within = joined(without, unit)
    total = float(without.mask.sum())

    class Less(SeededEntropy):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            return super().discrete_gaussian(max(sigma * share, 1.0), size)

    entropy: Entropy = Less(11)
    deviations = [isinstance(question, Deviation) for question in asked.questions]
    cheap = replace(  # the classifier takes long, and its histogram is like any other
        asked,
        questions=tuple(q for q, d in zip(asked.questions, deviations, strict=True) if d)[2:],
        parts=(asked.parts[0], *asked.parts[3 : 3 + len(CODEC.names)]),
    )
    pairs = list(zip(exact(cheap, without, total), exact(cheap, within, total), strict=True))
    sizes = [np.array([total]), *(a for a, _ in pairs)]
    moved = [np.array([float(ROWS)]), *(b.astype(float) - a for a, b in pairs)]

    def scores(member: bool, runs: int) -> np.ndarray:
        cohort = within if member else without
        found = []
        for _ in range(runs):
            answers = ask(cohort, CODEC.sizes, cheap.questions, cheap.parts, claimed, entropy)
            found.append(
                sum(
                    float(((one.counts - base) * moved_).sum()) / one.sigma**2
                    for one, base, moved_ in zip(answers, sizes, moved, strict=True)
                )
            )
        return np.array(found)

    sigmas = [claimed.sigma_for(part) for part in cheap.parts]
    mu = math.sqrt(sum(float(m @ m) / (s**2 - 1.5**2) for m, s in zip(moved, sigmas, strict=True)))
    assert 0.5 < mu < claimed.mu()
    epsilon = 2.0
    return Game(name, scores, GaussianCurve(mu), epsilon, gaussian_delta(mu, epsilon), tight=False)


def test_the_game_does_not_refute_what_was_paid_and_refutes_a_third_of_the_noise(
    asked: Questionnaire,
) -> None:
    runs, fails = 260, 1e-4
    assert not game(asked, "quality", 1.0).play(runs, fails).broken
    assert game(asked, "quality, a third of the noise", 1 / 3).play(runs, fails).broken


# Spent once ------------------------------------------------------------------------------------


@dataclass
class Office:
    run: Path
    table: Path
    source: Path
    ledger: Ledger


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Office]:
    base = tmp_path_factory.mktemp("office")
    simulate(300, seed=1).to_csv(base / "source.csv", index=False)

    def made(folder: Path, share: float | None = 0.1) -> Office:
        ledger = Ledger.create(folder / "ledger.sqlite")
        run = quick_fit(
            base / "source.csv", DEMO, publish_quality=share, ledger=ledger, output=folder / "run"
        )
        table = folder / "out.parquet"
        write_table([run.sample(400, seed=1)], table, DEMO)
        record_sample(folder / "run", table, size=400, seed=1)
        return Office(folder / "run", table, base / "source.csv", ledger)

    return made


def test_the_share_is_spent_once(fitted: Any, tmp_path: Path) -> None:
    office = fitted(tmp_path)
    quality = publish_quality(office.run, office.table, office.source, ledger=office.ledger)
    assert [statistic.key for statistic in quality.statistics] == ["tvd1", "tvd2", "tvd3"]
    entry = office.ledger.state().entries[-1]
    assert entry.measured is not None and entry.measured.table == quality.table_sha256
    before = (office.run / "quality.json").read_bytes()
    (office.run / "quality.json").unlink()  # a second look would average the noise away
    with pytest.raises(BudgetError, match="was spent"):
        publish_quality(office.run, office.table, office.source, ledger=office.ledger)
    assert b"dpsynth-quality" in before and not (office.run / "quality.json").exists()


def test_a_ledger_with_two_measurements_of_one_share_is_no_sound_one(
    fitted: Any, tmp_path: Path
) -> None:
    office = fitted(tmp_path)
    entry = office.ledger.state().entries[-1].id
    with pytest.raises(BudgetError, match="changed by something other than"):
        with office.ledger.writing() as pen:
            pen.write("measured", entry, {"table": "a"})
            pen.write("measured", entry, {"table": "b"})
    assert office.ledger.state().entries[-1].measured is None  # neither was written


def test_a_death_while_rows_are_read_spends_the_share(
    fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = fitted(tmp_path)

    def dies(*_: Any) -> Any:
        assert office.ledger.state().entries[-1].measured is not None  # before the first row
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(published_quality, "read_cohort", dies)
        with pytest.raises(KeyboardInterrupt) as died:
            publish_quality(office.run, office.table, office.source, ledger=office.ledger)
    assert any("is spent" in note for note in died.value.__notes__)
    with pytest.raises(BudgetError, match="was spent"):
        publish_quality(office.run, office.table, office.source, ledger=office.ledger)


def test_what_was_not_set_aside_cannot_be_spent(fitted: Any, tmp_path: Path) -> None:
    office = fitted(tmp_path, None)
    with pytest.raises(InputError, match="--publish-quality"):
        publish_quality(office.run, office.table, office.source, ledger=office.ledger)


def test_only_a_whole_table_of_the_run_is_measured(fitted: Any, tmp_path: Path) -> None:
    office = fitted(tmp_path)
    other = tmp_path / "other.parquet"
    write_table([Run.load(office.run).sample(50, seed=2)], other, DEMO)
    with pytest.raises(GateError, match="not recorded"):
        publish_quality(office.run, other, office.source, ledger=office.ledger)
    record_sample(office.run, other, size=50, seed=2, condition="sex == 'F'")
    with pytest.raises(GateError, match="condition"):
        publish_quality(office.run, other, office.source, ledger=office.ledger)
    assert office.ledger.state().entries[-1].measured is None


def test_noise_that_can_be_replayed_is_refused(fitted: Any, tmp_path: Path) -> None:
    office = fitted(tmp_path)
    with pytest.raises(BudgetError, match="nothing was spent"):
        publish_quality(
            office.run,
            office.table,
            office.source,
            ledger=office.ledger,
            entropy=SeededEntropy(1),
        )
    assert office.ledger.state().entries[-1].measured is None


def test_a_source_that_cannot_be_read_spends_nothing_if_its_header_shows_it(
    fitted: Any, tmp_path: Path
) -> None:
    office = fitted(tmp_path)
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "wrong.csv", index=False)
    with pytest.raises(InputError):
        publish_quality(office.run, office.table, tmp_path / "wrong.csv", ledger=office.ledger)
    assert office.ledger.state().entries[-1].measured is None
