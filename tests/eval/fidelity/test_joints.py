"""Pairs and triples of columns: distances and mutual information."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Measure, PairedTables, Tables
from dpsynth.eval.fidelity.relations import MAX_TRIPLES, _sets, joints

from ...support.evaluation_tables import tables, words


def measured(compared: Tables) -> tuple[dict[str, Measure], dict[str, Any], tuple[str, ...]]:
    part = joints(PairedTables.of(compared, np.random.default_rng(0)))
    return {m.key: m for m in part.measures}, part.details, part.notes


AB = [words("x", "0", "1", required=True), words("y", "0", "1", required=True)]
AB[0]["dpsynth"]["on_unknown"] = AB[1]["dpsynth"]["on_unknown"] = "0"


def test_a_broken_relation_by_hand() -> None:
    """x = y always, against x and y independent: half of the mass moves; information 1 and 0."""
    same = pd.DataFrame({"x": ["0", "1"] * 20, "y": ["0", "1"] * 20})
    apart = pd.DataFrame({"x": ["0", "0", "1", "1"] * 10, "y": ["0", "1"] * 20})
    found, details, _ = measured(tables(AB, same, apart))
    assert found["tvd2"].estimate.value == pytest.approx(0.5)
    assert found["information"].estimate.value == pytest.approx(1)
    assert details["pairs"]["names"] == ["x", "y"]
    assert details["pairs"]["tvd"] == [[None, 0.5], [0.5, None]]
    assert details["pairs"]["information"]["source"] == [[None, 1.0], [1.0, None]]
    assert details["pairs"]["information"]["synthetic"][0][1] == pytest.approx(0, abs=1e-9)


def test_information_by_hand() -> None:
    """Shares 3/8 1/8 1/8 3/8: I = ln 2 (1 - H2(1/4)) and both entropies are ln 2."""
    part = pd.DataFrame({"x": list("00001111") * 5, "y": list("00010111") * 5})
    _, details, _ = measured(tables(AB, part, part))
    binary = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert details["pairs"]["information"]["source"][0][1] == pytest.approx(1 - binary, rel=1e-5)


def test_a_table_against_itself() -> None:
    frame = pd.DataFrame({"x": list("0011") * 30, "y": list("0111") * 30})
    found, _, notes = measured(tables(AB, frame, frame))
    assert found["tvd2"].estimate.value == found["information"].estimate.value == 0
    assert "tvd3" not in found and not notes  # two columns make no triple


def test_only_triples_see_an_effect_of_two_columns_together() -> None:
    """z is the parity of x and y: every pair of columns is independent."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 2, (2, 4000))
    third = {**words("z", "0", "1")}
    real = pd.DataFrame({"x": x, "y": y, "z": x ^ y}).astype(str)
    drawn = real.assign(z=real["z"].sample(frac=1, random_state=1).to_numpy())
    found, _, _ = measured(tables([*AB, third], real, drawn))
    assert found["tvd2"].estimate.value < 0.02
    assert found["tvd3"].estimate.value == pytest.approx(0.5, abs=0.03)
    assert found["information"].estimate.value < 0.01


def test_a_constant_column_tells_nothing() -> None:
    frame = pd.DataFrame({"x": ["0"] * 40, "y": ["0", "1"] * 20})
    found, details, _ = measured(tables(AB, frame, frame))
    assert found["information"].estimate.value == 0
    assert details["pairs"]["information"]["source"][0][1] == 0


def test_one_column_has_no_pairs() -> None:
    frame = pd.DataFrame({"x": ["0", "1"]})
    found, details, notes = measured(tables(AB[:1], frame, frame))
    assert not found and not details and len(notes) == 1


def test_triples_are_all_or_a_fixed_choice() -> None:
    few, every = _sets(5, 3, MAX_TRIPLES)
    assert every and len(few) == 10
    many, every = _sets(30, 3, MAX_TRIPLES)
    assert not every and len(set(many)) == MAX_TRIPLES
    assert many == _sets(30, 3, MAX_TRIPLES)[0]
    assert all(a < b < c for a, b, c in many)
