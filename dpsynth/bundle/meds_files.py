"""The files of a MEDS dataset: events, codes, splits and a description, in the standard's types.

The standard: https://github.com/Medical-Event-Data-Standard/meds
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth._util.strict_json import written
from dpsynth._version import __version__
from dpsynth.bundle.format import ManifestHeader
from dpsynth.tables.writer import SYNTHETIC_NOTE

VERSION = "0.4.1"
"""Of the standard."""
SPLITS = ("held_out", "tuning", *["train"] * 8)
"""The split of a patient, by the last digit of her number."""


def write_dataset(
    frame: pd.DataFrame, patients: npt.NDArray[np.int64], heading: ManifestHeader, folder: Path
) -> None:
    """Write a dataset.

    Args:
        frame: the events in order: subject, time, code, number and words.
        patients: all subjects, also those without an event.
        heading: of the bundle.
        folder: an empty one.
    """
    (folder / "data").mkdir()
    (folder / "metadata").mkdir()
    _write(_data(frame), folder / "data" / "0.parquet")
    _write(_codes(frame), folder / "metadata" / "codes.parquet")
    splits = pa.array([SPLITS[number % 10] for number in patients.tolist()])
    table = pa.table({"subject_id": pa.array(patients, pa.int64()), "split": splits})
    _write(table, folder / "metadata" / "subject_splits.parquet")
    (folder / "metadata" / "dataset.json").write_bytes(written(_dataset(heading)))


def _write(table: pa.Table, path: Path) -> None:
    """Write a table whose metadata say that it is synthetic."""
    pq.write_table(table.replace_schema_metadata(SYNTHETIC_NOTE), path)


def _data(frame: pd.DataFrame) -> pa.Table:
    """Return the table of events in the standard's types."""
    return pa.table(
        {
            "subject_id": pa.array(frame["subject"], pa.int64()),
            "time": pa.array(frame["time"].to_numpy().astype("datetime64[us]"), pa.timestamp("us")),
            "code": pa.array(frame["code"].tolist(), pa.string()),
            "numeric_value": pa.array(
                frame["number"].to_numpy(), pa.float32(), from_pandas=True, safe=False
            ),
        }
    )


def _codes(frame: pd.DataFrame) -> pa.Table:
    """Describe every code."""
    words = frame.drop_duplicates("code").sort_values("code")
    parents = pa.array([None] * len(words), pa.list_(pa.string()))
    return pa.table(
        {
            "code": pa.array(words["code"].tolist(), pa.string()),
            "description": pa.array(words["words"].tolist(), pa.string()),
            "parent_codes": parents,
        }
    )


def _name(title: str) -> str:
    """Say in the title that the data are synthetic, if the office's does not."""
    return title if "synthetic" in title.lower() else f"{title} (synthetic data)"


def _dataset(heading: ManifestHeader) -> dict[str, Any]:
    """Describe the dataset."""
    about = heading.about
    document = {
        "dataset_name": _name(heading.title),
        "dataset_version": about.version,
        "etl_name": "dpsynth export-meds",
        "etl_version": __version__,
        "meds_version": VERSION,
        "license": about.licence,
        "location_uri": about.homepage,
    }
    return {key: value for key, value in document.items() if value}
