"""A column of several codes goes the whole way: fitted, drawn, judged, released and verified."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import Candidate, evaluate
from dpsynth.bundle import release, verify
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.synthesis import Completion, Run, Sampler

from ..support.code_sets import many_cells, schema_of, several
from ..support.quick_fit import quick_fit

SCHEMA = schema_of(several=several(4))
REAL = many_cells(3000)


@pytest.fixture(scope="module")
def run() -> Run:
    return quick_fit(REAL, SCHEMA, model="mixture", epsilon=20.0)


def pairs(cells: pd.Series) -> pd.Series:
    """The share of rows that hold each pair of codes."""
    every = [p for cell in cells.fillna("") for p in combinations(sorted(cell.split(";")), 2)]
    return pd.Series(every).value_counts() / len(cells)


def test_codes_that_go_together_are_drawn_together(run: Run) -> None:
    drawn = run.sample(4000, seed=1)
    real, found = (pairs(cells)[("A1", "B1")] for cells in (REAL["dx"], drawn["dx"]))
    alone = np.prod([drawn["dx"].str.contains(code, na=False).mean() for code in ("A1", "B1")])
    assert abs(found - real) < 0.4 * (real - alone), "places follow each other"
    numbers = [frame["dx"].fillna("").str.split(";").str.len().mean() for frame in (REAL, drawn)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.2)
    assert drawn["dx"].str.count(";").max() <= 3


def test_the_same_seed_draws_the_same_cells(run: Run) -> None:
    assert run.sample(50, seed=3).equals(run.sample(50, seed=3))


def test_conditions_balance_and_completion_say_why_not(run: Run) -> None:
    with pytest.raises(InputError, match="column 'dx' holds several codes"):
        run.sample(5, seed=1, where="dx == 'A'")
    with pytest.raises(InputError, match="not by 'dx'; choose one of sex"):
        Sampler.of(run, balance="dx")
    for name, why in (("dx", "not drawn by itself: .* several codes"), ("dx: 1", "not a column")):
        with pytest.raises(InputError, match=f"cannot be given: it is {why}"):
            Completion(run, pd.DataFrame({name: ["A"]}))


def test_a_bundle_holds_what_the_schema_says(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    quick_fit(many_cells(900), SCHEMA, ledger=ledger, output=tmp_path / "run")
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=300, seed=1, ledger=ledger)
    assert any("synthetic.csv has the same 300 rows" in check for check in verify(bundle))
    words = "up to 4 codes, separated by ';', without an order"
    assert words in (bundle / "CARD.md").read_text()
    report = (bundle / "report.html").read_text()
    assert words in report.replace("&#39;", "'")
    [rows] = json.loads((bundle / "croissant.json").read_text())["recordSet"]
    [field] = [field for field in rows["field"] if field["name"] == "dx"]
    assert field["repeated"] and field["source"]["transform"] == {"separator": ";"}


@pytest.mark.long
def test_an_evaluation_judges_each_place(run: Run) -> None:
    candidate = Candidate.drawn("drawn", run, seed=1)
    found = evaluate(SCHEMA, many_cells(400), candidate)
    words = json.dumps(found)
    assert "dx: 2" in words and "dx: 4" in words
