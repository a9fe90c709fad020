"""Combinations that no real row has: named if chance would have given many, and not if it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.eval.core import PairedTables
from dpsynth.eval.fidelity.relations import pair_facts
from dpsynth.eval.report.board import remedies

from ...support.evaluation_example import NASTY
from ...support.evaluation_tables import number, tables, words

FIELDS = [number("age", 0, 100), words("pregnant", "yes", "no"), words("ward", "a", "b")]


def people(seed: int, *, ruled: bool = True, rows: int = 2_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    pregnant = rng.random(rows) < 0.3
    if ruled:
        pregnant &= (age > 18) & (age < 48)
    columns = {"age": age, "pregnant": np.where(pregnant, "yes", "no")}
    return pd.DataFrame({**columns, "ward": rng.choice(["a", "b"], rows)})


def found(*frames: pd.DataFrame) -> list[dict[str, Any]]:
    sides = PairedTables.of(tables(FIELDS, *frames), np.random.default_rng(0))
    return list(pair_facts(sides).details["unseen"])


def test_pregnant_at_seventy_is_named() -> None:
    [entry] = found(people(0), people(1, ruled=False), people(2))
    assert entry["columns"] == ["age", "pregnant"] and entry["bins"][1] == "yes"
    assert entry["share"] > 0.1 and entry["holdout"] < 0.01
    low, high = map(int, entry["bins"][0].split(" to "))
    assert high < 20 or low > 46
    [text] = remedies({"parts": {"fidelity": {"unseen": [entry]}}}, [], [])
    assert text.startswith("A rule") and "age with pregnant" in text and "pregnant yes" in text


def test_another_sample_and_rare_cells_are_not_named() -> None:
    assert not found(people(0), people(1), people(2))
    assert not found(people(0, rows=120), people(1, rows=120))


def test_a_hostile_name_is_told_as_text() -> None:
    entry = {"columns": [NASTY, "b"], "bins": ["x\n", "y"], "share": 0.1}
    [text] = remedies({"parts": {"fidelity": {"unseen": [entry]}}}, [], [])
    assert text.isprintable()
