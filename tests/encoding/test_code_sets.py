"""Cells of several codes: to places and back, and what a synthetic cell may hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import Codec, Kind, SetCoder, cell_values, exploded
from dpsynth.encoding.any_table import typed_cells
from dpsynth.encoding.code_sets import NO_CODE, without_repeats
from dpsynth.errors import RefusedCellError

from ..support.code_sets import CODES, frame_of, many_cells, schema_of, several


def words(codec: Codec, frame: pd.DataFrame) -> list[str | None]:
    """Code cells and decode them again."""
    decoded = codec.decode(codec.encode(frame), np.random.default_rng(0))
    assert codec.conforms(decoded) == []
    assert codec.bounded(frame)["dx"].tolist() == decoded["dx"].tolist()
    return decoded["dx"].tolist()


def test_a_set_is_written_in_the_order_of_the_list() -> None:
    codec = Codec(schema_of())
    assert codec.names == ("sex", "dx: 1", "dx: 2", "dx: 3")
    assert codec.parents[1] == codec.parents[3] == (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3)
    cells = ["B1;A", " a1 ; C2;", "B;B;;A3;B", "", "?", None, "?;C", "A9;C1"]
    expected = ["A;B1", "A1;C2", "A3;B", None, None, None, "C", "C1"]
    assert words(codec, frame_of(*cells)) == expected


def test_an_ordered_cell_keeps_its_order_and_its_first_codes() -> None:
    codec = Codec(schema_of(several=several(2, ordered=True)))
    cells = ["B1;A", "C;B;A", "B;B;A", "A9;C"]
    assert words(codec, frame_of(*cells)) == ["B1;A", "C;B", "B;A", "C"]


def test_at_most_so_many_codes_whatever_stands_there() -> None:
    found = words(Codec(schema_of()), frame_of(";".join(CODES), "A;B;C;A1"))
    assert [len(str(cell).split(";")) for cell in found] == [3, 3]


def test_unknown_codes_follow_the_policy_of_the_column() -> None:
    cells = frame_of("A9;C1", "A9;X;C1", "X")
    assert words(Codec(schema_of(on_unknown="other")), cells) == ["C1;other", "C1;other", "other"]
    assert words(Codec(schema_of(on_unknown="B")), cells) == ["B;C1", "B;C1", "B"]
    required = Codec(schema_of(required=True))
    assert words(required, frame_of("A9", "", "A")) == ["other", "other", "A"]
    refusing = Codec(schema_of(on_unknown="refuse"))
    assert words(refusing, frame_of("A;C1", "")) == ["A;C1", None]
    with pytest.raises(RefusedCellError, match="column 'dx' declares `refuse`") as error:
        refusing.encode(frame_of("A;C1", "C1;A9"))
    assert "A9" not in str(error.value)
    assert refusing.accepted(frame_of("A;C1", "C1;A9"))[1].tolist() == [True, False]


def test_value_maps_and_case_hold_for_each_code() -> None:
    codec = Codec(schema_of(values={"flu": "B1", "none": "missing"}, case=False))
    assert words(codec, frame_of("FLU;a2", "none;C", "none")) == ["A2;B1", "C", None]


def test_kinds_of_cells() -> None:
    coder = SetCoder(schema_of().column("dx"), ".")
    cells = frame_of("A;B", "A;X", "A;B;C;A1", "", "A;A")["dx"]
    kinds = [Kind.VALID, Kind.UNKNOWN, Kind.CLIPPED, Kind.MISSING, Kind.VALID]
    assert coder.kinds(cells).tolist() == kinds
    with pytest.raises(ValueError, match="hold one code"):
        SetCoder(schema_of().column("sex"), ".")


def test_drawn_places_become_one_cell_without_gaps_and_repeats() -> None:
    codec, rng = Codec(schema_of()), np.random.default_rng(1)
    drawn = np.stack([rng.integers(0, size, 4000) for size in codec.sizes], axis=1)
    frame = codec.decode(drawn, rng)
    assert codec.conforms(frame) == []
    places, held = drawn[:, 1:], frame["dx"].str.count(";").add(1).fillna(0)
    numbers = (places < len(CODES)).sum(axis=1)
    assert abs(held.mean() - numbers.mean()) < 0.02, "codes that stand twice are exchanged"
    codes, _ = exploded(frame["dx"], codec.published.column("dx"))
    before = np.bincount(places[places < len(CODES)], minlength=len(CODES))
    assert np.abs(np.bincount(codes) - before).max() <= 0.01 * len(drawn)


def test_few_rows_lose_what_they_cannot_exchange() -> None:
    found = without_repeats(np.array([[3, 3, 3]]), np.random.default_rng(0))
    assert found.tolist() == [[3, NO_CODE, NO_CODE]]
    assert without_repeats(np.empty((0, 3), dtype=np.int64), np.random.default_rng(0)).size == 0


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        ("A;X", "a code that is none of the 10 categories: 1 cell"),
        ("A;;B", "a code that is none of the 10 categories: 1 cell"),
        ("A; B", "a code that is none of the 10 categories: 1 cell"),
        ("A;A1;B;C", "more than 3 codes: 1 cell"),
        ("A;A", "a code twice: 1 cell"),
        ("B;A", "codes that are not in the order of the list: 1 cell"),
    ],
)
def test_a_synthetic_cell_that_the_schema_does_not_allow(cell: str, rule: str) -> None:
    codec = Codec(schema_of())
    problems = [str(problem) for problem in codec.conforms(frame_of("A;B", cell, None))]
    assert any(rule in problem for problem in problems), problems
    assert cell not in " ".join(problems)


def test_a_synthetic_column_is_text_and_filled_where_it_is_required() -> None:
    codec = Codec(schema_of(required=True))
    assert "cells are missing: 2" in str(codec.conforms(frame_of("A", None, ""))[0])
    assert "not of type string" in str(codec.conforms(frame_of("A").assign(dx=1.5))[0])


def test_cells_as_numbers_are_equal_for_equal_cells_only() -> None:
    column, cells = schema_of().column("dx"), many_cells(300)["dx"]
    values = cell_values(cells, column)
    texts = cells.replace("", None)
    assert (np.isnan(values) == texts.isna()).all()
    assert len(np.unique(values[~np.isnan(values)])) == texts.nunique()
    assert typed_cells(cells, column).tolist() == texts.where(texts.notna(), None).tolist()


def test_rows_of_each_code() -> None:
    column = schema_of().column("dx")
    codes, rows = exploded(frame_of("A;C2", None, "X;B", "")["dx"], column)
    assert codes.tolist() == [0, 9, NO_CODE, 4] and rows.tolist() == [0, 0, 2, 2]
