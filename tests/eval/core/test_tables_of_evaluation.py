"""The tables of an evaluation: read like a fit reads them, disjoint by unit, drawn by unit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError, TableError
from dpsynth.eval.core import DesignMatrix, Tables, groups, numbers, ordinal
from dpsynth.schema import Schema

ROWS = pd.DataFrame(
    {
        "key": ["a", "a", "b", " B ", ""],
        "age": ["30", "200", "41", "x", "50"],
        "weight": ["70.04", "", "81", "90.1", "60"],
        "grade": ["1", "2", "9", "3", "1"],
        "sex": ["F", "F", "M, or other", "?", "F"],
        "smoker": ["true", "false", "", "1", "0"],
    }
)


def frame(schema: Schema, rows: pd.DataFrame) -> pd.DataFrame:
    """Fill the columns that the schema has beyond these with nothing."""
    return rows.reindex(columns=[column.name for column in schema.columns], fill_value="")


def read(schema: Schema, source: pd.DataFrame, holdout: pd.DataFrame | None = None) -> Tables:
    held = None if holdout is None else frame(schema, holdout)
    return Tables.read(schema, frame(schema, source), frame(schema, ROWS), held)


def test_cells_are_bounded_as_a_fit_bounds_them(every_type: Schema) -> None:
    view = read(every_type, ROWS).source
    assert view.rows == 4  # the row without a key is left out
    age = every_type.column("age")
    assert view.frame["age"].tolist()[:3] == [30, age.maximum, 41]
    assert view.frame["weight"].tolist()[0] == 70.0  # on the lattice of 0.1
    assert np.isnan(view.frame["weight"].tolist()[1])


def test_keys_are_compared_as_declared(every_type: Schema) -> None:
    loose = replace(every_type, unit=replace(every_type.unit, case=True, trim=True))
    units = read(loose, ROWS).source.units
    assert units[0] == units[1] != units[2] == units[3]


def test_rows_without_a_key_are_units_of_their_own_where_declared(every_type: Schema) -> None:
    own = replace(every_type, unit=replace(every_type.unit, missing_key="own"))
    holdout = ROWS.assign(key=["c", "", "d", "", "e"])
    tables = read(own, ROWS, holdout)
    assert tables.source.rows == 5 and tables.holdout is not None
    assert len(np.unique(tables.holdout.units)) == 5
    assert not set(tables.source.units) & set(tables.holdout.units)


def test_a_person_in_source_and_holdout_is_refused_and_not_named(every_type: Schema) -> None:
    with pytest.raises(InputError, match="share units") as refused:
        read(every_type, ROWS, ROWS.assign(key=["c", "c", "a", "d", "e"]))
    assert "'a'" not in str(refused.value)


def test_a_table_without_any_key_is_refused(every_type: Schema) -> None:
    with pytest.raises(TableError, match="no row has a key"):
        read(every_type, ROWS.assign(key=""))


def test_any_tools_table_is_read_with_its_modelled_columns_alone(
    every_type: Schema, tmp_path: Path
) -> None:
    synthetic = frame(every_type, ROWS).drop(columns="key").assign(more="x")
    synthetic.to_csv(tmp_path / "s.csv", index=False)
    tables = Tables.read(every_type, frame(every_type, ROWS), tmp_path / "s.csv")
    assert tables.synthetic.rows == 5 and list(tables.synthetic.units) == [0, 1, 2, 3, 4]
    assert tables.size == 5


def test_a_bootstrap_takes_whole_units(every_type: Schema) -> None:
    many = pd.concat([ROWS[:3].assign(key=[f"{i}a", f"{i}a", f"{i}b"]) for i in range(50)])
    view = read(every_type, many).source
    drawn = view.bootstrap(150, np.random.default_rng(0))
    assert drawn.rows == 150
    pairs = np.unique(view.units, return_counts=True)
    twos = {unit for unit, count in zip(*pairs, strict=True) if count == 2}
    times = dict(zip(*np.unique(drawn.units, return_counts=True), strict=True))
    odd = [unit for unit in twos if times.get(unit, 0) % 2]
    assert len(odd) <= 1  # the last one drawn may be cut
    assert max(times.values()) > 2  # with replacement


def test_groups_keep_a_units_rows_together() -> None:
    units = np.repeat(np.arange(100), 3)
    dealt = groups(units, 10, np.random.default_rng(0))
    assert all(len(set(dealt[units == unit])) == 1 for unit in range(100))
    assert set(np.bincount(dealt)) == {30}


def test_matrices_hold_numbers_as_they_are_and_categories_by_code(every_type: Schema) -> None:
    tables = read(every_type, ROWS)
    matrix, categorical = ordinal(tables.source, tables.codec, skip=("sex",))
    names = [column.name for column in every_type.modelled if column.name != "sex"]
    assert matrix.shape == (4, len(names)) and len(categorical) == len(names)
    assert matrix[:, names.index("age")].tolist()[0] == 30
    assert categorical[names.index("grade")] and not categorical[names.index("age")]
    assert np.isnan(matrix[2, names.index("smoker")])


def test_a_design_has_a_term_for_all_but_the_commonest_category(every_type: Schema) -> None:
    tables = read(every_type, ROWS)
    design = DesignMatrix.of(tables.source, tables.codec)
    matrix = design.matrix(tables.source)
    assert matrix.shape == (4, len(design.terms)) and np.isfinite(matrix).all()
    assert "sex = F" not in design.terms  # the commonest
    assert "weight missing" in design.terms
    ages = matrix[:, design.terms.index("age")]
    assert ages.mean() == pytest.approx(0) and ages.std() == pytest.approx(1)
    weights = numbers(tables.source, every_type.column("weight"))
    assert matrix[:, design.terms.index("weight missing")].tolist() == np.isnan(weights).tolist()
