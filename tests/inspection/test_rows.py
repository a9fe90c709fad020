"""Rules that rows break, duplicates, units and sizes; the levels of findings."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.errors import GateError, InputError
from dpsynth.inspection import Finding, Level, check_accepted, require_accepted, schema_warnings
from dpsynth.inspection.findings import KINDS, LIMITS, Limits
from dpsynth.schema import Schema
from dpsynth.tables import OptOut

from ..support.schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
DAY = {
    "type": "date",
    "constraints": {"minimum": "2015-01-01", "maximum": "2020-12-31"},
    "dpsynth": BASIS,
}
FIELDS: list[dict[str, Any]] = [
    {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "visit", "type": "integer", "dpsynth": {"role": "order"}},
    {"name": "admitted", **DAY},
    {"name": "discharged", **DAY},
    schema_field("sex", "string", BASIS, enum=["F", "M"], required=True),
]
RULE = "admitted <= discharged"


def schema_of(units: int = 50, rows: int = 100, **own: Any) -> Schema:
    sizes = {
        "population": {"value": units, "basis": "made for this test"},
        "rows": {"value": rows, "basis": "made for this test"},
        "max_rows": {"value": 3, "basis": "choice"},
    }
    return Schema.from_dict({"fields": FIELDS, "dpsynth": {"version": 1} | sizes | own})


def table(units: int = 50) -> pd.DataFrame:
    """Two visits of each unit, all different."""
    keys = [f"p{number:03}" for number in range(units) for _ in range(2)]
    days = pd.date_range("2015-03-01", periods=len(keys), freq="5D")
    return pd.DataFrame(
        {
            "key": keys,
            "visit": ["1", "2"] * units,
            "admitted": days.strftime("%Y-%m-%d"),
            "discharged": (days + pd.Timedelta(days=3)).strftime("%Y-%m-%d"),
            "sex": ["F", "M"] * units,
        }
    ).astype(object)


def found(frame: pd.DataFrame, schema: Schema | None = None) -> dict[str, Finding]:
    checked = inspection.check(frame, schema or schema_of())
    return {finding.key: finding for finding in checked.findings}


def test_a_clean_table_has_no_finding() -> None:
    assert found(table(), schema_of(rules=["visit_sex == 1"][:0])) == {}


def test_rules_that_rows_break_are_counted() -> None:
    frame = table()
    frame.loc[:19, "discharged"] = "2015-01-02"
    frame.loc[20:29, "discharged"] = ""  # undecided
    frame.loc[30:39, "discharged"] = "2031-01-01"  # clipped: what it was is not known
    finding = found(frame, schema_of(rules=[RULE]))[f"{RULE}:broken"]
    assert (finding.count, finding.total, finding.level) == (20, 80, Level.SERIOUS)


def test_two_ordered_dates_without_an_interval_get_a_warning() -> None:
    (warning,) = schema_warnings(schema_of(rules=[RULE, 'sex == "F" or sex == "M"']))
    assert warning.place == RULE and "after: admitted" in warning.message
    (turned,) = schema_warnings(schema_of(rules=["discharged > admitted"]))
    assert "after: admitted" in turned.message
    for rule in ('admitted >= "2016-01-01"', "admitted != discharged"):
        assert schema_warnings(schema_of(rules=[rule])) == ()
    assert found(table(), schema_of(rules=[RULE]))[f"{RULE}:schema"].level is Level.WARNING


def test_rows_that_occur_twice_are_counted_within_a_unit() -> None:
    frame = pd.concat([table(), table().iloc[:20]])
    findings = found(frame)
    assert findings["table:duplicates"].count == 20
    assert findings["table:repeated"].count == 20
    assert findings["table:duplicates"].level is Level.SERIOUS
    other = table()
    other.loc[:19, "visit"] = "1"  # ten units with two first visits
    assert set(found(other)) == {"table:repeated"}
    assert found(other)["table:repeated"].count == 10


def test_rows_of_different_units_may_be_alike() -> None:
    frame = table()
    frame[["admitted", "discharged", "sex"]] = ["2016-01-01", "2016-01-02", "F"]
    assert found(frame) == {}


def test_keys_units_and_sizes() -> None:
    frame = table()
    frame.loc[:9, "key"] = ""
    assert found(frame)["table:keyless"].level is Level.SERIOUS
    many = pd.concat([table(10).assign(visit=str(n)) for n in range(5)])
    many["admitted"] = pd.date_range("2015-01-01", periods=100).strftime("%Y-%m-%d")
    findings = found(many)
    assert findings["table:many-rows"].level is Level.SERIOUS
    assert "table:units" in findings and "table:rows" not in findings
    assert "0.2 times the declared number of units" in findings["table:units"].message
    assert found(table(), schema_of(rows=10_000))["table:rows"].level is Level.WARNING
    assert found(table(), schema_of(rows=140)) == {}


def test_units_that_opted_out_are_not_looked_at() -> None:
    frame = table()
    frame.loc[:9, "sex"] = "x"
    schema = schema_of()
    gone = OptOut.of([f"p{number:03}" for number in range(5)], schema)
    assert "sex:unknown" in found(frame)
    assert inspection.check(frame, schema, opt_out=gone).findings == ()


def test_missing_cells_of_a_required_column_are_a_finding() -> None:
    frame = table()
    frame.loc[:9, "sex"] = ""
    assert found(frame)["sex:absent"].level is Level.SERIOUS


# Levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "level"), [(1, Level.NOTE), (2, Level.WARNING), (5, Level.WARNING), (6, Level.SERIOUS)]
)
def test_levels_by_hand(bad: int, level: Level) -> None:
    frame = table()
    frame.loc[: bad - 1, "sex"] = "x"
    assert found(frame)["sex:unknown"].level is level


def test_few_cells_are_never_serious() -> None:
    assert Limits(0.01, 0.05).level(1.0, 4) is Level.WARNING
    assert Limits(0.01, 0.05).level(1.0, 5) is Level.SERIOUS
    assert set(LIMITS) == set(KINDS)
    assert all(limits.warning <= limits.serious <= math.inf for limits in LIMITS.values())


def test_a_declared_other_is_expected() -> None:
    """Where the schema names a category for what it does not list, unknown cells are normal."""
    for enum, level in ((["F", "other"], Level.NOTE), (["F", "X"], Level.SERIOUS)):
        document = schema_of().to_dict()
        document["fields"][4]["constraints"]["enum"] = enum
        frame = table().assign(sex=["F"] * 90 + ["M"] * 10)
        assert found(frame, Schema.from_dict(document))["sex:unknown"].level is level


# What an office accepts ----------------------------------------------------------------------


def test_accepted_findings_do_not_stop() -> None:
    require_accepted(["sex:unknown"], ["sex:unknown", "sex:clipped"])
    with pytest.raises(GateError, match=r"1 serious finding \(sex:unknown\)"):
        require_accepted(["sex:unknown", "sex:absent"], ["sex:absent"])


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("sex", "not of the form column:kind"),
        ("sex:unknwon", "did you mean 'unknown'"),
        ("sx:unknown", "models no column 'sx'"),
        ("key:unknown", "models no column 'key'"),
        ("sex:broken", "models no rule 'sex'"),
    ],
)
def test_a_setting_that_accepts_nothing_is_refused(entry: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_accepted([entry], schema_of())
    check_accepted(["sex:unknown", "table:rows", f"{RULE}:broken"], schema_of(rules=[RULE]))
