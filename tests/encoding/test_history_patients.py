"""Who is a patient of linked tables: keys, repeated rows, opt-outs, and rows of nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import HistoryCodec, read_histories
from dpsynth.errors import RefusedCellError, TableError
from dpsynth.models.histories import domain_of
from dpsynth.privacy import OsEntropy
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.tables import OptOut, open_linked

from ..support.linked_rows import (
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


def test_keys_are_compared_alike_in_all_tables() -> None:
    document = package()
    document["dpsynth"]["key"] = {"leading_zeros": False, "case": True}
    tables = frames({"patients": [["00A7", *ANN[1:]]], "orders": [[" 0a7", "1", "1", "x"]]})
    assert len(read(tables, document=document).rows[2][0].days) == 1


def test_rows_of_nobody_are_left_out_and_counted() -> None:
    orders = [["ann", "1", "1", "x"], ["zoe", "1", "1", "x"], ["", "1", "1", "x"]]
    tables = frames({"patients": [ANN], "orders": orders})
    assert len(read(tables).rows[2][0].days) == 1
    assert tallied(tables) == {("orders", "strangers"): 1, ("orders", "keyless"): 1}


def test_opted_out_patients_leave_all_tables() -> None:
    rng = np.random.default_rng(3)
    tables = frames(together([patient_rows(key, rng) for key in ("a", "b", "c")]))
    schema = LinkedSchema.from_dict(package())
    left = read(tables, opt_out=OptOut.of(["b", "nobody"], schema.patients))
    assert by_patient(left) == [by_patient(read(tables))[place] for place in (0, 2)]


def test_refused_rows_stop_or_are_left_out() -> None:
    document = package()
    series = document["resources"][1]["dpsynth"]["series"]
    labs = [["ann", "1", "hdl", "60", ""], ["ann", "2", "secret", "6", ""]]
    tables = frames({"patients": [ANN], "labs": labs})
    series["on_unknown"] = "refuse"
    with pytest.raises(RefusedCellError, match="table labs: column 'test' declares") as caught:
        read(tables, document=document)
    assert "secret" not in str(caught.value)
    assert read(tables, document=document, refused="drop").rows[0][0].days.tolist() == [1]
    series |= {"on_unknown": "drop"}
    series["tests"]["hdl"]["on_bad"] = "refuse"
    tables["labs"].loc[0, "value"] = "secret"
    with pytest.raises(RefusedCellError, match="a value in column 'value'") as caught:
        read(tables, document=document)
    assert "secret" not in str(caught.value)
    assert len(read(tables, document=document, refused="drop").rows[0][0].days) == 0


def test_a_patient_with_two_rows_is_refused_or_left_out_with_all_rows() -> None:
    tables = frames(
        {"patients": [ANN, BOB, ["ann ", *BOB[1:]]], "orders": [["ann", "1", "1", "x"]]}
    )
    with pytest.raises(TableError, match="table patients: a key in column 'id' has several") as e:
        read(tables)
    assert "ann" not in str(e.value)
    left = read(tables, refused="drop")
    assert len(left) == 1 and len(left.rows[2][0].days) == 0


def test_tables_that_do_not_belong_together_are_refused() -> None:
    tables = frames({"patients": [ANN], "orders": [["zoe", "1", "1", "x"]]})
    with pytest.raises(TableError, match="table orders: no row belongs to a patient of table"):
        read(tables)
    assert len(read(tables, refused="drop")) == 1
    keyless = frames({"patients": [["", *ANN[1:]]]})
    with pytest.raises(TableError, match="table patients: no row has a key in column 'id'"):
        read(keyless)
    assert len(read(keyless, refused="drop")) == 0


def test_patients_may_be_repeated_in_a_table_of_visits() -> None:
    """One row of each is read by chance, and neither the first nor the last one always."""
    document = package()
    document["resources"][0]["dpsynth"] = {"repeated": True}
    schema = LinkedSchema.from_dict(document)
    assert schema.repeated and LinkedSchema.from_dict(schema.to_dict()) == schema
    patients = [[*ANN[:2], str(end), ANN[3]] for end in (1, 2, 3)] + [BOB, BOB]
    tables = frames({"patients": patients, "orders": [["ann", "1", "1", "x"]]})
    ends = [read(tables, document=document, seed=seed).ends for seed in range(40)]
    assert {tuple(sorted(end.tolist())) for end in ends} == {(1, 2000), (2, 2000), (3, 2000)}


def diabetes130() -> dict[str, Any]:
    """Visits of patients without dates; race and sex are taken to be constant."""
    table = Schema.load("diabetes130").to_dict()
    constant, key = ("race", "gender"), "patient_nbr"
    fields = {field["name"]: field for field in table["fields"]}
    fields[key].pop("dpsynth"), fields["encounter_id"].pop("dpsynth")
    patients = [fields[name] for name in (key, *constant)]
    visits = [field for name, field in fields.items() if name not in constant]
    reference = {"fields": key, "reference": {"resource": "patients", "fields": key}}
    missing = {"missingValues": table["missingValues"]}
    return {
        "resources": [
            {
                "name": "patients",
                "schema": {"primaryKey": key, "fields": patients, **missing},
                "dpsynth": {"repeated": True},
            },
            {
                "name": "visits",
                "schema": {"foreignKeys": [reference], "fields": visits, **missing},
                "dpsynth": {"order": "encounter_id", "max_rows": table["dpsynth"]["max_rows"]},
            },
        ],
        "dpsynth": {
            "version": 1,
            "patients": "patients",
            "population": table["dpsynth"]["population"],
        },
    }


@pytest.mark.long
def test_visits_of_a_real_table_without_dates() -> None:
    folder = os.environ.get("DPSYNTH_DATA")
    if not folder:
        pytest.skip("DPSYNTH_DATA is not set: it names the folder with the real tables")
    schema = LinkedSchema.from_dict(diabetes130())
    file = Path(folder) / "diabetes130.csv.gz"
    tables = open_linked({"patients": file, "visits": file}, schema)
    histories = read_histories(tables, HistoryCodec(schema), OsEntropy())
    assert len(histories) == 71_518 and len(histories.rows[0][0].days) > 95_000
    assert domain_of(HistoryCodec(schema)).tables[0].timed is False


def test_patients_come_in_random_order() -> None:
    """Their places in the file are nobody's business."""
    tables = frames({"patients": [ANN, BOB]})
    first = {int(read(tables, seed=seed).ends[0]) for seed in range(20)}
    assert first == {1000, 2000}
