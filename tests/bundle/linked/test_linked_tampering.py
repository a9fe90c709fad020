"""Each way in which linked tables can contradict each other or their schema is found and named.

Every change is written in both formats as a release would write it, and the manifest is renewed, so
that only the check in question can find it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle import release, verify

from ...support.clinic_office import RULE, TableForger

Change = Callable[[pd.DataFrame], pd.DataFrame]


def with_cell(column: str, place: int, value: Any) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        frame.loc[frame.index[place], column] = value
        return frame

    return change


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    """The first row stands there twice."""
    return pd.concat([frame.iloc[:1], frame], ignore_index=True)


def many_times(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.iloc[[0] * 30], frame], ignore_index=True)


def swapped(frame: pd.DataFrame) -> pd.DataFrame:
    """The first and the last row change places."""
    order = [len(frame) - 1, *range(1, len(frame) - 1), 0]
    return frame.iloc[order].reset_index(drop=True)


TABLES: dict[str, tuple[str, Change, str]] = {
    "a row of nobody": (
        "labs",
        with_cell("patient", -1, "synthetic-61"),
        "data/synthetic-labs.parquet: has rows of patients whom table patients does not have",
    ),
    "a patient with another number": (
        "patients",
        with_cell("patient", -1, "synthetic-61"),
        "data/synthetic-patients.parquet: does not number its patients from 1, in order",
    ),
    "patients in another order": (
        "patients",
        swapped,
        "data/synthetic-patients.parquet: does not number its patients from 1, in order",
    ),
    "rows in another order": (
        "visits",
        swapped,
        "data/synthetic-visits.parquet: does not have its rows in the order of its patients",
    ),
    "an event twice": (
        "events",
        twice,
        "data/synthetic-events.parquet: has an event of a patient twice; each happens once",
    ),
    "more visits than are kept": (
        "visits",
        many_times,
        "data/synthetic-visits.parquet: has more than 24 rows of a patient, the most that are kept",
    ),
    "more values of a test than are kept": (
        "labs",
        many_times,
        "synthetic-labs.parquet: has more than 16 rows of a test of a patient, the most that are "
        "kept",
    ),
    "a key with leading zeros": (
        "patients",
        with_cell("patient", 0, "synthetic-001"),
        "is not written as a release writes it: something may hide in it",
    ),
    "a key that is no number": (
        "patients",
        with_cell("patient", 0, "Miller"),
        "data/synthetic-patients.parquet: column 'patient': not of type integer: 1 cell",
    ),
    "a patient less than the manifest says": (
        "patients",
        lambda frame: frame.iloc[:-1],
        "data/synthetic-patients.parquet: has another number of rows than the manifest says",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_table_is_found(table_forger: TableForger, name: str) -> None:
    table, change, words = TABLES[name]
    table_forger.retable(table, change)
    findings = table_forger.findings()
    assert words in findings
    assert "Miller" not in findings


def days_of(forger: TableForger, name: str) -> pd.DataFrame:
    """A table with the origin, the end of follow-up, the day and the date of each row."""
    patients = forger.frame("patients")[["patient", "included", "followed"]]
    frame = forger.frame(name).reset_index(drop=True).merge(patients, on="patient", how="left")
    return frame.assign(day=(frame["date"] - frame["included"]).dt.days)


def put_days(forger: TableForger, name: str, frame: pd.DataFrame) -> None:
    """Write such a table back, with its dates from its days."""
    dates = frame["included"] + pd.to_timedelta(frame["day"], unit="D")
    forger.put(name, frame.assign(date=dates.astype("datetime64[s]")))


def last_rows(frame: pd.DataFrame) -> pd.Series:
    return ~frame.duplicated("patient", keep="last")


def test_a_day_outside_the_window_is_found(table_forger: TableForger) -> None:
    frame = days_of(table_forger, "visits")
    early = last_rows(frame) & (frame["included"] < "2017-01-01")
    frame.loc[frame.index[early][0], "day"] = 1_827
    put_days(table_forger, "visits", frame)
    words = "data/synthetic-visits.parquet: has days outside the declared window, 0 to 1826"
    assert words in table_forger.findings()


@pytest.mark.parametrize("name", ["visits", "labs", "events"])
def test_a_day_after_the_end_of_follow_up_is_found(table_forger: TableForger, name: str) -> None:
    frame = days_of(table_forger, name)
    place = frame.index[last_rows(frame) & (frame["followed"] < 1_826)][0]
    frame.loc[place, "day"] = frame["followed"][place] + 1
    put_days(table_forger, name, frame)
    words = f"{name}.parquet: has days after the end of a patient's follow-up, column 'followed'"
    assert words in table_forger.findings()


def test_rows_against_the_order_of_time_are_found(table_forger: TableForger) -> None:
    frame = days_of(table_forger, "visits")
    later = frame.index[(frame["patient"].shift() == frame["patient"]) & (frame["day"] > 0)][0]
    frame.loc[later - 1, "day"] = frame["day"][later]
    frame.loc[later, "day"] = frame["day"][later] - 1
    put_days(table_forger, "visits", frame)
    assert "does not have the rows of each patient in order of time" in table_forger.findings()


def test_rows_of_a_patient_too_far_apart_are_found(table_forger: TableForger) -> None:
    frame = days_of(table_forger, "visits")
    followed = frame["followed"] > 1_000
    single = frame[followed].groupby("patient").filter(lambda rows: len(rows) > 1).index
    owner = frame["patient"][single[0]]
    rows = frame.index[frame["patient"] == owner]
    frame.loc[rows[0], "day"] = 0
    frame.loc[rows[1:], "day"] = 900
    put_days(table_forger, "visits", frame)
    assert "has rows of a patient more than 730 days apart" in table_forger.findings()


def test_a_broken_temporal_rule_is_found(table_forger: TableForger) -> None:
    visits = days_of(table_forger, "visits")
    events = days_of(table_forger, "events")
    patient = next(key for key in events["patient"] if key in set(visits["patient"]))
    visits.loc[(visits["patient"] == patient) & (visits["day"] == 0), "day"] = 1
    put_days(table_forger, "visits", visits)
    mine = events.index[events["patient"] == patient]
    events.loc[mine, "day"] = 0
    events.loc[mine[-1], "event"] = "death"
    events = events.drop_duplicates(["patient", "event"], keep="last")
    put_days(table_forger, "events", events)
    assert f"rule '{RULE}': some patients break it" in table_forger.findings()


def test_a_value_is_held_to_the_bounds_of_its_own_test(table_forger: TableForger) -> None:
    frame = table_forger.frame("labs").reset_index(drop=True)
    place = int(np.flatnonzero(frame["test"] == "hba1c")[0])
    table_forger.put("labs", with_cell("value", place, 500.0)(frame))
    findings = table_forger.findings()
    for suffix in (".parquet", ".csv"):
        assert (
            f"data/synthetic-labs{suffix}: column 'hba1c': above the maximum, 16.0: 1 cell"
            in findings
        )


def test_a_test_that_is_not_declared_is_found(table_forger: TableForger) -> None:
    table_forger.retable("labs", with_cell("test", 0, "Miller"))
    findings = table_forger.findings()
    assert "column 'test': none of the 2 categories: 1 cell" in findings
    assert "Miller" not in findings


def test_tables_in_two_formats_that_differ_are_found(
    table_forger: TableForger, office: Path
) -> None:
    other = release(office / "run", office / "other", size=60, seed=8)
    shutil.copyfile(other / "data/synthetic-labs.csv", office / "bundle/data/synthetic-labs.csv")
    table_forger.relist()
    assert (
        "data/synthetic-labs.csv: has other rows than data/synthetic-labs.parquet"
        in table_forger.findings()
    )


def test_tables_of_two_bundles_do_not_fit_together(table_forger: TableForger, office: Path) -> None:
    """Both formats are swapped: keys or days of follow-up no longer agree."""
    other = release(office / "run", office / "other", size=60, seed=8)
    for suffix in (".parquet", ".csv"):
        shutil.copyfile(
            other / f"data/synthetic-visits{suffix}",
            office / f"bundle/data/synthetic-visits{suffix}",
        )
    table_forger.relist()
    assert "data/synthetic-visits.parquet: has days" in table_forger.findings()


def test_an_unchanged_bundle_verifies(cohort_bundle: Path, table_forger: TableForger) -> None:
    """Also when its tables are written anew by the forger, who changes nothing."""
    checks = verify(cohort_bundle)
    assert "keys agree: every row of 3 tables belongs to one of 60 patients" in checks
    for name in ("patients", "visits", "labs", "events"):
        table_forger.retable(name, lambda frame: frame)
    assert verify(cohort_bundle) == checks
