"""How the tables of a bundle are written: nothing travels along that no row needs."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle import verify
from dpsynth.bundle.checks import Findings, TablePair
from dpsynth.bundle.checks.tables import _LIBRARY
from dpsynth.bundle.format import ManifestHeader
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema
from dpsynth.tables import table_digests, write_table

from ..support.forger import Forger

TABLE, TEXT = "data/synthetic.parquet", "data/synthetic.csv"
HIDING = "is not written as a release writes it: something may hide in it"


def quoted(text: str) -> str:
    rows, out = csv.reader(io.StringIO(text)), io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def one_cell_quoted(text: str) -> str:
    header, line, rest = text.split("\n", 2)
    first, others = line.split(",", 1)
    return "\n".join([header, f'"{first}",{others}', rest])


TEXT_CHANGES: dict[str, Callable[[str], str]] = {
    "every cell quoted": quoted,
    "one cell quoted": one_cell_quoted,
    "other line ends": lambda text: text.replace("\n", "\r\n"),
    "one other line end": lambda text: text.replace("\n", "\r\n", 1),
    "no line end at the end": lambda text: text.rstrip("\n"),
}


@pytest.mark.parametrize("name", TEXT_CHANGES)
def test_text_that_says_the_same_in_other_bytes_is_found(
    forger: Forger, bundle: Path, name: str
) -> None:
    before = (bundle / TEXT).read_bytes()
    changed = TEXT_CHANGES[name](before.decode()).encode()
    assert changed != before
    (bundle / TEXT).write_bytes(changed)
    forger.relist()
    findings = forger.findings()
    assert f"{TEXT}: {HIDING}" in findings and "has other rows" not in findings


def with_dead_bytes(content: bytes) -> bytes:
    """A note between the last column and the footer, which readers find from the end."""
    start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    return content[:start] + b"Ms Miller was here" + content[start:]


def with_unused_entries(content: bytes) -> bytes:
    """Words in the dictionary of a column that no row has."""
    table = pq.read_table(io.BytesIO(content))
    place = table.schema.get_field_index("sex")
    cells = table.column(place).combine_chunks().dictionary_encode()
    entries = pa.array([*cells.dictionary.to_pylist(), "Ms Miller was here"])
    table = table.set_column(place, "sex", pa.DictionaryArray.from_arrays(cells.indices, entries))
    out = io.BytesIO()
    pq.write_table(table, out, compression="none", store_schema=False)
    return out.getvalue()


def by_another_program(content: bytes) -> bytes:
    writer = f"parquet-cpp-arrow version {pa.cpp_version}".encode()
    assert content.count(writer) == 1
    return content.replace(writer, b"Miller".ljust(len(writer)))


TABLE_CHANGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "bytes that no column holds": (with_dead_bytes, HIDING),
    "words that no row has": (with_unused_entries, HIDING),
    "the name of another program": (by_another_program, "a program that dpsynth does not use"),
}


@pytest.mark.parametrize("name", TABLE_CHANGES)
def test_a_table_with_bytes_that_no_row_needs_is_found(
    forger: Forger, bundle: Path, name: str
) -> None:
    change, message = TABLE_CHANGES[name]
    before = pq.read_table(bundle / TABLE)
    (bundle / TABLE).write_bytes(change((bundle / TABLE).read_bytes()))
    assert pq.read_table(bundle / TABLE).to_pydict() == before.to_pydict()
    forger.relist()
    findings = forger.findings()
    assert f"{TABLE}: " in findings and message in findings
    assert "Miller" not in findings


def pair(bundle: Path, heading: ManifestHeader, *, other_version: bool = False) -> Findings:
    """Check the tables of a bundle alone."""
    findings = Findings()
    found = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*.*")}
    TablePair(bundle, found, heading.tables["synthetic"], findings, other_version).check(heading)
    return findings


@pytest.fixture
def heading(bundle: Path, forger: Forger) -> ManifestHeader:
    schema = Schema.from_dict(forger.read("schema.json"))
    return ManifestHeader.of(forger.read("datapackage.json"), schema)


def test_another_build_of_the_library_is_accepted_where_that_is_asked_for(
    bundle: Path, heading: ManifestHeader
) -> None:
    (bundle / TABLE).write_bytes(with_dead_bytes((bundle / TABLE).read_bytes()))
    strict = pair(bundle, heading)
    assert [problem.place for problem in strict.problems] == [TABLE]
    assert "--other-version" in strict.problems[0].message
    accepted = pair(bundle, heading, other_version=True)
    assert accepted.problems == [] and "may contain extra bytes" in accepted.checks[-1]


def test_what_another_version_of_the_library_wrote_is_refused(forger: Forger, bundle: Path) -> None:
    """Else a file would say of itself whether it is to be compared."""
    content = with_dead_bytes((bundle / TABLE).read_bytes())
    own = f"parquet-cpp-arrow version {pa.cpp_version}".encode()
    other = own[:-1] + (b"7" if own[-1:] != b"7" else b"8")
    (bundle / TABLE).write_bytes(content.replace(own, other))
    forger.relist()
    assert "install that version, or accept it (--other-version)" in forger.findings()
    for version in ("1" * 70 + ".2.3", "\u0661.2.3"):
        assert _LIBRARY.fullmatch(f"parquet-cpp-arrow version {version}") is None


def test_the_same_bytes_are_accepted_whatever_the_version(
    bundle: Path, heading: ManifestHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyarrow.cpp_version", "1.2.3")
    sound = pair(bundle, heading)
    assert sound.problems == [] and f"{TABLE} contains nothing except its rows" in sound.checks


def test_what_another_dpsynth_wrote_is_compared_by_cells(
    bundle: Path, heading: ManifestHeader
) -> None:
    (bundle / TEXT).write_text(quoted((bundle / TEXT).read_text()))
    other = ManifestHeader(heading.schema, heading.drawing, heading.about, writer="0.0.1")
    findings = pair(bundle, other)
    assert findings.problems == [] and any(
        "has the same 300 rows" in check for check in findings.checks
    )
    (bundle / TEXT).write_text("\n".join((bundle / TEXT).read_text().split("\n")[:-2]))
    assert any("has other rows" in problem.message for problem in pair(bundle, other).problems)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_digests_are_those_of_files(
    bundle: Path, every_type: Schema, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the rows come in other frames, and in several blocks."""
    from dpsynth._util.strict_json import file_digest

    monkeypatch.setattr("dpsynth.tables.writer.CHUNK", 70)
    [frame] = typed_frames(bundle / TABLE, every_type)
    write_table([frame], tmp_path / f"t{suffix}", every_type)
    parts: list[pd.DataFrame] = [frame.iloc[:13], frame.iloc[13:]]
    kinds = [suffix, ".csv"]
    assert table_digests(parts, every_type, kinds)[0] == file_digest(tmp_path / f"t{suffix}")


def test_a_sound_bundle_says_so(bundle: Path) -> None:
    assert f"{TABLE} contains nothing except its rows" in verify(bundle)
