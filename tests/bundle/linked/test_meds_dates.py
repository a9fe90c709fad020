"""Every date and time of day of a bundle is an event, and a release can write the events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import meds
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth._util.strict_json import read_document, written
from dpsynth.bundle import export_meds, release, tables_without_time, verify, write_dpia
from dpsynth.bundle.format import About, ManifestHeader, Provenance
from dpsynth.encoding import HistoryCodec, decode_histories, with_keys
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import write_linked

from ...support.dated_tables import hourly_rows, in_hours
from ...support.linked_rows import read
from ...support.linked_tables import field, package, plain

HOUR = {"after": "date", "longest": 90, "unit": "h", "bounds_basis": "protocol"}
CLOCK = {"bounds_basis": "the whole day"}


def stays(kind: str) -> LinkedSchema:
    """Visits that end on a date of their own, with times of day; patients get up at one."""
    document = package()
    document["resources"] = document["resources"][:1] + document["resources"][3:]
    patients, visits = (document["resources"][place]["schema"]["fields"] for place in (0, 1))
    patients += [field("rises", "time", CLOCK), field("born", "date", {"bounds_basis": "x"})]
    patients[-1]["constraints"] = {"minimum": "1900-01-01", "maximum": "2000-01-01"}
    visits[1]["type"] = kind
    gap = HOUR if kind == "datetime" else HOUR | {"unit": "d"}
    visits += [plain("left", kind, **gap), field("seen", "time", CLOCK)]
    return LinkedSchema.from_dict(document)


def folder_of(kind: str, place: Path) -> Path:
    """A bundle's tables with two patients and three visits, the last without its second date."""
    schema, day = stays(kind), np.array(["2005-03-01", "2005-04-01", "2006-01-01"])
    at = pd.to_datetime(day).to_series(index=range(3)).astype("datetime64[s]")
    left = at + pd.to_timedelta([30, 0, 0], unit="h" if kind == "datetime" else "D")
    left = left.where(np.array([True, True, False]))
    clock = [pd.Timestamp("2000-01-01 08:30").time(), None, pd.Timestamp("2000-01-01").time()]
    index = pd.to_datetime(["2005-01-01", "2005-06-01"]).astype("datetime64[s]")
    born = pd.Series(pd.to_datetime(["1950-02-03", None])).astype("datetime64[s]")
    patients = pd.DataFrame(
        {
            "id": ["synthetic-1", "synthetic-2"],
            "sex": ["F", "M"],
            "end": [900, 900],
            "index": index,
            "rises": clock[:2],
        }
    ).assign(born=born)
    visits = pd.DataFrame(
        {"id": ["synthetic-1", "synthetic-1", "synthetic-2"], "date": at, "sbp": [120, 130, 140]}
    )
    visits = visits.assign(ward=["a", "b", "c"], left=left, seen=clock)
    orders = pd.DataFrame({"id": ["synthetic-1"], "number": [1], "drug": ["x"]})
    tables = {"patients": patients, "visits": visits, "orders": orders}
    write_linked([tables], place / "data", published_tables(schema), kind=".parquet")
    heading = ManifestHeader(schema, Provenance("cohort", "a" * 64, 2, 1), About())
    (place / "schema.json").write_bytes(written(schema.to_dict()))
    (place / "datapackage.json").write_bytes(written(heading.to_dict()))
    return place


@pytest.fixture(params=["date", "datetime"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def events(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.setattr("dpsynth.bundle.meds.verify", lambda folder: [])
    export_meds(folder_of(kind, tmp_path / "bundle"), tmp_path / "events")
    table = pq.read_table(tmp_path / "events/data/0.parquet")
    meds.DataSchema.validate(table)
    return table.to_pandas()


def times(events: pd.DataFrame, code: str) -> list[str]:
    return events[events["code"] == code]["time"].astype(str).tolist()


def test_the_second_date_of_a_row_is_an_event_at_its_own_time(
    events: pd.DataFrame, kind: str
) -> None:
    assert times(events, "visits") == ["2005-03-01", "2005-04-01", "2006-01-01"]
    first = "2005-03-02 06:00:00" if kind == "datetime" else "2005-03-31"
    assert times(events, "visits//left")[0].startswith(first)
    assert len(times(events, "visits//left")) == 2  # a missing date is none


def test_a_time_of_day_is_an_event_on_the_day_of_its_row(events: pd.DataFrame) -> None:
    assert times(events, "visits//seen") == ["2005-03-01 08:30:00", "2006-01-01 00:00:00"]


def test_the_baseline_keeps_its_dates_and_times_of_day(events: pd.DataFrame) -> None:
    assert times(events, "patients//born") == ["1950-02-03"]
    own = events[events["code"] == "patients//rises"]
    assert own["time"].isna().all() and own["numeric_value"].tolist() == [8.5]


def test_events_stand_in_order_of_their_own_times(events: pd.DataFrame) -> None:
    for _, own in events.groupby("subject_id"):
        assert own["time"].dropna().is_monotonic_increasing
    first = events[events["subject_id"] == 1]["code"].tolist()
    assert first.index("visits//left") > first.index("visits//seen") > first.index("visits")


def test_no_cell_of_a_date_or_time_of_day_is_lost(
    events: pd.DataFrame, kind: str, tmp_path: Path
) -> None:
    """Each filled cell of each written column is an event, however many dates a row has."""
    schema = stays(kind)
    for table in (schema.patients, schema.child("visits").schema):
        cells = pd.read_parquet(tmp_path / f"bundle/data/synthetic-{table.name}.parquet")
        own = events["code"].str.startswith(f"{table.name}//")
        names = [name for name in cells if name not in ("id", schema.child("visits").time)]
        assert own.sum() == cells[names].notna().sum().sum()


def released(office: Path, **how: Any) -> Path:
    return release(
        office / "run",
        office / "second",
        size=20,
        seed=1,
        ledger=Ledger(office / "ledger.sqlite"),
        **how,
    )


def test_a_release_writes_the_events_of_its_bundle(office: Path) -> None:
    bundle = released(office, meds=office / "events")
    verify(bundle)
    export_meds(bundle, office / "again")
    for name in ("data/0.parquet", "metadata/codes.parquet", "metadata/dataset.json"):
        assert (office / "events" / name).read_bytes() == (office / "again" / name).read_bytes()
    assert tables_without_time(bundle) == ()


def test_a_release_writes_the_draft_of_its_bundle(office: Path) -> None:
    bundle = released(office, meds=office / "events", dpia=office / "drafts/draft.txt")
    verify(bundle)
    write_dpia(bundle, office / "again.txt")
    assert (office / "drafts/draft.txt").read_bytes() == (office / "again.txt").read_bytes()
    with pytest.raises(InputError, match="exists"):
        write_dpia(bundle, office / "again.txt")


@pytest.mark.parametrize("dpia", ["second/draft.txt", "events/draft.txt", "events"])
def test_a_draft_is_apart_from_bundle_and_events(office: Path, dpia: str) -> None:
    with pytest.raises(InputError, match="neither can lie"):
        released(office, meds=office / "events", dpia=office / dpia)
    assert not (office / "second").exists() and not (office / "events").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("run", "exists"), ("second/events", "neither can lie"), ("second", "neither can lie")],
)
def test_events_have_a_new_folder_beside_the_bundle(office: Path, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        released(office, meds=office / name)
    assert not (office / "second").exists()


def test_neither_appears_if_the_events_cannot_be_written(
    office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the ledger has no release."""
    before = (office / "ledger.sqlite").read_bytes()

    def full(folder: Path, temporary: Path) -> None:
        (temporary / "data").mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpsynth.bundle.writer.write_events", full)
    with pytest.raises((InputError, OSError)):
        released(office, meds=office / "events", dpia=office / "draft.txt")
    names = ("second", "events", "draft.txt")
    assert not any((office / name).exists() for name in names)
    assert (office / "ledger.sqlite").read_bytes() == before


def test_the_command_writes_both(
    office: Path, command_line: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(office / "ledger.sqlite"))
    words = ("release", office / "run", "--patients", 20, "-o", office / "third")
    ended = command_line(*words, "--meds", office / "events", "--json")
    assert ended.code == 0 and ended.json["meds"] == str(office / "events")
    assert len(pd.read_parquet(office / "events/data/0.parquet"))
    assert read_document(office / "events/metadata/dataset.json")["meds_version"] == "0.4.1"


def test_a_run_of_a_single_table_has_no_events(
    run_folder: Path, command_line: Callable[..., Any]
) -> None:
    ended = command_line("release", run_folder, "-o", "b", "--meds", "events")
    assert ended.code == 2 and "MEDS needs linked tables" in ended.err
    assert not Path("b").exists()


@pytest.mark.parametrize("kind", ["datetime", "integer"])
def test_hours_are_exported_as_hours(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.bundle.meds.verify", lambda folder: [])
    document = in_hours(kind=kind)
    schema, place = LinkedSchema.from_dict(document), tmp_path / "bundle"
    drawn = read(hourly_rows(5, kind), document=document)
    tables = decode_histories(drawn, HistoryCodec(schema), np.random.default_rng(1))
    made = with_keys(tables, schema, np.arange(1, 6))
    write_linked([made], place / "data", published_tables(schema), kind=".parquet")
    heading = ManifestHeader(schema, Provenance("cohort", "a" * 64, 5, 1), About())
    (place / "schema.json").write_bytes(written(schema.to_dict()))
    (place / "datapackage.json").write_bytes(written(heading.to_dict()))
    export_meds(place, tmp_path / "events")
    events = pq.read_table(tmp_path / "events/data/0.parquet").to_pandas()
    for subject, own in events[events["code"] == "vitals"].groupby("subject_id"):
        since = own["time"] - own["time"].iloc[0]
        hours = (since / pd.Timedelta(hours=1)).tolist()
        assert hours == list(range(drawn.ends[subject - 1]))
        [end] = events[(events["code"] == "patients//left") & (events["subject_id"] == subject)][
            "time"
        ]
        whole = (end - own["time"].iloc[0]) // pd.Timedelta(hours=1)
        assert whole == drawn.ends[subject - 1]
