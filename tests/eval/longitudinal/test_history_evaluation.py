"""The document of an evaluation of histories: by seed, without cells, and clear on bad input."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

from dpsynth.encoding import Histories, SeriesRows, read_histories
from dpsynth.errors import InputError
from dpsynth.eval.longitudinal import (
    HistoryEvaluation,
    evaluate_histories,
    summary,
    synthetic_pictures,
)
from dpsynth.eval.longitudinal.uses import CARE, FIT, OPEN, UNFIT, uses
from dpsynth.privacy import SeededEntropy
from dpsynth.tables import open_linked

from ...support.clinic import clinic_codec, clinic_schema, clinic_tables
from ...support.history_cohorts import codec, cohort, grow_few_trees, with_rows

CODEC = codec()
TRAIN, HOLDOUT, DRAWN = cohort(400, seed=1), cohort(300, seed=2), cohort(350, seed=3)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)


@cache
def found() -> HistoryEvaluation:
    """An evaluation with a holdout."""
    return evaluate_histories(CODEC, DRAWN, TRAIN, HOLDOUT, seed=4)


def test_the_document_is_json_and_internal() -> None:
    document = json.loads(found().to_json())
    assert (document["format"], document["internal"]) == ("dpsynth-history-evaluation", True)
    assert document["patients"] == {
        "source": 400,
        "synthetic": 350,
        "holdout": 300,
        "compared": 300,
    }
    leading = [key for key in document["measures"] if ":" not in key]
    assert leading == [
        *("values", "links", "calendar", "prevalence", "effects", "coefficients"),
        *("rows_per_patient", "gaps", "row_values", "row_pairs"),
        *("transitions", "within_icc", "within_lag", "baseline1", "baseline2", "baseline_rows"),
        *("event_rows", "row_means_by_group", "group_differences", "group_rate_differences"),
        *("event_curves", "event_rates", "group_curves", "broken_histories", "tstr_next"),
        *("tstr_outcome", "trajectory_c2st"),
    ]
    for entry in document["measures"].values():
        assert None not in (entry["reference"], entry["chance"], entry["low"], entry["high"])
        assert entry["low"] <= entry["value"] <= entry["high"] and entry["meaning"]


@pytest.mark.long
def test_the_same_seed_gives_the_same_document_and_another_one_does_not() -> None:
    few = [cohort(120, seed) for seed in (1, 2, 3)]
    one, again, other = (evaluate_histories(CODEC, *few, seed=seed).to_json() for seed in (4, 4, 5))
    assert one == again
    assert one != other


def test_nothing_private_is_in_the_repr() -> None:
    assert repr(found()) == "<HistoryEvaluation schema ward, internal>"


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    evaluate_histories(
        CODEC, cohort(60, 1), cohort(60, 2), progress=lambda stage, part: told.append((stage, part))
    )
    assert [part for _, part in told] == sorted(part for _, part in told)
    assert told[0][0] == "histories: cohorts" and told[-1] == ("histories: pictures", 1.0)


def test_few_patients_are_measured_and_not_judged() -> None:
    one = evaluate_histories(CODEC, cohort(60, 1), cohort(60, 2))
    assert {use.verdict for use in one.uses} == {OPEN}
    assert any("only 60 patients" in note for note in one.notes)


def test_one_patient_is_enough_not_to_fail() -> None:
    one = evaluate_histories(CODEC, cohort(1, 1), cohort(1, 2))
    assert one.measure("rows_per_patient").estimate.low is None
    json.loads(one.to_json())


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    wrong = [
        (cohort(0), "the synthetic histories have no patient; evaluate tables that have some"),
        (
            Histories(DRAWN.baseline[:, :3], DRAWN.ends, DRAWN.onsets, DRAWN.rows),
            "the synthetic histories do not fit schema ward: other tables or columns",
        ),
        (
            Histories(DRAWN.baseline, DRAWN.ends, DRAWN.onsets[:, :0], DRAWN.rows),
            "other events; read all of them with one codec",
        ),
        (
            Histories(DRAWN.baseline + np.uint16(4000), DRAWN.ends, DRAWN.onsets, DRAWN.rows),
            "other codes; read all of them with one codec",
        ),
        (
            with_rows(
                DRAWN, 0, 0, SeriesRows(np.array([777]), np.array([0]), np.ones((1, 1), "u2"))
            ),
            "a row of labs hdl belongs to no patient",
        ),
    ]
    for histories, words in wrong:
        with pytest.raises(InputError) as caught:
            evaluate_histories(CODEC, histories, TRAIN)
        assert words in str(caught.value) and "777" not in str(caught.value)
    with pytest.raises(InputError, match="whole number from 0"):
        evaluate_histories(CODEC, DRAWN, TRAIN, seed=-1)
    with pytest.raises(InputError, match="no measure 'tvd9'"):
        found().measure("tvd9")


def test_rows_need_not_be_in_order_of_patients() -> None:
    rows = DRAWN.rows[1][0]
    turned = SeriesRows(rows.patients[::-1], rows.days[::-1], rows.values[::-1])
    straight = synthetic_pictures(CODEC, with_rows(DRAWN, 1, 0, turned))
    assert straight["counts"] == synthetic_pictures(CODEC, DRAWN)["counts"]


def test_pictures_for_anybody_depend_on_no_real_patient() -> None:
    other = evaluate_histories(CODEC, DRAWN, cohort(90, seed=9, rows=9.0), None, seed=4)
    assert other.synthetic == found().synthetic == synthetic_pictures(CODEC, DRAWN, 4)
    assert other.to_dict()["measures"] != found().to_dict()["measures"]


def test_uses_are_judged_by_figures_beside_references() -> None:
    def entry(value: float, reference: float | None, n: int = 500) -> dict[str, float | None]:
        return {"value": value, "low": value, "high": value, "n": n, "reference": reference,
                "chance": 0.01}  # fmt: skip

    cases = [
        ({"rows_per_patient": entry(0.04, 0.02)}, FIT),
        ({"rows_per_patient": entry(0.08, 0.02)}, CARE),
        ({"rows_per_patient": entry(0.2, 0.02)}, UNFIT),
        ({"rows_per_patient": entry(0.2, 0.18)}, FIT),
        ({"rows_per_patient": entry(0.03, None)}, FIT),
        ({"rows_per_patient": entry(0.03, None), "calendar": entry(0.5, None)}, UNFIT),
        ({"rows_per_patient": entry(0.2, 0.02, 80)}, OPEN),
        ({"event_curves": entry(0.02, 0.01), "event_curves:mi": entry(0.4, 0.01)}, CARE),
        ({"row_means_by_group": entry(0.1, 0.05)}, FIT),
        ({"row_means_by_group": entry(0.4, 0.05)}, UNFIT),
        ({"tstr_next": entry(0.79, 0.8)}, FIT),
        ({"tstr_next": entry(0.75, 0.8)}, CARE),
        ({"tstr_next": entry(0.6, 0.8)}, UNFIT),
        ({"tstr_next": entry(0.5, 0.52)}, OPEN),  # nothing to learn
        ({"trajectory_c2st": entry(0.55, 0.5)}, FIT),
        ({"trajectory_c2st": entry(0.9, 0.5)}, UNFIT),
        ({"row_means_by_group": entry(0.04, 0.03)}, FIT),  # a distance, and no area under a curve
        ({"row_means_by_group": entry(0.24, 0.04)}, CARE),
        ({"row_means_by_group": entry(0.5, 0.04)}, UNFIT),
        ({"broken_histories": entry(0.0, 0.0)}, FIT),
        ({"broken_histories": entry(0.02, 0.0)}, UNFIT),
    ]
    for measures, verdict in cases:
        [use] = uses(measures)
        assert use.verdict == verdict, measures
        assert use.sentence.endswith(".")
        assert ("area under the curve" in use.sentence) == any(k.startswith("t") for k in measures)
    [use] = uses({"event_curves": entry(0.02, 0.01), "event_curves:mi": entry(0.4, 0.01)})
    assert use.sentence.endswith("Not fit on their own: mi.")
    assert summary([use]) == ["They keep in part; use with care: time to events, also by group."]


def test_a_patient_is_called_by_answers_that_say_what_they_are_about() -> None:
    tables = open_linked(clinic_tables(), clinic_schema())
    drawn = read_histories(tables, clinic_codec(), SeededEntropy(1))
    labels = [one["label"] for one in synthetic_pictures(clinic_codec(), drawn)["samples"]]
    assert labels and all(re.fullmatch(r"(fe)?male, \d+ years, diabetes: (yes|no)", one)
                          for one in labels)  # fmt: skip
