"""Two registers, their candidate pairs, and a request to count them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd

COUNT = {"value": 2000, "basis": "declared"}
PERSON = {"name": "patient"}
REQUEST: dict[str, Any] = {
    "linkage": "births and cancers",
    "registers": [
        {"name": "births", "key": "birth_id", "population": COUNT, "person": PERSON},
        {"name": "cancers", "key": "case_id", "population": COUNT, "person": PERSON},
    ],
    "score": {"column": "score", "thresholds": [0.5, 0.7, 0.9]},
    "match": {"column": "match", "matches": ["1"], "others": ["0"], "unreviewed": True},
    "cap": {"matches": 1, "others": 2, "basis": "declared"},
    "same_people": True,
    "own_records": {"value": True, "basis": "weights of the protocol, blocks of birth years"},
}
PEOPLE = {"people": ["births", "cancers"]}
"""The group of a policy in which both registers draw on one budget."""
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "dataset_a": "births", "dataset_b": "cancers"}


def request(**changes: Any) -> dict[str, Any]:
    """Return the request with some keys changed."""
    return deepcopy(REQUEST) | changes


def pairs(count: int = 400, seed: int = 1) -> pd.DataFrame:
    """Return a pair for each record that matches, and one that mostly does not; text alone."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([np.arange(count), np.arange(count)])
    second = np.concatenate([np.arange(count), rng.integers(0, count, count)])
    score = np.concatenate([rng.uniform(0.7, 1, count), rng.uniform(0.3, 0.8, count)])
    match = np.where(first == second, "1", "0")
    match[rng.random(2 * count) < 0.1] = ""
    return pd.DataFrame(
        {
            "birth_id": [f"b{n}" for n in first],
            "case_id": [f"c{n}" for n in second],
            "score": [f"{one:.3f}" for one in score],
            "match": match,
        }
    )
