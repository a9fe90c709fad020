"""The map of rows: shares of squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PartResult
from dpsynth.eval.fidelity.records import SQUARES, embedding

from ...support.evaluation_tables import number, tables, words

FIELDS = [number("x", 0, 99), number("y", 0, 99), words("sex", "F", "M")]


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100, rows)
    y = (x + rng.integers(0, 20, rows)) % 100
    return pd.DataFrame({"x": x, "y": y, "sex": rng.choice(["F", "M"], rows)})


def drawn(*frames: pd.DataFrame) -> PartResult:
    return embedding(tables(FIELDS, *frames), np.random.default_rng(0))


def test_shares_of_squares_sum_to_one_and_the_same_table_has_the_same_map() -> None:
    table = people(500, 1)
    found = drawn(table, table).details["embedding"]
    assert found["source"] == found["synthetic"]
    shares = np.array(found["source"])
    assert shares.shape == (SQUARES, SQUARES)
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert len(found["x"]) == len(found["y"]) == SQUARES + 1
    assert 1 >= found["explained"][0] >= found["explained"][1] > 0


def test_the_axes_are_the_principal_components_of_the_source() -> None:
    """Shares of variance, by an eigenvalue decomposition of the same matrix."""
    from dpsynth.eval.core import DesignMatrix

    compared = tables(FIELDS, people(500, 1), people(20, 2))
    matrix = DesignMatrix.of(compared.source, compared.codec).matrix(compared.source)
    values = np.sort(np.linalg.eigvalsh(np.cov(matrix.T)))[::-1]
    found = embedding(compared, np.random.default_rng(0)).details["embedding"]
    np.testing.assert_allclose(found["explained"], values[:2] / values.sum(), rtol=1e-3)


def test_rows_beyond_the_map_are_in_its_outermost_squares() -> None:
    real = people(500, 1).assign(x=50)
    far = pd.DataFrame({"x": [99] * 5, "y": [0] * 5, "sex": ["F"] * 5})
    found = np.array(drawn(real, far).details["embedding"]["synthetic"])
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("rows", [1, 400])
def test_a_table_without_two_directions_has_no_map(rows: int) -> None:
    constant = pd.DataFrame({"x": [1] * rows, "y": [2] * rows, "sex": ["F"] * rows})
    part = drawn(constant, people(50, 1))
    assert part.details == {"embedding": None} and part.notes
