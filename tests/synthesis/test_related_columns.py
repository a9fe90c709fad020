"""A table with intervals, derived columns and weekdays goes the whole way to a verified bundle."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import release, verify
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.eval.attacks.audit import audit
from dpsynth.eval.core import Tables
from dpsynth.eval.evaluation import evaluation
from dpsynth.eval.fidelity import rules
from dpsynth.eval.report.audit_formatting import other_table
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler

from ..support.related_columns import ADMITTED, AGE, BMI, BORN, DISCHARGED, SEEN, SIZES, document

DATE = {**ADMITTED, "dpsynth": ADMITTED["dpsynth"] | {"calendar": "weekday"}}
SCHEMA = Schema.from_dict(
    document(
        *(DISCHARGED, DATE, BORN, SEEN, *SIZES, BMI, AGE),
        rules=["discharged >= admitted", "age >= 0", "bmi < 100 or weight > 30"],
    )
)
ROWS = 600
MEAN = 4.0  # days


def source(seed: int) -> pd.DataFrame:
    """Stays of exponential length, none on a Sunday; the derived columns are not in the file."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 1800, ROWS)
    admitted = np.datetime64("2010-01-01") + day
    admitted -= pd.DatetimeIndex(admitted).dayofweek == 6
    frame = pd.DataFrame(
        {
            "patient": [f"{seed}-{row}" for row in range(ROWS)],
            "discharged": admitted + rng.exponential(MEAN, ROWS).clip(0, 90).astype(int),
            "admitted": admitted,
            "born": admitted - rng.integers(20 * 365, 90 * 365, ROWS),
            "seen": admitted.astype("datetime64[m]") + rng.integers(0, 600, ROWS),
            "weight": rng.normal(80, 10, ROWS).round(),
            "height": rng.normal(175, 8, ROWS).astype(int),
        }
    )
    return frame.astype(str)


@pytest.fixture(scope="module")
def run() -> Run:
    budget = {"epsilon": 20.0, "delta": 1e-6, "dataset": "ward", "without_ledger": True}
    return dpsynth.fit(source(1), SCHEMA, model="mixture", **budget)


@pytest.mark.long
def test_stays_and_weekdays_come_out_as_they_went_in(run: Run) -> None:
    table = run.sample(4_000, seed=1)
    stay = (table["discharged"] - table["admitted"]).dt.days
    assert 0 <= stay.min() and stay.max() <= 90
    assert abs(stay.mean() - (MEAN - 0.5)) < 1.5  # whole days
    assert (table["admitted"].dt.dayofweek == 6).mean() < 0.04
    assert Codec(SCHEMA).conforms(table) == []


def bounded(run: Run, least: int, most: int) -> Run:
    """The run of a schema with other bounds of the derived index, which no fit reads."""
    bmi = BMI | {"constraints": {"minimum": least, "maximum": most}}
    columns = (DISCHARGED, DATE, BORN, SEEN, *SIZES, bmi, AGE)
    return replace(run, schema=Schema.from_dict(document(*columns)))


def test_a_row_whose_formula_leaves_the_bounds_is_drawn_again(run: Run) -> None:
    sampler = Sampler.of(bounded(run, 24, 28))
    rows = pd.concat(sampler.frames(2_000, seed=1))
    exact = rows["weight"] / (rows["height"] / 100) ** 2
    assert len(rows) == 2_000 and (exact - rows["bmi"]).abs().max() < 0.051
    assert sampler.acceptance.broken.keys() == {"bmi within its bounds", "age within its bounds"}
    assert sampler.acceptance.share < 0.9


def test_bounds_that_no_row_meets_are_named(run: Run) -> None:
    with pytest.raises(InputError, match="bmi within its bounds"):
        list(Sampler.of(bounded(run, 900, 1_000)).frames(10, seed=1))


def test_a_bundle_is_verified_and_says_what_follows_from_what(
    new_ledger: Path, tmp_path: Path
) -> None:
    ledger = Ledger(shutil.copyfile(new_ledger, tmp_path / "ledger.sqlite"))
    budget = {"epsilon": 3.0, "delta": 1e-6, "dataset": "ward", "ledger": ledger}
    folder = dpsynth.fit(source(1), SCHEMA, model="independent", **budget).save(tmp_path / "run")
    bundle = release(folder, tmp_path / "bundle", size=300, seed=7, ledger=ledger)
    verify(bundle, ledger=ledger)
    fields = {field["name"]: field for field in SCHEMA.to_table_schema()["fields"]}
    assert list(pd.read_csv(bundle / "data/synthetic.csv").columns) == list(fields)
    for file in ("report.html", "croissant.json", "datapackage.json"):
        text = (bundle / file).read_text()
        assert "0 to 90 days after admitted" in text, file
        assert "computed as years(born, admitted)" in text, file


def test_an_evaluation_sees_the_gap(run: Run) -> None:
    tables = Tables.read(SCHEMA, source(1), run.sample(500, seed=2), source(2))
    stay = tables.schema.column("discharged")
    assert (stay.type, stay.minimum, stay.maximum, stay.ucum) == ("integer", 0, 90, "d")
    assert stay.title == "discharged: days after admitted"
    assert "bmi" not in tables.source.frame and "admitted: weekday" in tables.source.frame
    assert tables.source.frame["discharged"].mean() < 2 * MEAN
    found = rules(tables, np.random.default_rng(1))
    assert found.measures[0].estimate.value == 0 and not tables.departures
    assert "discharged is before admitted" in json.dumps(found.details)
    half = tables.source.take(np.arange(10))
    assert half.published is not None and len(half.published) == 10


@pytest.mark.long
def test_evaluation_and_audit_name_the_same_schema(run: Run) -> None:
    """Or the page of one table would say that they are of different ones, and give no answer."""
    tables = Tables.read(SCHEMA, source(1), run.sample(200, seed=1), source(2))
    judged = evaluation(tables, limits=())
    attacked = audit(SCHEMA, {}, (), tables=tables, seed=0, settings={})
    assert judged["schema"] == attacked["schema"]
    assert other_table(attacked, judged) == ""
