"""Tables of a bundle whose rows keep a calendar, or count from one date, are checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.checks import Findings, check_cohort
from dpsynth.encoding import HistoryCodec, decode_histories, with_keys
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import write_linked

from ...support.dated_tables import dated, dated_rows, from_one_date, rows_from_one_date
from ...support.linked_rows import read

Tables = dict[str, pd.DataFrame]
HOURS = LinkedSchema.from_dict(dated(("weekday", "hour")))
ONE_DATE = LinkedSchema.from_dict(from_one_date())


def cohort(schema: LinkedSchema) -> Tables:
    tables = dated_rows(40) if schema is HOURS else rows_from_one_date(40)
    histories = read(tables, document=schema.to_dict())
    drawn = decode_histories(histories, HistoryCodec(schema), np.random.default_rng(1))
    return with_keys(drawn, schema, np.arange(1, len(histories) + 1))


def problems(folder: Path, made: Tables, schema: LinkedSchema) -> list[str]:
    write_linked([made], folder / "data", published_tables(schema), kind=".parquet")
    findings = Findings()
    check_cohort(folder, schema, findings)
    return [problem.message for problem in findings.problems]


@pytest.mark.parametrize("schema", [HOURS, ONE_DATE], ids=["hours", "one date"])
def test_a_cohort_passes(schema: LinkedSchema, tmp_path: Path) -> None:
    assert problems(tmp_path, cohort(schema), schema) == []


def swapped(made: Tables) -> None:
    visits = made["visits"]
    first = visits["date"].iloc[0].normalize()
    visits.loc[visits.index[:2], "id"] = visits["id"].iloc[0]
    visits.loc[visits.index[0], "date"] = first + pd.Timedelta(hours=9)
    visits.loc[visits.index[1], "date"] = first + pd.Timedelta(hours=8)


def early(made: Tables) -> None:
    made["visits"].loc[0, "date"] = pd.Timestamp("2002-12-31")


def late(made: Tables) -> None:
    owner = made["visits"]["id"].iloc[-1]
    end = made["patients"].set_index("id")["end"].loc[owner]
    made["visits"].loc[len(made["visits"]) - 1, "date"] = end + pd.Timedelta(days=1)


@pytest.mark.parametrize(
    ("schema", "change", "words"),
    [
        (HOURS, swapped, "does not have the rows of each patient in order of time"),
        (ONE_DATE, early, "column 'date': below the minimum, 2003-01-01: 1 cell"),
        (ONE_DATE, late, "has days after the end of a patient's follow-up, column 'end'"),
    ],
    ids=["swapped", "early", "late"],
)
def test_a_cohort_that_breaks_it_is_found(
    schema: LinkedSchema, change: Callable[[Tables], None], words: str, tmp_path: Path
) -> None:
    made = cohort(schema)
    change(made)
    found = problems(tmp_path, made, schema)
    assert [message for message in found if words in message]


def test_hours_are_refused_where_the_schema_keeps_none(tmp_path: Path) -> None:
    without = LinkedSchema.from_dict(dated(("weekday",)))
    assert "has times of day, which are not modelled" in problems(tmp_path, cohort(HOURS), without)
