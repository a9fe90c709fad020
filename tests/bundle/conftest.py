"""Fixtures that several tests of bundles share: a key, and the page of a bundle."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle.format import About, Contents, ManifestHeader, Provenance, create_key
from dpsynth.bundle.gates import Profile, judge
from dpsynth.bundle.pages import public_page
from dpsynth.certificate import Certificate
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema

from ..support.forger import Forger

TABLE = "data/synthetic.parquet"


@pytest.fixture
def no_passphrase_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPSYNTH_KEY_PASSPHRASE", raising=False)
    monkeypatch.setattr(sys, "stdin", open(os.devnull))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key without a passphrase, its public half beside it."""
    return create_key(tmp_path / "keys" / "office.key", None)[0]


@pytest.fixture
def certificate(forger: Forger) -> Certificate:
    return Certificate.from_dict(forger.read("privacy.json"))


@pytest.fixture
def drawing(forger: Forger) -> Provenance:
    return Provenance.from_dict(forger.read("datapackage.json")["dpsynth"]["drawing"], "drawing")


@pytest.fixture
def page(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Provenance
) -> Callable[..., str]:
    """Write the page of the test's bundle, with some inputs changed."""
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))

    def of(**changes: Any) -> str:
        inputs: dict[str, Any] = {"drawing": drawing, "about": About(), **changes}
        heading = ManifestHeader(
            inputs.get("schema", every_type), inputs["drawing"], inputs["about"]
        )
        statement = changes.get("certificate", certificate)
        return public_page(
            Contents(heading, statement, changes.get("quality"), changes.get("audits")),
            [changes.get("profile", profile)],
            changes.get("verdicts", judge(certificate, [profile])),
            {TABLE: changes.get("table_sha256", "b" * 64)},
        )

    return of
