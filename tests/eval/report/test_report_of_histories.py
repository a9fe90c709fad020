"""Pages on histories: internal ones say so, public ones hold nothing of real patients."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.eval.gates import gates
from dpsynth.eval.longitudinal import HistoryEvaluation, evaluate_histories
from dpsynth.eval.report import comparison_page, longitudinal_page, longitudinal_sections
from dpsynth.eval.report.charts import followed, line_height

from ...support.history_cohorts import codec, cohort, grow_few_trees
from ...support.hospital_histories import codec as hospital_codec
from ...support.hospital_histories import hospital, with_stays

pytestmark = pytest.mark.usefixtures("without_library")
TRAIN, HOLDOUT, DRAWN = cohort(240, seed=1), cohort(230, seed=2), cohort(250, seed=3, hazard=2.0)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)


@cache
def found() -> HistoryEvaluation:
    """An evaluation with a holdout."""
    return evaluate_histories(codec(), DRAWN, TRAIN, HOLDOUT, seed=4)


def specs(page: str) -> list[Any]:
    """The pictures of a page."""
    text = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert text is not None
    return list(json.loads(text[1]))


def test_the_internal_page_says_what_is_kept_and_shows_all_parts() -> None:
    page = longitudinal_page(found())
    assert "Do not release" in page and "(internal)" in page
    assert "What a patient&#39;s history keeps" in page or "What a patient's history keeps" in page
    for use in found().uses:
        assert use.title.replace("'", "&#39;") in page or use.title in page
    ids = [section.id for section in longitudinal_sections(found())]
    assert ids == [
        *("facts", "samples", "seen", "values", "courses", "courses-drawn", "patients", "events"),
        *("prediction", "told-apart", "broken"),
    ]
    assert all(f'id="{one}"' in page for one in (*ids, "uses", "overview", "measures", "notes"))


def test_the_same_page_is_made_from_the_document() -> None:
    document = json.loads(found().to_json())
    assert longitudinal_page(document) == longitudinal_page(found())
    with pytest.raises(InputError, match="no evaluation of histories"):
        longitudinal_page(document | {"format": "dpsynth-evaluation"})
    with pytest.raises(InputError, match="there is no audience 'press'"):
        longitudinal_page(document, audience="press")  # type: ignore[arg-type]


def test_rules_that_are_not_declared_are_not_called_kept() -> None:
    """Rows lie within stays in both tables; only a declaration keeps that."""
    inside = {"table": "stays", "length": "los"}
    for declared, word in (({}, "no"), ({"inside": inside}, "yes")):
        codec = hospital_codec(**declared)
        found = evaluate_histories(codec, hospital(400, 2), hospital(400, 1), limits=gates())
        page = longitudinal_page(found)
        row = re.search(r"rows of labs on a day of a row of stays.*?</tr>", page, re.S)
        assert row is not None and re.findall(r">(yes|no)<", row[0]) == [word]
        assert "A rule that the schema does not declare is not kept" in page
        [use] = [one for one in found.uses if one.key == "possible"]
        assert (
            "rule: of the schema, of public clinical edits, of follow-up or of order"
            in use.sentence
        )


def test_a_comparison_names_where_each_cohort_differs_most() -> None:
    drawn = [
        hospital(400, 2),
        with_stays(hospital(400, 2), days=hospital(400, 2).rows[0][0].days // 5),
    ]
    documents = [
        evaluate_histories(hospital_codec(), one, hospital(400, 1), limits=gates()).to_dict()
        for one in drawn
    ]
    page = comparison_page(documents, ["near", "far"])
    assert "Where histories differ most" in page and "Values, by place in a patient" in page
    table = page[page.index("Where histories differ most") :]
    table = table[: table.index("</table>")]
    assert ">far<" in table and "rows of labs on a day of a row of stays" in table


def test_the_public_page_depends_on_no_real_patient() -> None:
    page = longitudinal_page(found(), audience="public")
    other = evaluate_histories(codec(), DRAWN, cohort(90, seed=7, rows=9.0), seed=4)
    assert longitudinal_page(other, audience="public") == page
    assert "real patients whom" not in page and "Do not release" not in page
    names = {trace.get("name", "") for spec in specs(page) for trace in spec["data"]}
    assert not [name for name in names if "source" in name or "holdout" in name]


def test_no_picture_draws_a_real_patient() -> None:
    """Lines of single patients are those of the synthetic part; real ones are quantiles."""
    document = found().to_dict()
    samples = json.dumps(document["synthetic"]["courses"])
    thin = [
        trace
        for spec in specs(longitudinal_page(document))
        for trace in spec["data"]
        if trace.get("mode") == "lines+markers" and trace.get("opacity")
    ]
    drawn = [line["y"] for one in document["synthetic"]["courses"] for line in one["lines"]]
    assert thin and all(trace["y"] in drawn for trace in thin)
    assert "source" not in samples


def test_no_real_history_is_in_the_document() -> None:
    """Counts, quantiles and curves only: no list is as long as the patients of train."""

    def longest(value: Any) -> int:
        if isinstance(value, dict):
            return max(map(longest, value.values()), default=0)
        if isinstance(value, list):
            return max([len(value), *map(longest, value)])
        return 0

    assert longest(found().to_dict()["parts"]) < 120


def test_names_are_escaped() -> None:
    document = json.loads(found().to_json())
    document["schema"]["title"] = "<script>alert(1)</script>"
    document["notes"].append("<img src=x>")
    document["synthetic"]["courses"][0]["title"] = "<b>bold</b>"
    for audience in ("internal", "public"):
        page = longitudinal_page(document, audience=audience)  # type: ignore[arg-type]
        assert "<script>alert" not in page and "<img src=x>" not in page and "<b>bold" not in page


def test_a_cohort_without_time_or_events_has_the_sections_that_it_can_have() -> None:
    document = json.loads(found().to_json())
    for part in ("events", "prediction", "timing", "groups"):
        del document["parts"][part]
    ids = [section.id for section in longitudinal_sections(document)]
    assert "events" not in ids and "prediction" not in ids and "values" in ids


def crowded(tests: int) -> dict[str, Any]:
    """The pictures of patients with a table of many tests beside two others."""
    names = [("stays", "stays"), ("drugs", "drugs")]
    names += [("labs", f"labs: t{number}") for number in range(tests)]
    rows = [{"series": t, "table": t, "title": name, "at": [1, 50]} for t, name in names]
    one = {"label": "F", "end": 90, "rows": rows, "events": []}
    return {"samples": [one] * 12, "timed": True, "first": 0, "last": 100}


def test_ticks_stay_in_the_line_of_their_patient_however_many_tests_there_are() -> None:
    whole = crowded(60)
    spec = followed(whole)
    ticks = [one for one in spec["data"] if one["mode"] == "markers"]
    assert [one["name"] for one in ticks] == ["stays", "drugs", "labs"]
    for trace in ticks:
        assert all(abs(y - round(y)) < 0.5 for y in trace["y"])
    lanes = {trace["y"][0] for trace in ticks}
    assert len(lanes) == 3
    many = crowded(0)
    many["samples"][0]["rows"] = [
        {"series": f"t{n}", "table": f"t{n}", "title": f"t{n}", "at": [1]} for n in range(12)
    ]
    shifts = [one["y"][0] - round(one["y"][0]) for one in followed(many)["data"] if "name" in one]
    assert max(map(abs, shifts)) < 0.5 and line_height(many) > line_height(whole)


def test_an_older_document_names_each_series() -> None:
    whole = crowded(2)
    for row in whole["samples"][0]["rows"]:
        del row["table"]
    names = [one["name"] for one in followed(whole)["data"] if one["mode"] == "markers"]
    assert names == ["stays", "drugs", "labs: t0", "labs: t1"]


def test_courses_say_of_how_many_values_they_are() -> None:
    document = json.loads(found().to_json())
    page = longitudinal_page(document)
    drawn = len(document["synthetic"]["courses"])
    assert document["synthetic"]["values"] >= drawn
    document["synthetic"]["values"] = 61
    page = longitudinal_page(document)
    assert f"These are {drawn} of 61 values that are numbers" in page
