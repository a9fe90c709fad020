"""The ledger: append-only, counted before the first read, the same on both kinds of database."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]


@pytest.mark.smoke
def test_an_entry_holds_what_was_reserved(
    ledger: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_USER", "curie")
    entry = reserve(ledger, purpose="first look", tier="research", allow_refuse=True)
    assert [entry] == ledger.entries() == ledger.entries("cardio")
    assert (entry.who, entry.purpose, entry.tier) == ("curie", "first look", "research")
    assert (entry.epsilon, entry.delta, entry.model) == (0.5, 1e-6, "independent")
    assert entry.plan == {"events": ["histograms"]}
    assert entry.allow_refuse is True
    assert entry.population == 70_000
    assert entry.version
    assert entry.status == "reserved"
    assert entry.at.endswith("+00:00")
    assert len(entry.id) == 32 and int(entry.id, 16) >= 0
    assert entry.to_dict()["status"] == "reserved"
    assert entry.head == ledger.state().head


def test_statuses_are_added_and_never_edited(ledger: Ledger, reserve: Reserve) -> None:
    charged, failed = reserve(ledger), reserve(ledger)
    for entry in (charged, failed):
        ledger.begin(entry.id)
    ledger.charge(charged.id)
    ledger.fail(failed.id, "KeyboardInterrupt")
    first, second = ledger.entries()
    assert [status.status for status in first.history] == ["reserved", "reading", "charged"]
    assert [status.status for status in second.history] == ["reserved", "reading", "failed"]
    assert second.note == "KeyboardInterrupt"
    for verb in (ledger.fail, ledger.charge, ledger.begin):
        with pytest.raises(InputError, match="is charged already"):
            verb(charged.id)
    with pytest.raises(InputError, match="has no entry"):
        ledger.charge("0" * 32)


def test_every_fit_counts_as_spent(ledger: Ledger, reserve: Reserve) -> None:
    entries = [reserve(ledger, epsilon=0.1) for _ in range(3)]
    ledger.charge(entries[0].id)
    ledger.fail(entries[1].id, "MemoryError")
    reserve(ledger, "other", epsilon=7)
    spent = ledger.spent("cardio")
    assert (spent.fits, spent.epsilon_sum, spent.delta_sum) == (3, 0.3, 3e-6)  # in decimal
    assert ledger.spent("unheard-of").fits == 0


def test_two_spellings_of_a_name_are_one_budget(ledger: Ledger, reserve: Reserve) -> None:
    reserve(ledger, "Cardio")
    reserve(ledger, "cardio")
    assert ledger.spent("CARDIO").fits == 2
    assert [entry.dataset for entry in ledger.entries("cardio")] == ["Cardio", "cardio"]


def test_names_that_share_patients_share_a_budget(
    ledger: Ledger, reserve: Reserve, capped: Capped
) -> None:
    policy = capped(1.0, datasets={"diabetes": ["extract-2019", "extract-2020"]})
    reserve(ledger, "extract-2019", epsilon=0.6, policy=policy)
    with pytest.raises(BudgetError):
        reserve(ledger, "Extract-2020", epsilon=0.6, policy=policy)
    reserve(ledger, "cardio", epsilon=0.6, policy=policy)  # other patients
    assert ledger.spent("extract-2020").fits == 0  # the policy was named, not adopted


def test_a_cap_is_reached_and_never_passed(
    ledger: Ledger, reserve: Reserve, capped: Capped
) -> None:
    policy = capped(0.3)
    for _ in range(3):
        reserve(ledger, epsilon=0.1, policy=policy)
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(ledger, epsilon=0.1, policy=policy)
    assert ledger.spent("cardio").fits == 3  # the refused one left no trace
    assert len(ledger.records()) == 3


def test_a_cap_binds_delta_as_well(ledger: Ledger, reserve: Reserve, capped: Capped) -> None:
    policy = capped(100, delta=3e-6)
    for _ in range(2):
        reserve(ledger, delta=1e-6, policy=policy)
    with pytest.raises(BudgetError, match="delta"):
        reserve(ledger, delta=1e-6, policy=policy)


def test_an_adopted_policy_binds_every_fit(
    ledger: Ledger, reserve: Reserve, capped: Capped, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.ledger import adopt

    monkeypatch.setenv("DPSYNTH_USER", "chair")
    policy = capped(0.6)
    adopt(ledger, policy)
    assert ledger.state().policy == policy
    assert ledger.state().adopted[0].who == "chair"
    assert reserve(ledger).policy == policy.digest
    with pytest.raises(BudgetError):
        reserve(ledger)
    with pytest.raises(BudgetError, match="has adopted the policy"):
        reserve(ledger, policy=capped(99))
    adopt(ledger, capped(1.0))
    reserve(ledger)


def test_time_never_runs_backwards(
    ledger: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is set back must not open a window of 365 days a second time."""
    ahead = datetime.now(UTC) + timedelta(days=3)
    with monkeypatch.context() as later:
        later.setattr(type(ledger.store.database), "now", lambda self, connection: ahead)
        first = reserve(ledger)
    assert reserve(ledger).at == first.at


def test_a_file_seen_under_another_name_is_told(
    ledger: Ledger, reserve: Reserve, capped: Capped
) -> None:
    first, second, other = reserve(ledger, "a"), reserve(ledger, "b"), reserve(ledger, "c")
    assert ledger.saw(first.id, "digest one") == ()
    assert ledger.saw(reserve(ledger, "A").id, "digest one") == ()  # the same name
    assert set(ledger.saw(second.id, "digest one")) == {"a", "A"}
    assert ledger.saw(other.id, "digest two") == ()
    assert "digest one" not in str([entry.to_dict() for entry in ledger.entries()])


@pytest.mark.parametrize(
    "name", ["", ".hidden", "-x", "a b", "a/b", "../x", "naïve", "x" * 65, "a\n", "a'--", "٣"]
)
def test_a_dataset_has_a_plain_name(sqlite: Ledger, reserve: Reserve, name: str) -> None:
    with pytest.raises(InputError, match="a dataset's name has"):
        reserve(sqlite, name)
    assert sqlite.entries() == []


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"delta": 0},
        {"delta": 1},
        {"delta": float("nan")},
        {"purpose": "x" * 201},
        {"purpose": "two\nlines"},
        {"tier": "two words"},
    ],
)
def test_what_cannot_be_counted_is_refused(
    sqlite: Ledger, reserve: Reserve, change: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        reserve(sqlite, **change)
    assert sqlite.entries() == []


@pytest.mark.parametrize(
    "note",
    ["could not convert string to float: 'Ms Miller'", "x" * 65, "two\nlines", "cell=7"],
)
def test_a_note_that_may_quote_a_cell_is_withheld(
    ledger: Ledger, reserve: Reserve, note: str
) -> None:
    entry = reserve(ledger)
    ledger.fail(entry.id, note)
    assert ledger.entries()[0].note == "note withheld"
    assert note not in "".join(record.body for record in ledger.records())


@pytest.mark.parametrize("name", ["naïve \udcff", "", "a\nb", "x" * 200])
def test_any_login_name_can_be_written(
    ledger: Ledger, reserve: Reserve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPSYNTH_USER", raising=False)
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    who = reserve(ledger).who
    assert who.isprintable() and 0 < len(who) <= 64
