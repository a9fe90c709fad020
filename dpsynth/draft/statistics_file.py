"""Names, labels, value labels and formats from a file of SPSS, SAS or Stata; no row is read.

pyreadstat reads the header of such a file alone (``metadataonly=True``). What the header says about
the rows (how many there are, how long the longest text is) is not used.

SAS keeps value labels in another file, a format catalogue (``.sas7bcat``), which has no rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth._util.messages import listed
from dpsynth._util.whole_files import require_plain
from dpsynth.draft.entry import CATEGORY, NUMERIC, TEXT, TIME, Entries, Entry
from dpsynth.draft.header import name_problems, refuse
from dpsynth.draft.value_lists import is_missing
from dpsynth.errors import InputError
from dpsynth.files import cannot_read
from dpsynth.schema.cell_forms import RESERVED
from dpsynth.tables.formats import FORMATS, format_by, suffix_of

# Formats of SPSS, SAS and Stata, without their width.
_DATES = frozenset(
    "DATE EDATE ADATE SDATE JDATE MMDDYY DDMMYY YYMMDD YYMMDDN MMDDYYS DDMMYYP DDMMYYS YYMMDDS "
    "E8601DA B8601DA IS8601DA WEEKDATE WORDDATE JULIAN %TD %D".split()
)
_MOMENTS = frozenset("DATETIME YMDHMS E8601DT B8601DT IS8601DT DATEAMPM MDYAMPM %TC".split())
_CLOCKS = frozenset("TIME HHMM E8601TM B8601TM IS8601TM TIMEAMPM".split())
_DURATIONS = frozenset("DTIME MTIME TOD MMSS HOUR".split())  # or a part of a date and time
_STATA_CLOCK = re.compile(r"%-?tch+([:._]*(mm|ss|s+))*([_.]*(am|a\.m\.))?", re.IGNORECASE)
_MONTHS = frozenset("MONYY YYMM YYMMC YYMMD YYMMN YYMMP YYMMS MMYY YYMON MOYR".split())
_YEARS = frozenset(("YEAR", "%TY"))
_MANY = 10_000  # a range of more is not listed
CATALOG = ".sas7bcat"
_COMMON_CATALOG = f"formats{CATALOG}"  # as SAS itself names the catalogue of a library
_SAS_FORMATS = _DATES | _MOMENTS | _CLOCKS | _DURATIONS | _YEARS
_SAS_NUMBERS = frozenset(
    "BEST BESTD BESTX F COMMA COMMAX D DOLLAR DOLLARX E EURO EUROX FRACT HEX NEGPAREN NLNUM NUMX "
    "PERCENT PERCENTN PVALUE ROMAN SSN Z MONTH DAY MONYY MMYY YYMM QTR WEEKDAY DOWNAME MONNAME "
    "$ $CHAR $F $HEX $QUOTE $UPCASE $VARYING $ASCII".split()
)

Labels = Mapping[str, Mapping[Any, str]]


def read_statistics_file(path: Path, catalog: Path | None = None) -> Entries:
    """Read what the header of a file says about its columns.

    Args:
        path: the file.
        catalog: the format catalogue of a SAS file; None for the one that lies beside it.

    Raises:
        InputError: a file does not exist, or is not of the program that its suffix names; or two
            catalogues lie beside a SAS file.
    """
    format_ = format_by(suffix_of(path))
    has_catalogs = format_ is FORMATS["sas"]
    if catalog is not None and not has_catalogs:
        raise InputError(f"{path} is not a .sas7bdat file; leave out --catalog")
    header = _read(format_.reader, path, f"{format_.noun}; export it again")
    names = [str(name).strip() for name in header.column_names]
    if not names:
        raise InputError(f"{path} has no columns")
    refuse(str(path), name_problems(names))
    source = f"{format_.program} file {path.name}"
    values: Labels = header.variable_value_labels
    if has_catalogs and (catalog := catalog or _beside(path)) is not None:
        values = _catalogued(catalog, header.original_variable_types)
        source += f" with the format catalogue {catalog.name}"
    labels = header.column_labels or [None] * len(names)
    columns = tuple(
        _entry(str(raw), name, label, header, values.get(str(raw), {}))
        for raw, name, label in zip(header.column_names, names, labels, strict=True)
    )
    if has_catalogs:
        columns = tuple(
            _with_format(column, str(header.original_variable_types.get(str(raw)) or ""))
            for raw, column in zip(header.column_names, columns, strict=True)
        )
    return Entries(source, columns, catalog=None if catalog is None else catalog.name)


def _read(reader: str, path: Path, kind: str) -> Any:
    """Return what pyreadstat says about a file, and none of its rows.

    Raises:
        InputError: there is no such file, or it is damaged.
    """
    require_plain(path)
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be read: {cannot_read(error)}; correct the path") from None
    import pyreadstat

    options = {} if reader == "read_sas7bcat" else {"metadataonly": True}
    if reader == "read_sav":
        options["user_missing"] = True  # so that the header says which values are missing
    try:
        return getattr(pyreadstat, reader)(str(path), **options)[1]
    except Exception:  # whatever a parser does with a damaged file
        raise InputError(f"{path} cannot be read as {kind}") from None


def _beside(path: Path) -> Path | None:
    """Return the catalogue that lies beside a SAS file under its name, or as ``formats.sas7bcat``.

    Raises:
        InputError: there are two.
    """
    wanted = {f"{path.stem}{CATALOG}".casefold(), _COMMON_CATALOG}
    found = sorted(one for one in path.parent.iterdir() if one.name.casefold() in wanted)
    if len(found) > 1:
        raise InputError(
            f"beside {path} are several format catalogues, {listed(one.name for one in found)}; "
            "name the right one with --catalog"
        )
    return found[0] if found else None


def _catalogued(catalog: Path, formats: Mapping[str, str | None]) -> Labels:
    """Return the value labels of each column, by the name of its format.

    A column's format may have a width (``SEXF8``); the name of a format cannot end in a digit.

    Raises:
        InputError: the catalogue cannot be read.
    """
    if catalog.suffix.lower() != CATALOG:
        raise InputError(
            f"{catalog} is not a format catalogue of SAS ({CATALOG}); correct --catalog"
        )
    read = _read(
        "read_sas7bcat",
        catalog,
        "a format catalogue of SAS, or is of a release that is not supported; write its formats "
        "into a data dictionary instead (PROC FORMAT with CNTLOUT), and move it away",
    )
    sets = {str(name).upper(): labels for name, labels in read.value_labels.items()}
    return {raw: sets[_word(one)] for raw, one in formats.items() if one and _word(one) in sets}


def _with_format(column: Entry, format_: str) -> Entry:
    """Say what a SAS format means for the labels of a column."""
    word = _word(format_)
    if not word or word in _SAS_FORMATS | _SAS_NUMBERS:
        return column
    if column.values:
        remark = f"values of the SAS format {word}; where it names ranges, only their ends are here"
    elif column.missing:
        return column
    else:
        remark = f"shown by the SAS format {word}, whose labels are in no catalogue that was read"
    return replace(column, remark=column.remark or remark)


def _entry(raw: str, name: str, label: str | None, header: Any, values: Mapping[Any, str]) -> Entry:
    ranges = [(one["lo"], one["hi"]) for one in header.missing_ranges.get(raw, [])]
    kind = _kind(str(header.original_variable_types.get(raw) or ""), header, raw)
    stored = str(header.readstat_variable_types.get(raw, ""))
    codes: list[tuple[str, str]] = []
    absent: list[tuple[str, str]] = []
    for code, text in values.items():
        if code != code:
            continue  # a missing value of SAS is not a number
        pair = (_written(code), " ".join(str(text).split()))
        if isinstance(code, str) and not stored.startswith("string"):
            absent.append((f".{code.lower()}", pair[1]))  # of Stata and SAS, as in a CSV file
        elif any(type(low) is type(code) and low <= code <= high for low, high in ranges):
            absent.append(pair)
        else:
            codes.append(pair)
    if kind in (NUMERIC, "integer", "number") and all(is_missing(text) for _, text in codes):
        absent += codes
        codes = []
    reasons, unlabelled = _reasons(absent, codes)
    known = {code for code, _ in absent}
    single = [_written(low) for low, high in ranges if low == high]
    unlabelled += [code for code in single if code not in known]
    wide = [one for one in ranges if one[0] != one[1] and not _is_listed(one, known)]
    return Entry(
        name,
        place=f"column {name}",
        label=" ".join((label or "").split()),
        kind=CATEGORY if codes and kind not in ("date", "datetime", TIME) else kind,
        format="default" if kind == TIME else None,
        values=tuple(codes),
        missing=tuple(sorted(unlabelled)),
        reasons=reasons,
        remark=_remark(str(header.original_variable_types.get(raw) or ""), wide=bool(wide)),
    )


def _reasons(
    absent: list[tuple[str, str]], codes: list[tuple[str, str]]
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], list[str]]:
    """Return labelled missing values by their labels, and those without a usable label."""
    taken = {word.casefold() for pair in codes for word in pair} | {*RESERVED}
    reasons: dict[str, tuple[str, ...]] = {}
    unlabelled = []
    for code, label in absent:
        if not label or not label.isprintable():
            unlabelled.append(code)
            continue
        name = f"{label} ({code})" if label.casefold() in taken else label
        reasons[name] = (*reasons.get(name, ()), code)
    return tuple(reasons.items()), unlabelled


def _is_listed(ends: tuple[Any, Any], known: set[str]) -> bool:
    """Tell whether each whole number of a range of missing values has a label."""
    low, high = ends
    if isinstance(low, str) or not -_MANY < low <= high < _MANY or high - low > _MANY:
        return False
    return all(str(code) in known for code in range(math.ceil(low), math.floor(high) + 1))


def _word(format_: str) -> str:
    """Return a format without its width.

    >>> _word("DATE9."), _word("$ward12.")
    ('DATE', '$WARD')
    """
    return re.sub(r"[0-9.]+$", "", format_.strip().upper())


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
        (_MONTHS, "yearmonth"),
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
