"""Linked tables become histories: days in the window, in order, capped; mistakes in a sentence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import HistoryCodec
from dpsynth.errors import InputError, NoRowsError, TableError
from dpsynth.models.histories import PersonTable, domain_of
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked

from ..support.linked_rows import (
    COLUMNS,
    by_patient,
    frames,
    patient_rows,
    read,
    tallied,
    together,
)
from ..support.linked_tables import package

ANN = ["ann", "F", "1000", "2005-06-01"]
BOB = ["bob", "M", "2000", "2006-06-01"]


def one(**rows: list[list[str]]) -> Any:
    """The history of Ann, with these rows beside her baseline."""
    return by_patient(read(frames({"patients": [ANN], **rows})))[0]


def test_a_history_by_hand() -> None:
    codes, end, onsets, series = one(
        labs=[
            ["ann", "30", "hdl", "60", "no"],
            ["ann", "10", "smoke", "1", ""],
            ["ann", "10", "hdl", "5", "yes"],
            ["ann", "20", "glucose", "5", "yes"],
        ],
        events=[["ann", "90", "mi", "x"], ["ann", "70", "mi", "x"]],
        visits=[["ann", "2005-06-03", "1", "40", "c"], ["ann", "2005-05-30", "1", "", "a"]],
        orders=[["ann", "2", "1", "y"], ["ann", "1", "1", "x"]],
    )
    assert (codes[:2], end, onsets) == ([0, 1000], 1000, [None, 70])
    hdl, smoke, visits, orders = series
    assert hdl == ([10, 30], [[0, 1], [55, 0]])
    assert smoke == ([10], [[1, 2]])
    assert visits == ([-2, 2], [[261, 0], [0, 2]])
    assert orders == ([0, 0], [[0], [1]])


def test_days_beyond_the_window_or_the_end_are_moved() -> None:
    rows = [["ann", day, "smoke", "0", ""] for day in ("-99999", "1e300", "1000", "1001", "3651")]
    assert one(labs=rows)[3][1][0] == [-3650, 1000, 1000, 1000, 1000]
    assert tallied(frames({"patients": [ANN], "labs": rows})) == {
        ("labs", "early"): 1,
        ("labs", "late"): 3,
    }
    late = [["ann", "2200-01-01", "1", "40", "a"], ["ann", "0001-01-01", "1", "40", "a"]]
    assert one(visits=late)[3][2][0] == [-3650, 1000]


@pytest.mark.parametrize("day", ["", "soon", "12.5", "1e400", "NaN", "0x10"])
def test_a_row_without_a_day_is_left_out(day: str) -> None:
    rows = [["ann", day, "smoke", "0", ""], ["ann", "3", "smoke", "0", ""]]
    assert one(labs=rows)[3][1][0] == [3]
    assert tallied(frames({"patients": [ANN], "labs": rows})) == {("labs", "timeless"): 1}


def test_dates_of_a_patient_without_an_origin_are_left_out() -> None:
    document = package()
    document["resources"][0]["schema"]["fields"][3]["constraints"].pop("required")
    visits = [["ann", "2005-06-03", "1", "40", "c"], ["bob", "2006-06-03", "1", "40", "c"]]
    tables = frames({"patients": [[*ANN[:3], ""], BOB], "visits": visits})
    ann, bob = by_patient(read(tables, document=document))
    assert ann[3][2][0] == [] and bob[3][2][0] == [2]


def test_an_origin_need_not_be_modelled() -> None:
    document = package()
    document["resources"][0]["schema"]["fields"][3] = {
        "name": "index",
        "type": "datetime",
        "format": "%d.%m.%Y %H:%M",
        "dpsynth": {"role": "drop"},
    }
    patients = [[*ANN[:3], "01.06.2005 23:30"]]
    visits = [["ann", "2005-06-02", "1", "40", "c"]]
    tables = frames({"patients": patients, "visits": visits})
    histories = read(tables, document=document)
    assert histories.baseline.tolist() == [[0, 1000]]
    assert histories.rows[1][0].days.tolist() == [1]


def test_times_of_day_order_the_rows_of_a_day() -> None:
    document = package()
    document["resources"][3]["schema"]["fields"][1]["type"] = "datetime"
    visits = [["ann", f"2005-06-03T{hour}:00", "1", "40", ward] for hour, ward in
              (("23", "a"), ("01", "c"), ("12", "b"))]  # fmt: skip
    [ann] = by_patient(read(frames({"patients": [ANN], "visits": visits}), document=document))
    assert ann[3][2] == ([2, 2, 2], [[0, 2], [0, 1], [0, 0]])


def test_an_order_breaks_the_ties_of_a_day() -> None:
    document = package()
    document["resources"][3]["dpsynth"]["order"] = "visit"
    document["resources"][3]["schema"]["fields"][2].pop("dpsynth")
    visits = [["ann", "2005-06-03", number, "40", ward] for number, ward in
              (("3", "a"), ("10", "b"), ("", "c"))]  # fmt: skip
    [ann] = by_patient(read(frames({"patients": [ANN], "visits": visits}), document=document))
    assert [ward for _, ward in ann[3][2][1]] == [2, 1, 0]  # as text, since it is of type string


def test_the_end_may_be_a_date_after_the_origin() -> None:
    document = package()
    end = {"after": "index", "longest": 3650, "unit": "d", "bounds_basis": "protocol"}
    document["resources"][0]["schema"]["fields"][2] = {
        "name": "end",
        "type": "date",
        "dpsynth": end,
    }
    tables = frames(
        {"patients": [["ann", "F", "2005-06-11", "2005-06-01"], [*BOB[:2], "", BOB[3]]]}
    )
    histories = read(tables, document=document)
    assert histories.ends.tolist() == [10, 3650]
    place, days = HistoryCodec(LinkedSchema.from_dict(document)).end or (0, np.empty(0))
    assert days[histories.baseline[:, place]].tolist() == [10, 3650]


def test_the_day_of_an_end_is_never_after_what_its_code_is_drawn_as() -> None:
    """Long follow-up has more days than codes; a row on the last day lies within follow-up."""
    codec = HistoryCodec(LinkedSchema.load("nafld"))
    place, days = codec.end or (0, np.empty(0))
    rng = np.random.default_rng(2)
    codes = np.zeros((len(days), len(codec.patients.names)), dtype=np.uint16)
    codes[:, place] = np.arange(len(days))
    drawn = np.stack([codec.patients.decode(codes, rng)["futime"].to_numpy() for _ in range(20)])
    assert (drawn >= days).all() and (drawn.min(axis=0) - days < 9).all()


def test_empty_tables() -> None:
    """A child table may be empty; a table of patients may not."""
    histories = read(frames({"patients": [ANN]}))
    assert [len(rows.days) for table in histories.rows for rows in table] == [0, 0, 0, 0]
    with pytest.raises(NoRowsError):
        read(frames({}))
    assert len(read(frames({}), refused="drop")) == 0


def test_each_table_is_given_by_name(tmp_path: Path) -> None:
    schema, tables = LinkedSchema.from_dict(package()), frames({"patients": [ANN]})
    with pytest.raises(InputError, match=r"no table 'orderz' \(did you mean 'orders'\?\)"):
        open_linked({**tables, "orderz": tables["orders"]}, schema)
    del tables["orders"]
    with pytest.raises(TableError, match="no file is given for orders"):
        open_linked(tables, schema)
    path = tmp_path / "orders.csv"
    path.write_text("id,number,drug\nann,1,x\nann,0,y\n")
    opened = open_linked({**tables, "orders": path}, schema)
    assert opened["orders"].columns == ("id", "number", "drug")
    assert opened["patients"].columns == ("id", "sex", "end", "index")
    with pytest.raises(TableError, match="lacks a column of the schema: number"):
        path.write_text("id,drug\nann,x\n")
        open_linked({**tables, "orders": path}, schema)


def test_typed_keys_and_text_values_are_refused_as_in_one_table() -> None:
    tables = frames({"patients": [ANN]}) | {
        "orders": pd.DataFrame({"id": [1.5], "number": [1], "drug": ["x"], "visit": ["1"]})
    }
    with pytest.raises(TableError, match="the key of the unit, so it must be text"):
        read(tables)


def test_ten_thousand_rows_of_one_patient_are_capped_in_time() -> None:
    rows = [["ann", str(day % 900), "hdl", "60", ""] for day in range(10_000)]
    tables = frames({"patients": [ANN], "labs": rows})
    start = time.perf_counter()
    assert len(read(tables).rows[0][0].days) == 8
    assert time.perf_counter() - start < 5
    assert tallied(tables) == {("labs", "capped"): 9_992}


def test_a_generator_takes_what_is_read() -> None:
    rng = np.random.default_rng(3)
    tables = frames(together([patient_rows(f"p{place}", rng) for place in range(50)]))
    codec = HistoryCodec(LinkedSchema.from_dict(package()))
    domain = domain_of(codec)
    assert [series.name for table in domain.tables for series in table.series] == [
        "labs hdl", "labs smoke", "visits", "orders",
    ]  # fmt: skip
    assert domain.events == ("stroke", "mi")
    assert [table.longest for table in domain.tables] == [7300, 7300, 0]
    person = PersonTable(domain)
    codes = person.codes(read(tables))
    assert (codes < np.array([feature.size for feature in person.features])).all()
    assert set(COLUMNS) == set(codec.schema.table_names)
    assert repr(read(tables)) == "<Histories coded rows of patients>"
