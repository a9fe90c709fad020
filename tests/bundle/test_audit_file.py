"""audit.json: read strictly, recomputed where it can be, and added to without losing anything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle.format import Audits, read_audits
from dpsynth.bundle.format import audits as audit_bounds
from dpsynth.bundle.format.audits import FAILS, MAX_FILE, AuditClaim, Guesses, PublicAudit
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError
from dpsynth.eval.attack_stats import chance_of
from dpsynth.eval.attack_stats.result import ALARM
from dpsynth.eval.attack_stats.tradeoff import MAX_EPSILON, SHARES, least_epsilon
from dpsynth.eval.core.estimate import LEVEL
from dpsynth.synthesis import Run

from ..support.public_audit_example import public_audit, seen

Document = dict[str, Any]

QUIET = Audits("c" * 64, (public_audit(),))


@pytest.fixture
def certificate(made_run: Run) -> Certificate:
    return Certificate.from_dict(made_run.certificate)


def document() -> Document:
    """What a file holds, with two audits."""
    audits = replace(QUIET, audits=(public_audit(), public_audit(8)))
    return dict(json.loads(json.dumps(audits.to_dict())))


def test_it_shares_the_constants_of_audits() -> None:
    assert (audit_bounds.TRIED, audit_bounds.MAX_EPSILON) == (len(SHARES), MAX_EPSILON)
    assert pytest.approx(audit_bounds.FAILS) == (1 - LEVEL) / len(SHARES)
    assert pytest.approx(audit_bounds.ALARM) == ALARM / (2 * len(SHARES))


@given(
    st.integers(6, 3000),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 12),
    st.sampled_from([1e-10, 1e-6, 1e-3, 0.1]),
)
def test_the_chance_of_right_guesses_is_that_of_audits(
    canaries: int, guessed: float, right: float, epsilon: float, delta: float
) -> None:
    guesses = max(1, round(guessed * canaries))
    correct = round(right * guesses)
    expected = Guesses(canaries, guesses, correct, delta).chance(epsilon)
    assert expected == pytest.approx(
        chance_of(canaries, guesses, correct, epsilon, delta), abs=1e-9
    )


@pytest.mark.parametrize(
    ("guesses", "correct"), [(100, 97), (1000, 620), (1000, 480), (6, 6), (1000, 1000)]
)
def test_a_bound_is_what_the_guesses_prove_and_no_other(guesses: int, correct: int) -> None:
    guessed = Guesses(1000, guesses, correct, 1e-6)
    proved = least_epsilon(1000, guesses, correct, 1e-6, FAILS)
    assert guessed.prove(proved) and guessed.prove(proved + 5e-4)
    assert not guessed.prove(proved + 0.003)
    assert proved == 0 or not guessed.prove(max(0.0, proved - 0.003))


def test_no_right_guess_proves_nothing() -> None:
    guesses = Guesses(1000, 1000, 0, 1e-6)
    assert guesses.prove(0.0) and not guesses.prove(1.0)


def test_what_is_written_is_read_again() -> None:
    assert Audits.from_dict(document()) == replace(QUIET, audits=(public_audit(), public_audit(8)))


def first(document: Document) -> Document:
    """Give the first view of the first audit."""
    view: Document = document["audits"][0]["views"][0]
    return view


MISTAKES: dict[str, Callable[[Document], Any]] = {
    "an unknown key": lambda d: d.update(made="2026-01-01"),
    "another version": lambda d: d.update(version=2),
    "another format": lambda d: d.update(format="dpsynth-quality"),
    "no digest of a run": lambda d: d.update(run_sha256="C" * 64),
    "no audit": lambda d: d.update(audits=[]),
    "audits that are an object": lambda d: d.update(audits={}),
    "too many audits": lambda d: d.update(audits=[{}] * 1001),
    "an audit with a clock": lambda d: d["audits"][1].update(seconds=3.0),
    "an audit without controls": lambda d: d["audits"][0].pop("controls"),
    "a private background": lambda d: d["audits"][0].update(background="real"),
    "nobody in the background": lambda d: d["audits"][0].update(background_units=0),
    "a background of everybody": lambda d: d["audits"][0].update(background_units=10**10),
    "more canaries than there are stars": lambda d: d["audits"][0].update(canaries=10**22),
    "more included than canaries": lambda d: d["audits"][0].update(included=1001),
    "a seed below 0": lambda d: d["audits"][0].update(seed=-1),
    "a seed without end": lambda d: d["audits"][0].update(seed=10**4000),
    "a seed that is true": lambda d: d["audits"][0].update(seed=True),
    "no delta": lambda d: d["audits"][0]["claim"].update(delta=0),
    "a delta of 1": lambda d: d["audits"][0]["claim"].update(delta=1),
    "no epsilon": lambda d: d["audits"][0]["claim"].update(epsilon=0),
    "an infinite epsilon": lambda d: d["audits"][0]["claim"].update(epsilon=float("inf")),
    "a model that is a book": lambda d: d["audits"][0].update(model="x" * 1001),
    "no views": lambda d: d["audits"][0].update(views=[]),
    "three views": lambda d: d["audits"][0]["views"].append(first(d)),
    "one view twice": lambda d: d["audits"][0].update(views=[first(d)] * 2),
    "a grey box": lambda d: first(d).update(view="grey"),
    "a view that is a list": lambda d: first(d).update(view=[]),
    "a view with rows": lambda d: first(d).update(rows=[[1, 2]]),
    "more right than guessed": lambda d: first(d).update(correct=first(d)["guesses"] + 1),
    "more right on the curve": lambda d: first(d).update(curve_correct=10**5),
    "a negative number of right": lambda d: first(d).update(correct=-1),
    "half a guess": lambda d: first(d).update(guesses=100.5),
    "a negative epsilon": lambda d: first(d).update(epsilon=-0.1),
    "a bound beyond all": lambda d: first(d).update(epsilon_fdp=41),
    "a bound that is text": lambda d: first(d).update(epsilon_fdp="1"),
    "a bound that is no number": lambda d: first(d).update(epsilon=float("nan")),
    "refuted, perhaps": lambda d: first(d).update(refuted=0),
    "a sentence that is a book": lambda d: first(d).update(sentence="x" * 1001),
    "an area above 1": lambda d: first(d)["auc"].update(value=1.5),
    "an area that is none": lambda d: first(d)["auc"].update(value=None),
    "half an interval": lambda d: first(d)["auc"].update(low=None),
    "an interval upside down": lambda d: first(d)["auc"].update(low=0.9, high=0.1),
    "too many rates": lambda d: first(d).update(rates=first(d)["rates"] * 6),
    "more hits than trials": lambda d: first(d)["rates"][0]["tpr"].update(hits=490),
    "a rate of other hits": lambda d: first(d)["rates"][0]["tpr"].update(value=0.9, high=1),
    "a rate out of its interval": lambda d: first(d)["rates"][0]["tpr"].update(low=0.9, high=1),
    "a curve without end": lambda d: first(d).update(roc={"fpr": [0.5] * 101, "tpr": [0.5] * 101}),
    "a curve of two lengths": lambda d: first(d)["roc"]["fpr"].pop(),
    "a curve that falls": lambda d: first(d).update(roc={"fpr": [0.1, 0.2], "tpr": [0.2, 0.1]}),
    "a curve above 1": lambda d: first(d).update(roc={"fpr": [0.1], "tpr": [1.1]}),
    "a leak below nothing": lambda d: first(d)["power"].update(minimum=-1),
    "a power with more": lambda d: first(d)["power"].update(unit="epsilon"),
    "half a twin": lambda d: d["audits"][0]["views"][1].update(twin={"epsilon": 12}),
    "too many controls": lambda d: d["audits"][0].update(controls=d["audits"][0]["controls"] * 17),
    "a control of no kind": lambda d: d["audits"][0]["controls"][0].update(kind="neutral"),
    "a control with a cache": lambda d: d["audits"][0]["controls"][0].update(cached=True),
    "a control that half passed": lambda d: d["audits"][0]["controls"][0].update(passed=None),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_audits_are_read_strictly(name: str) -> None:
    changed = document()
    MISTAKES[name](changed)
    with pytest.raises(ArtifactError, match=r"audit\.json"):
        Audits.from_dict(changed)


def test_an_internal_audit_is_refused_in_words() -> None:
    with pytest.raises(ArtifactError, match="internal audit: it was computed from private rows"):
        Audits.from_dict({"format": "dpsynth-audit", "version": 1, "internal": True})


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.touch()
    os.truncate(path, MAX_FILE + 1)
    with pytest.raises(ArtifactError, match="is larger than 32 MiB"):
        read_audits(tmp_path)


@pytest.mark.long
def test_as_many_audits_as_may_be_can_be_read_and_judged(
    tmp_path: Path, certificate: Certificate
) -> None:
    """The largest file that an honest program writes is not too large."""
    audit = public_audit(controls=public_audit().controls * 16)
    one = Audits("c" * 64, (audit,)).to_dict()
    [key] = [key for key, value in one.items() if isinstance(value, list)]
    (tmp_path / "audit.json").write_text(json.dumps(one | {key: one[key] * 1000}, indent=2))
    read = read_audits(tmp_path)
    assert read is not None and len(read.audits) == 1000
    assert read.problems(certificate, "independent") == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(json.dumps(document()))
    (tmp_path / "audit.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="not a plain file"):
        read_audits(tmp_path)


def test_a_sound_audit_has_no_problems(certificate: Certificate) -> None:
    assert QUIET.problems(certificate, "independent") == []


BLACK, WHITE = public_audit().views

PROBLEMS: dict[str, tuple[PublicAudit, str]] = {
    "another epsilon": (public_audit(claim=AuditClaim(3.1, 1e-6)), "about another claim"),
    "another delta": (public_audit(claim=AuditClaim(3.0, 1e-5)), "about another claim"),
    "another model": (public_audit(model="tvae"), "about another model"),
    "overstated": (
        seen(public_audit(), 1, epsilon=WHITE.epsilon + 0.002),
        "view white: its bound on epsilon is not the one that its guesses prove",
    ),
    "understated": (
        seen(public_audit(), 1, epsilon=WHITE.epsilon - 0.002),
        "view white: its bound on epsilon is not the one that its guesses prove",
    ),
    "fewer right": (
        seen(public_audit(), 1, correct=WHITE.correct - 1),
        "view white: its bound on epsilon is not the one that its guesses prove",
    ),
    "the weaker guesses": (
        seen(
            public_audit(), 1, guesses=6, correct=6, epsilon=least_epsilon(1000, 6, 6, 1e-6, FAILS)
        ),
        "view white: its bound on epsilon is not the one that its guesses prove",
    ),
    "refuted in silence on the curve": (
        seen(public_audit(), 1, curve_guesses=1000, curve_correct=1000),
        "its guesses refute the claim, and it says that they do not",
    ),
    "proved by nothing": (
        seen(public_audit(), 0, curve_correct=BLACK.curve_guesses // 2),
        "no better than chance",
    ),
    "more guesses than canaries": (seen(public_audit(), guesses=1001), "more canaries than there"),
    "more on the curve": (seen(public_audit(), curve_guesses=1001), "more canaries than there"),
    "rates of others": (public_audit(included=488), "rates are about other numbers of canaries"),
    "refuted in silence": (
        seen(public_audit(), 1, guesses=1000, correct=1000, epsilon=5.3078),
        "its guesses refute the claim, and it says that they do not",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_does_not_fit_is_said(name: str, certificate: Certificate) -> None:
    audit, words = PROBLEMS[name]
    audits = Audits("c" * 64, (public_audit(), audit))
    problems = audits.problems(certificate, "independent")
    assert problems and all(problem.startswith("audit 2: ") for problem in problems)
    assert any(words in problem for problem in problems), problems
