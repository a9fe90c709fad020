"""Separators of thousands, as a column declares them: read cell by cell, and never guessed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding import Codec
from dpsynth.errors import SchemaError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import as_written, open_synthetic, open_table, read_cells

from ..support.declared_cells import field, schema_of

LIMITS = {"minimum": -1_000_000, "maximum": 1_000_000}
SIGNS = [(".", ","), (",", "."), (" ", ","), ("'", "."), ("\u202f", ","), ("\u2019", ".")]


def schema_with(sign: str, decimal: str, type_: str = "number", **own: Any) -> Schema:
    return schema_of(decimal, x={"groupChar": sign} | field(type_, LIMITS, **own))


def values(cells: list[str], schema: Schema) -> list[float]:
    column = schema.column("x")
    return read_cells(pd.Series(cells, dtype=object), column, schema.dialect.decimal)[0].tolist()


@given(st.sampled_from(SIGNS), st.integers(-999_999_999, 999_999_999), st.integers(0, 999))
def test_a_number_is_the_same_with_and_without_its_thousands(
    signs: tuple[str, str], whole: int, rest: int
) -> None:
    sign, decimal = signs
    grouped = f"{whole:,}".replace(",", sign) + f"{decimal}{rest:03}"
    plain = f"{whole}{decimal}{rest:03}"
    one, other = values([grouped, plain], schema_with(sign, decimal))
    assert one == other == float(f"{whole}.{rest:03}")


@pytest.mark.parametrize(
    "text",
    [
        "0.123",
        "28.12",
        "28.1234",
        "1234.567",
        ".123",
        "28.",
        "28..123",
        "1.234.56",
        "1,5.000",
        "1e3.000",
    ],
)
def test_what_does_not_stand_before_three_digits_is_unreadable(text: str) -> None:
    assert np.isnan(values([text], schema_with(".", ",")))[0]
    assert values(["-28.123,5", "1.234.567"], schema_with(".", ",")) == [-28123.5, 1234567.0]


def test_limits_missing_words_and_whole_numbers_have_thousands_too() -> None:
    schema = schema_with(".", ",", censored={"high": 200_000}, missing={"lost": ["-9.999"]})
    cells = pd.Series([">200.000", "-9.999", "-9999", "7"], dtype=object)
    read, missing = read_cells(cells, schema.column("x"), ",")
    assert read[[0, 3]].tolist() == [200_000.0, 7.0]
    assert missing.tolist() == [False, True, True, False]
    assert values(["8.200", "8,2"], schema_with(".", ",", "integer"))[0] == 8200.0


def test_the_sign_is_kept_and_written() -> None:
    schema = schema_with(".", ",")
    document = schema.to_dict()
    assert document["fields"][0]["groupChar"] == "."
    assert (
        Schema.from_dict(document) == schema and Schema.from_dict(document).hash() == schema.hash()
    )
    assert "groupChar" not in str(schema.to_table_schema())
    assert schema.hash() != schema_of(",", x=field("number", LIMITS)).hash()


@pytest.mark.parametrize(
    ("type_", "limits", "problem"),
    [
        ("integer", {"enum": [1000, 2000]}, "only a number with bounds has thousands"),
        ("year", {"minimum": 1990, "maximum": 2020}, "only a number with bounds has thousands"),
        ("date", {"minimum": "2000-01-01", "maximum": "2020-01-01"}, "only a number with bounds"),
    ],
)
def test_mistakes(type_: str, limits: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        schema_of(",", x={"groupChar": "."} | field(type_, limits))


def test_cells_that_a_program_made_numbers_of_are_refused() -> None:
    frame = pd.DataFrame({"x": [28.123, 950.0]})
    with pytest.raises(TableError, match="declares a groupChar"):
        open_table(frame, schema_with(",", "."))


@pytest.mark.parametrize(("sign", "decimal"), SIGNS)
def test_a_synthetic_table_is_read_as_it_is_written(sign: str, decimal: str, tmp_path: Any) -> None:
    schema = schema_of(
        decimal,
        x={"groupChar": sign} | field("number", LIMITS, step=0.125),
        day=field("date", {"minimum": "2000-01-01", "maximum": "2020-12-31"})
        | {"format": "%d.%m.%Y"},
        at=field("time") | {"format": "%H.%M"},
    )
    (tmp_path / "s.csv").write_text(
        "x,day,at\n12.125,2012-02-03,08:30:00\n1250,2013-02-03,09:45:00\n"
    )
    frame = pd.concat(open_synthetic(tmp_path / "s.csv", schema).chunks(), ignore_index=True)
    assert Codec(schema).conforms(frame) == []
    read = Codec(as_written(schema)).bounded(frame)
    assert read["x"].tolist() == [12.125, 1250.0]
    assert read["day"].astype(str).tolist() == ["2012-02-03", "2013-02-03"]
    assert read["at"].astype(str).tolist() == ["08:30:00", "09:45:00"]
    assert Codec(as_written(schema)).sizes == Codec(schema).sizes
