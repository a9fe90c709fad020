"""The audit in the internal report: the verdict first, each attack in words, no text is markup."""

from __future__ import annotations

import copy
import doctest
import math
import re
from typing import Any

import pytest

from dpsynth.eval.report import audit_formatting, internal_page
from dpsynth.eval.report.sections import attacks
from dpsynth.eval.report.sections import audit as sections_audit

from ...support import evaluation_example
from ...support.audit_example import audit, failed, found, hostile
from .test_report import Page, drawn

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


@pytest.mark.parametrize("module", [audit_formatting, sections_audit])
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
    powers = {power["key"]: power for power in document["powers"]}
    for finding in document["findings"]:
        outcome = audit_formatting.sentence(
            finding["sentence"], capital=not finding["key"].startswith("attr")
        )
        could = audit_formatting.sentence(powers[finding["key"]]["sentence"])
        word = "No." if powers[finding["key"]]["least"] is None else "Yes."
        assert f"{finding['title']} no success {outcome} {word} {could}" in words


def test_a_finding_without_power_says_that_it_is_not_known() -> None:
    document = audit(powers=[])
    words = Page(internal_page(None, document)).words()
    for finding in document["findings"]:
        assert f"{finding['sentence'][1:]}. Not known: the least leak" in words
    assert words.count("Not known:") == len(document["findings"])
    assert "It is not known that the audit would have seen any leak" in words


def test_what_succeeded_says_so_in_words_and_comes_first() -> None:
    words = Page(internal_page(None, found())).words()
    hits = [finding["title"] for finding in found()["findings"] if finding["found"]]
    assert len(hits) == 6 and f"6 of 16 attacks succeeded: {hits[0]};" in words
    for title in hits:
        assert f"{title} ▲ succeeded" in words
    assert words.rindex("▲ succeeded") < words.index("no success")
    assert "do not release the table before the success is understood" in words


def test_a_refuted_claim_is_told_apart_from_other_successes() -> None:
    document = audit(verdict="found")
    next(finding for finding in document["findings"] if finding["key"] == "training:white")[
        "found"
    ] = True
    words = Page(internal_page(None, document)).words()
    assert "Canaries refute the claim itself" in words
    assert "White box (the claim is refuted)" in words
    assert "Canaries refute the claim itself" not in Page(internal_page(None, found())).words()


def test_a_quiet_audit_says_at_once_what_it_could_have_seen(page: Page) -> None:
    words = page.words()
    start = words.index("No attack succeeded: 16 attacks found no leak.")
    summary = words[start : words.index("Each attack, with what it saw")]
    assert "with a probability of 90 %" in summary
    assert "leaks epsilon 5.4 or more (by: Canaries, white box)" in summary
    least = min(power["least"] for power in audit()["powers"] if power["unit"] == "auc")
    assert f"AUC of {math.ceil(1000 * least) / 1000:.3f} or more" in summary
    assert "1 of 16 could not have seen one here." in summary
    assert "Attacks that could have seen no leak here Canaries, black box: " in summary
    assert "What to change: plant more canaries" in summary


@pytest.mark.parametrize("make", [audit, found, failed])
def test_accounting_is_the_proof_and_the_audit_an_attack(make: Any) -> None:
    assert sections_audit.ATTACK_NOT_PROOF in Page(internal_page(None, make())).words()


def test_a_failed_audit_says_that_it_proves_nothing_and_names_the_controls() -> None:
    page = Page(internal_page(None, failed()))
    words = page.words()
    assert (
        "This audit failed and proves nothing: a leak was claimed where there is none (Other "
        "people's rows)."
    ) in words
    assert "The canaries have controls of their own, all of which passed" in words
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


@pytest.mark.parametrize("part", list(SECTIONS))
def test_a_missing_part_is_left_out_and_a_note_says_so(part: str) -> None:
    document = audit()
    document["parts"] = {name: one for name, one in document["parts"].items() if name != part}
    page = Page(internal_page(None, document))
    assert SECTIONS[part] not in ids(page)
    assert page.words().count("Not attacked: ") == 1


@pytest.mark.long
@pytest.mark.usefixtures("without_library")
def test_each_detail_may_be_missing_alone() -> None:
    whole = audit()["parts"]
    for part, details in whole.items():
        for name in details:
            for nothing in ({}, {name: None}, {name: type(details[name])()}):
                rest = {key: one for key, one in details.items() if key != name} | nothing
                if part in ("training", "shadows") and not isinstance(details[name], dict | list):
                    continue  # counts and names are always there
                for spec in drawn(internal_page(None, audit(parts={**whole, part: rest}))):
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
    at, glance = 0, "Attacks at a glance 6 of 16 attacks succeeded"
    order = ["Do not release", "6 attacks succeeded", "Quality: overview 1 of 2 internal gates"]
    for one in [*order, glance, "Details for a statistician Colu"]:
        at = words.index(one, at)
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
    assert not any("alert(1)" in script and not script.startswith("[{") for script in wild.scripts)
    for _, attributes in wild.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert "‮" not in text, "an invisible character is named, not kept"


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
    monkeypatch.setattr(attacks, "SPECIAL", {})
    document = audit()
    page = Page(internal_page(None, document))
    assert set(SECTIONS.values()) <= set(ids(page))
    words = page.words()
    for power in document["powers"]:  # once at a glance, once in the section of the attack
        if power["key"].partition(":")[0] not in ("training", "shadows"):
            assert words.count(audit_formatting.sentence(power["sentence"])) >= 2
    assert "Controls of this attack" in words and "Success and power" in words
