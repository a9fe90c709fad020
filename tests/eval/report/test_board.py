"""The answer for a board: it follows from the documents, claims no more, and is escaped."""

from __future__ import annotations

import copy
import doctest
from typing import Any

import pytest

from dpsynth.eval.report import answer, board, internal_page, lines_of, uses
from dpsynth.eval.report.board import HEADLINES
from dpsynth.eval.report.history_facts import sentence

from ...support import audit_example, evaluation_example
from .test_report import Page

Json = dict[str, Any]


RATES = {"tpr_at_1_percent": 0.0466, "tpr_at_10_percent": 0.2629, "advantage": 0.2538}


def good() -> Json:
    """An evaluation whose gates passed."""
    document = evaluation_example.document()
    for gate in document["gates"]:
        gate["passed"] = True
    return document


def seeing() -> Json:
    """An audit that finds nothing, and all of whose attacks could have seen a leak."""
    document = audit_example.audit()
    for power in document["powers"]:
        power["least"] = power["least"] or 1.0
    return document


def with_measure(key: str, **changed: Any) -> Json:
    document = good()
    document["measures"][key] |= changed
    return document


def verdicts(document: Json) -> dict[str, str]:
    return {use.key: use.verdict for use in uses.uses(document)}


@pytest.mark.parametrize("module", [board, uses])
def test_the_examples_of_the_docstrings_hold(module: Any) -> None:
    tried = doctest.testmod(module)
    assert tried.failed == 0 and tried.attempted > 0


def test_a_release_needs_both_documents_and_no_reason_against_it() -> None:
    document = good()
    fit = {**document, "parts": {**document["parts"]}}
    verdict = answer(fit, seeing())
    against = [reason for reason in verdict.reasons if "Not fit for" in reason]
    assert verdict.decision == ("warning" if against else "release")
    assert answer(document, None).decision == "undecided"
    assert answer(None, seeing()).decision == "undecided"
    assert "An audit was not made" in " ".join(answer(document, None).reasons)


def test_an_attack_that_succeeded_stops_and_comes_first() -> None:
    verdict = answer(good(), audit_example.found())
    assert verdict.decision == "stop" and verdict.reasons[0].startswith("6 attacks succeeded")


@pytest.mark.parametrize(
    "evaluation, audit, words",
    [
        (good(), audit_example.failed(), "The audit is broken"),
        (good() | {"not_done": {"reason": "too few"}}, seeing(), "could not be evaluated: too few"),
        (good() | {"run": {"stamps": ["not-private"]}}, seeing(), "may not be released"),
        (
            good() | {"gates": [{"key": "copies", "title": "Copies", "passed": False}]},
            seeing(),
            "no release should fail: Copies",
        ),
    ],
)
def test_what_stops_a_release(evaluation: Json, audit: Json, words: str) -> None:
    verdict = answer(evaluation, audit)
    assert verdict.decision == "stop" and words in " ".join(verdict.reasons)


def test_a_blind_attack_a_failed_gate_and_no_attack_on_the_table_warn() -> None:
    blind = audit_example.audit()
    text = " ".join(answer(good(), blind).reasons)
    assert "1 of 16 attacks could have seen no leak here: Canaries, black box." in text
    assert "The table was not attacked" in " ".join(
        answer(good(), seeing() | {"tables": None}).reasons
    )
    failed = good()
    failed["gates"][0]["passed"] = False
    verdict = answer(failed, seeing())
    assert verdict.decision == "warning" and "1 of 3 internal gates failed" in verdict.reasons[0]


def test_documents_of_different_tables_have_no_answer() -> None:
    other = seeing()
    other["tables"]["synthetic"]["sha256"] = "ef" * 32
    assert answer(good(), other).decision == "undecided"


@pytest.mark.parametrize(
    "key, values, use",
    [
        ("tvd1", (0.02, 0.08, 0.3), "columns"),
        ("tvd2", (0.02, 0.1, 0.3), "pairs"),
        ("tstr_gap:readmitted", (0.04, 0.08, 0.3), "prediction"),
        ("subgroup_worst_tvd2", (0.1, 0.2, 0.4), "subgroups"),
    ],
)
def test_a_use_follows_its_thresholds(key: str, values: tuple[float, ...], use: str) -> None:
    order = ("not measured", "fit", "with care", "not fit")
    judged = [order.index(verdicts(with_measure(key, value=value))[use]) for value in values]
    assert judged == sorted(judged) and judged[-1] == 3


def test_few_rows_have_no_verdict() -> None:
    assert verdicts(with_measure("tvd1", n=99))["columns"] == "not measured"


def test_nothing_measured_is_fit_for_nothing() -> None:
    bare = good() | {"measures": {}, "parts": {}}
    assert set(verdicts(bare).values()) == {"not measured"}
    verdict = answer(bare, seeing())
    assert verdict.decision == "warning" and not verdict.worst and not verdict.helps


def test_a_model_that_only_guesses_is_not_fit_although_it_loses_little() -> None:
    document = with_measure("tstr_gap:readmitted", value=0.04)
    document["measures"]["tstr:readmitted"] |= {"value": 0.53, "reference": 0.57}
    document["parts"]["usefulness"]["targets"][0] |= {"name": "readmitted"}
    document["parts"]["usefulness"]["targets"][0]["kind"] = "classification"
    assert verdicts(document)["prediction"] == "not fit"
    document["measures"]["tstr:readmitted"] |= {"value": 0.53, "reference": 0.54}
    assert verdicts(document)["prediction"] == "not measured"


def test_a_schema_without_subgroups_is_told_so() -> None:
    bare = good()
    del bare["measures"]["subgroup_worst_tvd2"]
    [told] = [one.sentence for one in answer(bare, None).uses if one.key == "subgroups"]
    assert "was large enough" in told
    bare["parts"]["subgroups"] = []
    [told] = [one.sentence for one in answer(bare, None).uses if one.key == "subgroups"]
    assert "declares no subgroup" in told


def test_the_worst_end_is_named_with_both_shares() -> None:
    document = good()
    document["parts"]["fidelity"]["tails"][1]["synthetic"] = 0.13
    worst = board.differences(document)
    assert worst[0].kind == "end" and "13.0 %" in worst[0].sentence
    assert len(worst) <= 5 and "svg" in worst[0].picture
    names = [name for one in worst for name in one.columns]
    assert len(names) == len(set(names))


def test_two_dates_and_many_columns_are_named_as_ways_out() -> None:
    document = evaluation_example.wide(30)
    for place in (0, 1):
        document["parts"]["fidelity"]["columns"][place]["type"] = "date"
    document["measures"]["tvd1"]["value"] = 0.5
    first, last = (document["parts"]["fidelity"]["columns"][place]["name"] for place in (0, 1))
    helps = " ".join(answer(document, None).helps)
    keys = "dpsynth: {{after: {}, longest: 90, unit: d, bounds_basis: ...}}"
    assert f"declare {last} by its distance after {first}, if it never lies before" in helps
    assert keys.format(first) in helps and "30 share one budget" in helps
    assert "More epsilon than 3:" in helps
    document["parts"]["fidelity"]["columns"][0]["type"] = "datetime"
    document["parts"]["rules"] = [{"rule": f"`{last}` <= `{first}`"}, {"rule": "<= broken"}]
    helps = " ".join(answer(document, None).helps)
    assert keys.format(last).replace("unit: d", "unit: h") in helps and "if it never" not in helps


def test_the_page_begins_with_the_answer() -> None:
    words = Page(internal_page(good(), seeing())).words()
    verdict = answer(good(), seeing())
    first = words.index(f"Answer: {verdict.headline}")
    assert first < words.index("What the table is fit for") < words.index("Quality: overview")
    for one in (*verdict.reasons, *(use.sentence for use in verdict.uses)):
        assert one in words


def test_whole_histories_have_a_page_of_their_own_for_differences() -> None:
    use = {"key": "groups", "title": "Comparisons", "verdict": "fit", "sentence": "As others."}
    histories = {"format": "dpsynth-history-evaluation", "version": 1, "uses": [use]}
    histories |= {"measures": {}, "parts": {}, "notes": [], "run": None}
    words = Page(internal_page(None, seeing(), histories=histories)).words()
    assert "What the tables are fit for" in words and "docs/cohorts.md" in words
    assert "histories.html, shows each difference" in words
    assert "No column and no correlation" not in words


def test_the_answer_on_histories_names_differences_and_what_may_help() -> None:
    entry = {"name": "labs: k, third value: median", "unit": "mmol/l", "apart": 1.1, "clear": True}
    entry |= {"synthetic": [5.1], "source": [4.2], "chance": [4.21], "declared": None}
    declared = {"help": "Declare `last_day: true`: many patients are followed to the end."}
    facts = {"key": "values", "title": "Values", "count": 3, "largest": [entry | declared]}
    histories = {"format": "dpsynth-history-evaluation", "version": 1, "uses": []}
    histories |= {"measures": {"values": {"value": 0.9, "chance": 0.1}}, "notes": []}
    histories |= {"parts": {"facts": [facts]}, "run": {"epsilon": 3.0, "stamps": []}}
    gate = {"key": "values", "title": "Values", "passed": False, "value": 0.9}
    found = answer(histories | {"gates": [gate]}, None)
    sentence = "labs: k, third value: median: 5.1 mmol/l; source 4.2 mmol/l, bootstrap 4.21 mmol/l"
    assert [(one.kind, one.sentence, one.score) for one in found.worst] == [("fact", sentence, 9.0)]
    more = "More epsilon than 3: less noise, and a weaker guarantee for every patient."
    assert found.helps == (declared["help"], more)
    assert "1 of 1 internal gate failed: Values." in found.reasons
    passed = answer(histories | {"gates": [gate | {"passed": True}]}, None)
    assert not passed.worst and passed.helps == (declared["help"],)
    far = histories | {"gates": [gate], "run": {"epsilon": 12.0, "stamps": []}}
    assert answer(far, None).helps == (declared["help"],)


def test_a_number_that_few_patients_stand_behind_is_a_word() -> None:
    entry = {"name": "E11", "unit": "share", "synthetic": [None, 0.2], "source": [None, 0.0]}
    assert sentence(entry | {"chance": [0.5, None]}) == (
        "E11: no patient and 20.0 %; source few patients and 0 %, bootstrap 50.0 % and few patients"
    )


def test_the_terminal_says_the_same_and_obeys_nothing() -> None:
    verdict = answer(evaluation_example.hostile(), audit_example.hostile())
    lines = lines_of(verdict)
    assert lines[0].startswith("INTERNAL") and verdict.headline.upper() in lines[1]
    assert all(line.isprintable() and len(line) <= 110 for line in lines)
    text = internal_page(evaluation_example.hostile(), audit_example.hostile())
    assert "<script>alert(1)" not in text


def test_every_decision_has_words() -> None:
    assert set(HEADLINES) == {"release", "warning", "stop", "undecided"}
    assert copy.copy(answer(good(), seeing())).to_dict()["decision"] in HEADLINES


def test_a_gate_is_named_so_that_a_board_knows_what_it_is_about() -> None:
    document = good()
    document["gates"] = [
        {"key": "outside_worst", "title": "Values beyond the range", "passed": False},
        {"key": "rules", "title": "rules", "passed": None},
    ]
    shares = {"Temperature": 0.044, "Height": 0.01}
    outside = [{"column": name, "synthetic": share} for name, share in shares.items()]
    document["parts"]["fidelity"]["outside"] = outside
    text = " ".join(answer(document, seeing()).reasons)
    assert "1 of 2 internal gates failed: Values beyond the range (Temperature: 4.4 %)." in text
    assert "rows that break a rule (the schema declares no rule)" in text


def test_a_table_that_is_fit_for_no_measured_use_is_stopped() -> None:
    document = good()
    document["measures"] = {"tvd1": document["measures"]["tvd1"] | {"value": 0.9}}
    document |= {"parts": {}, "gates": []}
    verdict = answer(document, seeing())
    assert verdict.decision == "stop"
    assert "The table is fit for no use that was measured." in verdict.reasons


def test_a_gate_on_prediction_without_a_target_is_told_in_plain_words() -> None:
    document = good()
    document["gates"] += [
        {"key": key, "title": key, "passed": None, "limit": "l", "reason": "r"}
        for key in ("tstr_gap:*", "odds:*")
    ]
    document["parts"]["usefulness"] = {"targets": []}
    text = " ".join(answer(document, seeing()).reasons)
    assert "No target column is declared (role: target)" in text
    assert "usefulness for prediction was not judged" in text
    assert "tstr_gap" not in text and "odds:*" not in text
    assert "Every internal gate that could be judged passed." in text


def test_facts_stand_first_with_held_out_rows_beside() -> None:
    verdict = answer(good(), None)
    facts = {fact.key: fact for fact in verdict.facts}
    assert [*facts][:2] == ["never_rows", "never"] and "effects:readmitted" in facts
    assert (facts["never"].synthetic, facts["never"].real) == ("11.0 %", "0.40 %")
    assert (facts["seldom"].synthetic, facts["seldom"].real) == ("2.40", "1.14")
    [lost] = verdict.lost  # the other one keeps 97 %
    assert lost.startswith("age with bmi: 0.60 in the real rows, 0.30 in the synthetic table")
    [never] = verdict.never
    assert "age 70 to 99 with bmi high" in never and "1.5 % of the synthetic rows" in never
    lines = "\n".join(lines_of(verdict))
    assert "held-out real rows: 0.40 %" in lines and "weaker" in lines and "never real" in lines
    page = internal_page(good())
    assert page.index('id="first-facts"') < page.index('id="uses"')
    assert page.index('id="first-facts"') < page.index('id="overview"')


def test_without_a_holdout_facts_stand_beside_a_bootstrap() -> None:
    document = good()
    for entry in document["measures"].values():
        entry["reference"] = None
    facts = answer(document, None).facts
    assert all(fact.chance for fact in facts)
    assert "bootstrap" in facts[0].sentence and "Bootstrap" in internal_page(document)


def test_an_earlier_evaluation_has_no_facts() -> None:
    document = good()
    kept = {key: one for key, one in document["measures"].items() if key.startswith("tvd")}
    document["measures"], document["parts"] = kept, {}
    verdict = answer(document, None)
    assert verdict.facts == verdict.lost == verdict.never == ()
    assert "first-facts" not in internal_page(document)


def test_the_proof_stands_beside_what_was_measured() -> None:
    """One figure is a bound for every attack, the other what attacks reached: both are named so."""
    evaluation, audit = good(), seeing()
    assert answer(evaluation, audit).proof == ""
    audit["run"]["attack_rates"] = evaluation["run"]["attack_rates"] = RATES
    proof = answer(evaluation, audit).proof
    assert "at most 4.7 % found at 1 % false alarms, 26.3 % at 10 %" in proof
    assert "with and without one privacy unit with all of its rows" in proof
    assert "is no measurement; the rates of an audit are what its attacks reached" in proof
    assert answer(None, audit).proof == proof == answer(evaluation, None).proof
    words = Page(internal_page(evaluation, audit)).words()
    assert proof in words
    assert "All events of the run together allow less: at most 4.7 % found" in words


def of_use(document: dict[str, Any], key: str) -> uses.TableUse:
    [found] = [one for one in uses.uses(document) if one.key == key]
    return found


def with_figure(key: str, value: float, reference: float) -> dict[str, Any]:
    document = good()
    entry = {"value": value, "reference": reference, "chance": reference, "n": 1000, "best": 0}
    document["measures"][key] = entry | {"title": key, "low": value, "high": value, "meaning": ""}
    return document


@pytest.mark.parametrize(
    ("key", "value", "verdict"),
    [
        ("never_rows", 0.003, "fit"),
        ("never_rows", 0.012, "with care"),
        ("never_rows", 0.33, "not fit"),
        ("edits", 0.04, "not fit"),
        ("levels", 0.04, "not fit"),
    ],
)
def test_rows_that_no_clinician_believes_are_a_verdict(
    key: str, value: float, verdict: str
) -> None:
    document = with_figure(key, value, 0.0)
    for other in {"never_rows", "edits", "levels"} - {key}:
        document["measures"].pop(other, None)
    found = of_use(document, "possible")
    assert found.verdict == verdict
    assert ("dpsynth rules RUN" in found.sentence) == (verdict != "fit")
    assert uses.uses(document)[1].key == "possible", "after means: it leads"


def test_relations_and_effects_follow_their_facts() -> None:
    for key, value, reference, use in (
        ("strongest", 0.6, 0.98, "pairs"),
        ("signs:readmitted", 0.4, 0.02, "effects"),
        ("effects:readmitted", 0.2, 0.98, "effects"),
    ):
        assert of_use(with_figure(key, value, reference), use).verdict == "not fit", key
        held, less = with_figure(key, reference, reference), good()
        less["measures"].pop(key, None)
        assert of_use(held, use).verdict == of_use(less, use).verdict, key


def test_nothing_is_released_without_a_warning_where_nothing_is_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    care = [uses.TableUse("pairs", "Pairs", "with care", "")]
    monkeypatch.setattr(board, "uses", lambda document: care)
    document = good()
    document["gates"] = []
    verdict = answer(document, seeing())
    assert verdict.decision == "warning"
    assert "Nothing that was measured is fit without care." in verdict.reasons
