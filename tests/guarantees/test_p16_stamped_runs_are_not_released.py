"""P16: noise that can be replayed, or that no ledger counted, never leaves the office.

Part one: a run made with a seeded source, or without a ledger, is stamped, and release refuses it.
Part two: an attacker who knows all rows and every number in the released files cannot draw the
noise again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import release
from dpsynth.certificate import Certificate, certify
from dpsynth.encoding import Codec, read_cohort
from dpsynth.errors import ArtifactError, BudgetError, GateError, VerificationError
from dpsynth.ledger import Ledger
from dpsynth.models import Domain
from dpsynth.models.generators import Independent
from dpsynth.privacy import Entropy, OsEntropy, PrivacyPlan, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, charged_fit
from dpsynth.tables import open_table


def office(folder: Path) -> Ledger:
    place = folder / "ledger.sqlite"
    return Ledger(place) if place.exists() else Ledger.create(place)


def fitted(rows: pd.DataFrame, schema: Schema, folder: Path, **changes: Any) -> Run:
    settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "model": "independent"}
    settings |= {"dataset": "cohort", "ledger": office(folder)}
    return dpsynth.fit(rows, schema, output=folder / "run", **(settings | changes))


STAMPED: dict[str, dict[str, Any]] = {
    "seeded-entropy": {"entropy": SeededEntropy(1)},
    "no-ledger": {"without_ledger": True, "ledger": None},
}


@pytest.mark.parametrize("stamp", STAMPED)
def test_a_stamped_run_is_not_released(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path, stamp: str
) -> None:
    run = fitted(rows, every_type, tmp_path, **STAMPED[stamp])
    assert run.stamps == (stamp,) == Run.load(tmp_path / "run").stamps
    office(tmp_path)
    before = set(os.listdir(tmp_path))
    with pytest.raises(GateError, match=f"stamped {stamp} and must not be released") as caught:
        release(tmp_path / "run", tmp_path / "bundle", size=50, seed=1, ledger=office(tmp_path))
    assert caught.value.exit_code == 3
    assert set(os.listdir(tmp_path)) == before


def test_a_release_that_ignores_stamps_would_be_noticed(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin of the test above, whose certificate does not name the seeded source."""
    monkeypatch.setattr(
        charged_fit, "certify", lambda *words, seeded, **more: certify(*words, seeded=False, **more)
    )
    fitted(rows, every_type, tmp_path, **STAMPED["seeded-entropy"])
    monkeypatch.setattr(
        "dpsynth.bundle.writer._releasable", lambda run: Certificate.from_dict(run.certificate)
    )
    release(tmp_path / "run", tmp_path / "bundle", size=50, seed=1, ledger=office(tmp_path))
    assert (tmp_path / "bundle").exists()


class Claimed(SeededEntropy):
    """A source that says of itself that its noise can be relied on."""

    releasable = True


def test_a_source_is_not_taken_at_its_word(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path
) -> None:
    assert fitted(rows, every_type, tmp_path, entropy=Claimed(1)).stamps == ("seeded-entropy",)


def test_a_sound_run_is_released(rows: pd.DataFrame, every_type: Schema, tmp_path: Path) -> None:
    assert fitted(rows, every_type, tmp_path).stamps == ()
    release(tmp_path / "run", tmp_path / "bundle", size=50, seed=1, ledger=office(tmp_path))


def test_a_stamp_does_not_come_off_by_hand(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path
) -> None:
    fitted(rows, every_type, tmp_path, **STAMPED["seeded-entropy"])
    path = tmp_path / "run" / "run.json"
    document = json.loads(path.read_text())
    document["stamps"] = []
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="damaged"):
        release(tmp_path / "run", tmp_path / "bundle", size=50, seed=1, ledger=office(tmp_path))


def test_a_run_without_ledger_is_refused_whatever_its_stamps(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fitted(rows, every_type, tmp_path, **STAMPED["no-ledger"])
    replace(run, stamps=()).save(tmp_path / "cleaned")
    with pytest.raises(GateError, match="stamped no-ledger"):
        release(tmp_path / "cleaned", tmp_path / "bundle", size=50, seed=1)
    certificate = Certificate.from_dict(run.certificate)
    monkeypatch.setattr("dpsynth.bundle.writer._releasable", lambda run: certificate)
    with pytest.raises(BudgetError, match="no ledger charged this run"):  # a second lock
        release(tmp_path / "cleaned", tmp_path / "bundle", size=50, seed=1)
    granted = SimpleNamespace(enter=lambda manifest: None, rules=lambda rules: None, gates=())
    monkeypatch.setattr("dpsynth.bundle.writer.Permission.of", lambda run, book: granted)
    with pytest.raises(GateError, match="no-ledger"):  # a third
        release(tmp_path / "cleaned", tmp_path / "bundle", size=50, seed=1)
    monkeypatch.setattr("dpsynth.bundle.writer.decide", lambda verdicts, gates, override: ())
    with pytest.raises(VerificationError, match="no ledger was charged"):  # and a fourth
        release(tmp_path / "cleaned", tmp_path / "bundle", size=50, seed=1)


def numbers_in(document: Any) -> Iterator[int]:
    """Find every integer of a document, also in its texts' hexadecimal digits."""
    if isinstance(document, dict | list):
        for item in document.values() if isinstance(document, dict) else document:
            yield from numbers_in(item)
    elif isinstance(document, int | float):
        yield int(document)
    elif isinstance(document, str) and len(document) in (32, 36, 64):
        try:
            yield int(document.replace("-", ""), 16)
        except ValueError:
            return


def can_replay(run: Run, fit: Callable[[Entropy], np.ndarray[Any, Any]], *folders: Path) -> bool:
    """Fit again with every number that a released document holds; does one give the same?"""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.json"))]
    documents = [json.loads(path.read_text()) for path in paths]
    seeds = {*range(100)} | {abs(n) for document in documents for n in numbers_in(document)}
    return any(np.array_equal(fit(SeededEntropy(n)), run.arrays["shares"]) for n in seeds)


FEW = ("key", "grade", "sex")


def test_the_noise_cannot_be_drawn_again(
    rows: pd.DataFrame, every_type: Schema, tmp_path: Path
) -> None:
    document = every_type.to_dict()  # with few columns: it is fitted again hundreds of times
    document["fields"] = [one for one in document["fields"] if one["name"] in FEW]
    del document["dpsynth"]["rules"]
    schema = Schema.from_dict(document)
    run = fitted(rows[list(FEW)], schema, tmp_path)
    codec = Codec(schema)
    domain = Domain.of(schema, codec)
    plan = PrivacyPlan.from_dict(
        {key: run.certificate[key] for key in ("epsilon", "delta", "composed_epsilon", "events")}
    )
    cohort = read_cohort(open_table(rows[list(FEW)], schema), codec, schema, OsEntropy())

    def fit(entropy: Entropy) -> np.ndarray[Any, Any]:
        generator = Independent(domain).fit(cohort, plan, plan.opened(entropy))
        return generator.arrays()["shares"]

    seed = 20_240_117  # the broken twin keeps the seed of its noise, like any other setting
    broken = replace(run, config={"seed": seed}, arrays={"shares": fit(SeededEntropy(seed))})
    broken.save(tmp_path / "broken" / "run")
    assert can_replay(broken, fit, tmp_path / "broken")

    release(tmp_path / "run", tmp_path / "bundle", size=50, seed=5, ledger=office(tmp_path))
    assert not can_replay(run, fit, tmp_path / "run", tmp_path / "bundle")
