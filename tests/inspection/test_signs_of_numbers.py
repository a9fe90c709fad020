"""Decimal signs and thousands: what a check advises, and what it never does."""

from __future__ import annotations

import pandas as pd

from dpsynth import inspection
from dpsynth.inspection import Finding

from ..support.declared_cells import field, schema_of

BIG = field("number", {"minimum": 100, "maximum": 100_000}, step=0.1)
LARGER = field("number", {"minimum": 3, "maximum": 10_000}, step=0.1, censored={"high": 10_000})


def of_two(first: list[str], second: list[str]) -> dict[str, Finding]:
    """The findings of two columns of a table whose numbers have a decimal comma."""
    schema = schema_of(",", first=BIG, second=LARGER)
    rows = max(len(first), len(second))
    cells = {"first": first, "second": second}
    frame = pd.DataFrame({name: (texts * rows)[:rows] for name, texts in cells.items()})
    return {
        one.place: one for one in inspection.check(frame, schema).findings if one.place != "table"
    }


def test_thousands_are_never_taken_for_decimals() -> None:
    findings = of_two(["28.123", "8.200", "950"] * 9, ["12,5", ">10.000", "1.250,5", "7"] * 9)
    for place in ("first", "second"):
        assert [cause.key for cause in findings[place].causes] in (["thousands"], ["censored-high"])
        assert "decimal" not in str(findings[place].to_dict())
    assert 'add to the column: groupChar: "."' in findings["first"].causes[0].remedy


def test_no_decimal_sign_is_advised_that_other_cells_contradict() -> None:
    alone = of_two(["950", "101.5"] * 9, ["7"])["first"]
    assert 'decimal: "."' in alone.causes[0].remedy
    beside = of_two(["950", "101.5"] * 9, ["7,5"])["first"]
    assert beside.causes[0].key == "decimal"
    assert beside.causes[0].remedy.startswith("let the source write them with ','")


def test_the_limit_of_a_censored_cell_is_read_with_its_thousands() -> None:
    findings = of_two(["950"], ["7,5"] * 9 + [">10.000"] * 3)
    assert [cause.key for cause in findings["second"].causes] == ["thousands"]
