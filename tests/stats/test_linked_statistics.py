"""Statistics of linked tables: rows of a table with their patient's columns, capped by patient."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import ArtifactError, InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import RowSums, SeededEntropy, Unit
from dpsynth.schema import LinkedSchema
from dpsynth.stats import (
    Answers,
    LinkedTables,
    StatisticsRequest,
    claim_problems,
    read_linked_rows,
    shares_of_request,
)
from dpsynth.stats.statistic import Ints
from dpsynth.tables import open_linked, simulate_cohort

from ..support.bare_counts import Silence

ENTRIES: list[dict[str, Any]] = [
    {"name": "people", "count": "patients", "by": ["sex"]},
    {"name": "visits", "count": "rows", "table": "visits", "by": ["sex", "drugs"]},
    {"name": "visitors", "count": "patients", "table": "visits", "by": ["diabetes"]},
    {"name": "pressure", "mean": "systolic", "table": "visits", "by": ["sex"], "per": "patient"},
    {"name": "treated", "proportion": {"drugs": ["2", "3"]}, "table": "visits"},
    {"name": "weight", "quantiles": "weight", "table": "visits", "shares": [0.5]},
    {"name": "commonest", "top": "drugs", "table": "visits", "most": 1},
]


@pytest.fixture(scope="module")
def request_() -> StatisticsRequest:
    return StatisticsRequest.from_dict({"schema": "clinic", "statistics": ENTRIES})


@pytest.fixture(scope="module")
def cohort() -> dict[str, pd.DataFrame]:
    return simulate_cohort(120, seed=1)


def test_rows_are_those_of_their_patients(
    request_: StatisticsRequest, cohort: dict[str, pd.DataFrame]
) -> None:
    """With all but no noise, answers are those of the joined tables."""
    events = {
        share.event.name: replace(share.event, sigma=3.0)
        if isinstance(share.event, RowSums)
        else replace(share.event, scale=0.1)
        for share in shares_of_request(request_, 1e-6)
    }
    assert request_.linked is not None
    source = SeededEntropy(1)
    tables = open_linked(cohort, request_.linked.schema)
    rows = read_linked_rows(tables, request_.linked, source)
    answers: dict[str, list[Ints]] = {}
    for table, one in zip(request_.tables, request_.statistics, strict=True):
        answers |= one.answer(rows[table], events, source)
    found = {result.name: result for result in request_.results(answers, events)}
    joined = cohort["visits"].merge(cohort["patients"], on="patient")
    people = found["people"].table.set_index("sex")["count"]
    for sex, number in cohort["patients"]["sex"].value_counts().items():
        assert people[sex] == pytest.approx(number, abs=15)
    assert found["people"].gain == 0  # patients are not the rows of visits
    assert joined.groupby("patient").size().max() <= 24
    visits = found["visits"].table.set_index(["sex", "drugs"])["count"]
    for (sex, drugs), number in joined.groupby(["sex", "drugs"]).size().items():
        assert visits[(sex, str(drugs))] == pytest.approx(number, abs=15)
    means = found["pressure"].table.set_index("sex")["mean"]
    own = pd.to_numeric(joined["systolic"]).groupby([joined["sex"], joined["patient"]]).mean()
    for sex in ("female", "male"):
        assert means[sex] == pytest.approx(own[sex].mean(), abs=1)
    assert found["commonest"].table["drugs"].iloc[0] == str(joined["drugs"].mode()[0])


def test_each_row_has_the_columns_of_its_own_patient(cohort: dict[str, pd.DataFrame]) -> None:
    """Without noise, counts are those of the joined tables, to the row. The twin: the next one."""
    request = StatisticsRequest.from_dict({"schema": "clinic", "statistics": ENTRIES[1:3]})
    assert request.linked is not None
    events = {
        one.event.name: replace(one.event, sigma=3.0) for one in shares_of_request(request, 1e-6)
    }
    read = read_linked_rows(
        open_linked(cohort, request.linked.schema), request.linked, SeededEntropy(1)
    )["visits"]
    joined = cohort["visits"].merge(cohort["patients"], on="patient")
    true = joined.groupby(["sex", "drugs"]).size(), joined.groupby("diabetes")["patient"].nunique()

    def off(rows: Any) -> int:
        answers: dict[str, list[Ints]] = {}
        for one in request.statistics:
            answers |= one.answer(rows, events, Silence())
        found = {result.name: result.table for result in request.results(answers, events)}
        by_drugs = found["visits"].set_index(["sex", "drugs"])["count"]
        by_illness = found["visitors"].set_index("diabetes")["count"]
        gaps = [by_drugs[(sex, str(drugs))] - n for (sex, drugs), n in true[0].items()]
        gaps += [by_illness[str(ill).capitalize()] - n for ill, n in true[1].items()]
        return int(sum(abs(gap) for gap in gaps))

    assert off(read) == 0
    of_patient = len(request.linked.asked["visits"].of_patient)
    codes = read.codes.copy()
    codes[:, :of_patient] = np.roll(codes[:, :of_patient], 1, axis=0)
    assert off(replace(read, codes=codes)) > 0


def test_a_patient_is_bounded_by_the_cap_of_the_table(request_: StatisticsRequest) -> None:
    caps = dict(zip([one.name for one in request_.statistics], request_.statistics, strict=True))
    assert caps["people"].rows_per_unit == 1
    assert {one.rows_per_unit for name, one in caps.items() if name != "people"} == {24}
    schema = LinkedSchema.load("clinic")
    many = simulate_cohort(3, seed=1)
    first = many["visits"].iloc[[0]]
    many["visits"] = pd.concat([first] * 60, ignore_index=True)
    linked = LinkedTables.of(schema)
    rows = read_linked_rows(open_linked(many, schema), linked, SeededEntropy(1))
    assert len(rows["visits"].units) == 24
    assert Unit.of(schema).max_rows == 1


def test_linked_statistics_are_charged_written_and_verified(
    request_: StatisticsRequest, cohort: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    for name, table in cohort.items():
        (tmp_path / "tables").mkdir(exist_ok=True)
        table.to_csv(tmp_path / "tables" / f"{name}.csv", index=False)
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    dpsynth.statistics(
        tmp_path / "tables",
        request_,
        epsilon=1.0,
        delta=1e-6,
        dataset="clinic",
        ledger=ledger,
        output=tmp_path / "out",
    )
    [entry] = ledger.entries()
    loaded = Answers.load(tmp_path / "out")
    assert entry.status == "charged" and entry.run == loaded.digest
    assert loaded.request.facts == LinkedSchema.load("clinic")
    assert loaded.certificate.tables  # what of a patient counts
    certificate = loaded.certificate
    fewer = replace(certificate, tables=certificate.tables[:-1])
    assert claim_problems(loaded.request, fewer, loaded.stamps)[0].endswith("another schema")
    document = (tmp_path / "out" / "02-visits.csv").read_bytes()
    (tmp_path / "out" / "02-visits.csv").write_bytes(document.replace(b"female", b"femalf"))
    with pytest.raises(ArtifactError):
        Answers.load(tmp_path / "out")


def test_what_is_no_folder_of_tables_is_refused_before_the_charge(
    request_: StatisticsRequest, cohort: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "dataset": "clinic", "ledger": ledger}
    with pytest.raises(InputError, match="in place of a folder, database or workbook"):
        dpsynth.statistics(cohort["patients"], request_, **budget)
    one = StatisticsRequest.from_dict({"schema": "demo", "statistics": [ENTRIES[0]]})
    with pytest.raises(InputError, match="give one source"):
        dpsynth.statistics(cohort, one, **budget)
    assert ledger.entries() == []
