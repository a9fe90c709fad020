"""Codes that the schema does not declare, missing and an added other, need more than noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.models import Domain, Feature
from dpsynth.models.marginals import AdaptiveCells, merge
from dpsynth.schema import Schema

from ..support.quick_fit import quick_fit
from ..support.short_training import shorten_training
from ..support.some_cases import each_generator

BASIS = {"bounds_basis": "made up"}
FIELDS = [
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {
        "name": "sex",
        "type": "string",
        "constraints": {"enum": ["F", "M"], "required": True},
        "dpsynth": BASIS,
    },
    {
        "name": "ward",
        "type": "string",
        "constraints": {"enum": ["A", "B", "C", "D", "rare"], "required": True},
        "dpsynth": BASIS,
    },
    {
        "name": "weight",
        "type": "integer",
        "constraints": {"minimum": 30, "maximum": 160},
        "dpsynth": BASIS,
    },
    {"name": "smoker", "type": "boolean"},
]
SCHEMA = Schema.from_dict(
    {
        "name": "wards",
        "fields": FIELDS,
        "dpsynth": {
            "version": 1,
            "max_rows": {"value": 1, "basis": "made up"},
            "population": {"value": 1500, "basis": "made up"},
            "rows": {"value": 1500, "basis": "made up"},
        },
    }
)


def extract(missing: float = 0.0, unlisted: float = 0.0) -> pd.DataFrame:
    """Patients with all cells filled from the lists, but for some of a column."""
    rng = np.random.default_rng(1)
    rows = 1500
    ward = rng.choice(["A", "B", "C", "D", "rare"], rows, p=[0.3, 0.3, 0.2, 0.19, 0.01])
    weight = rng.integers(50, 110, rows).astype(str)
    weight[rng.random(rows) < missing] = ""
    ward[rng.random(rows) < unlisted] = "Z"
    return pd.DataFrame(
        {
            "patient": [f"p{row}" for row in range(rows)],
            "sex": rng.choice(["F", "M"], rows),
            "ward": ward,
            "weight": weight,
            "smoker": rng.choice(["true", "false"], rows),
        }
    )


def drawn(model: str, frame: pd.DataFrame, epsilon: float = 2.0) -> pd.DataFrame:
    """Rows of a quick fit."""
    run = quick_fit(frame, SCHEMA, epsilon=epsilon, delta=1e-5, model=model)
    return run.sample(2000, seed=3)


@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_no_level_that_nobody_declared_comes_out_of_noise(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_training(monkeypatch)
    for epsilon in (0.3, 2.0):
        found = drawn(model, extract(), epsilon)
        assert set(found["sex"]) <= {"F", "M"}
        assert set(found["ward"]) <= {"A", "B", "C", "D", "rare"}
        assert found.notna().all(axis=None)


@pytest.mark.parametrize("model", ["independent", "mixture"])
def test_what_stands_out_of_the_noise_is_kept(model: str) -> None:
    """A fifth of a column is missing, and a seventh of another is of a ward that is not listed."""
    found = drawn(model, extract(missing=0.2, unlisted=0.14), epsilon=4.0)
    assert found["weight"].isna().mean() == pytest.approx(0.2, abs=0.05)
    assert (found["ward"] == "other").mean() == pytest.approx(0.14, abs=0.05)


def test_the_domain_names_codes_without_a_declared_value() -> None:
    features = Domain.of(SCHEMA, Codec(SCHEMA)).features
    assert [one.undeclared for one in features] == [(2,), (5,), (131,), (2,)]


def test_a_declared_code_keeps_its_count_however_rare() -> None:
    """Two errors of noise are no row of an added other, and the rows of a code that is listed."""
    counts = [np.array([500, 20, 20, 460])]
    listed = Feature("ward", 4, 0, undeclared=(2,))
    column = AdaptiveCells.of(listed, counts, total=1000.0, sigma=10.0, columns=5)
    shares = column.shares(1000.0)
    assert shares[2] == 0.0 and shares[1] > 0.01
    assert shares.sum() == pytest.approx(1.0)


def test_a_code_without_a_row_has_no_bin_of_its_own() -> None:
    counts = [np.array([300, 680, 5])]
    feature = Feature("sex", 3, 0, undeclared=(2,))
    leaves = AdaptiveCells.of(feature, counts, total=985.0, sigma=10.0, columns=5)
    bins = merge(leaves, total=985.0, sigma=10.0, maximum=8)
    assert bins.bin_of.tolist() == [0, 1, 1] and bins.shares[2] == 0.0
    codes = bins.refine(np.ones(2000, dtype=np.int64), np.random.default_rng(1))
    assert set(codes.tolist()) == {1}


def test_without_noise_a_single_row_counts() -> None:
    counts = [np.array([300, 680, 1])]
    feature = Feature("sex", 3, 0, undeclared=(2,))
    leaves = AdaptiveCells.of(feature, counts, total=981.0, sigma=0.0, columns=5)
    assert leaves.shares(981.0)[2] == pytest.approx(1 / 981)
