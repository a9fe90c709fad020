"""The audit in the internal report: the verdict first, each attack in words, no text is markup."""

from __future__ import annotations

import copy
import doctest
import json
import math
import re
from typing import Any

import pytest

from dpsynth.eval.report import attack_charts, audit_formatting
from dpsynth.eval.report.page import internal_page
from dpsynth.eval.report.sections import audit as sections_audit
from dpsynth.eval.report.sections import audit_settings, epsilon, table_attacks

from ...support import evaluation_example
from ...support.audit_example import audit, failed, found, hostile
from .test_report import Page, figures

Json = dict[str, Any]
SECTIONS = {
    "memorization": "memorization",
    "membership": "membership",
    "training": "training",
    "attribute": "attribute",
    "linkability": "linkability",
    "singling_out": "singling-out",
    "shadows": "shadows",
}


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(internal_page(None, audit()))


def ids(page: Page) -> list[str | None]:
    return [one.get("id") for one in page.all("section")]


def picture(page: Page, label: str) -> Json:
    """Return the spec of the picture whose alternative begins so."""
    boxes = [one for one in page.all("div") if "data-figure" in one]
    place = next(k for k, one in enumerate(boxes) if (one["aria-label"] or "").startswith(label))
    return figures(page)[place]


@pytest.mark.parametrize("module", [audit_formatting, epsilon, audit_settings])
def test_the_examples_of_the_docstrings_hold(module: Any) -> None:
    tried = doctest.testmod(module)
    assert tried.failed == 0 and tried.attempted > 0


def test_every_part_has_a_section_that_says_what_the_attacker_has_and_tries(page: Page) -> None:
    for part in SECTIONS.values():
        assert part in ids(page)
    assert page.words().count("The attacker ") >= len(SECTIONS)
    assert {"controls", "settings", "audit-measures", "notes", "audit"} <= set(ids(page))


def test_every_finding_stands_at_a_glance_with_its_power(page: Page) -> None:
    words, document = page.words(), audit()
    powers = {one["key"]: one for one in document["powers"]}
    for one in document["findings"]:
        seen = audit_formatting.sentence(one["sentence"], capital=not one["key"].startswith("attr"))
        could = audit_formatting.sentence(powers[one["key"]]["sentence"])
        assert f"{one['title']} no success {seen} {could}" in words


def test_a_finding_without_power_says_that_it_is_not_known() -> None:
    document = audit(powers=[])
    words = Page(internal_page(None, document)).words()
    for one in document["findings"]:
        assert f"{one['sentence'][1:]}. Not known." in words
    assert words.count("Not known.") == len(document["findings"])
    assert "It is not known that the audit would have seen any leak" in words


def test_what_succeeded_says_so_in_words_and_comes_first() -> None:
    words = Page(internal_page(None, found())).words()
    hits = [one["title"] for one in found()["findings"] if one["found"]]
    assert len(hits) == 6 and f"6 of 16 attacks succeeded: {hits[0]};" in words
    for title in hits:
        assert f"{title} ▲ succeeded" in words
    assert words.rindex("▲ succeeded") < words.index("no success")
    assert "do not release the table before the success is understood" in words


def test_a_refuted_claim_is_told_apart_from_other_successes() -> None:
    document = audit(verdict="found")
    next(one for one in document["findings"] if one["key"] == "training:white")["found"] = True
    words = Page(internal_page(None, document)).words()
    assert "Canaries refute the claim itself" in words
    assert "White box (the claim is refuted)" in words
    assert "Canaries refute the claim itself" not in Page(internal_page(None, found())).words()


def test_a_quiet_audit_says_at_once_what_it_could_have_seen(page: Page) -> None:
    words = page.words()
    start = words.index("No attack succeeded: 16 attacks found no leak.")
    told = words[start : words.index("Attacks at a glance")]
    assert "with a probability of 90 %" in told
    assert "leaks epsilon 5.4 or more (by: Canaries, white box)" in told
    least = min(one["least"] for one in audit()["powers"] if one["unit"] == "auc")
    assert f"AUC of {math.ceil(1000 * least) / 1000:.3f} or more" in told
    assert "Not known to see any leak: Canaries, black box." in told


@pytest.mark.parametrize("make", [audit, found, failed])
def test_accounting_is_the_proof_and_the_audit_an_attack(make: Any) -> None:
    assert sections_audit.ATTACK_NOT_PROOF in Page(internal_page(None, make())).words()


def test_a_failed_audit_says_that_it_proves_nothing_and_names_the_controls() -> None:
    page = Page(internal_page(None, failed()))
    words = page.words()
    assert (
        "This audit failed and proves nothing: 2 of its 4 controls did not pass: Every row a "
        "source row, moved; Other people's rows."
    ) in words
    assert "did not find a leak that had been made on purpose" in words
    assert "accused a table that leaks nothing" in words
    assert any("alarm" in (one.get("class") or "") for one in page.all("div"))
    assert "not to be relied on" in words and "No attack succeeded" not in words


def test_only_a_failed_audit_has_the_strongest_warning(page: Page) -> None:
    for one in (page, Page(internal_page(None, found()))):
        assert not any("alarm" in (box.get("class") or "") for box in one.all("div"))


def test_controls_say_what_is_expected_what_was_seen_and_when() -> None:
    words = Page(internal_page(None, failed())).words()
    assert "✗ FAILED Membership: nothing may be found AUC 0.581 for everyone. run now" in words
    title = "Patients with a row equal to a synthetic row"
    assert f"One row in ten copied passed {title}: must be found It is repeated" in words
    assert "kept from an earlier run of this version" in words
    assert words.index("✗ FAILED") < words.index("One row in ten copied")
    assert "4 controls, all of which passed" in Page(internal_page(None, audit())).words()


def test_without_controls_a_note_says_that_nothing_is_shown() -> None:
    page = Page(internal_page(None, audit(controls=[])))
    assert "controls" not in ids(page) and "No control was played" in page.words()


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
    styles = [(one["line"]["color"], one["line"]["dash"]) for one in lines]
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
    curve = attack_charts.RocLine("sure", [0.0, 0.0, 1.0], [0.0, 0.4, 1.0], 0.01)
    line = attack_charts.curves([curve], None)["data"][-1]
    assert (line["x"], line["y"], line["text"]) == ([0.01, 1], [0.4, 1], ["0 %", "100.0 %"])


def test_each_attack_has_a_line_for_each_group_with_intervals_and_counts(page: Page) -> None:
    words = page.words()
    for one in audit()["parts"]["membership"]["attacks"]:
        assert f"{one['title']}: {one['group_title']} {one['members']:,} / " in words
        tpr, false = one["rates"][1]["tpr"], one["rates"][1]["false"]
        counts = f"{tpr['hits']:,} of {tpr['runs']:,}; wrongly {false['hits']:,} of"
        assert f"{audit_formatting.share(tpr)} {counts}" in words


def test_epsilon_claimed_proved_and_visible_have_marks_of_their_own(page: Page) -> None:
    spec = picture(page, "Epsilon claimed")
    marks = {one["name"]: one for one in spec["data"] if one["mode"] == "markers"}
    symbols = {one["marker"]["symbol"] for one in marks.values()}
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
    leak = attack_charts.Leak("an attack", 0.4, None)
    near, far = attack_charts.leaks(10.0, [leak]), attack_charts.leaks(1e6, [leak])
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
    assert page.words().count("is an inference about the population, and no leak") == 3
    spec = picture(page, "Guessing sensitive columns")
    members, controls = spec["data"]
    success = audit()["parts"]["attribute"]["columns"][0]["success"]
    assert members["x"][0] == pytest.approx(success["members"]["value"], abs=1e-6)
    assert controls["x"][0] == pytest.approx(success["controls"]["value"], abs=1e-6)
    high = success["members"]["high"] - success["members"]["value"]
    assert members["error_x"]["array"][0] == pytest.approx(high, abs=1e-6)
    assert members["marker"]["symbol"] != controls["marker"]["symbol"]


@pytest.mark.parametrize("part", list(SECTIONS))
def test_a_missing_part_is_left_out_and_a_note_says_so(part: str) -> None:
    document = audit()
    document["parts"] = {name: one for name, one in document["parts"].items() if name != part}
    page = Page(internal_page(None, document))
    assert SECTIONS[part] not in ids(page)
    assert page.words().count("Not attacked: ") == 1


def test_each_detail_may_be_missing_alone() -> None:
    whole = audit()["parts"]
    for part, details in whole.items():
        for name in details:
            for nothing in ({}, {name: None}, {name: type(details[name])()}):
                rest = {key: one for key, one in details.items() if key != name} | nothing
                if part in ("training", "shadows") and not isinstance(details[name], dict | list):
                    continue  # counts and names are always there
                page = Page(internal_page(None, audit(parts={**whole, part: rest})))
                for spec in figures(page):
                    assert spec["data"], f"an empty chart without {name} of {part}"


def test_an_audit_of_a_training_alone_says_that_no_table_was_attacked() -> None:
    own = {"training": audit()["parts"]["training"]}
    keep = {
        name: [one for one in audit()[name] if one["key"].startswith("training")]
        for name in ("findings", "powers")
    }
    page = Page(internal_page(None, audit(tables=None, parts=own, **keep)))
    words = page.words()
    assert "Audit of a training" in words and "No table was attacked" in words
    assert "memorization" not in ids(page) and "membership" not in ids(page)
    assert "No attack succeeded: 2 attacks found no leak." in words


def test_an_audit_without_any_attack_says_that_it_says_nothing() -> None:
    bare = audit(parts={}, findings=[], powers=[], measures={}, settings={}, seconds={}, run=None)
    text = internal_page(None, bare)
    words = Page(text).words()
    assert "No attack was made. So this audit says nothing about the table" in words
    assert len(text) < 80_000, "a page without pictures carries no library"


def test_an_evaluation_and_its_audit_share_a_page() -> None:
    both = Page(internal_page(evaluation_example.document(), found()))
    words = both.words()
    assert "Evaluation and audit of a synthetic table" in words
    assert words.index("6 of 16 attacks succeeded") < words.index("1 of 2 internal gates failed")
    alone = ids(Page(internal_page(evaluation_example.document())))
    assert set(alone) | set(ids(Page(internal_page(None, found())))) == set(ids(both))
    names = [one["id"] for _, one in both.elements if "id" in one]
    assert len(names) == len(set(names))
    assert all((one["href"] or "")[1:] in names for one in both.all("a"))
    assert "Seed of the audit 11" in words and "Seed of this evaluation 7" in words


@pytest.mark.parametrize("what", [("tables", "synthetic"), ("schema",)])
def test_an_audit_of_another_table_warns(what: tuple[str, ...]) -> None:
    other, warning = audit(), "The audit and the evaluation are of different"
    place = other
    for name in what:
        place = place[name]
    place["sha256"] = "ef" * 32
    evaluation = evaluation_example.document()
    assert warning in Page(internal_page(evaluation, other)).words()
    assert warning not in Page(internal_page(evaluation, audit())).words()


def test_measures_are_listed_with_their_own_references(page: Page) -> None:
    words = page.words()
    for key, one in audit()["measures"].items():
        assert f"{one['title']} {key}" in words
    assert "[claimed 3.000]" in words and "[without leak 0.500]" in words
    assert "[other people 0.840]" in words and "[holdout" not in words


def test_settings_and_times_are_told(page: Page) -> None:
    words = page.words()
    assert "canaries.count 1000" in words and "deep yes" in words and "budget_minutes 60" in words
    assert "Membership 1 min 15 s" in words and "59 min 53 s in all" in words


def test_no_text_of_an_audit_is_markup() -> None:
    calm = Page(internal_page(evaluation_example.document(), found()))
    text = internal_page(evaluation_example.hostile(), hostile())
    wild = Page(text)
    assert [tag for tag, _ in wild.elements] == [tag for tag, _ in calm.elements]
    assert len(wild.scripts) == len(calm.scripts)
    assert not any("alert(1)" in one and not one.startswith("[{") for one in wild.scripts)
    for _, attributes in wild.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert "‮" not in text, "an invisible character is named, not kept"


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


def test_every_picture_has_words_and_every_header_a_scope(page: Page) -> None:
    charts = [one for one in page.all("div") if "data-figure" in one]
    assert len(charts) == len(figures(page)) == 8
    assert all(one["role"] == "img" and len(one["aria-label"] or "") > 20 for one in charts)
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption"))


def test_the_page_is_internal_loads_nothing_and_stays_small() -> None:
    text = internal_page(evaluation_example.wide(50), found())
    assert len(text.encode()) < 6_000_000
    assert "Internal: contains statistics of real patients. Do not release." in text
    page = Page(text)
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes and "srcset" not in attributes
    styles = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert styles and "url(" not in styles[1]


def test_the_page_is_a_function_of_the_documents_and_leaves_them_as_they_are() -> None:
    evaluation, document = evaluation_example.document(), found()
    before = copy.deepcopy((evaluation, document))
    assert internal_page(evaluation, document) == internal_page(evaluation, document)
    assert (evaluation, document) == before


@pytest.mark.parametrize("wrong", [{"format": "other"}, {"version": 2}, {"verdict": "fine"}])
def test_other_documents_are_refused(wrong: Json) -> None:
    with pytest.raises(ValueError, match="audit"):
        internal_page(None, audit(**wrong))


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="an evaluation or an audit"):
        internal_page(None)


def test_any_attack_can_be_shown_without_a_section_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_attacks, "SPECIAL", {})
    document = audit()
    page = Page(internal_page(None, document))
    assert set(SECTIONS.values()) <= set(ids(page))
    words = page.words()
    for one in document["powers"]:  # once at a glance, once in the section of the attack
        if one["key"].partition(":")[0] not in ("training", "shadows"):
            assert words.count(audit_formatting.sentence(one["sentence"])) >= 2
    assert "Controls of this attack" in words and "Success and power" in words


def test_a_plugin_is_named_with_its_package_and_its_texts_are_no_markup() -> None:
    nasty = "<script>alert(1)</script>"
    plugin = {"key": "echo", "title": nasty, "package": "echo-attack", "version": "1.2"}
    finding = {"key": "echo", "title": nasty, "found": False, "sentence": nasty}
    document = audit()
    document["findings"] = [*document["findings"], finding]
    document["parts"] = document["parts"] | {"echo": {}}
    html = internal_page(None, document | {"plugins": [plugin]})
    assert nasty not in html
    words = Page(html).words()
    assert words.count("an attack of the package echo-attack, version 1.2") == 2
    assert "Not known." in words
