"""A review counts each cell as the codec takes it, and each unit as the cohort takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import inspection
from dpsynth.encoding import Codec, Kind, coder_of
from dpsynth.errors import TableError
from dpsynth.inspection import UnitShares
from dpsynth.inspection.column_check import CellShares
from dpsynth.schema import Schema

from ..support.schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}


def schema_of(*fields: dict[str, Any], **own: Any) -> Schema:
    number = {"value": 90, "basis": "made for this test"}
    return Schema.from_dict(
        {
            "missingValues": ["", "?"],
            "fields": [
                {"dpsynth": BASIS} | field if "unit" not in str(field) else field
                for field in fields
            ],
            "dpsynth": {"version": 1, "population": number, "rows": number} | own,
        }
    )


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 99}}
DOSE = schema_field("dose", "number", BASIS | {"step": 0.1}, minimum=0, maximum=0.3, required=True)
SEX = {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}}
GRADE = {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2], "required": True}}
SMOKER = {"name": "smoker", "type": "boolean"}
SEEN = {
    "name": "seen",
    "type": "date",
    "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
}
DIAGNOSIS = {
    "name": "diagnosis",
    "type": "string",
    "dpsynth": BASIS | {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}},
}
FIELDS = (AGE, DOSE, SEX, GRADE, SMOKER, SEEN, DIAGNOSIS)

VALID, MISSING, CLIPPED, UNKNOWN, BAD = Kind

CELLS: dict[str, dict[Any, Kind]] = {
    "age": {
        "18": VALID, "99.0": VALID, " 40 ": VALID, "17": CLIPPED, "1e3": CLIPPED, "-1": CLIPPED,
        "": MISSING, "?": MISSING, None: MISSING, "40.5": BAD, "inf": BAD, "old": BAD, "1,000": BAD,
    },
    "dose": {
        "0": VALID, "0.3": VALID, "0.30000000000000004": VALID, "0.25": VALID, "0.31": CLIPPED,
        "-0.01": CLIPPED, "?": MISSING, "0,1": BAD, "0x1": BAD,
    },
    "sex": {"F": VALID, " M ": VALID, "f": UNKNOWN, "X": UNKNOWN, "?": MISSING, "": MISSING},
    "grade": {"1": VALID, "2.0": VALID, "3": UNKNOWN, "1.5": BAD, "one": BAD, "": MISSING},
    "smoker": {"true": VALID, "0": VALID, "1.0": VALID, "2": BAD, "yes": BAD, "?": MISSING},
    "seen": {
        "2020-01-01": VALID, "2020-12-31T23:59": VALID, "2019-12-31": CLIPPED,
        "2021-01-01": CLIPPED, "31.12.2020": BAD, "2020-02-30": BAD, "18300": BAD, None: MISSING,
    },
    "diagnosis": {"250.83": VALID, "V57": VALID, "neoplasm": VALID, "zzz": UNKNOWN, "?": MISSING},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cell", "kind"),
    [(name, cell, kind) for name, kinds in CELLS.items() for cell, kind in kinds.items()],
)
def test_each_cell_is_of_one_kind(name: str, cell: str | None, kind: Kind) -> None:
    coder = coder_of(schema_of(*FIELDS).column(name), ".")
    assert coder.kinds(pd.Series([cell], dtype=object)).tolist() == [kind]


def test_typed_cells_are_taken_like_their_text() -> None:
    schema = schema_of(AGE, SEX, SEEN)
    age = coder_of(schema.column("age"), ".")
    assert age.kinds(pd.Series([40.0, 17.0, 1e9, 40.5, np.inf, np.nan])).tolist() == [
        VALID, CLIPPED, CLIPPED, BAD, BAD, MISSING,
    ]  # fmt: skip
    sex = coder_of(schema.column("sex"), ".")
    assert sex.kinds(pd.Series(["F", "X", None], dtype="category")).tolist() == [
        VALID, UNKNOWN, MISSING,
    ]  # fmt: skip
    coder = coder_of(schema.column("seen"), ".")
    times = pd.Series(["2020-12-31T23:00", "2021-01-01", None], dtype="datetime64[s]")
    assert coder.kinds(times).tolist() == [VALID, CLIPPED, MISSING]


@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(c for k in CELLS.values() for c in k if c is not None))))
def test_a_kind_never_contradicts_the_code(cells: list[str]) -> None:
    """Whatever stands in a cell: only what is missing or replaced gets the code of missing."""
    schema = schema_of(*FIELDS)
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in CELLS})
    codes = Codec(schema).encode(frame)
    for place, column in enumerate(schema.modelled):
        coder = coder_of(column, ".")
        kinds = coder.kinds(frame[column.name])
        missing = codes[:, place] == coder.size - 1
        if column.nullable:  # all policies of a nullable column lead to missing
            taken = np.isin(kinds, [VALID, CLIPPED])
            np.testing.assert_array_equal(missing, ~taken)
        if not column.is_categorical:
            ends = codes[:, place][kinds == CLIPPED]
            assert np.isin(ends, [0, coder.size - 1 - int(column.nullable)]).all()


def test_shares_by_hand() -> None:
    schema = schema_of(AGE, SEX)
    frame = pd.DataFrame(
        {
            "age": ["18", "17", "500", "?", "x", None, "40", "41", "42", "43"],
            "sex": ["F", "M", "X", "Y", "?", "F", "M", "F", "M", "Z"],
        }
    )
    assert inspection.check(frame, schema).cells == {
        "age": CellShares(missing=0.2, clipped=0.2, unknown=0.0, bad=0.1),
        "sex": CellShares(missing=0.1, clipped=0.0, unknown=0.3, bad=0.0),
    }


def test_files_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 7)
    schema = schema_of(AGE, SEX)
    frame = pd.DataFrame({"age": [17] * 10 + [50] * 90, "sex": ["X"] * 25 + ["F"] * 75})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    parts: list[float] = []
    expected = {
        "age": CellShares(missing=0.0, clipped=0.1, unknown=0.0, bad=0.0),
        "sex": CellShares(missing=0.0, clipped=0.0, unknown=0.25, bad=0.0),
    }
    assert inspection.check(tmp_path / "t.csv", schema, progress=parts.append).cells == expected
    assert inspection.check(tmp_path / "t.parquet", schema).cells == expected
    assert len(parts) == 15 and parts == sorted(parts) and parts[-1] == 1.0


def test_a_cell_that_would_be_refused_is_counted() -> None:
    refusing = SEX | {"dpsynth": BASIS | {"on_unknown": "refuse"}}
    frame = pd.DataFrame({"sex": ["F", "X"]})
    assert inspection.check(frame, schema_of(refusing)).cells["sex"].unknown == 0.5


UNIT = {"name": "key", "type": "string", "dpsynth": {"role": "unit"}}


@pytest.mark.parametrize(
    ("missing_key", "over"),
    [("drop", 1 / 3), ("own", 1 / 5)],  # a: 3 rows, b: 2, c: 1; two rows without a key
)
def test_units_by_hand(missing_key: str, over: float) -> None:
    schema = schema_of(UNIT, SEX, max_rows={"value": 2, "basis": "choice"}, missing_key=missing_key)
    keys = ["a", " a", "a ", "b", "b", "c", "", None]
    check = inspection.check(pd.DataFrame({"key": keys, "sex": ["F"] * 8}), schema)
    assert check.units == UnitShares(keyless_rows=2, over_max_rows=over)


def test_no_row_has_a_key() -> None:
    schema = schema_of(UNIT, SEX, max_rows={"value": 2, "basis": "choice"})
    check = inspection.check(pd.DataFrame({"key": ["", "?"], "sex": ["F", "M"]}), schema)
    assert check.units == UnitShares(keyless_rows=2, over_max_rows=0.0)


def test_where_each_row_is_a_unit_there_is_nothing_to_say() -> None:
    assert inspection.check(pd.DataFrame({"sex": ["F"]}), schema_of(SEX)).units is None


def test_another_table_is_refused() -> None:
    with pytest.raises(TableError, match="lacks a column of the schema: sex"):
        inspection.check(pd.DataFrame({"age": [1]}), schema_of(SEX))
    with pytest.raises(TableError, match="no rows"):
        inspection.check(pd.DataFrame({"sex": []}), schema_of(SEX))
