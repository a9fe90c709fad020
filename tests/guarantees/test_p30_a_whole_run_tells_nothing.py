"""P30, for a whole run: whoever is held out, the bundle has the same files, keys and figures.

One hostile patient is dealt to the holdout, the answers of the mechanism are stubbed equal. The
broken twin is the code as it was, which stopped at exact counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.assessment import attack_audit as audit_verbs
from dpsynth.assessment import audit, published_quality, repeated_audits
from dpsynth.errors import GateError, InputError
from dpsynth.eval.attacks import Control
from dpsynth.ledger import Ledger
from dpsynth.workflow import Outcome, Settings, run_stages, subjects

from .hostile_patients import HOSTILE, PATIENT, STRICT, others, public_shape, same_answers

pytestmark = pytest.mark.filterwarnings("ignore:a new ledger was created")


def whole_run(folder: Path, source: pd.DataFrame, patch: pytest.MonkeyPatch) -> Outcome:
    """Go from a table to a bundle; who is held out is decided by name."""
    folder.mkdir()
    patch.setenv("DPSYNTH_LEDGER", str(folder / "ledger.sqlite"))
    patch.setattr(published_quality, "ask", same_answers)
    patch.setattr(repeated_audits, "canaries_needed", lambda *_, **__: None)  # a twin's chance
    Ledger.create(folder / "ledger.sqlite")
    source.to_csv(folder / "data.csv", index=False)
    STRICT.save(folder / "schema.yaml")
    settings = Settings.of(
        schema=str(folder / "schema.yaml"),
        data=str(folder / "data.csv"),
        dataset="demo",
        epsilon=3.0,
        delta=1e-6,
        model="independent",
        output=str(folder / "bundle"),
        canaries=50,
        seed=1,
        publish_quality=0.1,
        accept=["table:unlike-rows"],  # a stranger's row may look like a total
    )
    return run_stages(settings)


@pytest.fixture
def dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hostile patient is held out, and the controls are not played: they take minutes."""

    def split(data: Any, schema: Any, folder: Path, **_: Any) -> tuple[Path, Path]:
        table = pd.read_csv(data, dtype=str, keep_default_na=False)
        chosen = table["patient_id"].isin([PATIENT, *sorted(set(table["patient_id"]))[:8]])
        folder.mkdir()
        for name, side in (("train.csv", table[~chosen]), ("holdout.csv", table[chosen])):
            side.to_csv(folder / name, index=False)
        return folder / "train.csv", folder / "holdout.csv"

    monkeypatch.setattr(subjects, "split_file", split)
    control = Control("noisy", "A fit", "positive", "training:canaries", True, "seen")
    monkeypatch.setattr(audit_verbs, "fitted_controls", lambda *_: [control])


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """What is public of the run without the hostile patient: it is made once."""
    return {}


@pytest.mark.parametrize("kind", ["a refused number", "all missing", "out of bounds"])
def test_a_run_gives_the_same_bundle_whoever_is_held_out(
    kind: str,
    dealt: None,
    known: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not known:
        without = whole_run(tmp_path / "without", others(), monkeypatch)
        known["shape"] = public_shape(without.order.bundle)
    source = pd.concat([others(), HOSTILE[kind]])
    within = whole_run(tmp_path / "within", source, monkeypatch)
    assert public_shape(within.order.bundle) == known["shape"]
    assert "audit.json" in public_shape(within.order.bundle)


def test_too_few_people_to_attack_are_told_inside_and_change_nothing_outside(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = whole_run(tmp_path / "few", others(), monkeypatch)
    assert any("too few people to attack" in one for one in outcome.not_done)
    with pytest.raises(GateError, match="not done: .*too few people"):
        outcome.require_quiet()
    page = (outcome.order.internal / "internal.html").read_text()
    assert "The table was not attacked" in page
    again = run_stages(outcome.order)  # and it is not tried again and again
    assert {state.state for state in again.states} <= {"kept", "not needed"}
    assert len(json.loads((outcome.order.run / "audit.json").read_text())["audits"]) == 1


def test_the_twin_that_stops_at_exact_counts_is_seen(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: the audit's InputError went out, and there was no bundle."""

    def strictly(*words: Any, **more: Any) -> Any:
        return audit(*words, **(more | {"tolerant": False}))

    monkeypatch.setattr(subjects, "audit", strictly)
    with pytest.raises(InputError, match="too few people"):
        whole_run(tmp_path / "few", others(), monkeypatch)
    assert not (tmp_path / "few" / "bundle").exists()


def test_unexpected_errors_over_real_rows_are_told_without_their_text(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quotes(*_: Any, **__: Any) -> Any:
        raise ValueError("a private cell")

    monkeypatch.setattr("dpsynth.assessment.evaluation.evaluation", quotes)
    monkeypatch.setattr("dpsynth.assessment.attack_audit.attacked", quotes)
    outcome = whole_run(tmp_path / "run", others(), monkeypatch)
    assert len(outcome.not_done) == 2
    assert all("unexpected ValueError" in one for one in outcome.not_done)
    page = (outcome.order.internal / "internal.html").read_text()
    assert "unexpected ValueError" in page and "a private cell" not in page
    assert (outcome.order.bundle / "quality.json").is_file()
