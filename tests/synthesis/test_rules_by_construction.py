"""Orders, groups and conditions of columns go the whole way, with every generator."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import release, verify
from dpsynth.encoding import Codec
from dpsynth.eval.core import Tables
from dpsynth.eval.fidelity.numbers import followed_name, following
from dpsynth.ledger import Ledger
from dpsynth.schema import LinkedSchema, Rule, Schema
from dpsynth.synthesis import Acceptance, Run, Sampler, fit
from dpsynth.synthesis.conditions import boxes_of
from dpsynth.tables import simulate_cohort

from ..support.following_columns import EVERY, ORDER, WHOLE, as_text, schema_of
from ..support.quick_fit import quick_fit
from ..support.short_training import shorten_histories, shorten_mixture, shorten_training
from ..support.some_cases import each_generator

ROWS = 500
TOLD = schema_of(*EVERY, rules=["low < high <= top"])
"""The same table with its order as a rule of text: rows that break it are drawn again."""


def source(seed: int) -> pd.DataFrame:
    """Pressures that keep their order in nearly every row, and diagnoses of two chapters."""
    rng = np.random.default_rng(seed)
    low = rng.normal(80, 12, ROWS).round().clip(30, 159)
    high = (low + rng.gamma(4, 10, ROWS)).round()
    frame = pd.DataFrame(
        {
            "patient": [f"{seed}-{row}" for row in range(ROWS)],
            "low": low.astype(int),
            "high": np.where(rng.random(ROWS) < 0.02, 60, high).astype(int),
            "top": (high + rng.gamma(2, 3, ROWS)).round(1),
            "sex": rng.choice(["F", "M"], ROWS),
            "born": rng.integers(1930, 2000, ROWS),
            "diagnosis": rng.choice(["I10", "I21.0", "E11.9"], ROWS),
        }
    )
    can = (frame["sex"] == "F") & (frame["born"] > 1965)
    return as_text(frame.assign(pregnant=np.where(can, rng.random(ROWS) < 0.2, None)))


@pytest.fixture(scope="module")
def run() -> Run:
    with pytest.MonkeyPatch.context() as patch:
        shorten_mixture(patch)
        return quick_fit(source(1), WHOLE, model="mixture", epsilon=20.0)


@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_rows_of_every_generator_keep_order_group_and_condition(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_training(monkeypatch)
    shorten_mixture(monkeypatch)
    sampler = Sampler.of(quick_fit(source(1), WHOLE, model=model))
    [table] = sampler.frames(400, seed=1)
    assert Codec(WHOLE).conforms(table) == []
    assert (table["low"] < table["high"]).sum() == table["high"].notna().sum() > 100
    assert sampler.acceptance.share == 1.0
    assert sampler.acceptance.words("row") == "every drawn row met the rules"


def test_an_order_of_text_is_drawn_again_and_counted(run: Run) -> None:
    told = Sampler.of(quick_fit(source(1), TOLD, epsilon=50.0))
    assert told.acceptance.share == 1.0  # before anything is drawn
    [table] = told.frames(400, seed=1)
    both = table.dropna(subset=["low", "high"])
    assert (both["low"] < both["high"]).all()
    assert 0.02 < told.acceptance.share < 0.97
    assert told.acceptance.drawn >= 400 and told.acceptance.met >= 400
    words = told.acceptance.words("row")
    assert words.startswith(f"{100 * told.acceptance.share:.3g} % of the drawn rows met the rules")
    assert words.endswith("broken most often: 'low < high <= top'")


def test_the_upper_column_is_drawn_as_it_was_learned(run: Run) -> None:
    table, real = run.sample(4_000, seed=1), source(1)
    gap = (table["high"] - table["low"]).dropna().astype(float)
    wanted = (real["high"].astype(int) - real["low"].astype(int)).clip(lower=1)
    assert abs(gap.mean() - wanted.mean()) < 8
    assert run.sample(50, seed=3).equals(run.sample(50, seed=3))


def test_a_condition_on_columns_that_follow_is_met(run: Run) -> None:
    table = run.sample(200, seed=1, where="high > 140 and chapter == 'circulatory'")
    assert (table["high"] > 140).all() and (table["chapter"] == "circulatory").all()
    balanced = Sampler.of(run, balance="sex", where="high > 100")
    [part] = balanced.frames(90, seed=1)
    assert (part["high"] > 100).all() and len(part) == 90
    assert balanced.acceptance.drawn >= 90


def test_a_condition_on_a_group_is_one_on_its_codes() -> None:
    codec, rng = Codec(WHOLE), np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 2_000) for size in codec.sizes], axis=1)
    frame = codec.decode(codes, rng)
    for text in ("chapter == 'circulatory'", "chapter != 'blood'", "not (chapter in ('other'))"):
        [box] = boxes_of(Rule.parse(text), codec)
        holds = Rule.parse(text).holds(frame, missing=False)
        assert holds.any() and box.holds(codes.astype(np.uint16)).tolist() == holds.tolist()


def test_counts_of_samplers_add_up() -> None:
    one = Acceptance()
    one.add(4, np.array([True, False, True, True]), {"a < b": 1})
    one.add(4, np.array([True, True, True, True]), {"a < b": 0})
    assert (one.drawn, one.met, one.broken) == (8, 7, {"a < b": 1})
    assert one.words("patient").startswith("87.5 % of the drawn patients met the rules")


def test_an_evaluation_sees_the_gap_and_the_column(run: Run) -> None:
    tables = Tables.read(WHOLE, source(1), run.sample(300, seed=2), source(2))
    assert tables.schema.column("high").title == "high: above low" and not tables.departures
    names = [followed_name(column) for column in following(tables.codec.published)]
    assert names == ["high (integer)", "top (number)", "age"]


def test_a_bundle_is_verified_and_says_what_follows_from_what(
    new_ledger: Path, tmp_path: Path
) -> None:
    ledger = Ledger(shutil.copyfile(new_ledger, tmp_path / "ledger.sqlite"))
    budget = {"epsilon": 3.0, "delta": 1e-6, "dataset": "ward", "ledger": ledger}
    run = dpsynth.fit(source(1), WHOLE, model="independent", **budget)
    assert Run.load(run.save(tmp_path / "run")).schema == WHOLE
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=200, seed=7, ledger=ledger)
    verify(bundle, ledger=ledger)
    for file in ("report.html", "croissant.json", "datapackage.json"):
        text = (bundle / file).read_text()
        assert "computed as the chapter of diagnosis" in text, file
        assert "above low" in text, file


@pytest.mark.long
def test_linked_tables_keep_orders_and_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_histories(monkeypatch)
    document = LinkedSchema.load("clinic").to_dict()
    patients, visits = document["resources"][:2]
    diabetes = next(f for f in patients["schema"]["fields"] if f["name"] == "diabetes")
    diabetes["constraints"] = {}
    diabetes["dpsynth"]["present_if"] = "sex == 'female'"
    bounds = {"minimum": 30, "maximum": 150}
    pressure = {"name": "low", "type": "integer", "constraints": bounds}
    visits["schema"]["fields"].append(pressure | {"dpsynth": {"bounds_basis": "the cuff"}})
    visits["dpsynth"]["rules"] = [{"order": "low < systolic"}]
    schema = LinkedSchema.from_dict(document)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    tables = simulate_cohort(200, seed=1)
    tables["visits"]["low"] = (tables["visits"]["systolic"].fillna(100) * 0.6).astype(int)
    run = fit(
        tables, schema, epsilon=9, delta=1e-4, dataset="x", model="cohort", without_ledger=True
    )
    sampler = Sampler.of(run)
    [frames] = sampler.frames(60, seed=1)
    both = frames["visits"].dropna(subset=["low", "systolic"])
    assert len(both) and (both["low"] < both["systolic"]).all()
    women = frames["patients"]["sex"] == "female"
    assert frames["patients"]["diabetes"].isna()[~women].all()
    assert frames["patients"]["diabetes"].notna().any() and sampler.acceptance.share == 1.0


def test_a_schema_of_text_rules_is_coded_as_ever() -> None:
    assert Codec(TOLD).sizes[:2] == (130, 202) and Codec(WHOLE).sizes[:2] == (130, 202)
    assert isinstance(TOLD, Schema) and [rule.order for rule in TOLD.rules] == [False]
    assert ORDER["order"] == TOLD.rules[0].text
