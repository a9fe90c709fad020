"""Codes become cells again, and properties that every cell and code must have."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.encoding import Codec
from dpsynth.errors import InputError, TableError
from dpsynth.schema import Schema

from ..support.coded_columns import (
    ALL,
    SEX,
    STAY,
    TEMPERATURE,
    field,
    schema_of,
)


def test_decoded_types() -> None:
    nullable = Codec(schema_of(*ALL))
    last = np.array([[size - 1 for size in nullable.sizes], [0] * len(nullable.sizes)])
    frame = nullable.decode(last, np.random.default_rng(0))
    kinds = [str(kind) for kind in frame.dtypes]
    assert kinds == [
        *("Int64", "float64", "object", "Int64", "boolean", "float64"),
        *("datetime64[s]", "datetime64[s]", "Int64", "object"),
    ]
    assert frame.iloc[0].isna().tolist() == [True] * 2 + [False] + [True] * 6 + [False]
    assert frame.iloc[1].tolist() == [
        *(1, 35.0, "F", 2, False, 0.5),
        *(pd.Timestamp("2000-01-01"), pd.Timestamp("2000-01-01"), 1999, "low"),
    ]
    assert frame["c2"].iloc[0] == "other"

    required = [dict(c, constraints=c["constraints"] | {"required": True}) for c in ALL]
    codec = Codec(schema_of(*required))
    kinds = [str(kind) for kind in codec.decode(last * 0, np.random.default_rng(0)).dtypes]
    assert kinds == [
        *("int64", "float64", "object", "int64", "bool", "float64"),
        *("datetime64[s]", "datetime64[s]", "int64", "object"),
    ]


def test_decoded_numbers_print_as_declared() -> None:
    codec = Codec(schema_of(TEMPERATURE))
    frame = codec.decode(np.arange(71).reshape(-1, 1), np.random.default_rng(0))
    assert [repr(x) for x in frame["c0"].tolist()] == [
        f"{i // 10}.{i % 10}" for i in range(350, 421)
    ]


def test_wide_columns_are_decoded_within_their_code() -> None:
    """127 001 points: each code is a round value or the others of its span, and comes back."""
    codec = Codec(schema_of(field("number", minimum=0.0, maximum=1.27, step=0.00001)))
    cells = codec.cells[0]
    assert 3000 < cells <= 4096 and codec.sizes == (cells + 1,)
    codes = np.repeat(np.arange(cells + 1), 20).reshape(-1, 1)
    frame = codec.decode(codes, np.random.default_rng(5))
    values = frame["c0"].to_numpy()
    assert np.isnan(values[codes[:, 0] == cells]).all()
    assert (codec.encode(frame) == codes).all()
    assert np.abs(values * 1e5 - np.rint(values * 1e5))[~np.isnan(values)].max() < 1e-6
    own = codec.encode(pd.DataFrame({"c0": [1.2]}))[0, 0]  # a round value has a code of its own
    assert codec.points[0][own] == 1 and (values[codes[:, 0] == own] == 1.2).all()
    assert len(np.unique(values[codes[:, 0] == own + 1])) > 10  # the others of its span


def test_decode_is_a_function_of_codes_and_seed() -> None:
    codec = Codec(schema_of(field("number", minimum=0.0, maximum=1e5), SEX))
    codes = np.column_stack([np.arange(1, 3001, 20), np.arange(150) % 3])
    one = codec.decode(codes, np.random.default_rng(1))
    assert one.equals(codec.decode(codes, np.random.default_rng(1)))
    assert not one.equals(codec.decode(codes, np.random.default_rng(2)))


def test_decode_refuses_what_are_no_codes() -> None:
    codec = Codec(schema_of(STAY, SEX))
    rng = np.random.default_rng(0)
    for codes in (np.array([[15, 0]]), np.array([[-1, 0]]), np.array([[0]]), np.array([0, 0])):
        with pytest.raises(ValueError, match="code"):
            codec.decode(codes, rng)
    assert len(codec.decode(np.empty((0, 2), dtype=np.uint16), rng)) == 0


def test_encode_needs_the_columns_once() -> None:
    codec = Codec(schema_of(STAY, SEX))
    with pytest.raises(TableError, match="c0, c1"):
        codec.encode(pd.DataFrame({"x": [1]}))
    with pytest.raises(TableError, match="two columns called c1"):
        codec.encode(pd.DataFrame([[1, 2, 3]], columns=["c0", "c1", "c1"]))
    doubled = pd.DataFrame([["1", "F", 3, 4]], columns=["c0", "c1", "x", "x"])
    assert codec.encode(doubled).tolist() == [[0, 0]], "other columns are not looked at"
    assert codec.encode(pd.DataFrame({"c0": [], "c1": []})).shape == (0, 2)


def test_lattice_by_name() -> None:
    codec = Codec(schema_of(TEMPERATURE, SEX))
    lattice = codec.lattice("c0")
    assert lattice is not None
    assert lattice.points == 71
    assert codec.lattice("c1") is None
    with pytest.raises(InputError, match="no column 'c9'"):
        codec.lattice("c9")


# Properties


CODEC = Codec(schema_of(*ALL, field("number", minimum=-5.0, maximum=5e5, required=True)))
NARROW = Codec(schema_of(*ALL))


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_encode_inverts_decode(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, CODEC.sizes, size=(rows, len(CODEC.sizes)))
    frame = CODEC.decode(codes, rng)
    assert (CODEC.encode(frame) == codes).all()
    assert CODEC.conforms(frame) == []


@pytest.mark.long
@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_decode_inverts_encode_on_narrow_lattices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, NARROW.sizes, size=(7, len(NARROW.sizes)))
    values = NARROW.decode(codes, rng)
    pd.testing.assert_frame_equal(NARROW.decode(NARROW.encode(values), rng), values)


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["3", "3.0", "36.6", "F", "true", "2000-01-02", "", "?", "1e5", "-0", "nan"]),
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(CELLS, max_size=4))
def test_every_cell_has_a_code_of_its_own(cells: list[Any]) -> None:
    """No cell raises, and no cell's code depends on the cells around it."""
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in CODEC.names})
    codes = CODEC.encode(frame)
    assert (codes < np.array(CODEC.sizes)).all()
    for row, cell in enumerate(cells):
        alone = pd.DataFrame({name: pd.Series([cell], dtype=object) for name in CODEC.names})
        assert (CODEC.encode(alone)[0] == codes[row]).all()
    CODEC.conforms(frame)


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_typed_and_object_floats_agree(cells: list[float]) -> None:
    typed = pd.DataFrame({name: pd.Series(cells, dtype=float) for name in CODEC.names})
    objects = typed.astype(object)
    assert (CODEC.encode(typed) == CODEC.encode(objects)).all()


def test_the_codec_is_light_to_import() -> None:
    heavy = ("torch", "opendp", "dp_accounting", "sqlalchemy", "scipy", "opacus", "yaml")
    code = "import sys; from dpsynth.encoding import Codec; "
    code += f"print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_read_gives_the_codes_and_the_cells_that_have_them(every_type: Schema) -> None:
    """Cells in their types are coded as the text was, whatever the text."""
    codec = Codec(every_type)
    names = [column.name for column in every_type.modelled]
    texts = ["", "NA", "x", "-5", "0", "1", "9", "30", "70.04", "1e9", "F", "true", "2015-05-05"]
    frame = pd.DataFrame({name: texts for name in names})
    codes, typed = codec.read(frame)
    assert (codes == codec.encode(frame)).all()
    assert (codec.encode(typed) == codes).all()
    assert codec.conforms(typed) == []
