"""Which fits a forecast makes, and how those of a quick model stand for those of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsynth import forecast
from dpsynth.forecasts import Errors
from dpsynth.forecasts.errors import Subgroups
from dpsynth.forecasts.forecast import Setting

from ..support.forecast_table import forecast_schema

NOTHING = Subgroups(*(np.empty(0, dtype=np.int64) for _ in range(6)))
HARDER = {"typical": 1.0, "even": 2.0, "narrow": 0.5}


def made(errors: float) -> Errors:
    pairs = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    return Errors(np.full(4, errors / 2), pairs, np.full(6, errors), NOTHING)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Setting]:
    """The settings of all fits; a network has twice the error of the mixture."""
    settings: list[Setting] = []

    def fitted(setting: Setting, source: Any, seed: int, progress: Any) -> Errors:
        settings.append(setting)
        progress("fit", 1.0)
        factor = 2.0 if setting.model == "autoregressive" else 1.0
        return made(factor * HARDER[source.name] * 12 / (setting.epsilon * setting.population))

    monkeypatch.setattr("dpsynth.forecasts.forecast.simulate_fit", fitted)
    return settings


def test_a_network_is_fitted_once_and_the_mixture_stands_for_it(fits: list[Setting]) -> None:
    shown: dict[str, list[float]] = {}
    found = forecast(
        forecast_schema(),
        epsilon=1.0,
        delta=1e-4,
        model="autoregressive",
        wanted_error=0.03,
        progress=lambda stage, part: shown.setdefault(stage, []).append(part),
    )
    assert [setting.model for setting in fits].count("autoregressive") == 1
    assert found["fits"] == len(fits) and found["model"] == "autoregressive"
    assert found["pairs"]["expected"] == pytest.approx(0.06)
    assert found["pairs"]["low"] == pytest.approx(0.03)
    assert found["pairs"]["high"] == pytest.approx(0.12)
    age = found["columns"]["each"][0]
    assert [age[key] for key in ("expected", "low", "high")] == pytest.approx([0.03, 0.015, 0.06])
    at = {point["epsilon"]: point["error"] for point in found["by_epsilon"]}
    assert at[1.0] == pytest.approx(0.06) and at[3.0] == pytest.approx(0.02)
    wanted = found["wanted"]
    assert wanted["epsilon"]["value"] == 2.1 and wanted["population"]["value"] in (830, 840)
    assert len(shown) == len(fits), "each fit is named"
    assert all(parts == sorted(parts) and parts[-1] == 1.0 for parts in shown.values())
    assert next(iter(shown)).startswith("simulated fit 1 of about ")


def test_the_curves_are_of_the_error_that_is_meant(fits: list[Setting]) -> None:
    settings = {"epsilon": 1.0, "delta": 1e-4, "model": "mixture"}
    of_pairs = forecast(forecast_schema(), **settings)
    of_columns = forecast(forecast_schema(), error_of="columns", **settings)
    of_one = forecast(forecast_schema(), error_of="stay", **settings)
    for curve in ("by_epsilon", "by_population"):
        for pairs, columns in zip(of_pairs[curve], of_columns[curve], strict=True):
            assert pairs["error"] == pytest.approx(2 * columns["error"])
    assert of_one["by_epsilon"] == of_columns["by_epsilon"]
    assert of_pairs["subgroups"] == {
        "by_size": [],
        "smallest": dict.fromkeys("123"),
        "smallest_of_all": None,
    }


def test_populations_beyond_one_over_delta_are_not_tried(fits: list[Setting]) -> None:
    forecast(forecast_schema(900), epsilon=1.0, delta=1e-3, model="mixture", wanted_error=0.0001)
    assert max(setting.population for setting in fits) == 999
    assert max(setting.epsilon for setting in fits) == 20
    assert all(
        setting.schema.rows.value == setting.population for setting in fits
    )  # rows in proportion
