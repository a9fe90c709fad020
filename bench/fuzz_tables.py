"""Private tables with something wrong in them, as CSV and Parquet; every one holds canaries."""

from __future__ import annotations

import copy
import csv
import gzip
import io
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_bytes import damaged
from fuzz_canaries import CANARIES, NUMBERS, WORDS
from fuzz_good import CLINIC, good_rows, standing

ROWS = good_rows(24).to_dict("list")
COLUMNS = list(ROWS)
MODELLED = 4  # columns of a schema; more would only take longer
ODD = ("", " ", "NA", "-9", "1e999", "nan", "inf", "0x10", "1_000", "9" * 400, "-0", "2016-02-30")
ODD += ("0001-01-01", "9999-12-31", "24:00", "2016-01-01T00:00:00+99:00", "\u0663", "\u200b", "x,y")
ODD += ("\r", "a\nb", '"', "''", "\ufeff", "\U0001f9ec", "1.5.2", "+", "e5", ".", "1" * 30)
DIALECTS: tuple[dict[str, str], ...] = (
    *({}, {}, {}, {"delimiter": ";", "decimal": ","}, {"quote": "'"}, {"quote": ""}),
    *({"encoding": name} for name in ("latin-1", "utf-16", "cp1252", "ascii", "utf-32", "utf-7")),
    *({"encoding": name} for name in ("shift_jis", "idna", "punycode", "unicode_escape")),
    {"delimiter": "\t", "quote": "|", "encoding": "utf-8"},
)


def schema_document(rng: Random) -> dict[str, Any]:
    """Give the clinic's schema document of fewer columns, with other policies and dialects."""
    document = copy.deepcopy(CLINIC)
    own, fields = document["dpsynth"], document["fields"]
    modelled = [place for place, field in enumerate(fields) if "role" not in field["dpsynth"]]
    for place in sorted(rng.sample(modelled, len(modelled) - MODELLED), reverse=True):
        del fields[place]
    fields[:] = standing(fields)
    if {"admitted", "followed"} - {field["name"] for field in fields}:
        del own["rules"]
    if dialect := rng.choice(DIALECTS):
        own["dialect"] = dialect
    own["keep"] = rng.choice(("window", "random"))
    own["missing_key"] = rng.choice(("drop", "own"))
    own["key"] = {"case": rng.random() < 0.5, "leading_zeros": rng.random() < 0.5}
    if rng.random() < 0.3:
        free = [one for one in fields if not {"role", "derived"} & set(one["dpsynth"])]
        refusing = rng.choice(free)
        refusing["dpsynth"] = refusing["dpsynth"] | {"on_bad": "refuse"}
        if "enum" in refusing.get("constraints", {}):
            refusing["dpsynth"] |= {"on_unknown": "refuse"}
    dated = next((one for one in fields if one["type"] == "date"), {})
    if rng.random() < 0.3:
        dated["format"] = rng.choice(("%d.%m.%Y", "%Y%m%d", "%d %B %Y"))
    if rng.random() < 0.3:
        fields[1]["type"] = rng.choice(("integer", "string", "date", "number"))
    return document


def columns(rng: Random) -> dict[str, list[str]]:
    """Give a table of text: rows that fit, odd ones, and a canary in every column."""
    count = rng.choice((1, 2, 5, 24))
    table = {name: cells[:count] for name, cells in ROWS.items()}
    for cells in table.values():
        cells[rng.randrange(count)] = rng.choice(CANARIES)
        if rng.random() < 0.3:
            cells[rng.randrange(count)] = rng.choice(ODD)
    if rng.random() < 0.2:
        table[rng.choice(CANARIES)] = table[rng.choice(COLUMNS)]
    if rng.random() < 0.1:
        del table[rng.choice(COLUMNS)]
    names = list(table)
    if rng.random() < 0.2:
        rng.shuffle(names)
    return {name: table[name] for name in names}


def csv_file(rng: Random, document: dict[str, Any]) -> tuple[str, bytes]:
    """Give the suffix and the bytes of a CSV file, in the dialect of a schema or in another."""
    table, dialect = columns(rng), document["dpsynth"].get("dialect", {})
    if rng.random() < 0.1:
        dialect = rng.choice(DIALECTS)
    lines = [list(table), *map(list, zip(*table.values(), strict=True))]
    if rng.random() < 0.35:
        _tear(rng, lines)
    encoding = dialect.get("encoding", "utf-8")
    try:
        content = _written(rng, lines, dialect).encode(encoding)
    except (UnicodeError, csv.Error):
        content = "\n".join(map(",".join, lines)).encode(errors="replace")
    content = damaged(rng, content) if rng.random() < 0.4 else content
    if rng.random() > 0.1:
        return ".csv", content
    content = gzip.compress(content, mtime=0) if rng.random() < 0.8 else content
    return rng.choice((".csv.gz", ".csv")), damaged(rng, content) if rng.random() < 0.5 else content


def _written(rng: Random, lines: list[list[str]], dialect: dict[str, str]) -> str:
    text, quote = io.StringIO(), dialect.get("quote", '"')
    writer = csv.writer(
        text,
        delimiter=dialect.get("delimiter", ","),
        quotechar=quote or None,
        quoting=rng.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL)) if quote else csv.QUOTE_NONE,
        escapechar=None if quote else "\\",
        lineterminator=rng.choice(("\n", "\n", "\r\n", "\r")),
    )
    writer.writerows(lines)
    return text.getvalue()


def _tear(rng: Random, lines: list[list[str]]) -> None:
    """Break the shape of a table: its header, one of its rows, one of its cells."""
    row = rng.choice(lines)
    match rng.randrange(8):
        case 0:
            lines.pop(0)
        case 1:
            row.append(rng.choice(CANARIES))
        case 2:
            del row[rng.randrange(len(row)) :]
        case 3:
            row[0] = '"' + row[0]
        case 4:
            row[rng.randrange(len(row))] = rng.choice(WORDS) * rng.choice((30, 20_000, 200_000))
        case 5:
            row[rng.randrange(len(row))] += "\0" + rng.choice(WORDS)
        case 6:
            lines.insert(1, [])
        case _:
            lines[0] = [rng.choice(WORDS) if name == "age" else name for name in lines[0]]


def parquet_file(rng: Random) -> bytes:
    """Give the bytes of a Parquet file: of any types, now and then damaged."""
    table = columns(rng)
    arrays = {name: pa.array(cells) for name, cells in table.items()}
    for name in rng.sample(sorted(arrays), rng.choice((0, 0, 1, 2))):
        arrays[name] = _typed(rng, len(arrays[name]))
    whole = pa.table(arrays)
    if rng.random() < 0.1:
        twice = rng.choice(list(arrays))
        whole = whole.append_column(twice, arrays[twice])
    if rng.random() < 0.2:
        whole = whole.replace_schema_metadata({WORDS[0]: WORDS[0]})
    options = {
        "row_group_size": rng.choice((1, 3, 100)),
        "compression": rng.choice(("none", "snappy", "zstd", "gzip")),
        "use_dictionary": rng.random() < 0.5,
        "data_page_version": rng.choice(("1.0", "2.0")),
        "store_schema": rng.random() < 0.7,
    }
    file = io.BytesIO()
    try:
        pq.write_table(whole, file, **options)
    except pa.ArrowException:  # Parquet has no such type, or no such time
        file = io.BytesIO()
        pq.write_table(pa.table(table), file, **options)
    content = file.getvalue()
    return damaged(rng, content) if rng.random() < 0.6 else content


def _typed(rng: Random, count: int) -> Any:
    """Give a column of canaries of some type, good or bad."""
    number, word = int(NUMBERS[0]), rng.choice(WORDS)
    invalid = pa.array([word.encode() + b"\xfc\xff"] * count, pa.binary())
    whole = pa.array([number] * count)
    makers = (
        lambda: pa.array([word.encode()] * count),
        lambda: pa.array([word] * count).dictionary_encode(),
        lambda: pa.array([[word]] * count),
        lambda: pa.array([{word: word}] * count),
        lambda: pa.array([[(word, 1)]] * count, pa.map_(pa.string(), pa.int64())),
        lambda: whole,
        lambda: pa.array([2**64 - 1 - i for i in range(count)], pa.uint64()),
        lambda: pa.array([float(NUMBERS[1]), float("nan"), float("inf"), 1e308][:count] * count),
        lambda: pa.array([1.5] * count, pa.float32()).cast(pa.float16()),
        lambda: whole.cast(pa.decimal128(38, rng.choice((0, 5)))),
        lambda: pa.array([10**70] * count, pa.decimal256(76, 0)),
        lambda: pa.array([None, True][:count] * count),
        lambda: pa.nulls(count),
        lambda: pa.array([rng.choice((0, -(2**31), 2**31 - 1))] * count, pa.int32()).cast(
            pa.date32()
        ),
        lambda: whole.cast(pa.time64("us"), safe=False),
        lambda: pa.array([rng.choice((number, 2**63 - 1, -(2**63)))] * count).cast(
            pa.timestamp(
                rng.choice(("s", "ms", "us", "ns")), tz=rng.choice((None, "UTC", "+01:00"))
            ),
            safe=False,
        ),
        lambda: pa.array([number] * count, pa.duration("us")),
        lambda: pa.Array.from_buffers(pa.string(), count, invalid.buffers()),
        lambda: pa.array([word] * count, pa.large_string()),
        lambda: pa.array([word] * count, pa.string_view()),
    )
    made = rng.choice(makers)()
    return made[:count] if len(made) >= count else pa.nulls(count)
