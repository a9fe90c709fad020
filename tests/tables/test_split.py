"""A split deals out units with all their rows, and touches no cell."""

from __future__ import annotations

import gzip
import json
import stat
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth
from dpsynth.cli.group import commands
from dpsynth.errors import DpsynthWarning, InputError, TableError
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting
from dpsynth.tables import splitting
from dpsynth.tables.opt_out import OptOut
from dpsynth.tables.row_copy import Dealt
from dpsynth.tables.splitting import leave_out, split, split_file
from dpsynth.tables.unit_keys import normalised

UNITS = 400

# Keys are compared without case, without blanks around them, without leading zeros.
SPELLINGS: tuple[Callable[[int], str], ...] = (
    lambda unit: f"A{unit}",
    lambda unit: f" a{unit}",
    lambda unit: f"00A{unit} ",
    lambda unit: f"0a{unit}",
)


def described(**table: Any) -> Schema:
    return Schema.from_dict(
        {
            "name": "messy",
            "missingValues": ["", "NA"],
            "fields": [
                {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
                {
                    "name": "weight",
                    "type": "number",
                    "constraints": {"minimum": 0, "maximum": 300},
                    "dpsynth": {"bounds_basis": "the scale", "step": 0.5},
                },
                {"name": "smoker", "type": "boolean"},
            ],
            "dpsynth": {
                "version": 1,
                "max_rows": {"value": 3, "basis": "policy"},
                "population": {"value": UNITS, "basis": "report"},
                "rows": {"value": 2 * UNITS, "basis": "report"},
                "key": {"case": True, "leading_zeros": False},
                "dialect": {"delimiter": ";", "decimal": ",", "encoding": "latin-1"},
                **table,
            },
        }
    )


def unit_of(text: str) -> str:
    """Compare a key as the messy schema declares, by hand."""
    return text.strip().casefold().lstrip("0")


@pytest.fixture(scope="module")
def schema() -> Schema:
    return described()


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Rows of 400 units, 1 to 4 each under any spelling, in random order, with awkward cells."""
    rng = np.random.default_rng(1)
    rows = []
    for unit in range(UNITS):
        for _ in range(rng.integers(1, 5)):
            key = SPELLINGS[rng.integers(len(SPELLINGS))](unit)
            key = f'"{key}"' if rng.random() < 0.3 else key
            weight = ("70,5", "070,50", '"70,5"', " 70,5 ", "", "NA", "-1e3", "?")[rng.integers(8)]
            note = ("plain", '"a; b"', '"say ""ah"""', '"two\nlines"', "M\xfcller", "")[
                rng.integers(6)
            ]
            rows.append(f"{weight};{note};{key};{rng.choice(['true', '0', 'x'])}")
    return [rows[i] for i in rng.permutation(len(rows))]


HEADER = "weight; note ;key;smoker"


@pytest.fixture
def source(lines: list[str], tmp_path: Path) -> Path:
    path = tmp_path / "extract.csv"
    path.write_bytes("\r\n".join([HEADER, *lines, ""]).encode("latin-1"))
    return path


def records(path: Path) -> list[str]:
    """Cut a file into rows: a row of this source ends with CR and LF, and no cell has both."""
    content = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    assert content.endswith(b"\r\n")
    return content.decode("latin-1").split("\r\n")[:-1]


def units_of(rows: list[str]) -> set[str]:
    return {unit_of(row.split(";")[-2].strip('"')) for row in rows}


# Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_rows_are_copied_as_they_stand(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, zipped: bool
) -> None:
    if zipped:
        source.with_suffix(".csv.gz").write_bytes(gzip.compress(source.read_bytes()))
        source = source.with_suffix(".csv.gz")
    paths = split_file(source, schema, tmp_path / "out")
    assert [path.name for path in paths] == (
        ["train.csv.gz", "holdout.csv.gz"] if zipped else ["train.csv", "holdout.csv"]
    )
    train, holdout = map(records, paths)
    assert train[0] == holdout[0] == HEADER
    assert Counter(train[1:] + holdout[1:]) == Counter(lines)
    for side in (train[1:], holdout[1:]):
        rest = iter(lines)
        assert all(row in rest for row in side)  # in the order of the source


def test_no_unit_is_on_both_sides(source: Path, schema: Schema, tmp_path: Path) -> None:
    train, holdout = map(records, split_file(source, schema, tmp_path / "out", holdout=0.3))
    one, other = units_of(train[1:]), units_of(holdout[1:])
    assert not one & other
    assert len(one | other) == UNITS
    spread = 5 * np.sqrt(UNITS * 0.3 * 0.7)
    assert abs(len(other) - 0.3 * UNITS) < spread  # the share is one of units, not of rows


def test_my_reading_of_a_key_is_that_of_the_schema(schema: Schema) -> None:
    for spelling in SPELLINGS:
        assert normalised(spelling(12), schema.unit) == unit_of(spelling(12)) == "a12"


def test_the_folder_is_for_its_owner_alone(source: Path, schema: Schema, tmp_path: Path) -> None:
    split_file(source, schema, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "holdout.csv",
        "train.csv",
    ]


def test_a_last_row_without_line_end_and_blank_lines(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"key;weight;smoker\n\n" + b"\n".join(b"k%d;1;1\n" % i for i in range(9)))
    path.write_bytes(path.read_bytes() + b"last;2;0")
    train, holdout = split_file(path, schema, tmp_path / "out", holdout=0.5, seed=3)
    rows = train.read_text().splitlines()[1:] + holdout.read_text().splitlines()[1:]
    assert Counter(rows) == Counter([*(f"k{i};1;1" for i in range(9)), "last;2;0"])


def test_parquet_keeps_types_and_columns(schema: Schema, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    units = rng.integers(0, 50, 70_000)  # more rows than a chunk
    weights = pa.array([f"{weight / 2:g}" for weight in rng.integers(0, 600, len(units))])
    table = pa.table(
        {
            "key": pa.array([f"k{unit}" for unit in units]).dictionary_encode(),
            "weight": weights,
            "smoker": pa.array([None, True, False, None] * (len(units) // 4)),
            "visits": pa.array([[1, 2]] * len(units), pa.list_(pa.int8())),
            "day": pa.array([19_000] * len(units), pa.int32()).cast(pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=9_999)
    paths = split_file(tmp_path / "t.parquet", schema, tmp_path / "out", seed=1)
    train, holdout = map(pq.read_table, paths)
    assert train.schema.equals(table.schema) and holdout.schema.equals(table.schema)
    sides = [side.to_pandas() for side in (train, holdout)]
    in_holdout = np.isin(table["key"].to_pylist(), sides[1]["key"].unique().tolist())
    assert in_holdout.any() and not set(units[in_holdout]) & set(units[~in_holdout])
    for side, rows in zip(sides, (~in_holdout, in_holdout), strict=True):
        expected = table.filter(pa.array(rows)).to_pandas()
        pd.testing.assert_frame_equal(side.astype({"key": str}), expected.astype({"key": str}))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_both_files_can_be_fitted(source: Path, schema: Schema, tmp_path: Path, kind: str) -> None:
    data: Path = source
    if kind == "parquet":
        data = tmp_path / "t.parquet"
        keys = [f"k{i % 90}" for i in range(300)]
        pd.DataFrame({"key": keys, "weight": "70,5", "smoker": True}).to_parquet(data)
    for path in split_file(data, schema, tmp_path / "out"):
        run = fitting.fit(
            path,
            schema,
            epsilon=3.0,
            delta=1e-6,
            dataset="split",
            model="independent",
            without_ledger=True,
        )
        assert len(run.sample(10, seed=1)) == 10


# Which units ----------------------------------------------------------------------------------


def frame(units: int) -> pd.DataFrame:
    keys = [SPELLINGS[i % 4](int(unit)) for i, unit in enumerate(np.repeat(np.arange(units), 2))]
    return pd.DataFrame({"key": keys, "weight": "1,5", "smoker": True})


def test_a_seed_repeats_a_split_and_fresh_entropy_does_not(schema: Schema) -> None:
    table = frame(200)
    first, again, other = (split(table, schema, seed=seed) for seed in (5, 5, 6))
    for one, two in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(one, two)
    assert not first[1].equals(other[1])
    assert not split(table, schema)[1].equals(split(table, schema)[1])


def test_file_and_frame_are_split_alike(schema: Schema, tmp_path: Path) -> None:
    table = frame(100)
    table.to_parquet(tmp_path / "t.parquet")
    files = split_file(tmp_path / "t.parquet", schema, tmp_path / "out", seed=4)
    for path, expected in zip(files, split(table, schema, seed=4), strict=True):
        pd.testing.assert_frame_equal(pd.read_parquet(path), expected.reset_index(drop=True))


def test_each_unit_is_held_out_equally_often(schema: Schema) -> None:
    table = frame(10)
    times: Counter[str] = Counter()
    for seed in range(1000):
        with suppress(InputError):  # one side is empty
            times.update(unit_of(key) for key in split(table, schema, seed=seed)[1]["key"][::2])
    assert all(abs(times[f"a{unit}"] - 200) < 5 * np.sqrt(1000 * 0.2 * 0.8) for unit in range(10))


def test_one_more_unit_moves_nobody_else(schema: Schema) -> None:
    """Or else a patient would change two sides, and count twice in what both are used for."""
    larger = frame(31)
    smaller = larger[[unit_of(key) != "a7" for key in larger["key"]]]
    turned = larger.iloc[::-1]
    for seed in range(20):
        holdouts = [
            {unit_of(key) for key in split(table, schema, seed=seed)[1]["key"]}
            for table in (smaller, larger, turned)
        ]
        assert holdouts[0] ^ holdouts[1] <= {"a7"} and holdouts[1] == holdouts[2]


@given(
    keys=st.lists(
        st.sampled_from(["1", "01", " 1", "2", "a", "A ", "", "NA", "b", "c"]), min_size=1
    ),
    share=st.floats(0.05, 0.95),
    own=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_every_row_with_a_key_is_on_the_side_of_its_unit(
    keys: list[str], share: float, own: bool
) -> None:
    schema = described(missing_key="own" if own else "drop")
    table = pd.DataFrame({"key": keys, "weight": "1,5", "smoker": True})
    try:
        train, holdout = split(table, schema, holdout=share)
    except InputError:
        named = {unit_of(key) for key in keys if key not in ("", "NA")}
        units = len(named) + own * sum(key in ("", "NA") for key in keys)
        assert share**units + (1 - share) ** units > 1e-9  # an empty side was possible
        return
    kept = [i for i, key in enumerate(keys) if own or key not in ("", "NA")]
    assert sorted([*train.index, *holdout.index]) == kept
    one, other = ({unit_of(key) for key in side["key"]} - {"", "na"} for side in (train, holdout))
    assert not one & other
    assert len(train) and len(holdout)


def test_rows_are_units_where_no_unit_is_declared() -> None:
    schema = described()
    rows = replace(schema.unit, column=None, max_rows=1)
    fields = tuple(column for column in schema.columns if column.name != "key")
    schema = replace(schema, unit=rows, columns=fields)
    table = pd.DataFrame({"weight": np.arange(50).astype(str), "smoker": True})
    train, holdout = split(table, schema, holdout=0.3, seed=1)
    assert len(train) + len(holdout) == 50
    assert sorted(map(int, [*train["weight"], *holdout["weight"]])) == list(range(50))


# Opted out ------------------------------------------------------------------------------------

GONE = ("a3", "00A5 ", " A7", "a9")  # as nobody has written them in the table


def gone_from(rows: list[str], out: set[str]) -> list[str]:
    return [row for row in rows if not units_of([row]) & out]


@pytest.mark.parametrize("kind", ["txt", "csv", "csv.gz", "parquet"])
def test_units_on_the_list_go_to_neither_side(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"gone.{kind}"
    if kind == "txt":
        path.write_bytes("\ufeff".encode() + "\r\n".join([*GONE, "", "NA", "a3", ""]).encode())
    elif kind == "parquet":
        pd.DataFrame({"why": "asked", "key": [*GONE, None, "a3"]}).to_parquet(path)
    else:
        table = "\n".join(["why;key", *(f"M\xfcller;{key}" for key in (*GONE, "NA", "a3"))])
        content = table.encode("latin-1")
        path.write_bytes(gzip.compress(content) if kind == "csv.gz" else content)
    listed = OptOut.load(path, schema)
    assert listed.lines == 5 and listed.keys == {"a3", "a5", "a7", "a9"}
    train, holdout = map(
        records, split_file(source, schema, tmp_path / "out", seed=2, opt_out=listed)
    )
    whole = [records(path) for path in split_file(source, schema, tmp_path / "whole", seed=2)]
    assert train[1:] == gone_from(whole[0][1:], set(listed.keys))
    assert holdout[1:] == gone_from(whole[1][1:], set(listed.keys))
    assert len(units_of(train[1:]) | units_of(holdout[1:])) == UNITS - 4


def test_a_frame_is_split_without_them_too(schema: Schema) -> None:
    listed = OptOut.of(["A0", "a19"], schema)
    sides = split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    found = {unit_of(key) for side in sides for key in side["key"]}
    assert found == {f"a{unit}" for unit in range(1, 19)}


@pytest.mark.parametrize("case", [True, False])
@pytest.mark.parametrize("zeros", [True, False])
def test_the_list_is_read_as_the_table_is(case: bool, zeros: bool) -> None:
    """Whoever is one unit with a key of the list opted out, and nobody else."""
    keys = ["A1", "a1", "0A1", "b2", "B2", "00b2", "c3"]
    schema = described(key={"case": case, "leading_zeros": zeros}, dialect={})
    others = [f"d{number}" for number in range(40)]
    table = pd.DataFrame({"key": [*keys, *others], "weight": "70", "smoker": "true"})
    for listed in (["A1"], ["0A1", "B2"], ["b2"]):
        gone = {normalised(key, schema.unit) for key in listed}
        sides = split(table, schema, holdout=0.5, opt_out=OptOut.of(listed, schema))
        left = pd.concat(sides)["key"].sort_index().tolist()
        assert left == [k for k in table["key"] if normalised(k, schema.unit) not in gone]


@pytest.mark.parametrize("key", [7, 7.0, None, b"007"])
def test_a_list_of_keys_that_are_no_text_is_refused(key: Any, schema: Schema) -> None:
    """The number 7 was 007 in the table: who opted out would stay in it."""
    with pytest.raises(InputError, match="keys that are not text"):
        OptOut.of(["a1", key], schema)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_where_nobody_is_held_out_the_list_alone_counts(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path, suffix: str
) -> None:
    listed = OptOut.of(GONE, schema)
    if suffix == ".parquet":
        table = frame(30)
        table.to_parquet(tmp_path / "t.parquet")
        train = leave_out(tmp_path / "t.parquet", schema, tmp_path / "out", listed)
        kept = pd.read_parquet(train)
        out = [unit_of(key) in listed.keys for key in table["key"]]
        pd.testing.assert_frame_equal(kept, table[~np.array(out)].reset_index(drop=True))
        assert len(kept) == 52
    else:
        train = leave_out(source, schema, tmp_path / "out", listed)
        assert records(train)[1:] == gone_from(lines, set(listed.keys))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["train" + suffix]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_rows_without_a_key_are_on_no_list(tmp_path: Path) -> None:
    schema = described(missing_key="own")
    table = pd.DataFrame({"key": ["NA", "b", "NA", "c"], "weight": 1.0, "smoker": True})
    table.to_csv(tmp_path / "t.csv", sep=";", index=False)
    train = leave_out(tmp_path / "t.csv", schema, tmp_path / "out", OptOut.of(["b"], schema))
    assert [row.split(";")[0] for row in train.read_text().splitlines()[1:]] == ["NA", "NA", "c"]


def test_a_list_that_names_nobody_of_the_table_is_refused(schema: Schema) -> None:
    listed = OptOut.of(["Quokka7Zx"], schema)
    with pytest.raises(InputError, match="no key on the opt-out list") as refusal:
        split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    assert "uokka" not in str(refusal.value)


def test_keys_that_are_in_no_row_are_counted(schema: Schema) -> None:
    listed = OptOut.of(["Quokka7Zx", "a3"], schema)
    with pytest.warns(DpsynthWarning, match="1 of 2 keys of the opt-out list") as warned:
        split(frame(20), schema, holdout=0.5, seed=1, opt_out=listed)
    assert "uokka" not in str(warned[0].message)


def test_lists_that_are_none(schema: Schema, tmp_path: Path) -> None:
    rows = replace(described(), unit=replace(schema.unit, column=None, max_rows=1))
    with pytest.raises(InputError, match="role unit"):
        OptOut.of(["a"], rows)
    empty, binary, other = (tmp_path / name for name in ("e.txt", "b.txt", "o.csv"))
    empty.write_text("\n NA \n")
    with pytest.raises(InputError, match="has no key"):
        OptOut.load(empty, schema)
    binary.write_bytes(b"Quokka7Zx\xff\xfe\n")
    with pytest.raises(InputError, match="UTF-8") as refused:
        OptOut.load(binary, schema)
    assert "Quokka" not in str(refused.value) and refused.value.__cause__ is None
    other.write_text("Quokka7Zx\nb\n")
    with pytest.raises(TableError, match="lacks a column of the schema: key") as headless:
        OptOut.load(other, schema)
    assert "Quokka" not in str(headless.value)
    with pytest.raises(InputError, match="no such file"):
        OptOut.load(tmp_path / "absent.txt", schema)
    with pytest.raises(InputError, match="one of the two files would be empty"):
        split(frame(3), schema, holdout=0.5, opt_out=OptOut.of(["a0", "a1"], schema))
    frame(2).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no row is left to fit"):
        leave_out(tmp_path / "t.parquet", schema, tmp_path / "out", OptOut.of(["a0", "a1"], schema))
    assert not (tmp_path / "out").exists()


# Refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 20.0, float("nan")])
def test_a_share_that_is_none(schema: Schema, share: float) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        split(frame(20), schema, holdout=share)


@pytest.mark.parametrize(("units", "share"), [(1, 0.5), (2, 1e-9), (3, 1 - 1e-9)])
def test_a_side_without_units(schema: Schema, units: int, share: float) -> None:
    with pytest.raises(InputError, match="one of the two files would be empty"):
        split(frame(units), schema, holdout=share)


def test_tables_that_cannot_be_split(schema: Schema) -> None:
    with pytest.raises(TableError, match="lacks a column of the schema: weight"):
        split(frame(9).drop(columns="weight"), schema)
    with pytest.raises(TableError, match="no row has a key"):
        split(frame(9).assign(key="NA"), schema)
    with pytest.raises(TableError, match="no rows"):
        split(frame(9).iloc[:0], schema)
    with pytest.raises(InputError, match="seed must lie"):
        split(frame(9), schema, seed=-1)


def test_nothing_is_left_where_a_split_fails(
    source: Path, schema: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists"):
        split_file(source, schema, tmp_path / "there")
    source.write_bytes(source.read_bytes() + b'"no end')
    with pytest.raises(TableError, match="quotes"):
        split_file(source, schema, tmp_path / "out")
    source.write_bytes(source.read_bytes()[:-7])
    real = splitting._dealt

    def other(*facts: Any, by: int) -> Dealt:
        dealt = real(*facts)
        return replace(dealt, sides=np.resize(dealt.sides, dealt.sides.size + by))

    for change in (1, -1):
        monkeypatch.setattr("dpsynth.tables.splitting._dealt", partial(other, by=change))
        with pytest.raises(TableError, match="changed while it was split"):
            split_file(source, schema, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["extract.csv", "there"]


# The command ----------------------------------------------------------------------------------


def test_the_command_tells_no_numbers_of_the_table(
    source: Path, lines: list[str], schema: Schema, tmp_path: Path
) -> None:
    document = tmp_path / "messy.schema.json"
    document.write_text(json.dumps(schema.to_dict()))
    done = CliRunner().invoke(
        commands,
        ["split", str(document), str(source), "-o", str(tmp_path / "out"), "--seed", "1"],
    )
    assert done.exit_code == 0, done.output
    assert "never release them" in done.output and "rows without a key" in done.output
    train, holdout = (
        len(records(tmp_path / "out" / f"{side}.csv")) - 1 for side in ("train", "holdout")
    )
    for private in (len(lines), train, holdout, UNITS // 5, UNITS - UNITS // 5):
        assert str(private) not in done.output.replace(str(tmp_path), "")
    again = CliRunner().invoke(
        commands, ["split", str(document), str(source), "-o", str(tmp_path / "out")]
    )
    assert isinstance(again.exception, InputError)


def test_the_command_tells_how_many_keys_it_read_and_not_how_many_it_found(
    source: Path, schema: Schema, tmp_path: Path
) -> None:
    document, gone = tmp_path / "messy.schema.json", tmp_path / "gone.txt"
    document.write_text(json.dumps(schema.to_dict()))
    gone.write_text("\n".join(["a1", "a2", "a3", *(f"x{i}" for i in range(74))]))
    arguments = ["split", str(document), str(source), "--opt-out", str(gone), "-o"]
    done = CliRunner().invoke(commands, [*arguments, str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    shown = done.output.replace(str(tmp_path), "")
    assert "77 keys read" in shown and "a1" not in shown and "3 " not in shown.replace("0.2", "")
    found = CliRunner().invoke(commands, [*arguments, str(tmp_path / "again"), "--json"])
    assert json.loads(found.stdout)["opt_out"] == {"file": str(gone), "keys": 77}
    for side in ("train", "holdout"):
        assert not units_of(records(tmp_path / "out" / f"{side}.csv")[1:]) & {"a1", "a2", "a3"}


def test_the_names_of_the_package() -> None:
    assert dpsynth.split is dpsynth.split is split
    assert dpsynth.split_file is split_file
