"""Patients with many nearly equal stays: an attack counts the patient, and not each of the stays.

Source and holdout are dealt anew by a coin of each patient, many times over, and the "synthetic"
rows are stays of further patients, who are on neither side. Nothing may be found in them beyond the
stated rate. A broken twin, which takes rows as independent, accuses them time and again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from dpsynth.eval.attack_stats import MatchedGroup, MatchedGroups, Success
from dpsynth.eval.attacks.memorization import ClosestRecord
from dpsynth.eval.distances import Neighbours

Floats = npt.NDArray[np.float64]

DRAWS, PATIENTS, MOST = 200, 60, 12  # patients of each side, and of those on neither
NONE: Any = None  # no table is needed: distances are computed here, once for all draws


def stays(patients: int, rng: np.random.Generator) -> pd.DataFrame:
    """Patients with 1 to `MOST` stays, of which most are equal but for a unit or two."""
    counts = rng.integers(1, MOST + 1, patients)
    of = np.repeat(np.arange(patients), counts)
    moved = rng.integers(-1, 2, (2, len(of)))
    pressure, weight = rng.integers(50, 950, (2, patients))[:, of] + moved
    ward = rng.choice(["icu", "surgery", "medicine"], patients)[of]
    keys = pd.Series(of.astype(str))
    return pd.DataFrame({"patient": keys, "pressure": pressure, "weight": weight, "ward": ward})


def squared(first: pd.DataFrame, second: pd.DataFrame) -> Floats:
    """Squared distances of all pairs of rows."""
    total = (first["ward"].to_numpy()[:, None] != second["ward"].to_numpy()).astype(float)
    for name in ("pressure", "weight"):
        total += ((first[name].to_numpy()[:, None] - second[name].to_numpy()) / 1000) ** 2
    return total


def draws(copied: int = 0) -> Iterator[tuple[ClosestRecord, Success, int]]:
    """Deal the patients out by coins, again and again.

    Yields the weights of the closest records, people with a near copy in the synthetic table, and
    the rows of that table, of which so many are copies of the source.
    """
    rows = stays(3 * PATIENTS, np.random.default_rng(1))
    patient = rows["patient"].to_numpy(int)
    others = patient >= 2 * PATIENTS
    played, patient = rows[~others], patient[~others]
    apart, own = squared(rows[others], played), squared(played, played)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        place = rng.permutation(2 * PATIENTS)  # the first half are in the source
        inside = place[patient] < PATIENTS
        picked = rng.choice(np.flatnonzero(inside), copied)
        synthetic = np.concatenate([apart, own[picked]])
        groups, neighbours = [], []
        for side in (inside, ~inside):
            groups.append(MatchedGroup(NONE, NONE, place[patient[side]] % PATIENTS, PATIENTS))
            row = synthetic[:, side].argmin(axis=1)
            near = synthetic[:, side].min(axis=1)
            neighbours.append(Neighbours(near[:, None], row[:, None]))
        sides = MatchedGroups(NONE, NONE, NONE, groups[0], groups[1])
        hits = [synthetic[:, side].min(axis=0) <= 1e-3 for side in (inside, ~inside)]
        closest = ClosestRecord.of(sides, neighbours[0], neighbours[1])
        yield closest, sides.success(hits[0], hits[1]), len(synthetic)


@pytest.mark.long
def test_other_peoples_rows_are_accused_at_most_at_the_stated_rate() -> None:
    scores, found, often, twins = [], 0, 0, 0
    for closest, people, rows in draws():
        scores.append((closest.share - 0.5) / closest.error)
        found += closest.found or people.chance < 1e-3
        often += people.chance < 0.05
        twins += (closest.share - 0.5) * 2 * math.sqrt(rows) > 3.42  # each row by its own coin
    assert found == 0 and often <= 0.09 * DRAWS
    assert 0.8 < np.std(scores) < 1.15 and abs(np.mean(scores)) < 0.25
    assert twins > 0.03 * DRAWS


@pytest.mark.long
def test_a_memoriser_is_accused_all_the_same() -> None:
    found = [(closest.found, people.chance < 1e-3) for closest, people, _ in draws(copied=300)]
    nearer, near = np.mean(found, axis=0)
    assert nearer > 0.5 and near > 0.95
