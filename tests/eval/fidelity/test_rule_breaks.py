"""Impossible records: how many rows break the schema's rules, and in what words it is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dpsynth.eval.fidelity import clinical_edits, rules
from dpsynth.eval.fidelity.records import broken
from dpsynth.schema import Rule

from ...support.evaluation_tables import BASIS, number, tables, words
from ...support.schema_fields import schema_field

FIELDS = [
    number("dbp", 0, 200) | {"title": "Diastolic pressure"},
    number("sbp", 0, 200) | {"title": "Systolic pressure"},
    words("sex", "F", "M"),
    words("ward", "obstetrics", "surgery"),
    schema_field("admitted", "date", BASIS, minimum="2020-01-01", maximum="2020-12-31"),
    {"name": "alive", "type": "boolean"},
]
RULES = ["dbp < sbp", "ward == 'obstetrics' implies sex == 'F'"]


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "dbp": rng.integers(60, 130, rows),
            "sbp": rng.integers(100, 180, rows),
            "sex": rng.choice(["F", "M"], rows),
            "ward": rng.choice(["obstetrics", "surgery"], rows),
            "admitted": "2020-05-01",
            "alive": True,
        }
    ).astype({"dbp": "Int64"})
    frame.loc[rng.random(rows) < 0.2, "dbp"] = pd.NA
    return frame


def possible(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame["sbp"] = 190
    frame.loc[frame["ward"] == "obstetrics", "sex"] = "F"
    return frame


def test_broken_rules_are_those_that_pandas_counts() -> None:
    source, drawn, holdout = possible(people(300, 1)), people(400, 2), people(200, 3)
    part = rules(tables(FIELDS, source, drawn, holdout, rules=RULES), np.random.default_rng(0))
    pressure = (drawn["dbp"] >= drawn["sbp"]).fillna(False).astype(bool)
    sex = (drawn["ward"] == "obstetrics") & (drawn["sex"] != "F")
    first, second = part.details["rules"]
    assert first["synthetic"] == pytest.approx(pressure.mean(), rel=1e-5)
    assert second["synthetic"] == pytest.approx(sex.mean(), rel=1e-5)
    assert first["source"] == second["source"] == 0 and first["n"] == 400
    (measure,) = part.measures
    estimate = measure.estimate
    assert estimate.value == pytest.approx((pressure | sex).mean())
    exact = binomtest(int((pressure | sex).sum()), 400).proportion_ci(method="exact")
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high), rel=1e-6)
    expected = ((holdout["dbp"] >= holdout["sbp"]).fillna(False)) | (
        (holdout["ward"] == "obstetrics") & (holdout["sex"] != "F")
    )
    assert estimate.reference == pytest.approx(expected.mean())
    assert estimate.chance == 0 and measure.key == "rules" and measure.best == 0


def test_a_gap_breaks_no_rule() -> None:
    gap = people(20, 1).assign(dbp=None, sex=None)
    part = rules(tables(FIELDS, gap, gap, rules=RULES), np.random.default_rng(0))
    assert part.measures[0].estimate.value == 0
    assert part.details["rules"][0]["holdout"] is None


def test_one_row_gives_a_wide_interval() -> None:
    part = rules(tables(FIELDS, people(20, 1), people(1, 2), rules=RULES), np.random.default_rng(0))
    estimate = part.measures[0].estimate
    assert estimate.low is not None and estimate.high is not None
    assert estimate.high - estimate.low == pytest.approx(0.975)


def test_a_schema_without_rules_says_so() -> None:
    part = rules(tables(FIELDS, people(20, 1), people(20, 2)), np.random.default_rng(0))
    assert not part.measures and part.details == {"rules": []} and part.notes


@pytest.mark.parametrize(
    ("rule", "words_of_it"),
    [
        ("dbp < sbp", "Diastolic pressure is at least Systolic pressure"),
        ("dbp <= 120", "Diastolic pressure is above 120"),
        ("120 >= dbp", "Diastolic pressure is above 120"),
        ("dbp == sbp", "Diastolic pressure is not the same as Systolic pressure"),
        ("dbp != sbp", "Diastolic pressure is the same as Systolic pressure"),
        ("40 <= dbp < 120", "Diastolic pressure is below 40 or Diastolic pressure is at least 120"),
        ("ward == 'obstetrics' implies sex == 'F'", "ward is obstetrics, but sex is not F"),
        ("alive == true", "alive is false"),
        ("alive == false or sex == 'F'", "alive is true and sex is not F"),
        ("not (sex == 'F' and alive == true)", "sex is F and alive is true"),
        ("admitted >= '2020-03-01'", "admitted is before 2020-03-01"),
        (
            "sex == 'M' and sbp > 3 implies alive == true or ward == 'surgery'",
            "(sex is M and Systolic pressure is above 3), "
            "but alive is false and ward is not surgery",
        ),
    ],
)
def test_a_broken_rule_in_plain_words(rule: str, words_of_it: str) -> None:
    schema = tables(FIELDS, people(5, 1), people(5, 2)).schema
    assert not Rule.parse(rule).problems(schema.columns)
    assert broken(Rule.parse(rule), schema) == words_of_it


def test_an_implication_inside_a_negation() -> None:
    schema = tables(FIELDS, people(5, 1), people(5, 2)).schema
    text = broken(Rule.parse("not (sex == 'F' implies alive == true)"), schema)
    assert text == "sex is not F, or alive is true"


def test_categories_are_called_by_their_labels() -> None:
    coded = {
        "name": "sex",
        "type": "integer",
        "categories": [{"value": 1, "label": "female"}, {"value": 2, "label": "male"}],
        "constraints": {"enum": [1, 2]},
        "dpsynth": {"bounds_basis": BASIS},
    }
    frame = pd.DataFrame({"sex": [1, 2]})
    compared = tables([coded], frame, frame, rules=["sex != 2"])
    part = rules(compared, np.random.default_rng(0))
    assert part.details["rules"][0]["plain"] == "sex is male"
    assert part.details["rules"][0]["text"] == "sex != 2"
    assert part.details["rules"][0]["synthetic"] == 0.5


def test_clinical_edits_are_counted_though_nobody_declared_them() -> None:
    source, drawn, holdout = possible(people(300, 1)), people(400, 2), people(200, 3)
    part = clinical_edits(tables(FIELDS, source, drawn, holdout), np.random.default_rng(0))
    (measure,) = part.measures
    wrong = (drawn["ward"] == "obstetrics") & (drawn["sex"] != "F")
    assert (measure.key, measure.best) == ("edits", 0)
    assert measure.estimate.value == pytest.approx(wrong.mean()) and measure.estimate.chance == 0
    other = (holdout["ward"] == "obstetrics") & (holdout["sex"] != "F")
    assert measure.estimate.reference == pytest.approx(other.mean())
    [entry] = part.details["clinical_edits"]
    assert entry["text"] == "ward == 'obstetrics' implies sex == 'F'" and entry["source"] == 0
    alone = tables(FIELDS[:2], source, drawn, holdout)
    assert clinical_edits(alone, np.random.default_rng(0)).measures == ()
