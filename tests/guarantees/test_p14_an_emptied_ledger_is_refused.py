"""P14: an empty file may be what is left of a ledger: nothing makes a fresh one of it in silence.

The check: after a ledger was emptied, a fit that the policy had just refused is refused as well, no
command shows or verifies anything, and the file is left as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.ledger import Ledger, Store, verify_ledger
from dpsynth.policy import Policy

from ..support import reservations
from ..support.reservations import capped

CAPPED = capped(1.0)


def reserve(ledger: Ledger) -> None:
    reservations.reserve(ledger, policy=CAPPED)


def truncate(place: Path) -> None:
    place.write_bytes(b"")


def without_tables(place: Path) -> None:
    place.unlink()
    with sqlite3.connect(place) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()


EMPTIED = [truncate, without_tables]


def stays_refused(place: Path, empty: Callable[[Path], None]) -> bool:
    """Whether a fit that was refused is refused after the ledger was emptied, too."""
    reserve(Ledger.create(place))
    with pytest.raises(BudgetError, match="epsilon in all"):
        reserve(Ledger(place))
    empty(place)
    left = place.read_bytes()
    try:
        reserve(Ledger(place))
    except DpsynthError as refused:
        assert "is empty: it is not a ledger" in str(refused)
        return place.read_bytes() == left
    return False


@pytest.mark.parametrize("empty", EMPTIED)
def test_an_emptied_ledger_admits_nothing(
    empty: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        opened = Store.open

        def making(database: Any) -> Any:
            """Broken: whoever opens a ledger makes its tables where there are none."""
            try:
                return opened(database)
            except InputError:
                return Store.create(database)

        patch.setattr(Store, "open", making)
        assert not stays_refused(tmp_path / "broken.sqlite", empty)
    assert stays_refused(tmp_path / "ledger.sqlite", empty)


@pytest.mark.parametrize("empty", EMPTIED)
def test_no_command_makes_a_ledger_of_an_empty_file(
    empty: Callable[[Path], None], tmp_path: Path, shell: Any
) -> None:
    shell(tmp_path, "ledger", "show")
    place = tmp_path / "ledger.sqlite"
    empty(place)
    left = place.read_bytes()
    (tmp_path / "p.yaml").write_text(
        "dpsynth_policy: 1\nname: x\ndelta: 1e-6\ncaps: {total: {epsilon: 1, basis: b}}\n"
    )
    for words in (
        ("show",),
        ("verify",),
        ("verify", "--accept"),
        ("policy",),
        ("policy", "p.yaml"),
        ("export", "-o", "ledger.json"),
        ("backup", "copy.sqlite"),
        ("sign", "aaaaaaaa"),
    ):
        output = shell(tmp_path, "ledger", *words)
        assert output.code == 2 and "is empty: it is not a ledger" in output.err, words
        assert place.read_bytes() == left
    assert shell(tmp_path, "ledger", "create").code == 0  # whoever says so
    assert verify_ledger(Ledger(place))


def test_a_name_that_is_mistyped_is_no_new_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for opened in (Ledger, Ledger.default, Ledger.existing, Ledger.present):
        monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "legder.sqlite"))
        with pytest.raises(InputError, match="there is no ledger at"):
            opened()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_a_variable_that_is_set_and_empty_is_not_the_personal_ledger(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", value)
    for opened in (Ledger, Ledger.default, Ledger.existing, Ledger.present, Ledger.create):
        with pytest.raises(InputError, match="DPSYNTH_LEDGER is set and empty"):
            opened()
    with pytest.raises(InputError, match="the ledger's place is empty"):
        Ledger(value)


@pytest.mark.parametrize("name", ["LEDGER", "USER", "POLICY", "DATASET", "KEY_PASSPHRASE"])
def test_no_command_goes_without_a_variable_that_is_empty(
    name: str, tmp_path: Path, shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"DPSYNTH_{name}", "")
    output = shell(tmp_path, "ledger", "show")
    assert output.code == 2 and f"DPSYNTH_{name} is set and empty" in output.err


def test_the_user_s_own_ledger_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first fit makes it; emptied, put back from before, or gone, it is not made again."""
    monkeypatch.delenv("DPSYNTH_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = tmp_path / "dpsynth" / "ledger.sqlite"
    book = Ledger.default()
    assert book.made and Path(book.place) == place
    old = place.read_bytes()
    reserve(book)
    assert not Ledger.default().made
    content = place.read_bytes()
    place.write_bytes(old)
    with pytest.raises(BudgetError, match="not as you last saw it: it ends at record 0, but had 1"):
        Ledger.default()
    place.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        Ledger.default()
    place.unlink()
    with pytest.raises(InputError, match="is missing from"):
        Ledger.default()
    place.write_bytes(content)
    assert Ledger.default().spent("cardio").fits == 1
    place.unlink()
    assert Ledger.create().made  # whoever says so
    assert Ledger.default().spent("cardio").fits == 0


def test_another_ledger_at_the_same_place_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(place))
    Ledger.create()
    other = Ledger.create(tmp_path / "other.sqlite")
    place.write_bytes(Path(other.place).read_bytes())
    with pytest.raises(BudgetError, match="it is another ledger"):
        Ledger.default()


def test_a_policy_names_the_ledger_that_it_is_for(tmp_path: Path) -> None:
    ledger, other = (Ledger.create(tmp_path / name) for name in ("a.sqlite", "b.sqlite"))
    bound = Policy.from_dict(CAPPED.to_dict() | {"ledger": ledger.id}, "test")
    assert bound.digest != CAPPED.digest and Policy.from_dict(bound.to_dict(), "t") == bound
    with pytest.raises(BudgetError, match=f"is for ledger {ledger.id}"):
        reservations.reserve(other, policy=bound)
    assert reservations.reserve(ledger, policy=bound).counts
    with pytest.raises(InputError, match="the id of a ledger is expected"):
        Policy.from_dict(CAPPED.to_dict() | {"ledger": "mine"}, "test")
