"""P15: files that are released see nothing of the table that the fit was given.

Given a run and its ledger, the bundle is the same to the byte whatever table lies around: the
source, a neighbour, none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle import release
from dpsynth.encoding import Codec, typed_frames
from dpsynth.errors import GateError
from dpsynth.schema import Schema
from dpsynth.synthesis import Sample
from dpsynth.tables import write_table

from ..support.some_cases import each_generator

Visits = Callable[[int], pd.DataFrame]
Files = Callable[[Path], dict[str, bytes]]
Release = Callable[[Path, Path], None]
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "dataset": "clinic"}


def released(folder: Path, bundle: Path) -> None:
    release(folder / "run", bundle, size=120, seed=4)


def released_with_scores(folder: Path, bundle: Path) -> None:
    """Broken twin: if it finds the source, it says how close the table is to it."""
    released(folder, bundle)
    source = folder / "source.csv"
    if source.exists():
        real, drawn = pd.read_csv(source), pd.read_csv(bundle / "data/synthetic.csv")
        scores = {"age": float(abs(real["age"].mean() - drawn["age"].mean()))}
        (bundle / "scores.json").write_text(json.dumps(scores))


def sees_the_source(make: Release, folder: Path, tables: list[pd.DataFrame], files: Files) -> bool:
    """Whether bundles differ by the table that lies beside the run, in the working folder, or is
    named by the environment."""
    contents = []
    for number, table in enumerate([*tables, None]):
        (folder / "source.csv").unlink(missing_ok=True)
        if table is not None:
            table.to_csv(folder / "source.csv", index=False)
        bundle = folder / f"{make.__name__}{number}"
        make(folder, bundle)
        contents.append(files(bundle))
    return any(content != contents[0] for content in contents)


@pytest.mark.usefixtures("few_steps", "quick_plans")
@pytest.mark.parametrize("model", each_generator("tvae"))
def test_a_bundle_is_the_same_whatever_table_lies_around(
    model: str, clinic: Schema, visits: Visits, office: Path, files_of: Files
) -> None:
    frame = visits(70)
    frame.to_csv(office / "source.csv", index=False)
    dpsynth.fit(office / "source.csv", clinic, model=model, output=office / "run", **SETTINGS)
    neighbour = frame[frame["patient"] != "p0002"]
    tables = [frame, neighbour, neighbour.assign(age="99", sex="?")]
    assert not sees_the_source(released, office, tables, files_of)
    assert sees_the_source(released_with_scores, office, tables, files_of)


def test_the_source_itself_is_not_released_as_a_table(
    clinic: Schema, visits: Visits, office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private table in the place of a drawn one is refused, for it was not drawn."""
    frame = visits(70)
    dpsynth.fit(frame, clinic, model="independent", output=office / "run", **SETTINGS)
    frame[list(Codec(clinic).names)].to_csv(office / "raw.csv", index=False)
    write_table(typed_frames(office / "raw.csv", clinic), office / "source.csv", clinic)
    with pytest.raises(GateError, match="is not recorded"):
        release(office / "run", office / "bundle", table=office / "source.csv")
    assert not (office / "bundle").exists()
    # Broken twin: a release that takes any table that fits the schema lets it out.
    digest = hashlib.sha256((office / "source.csv").read_bytes()).hexdigest()
    recorded = Sample("source.csv", {"synthetic": digest}, ".csv", size=len(frame), seed=1)
    monkeypatch.setattr("dpsynth.bundle.writer.recorded_as", lambda folder, *rest: recorded)
    release(office / "run", office / "bundle", table=office / "source.csv")
    private = (office / "source.csv").read_bytes()
    assert (office / "bundle/data/synthetic.csv").read_bytes() == private
