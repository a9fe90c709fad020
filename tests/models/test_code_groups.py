"""Listed codes are counted by group and one by one: who enters what, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.encoding import Codec, Cohort
from dpsynth.models import Domain, Feature, shares_of
from dpsynth.models.base import REPEATS
from dpsynth.models.marginals import AdaptiveCells, leaves_of, levelled, merge, sizes_of
from dpsynth.models.marginals.adaptive_cells import grouped
from dpsynth.privacy import PrivacyBudget
from dpsynth.schema import Schema

PARENTS = (0,) * 40 + (1,) * 60 + (2, 3)  # two groups of codes; other and missing are apart
CODES = Feature("dx", 102, 0, parents=PARENTS)
DOMAIN = Domain((Feature("sex", 3, 0), CODES), population=5000, max_rows=1)


def cohort(codes: np.ndarray) -> Cohort:
    both = np.column_stack([np.zeros(len(codes), dtype=np.int64), codes]).astype(np.uint16)
    return Cohort(both[:, None], np.ones((len(both), 1), dtype=bool))


def test_a_row_enters_one_cell_of_each_count_and_each_is_paid_for() -> None:
    for code in (0, 39, 40, 99, 100, 101):
        found = levelled(cohort(np.array([code])), DOMAIN).codes[0, 0].tolist()
        assert found == [0, PARENTS[code], *[code] * REPEATS]
    assert sizes_of(DOMAIN) == (3, 4, *[102] * REPEATS)
    for model in ("mixture", "independent"):
        event = shares_of(model, DOMAIN, PrivacyBudget(1.0, 1e-6))[0].event
        assert event.histograms == len(sizes_of(DOMAIN))


def test_the_groups_of_a_schema() -> None:
    field = {
        "name": "dx",
        "type": "string",
        "dpsynth": {
            "codes": {"system": "ICD-9-CM", "model": "chapter", "list": {"codes": ["428", "250"]}},
            "on_unknown": "other",
        },
    }
    facts = {"value": 900, "basis": "report"}
    schema = Schema.from_dict(
        {"fields": [field], "dpsynth": {"version": 1, "population": facts, "rows": facts}}
    )
    [feature] = Domain.of(schema, Codec(schema)).features
    assert (feature.size, feature.parents) == (4, (0, 1, 2, 3))


def test_groups_and_codes_add_up_weighed_by_precision() -> None:
    """By least squares: one group, two codes of mean counts with a variance of 1 / REPEATS."""
    group, codes = 100.0, np.array([70.0, 20.0])
    found = grouped([np.array([group]), *[codes] * REPEATS], (0, 0))
    precision = np.array([[1 + REPEATS, 1], [1, 1 + REPEATS]])
    expected = np.linalg.solve(precision, group + REPEATS * codes)
    assert found == pytest.approx(expected)


def test_codes_that_noise_hides_keep_the_rows_of_their_group() -> None:
    """200 codes of 2 rows each, with noise of 30 rows: the group has its 400 rows, more or less."""
    rng = np.random.default_rng(1)
    parents = np.repeat([0, 1], 200)
    exact = np.repeat([2.0, 20.0], 200)
    errors, alone = [], []
    for _ in range(20):
        levels = [np.bincount(parents, weights=exact) + rng.normal(0, 30, 2)]
        levels += [exact + rng.normal(0, 30, 400)]
        errors.append(np.bincount(parents, weights=grouped(levels, parents.tolist()))[0] - 400)
        alone.append(levels[1][:200].sum() - 400)
    assert np.std(errors) < 40 < 200 < np.std(alone)


def test_rare_codes_share_the_bin_of_their_group() -> None:
    shares = np.zeros(102)
    shares[[0, 40]] = 0.4, 0.3  # a common code in each group
    shares[1:40] = 0.2 / 39
    shares[41:100] = 0.001 / 59  # the rest of the second group is rare, too
    shares[100:] = 0.001, 0.098
    levels = [np.bincount(PARENTS, weights=shares), *[shares] * REPEATS]
    [leaves] = leaves_of(
        replace(DOMAIN, features=(CODES,)),
        [np.rint(level * 1e6).astype(np.int64) for level in levels],
        total=1e6,
        sigma=1.0,
    )
    bins = merge(leaves, total=1e6, sigma=1.0, maximum=16, pool=0.006)
    assert isinstance(leaves, AdaptiveCells)
    assert len(set(bins.bin_of[1:40])) == 1, "rare codes of a group that is common"
    assert bins.bin_of[1] not in bins.bin_of[[0, 40, 41, 100, 101]]
    assert set(bins.bin_of[41:101]) == {bins.bin_of[100]}, "what is rare altogether"
    assert bins.count == 5
    assert bins.shares == pytest.approx(shares, abs=2e-6)
