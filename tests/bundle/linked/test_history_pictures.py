"""The report of linked tables shows synthetic patients in time, computed from the bundle alone."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter

from dpsynth.bundle import release, verify
from dpsynth.bundle.gates import HistoryProfile
from dpsynth.bundle.gates.histories import EventCurve, SamplePatient, event_curve, row_counts
from dpsynth.bundle.pages.report import history_pictures
from dpsynth.encoding import HistoryCodec, decode_histories, read_histories, with_keys
from dpsynth.errors import VerificationError
from dpsynth.ledger import Ledger
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import open_linked, write_linked

from ...support.clinic_office import TableForger, ruled_schema
from ...support.linked_rows import frames as tables_of
from ...support.linked_rows import patient_rows, together
from ...support.linked_tables import package
from ...support.page_reader import Reader
from .conftest import PATIENTS


@pytest.fixture
def histories(cohort_bundle: Path) -> HistoryProfile:
    return HistoryProfile.of(cohort_bundle, ruled_schema())


@pytest.fixture
def frames(table_forger: TableForger) -> dict[str, pd.DataFrame]:
    tables = ("patients", "visits", "labs", "events")
    return {
        name: table_forger.frame(name).assign(
            patient=lambda frame: frame["patient"].str.removeprefix("synthetic-").astype(int)
        )
        for name in tables
    }


@pytest.mark.long
def test_sample_patients_are_those_of_the_tables(
    histories: HistoryProfile, frames: dict[str, pd.DataFrame]
) -> None:
    assert len(histories.samples) == 12 and histories.timed == ("visits", "labs")
    people = frames["patients"].set_index("patient")
    for one in histories.samples:
        own = people.loc[one.key]
        visits = frames["visits"].query("patient == @one.key")
        days = (pd.to_datetime(visits["date"]) - pd.to_datetime(own["included"])).dt.days
        assert one.rows[0] == tuple(days)
        assert one.last == own["followed"]
        assert len(one.rows[1]) == (frames["labs"]["patient"] == one.key).sum()
        assert len(one.events) == (frames["events"]["patient"] == one.key).sum()
        assert all(0 <= day <= one.last for _, day in one.events)
    keys = [one.key for one in histories.samples]
    assert keys == sorted(set(keys)) and keys[-1] > PATIENTS * 0.9


@pytest.mark.long
def test_rows_and_steps_are_counted(
    histories: HistoryProfile, frames: dict[str, pd.DataFrame]
) -> None:
    counts = {(one.table, one.days): one for one in histories.counts}
    assert list(counts) == [(name, days) for name in ("visits", "labs") for days in (False, True)]
    rows = counts["visits", False]
    per = frames["visits"].groupby("patient").size().reindex(range(1, PATIENTS + 1), fill_value=0)
    assert sum(one.rows for one in rows.bins) == PATIENTS
    assert rows.bins[0].rows == (per == 0).sum() and len(rows.bins) == per.max() + 1
    labs = frames["labs"].groupby(["patient", "test"]).size()
    assert counts["labs", True].whole == (labs - 1).sum()


def test_steps_of_a_test_do_not_mix_with_those_of_another() -> None:
    owners, kinds = np.array([0, 0, 0, 0, 1]), np.array([0, 1, 0, 1, 0])
    days = np.array([0.0, 0, 10, 100, 5])
    _, steps = row_counts("labs", owners, days, kinds, 3)
    assert {one.label: one.rows for one in steps.bins if one.rows} == {"8 to 30": 1, "92 to 182": 1}


def test_ranges_of_many_rows_have_their_ends() -> None:
    owners = np.repeat([0, 1], [3, 65])
    [rows] = row_counts("visits", owners, None, None, 3)
    assert [one.label for one in rows.bins][-1] == "63 to 65"
    assert [one.rows for one in rows.bins if one.rows] == [1, 1, 1]


def test_courses_hold_values_of_the_table(
    histories: HistoryProfile, frames: dict[str, pd.DataFrame]
) -> None:
    names = [(one.table, one.name) for one in histories.courses]
    assert names == [("visits", "systolic"), ("visits", "weight"), ("labs", "hba1c"),
                     ("labs", "creatinine")]  # fmt: skip
    course = histories.courses[0]
    known = frames["visits"].dropna(subset=["systolic"])
    assert {value for line in course.lines for _, value in line} <= set(known["systolic"])
    first, low, middle, high, count = course.quartiles[0]
    days = (
        pd.to_datetime(known["date"]).to_numpy()
        - pd.to_datetime(
            frames["patients"].set_index("patient")["included"].loc[known["patient"]]
        ).to_numpy()
    )
    early = known["systolic"][days / np.timedelta64(1, "D") < 2 * first].astype(float)
    assert count == len(early)
    found = [early.quantile(share, interpolation="lower") for share in (0.25, 0.5, 0.75)]
    assert np.allclose(found, (low, middle, high), atol=3)


def test_curves_are_those_of_kaplan_and_meier() -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 400, 300).astype(float)
    onset = np.where(rng.random(300) < 0.4, rng.integers(-20, 400, 300), np.inf).astype(float)
    onset[onset > ends] = np.inf
    curve = event_curve("stroke", onset, ends)
    at_risk = onset > 0
    fitter = KaplanMeierFitter().fit(np.minimum(onset, ends)[at_risk], np.isfinite(onset[at_risk]))
    for day, share in curve.steps:
        assert share == pytest.approx(float(fitter.predict(day)))
    assert curve.patients == at_risk.sum() and curve.happened == np.isfinite(onset[at_risk]).sum()


def test_the_page_shows_them(cohort_bundle: Path) -> None:
    reader = Reader((cohort_bundle / "report.html").read_text())
    keys = {values["id"] for _, values in reader.tags if "id" in values}
    assert {"histories", "samples-picture", "rows-1-picture", "course-4-picture"} <= keys
    assert {"event-1-picture", "event-2-picture", "event-3-picture"} <= keys


def test_histories_without_rows_are_drawn(histories: HistoryProfile) -> None:
    samples = tuple(replace(one, rows=((), ()), events=()) for one in histories.samples)
    bare = replace(histories, samples=samples, courses=(), curves=(), counts=())
    pictures = history_pictures(bare)
    assert pictures.samples is not None and pictures.courses == ()
    nothing = history_pictures(replace(bare, samples=()))
    assert nothing.samples is None


def test_a_page_of_other_histories_is_found(table_forger: TableForger) -> None:
    path = table_forger.bundle / "report.html"
    path.write_text(path.read_text().replace("<h3", '<h3 class="x"', 1))
    table_forger.relist()
    with pytest.raises(VerificationError, match=r"report\.html: does not match the other files"):
        verify(table_forger.bundle)


def test_tables_of_every_kind_are_drawn(tmp_path: Path) -> None:
    """By days before the origin, by dates, by order alone; tests that are categories."""
    schema = LinkedSchema.from_dict(package())
    codec = HistoryCodec(schema)
    rng = np.random.default_rng(1)
    rows = together([patient_rows(str(number), rng) for number in range(1, 61)])
    read = read_histories(open_linked(tables_of(rows), schema), codec, SeededEntropy(1))
    frames = decode_histories(read, codec, rng)
    keyed = with_keys(frames, schema, np.arange(1, len(read) + 1))
    write_linked([keyed], tmp_path / "data", published_tables(schema), kind=".parquet")
    found = HistoryProfile.of(tmp_path, schema)
    assert found.timed == ("labs", "visits") and found.patients == len(read)
    assert [(one.table, one.days) for one in found.counts if not one.days] == [
        (name, False) for name in ("labs", "visits", "orders")
    ]
    assert "orders" not in [one.table for one in found.counts if one.days]
    names = [(one.table, one.name, one.timed) for one in found.courses]
    assert names == [("labs", "hdl", True), ("visits", "sbp", True)]
    assert [one.event for one in found.curves] == ["stroke", "mi"]
    pictures = history_pictures(found)
    assert pictures.samples is not None and "year" in str(pictures.samples.picture)
    assert len(pictures.counts) == len(found.counts)


def crowded(tables: int, events: int) -> HistoryProfile:
    """Pictures of patients with rows in many tables of long names."""
    names = tuple(f"{'a long name of a table ' * 2}{n}" for n in range(tables))
    patient = SamplePatient(
        12345, -400, 900, tuple((float(n), 100.0) for n in range(tables)), (("event 0", 50.0),)
    )
    curves = tuple(
        EventCurve(f"event {n}", 1, 12, ((0.0, 1.0), (50.0, 0.9))) for n in range(events)
    )
    return HistoryProfile(12, -400, 1100, names, (patient,) * 12, (), (), curves, 61)


def elements(picture: str, name: str) -> list[dict[str, str]]:
    return [dict(one.attrib) | {"text": one.text or ""} for one in fromstring(picture).iter(name)]


@pytest.mark.parametrize("tables", [1, 3, 6, 14])
def test_ticks_of_many_tables_have_lanes_within_the_bar_of_their_patient(tables: int) -> None:
    picture = history_pictures(crowded(tables, 1)).samples
    assert picture is not None
    bars = [one for one in elements(picture.picture, "rect") if one["class"] == "track"]
    top, height = float(bars[0]["y"]), float(bars[0]["height"])
    second = float(bars[1]["y"])
    assert second >= top + height
    paths = [one for one in elements(picture.picture, "path") if one["class"].startswith("row-")]
    ticks = [re.findall(r"[-\d.]+", one["d"]) for one in paths[: 2 * tables]]
    ends = [(float(tick[1]), float(tick[3])) for tick in ticks]
    assert all(top <= start < stop <= top + height for start, stop in ends)
    assert min(stop - start for start, stop in ends) >= 3.8
    assert len({start for start, _ in ends}) == tables


def test_names_of_a_crowded_legend_do_not_overlap_or_leave_the_picture() -> None:
    picture = history_pictures(crowded(14, 9)).samples
    assert picture is not None
    _, _, width, height = map(float, fromstring(picture.picture).attrib["viewBox"].split())
    axis = max(
        float(one["y"]) for one in elements(picture.picture, "text") if "year" in one["text"]
    )
    names = [one for one in elements(picture.picture, "text") if float(one["y"]) > axis]
    assert len(names) == 14 + 9
    places = [(float(one["y"]), float(one["x"]), 7.5 * len(one["text"])) for one in names]
    for (y, x, length), (other, start, _) in itertools.pairwise(sorted(places)):
        assert x + length <= width and y <= height
        assert other != y or x + length <= start
    for one in elements(picture.picture, "text"):
        if "year" in one["text"]:
            half = 3.9 * len(one["text"])
            assert half <= float(one["x"]) <= width - half


def test_captions_of_long_names_break(cohort_bundle: Path) -> None:
    page = (cohort_bundle / "report.html").read_text()
    [rule] = re.findall(r"\.pictures figcaption \{([^}]*)\}", page)
    assert "overflow-wrap: anywhere" in rule


def test_courses_are_of_every_table_and_say_of_how_many_they_are(
    office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.bundle.gates.histories.COURSES", 3)
    ledger = Ledger(office / "ledger.sqlite")
    bundle = release(office / "run", office / "second", size=60, seed=7, ledger=ledger)
    histories = HistoryProfile.of(bundle, ruled_schema())
    assert {one.table for one in histories.courses} == {"visits", "labs"}
    assert (len(histories.courses), histories.values) == (3, 4)
    assert "These are 3 of 4 values that are numbers" in (bundle / "report.html").read_text()
    first = (office / "bundle/report.html").read_text()
    assert "values that are numbers" not in first  # all of them are shown


def test_time_in_hours_is_called_so() -> None:
    profile = replace(crowded(1, 1), first=0, last=2000, noun="hour")
    samples = history_pictures(profile).samples
    assert samples is not None
    assert "hour 2,000" in samples.picture and "year" not in samples.picture
    assert samples.rows[0][1] == "hour 900" and samples.rows[0][-1] == "event 0 at hour 50"
