"""P08: bounds, bins and resolution are declared; one absurd outlier changes nothing but its cell.

The check: a table with and without one absurd cell; every other code, and every synthetic value
that the same codes give, is the same, and no synthetic value leaves the declared bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from dpsynth.encoding import Codec
from dpsynth.schema import Schema

from ..support.schema_fields import schema_field

NUMBER = {"value": 90, "basis": "made for this test"}
LIMITS: dict[str, tuple[str, Any, Any]] = {
    "sbp": ("integer", 60, 260),
    "crp": ("number", 0.0, 500.0),
    "admitted": ("date", "2015-01-01", "2020-12-31"),
}
SCHEMA = Schema.from_dict(
    {
        "fields": [
            schema_field(name, kind, "made for this test", minimum=low, maximum=high, required=True)
            for name, (kind, low, high) in LIMITS.items()
        ],
        "dpsynth": {"version": 1, "population": NUMBER, "rows": NUMBER},
    }
)
ROWS = 500
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "sbp": RNG.integers(90, 180, ROWS).astype(str),
        "crp": RNG.gamma(1.0, 20.0, ROWS).round(1).astype(str),
        "admitted": (np.datetime64("2016-01-01") + RNG.integers(0, 900, ROWS)).astype(str),
    }
).astype(object)
OUTLIERS = {
    "sbp": ["16020", "-150", "1e300", "99999999999999999999999", "inf", "-inf"],
    "crp": ["1e9", "-1e9", "1e-300", "inf"],
    "admitted": ["9999-12-31", "0001-01-01"],
}

Codes = npt.NDArray[np.integer]
Coder = Callable[[pd.DataFrame], tuple[Codes, pd.DataFrame]]


def declared(frame: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
    """Code a table, and decode one fixed set of codes."""
    codec = Codec(SCHEMA)
    codes = np.column_stack([np.arange(128) * size // 128 for size in codec.sizes])
    return codec.encode(frame), codec.decode(codes, np.random.default_rng(3))


def scaled(frame: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
    """Broken twin: 128 cells between the smallest and the largest value of the table."""
    codes, decoded = {}, {}
    for name in frame:
        text = frame[name]
        values = (
            np.array([np.datetime64(cell, "D") for cell in text]).astype(np.int64).astype(float)
            if name == "admitted"
            else np.nan_to_num(text.astype(float).to_numpy())
        )
        low, width = values.min(), max(np.ptp(values), 1e-9)
        codes[name] = np.clip((values - low) / width * 128, 0, 127).astype(int)
        decoded[name] = low + (np.arange(128) + 0.5) / 128 * width
    return pd.DataFrame(codes).to_numpy(), pd.DataFrame(decoded)


def one_cell_changes_one_code(code: Coder, column: str, outlier: str) -> bool:
    spoilt = FRAME.copy()
    spoilt.loc[7, column] = outlier
    codes, values = code(FRAME)
    spoilt_codes, spoilt_values = code(spoilt)
    elsewhere = np.ones(codes.shape, dtype=bool)
    elsewhere[7, list(FRAME).index(column)] = False
    return bool((codes == spoilt_codes)[elsewhere].all()) and values.equals(spoilt_values)


CASES = [(column, outlier) for column, cells in OUTLIERS.items() for outlier in cells]


@pytest.mark.parametrize(("column", "outlier"), CASES)
def test_an_outlier_changes_its_own_code_only(column: str, outlier: str) -> None:
    assert one_cell_changes_one_code(declared, column, outlier)


@pytest.mark.parametrize(
    ("column", "outlier"), [("sbp", "16020"), ("crp", "1e9"), ("admitted", "9999-12-31")]
)
def test_the_check_catches_fitted_bounds(column: str, outlier: str) -> None:
    assert not one_cell_changes_one_code(scaled, column, outlier)


def test_outliers_get_the_code_of_the_nearest_bound() -> None:
    codec = Codec(SCHEMA)
    for column, cells in OUTLIERS.items():
        place = codec.names.index(column)
        bounds = pd.DataFrame({name: [LIMITS[name][1], LIMITS[name][2]] for name in FRAME})
        first, last = codec.encode(bounds)[:, place].tolist()
        frame = pd.DataFrame({name: [FRAME[name][0]] * len(cells) for name in FRAME})
        frame[column] = cells
        codes = codec.encode(frame)[:, place].tolist()
        # Infinity is a bad cell; a required numeric column sends bad cells to its minimum.
        expected = {
            "sbp": [last, first, last, last, first, first],
            "crp": [last, first, first, first],
            "admitted": [last, first],
        }
        assert codes == expected[column]


def test_synthetic_values_stay_within_the_bounds() -> None:
    codec = Codec(SCHEMA)
    rng = np.random.default_rng(9)
    codes = rng.integers(0, codec.sizes, size=(20_000, 3))
    frame = codec.decode(codes, rng)
    assert frame["sbp"].min() == 60
    assert frame["sbp"].max() == 260
    assert frame["crp"].min() >= 0.0
    assert frame["crp"].max() <= 500.0
    assert frame["admitted"].min() >= pd.Timestamp("2015-01-01")
    assert frame["admitted"].max() <= pd.Timestamp("2020-12-31")
