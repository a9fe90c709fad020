"""Survival: Kaplan-Meier curves and Cox regression, where the schema declares time and event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core import (
    DesignMatrix,
    Measure,
    Tables,
    TableView,
    about,
    groups,
    jackknife_error,
    levels_of,
    numbers,
)
from dpsynth.eval.utility.effects import MIN_ROWS, Wald, estimable, overlap, term_by_term
from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ROWS = 20_000
COX_ROWS = 5_000
FOLDS = 10
POINTS = 101  # of a curve
MIN_LEVEL_ROWS = 50  # rows of a level


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How long each row was followed, and whether the event came.

    Attributes:
        times: in the column's unit.
        events: 1 where the event came, 0 where the row was censored.
        view: the rows; none of them lacks a time or an event.
    """

    times: Floats
    events: Floats
    view: TableView

    def take(self, rows: Ints) -> FollowUp:
        """Return some rows."""
        return FollowUp(self.times[rows], self.events[rows], self.view.take(rows))


@dataclass(frozen=True)
class Clock:
    """The columns of role time and event; the event is the last declared of two categories."""

    time: Column
    event: Column
    place: int

    @classmethod
    def of(cls, tables: Tables) -> tuple[Clock | None, str]:
        """Read the roles; say why there is none."""
        modelled = tables.schema.modelled
        time = [c for c in modelled if "time" in c.roles and c.kind.is_number and not c.categories]
        event = [c for c in modelled if "event" in c.roles and len(c.categories or ()) == 2]
        if len(time) != 1 or len(event) != 1:
            return None, (
                "no survival curves: they need one numeric column of role time and one column of "
                "role event, a boolean or of two categories"
            )
        return cls(time[0], event[0], tables.codec.names.index(event[0].name)), ""

    def follow(self, view: TableView) -> FollowUp:
        """Return the rows that have a time and an event; times are counted from the lower bound."""
        codes = view.codes[:, self.place]
        times = numbers(view, self.time)
        rows = np.flatnonzero((codes < 2) & ~np.isnan(times))
        followed = view.take(rows)
        return FollowUp(np.maximum(times[rows], 0.0), (codes[rows] == 1).astype(float), followed)


def survival(
    tables: Tables, rng: np.random.Generator
) -> tuple[list[Measure], dict[str, Any] | None, list[str]]:
    """Compare Kaplan-Meier curves, of all rows and of each level of the groups, and a Cox model.

    Times are taken as lengths from 0. Greenwood's intervals of curves, and the Cox model's from its
    information (both lifelines), take rows as independent; the intervals of the two measures are by
    a delete-a-group jackknife over units (curves) and over terms (Cox).

    Returns:
        The measures ``survival`` and ``cox``, the details, None without the roles, and notes.
    """
    clock, why = Clock.of(tables)
    if clock is None:
        return [], None, [why]
    rows = min(tables.size, MAX_ROWS)
    source = clock.follow(tables.source.sample(MAX_ROWS, rng))
    synthetic = clock.follow(tables.synthetic.sample(rows, rng))
    chance = clock.follow(tables.source.bootstrap(rows, rng))
    holdout = None if tables.holdout is None else clock.follow(tables.holdout.sample(rows, rng))
    if min(source.view.rows, synthetic.view.rows) < MIN_LEVEL_ROWS or source.times.max() <= 0:
        return (
            [],
            None,
            [f"fewer than {MIN_LEVEL_ROWS} rows have a time and an event: no survival curves"],
        )
    horizon = float(source.times.max())
    dealt = [groups(side.view.units, FOLDS, rng) for side in (source, synthetic)]
    spared = [
        _apart(
            source.take(np.flatnonzero(dealt[0] != fold)),
            synthetic.take(np.flatnonzero(dealt[1] != fold)),
            horizon,
        )
        for fold in range(FOLDS)
    ]
    away = None
    if holdout is not None and holdout.view.rows:
        away = _apart(source, holdout, horizon)
    estimate = about(
        _apart(source, synthetic, horizon), jackknife_error(spared), synthetic.view.rows,
        reference=away, chance=_apart(source, chance, horizon), minimum=0.0, maximum=1.0,
    )  # fmt: skip
    measures = [
        Measure(
            "survival",
            "Difference of survival curves",
            estimate,
            0.0,
            "Mean absolute difference of the Kaplan-Meier curves of source and synthetic rows over "
            "the observed times (the area between them, divided by the range): 0.05 means that the "
            "shares still without the event differ by 5 points on average.",
        )
    ]
    notes = []
    if max(tables.source.rows, tables.synthetic.rows) > MAX_ROWS:
        notes.append(f"survival curves are of at most {MAX_ROWS} rows of each table")
    cox, terms, cox_notes = _cox(tables, clock, (source, synthetic, chance, holdout), rng)
    measures += [] if cox is None else [cox]
    curves = [_curve(None, None, source, synthetic, horizon), *_by_level(tables, source, synthetic)]
    details = {
        "time": clock.time.name, "event": clock.event.name, "curves": curves, "cox": terms
    }  # fmt: skip
    return measures, details, notes + cox_notes


def kaplan_meier(times: Floats, events: Floats, at: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the share without the event at some times, and its interval of 95 % (lifelines)."""
    from lifelines import KaplanMeierFitter

    fitted = KaplanMeierFitter(alpha=0.05).fit(times, events)
    steps = fitted.survival_function_.index.to_numpy()
    place = np.searchsorted(steps, at, side="right") - 1
    ends = fitted.confidence_interval_.to_numpy()[place]
    value = fitted.survival_function_.to_numpy()[place, 0]
    low, high = (np.where(np.isfinite(end), end, value) for end in (ends[:, 0], ends[:, 1]))
    return value, low, high


def curve_distance(a: tuple[Floats, Floats], b: tuple[Floats, Floats], horizon: float) -> float:
    """Return the area between two Kaplan-Meier curves from 0 to a time, divided by that time.

    Args:
        a: times and events of one table.
        b: of the other; a curve goes on as it ends.
        horizon: greater than 0.
    """
    ends = np.unique(np.concatenate([[0.0, horizon], a[0], b[0]]))
    ends = ends[ends <= horizon]
    first, second = (kaplan_meier(*side, ends[:-1])[0] for side in (a, b))
    return float((np.abs(first - second) * np.diff(ends)).sum() / horizon)


def _apart(a: FollowUp, b: FollowUp, horizon: float) -> float:
    return curve_distance((a.times, a.events), (b.times, b.events), horizon)


def _curve(
    group: str | None, level: str | None, source: FollowUp, synthetic: FollowUp, horizon: float
) -> dict[str, Any]:
    at = np.linspace(0, horizon, POINTS)
    value, low, high = kaplan_meier(source.times, source.events, at)
    curves = {
        "times": at,
        "source": value,
        "source_low": low,
        "source_high": high,
        "synthetic": kaplan_meier(synthetic.times, synthetic.events, at)[0],
    }
    return {"group": group, "level": level, **{k: v.round(6).tolist() for k, v in curves.items()}}


def _by_level(tables: Tables, source: FollowUp, synthetic: FollowUp) -> list[dict[str, Any]]:
    """Return the curves of each level of the groups that has rows enough in both tables."""
    curves = []
    for levels in levels_of(tables.codec, "group"):
        places = [levels.of_rows(side.view) for side in (source, synthetic)]
        for level, name in enumerate(levels.names):
            rows = [np.flatnonzero(place == level) for place in places]
            if min(map(len, rows)) < MIN_LEVEL_ROWS or source.times[rows[0]].max() <= 0:
                continue
            real, of_level = source.take(rows[0]), synthetic.take(rows[1])
            horizon = float(real.times.max())
            curves.append(_curve(levels.column.name, name, real, of_level, horizon))
    return curves


def _cox(
    tables: Tables, clock: Clock, sides: tuple[FollowUp, FollowUp, FollowUp, FollowUp | None],
    rng: np.random.Generator,
) -> tuple[Measure | None, list[dict[str, Any]], list[str]]:  # fmt: skip
    """Compare the hazard ratios of a Cox model on all columns but time, event and targets."""
    rows = min(COX_ROWS, *(side.view.rows for side in sides if side is not None and side.view.rows))
    small = [
        None if s is None or not s.view.rows
        else s.take(np.sort(rng.choice(s.view.rows, size=rows, replace=False)))
        for s in sides
    ]  # fmt: skip
    source, synthetic, chance, holdout = small
    assert source is not None and synthetic is not None and chance is not None
    skip = {c.name for c in tables.schema.modelled if c.roles & {"time", "event", "target"}}
    if len(skip) == len(tables.schema.modelled):
        return None, [], ["no column is left for a Cox model"]
    design = DesignMatrix.of(source.view, tables.codec, skip)
    too_few = not MIN_ROWS <= source.events.sum() <= rows - MIN_ROWS
    included = estimable(design.matrix(source.view), source.events)
    real = _hazards(design, included, source)
    if too_few or not included.any() or np.isnan(real.values).any():
        return None, [], ["the source has too few events, or no term, for a Cox model"]
    hazards = _hazards(design, included, synthetic)
    shares = overlap(real, hazards)
    estimate = about(
        float(shares.mean()),
        float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else 0.0, rows,
        reference=None if holdout is None else _mean(real, _hazards(design, included, holdout)),
        chance=_mean(real, _hazards(design, included, chance)), minimum=0.0, maximum=1.0,
    )  # fmt: skip
    measure = Measure(
        "cox",
        "Overlap of the intervals of hazard ratios",
        estimate,
        1.0,
        "Mean share by which the 95 % intervals of a Cox regression's hazard ratios overlap "
        "between synthetic rows and as many of the source; near 0, conclusions would differ.",
    )
    names = [name for name, keep in zip(design.terms, included, strict=True) if keep]
    notes = [f"the Cox model is of {rows} rows of each table"]
    lost = int(np.isnan(hazards.values).sum())
    if lost:
        notes.append(f"Cox model: {lost} terms have too few synthetic rows and count as apart")
    return measure, term_by_term(names, real, hazards), notes


def _mean(a: Wald, b: Wald) -> float:
    return float(overlap(a, b).mean())


def _hazards(design: DesignMatrix, included: npt.NDArray[np.bool_], side: FollowUp) -> Wald:
    """Fit one table; terms that it has too few rows for, or all if the fit fails, are NaN."""
    from lifelines import CoxPHFitter
    from lifelines.exceptions import ConvergenceError

    terms = int(included.sum())
    wald = Wald(np.full(terms, np.nan), np.full(terms, np.nan), np.full((0, terms), np.nan))
    matrix = design.matrix(side.view)[:, included]
    estimated = np.flatnonzero(estimable(matrix, side.events))
    if not len(estimated):
        return wald
    frame = pd.DataFrame(matrix[:, estimated], columns=[str(k) for k in estimated])
    frame["time"], frame["event"] = side.times, side.events
    try:
        fitted = CoxPHFitter().fit(frame, duration_col="time", event_col="event")
    except ConvergenceError:
        return wald
    wald.values[estimated] = fitted.params_.to_numpy()
    wald.errors[estimated] = fitted.standard_errors_.to_numpy()
    return wald
