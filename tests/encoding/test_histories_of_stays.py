"""Dates that count from the time of their row: coded as gaps of the row, and decoded as dates."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.encoding import HistoryCodec, decode_histories, read_histories, with_keys
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import open_linked, open_synthetic_linked, written_schema

from ..support.linked_rows import InOrder, by_patient, frames, patient_rows, read
from ..support.linked_tables import stays


def rows_of(patients: int, *, format_: str = "") -> dict[str, list[list[str]]]:
    """Draw patients, each visit of whom ends up to 60 days after it begins."""
    rng = np.random.default_rng(5)
    rows: dict[str, list[list[str]]] = {}
    for number in range(patients):
        own = patient_rows(f"p{number:02d}", rng)
        for visit in own["visits"]:
            visit.append(str(np.datetime64(visit[1]) + int(rng.integers(0, 61))) + format_)
        for name, more in own.items():
            rows.setdefault(name, []).extend(more)
    return rows


def tables_of(rows: dict[str, list[list[str]]]) -> dict:
    return frames({k: v for k, v in rows.items() if k != "visits"}) | {
        "visits": frames({"visits": [one[:5] for one in rows["visits"]]})["visits"].assign(
            left=[one[5] for one in rows["visits"]]
        )
    }


def test_a_gap_is_coded_from_the_dates_of_its_own_row() -> None:
    rows = rows_of(1)
    rows["visits"] = [
        ["p00", "2003-05-01", "1", "120", "a", left]
        for left in ("2003-05-01", "2003-05-21", "2004-05-01", "2003-04-01", "", "soon")
    ]
    schema = LinkedSchema.from_dict(stays())
    codec = HistoryCodec(schema).children[2].codec
    assert codec.names[2] == "left"
    codes = sorted(read(tables_of(rows), document=stays()).rows[1][0].values[:, 2].tolist())
    missing = codec.sizes[2] - 1
    # at once, and before the admission, moved to 0 days; 20 days; a year, moved to 60; two missing
    assert codes == [0, 0, codes[2], missing - 1, missing, missing] and 0 < codes[2] < missing - 1


def test_no_other_patient_moves_a_gap() -> None:
    rows = rows_of(12)
    whole = by_patient(read(tables_of(rows), document=stays()))
    fewer = {
        name: [row for row in table if row[0] not in ("p00", "p07")] for name, table in rows.items()
    }
    rest = by_patient(read(tables_of(fewer), document=stays()))
    assert rest == [one for number, one in enumerate(whole) if number not in (0, 7)]


@pytest.mark.parametrize("type_", ["date", "datetime"])
def test_decoded_dates_keep_the_gap(type_: str) -> None:
    document = stays()
    fields = document["resources"][3]["schema"]["fields"]
    fields[1]["type"] = type_  # a datetime is at midnight, and the stay is in days
    schema = LinkedSchema.from_dict(document)
    rows = rows_of(40)
    drawn = read_histories(open_linked(tables_of(rows), schema), HistoryCodec(schema), InOrder(1))
    keys = np.arange(len(drawn)) + 1
    frames_ = with_keys(
        decode_histories(drawn, HistoryCodec(schema), np.random.default_rng(2)), schema, keys
    )
    visits = frames_["visits"]
    assert list(visits) == [column.name for column in published_tables(schema)["visits"].modelled]
    stay = (visits["left"] - visits["date"]).dt.days
    assert stay.between(0, 60).all() and stay.nunique() > 10
    back = read_histories(
        open_synthetic_linked(frames_, schema), HistoryCodec(written_schema(schema)), InOrder(1)
    )
    # rows of one day at the end of follow-up have no order of their own
    before, after = (
        sorted(np.column_stack([own.patients, own.values]).tolist())
        for own in (drawn.rows[1][0], back.rows[1][0])
    )
    assert before == after


def test_patients_without_an_origin_have_no_rows() -> None:
    document = stays()
    document["resources"][0]["schema"]["fields"][3]["constraints"].pop("required")
    schema = LinkedSchema.from_dict(document)
    drawn = read_histories(
        open_linked(tables_of(rows_of(5)), schema), HistoryCodec(schema), InOrder(1)
    )
    place = HistoryCodec(schema).patients.names.index("index")
    drawn.baseline[0, place] = HistoryCodec(schema).patients.sizes[place] - 1  # missing
    tables = decode_histories(drawn, HistoryCodec(schema), np.random.default_rng(2))
    assert 0 not in set(tables["visits"]["id"]) and 1 in set(tables["visits"]["id"])
    assert tables["visits"]["left"].notna().all()
