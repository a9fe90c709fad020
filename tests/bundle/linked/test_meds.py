"""Events of a bundle are a MEDS dataset, as the package of that standard reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import meds
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpsynth._util.strict_json import written
from dpsynth.bundle import export_meds, verify, write_dpia
from dpsynth.bundle.format import About, ManifestHeader, Provenance
from dpsynth.bundle.meds import VERSION
from dpsynth.encoding import HistoryCodec, decode_histories, with_keys
from dpsynth.errors import InputError, VerificationError
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import write_linked

from ...support.linked_rows import frames, patient_rows, read, together
from ...support.linked_tables import package


@pytest.fixture
def events(cohort_bundle: Path, tmp_path: Path) -> Path:
    """The events of the bundle."""
    export_meds(cohort_bundle, tmp_path / "events")
    return tmp_path / "events"


def test_the_standard_accepts_every_file(events: Path) -> None:
    meds.DataSchema.validate(pq.read_table(events / meds.data_subdirectory / "0.parquet"))
    meds.CodeMetadataSchema.validate(pq.read_table(events / meds.code_metadata_filepath))
    meds.SubjectSplitSchema.validate(pq.read_table(events / meds.subject_splits_filepath))
    document = json.loads((events / meds.dataset_metadata_filepath).read_text())
    meds.DatasetMetadataSchema.validate(document)
    assert document["meds_version"] == VERSION == meds.__version__


def test_events_are_those_of_the_tables(events: Path, cohort_bundle: Path) -> None:
    data = pd.read_parquet(events / "data/0.parquet")
    tables = {
        name: pd.read_parquet(cohort_bundle / f"data/synthetic-{name}.parquet")
        for name in ("patients", "visits", "labs", "events")
    }
    counts = data["code"].value_counts()
    assert counts["visits"] == len(tables["visits"])
    assert counts["visits//systolic"] == tables["visits"]["systolic"].notna().sum()
    assert counts["visits//drugs//2"] == (tables["visits"]["drugs"] == 2).sum()
    assert counts.get("events//death", 0) == (tables["events"]["event"] == "death").sum()
    assert counts["patients//sex//female"] == (tables["patients"]["sex"] == "female").sum()
    assert counts["patients//diabetes//true"] == tables["patients"]["diabetes"].sum()
    assert counts["patients//followed"] == len(tables["patients"])
    own = data[data["code"] == "labs//hba1c"]
    labs = tables["labs"][tables["labs"]["test"] == "hba1c"].dropna(subset="value")
    assert own["numeric_value"].tolist() == labs["value"].astype("float32").tolist()
    assert own["time"].dt.date.tolist() == labs["date"].tolist()
    assert ("synthetic-" + own["subject_id"].astype(str)).tolist() == labs["patient"].tolist()


def test_a_subject_stands_together_in_order_of_time_and_ends_last(events: Path) -> None:
    data = pd.read_parquet(events / "data/0.parquet")
    assert data["subject_id"].is_monotonic_increasing
    for _, own in data.groupby("subject_id"):
        times = own["time"]
        static = times.isna().to_numpy()
        assert not static[static.argmin() :].any()  # values without a time come first
        assert times.dropna().is_monotonic_increasing
        assert own["code"].iloc[-1] == "patients//followed"


def test_every_code_is_described_and_every_patient_has_a_split(events: Path) -> None:
    data = pd.read_parquet(events / "data/0.parquet")
    codes = pd.read_parquet(events / "metadata/codes.parquet")
    assert set(codes["code"]) == set(data["code"]) and codes["description"].notna().all()
    described = codes.set_index("code")["description"]
    assert described["labs//hba1c"].endswith(" (%)") and described["visits//drugs//2"][-3:] == ": 2"
    splits = pd.read_parquet(events / "metadata/subject_splits.parquet")
    assert set(splits["subject_id"]) == set(data["subject_id"])
    assert splits["split"].value_counts().to_dict() == {"train": 48, "tuning": 6, "held_out": 6}


def test_days_count_from_one_date_and_rows_without_time_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cohort of tables in days and in order alone, put where a bundle has it."""
    document = package()
    document["resources"] = [one for one in document["resources"] if one["name"] != "visits"]
    schema = LinkedSchema.from_dict(document)
    rows = frames(together([patient_rows(f"p{n}", np.random.default_rng(n)) for n in range(9)]))
    histories = read({k: v for k, v in rows.items() if k != "visits"}, document=document)
    drawn = decode_histories(histories, HistoryCodec(schema), np.random.default_rng(1))
    cohort = with_keys(drawn, schema, np.arange(1, 10))
    bundle = tmp_path / "bundle"
    write_linked([cohort], bundle / "data", published_tables(schema), kind=".parquet")
    drawing = Provenance("cohort", "a" * 64, 9, 1)
    heading = ManifestHeader(schema, drawing, About())
    (bundle / "schema.json").write_bytes(written(schema.to_dict()))
    (bundle / "datapackage.json").write_bytes(written(heading.to_dict()))
    monkeypatch.setattr("dpsynth.bundle.meds.verify", lambda folder: [])
    done = export_meds(bundle, tmp_path / "events")
    assert (done.patients, done.left_out) == (9, ("orders",))
    data = pd.read_parquet(tmp_path / "events/data/0.parquet")
    ends = data[data["code"] == "patients//end"]
    days = (ends["time"] - pd.Timestamp("2000-01-01")).dt.days
    assert days.tolist() == cohort["patients"]["end"].tolist()
    assert not data["code"].str.startswith("orders").any()
    assert {"labs//smoke//1", "labs//hdl", "labs//fasting//no"} <= set(data["code"])


def test_a_changed_bundle_is_not_exported(cohort_bundle: Path, tmp_path: Path) -> None:
    (cohort_bundle / "CARD.md").write_text("x")
    with pytest.raises(VerificationError):
        export_meds(cohort_bundle, tmp_path / "events")
    assert not (tmp_path / "events").exists()


def test_a_single_table_has_no_events(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a single table"):
        export_meds(bundle, tmp_path / "events")


def test_the_command_says_what_it_wrote(
    cohort_bundle: Path, tmp_path: Path, command_line: Callable[..., Any]
) -> None:
    both = ("--meds", "new", "--dpia", "draft.txt")
    outcome = command_line("release", cohort_bundle, *both, "--json")
    assert outcome.code == 0 and outcome.json["patients"] == 60
    assert outcome.json["events"] == len(pd.read_parquet(tmp_path / "new/data/0.parquet"))
    assert outcome.json["dpia"] == "draft.txt"
    assert (tmp_path / "draft.txt").read_text().startswith("Processing. ")
    outcome = command_line("release", cohort_bundle, "--meds", "other", "--dpia", "draft.txt")
    assert outcome.code == 2 and not (tmp_path / "other").exists()


def test_nothing_is_written_into_a_bundle(cohort_bundle: Path) -> None:
    with pytest.raises(InputError, match="inside the bundle"):
        export_meds(cohort_bundle, cohort_bundle / "events")
    with pytest.raises(InputError, match="inside the bundle"):
        write_dpia(cohort_bundle, cohort_bundle / "draft.txt")
    verify(cohort_bundle)
