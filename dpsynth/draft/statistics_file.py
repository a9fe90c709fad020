"""Names, labels, value labels and formats from a file of SPSS, SAS or Stata; no row is read.

pyreadstat reads the header of such a file alone (``metadataonly=True``). What the header says about
the rows (how many there are, how long the longest text is) is not used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dpsynth.draft.entry import CATEGORY, NUMERIC, TEXT, TIME, Entries, Entry
from dpsynth.draft.header import check_names
from dpsynth.draft.value_lists import is_missing
from dpsynth.errors import InputError
from dpsynth.files import cannot_read

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat",
    ".dta": "read_dta",
}
_PROGRAMS = {".sav": "SPSS", ".zsav": "SPSS", ".sas7bdat": "SAS", ".dta": "Stata"}
# Formats of SPSS, SAS and Stata, without their width.
_DATES = frozenset(
    "DATE EDATE ADATE SDATE JDATE MMDDYY DDMMYY YYMMDD YYMMDDN MMDDYYS DDMMYYP DDMMYYS YYMMDDS "
    "E8601DA B8601DA IS8601DA WEEKDATE WORDDATE JULIAN %TD %D".split()
)
_MOMENTS = frozenset("DATETIME YMDHMS E8601DT B8601DT IS8601DT DATEAMPM MDYAMPM %TC".split())
_CLOCKS = frozenset("TIME HHMM E8601TM B8601TM IS8601TM TIMEAMPM".split())
_DURATIONS = frozenset("DTIME MTIME TOD MMSS HOUR".split())  # or a part of a date and time
_STATA_CLOCK = re.compile(r"%-?tch+([:._]*(mm|ss|s+))*([_.]*(am|a\.m\.))?", re.IGNORECASE)
_YEARS = frozenset(("YEAR", "%TY"))


def read_statistics_file(path: Path) -> Entries:
    """Read what the header of a file says about its columns.

    Raises:
        InputError: the file does not exist, or is not of the program that its suffix names.
    """
    suffix = path.suffix.lower()
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be read: {cannot_read(error)}; correct the path") from None
    import pyreadstat

    try:
        _, header = getattr(pyreadstat, READERS[suffix])(str(path), metadataonly=True)
    except Exception:  # whatever a parser does with a damaged file
        raise InputError(
            f"{path} cannot be read as a file of {_PROGRAMS[suffix]}; export it again"
        ) from None
    names = [str(name).strip() for name in header.column_names]
    if not names:
        raise InputError(f"{path} has no columns")
    check_names(names, str(path))
    labels = header.column_labels or [None] * len(names)
    columns = tuple(
        _entry(str(raw), name, label, header)
        for raw, name, label in zip(header.column_names, names, labels, strict=True)
    )
    return Entries(f"{_PROGRAMS[suffix]} file {path.name}", columns)


def _entry(raw: str, name: str, label: str | None, header: Any) -> Entry:
    labelled = [
        (_written(code), " ".join(str(text).split()))
        for code, text in header.variable_value_labels.get(raw, {}).items()
    ]
    ranges = header.missing_ranges.get(raw, [])
    declared = {_written(one["lo"]) for one in ranges if one["lo"] == one["hi"]}
    kind = _kind(str(header.original_variable_types.get(raw) or ""), header, raw)
    codes = [(code, text) for code, text in labelled if code not in declared]
    numbers = kind in (NUMERIC, "integer", "number")
    if numbers and all(is_missing(text) for _, text in codes):
        declared |= {code for code, _ in codes}
        codes = []
    wide = [one for one in ranges if one["lo"] != one["hi"]]
    return Entry(
        name,
        place=f"column {name}",
        label=" ".join((label or "").split()),
        kind=CATEGORY if codes and kind not in ("date", "datetime", TIME) else kind,
        format="default" if kind == TIME else None,
        values=tuple(codes),
        missing=tuple(sorted(declared)),
        remark=_remark(str(header.original_variable_types.get(raw) or ""), wide=bool(wide)),
    )


def _word(format_: str) -> str:
    """Return a format without its width."""
    return re.sub(r"[0-9.]+$", "", format_.upper())


def _remark(format_: str, *, wide: bool) -> str:
    if _word(format_) in _DURATIONS:
        return f"the file shows it as {_word(format_)}, which is not read; make it a number there"
    return "the file declares a range of missing values; list them" if wide else ""


def _kind(format_: str, header: Any, raw: str) -> str | None:
    """Return the kind of a column by its format, then by how it is stored."""
    if _STATA_CLOCK.fullmatch(format_):
        return TIME
    word = _word(format_)
    stata = re.match(r"%-?[0-9]*T?[CDY]", format_.upper())
    if stata is not None:
        word = re.sub(r"[-0-9]", "", stata[0])
    for words, kind in (
        (_DATES, "date"),
        (_MOMENTS, "datetime"),
        (_CLOCKS, TIME),
        (_YEARS, "year"),
    ):
        if word in words:
            return kind
    stored = str(header.readstat_variable_types.get(raw, ""))
    if stored.startswith("string"):
        return TEXT
    whole = stored.startswith("int") or re.fullmatch(r"F[0-9]+(\.0)?", format_.upper())
    return "integer" if whole else NUMERIC


def _written(code: object) -> str:
    """Write a code without a needless point."""
    return str(int(code)) if isinstance(code, float) and code == int(code) else str(code).strip()
