"""Cohorts are evaluated and attacked by their patients' whole histories, from folders of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import (
    Candidate,
    Real,
    RealHistories,
    audit,
    evaluate,
    unfit_uses,
)
from dpsynth.encoding import Codec, summaries, summary_schema
from dpsynth.errors import GateError, InputError
from dpsynth.schema import published_tables
from dpsynth.synthesis import record_sample
from dpsynth.tables import simulate_cohort, write_linked

from ..support.clinic import clinic_codec, clinic_run, clinic_schema, clinic_tables, write_clinic
from ..support.history_cohorts import grow_few_trees

Tables = dict[str, pd.DataFrame]


def of_patients(tables: Tables, keys: set[str]) -> Tables:
    return {
        name: table[table["patient"].isin(keys)].reset_index(drop=True)
        for name, table in tables.items()
    }


@pytest.fixture(scope="module")
def sides() -> tuple[Tables, Tables]:
    """Return the tables of a source and of other people."""
    tables = simulate_cohort(600, seed=9)
    keys = tables["patients"]["patient"]
    return of_patients(tables, set(keys[:450])), of_patients(tables, set(keys[450:]))


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)


@pytest.mark.long
def test_an_evaluation_and_an_audit_share_a_folder(
    tmp_path: Path, sides: tuple[Tables, Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, holdout = (
        write_clinic(tmp_path / name, side) for name, side in zip("sh", sides, strict=True)
    )
    run = clinic_run().save(tmp_path / "run")
    tables = published_tables(clinic_schema())
    cohort = clinic_run().sample(200, seed=1)
    write_linked([cohort], tmp_path / "cohort", tables)
    with pytest.raises(GateError, match=r"not recorded in .*samples\.json"):
        Candidate.of_run(run, tmp_path / "cohort")
    record_sample(run, tmp_path / "cohort", size=200, seed=1)
    candidate = Candidate.of_run(run, tmp_path / "cohort")
    where = {"output": tmp_path / "internal", "seed": 1}
    document = evaluate(clinic_schema(), source, candidate, holdout, **where)  # type: ignore[arg-type]
    assert document["run"]["model"] == "latent"
    assert document["patients"]["synthetic"] == 200
    assert set(unfit_uses(document)) <= {use["key"] for use in document["uses"]}

    seen: dict[str, Any] = {}

    def attacked(tables: Any, **more: Any) -> tuple[dict[str, Any], list[Any]]:
        seen["rows"] = (tables.source.rows, tables.synthetic.rows, tables.holdout.rows)
        seen["columns"] = tables.codec.names
        return {}, []

    from dpsynth.assessment import attack_audit

    monkeypatch.setattr(attack_audit, "attacked", attacked)
    monkeypatch.setattr(attack_audit, "fitted_controls", lambda *_: [])
    audit(clinic_schema(), real=Real(source, candidate, holdout), **where)  # type: ignore[arg-type]
    assert seen["rows"] == (450, 200, 150)  # a row a patient
    assert "mean systolic of visits" in seen["columns"]
    names = {path.name for path in (tmp_path / "internal").iterdir()}
    assert names == {"histories.json", "histories.html", "audit.json", "internal.html"}
    other = Candidate.of(clinic_schema(), source)
    with pytest.raises(InputError, match="another synthetic table"):
        evaluate(clinic_schema(), source, other, output=tmp_path / "internal", overwrite=True)


def test_source_and_holdout_must_not_share_people(sides: tuple[Tables, Tables]) -> None:
    source, _ = sides
    with pytest.raises(InputError, match="share"):
        RealHistories.read(clinic_schema(), source, source)


def test_a_summary_is_of_each_patients_own_rows() -> None:
    """Leaving a patient out changes no other's row."""
    tables = clinic_tables()
    keys = tables["patients"]["patient"].tolist()
    few, fewer = (of_patients(tables, set(keys[start:60])) for start in (0, 1))
    rows = []
    for side in (few, fewer):
        histories = RealHistories.read(clinic_schema(), side, None)
        frame = summaries(histories.source, clinic_codec())
        assert Codec(summary_schema(clinic_codec())).conforms(frame) == []
        rows.append({tuple(map(str, row)) for row in frame.itertuples(index=False)})
    assert rows[1] <= rows[0]
    assert len(rows[0] - rows[1]) == 1


def test_a_mean_is_that_of_the_rows() -> None:
    tables = of_patients(clinic_tables(), set(clinic_tables()["patients"]["patient"][:40]))
    sides = RealHistories.read(clinic_schema(), tables, None)
    frame = summaries(sides.source, clinic_codec())
    visits = tables["visits"].groupby("patient")
    expected = visits["weight"].mean().dropna().to_numpy()
    own = frame["mean weight of visits"].dropna().to_numpy()
    np.testing.assert_allclose(np.sort(own), np.sort(expected), atol=0.26)
    assert sorted(frame["rows of visits"]) == sorted(
        tables["patients"]["patient"].map(visits.size()).fillna(0).astype(int)
    )


@pytest.mark.long
def test_patients_who_are_copied_are_found_and_drawn_ones_are_not() -> None:
    tables = simulate_cohort(2_500, seed=9)
    keys = tables["patients"]["patient"]
    source, holdout = of_patients(tables, set(keys[:2000])), of_patients(tables, set(keys[2000:]))
    copied = {
        name: table.assign(patient=table["patient"].str[1:]) for name, table in source.items()
    }
    drawn = clinic_run().sample(2_000, seed=1)
    findings = {}
    for name, cohort in (("copied", copied), ("drawn", drawn)):
        document = audit(
            clinic_schema(), real=Real(source, Candidate(name, cohort), holdout), seed=2
        )
        findings[name] = {one["key"] for one in document["findings"] if one["found"]}
    assert {"memorization:copies", "membership:distance"} <= findings["copied"]
    assert findings["drawn"] == set()
