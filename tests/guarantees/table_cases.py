"""Columns, keys and hostile cells for the metamorphic test of coding: all texts of a CSV file.

The others' cells are those of which readers make something else while nobody disturbs them:
numbers with leading zeros, words that mean missing, truth values, dates, numbers of 20 digits.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpsynth.encoding import Codec, coder_of
from dpsynth.encoding.column_codecs import Coder
from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 90, "basis": "made for this test"}
COMMA = {"decimal": ",", "delimiter": ";"}
ROWS = 12  # of others
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
TIMES = {"minimum": "2000-01-01T00:00:00", "maximum": "2020-12-31T00:00:00"}

Facts = dict[str, Any]


def a_field(kind: str, *, limits: Facts | None = None, **own: Any) -> Facts:
    top = {key: own.pop(key) for key in ("format", "missingValues") if key in own}
    words = {key: own.pop(key) for key in ("trueValues", "falseValues") if key in own}
    return {"type": kind, "constraints": limits or {}, "dpsynth": BASIS | own} | top | words


@dataclass(frozen=True)
class Kind:
    """A kind of column: its field, and what the others' cells may be."""

    field: Facts
    cells: tuple[tuple[str, ...], ...]
    comma: bool = False  # whether the schema declares a decimal comma


WHOLE = {"minimum": 0, "maximum": 300}
NUMBERS = ("1", "02", "3.0", " 4", "5e1", "", "9999999999", "-0", "12", "7", "150", "299")
KINDS = {
    "string, digits": Kind(
        a_field("string", limits={"enum": ["008", "038", "250", "V27"]}),
        (
            ("008", "038", "250", "008", "038", "008", "250", "", "008", "250", "038", "008"),
            ("8", "08", "008", "8.0", "250.0", "", "NA", "250", "1e2", "nan", "0250", "008"),
        ),
    ),
    "string, words": Kind(
        a_field("string", limits={"enum": ["true", "False", "NA", "1", "x"], "required": True}),
        (
            ("true", "false", "True", "true", "False", "TRUE", "true", "false", "1", "0", "1", "0"),
            ("true", "false", "True", "true", "False", "TRUE", "", "", "", "", "", ""),
            ("NA",) * 12,
            ("",) * 12,
        ),
    ),
    "string, dates": Kind(
        a_field("string", limits={"enum": ["2001-02-03", "2001-02", "x"]}),
        (("2001-02-03", "2011-12-30", "", "2001-02-03") * 3,),
    ),
    "string, codes": Kind(
        a_field("string", codes={"system": "ICD-9-CM", "rollup": "chapter"}),
        (("008", "038", "250.00", "486", "0389", "", "250", "428.0", "650", "038", "001", "008"),),
    ),
    "string, listed codes": Kind(
        a_field(
            "string",
            codes={"system": "ICD-9-CM", "model": "chapter", "list": {"codes": ["008", "250.00"]}},
        ),
        (("008", "8", "250.00", "25000", "0389", "", "250", "428.0", "NA", "038", "001", "008"),),
    ),
    "integer": Kind(
        a_field("integer", limits=WHOLE, missingValues=["", "-9", "99"]),
        (
            NUMBERS,
            ("1", "2", "-9", "99", "99.0", "-09", "007", "300", "9007199254740993", "0", "5", "6"),
            ("1", "2", "NA", "nan", "", "NULL", "None", "-nan", "NaN", "N/A", "12", "15"),
            ("1.0000000000000001", "2.5", "1e999", "inf", "-inf", "3", "5", "6", "7", "8", "9", ""),
            ("",) * 12,
        ),
    ),
    "integer, bad is least": Kind(
        a_field("integer", limits=WHOLE, on_bad="minimum"),
        (NUMBERS, ("5", "2", "NA", "nan", "", "NULL", "None", "-nan", "NaN", "N/A", "1.5", "15")),
    ),
    "integer, categories": Kind(
        a_field("integer", limits={"enum": [0, 1, 2, 7]}, missingValues=["", "9", "-1"]),
        (("0", "1", "02", "9", "09", "9.0", "-1", "1.0", "2", "3", "1e0", ""),),
    ),
    "number": Kind(
        a_field("number", limits={"minimum": 0, "maximum": 50}, step=0.1),
        (
            NUMBERS,
            ("36.65", "36.75", ".15", ".25", ".35", "1.", "1e-400", "", "49.95", "0.05", "3", "4"),
            ("0.15000000000000002", "0.1499999999999999944", "0.35000000000000003",
             "2.6499999999999999112", "7.0500000000000007105", "8.15", "", "33.350000000000001421",
             "4.449999999999999289", "0.45000000000000001110", "1.05", "12.249999999999998"),
        ),
    ),
    "number, categories": Kind(
        a_field("number", limits={"enum": [0.1, 0.3, 1]}, missingValues=["", "0.7"]),
        (("0.1", ".3", "0.30000000000000004", "1.0", "01", "0.7", "0.70", "", "2", "1", "1", "1"),),
    ),
    "number, decimal comma": Kind(
        a_field("number", limits={"minimum": 0, "maximum": 50}, step=0.5),
        (("1.5", "2", "3.5", "4", "", "6", "7.0", "8", "9", "10", "11", "12"),
         ("1,5", "2", "3,5", "4", "", "6", "7,0", "8", "9", "10", "11", "12")),
        comma=True,
    ),
    "boolean": Kind(
        a_field("boolean"),
        (
            ("true", "false", "True", "tRUE", "FALSE", "true", "", "NA", "true", "", "true", ""),
            ("1", "0", "1", "01", "1.0", "0", "", "2", "0", "1", "0", "1"),
            ("true", "false", "True", "true", "FALSE", "true", "false", "true") + ("false",) * 4,
        ),
    ),
    "boolean, own words": Kind(
        a_field("boolean", trueValues=["2", "yes"], falseValues=["1", "no"]),
        (("2", "1", "2", "1", "2.0", "", "02", "1", "2", "1", "2", "1"),
         ("true", "false", "True", "true") * 3),
    ),
    "boolean, NA is false": Kind(
        a_field("boolean", falseValues=["false", "False", "FALSE", "0", "NA", "null", "None"]),
        (("1", "0", "NA", "null", "None", "1") * 2, ("true", "false", "NA", "null") * 3),
    ),
    "year": Kind(
        a_field("year", limits={"minimum": 900, "maximum": 2020}),
        (("1990", "0990", "2001.0", "", "2020", "3000", "1e3", "199", "901", "902", "20", "NA"),),
    ),
    "date": Kind(
        a_field("date", limits=DAYS),
        (
            ("2001-02-03", "2011-12-30", "", "1850-01-01", "9999-12-31", "2001-02-28") * 2,
            ("2001-02-03", "2011-12-30", "NA", "nan", "", "2001-02-28") * 2,
            ("2001-02-03 10:00:00", "2011-12-30T23:59:59", "2001-02-28 00:00:00", "") * 3,
            ("20010203", "20111230", "5", "") * 3,
        ),
    ),
    "date, own format": Kind(
        a_field("date", limits={"minimum": "01/01/2000", "maximum": "31/12/2020"},
                format="%d/%m/%Y"),
        (("03/04/2001", "05/06/2011", "", "01/02/2003", "12/11/2010", "07/08/2009") * 2,
         ("2001-04-03", "2011-06-05", "", "2003-02-01", "2010-11-12", "2009-08-07") * 2),
    ),
    "datetime": Kind(
        a_field("datetime", limits=TIMES, step=3600),
        (
            ("2001-02-03 10:29:59", "2011-12-30 10:30:00", "", "2001-02-03 10:30:01") * 3,
            ("2001-02-03", "2011-12-30", "", "1850-01-01") * 3,
            ("2001-02-03T10:30:00.5", "2011-12-30T10:30:00.000001", "1969-12-31T23:59:59.9999999")
            * 4,
            ("2001-02-03T10:30:00Z", "2011-12-30T10:30:00+02:00", "2001-02-03T23:30:00-05:00") * 4,
        ),
    ),
    "time": Kind(
        a_field("time", step=900),
        (
            ("08:30:00", "23:59:59", "", "00:00:00", "12:07:30", "12:07:29") * 2,
            ("08:30", "8:30", "", "0:05", "23:59", "12:45", "24:00", "1:5", "NA", "08", "8", "8:0"),
            ("08:30:00.5", "08:07:29.9999999", "08:07:30.000001", "", "24:00:00", "08:07:29.999999")
            * 2,
            ("08:30 AM", "8:30 pm", "08:30:00Z", "08:30:00+02:00", "0830", "8.5",
             "2001-02-03 08:30:00", "", "08:30", "-08:30", "25:00:00", "08:60:00"),
            ("08:30:00+02",) * 11 + ("",),
        ),
    ),
    "time, own format": Kind(
        a_field("time", limits={"minimum": "06.00", "maximum": "22.00"}, format="%H.%M"),
        (("08.30", "8.05", "", "23.59", "12.07", "05.30") * 2,
         ("08:30:00", "08:05:00", "", "23:59:00", "12:07:00", "05:30:00") * 2),
    ),
    "yearmonth": Kind(
        a_field("yearmonth", limits={"minimum": "2000-01", "maximum": "2020-12"}),
        (
            ("2001-02", "2011-12", "", "1850-01", "9999-12", "2001-03") * 2,
            ("2001-02-03", "2011-12-30", "", "1850-01-01", "2001-02-28", "NA") * 2,
            ("2001-02-03 10:00:00", "2011-12-30T23:59:59", "2001-02", "") * 3,
            ("2001-02-03 10:00:00", "2011-12-30T23:59:59", "2001-02-28 00:00:00", "") * 3,
            ("200102", "201112", "2001", "") * 3,
        ),
    ),
    "yearmonth, digits": Kind(
        a_field("yearmonth", limits={"minimum": "200001", "maximum": "202012"}, format="%Y%m"),
        (("200102", "201112", "", "199912", "202101", "200113") * 2,
         ("2001-02", "2011-12", "", "1850-01", "2001-02-28", "200102") * 2),
    ),
    "duration": Kind(
        a_field("duration", limits={"minimum": "PT0S", "maximum": "P10D"}, step=900),
        (
            ("36:00", "08:30", "", "240:00", "12:07:30", "1:05") * 2,
            ("08:30:00", "23:59:59", "", "00:00:00", "12:07:30", "12:07:29") * 2,
            ("PT36H", "P1DT12H", "", "P2W", "PT0.5S", "-PT5M") * 2,
            ("1 days 08:30:00", "2 days 00:00:00", "", "1 day, 2:03:04") * 3,
            ("3600", "7200", "", "12.5") * 3,
        ),
    ),
}  # fmt: skip
KEYS = {  # the others' keys: two rows a key, in the spellings of one
    "digits": ("007", "7", "008", "8", "7.0", "0012", "12", "007", "8", "99", "099", "12"),
    "long digits": tuple(f"{2**60 + number}" for number in (1, 2, 3, 1, 2, 3, 4, 5, 6, 6, 5, 4)),
    "longer digits": tuple(f"{10**20 + number}" for number in (1, 2, 3, 1, 2, 3, 4, 5, 6, 6, 5, 4)),
    "some missing": ("007", "", "7", "", "8", "NA", "8", "008", "9", "9", "", "007"),
    "words": ("true", "True", "TRUE", "1", "true", "false", "False", "0", "1", "0", "f", "t")[:8]
    + ("true", "false", "True", "False"),
    "truth": ("true", "True", "TRUE", "false") * 3,
    "dates": ("2001-02-03", "2001-02-03 00:00:00", "2001-02-03", "2011-12-30") * 3,
    "exponents": ("1e5", "100000", "1E5", "2e5", "200000", "1e5") * 2,
    "none at all": ("",) * 12,
    "nothing": ("NA",) * 12,
    "names": ("a1", "A1", " a1", "b2", "0b2", "c", "C", "a1", "b2", "null", "None", "c"),
}
OPTIONS: dict[str, Facts] = {
    "plain": {},
    "trimmed off": {"key": {"trim": False}},
    "case": {"key": {"case": True}},
    "leading zeros": {"key": {"leading_zeros": False}},
    "missing is own": {"missing_key": "own"},
}
HOSTILE = (
    *("V27", "A1", "unknown", "x", "NaN", "NA", "1e999", "-1e999", "True", "false", "1.5", "0.1"),
    *("13/04/2001", "2001-02-03", "2001-02-03 10:00:00", "2001-02-03T10:00:00+02:00", "12:30"),
    *("99999999999999999999999", "-9223372036854775809", "9223372036854775808", "007", "0x1F"),
    *("  ", "\u0663", "\u2212", "Zo\xeb", "1,5", "1_000", "-", "'"),
)


@dataclass(frozen=True)
class Case:
    """One column (or key) of a file: its name, the schema of it alone, and the others' cells."""

    name: str
    schema: Schema
    others: tuple[str, ...]

    @cached_property
    def codec(self) -> Codec:
        return Codec(self.schema)

    @cached_property
    def coder(self) -> Coder:
        return coder_of(self.schema.modelled[0], self.schema.dialect.decimal)


def schema_of(fields: dict[str, Facts], key: str, type_: str = "string", /, **own: Any) -> Schema:
    unit = {"name": key, "type": type_, "dpsynth": {"role": "unit"}}
    table = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    named = [{"name": name} | one for name, one in fields.items()]
    return Schema.from_dict({"fields": [unit, *named], "dpsynth": table | own})


def column_cases(comma: bool) -> tuple[list[Case], Schema]:
    """Every kind of column with every set of the others' cells; and the schema of all."""
    cases, fields = [], {}
    own = {"dialect": COMMA} if comma else {}
    for name, kind in KINDS.items():
        if kind.comma == comma:
            for place, cells in enumerate(kind.cells):
                title = f"{name} {place}"
                fields[title] = kind.field
                cases.append(Case(title, schema_of({title: kind.field}, "key", **own), cells))
    return cases, schema_of(fields, "key", **own)


def key_cases(option: str, type_: str) -> tuple[list[Case], Schema]:
    """Every set of the others' keys, compared by one option; and a schema of all, to read by."""
    plain = {"sex": a_field("string", limits={"enum": ["F", "M"]})}
    cases = [
        Case(name, schema_of(plain, name, type_, **OPTIONS[option]), keys)
        for name, keys in KEYS.items()
    ]
    words = a_field("string", limits={"enum": ["F", "M"]})
    return cases, schema_of(plain | dict.fromkeys(KEYS, words), "unit")


def written(path: Path, columns: dict[str, Sequence[str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
