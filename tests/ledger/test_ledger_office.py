"""The office's verbs: void, sign, permit, enter a release; and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import close_entry
from dpsynth.errors import BudgetError, DpsynthWarning, InputError
from dpsynth.ledger import Ledger, adopt, enter_release, permit, required_gates, sign, void
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy
from dpsynth.synthesis import Run, readers

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]
Fit = Callable[..., Run]


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda name: monkeypatch.setenv("DPSYNTH_USER", name)


@pytest.fixture(autouse=True)
def _fitter(user: Callable[[str], None]) -> None:
    user("fitter")


def test_only_a_fit_that_never_began_to_read_is_voided(ledger: Ledger, reserve: Reserve) -> None:
    never, failed_before, reading, charged, failed = (reserve(ledger) for _ in range(5))
    ledger.fail(failed_before.id, "BudgetError")
    for entry in (reading, charged, failed):
        ledger.begin(entry.id)
    ledger.charge(charged.id)
    ledger.fail(failed.id, "KeyboardInterrupt")
    for entry in (never, failed_before):
        voided = void(ledger, entry.id, "killed while starting")
        assert (voided.status, voided.note, voided.history[-1].who) == (
            "voided",
            "killed while starting",
            "fitter",
        )
    for entry in (reading, charged, failed):
        with pytest.raises(BudgetError, match="may have read private rows, so it stays charged"):
            void(ledger, entry.id, "please")
    with pytest.raises(BudgetError, match="does not count already"):
        void(ledger, never.id, "again")
    assert ledger.spent("cardio").fits == 3


def test_a_voided_fit_cannot_begin(ledger: Ledger, reserve: Reserve) -> None:
    """It was believed dead, and was only slow: it must not read for free."""
    entry = reserve(ledger)
    void(ledger, entry.id, "believed dead")
    with pytest.raises(InputError, match="is voided already"):
        ledger.begin(entry.id)


def test_what_is_voided_is_free_again(ledger: Ledger, reserve: Reserve, capped: Capped) -> None:
    policy = capped(0.6)
    entry = reserve(ledger, policy=policy)
    with pytest.raises(BudgetError):
        reserve(ledger, policy=policy)
    void(ledger, entry.id, "killed while starting")
    reserve(ledger, policy=policy)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201, "two\nlines"])
def test_a_reason_is_a_line(sqlite: Ledger, reserve: Reserve, reason: str) -> None:
    entry = reserve(sqlite)
    with pytest.raises(InputError, match="a reason (is|must be)"):
        void(sqlite, entry.id, reason)


def test_nobody_can_neither_void_nor_sign_nor_adopt(
    sqlite: Ledger, reserve: Reserve, capped: Capped, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = reserve(sqlite)
    monkeypatch.setenv("DPSYNTH_USER", "unknown")
    verbs: list[Callable[[], Any]] = [
        lambda: void(sqlite, entry.id, "reason"),
        lambda: sign(sqlite, entry.id),
        lambda: adopt(sqlite, capped(1.0)),
    ]
    for verb in verbs:
        with pytest.raises(InputError, match="set DPSYNTH_USER"):
            verb()
    assert len(sqlite.records()) == 1


@pytest.fixture
def fitted(fit: Fit) -> Run:
    """A run that the ledger charged."""
    return fit()


def test_two_others_sign_before_a_release(
    ledger: Ledger, fitted: Run, capped: Capped, user: Callable[[str], None]
) -> None:
    [entry] = ledger.entries()
    assert [one.id for one in permit(ledger, fitted)] == [entry.id]  # no policy, nothing to ask
    adopt(ledger, capped(9, sign_off={"people": 2}))
    with pytest.raises(BudgetError, match="requires 2 more people to sign"):
        permit(ledger, fitted)
    for name in ("fitter", "Fitter", " fitter. ", "\uff46itter"):
        user(name)
        with pytest.raises(BudgetError, match="another person must sign"):
            sign(ledger, entry.id)
    user("curie")
    assert [signature.who for signature in sign(ledger, entry.id[:8], "seen").signatures] == [
        "curie"
    ]
    with pytest.raises(BudgetError, match="has already signed entry"):
        sign(ledger, entry.id)
    with pytest.raises(BudgetError, match="requires 1 more person to sign"):
        permit(ledger, fitted)
    user("meitner")
    sign(ledger, entry.id)
    permit(ledger, fitted)
    enter_release(ledger, entry.id, "a" * 64)
    assert ledger.entries()[0].releases[0].manifest == "a" * 64


def test_the_policy_that_admitted_a_fit_binds_its_release_as_well(
    ledger: Ledger, capped: Capped, fit: Fit, fitted: Run, reserve: Reserve
) -> None:
    """Neither adopting a laxer policy afterwards nor never adopting one evades the signatures."""
    strict = capped(9, sign_off={"people": 2}, gates=["membership"])
    entry = reserve(ledger, policy=strict)
    assert (entry.sign_off, entry.gates) == (2, ["membership"])
    adopt(ledger, strict)
    again = fit()
    adopt(ledger, capped(9))
    permit(ledger, fitted)
    with pytest.raises(BudgetError, match="requires 2 more people to sign"):
        permit(ledger, again)


def test_the_gates_of_a_policy_are_required(ledger: Ledger, fitted: Run, capped: Capped) -> None:
    assert required_gates(ledger, *permit(ledger, fitted)) == ()
    adopt(ledger, capped(9, gates=["membership", "audit"]))
    assert required_gates(ledger, *permit(ledger, fitted)) == ("audit", "membership")


def test_a_run_is_the_one_that_was_charged(ledger: Ledger, fitted: Run, tmp_path: Path) -> None:
    """Its certificate is a file like another: the ledger says what it must say."""
    charge = fitted.certificate["ledger"]
    forged = {
        "another fit in this entry's name": {"arrays": {"shares": fitted.arrays["shares"] + 1}},
        "no policy": {
            "certificate": fitted.certificate | {"ledger": charge | {"policy": "0" * 64}}
        },
        "fewer fits": {"certificate": fitted.certificate | {"ledger": charge | {"fits": 7}}},
        "another seal": {
            "certificate": fitted.certificate | {"ledger": charge | {"seal": "0" * 64}}
        },
        "stamps removed or added": {"stamps": ("x",)},
    }
    for name, change in forged.items():
        with pytest.raises(BudgetError, match="did not charge this run"):
            permit(ledger, replace(fitted, **change))
            raise AssertionError(name)
    fitted.save(tmp_path / "run")
    assert permit(ledger, Run.load(tmp_path / "run"))


def test_an_entry_that_could_not_be_closed_is_closed_by_hand(
    ledger: Ledger, fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise BudgetError("the server is gone")

    with monkeypatch.context() as patch, pytest.warns(DpsynthWarning, match="could not be closed"):
        patch.setattr(Ledger, "charge", lost)
        run = fit(output=tmp_path / "run")
    assert ledger.entries()[0].status == "reading"
    with pytest.raises(BudgetError, match="is still open"):
        permit(ledger, run)
    assert close_entry(ledger, tmp_path / "run").status == "charged"
    permit(ledger, run)
    with pytest.raises(BudgetError, match="is already charged"):
        close_entry(ledger, tmp_path / "run")


def test_a_run_whose_fit_was_given_up_is_not_released(
    ledger: Ledger, fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was saved while the ledger was away, and somebody then gave its fit up."""

    def lost(*_: object, **__: object) -> None:
        raise BudgetError("the ledger cannot be reached")

    with monkeypatch.context() as patch, pytest.warns(DpsynthWarning, match="could not be closed"):
        patch.setattr(Ledger, "charge", lost)
        run = fit(output=tmp_path / "run")
    ledger.fail(ledger.entries()[0].id, "given up")
    with pytest.raises(BudgetError, match="is failed: it has no run to release"):
        permit(ledger, run)
    with pytest.raises(BudgetError, match="is already failed"):
        close_entry(ledger, tmp_path / "run")


def test_a_ledger_that_is_lost_while_reading_loses_no_run(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first read on, a fit asks the ledger for nothing that it could not do without."""
    read = readers.read_cohort

    def reading(*arguments: Any, **how: Any) -> Any:
        monkeypatch.setattr(Ledger, "writing", lambda self: 1 / 0)
        monkeypatch.setattr(Ledger, "state", lambda self, *_: 1 / 0)
        return read(*arguments, **how)

    monkeypatch.setattr(readers, "read_cohort", reading)
    with pytest.raises(ZeroDivisionError):  # not an error of ours, so it is not held back
        fit(output=tmp_path / "run")
    assert Run.load(tmp_path / "run").certificate["ledger"]["fits"] == 1


def test_a_voided_entry_is_not_signed(
    ledger: Ledger, reserve: Reserve, user: Callable[[str], None]
) -> None:
    entry = reserve(ledger)
    void(ledger, entry.id, "killed")
    user("curie")
    with pytest.raises(BudgetError, match="needs no signature"):
        sign(ledger, entry.id)


def test_an_entry_is_named_by_the_beginning_of_its_id(ledger: Ledger, reserve: Reserve) -> None:
    entry = reserve(ledger)
    reserve(ledger)
    assert ledger.state().entry(entry.id[:12].upper(), "here").id == entry.id
    with pytest.raises(InputError, match="at least 6 characters"):
        ledger.state().entry(entry.id[:5], "here")
    with pytest.raises(InputError, match="has no entry"):
        ledger.state().entry("zzzzzzzz", "here")
