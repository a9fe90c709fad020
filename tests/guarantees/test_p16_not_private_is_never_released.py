"""P16: a reference fitted without privacy is stamped, keeps its stamp, and never leaves."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpsynth
from dpsynth._util.strict_json import digest, written
from dpsynth.bundle import release
from dpsynth.cli.group import commands
from dpsynth.errors import ArtifactError, GateError, InputError
from dpsynth.ledger import Ledger
from dpsynth.models import presets, spec_of
from dpsynth.models.dpsgd import trainer
from dpsynth.models.registry import NAMES
from dpsynth.privacy.plan import STAMP
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from ..support.short_training import shorten_training

NEURAL = [name for name in NAMES if spec_of(name).neural]


@pytest.fixture(scope="module")
def schema() -> Schema:
    fields = [
        {"name": name, "type": "string", "constraints": {"enum": list("abcd"), "required": True}}
        for name in ("ward", "drug")
    ]
    for field in fields:
        field["dpsynth"] = {"bounds_basis": "made up", "on_unknown": "a"}
    size = {"value": 400, "basis": "made up"}
    return Schema.from_dict(
        {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "name": "wards",
            "fields": fields,
            "dpsynth": {"version": 1, "population": size, "rows": size},
        }
    )


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Each ward has a drug of its own."""
    ward = np.random.default_rng(1).choice(list("abcd"), 400, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame({"ward": ward, "drug": ward})


@pytest.fixture(scope="module", params=NEURAL)
def folder(
    request: pytest.FixtureRequest,
    rows: pd.DataFrame,
    schema: Schema,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A saved run of every neural generator, fitted without privacy."""
    folder = tmp_path_factory.mktemp(request.param) / "run"
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch)
        dpsynth.fit_not_private(rows, schema, model=request.param, output=folder)
    return folder


def edited(folder: Path, to: Path, **changes: Any) -> Path:
    """Copy a run with other entries, and a digest that fits them: what a forger would do."""
    to.mkdir()
    document = json.loads((folder / "run.json").read_text()) | changes
    document.pop("sha256")
    (to / "run.json").write_bytes(written(document | {"sha256": digest(document)}))
    (to / "state.safetensors").write_bytes((folder / "state.safetensors").read_bytes())
    return to


def test_it_is_stamped_and_has_no_certificate(folder: Path) -> None:
    run = Run.load(folder)
    assert run.certificate is None and run.stamps == (STAMP,)
    assert len(run.sample(50, seed=1)) == 50


def test_release_refuses_it(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(GateError, match="fitted without privacy") as caught:
        release(folder, tmp_path / "bundle", size=50, seed=1)
    assert caught.value.exit_code == 3 and not list(tmp_path.iterdir())


def test_the_stamp_cannot_be_wiped_off(folder: Path, tmp_path: Path) -> None:
    """Without the stamp there is no certificate to release it under: the run is damaged."""
    forged = edited(folder, tmp_path / "run", stamps=[])
    with pytest.raises(ArtifactError, match="either a certificate or the stamp"):
        release(forged, tmp_path / "bundle", size=50, seed=1)


def test_a_borrowed_certificate_does_not_help(
    folder: Path, rows: pd.DataFrame, schema: Schema, tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    private = dpsynth.fit(
        rows, schema, epsilon=1.0, delta=1e-6, dataset="w", model="mixture", ledger=ledger
    )
    forged = edited(folder, tmp_path / "run", certificate=private.certificate)
    with pytest.raises(ArtifactError, match="either a certificate or the stamp"):
        release(forged, tmp_path / "bundle", size=50, seed=1)


def test_a_release_that_ignores_the_stamp_would_be_noticed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: with the check taken out, only the lack of a certificate stands in the way."""
    monkeypatch.setattr("dpsynth.bundle.writer._releasable", lambda run: run.certificate)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        release(folder, tmp_path / "bundle", size=50, seed=1)
    assert not isinstance(caught.value, GateError)


def test_only_neural_generators_have_a_reference(rows: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(InputError, match="cannot be fitted without privacy; choose one of"):
        dpsynth.fit_not_private(rows, schema, model="mixture")


def test_no_noise_is_drawn_and_no_private_trainer_is_built(
    rows: pd.DataFrame, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it learns is exact: the counts are those of the rows."""

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a mechanism of a plan ran in a fit without one")

    monkeypatch.setattr(trainer, "DpSgd", never)
    monkeypatch.setattr("dpsynth.models.marginals.measurement.joint_histograms", never)
    monkeypatch.setattr("dpsynth.models.marginals.measurement.chosen_histograms", never)
    shorten_training(monkeypatch)
    run = dpsynth.fit_not_private(rows, schema, model="auto")
    assert run.model == "autoregressive"  # the default network
    exact = np.concatenate([rows[c].value_counts(normalize=True).sort_index() for c in rows])
    np.testing.assert_allclose(run.arrays["shares"], exact, atol=1e-12)


# The command line -----------------------------------------------------------------------------


def invoke(*words: str) -> Any:
    return CliRunner().invoke(commands, list(words))


def test_a_budget_is_required_unless_not_private(tmp_path: Path) -> None:
    outcome = invoke("fit", "demo", "rows.csv", "-o", str(tmp_path / "run"))
    assert outcome.exit_code == 2 and "--epsilon" in outcome.output
    words = ["--epsilon", "1", "--delta", "1e-6"]
    outcome = invoke("fit", "demo", "rows.csv", *words, "-o", str(tmp_path / "run"))
    assert outcome.exit_code == 2 and "--dataset" in outcome.output


@pytest.mark.parametrize("option", ["--epsilon", "--delta"])
def test_a_budget_contradicts_not_private(tmp_path: Path, option: str) -> None:
    outcome = invoke(
        "fit", "demo", "rows.csv", "--not-private", option, "0.1", "-o", str(tmp_path / "run")
    )
    assert outcome.exit_code == 2 and f"leave out {option}" in outcome.output


def test_the_command_says_so_and_charges_nothing(
    rows: pd.DataFrame, schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setattr(
        presets,
        "autoregressive_training",
        lambda *facts: {"training": 0.2, "steps": 3, "learning_rate": 0.01},
    )
    schema.save(tmp_path / "wards.yaml")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = [
        "fit",
        str(tmp_path / "wards.yaml"),
        str(tmp_path / "rows.csv"),
        "--model",
        "autoregressive",
    ]
    outcome = invoke(*words, "--not-private", "-o", str(tmp_path / "run"))
    assert outcome.exit_code == 0, outcome.output
    assert "NOT PRIVATE" in outcome.output and "cannot be released" in outcome.output
    assert not (tmp_path / "ledger.sqlite").exists()
    outcome = invoke("sample", str(tmp_path / "run"), "-o", str(tmp_path / "s.csv"), "--rows", "20")
    assert outcome.exit_code == 0 and "fitted without privacy, so keep this table" in outcome.output
    assert stat.S_IMODE((tmp_path / "s.csv").stat().st_mode) == 0o600
    outcome = invoke("sample", str(tmp_path / "run"), "-o", str(tmp_path / "run" / "s.csv"))
    assert isinstance(outcome.exception, InputError) and "inside" in str(outcome.exception)
    outcome = invoke("release", str(tmp_path / "run"), "-o", str(tmp_path / "bundle"))
    assert isinstance(outcome.exception, GateError)
