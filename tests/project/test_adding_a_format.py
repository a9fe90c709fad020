"""docs/extending.md: formats of sources from outside the package are read, split and named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import dpsynth
from dpsynth.draft import draft_schema
from dpsynth.errors import InputError, TableError
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.tables import (
    Progress,
    Reference,
    linked_sources,
    names_table,
    open_table,
    simulate,
    split_file,
)
from dpsynth.tables.cell_kinds import check_layout
from dpsynth.tables.checks import check_names
from dpsynth.tables.formats import FIRST_LINE, FORMATS, Format, starts_with, usual_suffixes
from dpsynth.tables.parquet import cells_of

ROOT = Path(__file__).parents[2]
BARS = Format(
    "bars",
    title="text with bars",
    noun="a text file with bars",
    suffixes=(".psv",),
    table="dpsynth.tables.csv:CsvTable",
    typed=False,
    delimiter="|",
    copied=True,
    draft=FIRST_LINE,
)


@dataclass(frozen=True)
class FeatherTable:
    """An Arrow file whose columns have been checked."""

    path: Path
    columns: tuple[str, ...]
    header: tuple[str, ...]

    @classmethod
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> FeatherTable:
        """Check names and types, before any cell is read."""
        assert reference.path is not None
        with pa.ipc.open_file(str(reference.path)) as file:
            layout = file.schema
        check_names(layout.names, needed, reference.place)
        check_layout(layout, needed, schema, reference.place, reference.format.remedy)
        return cls(reference.path, needed, tuple(layout.names))

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield typed frames."""
        with pa.ipc.open_file(str(self.path)) as file:
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                yield pd.DataFrame({name: cells_of(batch.column(name)) for name in self.columns})


FEATHER = Format(
    "feather",
    title="Arrow (Feather)",
    noun="an Arrow file",
    suffixes=(".feather",),
    table=f"{__name__}:FeatherTable",
    remedy="write the column as text, straight from the source",
    recognise=starts_with(b"ARROW1"),
)
TABLE = simulate(60, seed=1)


@pytest.fixture(autouse=True)
def _formats(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (BARS, FEATHER):
        monkeypatch.setitem(FORMATS, one.name, one)


def bars(folder: Path, table: pd.DataFrame = TABLE, name: str = "extract") -> Path:
    table.to_csv(folder / f"{name}.psv", sep="|", index=False)
    return folder / f"{name}.psv"


def feather(folder: Path, table: pd.DataFrame = TABLE, name: str = "extract") -> Path:
    pyarrow.feather.write_feather(table, folder / f"{name}.feather", compression="uncompressed")
    return folder / f"{name}.feather"


def text_of(path: Path) -> pd.DataFrame:
    frame = dpsynth.read_table(path, "demo")
    return frame.sort_values(list(frame.columns)).reset_index(drop=True)


@pytest.mark.parametrize("write", [bars, feather])
def test_a_table_is_read_and_split_as_its_csv(write: Callable[..., Path], tmp_path: Path) -> None:
    TABLE.astype(str).to_csv(tmp_path / "extract.csv", index=False)
    path = write(tmp_path)
    assert (
        text_of(path)["patient_id"].tolist()
        == text_of(tmp_path / "extract.csv")["patient_id"].tolist()
    )
    sides = split_file(path, "demo", tmp_path / "parts", holdout=0.3, seed=1)
    assert {side.suffix for side in sides} == {".psv" if write is bars else ".parquet"}
    assert sum(len(text_of(side)) for side in sides) == len(TABLE)


def test_a_typed_key_is_refused_with_the_remedy_of_the_format(tmp_path: Path) -> None:
    typed = TABLE.assign(patient_id=[place + 0.5 for place in range(len(TABLE))])
    with pytest.raises(TableError, match=r"is the key.*as text, straight from the source"):
        open_table(feather(tmp_path, typed), Schema.load("demo"))


def test_it_is_known_by_its_name_and_its_first_bytes(tmp_path: Path) -> None:
    feather(tmp_path).rename(tmp_path / "extract.csv")
    with pytest.raises(TableError, match="is an Arrow file: call it extract.feather"):
        open_table(tmp_path / "extract.csv", Schema.load("demo"))
    assert names_table("extract.psv") and ".psv, .feather" in usual_suffixes()
    with pytest.raises(TableError, match=r"\.psv, \.feather, or the URL"):
        bars(tmp_path).rename(tmp_path / "extract.xyz")
        open_table(tmp_path / "extract.xyz", Schema.load("demo"))


def test_a_draft_reads_the_first_line_of_text_and_nothing_else(tmp_path: Path) -> None:
    names = [
        line for line in draft_schema(header=bars(tmp_path)).text.split("\n") if "name:" in line
    ]
    assert any("patient_id" in line for line in names)
    with pytest.raises(InputError, match=r"stand apart from the rows .*\.psv"):
        draft_schema(header=feather(tmp_path))


def test_linked_tables_may_have_it(tmp_path: Path) -> None:
    schema = LinkedSchema.load("clinic")
    for place, name in enumerate(schema.table_names):
        (bars if place % 2 else feather)(tmp_path, TABLE, name)
    assert {Path(str(one)).suffix for one in linked_sources(tmp_path, schema).values()} == {
        ".psv",
        ".feather",
    }


def listed() -> list[tuple[str, str, str]]:
    """The rows of the table in docs/sources.md."""
    text = (ROOT / "docs/sources.md").read_text()
    table = text[text.index("| Table | Write | Needs |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")]
    plain = [[re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell) for cell in row] for row in rows[2:]]
    return [(row[0], row[1], row[2]) for row in plain]


def test_the_page_of_sources_lists_every_format_with_what_it_needs() -> None:
    own = {name: one for name, one in FORMATS.items() if one not in (BARS, FEATHER)}
    assert [row[0] for row in listed()] == [one.title for one in own.values()]
    for (_, written, needs), one in zip(listed(), own.values(), strict=True):
        found = set(re.findall(r"`'?extract(\.[a-z0-9.]+)", written))
        assert found == {*one.suffixes}, one.name
        assert needs == (f"`dpsynth[{one.extra}]`" if one.extra else ""), one.name
        assert ("#" in written) == bool(one.part), one.name


def test_records_are_complete() -> None:
    suffixes: list[Any] = [suffix for one in FORMATS.values() for suffix in one.suffixes]
    assert len(suffixes) == len({*suffixes})
    for name, one in FORMATS.items():
        assert name == one.name and one.noun and one.title
        assert hasattr(one.tables, "open") and hasattr(one.tables, "chunks")
        assert bool(one.remedy) == one.typed, name
        assert not one.part or (hasattr(one.tables, "part_of") and hasattr(one.tables, "parts_in"))
        assert {*one.written} <= {*one.suffixes}


def test_nothing_else_knows_suffixes_of_sources() -> None:
    """Only the table has them; `strict_table` reads the files of a bundle."""
    known = [s for one in FORMATS.values() if one not in (BARS, FEATHER) for s in one.suffixes]
    compared = re.compile(
        r"(endswith\(|(==|!=|\bin) \(?)[^\n]*\"(" + "|".join(map(re.escape, known)) + r")\""
    )
    found = [
        f"{path.name}: {line.strip()}"
        for room in ("tables", "draft", "workflow", "inspection", "encoding", "ledger")
        for path in sorted((ROOT / "dpsynth" / room).rglob("*.py"))
        for line in path.read_text().split("\n")
        if compared.search(line) and path.name not in ("formats.py", "strict_table.py")
    ]
    assert found == []
