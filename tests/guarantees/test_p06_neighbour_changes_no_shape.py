"""P06, end to end: a neighbour's odd cell changes nothing that can be seen but noisy numbers.

The check: the command line fits, samples and releases a table and its neighbours (an unseen
category, one more decimal, one NaN, a patient more or less, ...). Exit codes, every line on stdout
and stderr, the list of files, the keys and public values of every document, and the shape and type
of every array are the same. How many bins a column is merged into depends on noisy histograms,
which are paid for; so the one width that may differ is that of all released bins together.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from dpsynth.encoding import Codec, read_cohort
from dpsynth.models import Domain
from dpsynth.models.registry import NAMES
from dpsynth.synthesis import Run, readers

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]
Change = Callable[[pd.DataFrame], pd.DataFrame]
PATIENTS = 90
NOISY = ("clipping_norm", "bins", "leaders")  # settings that follow from noisy histograms


def cell(column: str, value: str) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[7, column] = value
        return frame

    return change


def patient(rows: int, **cells: str) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        added = frame.iloc[[0] * rows].assign(patient="one more", **cells)
        return pd.concat([frame, added], ignore_index=True)

    return change


NEIGHBOURS: dict[str, Change] = {
    "a declared category that no other row has": cell("ward", "C"),
    "an undeclared category": cell("sex", "X"),
    "an undeclared category where none may be missing": cell("ward", "Z"),
    "one more decimal": cell("weight", "71.23456789"),
    "an empty cell": cell("weight", ""),
    "NaN": cell("weight", "NaN"),
    "an empty cell where none may be": cell("age", ""),
    "text among numbers": cell("age", "forty"),
    "a fraction among integers": cell("age", "40.5"),
    "an outlier": cell("age", "1e300"),
    "no date": cell("admitted", "last spring"),
    "a visit at no time": cell("visited", "soon"),
    "a row without a key": cell("patient", ""),
    "one patient less": lambda frame: frame[frame["patient"] != "p0003"],
    "one patient more, all of it odd": patient(40, sex="?", weight="-1", age="x", admitted=""),
}


def without_noise(text: str) -> str:
    """Drop what noise decides and what the ledger draws at random (identities).

    Noise decides digests, and which of the noisy counts a fit misses.
    """
    text = re.sub(r"^fit +\S.*$", "<fit>", text, flags=re.MULTILINE)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<digest>", text)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<ledger>", text)
    return re.sub(r"\b[0-9a-f]{32}\b", "<entry>", text)


def seen(shell: Shell, folder: Path, model: str) -> dict[str, Any]:
    """Fit, sample and release ``source.csv`` of a folder; return all that shows but noise."""
    outputs = [
        shell(
            folder, "fit", "clinic.schema.yaml", "source.csv", "--dataset", "clinic",
            "--epsilon", 2, "--delta", "1e-5", "--model", model, "-o", "run",
        ),
        shell(folder, "sample", "run", "--seed", 5, "-o", "drawn.csv"),
        shell(folder, "release", "run", "--seed", 5, "-o", "bundle"),
    ]  # fmt: skip
    screens = [
        (output.code, without_noise(output.out), without_noise(output.err)) for output in outputs
    ]
    shapes: dict[str, Any] = {"screens": screens}
    if screens[0][0] == 0:
        shapes |= artifact(Run.load(folder / "run"))
    if screens[2][0] == 0:  # a run that a twin changed after the fit is not released
        shapes |= documents(folder)
    return shapes | {"files": sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))}


def artifact(run: Run) -> dict[str, Any]:
    """Types and shapes of a run's arrays, and everything else in it that is not noisy.

    An axis as long as all bins together is named so; nothing else may depend on how many there are.
    """
    domain = Domain.of(run.schema, Codec(run.schema))
    bins = None
    if "bin_of" in run.arrays:
        domain = domain.with_visits().ordered(run.config.get("order", ()))
        ends = np.cumsum(domain.sizes)[:-1]
        bins = sum(int(part.max()) + 1 for part in np.split(run.arrays["bin_of"], ends))
    of_bins = run.arrays.keys() - {"measured"}  # it has a row for each pair: as many, by chance
    shapes = {
        name: (
            array.dtype.name,
            ["bins" if n == bins and name in of_bins else n for n in array.shape],
        )
        for name, array in run.arrays.items()
    }
    config = {key: value for key, value in run.config.items() if key not in NOISY}
    return {"arrays": shapes, "config": config, "settings": sorted(run.config)}


def documents(folder: Path) -> dict[str, Any]:
    """All JSON documents of run and bundle, less sizes of tables and what is noisy."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(without_noise(path.read_text()))
        if path.name == "run.json":
            del document["state"]["tensors"], document["config"]
        for resource in document.get("resources", ()):
            resource.pop("bytes", None)
            resource.pop("dpsynth:bytes", None)
        found[str(path.relative_to(folder))] = document
    found["layout"] = str(pq.read_schema(folder / "bundle/data/synthetic.parquet"))
    found["header"] = (folder / "bundle/data/synthetic.csv").read_text().splitlines()[0]
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, Any]]:
    """What the table itself shows, by model: the same for all neighbours."""
    return {}


@pytest.fixture
def shown(
    shell: Shell, document: dict[str, Any], tmp_path: Path, few_steps: Any, quick_plans: None
) -> Callable[..., dict[str, Any]]:
    """Fit a table in a folder of its own, and tell what shows."""

    def of(frame: pd.DataFrame, model: str, schema: dict[str, Any] = document) -> dict[str, Any]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "clinic.schema.yaml").write_text(yaml.safe_dump(schema))
        frame.to_csv(folder / "source.csv", index=False)
        return seen(shell, folder, model)

    return of


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    assert one["screens"][0][0] == 0, one["screens"]
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


@pytest.fixture
def differs(shown: Callable[..., dict[str, Any]], visits: Visits) -> Callable[..., list[str]]:
    """Tell what differs between the table and a neighbour."""

    def of(change: Change, *settings: Any) -> list[str]:
        pair = visits(PATIENTS), change(visits(PATIENTS))
        return differing(*(shown(frame, *settings) for frame in pair))

    return of


FEWER = ["an undeclared category", "one more decimal", "NaN", "one patient more, all of it odd"]
ALL_OF_FEWER = ("independent", "autoregressive")  # the first and last of the others in `make test`


@pytest.mark.parametrize(
    ("model", "name"),
    [("independent", name) for name in NEIGHBOURS]
    + [
        pytest.param(model, name, marks=pytest.mark.long if rest and place % 3 else ())
        for model in NAMES
        if model != "independent"
        for rest in [model not in ALL_OF_FEWER]
        for place, name in enumerate(FEWER)
    ],
)
def test_a_neighbour_shows_nowhere(
    model: str,
    name: str,
    shown: Callable[..., dict[str, Any]],
    visits: Visits,
    known: dict[str, dict[str, Any]],
) -> None:
    if model not in known:
        known[model] = shown(visits(PATIENTS), model)
    assert differing(known[model], shown(NEIGHBOURS[name](visits(PATIENTS)), model)) == []


def test_widths_from_observed_categories_are_caught(
    differs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: an array as long as the column has distinct cells in the table."""
    kept: list[int] = []
    encode = Codec.encode

    def watched(self: Codec, frame: pd.DataFrame) -> Any:
        kept.append(frame["sex"].nunique(dropna=False))
        return encode(self, frame)

    def save(self: Run, folder: Any) -> Path:
        arrays = self.arrays | {"seen": np.zeros(kept[-1])}
        return saved(replace(self, arrays=arrays), folder)

    saved = Run.save
    monkeypatch.setattr(Codec, "encode", watched)
    monkeypatch.setattr(Run, "save", save)
    assert "arrays" in differs(cell("sex", "X"), "independent")


def test_a_line_about_an_odd_cell_is_caught(
    differs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: a helpful warning, without any value."""
    encode = Codec.encode

    def helpful(self: Codec, frame: pd.DataFrame) -> Any:
        if not frame["sex"].isin(["F", "M"]).all():
            warnings.warn("column 'sex' has unknown categories", stacklevel=1)
        return encode(self, frame)

    monkeypatch.setattr(Codec, "encode", helpful)
    assert differs(cell("sex", "X"), "independent") == ["screens"]


def test_a_bar_that_counts_rows_is_caught(
    differs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: progress in rows instead of per cent."""
    read = read_cohort

    def counting(*arguments: Any, **how: Any) -> Any:
        found = read(*arguments, **how)
        warnings.warn(f"read {len(found.mask)} units", stacklevel=1)
        return found

    monkeypatch.setattr(readers, "read_cohort", counting)
    assert differs(NEIGHBOURS["one patient less"], "independent") == ["screens"]


def test_refuse_is_the_one_bit_that_it_says_it_is(
    differs: Callable[..., list[str]], document: dict[str, Any]
) -> None:
    """A schema may opt in to refusing a cell. Then the exit code tells, and the check sees it."""
    [sex] = [field for field in document["fields"] if field["name"] == "sex"]
    sex["dpsynth"] = sex["dpsynth"] | {"on_unknown": "refuse"}
    assert "screens" in differs(cell("sex", "X"), "independent", document)
    assert differs(cell("weight", "71.23456789"), "independent", document) == []
