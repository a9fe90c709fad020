"""The verb `forecast`: what error to expect of a fit, before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._util.seeds import check_seed
from dpsynth._version import __version__
from dpsynth.errors import InputError
from dpsynth.forecasts.forecaster import PAIRS, Forecaster, Wish
from dpsynth.forecasts.rows import RowSource, assumed, earlier
from dpsynth.forecasts.simulated_fit import Setting
from dpsynth.models import Progress, silent
from dpsynth.models.registry import DEFAULT
from dpsynth.schema import AnySchema, Schema, load_any
from dpsynth.synthesis import require_small_delta

FORMAT, VERSION = "dpsynth-forecast", 1


@shown_in_notebooks
def forecast(
    schema: AnySchema | str | Path,
    *,
    epsilon: float,
    delta: float,
    model: str = DEFAULT,
    like: str | Path | None = None,
    wanted_error: float | None = None,
    error_of: str = PAIRS,
    publish_quality: float | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Forecast the errors of a fit from public facts, or from an earlier release; open no data.

    Args:
        schema: a `Schema`, the path of one, or the name of a shipped one. Its population and rows
            are those of what would be fitted.
        epsilon: privacy budget of the fit.
        delta: likewise.
        model: a generator's name, or ``auto``.
        like: folder of an earlier run or bundle with the same columns, to draw rows from; None:
            rows are assumed, in three ways.
        wanted_error: a distance for which the epsilon and the population are sought.
        error_of: what it is of: ``pairs``, ``columns``, or the name of a column.
        publish_quality: share of the budget for public quality figures.
        seed: the same one gives the same forecast.
        progress: called with a stage and its fraction done.

    Returns:
        The forecast in JSON types; `docs/forecast.md` says what is in it.

    Raises:
        InputError: the schema is of linked tables, the earlier release does not suit it, or an
            argument is out of range.

    >>> found = forecast("cardio", epsilon=3, delta=1e-6, model="mixture")  # doctest: +SKIP
    >>> found["pairs"]["expected"]  # doctest: +SKIP
    0.0048...
    """
    loaded = schema if isinstance(schema, AnySchema) else load_any(schema)
    if not isinstance(loaded, Schema):
        raise InputError(
            f"a forecast is of a single table, and {loaded.name} is of linked tables; leave out "
            "--forecast"
        )
    check_seed(seed)
    require_small_delta(loaded, epsilon, delta)
    setting = Setting(loaded, epsilon, delta, model, publish_quality)
    prepared = setting.prepared()
    setting = replace(setting, model=prepared.model)
    wish = Wish(wanted_error, error_of)
    wish.check(prepared.codec.names)
    sources: list[RowSource]
    if like is None:
        sources = assumed(loaded, prepared.codec)
    else:
        sources = [earlier(like, loaded, seed=seed)]
    found = Forecaster(setting, sources, wish, prepared.codec, seed, progress).run()
    return {
        "format": FORMAT,
        "version": VERSION,
        "dpsynth": __version__,
        "schema": {"name": loaded.name, "title": loaded.title, "sha256": loaded.hash()},
        "model": prepared.model,
        "reason": prepared.reason,
        "epsilon": epsilon,
        "delta": delta,
        "population": setting.population,
        "rows": loaded.rows.value,
        "like": None if like is None else sources[0].name,
        "assumptions": None if like is not None else [source.name for source in sources],
        "seed": seed,
        **found,
    }
