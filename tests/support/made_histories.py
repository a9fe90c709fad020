"""Made-up histories of patients, with known relations, for tests of their generator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth.encoding import NEVER, Histories, SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories import FollowUp, HistoryDomain, HistoryTable, Series

DAYS = 4_000
WEEKS = 1 + DAYS // 7
LABS = ("hdl", "smoke")


def feature(name: str, cells: int, loose: int = 0) -> Feature:
    return Feature(name, cells + loose, cells, (1,) * cells)


def domain_of(
    population: int = 2_000, *, longest: int = 3_000, most: tuple[int, int] = (60, 30)
) -> HistoryDomain:
    """Baseline, one event, a long table of two tests, and a wide table of ordered visits.

    ``most`` are the rows that a patient has at the most: of a test, and visits.
    """
    baseline = (feature("age", 80), feature("male", 0, 2), feature("weeks", WEEKS))
    long = tuple(
        Series(name, (feature("value", cells),), most[0])
        for name, cells in zip(LABS, (150, 2), strict=True)
    )
    words = Series("smoke", (feature("value", 0, 2),), most[0])
    labs = HistoryTable("labs", (long[0], words), True, longest, (True,))
    columns = (feature("stay", 15), feature("ward", 0, 4), feature("drug", 0, 2))
    visits = HistoryTable("visits", (Series("visits", columns, most[1]),), False, 1, (False,) * 3)
    end = FollowUp(2, 7 * np.arange(WEEKS))
    return HistoryDomain(baseline, ("stroke",), (labs, visits), -1_000, DAYS, population, end)


def histories_of(patients: int, seed: int = 0) -> Histories:
    """Draw patients whose values stay close to a level of their own that follows their age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 80, patients)
    male = rng.integers(0, 2, patients)
    weeks = rng.integers(20, WEEKS, patients)
    ends = 7 * weeks
    stroke = np.where(rng.random(patients) < 0.2, rng.integers(-900, ends), NEVER)
    level = 40 + age // 2 + rng.integers(-15, 16, patients)
    labs = tuple(
        _lab(rng, rates, values, ends)
        for rates, values in ((3.0, level), (1.0, (age > 40).astype(int)))
    )
    counts = rng.poisson(1.5, patients).clip(0, 30)
    who = np.repeat(np.arange(patients), counts)
    ward = rng.integers(0, 4, patients)[who]
    moved = rng.random(len(who)) < 0.1
    ward = np.where(moved, rng.integers(0, 4, len(who)), ward)
    stay = np.clip(rng.poisson(2 + 2 * ward), 0, 14)
    drug = (ward + (rng.random(len(who)) < 0.1)) % 2
    visits = SeriesRows(who, np.zeros(len(who), np.int64), _codes(stay, ward, drug))
    baseline = _codes(age, male, weeks)
    return Histories(baseline, ends, stroke[:, None], (labs, (visits,)))


def _lab(rng: np.random.Generator, rate: float, level: np.ndarray, ends: np.ndarray) -> SeriesRows:
    counts = rng.poisson(rate, len(ends)).clip(0, 60)
    who = np.repeat(np.arange(len(ends)), counts)
    days = np.floor(rng.uniform(-800, ends[who])).astype(np.int64)
    order = np.lexsort((days, who))
    noise = rng.integers(-5, 6, len(who)) if level.max() > 1 else 0
    return SeriesRows(who[order], days[order], _codes(np.clip(level[who] + noise, 0, 149)))


def _codes(*columns: np.ndarray) -> np.ndarray:
    return np.column_stack(columns).astype(np.uint16)


def with_patient(histories: Histories, other: Histories) -> Histories:
    """Put one more patient behind the others, with all her rows."""
    place = len(histories)
    rows = tuple(
        tuple(
            SeriesRows(
                np.concatenate([one.patients, more.patients + place]),
                np.concatenate([one.days, more.days]),
                np.concatenate([one.values, more.values]),
            )
            for one, more in zip(table, others, strict=True)
        )
        for table, others in zip(histories.rows, other.rows, strict=True)
    )
    return replace(
        histories,
        baseline=np.concatenate([histories.baseline, other.baseline]),
        ends=np.concatenate([histories.ends, other.ends]),
        onsets=np.concatenate([histories.onsets, other.onsets]),
        rows=rows,
    )


def hostile(rows: int, equal: bool, seed: int) -> Histories:
    """One patient with as many rows as allowed, all alike or all different."""
    rng = np.random.default_rng(seed)
    days = np.zeros(rows, np.int64) if equal else np.sort(rng.integers(-1_000, DAYS, rows))

    def values(*sizes: int) -> np.ndarray:
        top = np.array(sizes)
        drawn = np.tile(top - 1, (rows, 1)) if equal else rng.integers(0, top, (rows, len(top)))
        return drawn.astype(np.uint16)

    who = np.zeros(rows, np.int64)
    labs = (SeriesRows(who, days, values(150)), SeriesRows(who, days, values(2)))
    visits = SeriesRows(who[:30], np.zeros(min(rows, 30), np.int64), values(15, 4, 2)[:30])
    baseline = np.array([[79, 1, WEEKS - 1]], dtype=np.uint16)
    onsets = np.array([[NEVER if equal else 5]])
    return Histories(baseline, np.array([DAYS]), onsets, (labs, (visits,)))
