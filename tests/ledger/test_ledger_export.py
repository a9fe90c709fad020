"""The ledger's export: whole, without secrets, repeatable, and the owner's alone."""

from __future__ import annotations

import base64
import errno
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, accounts, adopt, exported, past_of
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy

from ..support.ledger_page import SOURCE, events, now, read

Reserve = Callable[..., Entry]
Capped = Callable[..., Policy]


def test_json_holds_the_whole_ledger(full: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "ledger.json"
    assert exported(full, target) == target
    found, state = json.loads(target.read_text()), full.state()
    assert (found["format"], found["version"], found["internal"]) == ("dpsynth-ledger", 1, True)
    assert (found["ledger"], found["created"]) == (full.id, full.facts.created)
    assert found["head"] == {"number": len(full.records()), "hash": full.records()[-1].hash}
    assert found["entries"] == json.loads(json.dumps([e.to_dict() for e in state.entries]))
    assert found["policy"]["document"] == state.adopted[-1].policy.to_dict()
    assert found["policy"]["digest"] == state.adopted[-1].policy.digest
    assert found["policy"]["adopted"] == {"at": state.adopted[-1].at, "who": "chair"}
    assert [policy["document"]["name"] for policy in found["earlier_policies"]] == ["interim rules"]


def test_json_accounts_are_those_of_the_ledger_and_of_idle_groups(
    full: Ledger, tmp_path: Path
) -> None:
    document = json.loads(exported(full, tmp_path / "l.json").read_text())["accounts"]
    assert list(document) == ["cardio", "diabetes", "oncology"]
    for account in accounts(full.state(), datetime.now(UTC), compose=True):
        assert document[account.name] == account.to_dict()
    assert [m["name"] for m in document["diabetes"]["room"]][3:] == ["tier rare: epsilon in all"]
    assert [m["used"] for m in document["diabetes"]["room"]] == [0, 0.75, 0.75, 0.3]
    assert document["oncology"]["fits"] == 0


@pytest.mark.parametrize("html", [False, True])
def test_neither_the_key_nor_a_file_digest_is_exported(
    full: Ledger, tmp_path: Path, html: bool
) -> None:
    assert SOURCE.encode() in (tmp_path / "ledger.sqlite").read_bytes()
    content = exported(full, tmp_path / "out", html=html).read_bytes()
    secrets = (full.key, full.key.hex().encode(), base64.b64encode(full.key), SOURCE.encode())
    for secret in secrets:
        assert secret not in content


def test_the_same_ledger_and_time_give_the_same_bytes(full: Ledger, tmp_path: Path) -> None:
    moment = now() + timedelta(days=40)
    there = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for html in (False, True):
        first = exported(full, tmp_path / "a", html=html, now=moment).read_bytes()
        assert exported(full, tmp_path / "b", html=html, now=there).read_bytes() == first
        later = exported(full, tmp_path / "c", html=html, now=moment + timedelta(days=1))
        assert later.read_bytes() != first
    with pytest.raises(InputError, match="time zone"):
        exported(full, tmp_path / "d", now=moment.replace(tzinfo=None))


def test_a_cap_that_is_passed_beyond_all_measure_is_null_in_json(
    sqlite: Ledger, reserve: Reserve, capped: Capped, tmp_path: Path
) -> None:
    reserve(sqlite, epsilon=0.5, delta=1e-2)
    adopt(sqlite, capped(1, delta=1e-6))
    room = json.loads(exported(sqlite, tmp_path / "l.json").read_text())["accounts"]["cardio"]
    assert (room["room"][0]["used"], room["room"][0]["left"]) == (None, 0)
    found = read(sqlite, tmp_path, now=now() + timedelta(days=60))
    assert "more than the whole cap of 1 used" in found.text and "inf" not in found.text.split()
    assert any("ends at more than the cap" in picture for picture in found.pictures)


def test_only_the_owner_can_read_it_and_an_older_export_is_replaced(
    full: Ledger, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "ledger.json"
    for _ in range(2):
        exported(full, target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        target.chmod(0o644)
    assert [path.name for path in target.parent.iterdir()] == ["ledger.json"]


def test_the_ledger_is_never_written_over(full: Ledger, tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    link, hard = tmp_path / "link.html", tmp_path / "hard.html"
    link.symlink_to(place)
    hard.hardlink_to(place)
    before = place.read_bytes()
    for target in (place, link, hard):
        with pytest.raises(InputError, match="is the ledger itself"):
            exported(full, target, html=True)
    assert place.read_bytes() == before


@pytest.mark.parametrize("target", ["/", ".", "", "sub", "sub/.."])
def test_a_folder_is_no_file_to_export_to(
    target: str, sqlite: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="it is a folder; name a file"):
        exported(sqlite, target)


def test_a_name_that_is_too_long_is_told(sqlite: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name is too long"):
        exported(sqlite, tmp_path / ("x" * 300))


STRANGE: list[Any] = [
    *({}, {"events": 5}, {"events": None}, {"events": "all"}, {"events": {"a": 1}}),
    *({"events": [None]}, {"events": [[]]}, {"events": [{"kind": []}]}),
    *({"events": [events()["events"][0] | {"sigma": sigma}]} for sigma in (10**400, 1e300, 1e-300)),
    {"events": [events()["events"][0] | {"histograms": 10**6, "rows_per_unit": 10**6, "sigma": 3}]},
]


@pytest.mark.parametrize("plan", STRANGE)
def test_a_fit_of_events_that_nobody_can_compose_counts_by_its_claim(
    plan: dict[str, Any], sqlite: Ledger, reserve: Reserve, capped: Capped, tmp_path: Path
) -> None:
    adopt(sqlite, capped(1, delta=1e-5))
    spend = past_of(reserve(sqlite, plan=plan)).spend
    assert (spend.epsilon, spend.delta, spend.events) == (0.5, 1e-6, ())
    (account,) = accounts(sqlite.state(), now(), compose=True)
    assert account.composed is None and account.meters[0].used == 0.5
    for html in (False, True):
        exported(sqlite, tmp_path / "out", html=html)


def test_a_full_disk_leaves_the_older_export(
    full: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "ledger.html"
    before = exported(full, target, html=True).read_bytes()

    def fills(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "no space", str(path))

    monkeypatch.setattr(Path, "write_bytes", fills)
    with pytest.raises(InputError, match="no space is left"):
        exported(full, target, html=True)
    assert [path.name for path in target.parent.iterdir()] == ["ledger.html"]
    assert target.read_bytes() == before
