"""What a run says of its entry is compared in full, and what fits read is kept under a key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.certificate import Certificate
from dpsynth.ledger import Evidence, Ledger, charging, source_digest
from dpsynth.ledger.evidence import ReplayedAccount, ViewedAccount, differences
from dpsynth.privacy import JointHistograms
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

Fit = Callable[..., Run]
Change = Callable[[Certificate], Certificate]


def about_the_ledger(**changes: Any) -> Change:
    def change(certificate: Certificate) -> Certificate:
        assert certificate.ledger is not None
        return replace(certificate, ledger=replace(certificate.ledger, **changes))

    return change


def with_more_noise(certificate: Certificate) -> Certificate:
    """State noise that was not added: the smaller epsilon that goes with it could follow."""
    *others, event = certificate.events
    assert isinstance(event, JointHistograms)
    return replace(certificate, events=(*others, replace(event, sigma=2 * event.sigma)))


FORGED: dict[str, Change] = {
    "epsilon": lambda certificate: replace(certificate, epsilon=certificate.epsilon / 2),
    "delta": lambda certificate: replace(certificate, delta=certificate.delta / 2),
    "events": with_more_noise,
    "dataset": about_the_ledger(dataset="other"),
    "model": lambda certificate: replace(certificate, model="mixture"),
    "schema": lambda certificate: replace(certificate, schema_sha256="0" * 64),
    "unit": lambda certificate: replace(
        certificate, unit=replace(certificate.unit, trim=not certificate.unit.trim)
    ),
    "population": lambda certificate: replace(certificate, population=7),
    "policy": about_the_ledger(policy="0" * 64),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("name", FORGED)
def test_each_fact_of_a_certificate_is_held_against_its_entry(
    name: str, ledger: Ledger, fit: Fit
) -> None:
    """Where the digest of the run does not give it away, as in a bundle whose claim was edited."""
    run = fit()
    certificate = Certificate.from_dict(run.certificate)
    state = ledger.state()

    def said(stated: Certificate) -> list[str]:
        evidence = Evidence(stated, run.digest)
        changes = differences(ledger, ReplayedAccount(state.records, state.entries), evidence)
        with ledger.looking() as view:  # a release reads less of the ledger, and finds the same
            assert differences(ledger, ViewedAccount(view), evidence) == changes
        return changes

    assert said(certificate) == []
    (entry,) = state.entries
    assert said(FORGED[name](certificate)) == [f"its entry {entry.id} has another {name}"]


def test_the_digest_of_a_source_needs_the_ledger_s_key(tmp_path: Path) -> None:
    """Without the key nobody can hold a guess of the private table against the ledger."""
    frame = pd.DataFrame({"sex": ["F", "M"]})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    key = bytes(range(32))
    for source in (frame, path):
        digests = [source_digest(source, one) for one in (key, key, b"", b"dpsynth")]
        assert digests[0] == digests[1] and len(set(digests)) == 3
    content = path.read_bytes()
    assert source_digest(path, key) == hmac.new(key, content, hashlib.sha256).hexdigest()


def test_the_key_of_a_source_s_digest_is_the_ledger_s_own(
    ledger: Ledger, fit: Fit, tmp_path: Path
) -> None:
    fit()
    with ledger.store.reading() as connection:
        ((kept,),) = ledger.store.sources(connection).values()
    frame = pd.DataFrame({"sex": ["F", "M"] * 50})
    assert kept == source_digest(frame, ledger.key)
    assert kept != source_digest(frame, Ledger.create(tmp_path / "other.sqlite").key)


class Unhashable:
    """A cell whose library stops with an error that quotes it."""

    def __hash__(self) -> int:
        raise RuntimeError("a private note")


UNHASHABLE = {
    "half a surrogate pair": "\ud800 a private note",
    "a number of many digits": 10**5000,
    "a list": ["a private note"],
    "an object": Unhashable(),
}


def fit_beside(cell: object, ledger: Ledger, small: dict[str, Any]) -> None:
    """Fit a table that has a cell in a column outside of the schema."""
    frame = pd.DataFrame({"sex": ["F", "M"] * 50, "note": [cell] + ["x"] * 99}, dtype=object)
    budget: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "dataset": "cardio"}
    dpsynth.fit(frame, Schema.from_dict(small), **budget, model="independent", ledger=ledger)


@pytest.mark.parametrize("name", UNHASHABLE)
def test_a_frame_with_a_cell_that_cannot_be_hashed_has_no_digest(name: str) -> None:
    """Only then can the frame not be compared with those that the ledger has seen."""
    frame = pd.DataFrame({"sex": pd.Series([UNHASHABLE[name], "x"], dtype=object)})
    assert source_digest(frame, b"key") is None


@pytest.mark.parametrize("name", UNHASHABLE)
def test_a_cell_outside_of_the_schema_stops_no_fit(
    name: str, ledger: Ledger, small: dict[str, Any]
) -> None:
    fit_beside(UNHASHABLE[name], ledger, small)
    assert [entry.status for entry in ledger.entries()] == ["charged"]


@pytest.mark.parametrize("name", [*UNHASHABLE][:2])
def test_the_check_finds_a_cell_that_stops_a_fit(
    name: str, ledger: Ledger, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version: only errors of one class mean that the cells cannot be hashed."""

    def digest(source: pd.DataFrame, key: bytes) -> str | None:
        try:
            return str(pd.util.hash_pandas_object(source, index=False).sum())
        except TypeError:
            return None

    monkeypatch.setattr(charging, "source_digest", digest)
    with pytest.raises((UnicodeError, OverflowError)):
        fit_beside(UNHASHABLE[name], ledger, small)
