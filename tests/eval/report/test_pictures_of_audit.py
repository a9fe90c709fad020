"""The pictures of an audit in the internal report: their marks, scales and words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dpsynth.eval.report import audit_formatting, charts, internal_page

from ...support.audit_example import audit
from .test_report import Page, figures

Json = dict[str, Any]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(internal_page(None, audit()))


def picture(page: Page, label: str) -> Json:
    """Return the spec of the picture whose alternative begins so."""
    boxes = [one for one in page.all("div") if "data-figure" in one]
    place = next(k for k, one in enumerate(boxes) if (one["aria-label"] or "").startswith(label))
    return figures(page)[place]


def test_distances_carry_the_warning_of_a_smoke_test(page: Page) -> None:
    assert "they neither detect nor bound what a table gives away" in page.words()
    spec = picture(page, "Distances of synthetic rows")
    assert [one["name"] for one in spec["data"]] == ["to people in the data", "to other people"]
    for trace in spec["data"]:
        assert len(trace["x"]) == len(trace["y"]) and trace["line"]["shape"] == "hv"
    assert "11 of 1,200" in page.words() and "0.17 % (−0.65 % to 1.0 %)" in page.words()


def test_curves_are_drawn_on_two_logarithmic_axes_down_to_one_person(page: Page) -> None:
    spec = picture(page, "Attackers of everyone")
    for axis in ("xaxis", "yaxis"):
        assert spec["layout"][axis]["type"] == "log"
        assert math.isclose(spec["layout"][axis]["range"][0], math.log10(1 / 1200) - 0.03)
    lines = [one for one in spec["data"] if "hovertemplate" in one]
    assert len(lines) == 4, "one line an attack, of everyone"
    for trace in spec["data"]:
        assert trace["x"] and all(1 / 1200 - 1e-6 <= x <= 1 for x in trace["x"])
        assert all(1 / 1200 - 1e-6 <= y <= 1 for y in trace["y"])
    styles = [(line["line"]["color"], line["line"]["dash"]) for line in lines]
    assert len({dash for _, dash in styles}) == 4, "told apart without colours"


def test_what_a_claim_rules_out_is_shaded_and_only_where_there_is_a_claim(page: Page) -> None:
    spec = picture(page, "Attackers of everyone")
    bound = next(one for one in spec["data"] if one.get("fill") == "tonexty")
    place = min(range(len(bound["x"])), key=lambda k: abs(bound["x"][k] - 0.01))
    allowed = math.exp(3) * bound["x"][place] + 1e-6
    assert math.isclose(bound["y"][place], allowed, rel_tol=1e-3)
    document = audit()
    document["parts"]["membership"]["ceiling"] = None
    bare = picture(Page(internal_page(None, document)), "Attackers of everyone")
    assert not any(one.get("fill") for one in bare["data"]) and len(bare["data"]) == 5


def test_a_curve_without_false_alarms_stays_on_the_picture() -> None:
    curve = charts.RocLine("sure", [0.0, 0.0, 1.0], [0.0, 0.4, 1.0], 0.01)
    line = charts.curves([curve], None)["data"][-1]
    assert (line["x"], line["y"], line["text"]) == ([0.01, 1], [0.4, 1], ["0 %", "100.0 %"])


def test_each_attack_has_a_line_for_each_group_with_intervals_and_counts(page: Page) -> None:
    words = page.words()
    for attack in audit()["parts"]["membership"]["attacks"]:
        assert f"{attack['title']}: {attack['group_title']} {attack['members']:,} / " in words
        tpr, false = attack["rates"][1]["tpr"], attack["rates"][1]["false"]
        counts = f"{tpr['hits']:,} of {tpr['runs']:,}; wrongly {false['hits']:,} of"
        assert f"{audit_formatting.share(tpr)} {counts}" in words


def test_epsilon_claimed_proved_and_visible_have_marks_of_their_own(page: Page) -> None:
    spec = picture(page, "Epsilon claimed")
    marks = {one["name"]: one for one in spec["data"] if one["mode"] == "markers"}
    symbols = {mark["marker"]["symbol"] for mark in marks.values()}
    assert len(symbols) == len(marks) == 4
    assert marks["claimed: proof"]["x"] == [3.0]
    assert marks["least leak that would have been seen"]["x"] == [5.4]
    white = audit()["parts"]["training"]["views"][1]
    assert max(marks["proved, at least"]["x"]) == pytest.approx(white["epsilon"], abs=1e-3)
    words = page.words()
    assert "Claimed 3 the proof, in the certificate: at most this (delta 1e-6)" in words
    assert "Attacks prove lower bounds" in words
    assert f"Canaries, white box ≥ {audit_formatting.at_least(white['epsilon'])} proved by" in words


def test_a_bound_above_the_claim_is_marked_in_words() -> None:
    document = audit()
    document["run"]["epsilon"] = 1.0
    assert "at least this; above the claim" in Page(internal_page(None, document)).words()
    assert "above the claim" not in Page(internal_page(None, audit())).words()


def test_a_table_of_no_known_run_has_no_claim() -> None:
    document = audit(run=None)
    document["parts"]["training"] = None
    document["parts"]["membership"]["ceiling"] = None
    page = Page(internal_page(None, document))
    spec = picture(page, "Epsilon claimed")
    assert "claimed: proof" not in [one["name"] for one in spec["data"]]
    assert not spec["layout"]["shapes"] and "Claimed 3" not in page.words()


def test_a_claim_far_beyond_all_attacks_is_in_the_table_only() -> None:
    leak = charts.Leak("an attack", 0.4, None)
    near, far = charts.leaks(10.0, [leak]), charts.leaks(1e6, [leak])
    assert near["layout"]["shapes"] and not far["layout"]["shapes"]
    assert far["layout"]["xaxis"]["range"][1] < 2


def test_canaries_say_how_many_guesses_were_right_and_what_a_twin_shows(page: Page) -> None:
    words = page.words()
    for view in audit()["parts"]["training"]["views"]:
        counts = f"{view['correct']:,} of {view['guesses']:,} guesses right"
        assert f"≥ {audit_formatting.at_least(view['epsilon'])} {counts}" in words
    assert "leaks epsilon 12: proved ≥ 2.31" in words
    assert "no real person was read" in words


def test_success_for_both_is_told_to_be_no_leak(page: Page) -> None:
    assert page.words().count("is an inference about the population, not a leak") == 3
    spec = picture(page, "Guessing sensitive columns")
    members, controls = spec["data"]
    success = audit()["parts"]["attribute"]["columns"][0]["success"]
    assert members["x"][0] == pytest.approx(success["members"]["value"], abs=1e-6)
    assert controls["x"][0] == pytest.approx(success["controls"]["value"], abs=1e-6)
    high = success["members"]["high"] - success["members"]["value"]
    assert members["error_x"]["array"][0] == pytest.approx(high, abs=1e-6)
    assert members["marker"]["symbol"] != controls["marker"]["symbol"]


def test_every_picture_has_words_and_every_header_a_scope(page: Page) -> None:
    drawn = [one for one in page.all("div") if "data-figure" in one]
    assert len(drawn) == len(figures(page)) == 8
    assert all(chart["role"] == "img" and len(chart["aria-label"] or "") > 20 for chart in drawn)
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption"))


def test_a_column_whose_name_is_markup_is_a_name() -> None:
    document = audit()
    document["parts"]["attribute"]["columns"][0]["column"] = "<script>"
    document["parts"]["attribute"]["columns"][0]["known"] = ["<b>", "sex"]
    document["parts"]["memorization"]["unique"][0]["columns"] = ["<script>", "age"]
    page, calm = Page(internal_page(None, document)), Page(internal_page(None, audit()))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in calm.elements]
    assert "<script>: nearest, 2 known" in page.words() and "known: <b>, sex" in page.words()
    assert "&lt;script&gt;" in json.dumps(picture(page, "Guessing sensitive columns"))
    assert "<script" not in json.dumps(figures(page))
