"""P07 and P17, end to end: no cell of the private table is in anything that the program writes.

The check: a table has unmistakable canaries (texts, numbers, dates) in every column, the key, the
order, the dropped and an undeclared column included. The command line checks, fits, samples,
releases and shows the ledger. Then every byte of the run, the bundle, the tables, the ledger and
the screen is searched, packed files also unpacked, for every canary in every common spelling.

Patterns of nine bytes and more, and of eight that are no text, are searched anywhere; those of four
only among the words of the run's arrays, of which noise decides less than 800, for 4 patterns: one
false alarm in a million runs.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.numpy import load

from dpsynth.encoding import Codec
from dpsynth.synthesis import Run

from ..support.some_cases import each_generator

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]

TEXTS = {
    "patient": "Zanzibar-4711-is-a-key",
    "note": "seen by Dr Quagmire on Tuesday",
    "sex": "sex of Quokkas unknown",
    "ward": "ward of Quokkas, level 9",
    "age": "age of a Quokka in Perth",
    "undeclared": "Secret Quokka on Rottnest",
}
SEASON, HOUR = "one Quokka springtime of 71", "Quokka O'Clock, or later"
WITHIN, BEYOND, HUGE = 71.2345678901, 90817.26354, 731846205917
DAY, MOMENT = datetime(1873, 4, 29), datetime(2017, 3, 19, 4, 57, 31)
SOURCE = "Quokkafile.csv"  # may be on the screen of who named it, and nowhere else


def private_table(visits: Visits) -> pd.DataFrame:
    frame = visits(80).assign(undeclared="nothing")
    for column, text in TEXTS.items():
        frame.loc[3, column] = text
    frame.loc[[4, 5, 6], "weight"] = [str(WITHIN), str(BEYOND), "NaN"]
    frame.loc[7, "age"] = str(HUGE)
    frame.loc[[8, 9], "admitted"] = [f"{DAY:%Y-%m-%d}", SEASON]
    frame.loc[[10, 11], "visited"] = [MOMENT.isoformat(), HOUR]
    return frame


def of_text(text: str) -> Iterator[bytes]:
    """Spellings of a text: encodings, cases, base64 at each offset, digests."""
    raw = text.encode()
    yield from (raw, text.encode("utf-16-le"), text.encode("utf-16-be"), raw[::-1])
    yield from (text.lower().encode(), text.upper().encode(), raw.hex().encode())
    for offset in range(3):
        yield base64.b64encode(b"\0" * offset + raw)[4:-4]
    for algorithm in ("md5", "sha1", "sha256"):
        digest = hashlib.new(algorithm, raw)
        yield from (digest.digest()[:8], digest.hexdigest()[:16].encode())


def of_number(value: float) -> Iterator[bytes]:
    """Spellings of a number: decimals, float64, and int64 as it is and in fixed point."""
    yield from (repr(value).encode(), repr(value).replace(".", ",").encode())
    yield from (f"{value:.6f}".encode(), f"{value:.6e}".encode(), f"{value:.9g}".encode())
    yield from (struct.pack("<d", value), struct.pack(">d", value))
    for scale in (1, 10**4, 10**6, 10**10):
        if 2**40 < round(value * scale) < 2**63:
            yield from (struct.pack(f"{end}q", round(value * scale)) for end in "<>")


def of_moment(moment: datetime) -> Iterator[bytes]:
    """Spellings of a time: ISO and others, and the time since 1970 in several units."""
    for pattern in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y%m%d%H%M%S"):
        yield moment.strftime(pattern).encode()
    seconds = int((moment - datetime(1970, 1, 1)).total_seconds())
    for scale in (1, 10**3, 10**6, 10**9):
        yield from (struct.pack("<q", seconds * scale), struct.pack(">q", seconds * scale))
    yield struct.pack("<d", seconds)


def spellings() -> dict[bytes, str]:
    """Every pattern to look for anywhere, with the name of its canary."""
    found: dict[bytes, str] = {}
    for name, text in {**TEXTS, "season": SEASON, "hour": HOUR}.items():
        found |= dict.fromkeys(of_text(text), name)
    for name, value in {"within": WITHIN, "beyond": BEYOND, "huge": HUGE}.items():
        found |= dict.fromkeys(of_number(value), name)
    days = DAY.toordinal() - datetime(1970, 1, 1).toordinal()
    dates = (b"1873-04-29", b"29.04.1873", b"04/29/1873", struct.pack("<q", days))
    found |= dict.fromkeys((*of_moment(DAY), *dates, struct.pack("<d", days)), "day")
    found |= dict.fromkeys(of_moment(MOMENT), "moment")
    assert all(len(shape) > 8 or (len(shape) == 8 and not shape.isalnum()) for shape in found)
    return found


def words() -> dict[bytes, str]:
    """Patterns of four bytes, to look for in arrays only."""
    days = DAY.toordinal() - datetime(1970, 1, 1).toordinal()
    numbers = {"within": WITHIN, "beyond": BEYOND, "huge": HUGE}
    found = {struct.pack("<f", value): name for name, value in numbers.items()}
    return found | {struct.pack("<i", days): "day"}


def unpacked(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and what they are when decompressed and decoded."""
    content = path.read_bytes()
    yield content
    if path.suffix == ".gz":
        yield gzip.decompress(content)
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        yield str(pq.read_metadata(path).to_dict()).encode()
        yield f"{table.schema.metadata} {table.schema}".encode()
        yield "\n".join(repr(cell) for column in table for cell in column.to_pylist()).encode()
        for column in table:
            if str(column.type) in ("double", "int64"):
                yield column.to_pandas().to_numpy().tobytes()
    if path.suffix == ".safetensors":
        for array in load(content).values():
            yield array.astype(np.float64).tobytes()


@dataclass
class Search:
    """Canaries found so far, each with the place where it was."""

    found: set[tuple[str, str]]

    def bytes_of(self, place: str, content: bytes) -> None:
        self.found |= {(name, place) for shape, name in SPELLINGS.items() if shape in content}

    def folder(self, folder: Path) -> Search:
        for path in folder.rglob("*"):
            if path.is_file() and path.name != SOURCE:
                for content in (*unpacked(path), path.name.encode()):
                    self.bytes_of(path.name, content)
                    if SOURCE.encode() in content:
                        self.found.add(("source", path.name))
                if path.suffix == ".safetensors":
                    self._arrays(path)
        return self

    def _arrays(self, path: Path) -> None:
        for name, array in load(path.read_bytes()).items():
            content = array.tobytes()
            aligned = {content[i : i + 4] for i in range(0, len(content), 4)}
            self.found |= {(canary, name) for shape, canary in WORDS.items() if shape in aligned}


SPELLINGS, WORDS = spellings(), words()


@pytest.fixture
def office(tmp_path: Path, visits: Visits, document: dict[str, Any], quick_plans: None) -> Path:
    (tmp_path / "clinic.schema.yaml").write_text(yaml.safe_dump(document))
    private_table(visits).to_csv(tmp_path / SOURCE, index=False)
    return tmp_path


def fit_command(model: str) -> list[object]:
    return [
        "fit", "clinic.schema.yaml", SOURCE, "--dataset", "clinic", "--epsilon", 2,
        "--delta", "1e-5", "--model", model, "-o", "run",
    ]  # fmt: skip


def everything(model: str) -> list[list[object]]:
    """All that an office runs on the way to a bundle."""
    return [
        ["schema", "check", "clinic.schema.yaml", SOURCE],
        ["schema", "check", "clinic.schema.yaml", SOURCE, "--json"],
        fit_command(model),
        ["sample", "run", "--seed", 1, "-o", "drawn.parquet"],
        ["sample", "run", "--seed", 2, "-o", "drawn.csv"],
        ["sample", "run", "--seed", 3, "-o", "drawn.csv.gz", "--where", "age > 50", "--json"],
        ["release", "run", "--seed", 4, "-o", "bundle"],
        ["release", "run", "--table", "drawn.csv.gz", "-o", "other", "--json"],
        ["verify", "bundle"],
        ["ledger", "show", "--json"],
    ]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("model", each_generator("ctgan"))
def test_no_canary_is_in_any_file_or_on_the_screen(model: str, office: Path, shell: Shell) -> None:
    search = Search(set())
    for arguments in everything(model):
        output = shell(office, *arguments)
        looked = arguments[:2] == ["schema", "check"]  # the canary's row is unlike all others
        assert output.code == (3 if looked else 0), output.err
        search.bytes_of(f"stdout of {arguments[0]}", output.out.encode())
        search.bytes_of(f"stderr of {arguments[0]}", output.err.encode())
    assert {path.name for path in office.iterdir()} >= {"run", "bundle", "ledger.sqlite"}
    assert search.folder(office).found == set()


def test_the_search_finds_every_canary_in_the_table_itself(office: Path) -> None:
    """The canaries are really there; a copy of the table, plain or packed, is caught."""
    names = set(SPELLINGS.values())
    assert names == {*TEXTS, "season", "hour", "within", "beyond", "huge", "day", "moment"}
    content = (office / SOURCE).read_bytes()
    copies = office / "copies"
    copies.mkdir()
    for name, packed in {"a.csv": content, "b.csv.gz": gzip.compress(content)}.items():
        (copies / name).write_bytes(packed)
        found = {canary for canary, place in Search(set()).folder(copies).found if place == name}
        assert found == names
    pd.read_csv(office / SOURCE, dtype=str).to_parquet(copies / "c.parquet")
    assert ("huge", "c.parquet") in Search(set()).folder(copies).found


KEPT: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a fill value in words": ("within", {"fill": {"weight": str(WITHIN)}}, {}),
    "a fill value as float64": ("within", {}, {"fill": np.array([0.0, WITHIN])}),
    "a fill value as float32": ("within", {}, {"fill": np.array([0, WITHIN], dtype=np.float32)}),
    "the largest cell": ("huge", {}, {"largest": np.array([HUGE])}),
    "the largest cell as float32": ("huge", {}, {"largest": np.float32([HUGE])}),
    "the smallest cell": ("beyond", {"clipped": BEYOND}, {}),
    "the first day": ("day", {}, {"first": np.array([np.datetime64(DAY, "D").astype(np.int32)])}),
    "the last visit": ("moment", {}, {"last": np.array([1489899451.0])}),
    "an unknown category": ("sex", {"unknown": [TEXTS["sex"]]}, {}),
    "an unknown category as bytes": (
        "ward",
        {},
        {"unknown": np.frombuffer(TEXTS["ward"].encode(), dtype=np.uint8)},
    ),
    "a hashed key": ("patient", {"id": hashlib.sha256(TEXTS["patient"].encode()).hexdigest()}, {}),
    "free text": ("note", {"note": base64.b64encode(TEXTS["note"].encode()).decode()}, {}),
    "the name of the file": ("source", {"trained_on": f"/home/{SOURCE}"}, {}),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_run_that_keeps_a_raw_cell_is_caught(
    name: str, office: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twins: a fit that stores what it saw, as a setting or in an array."""
    canary, config, arrays = KEPT[name]
    save = Run.save

    def keeping(self: Run, folder: Any) -> Path:
        kept = replace(self, config=self.config | config, arrays=self.arrays | arrays)
        return save(kept, folder)

    monkeypatch.setattr(Run, "save", keeping)
    assert shell(office, *fit_command("independent")).code == 0
    assert canary in {found for found, _ in Search(set()).folder(office).found}


@pytest.mark.parametrize("table", ["drawn.parquet", "drawn.csv.gz"])
def test_a_table_filled_with_a_raw_cell_is_caught(
    table: str, office: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: missing cells are filled with the first cell that the codec ever saw."""
    decode = Codec.decode

    def filling(self: Codec, *arguments: Any) -> pd.DataFrame:
        return decode(self, *arguments).assign(weight=WITHIN, ward=TEXTS["ward"])

    monkeypatch.setattr(Codec, "decode", filling)
    assert shell(office, *fit_command("independent")).code == 0
    assert shell(office, "sample", "run", "-o", table).code == 0
    assert ("ward", table) in Search(set()).folder(office).found
