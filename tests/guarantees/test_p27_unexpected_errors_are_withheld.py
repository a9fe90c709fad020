"""P27, end to end: errors that nobody expected, and tables in the wrong place, are not quoted.

The check: an exception with a canary in every place that an exception has is raised deep inside a
fit; the command line names its class and where it was raised, and withholds the rest. And private
tables are given where synthetic ones belong: to `release --table`, and inside a bundle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dpsynth._util.strict_json import written
from dpsynth.schema import Schema

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]

TRACES = ("Quokka", "7Zx", "7141592")


def chained() -> BaseException:
    try:
        try:
            raise KeyError("Quokka7Zx")
        except KeyError as inner:
            raise RuntimeError("Quokka7Zx") from inner
    except RuntimeError as error:
        return error


def with_note() -> BaseException:
    error = ValueError("odd")
    error.add_note("while reading Quokka7Zx")
    return error


def quoting(kind: Callable[..., BaseException], *arguments: Any) -> Callable[[], BaseException]:
    return lambda: kind(*arguments)


UNEXPECTED: dict[str, Callable[[], BaseException]] = {
    "a message": quoting(ValueError, "could not convert 'Quokka7Zx' to a number"),
    "a key": quoting(KeyError, "Quokka7Zx"),
    "bytes": quoting(UnicodeDecodeError, "utf-8", b"Quokka7Zx", 0, 1, "Quokka7Zx"),
    "a cause": chained,
    "a note": with_note,
    "a file": quoting(FileNotFoundError, 2, "Quokka7Zx", "/Quokka7Zx"),
    "several": quoting(ExceptionGroup, "Quokka7Zx", [ValueError("Quokka7Zx")]),
    "memory": quoting(MemoryError, "Quokka7Zx"),
    "an assertion": quoting(AssertionError, "Quokka7Zx"),
    "arrow": quoting(pa.ArrowInvalid, "Quokka7Zx"),
    "an interrupt": quoting(KeyboardInterrupt, "Quokka7Zx"),
}


@pytest.fixture
def office(clinic: Schema, visits: Visits, tmp_path: Path, quick_plans: None) -> Path:
    clinic.save(tmp_path / "clinic.schema.yaml")
    visits(40).to_csv(tmp_path / "table.csv", index=False)
    return tmp_path


FIT = "fit clinic.schema.yaml table.csv --dataset clinic --epsilon 2 --delta 1e-5".split()
FIT += ["--model", "independent", "-o", "run"]


@pytest.mark.parametrize(
    "place", ["dpsynth.synthesis.readers.read_cohort", "dpsynth.encoding.Codec.encode"]
)
@pytest.mark.parametrize("name", UNEXPECTED)
def test_an_error_that_nobody_expected_is_withheld(
    name: str, place: str, office: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: Any, **how: Any) -> Any:
        raise UNEXPECTED[name]()

    monkeypatch.setattr(place, failing)
    output = shell(office, *FIT)
    assert output.quotes(TRACES) == []
    assert output.code == {"an interrupt": 130, "a file": 2}.get(name, 1)
    assert "Traceback" not in output.err and output.err.strip()


@pytest.mark.parametrize("name", [n for n in UNEXPECTED if n not in ("memory", "an interrupt")])
def test_an_error_that_goes_out_is_caught(
    name: str, office: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: the command line without its last except; a user may ask for that."""

    def failing(*arguments: Any, **how: Any) -> Any:
        raise UNEXPECTED[name]()

    monkeypatch.setattr("dpsynth.synthesis.readers.read_cohort", failing)
    monkeypatch.setenv("DPSYNTH_DEBUG", "1")
    assert shell(office, *FIT).quotes(TRACES) != []


PRIVATE = pd.DataFrame(
    {name: [f"Quokka7Zx{i}" for i in range(30)] for name in ("sex", "ward", "weight", "age")}
    | {"admitted": ["7141592653589"] * 30}
)


def test_a_private_table_in_the_place_of_a_synthetic_one_is_not_quoted(
    office: Path, shell: Shell
) -> None:
    """To `release --table`, and in a bundle that is verified, with and without a careful forger."""
    assert shell(office, *FIT).code == 0
    assert shell(office, "release", "run", "--rows", 30, "-o", "bundle").code == 0
    PRIVATE.to_csv(office / "private.csv", index=False)
    output = shell(office, "release", "run", "--table", "private.csv", "-o", "other")
    assert (output.code, output.quotes(TRACES)) == (3, [])
    for file in ("data/synthetic.csv", "data/synthetic.parquet"):
        place = office / "bundle" / file
        before = place.read_bytes()
        PRIVATE.to_csv(place, index=False)
        output = shell(office, "verify", "bundle")
        assert (output.code, output.quotes(TRACES)) == (5, [])
        if file.endswith("parquet"):
            PRIVATE.to_parquet(place)
        renew(office / "bundle")
        output = shell(office, "verify", "bundle", "--json")
        assert (output.code, output.quotes(TRACES)) == (5, [])
        place.write_bytes(before)
        renew(office / "bundle")
    assert shell(office, "verify", "bundle").code == 0


def renew(bundle: Path) -> None:
    """Bring the manifest's digests up to date, as a careful forger would."""
    manifest = json.loads((bundle / "datapackage.json").read_text())
    for item in manifest["resources"]:
        content = (bundle / item["path"]).read_bytes()
        counted = "bytes" if "bytes" in item else "dpsynth:bytes"
        item |= {counted: len(content), "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}
    (bundle / "datapackage.json").write_bytes(written(manifest))
