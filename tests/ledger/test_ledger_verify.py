"""Verification of a ledger against certificates: every way of tampering, done for real.

The tamperer owns the database: triggers are dropped and rows written as somebody with its password
could. Some write all later hashes anew, with the ledger's own key and code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth.bundle import evidence_by_folder
from dpsynth.errors import InputError, VerificationError
from dpsynth.ledger import Ledger, Record, verify_ledger, void
from dpsynth.ledger.ledger import Entry
from dpsynth.synthesis import Run

from ..support.ledger_tampering import overwrite, require_unforgotten, rewritten
from ..support.postgres_server import Server
from ..support.some_cases import some_of

Reserve = Callable[..., Entry]
pytestmark = pytest.mark.filterwarnings("ignore::dpsynth.errors.DpsynthWarning")


BOTH = pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger may be made; most is looked at on a server by the long tests alone."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    server: Server = request.getfixturevalue("server")
    return server.new()


@pytest.fixture
def runs(fit: Callable[..., Run], tmp_path: Path) -> list[Path]:
    """Three fits on two datasets, with their runs."""
    folders = [tmp_path / f"run{number}" for number in range(3)]
    for output, dataset in zip(folders, ("first", "second", "first"), strict=True):
        fit(dataset=dataset, output=output)
    return folders


def cheaper(record: Record) -> Record:
    """The same record with a smaller budget."""
    return replace(record, body=record.body.replace('"epsilon": 0.5', '"epsilon": 0.1'))


def edit(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [cheaper(records[0]), *records[1:]]


def edit_who(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [*records[:3], replace(records[3], who="somebody else"), *records[4:]]


def edit_time(ledger: Ledger, records: list[Record]) -> list[Record]:
    return [replace(records[0], at="2020-01-01T00:00:00+00:00"), *records[1:]]


def remove(ledger: Ledger, records: list[Record]) -> list[Record]:
    return records[:3] + records[6:]


def reorder(ledger: Ledger, records: list[Record]) -> list[Record]:
    moved = [*records[3:6], *records[:3], *records[6:]]
    return [replace(record, number=number + 1) for number, record in enumerate(moved)]


def cut_off(ledger: Ledger, records: list[Record]) -> list[Record]:
    return records[:6]


def cut_off_and_go_on(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Drop the last fit, and hide it by others."""
    return rewritten(ledger, [*records[:6], *records[3:6], *records[3:6]])


def edit_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    return rewritten(ledger, edit(ledger, records))


def remove_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    return rewritten(ledger, remove(ledger, records))


def void_and_rewrite(ledger: Ledger, records: list[Record]) -> list[Record]:
    """Pretend that the last fit never began."""
    reserved = records[6]
    voided = replace(records[7], kind="voided", body='{"note": "x"}')
    return rewritten(ledger, [*records[:6], reserved, voided])


def empty(ledger: Ledger, records: list[Record]) -> list[Record]:
    return []


SHOWN_BY_THE_CHAIN = [edit, edit_who, edit_time, remove, reorder]
SHOWN_BY_CERTIFICATES = [
    cut_off,
    cut_off_and_go_on,
    edit_and_rewrite,
    remove_and_rewrite,
    void_and_rewrite,
    empty,
]


@BOTH
def test_a_ledger_as_it_was_written_is_verified(ledger: Ledger, runs: list[Path]) -> None:
    assert len(ledger.records()) == 9
    checks = verify_ledger(ledger, evidence_by_folder(runs))
    assert len(checks) == 4 and "9 records" in checks[0]


@pytest.mark.parametrize("tamper", some_of(SHOWN_BY_THE_CHAIN, every=2))
def test_the_chain_shows(
    tamper: Callable[..., list[Record]], ledger: Ledger, runs: list[Path], reserve: Reserve
) -> None:
    overwrite(ledger, tamper(ledger, ledger.records()))
    with pytest.raises(VerificationError):
        verify_ledger(ledger)
    require_unforgotten(ledger, reserve, "first", 2)


@pytest.mark.parametrize("tamper", some_of(SHOWN_BY_CERTIFICATES, every=2))
def test_a_certificate_shows(
    tamper: Callable[..., list[Record]], ledger: Ledger, runs: list[Path]
) -> None:
    overwrite(ledger, tamper(ledger, ledger.records()))
    with pytest.raises(VerificationError) as caught:
        verify_ledger(ledger, evidence_by_folder([runs[-1]]))
    assert str(runs[-1]) in str(caught.value)


@BOTH
def test_the_newest_certificate_protects_all_before_it(ledger: Ledger, runs: list[Path]) -> None:
    """Why one bundle is enough: a change of the first fit shows by the last one's."""
    overwrite(ledger, edit_and_rewrite(ledger, ledger.records()))
    verify_ledger(ledger)  # the chain alone is whole
    with pytest.raises(VerificationError, match="rewritten"):
        verify_ledger(ledger, evidence_by_folder([runs[-1]]))


def test_the_seal_needs_the_key(ledger: Ledger, runs: list[Path]) -> None:
    """The bundle tells nothing about how fits ended: without the key, no guess can be checked."""
    document = json.loads((runs[0] / "run.json").read_text())
    seal = document["certificate"]["ledger"]["seal"]
    head = ledger.records()[1].head
    assert seal == head.seal(ledger.key)
    assert seal not in (head.hash, head.seal(b""), head.seal(bytes(32)))
    assert ledger.key.hex() not in json.dumps(document)


def test_the_digest_of_the_file_is_no_part_of_the_chain(ledger: Ledger, runs: list[Path]) -> None:
    with ledger.store.reading() as connection:
        sources = ledger.store.sources(connection)
    digests = set().union(*sources.values())
    assert len(sources) == 3 and len(digests) == 1
    text = json.dumps([vars(record) for record in ledger.records()])
    assert not any(digest in text for digest in digests)


def test_another_ledger_is_told(ledger: Ledger, runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match="it was charged by another ledger"):
        verify_ledger(Ledger.create(tmp_path / "other.sqlite"), evidence_by_folder(runs))


def test_a_voided_entry_that_was_fitted_is_found(
    ledger: Ledger, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Entry, "voidable", True)
    monkeypatch.setitem(
        __import__("dpsynth.ledger.entry", fromlist=["FOLLOWS"]).FOLLOWS,
        "voided",
        ("charged",),
    )
    void(ledger, ledger.entries()[0].id, "hide it")
    with pytest.raises(VerificationError, match="was voided, though it was fitted"):
        verify_ledger(ledger, evidence_by_folder([runs[0]]))


def test_what_is_no_bundle_is_told(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a bundle nor a run"):
        verify_ledger(ledger, evidence_by_folder([tmp_path]))
