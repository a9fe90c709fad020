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

from dpsynth.certificate.certificate import Certificate
from dpsynth.ledger.evidence import Evidence, ReplayedAccount, ViewedAccount, differences
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.sources import source_digest
from dpsynth.privacy.events import JointHistograms
from dpsynth.synthesis.run import Run

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
