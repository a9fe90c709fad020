"""P07, P11, P17 and P27 at once: all that a fit, sample, release and verify leave is searched.

The check: a table with canaries in every kind of column, and with known numbers of rows and
patients, goes through the command line with every generator, as CSV and as Parquet, as text and as
JSON, and through fits that fail. Then every byte that appeared (files, their names and sizes, the
ledger, homes and temporary folders, the screen, log records, warnings) is unpacked and searched for
every canary in thousands of forms (`representations.py`).

Allowed are the name of the source on the screen of whoever typed it, and the number of a line that
cannot be read. Nothing is allowed in the ledger.

A weak finding, which chance can explain, fails the test if fits with fresh noise show it again at
the same place. How rarely chance meets a number of rows is measured with decoys.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import dpsynth
from dpsynth.bundle import release
from dpsynth.ledger import Ledger
from dpsynth.models.registry import NAMES
from dpsynth.schema import Schema

from ..support.some_cases import each_generator, some_of
from .office import HOMES, SCREEN, Office, leaks
from .representations import Canaries
from .taint import Search
from .tainted import BEYOND, DOCUMENT, METADATA, ROWS, SOURCE, TEXTS, TYPED, Sources, sources

Shell = Callable[..., Any]
Offices = Callable[..., Office]
NEVER_READ = ("patient", "visited", "note", "undeclared")  # or read as keys and order


@pytest.fixture(scope="session")
def made() -> Sources:
    return sources()


@pytest.fixture
def office(
    made: Sources,
    tmp_path: Path,
    shell: Shell,
    few_steps: None,
    quick_plans: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> Offices:
    """Make an office; homes, caches and temporary folders lie in it as well."""

    def of(name: str) -> Office:
        for variable in HOMES:
            home = tmp_path / name / variable.lower()
            home.mkdir(parents=True)
            monkeypatch.setenv(variable, str(home))
        monkeypatch.setattr("tempfile.tempdir", None)
        return Office(made, tmp_path / name, shell, caplog, capfd)

    caplog.set_level(logging.DEBUG)
    return of


def test_every_canary_is_in_the_table(made: Sources, tmp_path: Path) -> None:
    """The search finds them all in the two files, but for numbers that no file states."""
    canaries = made.canaries
    found = {item.canary for item in Search(canaries).folder(made.write(tmp_path)).found}
    names = {name for name, _, _ in canaries.forms.values()}
    coded = {name for name in names if name.startswith(("coded row", "histogram"))}
    assert names - found <= {"patients", "kept rows"} | coded
    assert len(canaries.forms) > 4000 and len(names) > 40


@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_no_canary_is_anywhere(model: str, office: Offices) -> None:
    def done(name: str) -> Search:
        search = office(name).everything(model)
        assert search.files > 100 and search.size > 500_000
        return search

    assert leaks(done) == set()


@pytest.mark.parametrize("model", some_of(NAMES, every=2))
def test_a_frame_leaves_nothing_either(model: str, office: Offices, made: Sources) -> None:
    """From Python: an index with a name, attributes, and a category that no row has."""
    frame = made.text.copy()
    frame.index = frame.index.rename(METADATA["name of the index"])
    frame.attrs["source"] = METADATA["file metadata"]
    kept = [*frame["sex"].unique(), METADATA["field metadata"]]
    frame["sex"] = pd.Categorical(frame["sex"], categories=kept)

    def fitted(name: str) -> Search:
        work = office(name)
        ledger = Ledger.create(work.folder / "ledger.sqlite")
        place = work.folder / "run"
        dpsynth.fit(
            frame,
            Schema.from_dict(DOCUMENT),
            epsilon=2.0,
            delta=1e-5,
            dataset="hospital",
            model=model,
            ledger=ledger,
            output=place,
        )
        release(place, work.folder / "bundle", size=700, ledger=ledger)
        return work.look()

    assert leaks(fitted) == set()


CRASHES: dict[str, tuple[str, Callable[[str], BaseException], int]] = {
    "while reading": ("dpsynth.encoding.Codec.encode", ValueError, 1),
    "after training": ("dpsynth.models.generators.Independent.config", KeyError, 1),
    "while saving": (
        "dpsynth.synthesis.Run.save",
        lambda text: OSError(28, text, f"/{text}"),
        2,
    ),
    "for want of memory": ("dpsynth.models.generators.Independent.fit", MemoryError, 1),
    "by a signal": (
        "dpsynth.models.generators.Independent.fit",
        KeyboardInterrupt,
        130,
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_a_fit_that_fails_leaves_and_says_nothing(
    name: str, office: Offices, made: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With DPSYNTH_DEBUG unset, as `shell` sees to; then the fit is done once more, well."""
    place, error, code = CRASHES[name]

    def failing(*arguments: Any, **options: Any) -> Any:
        raise error(f"{list(TEXTS.values())} {BEYOND} in {ROWS}")

    def failed(name: str) -> Search:
        work = office(name)
        with monkeypatch.context() as broken:
            broken.setattr(place, failing)
            work.fit("independent", code=code)
        assert not (work.folder / "run").exists()
        work.fit("independent")
        return work.look()

    assert leaks(failed) == set()


@pytest.mark.parametrize(
    "column", some_of([name for name in TEXTS if name not in NEVER_READ], every=2)
)
def test_a_refused_cell_is_not_told(column: str, office: Offices, made: Sources) -> None:
    """The policy `refuse` of every column stops the fit at its canary."""
    document = copy.deepcopy(DOCUMENT)
    [field] = [field for field in document["fields"] if field["name"] == column]
    listed = "enum" in field.get("constraints", {}) or column == "diagnosis"
    policies = {"on_bad": "refuse"} | ({"on_unknown": "refuse"} if listed else {})
    field["dpsynth"] = field["dpsynth"] | policies

    def refused(name: str) -> Search:
        work = office(name)
        (work.folder / "hospital.schema.yaml").write_text(yaml.safe_dump(document))
        output = work.fit("independent", code=2)
        assert f"'{column}'" in output.err and "refuse" in output.err
        work.run("ledger", "show", "--json")
        return work.look()

    assert leaks(refused) == set()


def ragged(content: bytes) -> bytes:
    return content + TEXTS["note"].encode() + b"," * 40 + TEXTS["sex"].encode() + b"\n"


def torn(content: bytes) -> bytes:
    return content[:40_000] + bytes(reversed(content[40_000:40_400])) + content[40_400:]


def other_letters(content: bytes) -> bytes:
    return content.decode().encode("latin-1")


@pytest.mark.parametrize(
    ("file", "damage"), [(SOURCE, ragged), (SOURCE, other_letters), (TYPED, torn)]
)
def test_a_damaged_table_is_not_told(
    file: str, damage: Callable[[bytes], bytes], office: Offices, made: Sources
) -> None:
    def damaged(name: str) -> Search:
        work = office(name)
        (work.folder / file).write_bytes(damage((work.folder / file).read_bytes()))
        work.fit("independent", file, code=2, may_show=SCREEN | {"rows"})  # the damaged line
        return work.look()

    assert leaks(damaged) == set()


def test_chance_does_not_meet_a_number_of_rows(office: Offices) -> None:
    """Of a hundred numbers of rows that are not the real one, none or very few are found."""
    decoys = Canaries()
    for number in range(1, 101):
        decoys.count(f"decoy {number}", ROWS - 60 * number)
    work = office("decoys")
    work.fit("independent")
    work.run("release", "run", "-o", "bundle", "--rows", 700)
    work.search = Search(decoys)
    assert len({item.canary for item in work.look().found}) <= 3
    (work.folder / "run" / "size.json").write_text(f"{ROWS - 60}")
    assert "decoy 1" in {item.canary for item in work.look().found}
