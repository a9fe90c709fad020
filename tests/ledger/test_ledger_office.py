"""The office's verbs: void, sign, permit, enter a release; and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Entry, Ledger
from dpsynth.ledger_office import adopt, enter_release, permit, sign, void
from dpsynth.policy import Policy

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]


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
        with pytest.raises(BudgetError, match="may have read private rows, so it counts for good"):
            void(ledger, entry.id, "please")
    with pytest.raises(BudgetError, match="out of the sums already"):
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
    with pytest.raises(InputError, match="a reason is"):
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


def test_two_others_sign_before_a_release(
    ledger: Ledger, reserve: Reserve, capped: Capped, user: Callable[[str], None]
) -> None:
    entry = reserve(ledger)
    permit(ledger, entry.id)  # no policy, nothing to ask
    adopt(ledger, capped(9, sign_off={"people": 2}))
    with pytest.raises(BudgetError, match="asks for 2 more people to sign"):
        permit(ledger, entry.id)
    with pytest.raises(BudgetError, match="somebody else has to sign"):
        sign(ledger, entry.id)
    user("Fitter")
    with pytest.raises(BudgetError, match="somebody else has to sign"):
        sign(ledger, entry.id)
    user("curie")
    assert [one.who for one in sign(ledger, entry.id[:8], "seen").signatures] == ["curie"]
    with pytest.raises(BudgetError, match="has signed entry"):
        sign(ledger, entry.id)
    with pytest.raises(BudgetError, match="asks for 1 more person to sign"):
        permit(ledger, entry.id)
    user("meitner")
    sign(ledger, entry.id)
    permit(ledger, entry.id)
    enter_release(ledger, entry.id, "a" * 64)
    assert ledger.entries()[0].releases[0].manifest == "a" * 64


def test_a_gate_without_a_verdict_refuses(ledger: Ledger, reserve: Reserve, capped: Capped) -> None:
    entry = reserve(ledger)
    adopt(ledger, capped(9, gates=["membership"]))
    with pytest.raises(BudgetError, match="no verdict of: membership"):
        permit(ledger, entry.id)


def test_a_voided_entry_is_neither_signed_nor_released(
    ledger: Ledger, reserve: Reserve, user: Callable[[str], None]
) -> None:
    entry = reserve(ledger)
    void(ledger, entry.id, "killed")
    user("curie")
    with pytest.raises(BudgetError, match="nothing to sign for"):
        sign(ledger, entry.id)
    with pytest.raises(BudgetError, match="cannot be released"):
        permit(ledger, entry.id)


def test_an_entry_is_named_by_the_beginning_of_its_id(ledger: Ledger, reserve: Reserve) -> None:
    entry = reserve(ledger)
    reserve(ledger)
    assert ledger.state().entry(entry.id[:12].upper(), "here").id == entry.id
    with pytest.raises(InputError, match="at least 6 characters"):
        ledger.state().entry(entry.id[:5], "here")
    with pytest.raises(InputError, match="has no entry"):
        ledger.state().entry("zzzzzzzz", "here")
