"""Bootstrapped real rows pass all gates, whichever tool wrote them, and as whatever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import Candidate, evaluate
from dpsynth.schema import Schema

BASIS = {"bounds_basis": "protocol"}
ROWS = 600


def schema() -> Schema:
    codes = {"codes": {"system": "ICD-10-GM", "rollup": "chapter"}}
    age = {"minimum": 18, "maximum": 60}
    days = {"minimum": "01.01.2020", "maximum": "31.03.2020"}
    fields: list[dict[str, Any]] = [
        {"name": "age", "type": "integer", "constraints": age, "dpsynth": BASIS},
        {"name": "smoker", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {
            "name": "adm",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": days,
            "dpsynth": BASIS,
        },
        {"name": "icd", "type": "string", "dpsynth": codes},
    ]
    size = {"value": ROWS, "basis": "protocol"}
    dialect = {"delimiter": ";", "decimal": ","}
    own = {"version": 1, "population": size, "rows": size, "dialect": dialect}
    return Schema.from_dict({"fields": fields, "dpsynth": own})


@pytest.mark.parametrize("tool", ["source", "pandas"])
def test_bootstrapped_rows_pass_all_gates(tmp_path: Path, tool: str) -> None:
    rng = np.random.default_rng(7)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, ROWS), unit="D")
    real = pd.DataFrame(
        {
            "age": rng.integers(18, 61, ROWS),
            "smoker": np.where(rng.random(ROWS) < 0.3, "ja", "nein"),
            "adm": pd.Series(days).dt.strftime("%d.%m.%Y"),
            "icd": rng.choice(["E11.9", "I10", "J44.9"], ROWS),
        }
    )
    drawn = real.iloc[rng.integers(0, ROWS, ROWS)]
    real.to_csv(tmp_path / "real.csv", sep=";", index=False)
    if tool == "pandas":  # which made dates and truth values of the texts
        drawn = drawn.assign(
            adm=pd.to_datetime(drawn["adm"], format="%d.%m.%Y"), smoker=drawn["smoker"] == "ja"
        )
    drawn.to_csv(tmp_path / "theirs.csv", sep=";" if tool == "source" else ",", index=False)
    candidate = Candidate("theirs", tmp_path / "theirs.csv")
    found = evaluate(schema(), tmp_path / "real.csv", candidate)
    assert [gate["key"] for gate in found["gates"] if gate["passed"] is False] == []
    assert found["measures"]["missing"]["value"] == 0
    assert not [note for note in found["notes"] if note.startswith("the synthetic table")]
