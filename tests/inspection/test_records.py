"""The check knows records: rows that appear, vanish or split are findings, with line and count.

Each case is a small extract with one flaw of its kind. No cell is shown. Remedies are applied, and
the check then finds nothing of the kind.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import inspection
from dpsynth.errors import TableError
from dpsynth.inspection import CheckResult
from dpsynth.schema import Dialect, Schema
from dpsynth.tables import open_table
from dpsynth.tables.csv import CsvTable
from dpsynth.tables.records import RecordLog, RecordScanner

from ..support.evaluated_office import call
from ..support.schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
ROWS = 300
HEADER = "pid,age,sex,sbp,note\n"
CANARY = "zebrafish"


def schema_of(*, keyed: bool = True, **own: Any) -> Schema:
    number = {"value": ROWS, "basis": "made for this test"}
    fields = [
        schema_field("age", "integer", BASIS, minimum=0, maximum=110),
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": BASIS},
        schema_field("sbp", "number", BASIS, minimum=50, maximum=260),
        {"name": "note", "type": "string", "dpsynth": {"role": "drop"}},
    ]
    facts = {"version": 1, "population": number, "rows": number} | own
    if keyed:
        fields.insert(0, {"name": "pid", "type": "string", "dpsynth": {"role": "unit"}})
        facts |= {"max_rows": {"value": 3, "basis": "made for this test"}}
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


def lines() -> list[str]:
    rng = np.random.default_rng(5)
    return [
        f"{i:04},{rng.integers(18, 90)},{rng.choice(['F', 'M'])},{rng.integers(90, 180)},seen {i}\n"
        for i in range(ROWS)
    ]


LINES = lines()
CLEAN = HEADER + "".join(LINES)


def with_lines(place: int, *more: str) -> str:
    return HEADER + "".join([*LINES[:place], *more, *LINES[place:]])


def changed(change: Callable[[int, str], str]) -> str:
    return HEADER + "".join(change(i, line) for i, line in enumerate(LINES))


def broken_notes(i: int, line: str) -> str:
    return line + (f"pain score {CANARY}\n" if i % 4 == 0 else "")


def broken_in_the_middle(i: int, line: str) -> str:
    pid, age, sex, sbp, note = line.rstrip("\n").split(",")
    gap = "\npain at " if i % 4 == 0 else " "
    return f"{pid},{age},{note}{gap}16:11,{sex},{sbp}\n"


def lone_quotes(i: int, line: str) -> str:
    text = line.replace("seen", '"seen') if i == 50 else line
    return text.replace("\n", '"\n') if i == 270 else text


def checked(tmp_path: Path, content: str | bytes, schema: Schema | None = None) -> CheckResult:
    path = tmp_path / "extract.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return inspection.check(path, schema or schema_of())


REFUSED = {  # a fit refuses these before the charge
    "notes": (changed(broken_notes), "short-lines", "20.0 % (75 of 375 lines)", "line 3"),
    "middle": (
        changed(broken_in_the_middle).replace(HEADER, "pid,age,note,sex,sbp\n"),
        "short-lines", "40.0 % (150 of 375 lines)", "line 2",
    ),
    "affected": (CLEAN + "\n(300 rows affected)\n", "short-lines", "(1 of 301", "line 303"),
    "end of file": (CLEAN + "End of file\n", "short-lines", "(1 of 301 lines)", "line 302"),
    "pages": (with_lines(90, "Page 2\n") + "Page 3\n", "short-lines", "(2 of 302", "line 92"),
    "separators": (
        with_lines(30, *(line.replace(",", ";") for line in LINES[:20])),
        "short-lines", "have ';' as separator", "line 32",
    ),
    "comma": (CLEAN.replace("seen 9\n", "seen 9, twice\n"), "long-lines", "(1 of 300", "line 11"),
    "trailing": (
        changed(lambda _, line: line.replace("\n", ",\n")),
        "long-lines", "they end in a separator", "line 2",
    ),
    "decimals": (
        changed(lambda _, line: line.replace(",seen", ",5,seen")),
        "long-lines", "such as a decimal comma", "line 2",
    ),
    "unclosed": (
        CLEAN.replace("\n0100,", '\n"0100,'), "quotes", "(1 of 101 lines) have quotes", "line 102",
    ),
    "inch": (CLEAN.replace("seen 7\n", '"5" tube"\n'), "quotes", "(1 of 300 lines)", "line 9"),
    "headers": (CLEAN + CLEAN, "headers", "(1 of 601 lines) repeat the header", "line 302"),
    "joined": (CLEAN + "\ufeff" + CLEAN, "joined", "(1 of 601 lines)", "line 302"),
}  # fmt: skip
UNLIKE = {
    "total": (CLEAN + "Total,300,,,\n", "serious", "1 row at the end (line 302)"),
    "plain total": (CLEAN + "Total,54,F,130,x\n", "warning", "1 row at the end (line 302)"),
    "number": (CLEAN + "300,,,,\n", "serious", "1 row at the end (line 302)"),
    "summary": (
        CLEAN + "Mean,54,,130,\nSD,12,,20,\nTotal,300,,,\n", "serious", "3 rows at the end"
    ),
    "of pages": (
        with_lines(150, "Total,150,,,\n") + "Total,300,,,\n", "serious", "2 rows (first: line 152)"
    ),
    "of wards": (
        with_lines(9, "Ward A,9,,,\n") + "Ward B,291,,,\n", "serious", "2 rows (first: line 11)"
    ),
    "labels": (
        with_lines(0, "Patient,Age in years,Sex,Systolic,Note\n"), "serious", "1 row at the start"
    ),
}  # fmt: skip
FITS = {
    "clean": CLEAN,
    "CR": CLEAN.replace("\n", "\r"),
    "CRLF": CLEAN.replace("\n", "\r\n"),
    "mark": "\ufeff" + CLEAN,
    "blank lines at the end": CLEAN + "\n\n\n",
    "no last line end": CLEAN.rstrip("\n"),
    "inch": CLEAN.replace("seen 7\n", '5" tube\n'),
    "doubled": CLEAN.replace("seen 7\n", '"a ""tube"""\n'),
    "all quoted": "".join(f'"{line.rstrip()}"\n'.replace(",", '","') for line in [HEADER, *LINES]),
}


@pytest.mark.parametrize("name", FITS)
def test_what_is_a_table_has_no_finding(name: str, tmp_path: Path) -> None:
    found = checked(tmp_path, FITS[name])
    assert found.findings == ()
    assert found.read["table"] | {"lines": 0} == {
        "lines": 0, "records": ROWS, "rows": ROWS, "units": ROWS,
    }  # fmt: skip
    open_table(tmp_path / "extract.csv", schema_of())


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_lines_that_are_no_records(name: str, keyed: bool, tmp_path: Path) -> None:
    content, kind, words, line = REFUSED[name]
    found = checked(tmp_path, content, schema_of(keyed=keyed))
    one = next(one for one in found.findings if one.kind == kind)
    assert one.key in found.serious
    text = "\n".join(one.lines())
    assert words in text and f"(first: {line})" in text and "a fit stops" in text
    assert CANARY not in json.dumps(found.to_dict())
    with pytest.raises(TableError, match=f"{line.replace('line', 'lines?')}\\b") as caught:
        open_table(tmp_path / "extract.csv", schema_of(keyed=keyed))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("name", UNLIKE)
def test_rows_unlike_all_others(name: str, tmp_path: Path) -> None:
    content, level, words = UNLIKE[name]
    [one] = [one for one in checked(tmp_path, content).findings if one.kind == "unlike-rows"]
    assert one.level.word == level and words in one.message


@pytest.mark.parametrize("content", [CLEAN + "Total,300,,,\n", CLEAN + ",,,,\n" * 5])
def test_rows_without_keys(content: str, tmp_path: Path) -> None:
    """Where each row is a patient, so is each line of separators."""
    found = checked(tmp_path, content, schema_of(keyed=False))
    assert (
        found.serious == ("table:unlike-rows",)
        and "(first: line" in str(found.findings)
        or ("(line 302)" in found.findings[0].message)
    )


FOOTERS = {  # of two kinds of schemas: what the findings say
    "total, source and blanks": (
        "Total,300,,,\nSource: registry,,,,\n,,,,\n",
        ("2 rows at the end (line 302)",),
        ("3 rows at the end (first: line 302)",),
    ),
    "total and a line": (
        "Total,300,,,\n(300 rows affected)\n",
        ("1 row at the end (line 302)", "Remove this line at the end"),
        ("1 row at the end (line 302)", "Remove this line at the end"),
    ),
    "a line and a total": (
        "(300 rows)\nTotal,300,,,\n",
        ("1 row at the end (line 303)", "(first: line 302)"),
        ("1 row at the end (line 303)", "(first: line 302)"),
    ),
    "all of them": (
        "Total,300,,,\n,,,,\nEnd of file\n",
        (
            "1 row at the end (line 302)",
            "1 of 302 rows) have no key",
            "Remove this line at the end",
        ),
        ("2 rows at the end (first: line 302)", "Remove this line at the end"),
    ),
    "a ward within and a total": (
        "Ward A,9,,,\n0999,54,F,130,x\nTotal sum: 300,,,,\n",
        ("1 row at the end (line 304)",),
        ("1 row at the end (first: line 304)",),
    ),
}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("name", FOOTERS)
def test_each_kind_of_footer_of_a_file_is_told(name: str, keyed: bool, tmp_path: Path) -> None:
    footer, with_keys, without = FOOTERS[name]
    found = checked(tmp_path, CLEAN + footer, schema_of(keyed=keyed))
    text = "\n".join(line for one in found.findings for line in one.lines())
    for words in with_keys if keyed else without:
        assert words in text, text
    clean = checked(tmp_path, CLEAN, schema_of(keyed=keyed))
    assert clean.serious == ()  # as the remedies say


def test_a_total_is_serious_where_other_cells_are_missing_too(tmp_path: Path) -> None:
    """No column stands out then, but a row with a total is not valid in every column."""
    other = "0999,,,,x\n"
    [one] = [
        one
        for one in checked(tmp_path, with_lines(9, other) + "Total,300,,,\n").findings
        if one.kind == "unlike-rows"
    ]
    assert one.level.word == "serious" and "columns where" not in one.message


def test_a_record_that_is_cut_off_is_no_footer(tmp_path: Path) -> None:
    for cut in ("0300,44,F", "0300,44", "0300"):
        found = checked(tmp_path, CLEAN + cut)
        [one] = found.findings
        assert one.kind == "short-lines" and "a footer" not in one.remedy
        assert one.remedy.startswith("line 302 begins as a record and is not complete: is the file")
    both = checked(tmp_path, CLEAN + "(300 rows)\n0300,44,F")
    assert "line 303 begins as a record" in both.findings[0].remedy
    assert "a footer" in both.findings[0].remedy
    with pytest.raises(TableError, match="a file that is cut off"):
        open_table(tmp_path / "extract.csv", schema_of())


def test_the_newest_rows_may_be_incomplete(tmp_path: Path) -> None:
    """Several last rows that lack two measurements are no footer for certain."""
    newest = [f"03{i:02},44,,,x\n" for i in range(3)]
    [one] = checked(tmp_path, CLEAN + "".join(newest)).findings
    assert (one.kind, one.level.word) == ("unlike-rows", "warning")


def test_a_header_with_one_separator_more(tmp_path: Path) -> None:
    content = CLEAN.replace(HEADER, HEADER.replace("\n", ",\n"))
    for keyed in (True, False):
        found = checked(tmp_path, content, schema_of(keyed=keyed))
        [one] = found.findings
        assert one.remedy.startswith("the header ends in a separator, so column 6 has no name")
    with pytest.raises(TableError, match="the header ends in a separator.* write both alike"):
        open_table(tmp_path / "extract.csv", schema_of())
    mended = changed(lambda _, line: line.replace("\n", ",\n")).replace(HEADER, HEADER[:-1] + ",\n")
    [left] = checked(tmp_path, mended).findings  # every record has the separator, too
    assert "does not read it: column 6, which has no name" in left.message


@pytest.mark.parametrize("keyed", [True, False])
def test_sizes_that_follow_from_lost_lines_are_no_second_finding(
    keyed: bool, tmp_path: Path
) -> None:
    for content in (changed(lone_quotes), CLEAN + CLEAN, REFUSED["notes"][0]):
        kinds = {one.kind for one in checked(tmp_path, content, schema_of(keyed=keyed)).findings}
        assert not kinds & {"rows", "units"}, kinds
    few = HEADER + "".join(LINES[:50])
    kinds = {one.kind for one in checked(tmp_path, few, schema_of(keyed=keyed)).findings}
    assert "rows" in kinds


def test_two_kinds_of_keys_are_no_footer(tmp_path: Path) -> None:
    """A second site, whose keys are of another form and whose pressures were not taken."""
    site = [f"B-{i},44,F,,x\n" for i in range(ROWS // 2)]
    assert checked(tmp_path, with_lines(ROWS, *site)).serious == ()
    short = [f"B-{i},44,F,120,x\n" for i in range(9)]
    assert checked(tmp_path, with_lines(100, *short)).serious == ()


def test_a_lone_quote_swallows_lines(tmp_path: Path) -> None:
    found = checked(tmp_path, changed(lone_quotes))
    assert found.serious == ("table:swallowed-lines",)
    one = found.findings[0]
    assert "(220 of 301 lines)" in one.message and "(first: line 53)" in one.message
    assert found.read["table"] == {"lines": 301, "records": 80, "rows": 80, "units": 80}
    quote = schema_of(dialect={"quote": ""})  # as the remedy says
    assert "quote: " in one.remedy and checked(tmp_path, changed(lone_quotes), quote).findings == ()


def test_notes_of_several_lines_are_no_flaw(tmp_path: Path) -> None:
    note = '"first, one\nthen, a, b, c\n9,9,9,9,9"\n'
    found = checked(tmp_path, changed(lambda i, line: line.replace(f"seen {i}\n", note)))
    [one] = found.findings
    assert (one.kind, one.level.word, one.count) == ("several-lines", "note", ROWS)
    assert found.read["table"]["lines"] == 3 * ROWS + 1


def test_places_behind_cells_of_several_lines(tmp_path: Path) -> None:
    content = with_lines(100, "\n").replace("seen 3\n", '"a\nb"\n') + "Total,300,,,\n"
    found = checked(tmp_path, content)
    assert {one.kind: one.count for one in found.findings if one.kind != "clipped"} == {
        "unlike-rows": 1, "several-lines": 1, "blank-lines": 1,
    }  # fmt: skip
    assert "(line 304)" in found.findings[0].message


def test_lines_above_the_header(tmp_path: Path) -> None:
    for title in ("Ward 3\n\n", "# made by, x, y, z\n# again\n"):
        with pytest.raises(TableError, match="line 3 has all of them: write dialect: {header_row"):
            checked(tmp_path, title + CLEAN)


def test_remedies_of_records(tmp_path: Path) -> None:
    def quoted(line: str) -> str:
        head, note = line.rstrip("\n").rsplit(",", 1)
        return f'{head},"{note}\npain"\n'

    mended = {
        "notes": changed(lambda i, line: quoted(line) if i % 4 == 0 else line),
        "trailing": REFUSED["trailing"][0].replace(HEADER, HEADER.replace("\n", ",\n")),
        "headers": CLEAN + "".join(LINES),
        "decimals": REFUSED["decimals"][0].replace(",5,", ".5,"),
        "comma": CLEAN.replace("seen 9\n", '"seen 9, twice"\n'),
        "inch": CLEAN.replace("seen 7\n", '"5"" tube"\n'),
        "middle": changed(broken_in_the_middle)
        .replace(HEADER, "pid,age,note,sex,sbp\n")
        .replace("\npain at ", " pain at "),
        "affected": REFUSED["affected"][0].replace("(300 rows affected)\n", ""),
        "end of file": REFUSED["end of file"][0].replace("End of file\n", ""),
        "pages": REFUSED["pages"][0].replace("Page 2\n", "").replace("Page 3\n", ""),
        "separators": REFUSED["separators"][0].replace(";", ","),
        "unclosed": CLEAN,
        "joined": REFUSED["joined"][0].replace("\ufeff" + HEADER, ""),
    }
    assert {*mended} == {*REFUSED}, "each remedy is applied"
    for name, content in mended.items():
        kinds = {one.kind for one in checked(tmp_path, content).findings}
        assert REFUSED[name][1] not in kinds and "unlike-rows" not in kinds
        open_table(tmp_path / "extract.csv", schema_of())


@pytest.mark.parametrize("name", UNLIKE)
def test_remedies_of_rows_unlike_all_others(name: str, tmp_path: Path) -> None:
    """The rows are removed that the findings count and place; nothing is found then."""
    content = UNLIKE[name][0]
    added = [line for line in content.splitlines() if f"{line}\n" not in (HEADER, *LINES)]
    [one] = [one for one in checked(tmp_path, content).findings if one.kind == "unlike-rows"]
    assert "Remove " in one.remedy and one.count == len(added)
    assert ("these rows" in one.remedy) == (one.count > 1)
    for line in added:
        content = content.replace(f"{line}\n", "")
    assert checked(tmp_path, content).findings == ()


def test_the_remedy_of_title_lines(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="line 3 has all of them: write dialect: {header_row"):
        checked(tmp_path, "Ward 3\n\n" + CLEAN)
    declared = replace(schema_of(), dialect=Dialect(header_row=3))
    found = inspection.check(tmp_path / "extract.csv", declared)
    assert found.findings == () and found.read["table"]["lines"] == CLEAN.count("\n") + 2


def test_gzipped_files_and_frames(tmp_path: Path) -> None:
    path = tmp_path / "extract.csv.gz"
    path.write_bytes(gzip.compress(REFUSED["notes"][0].encode()))
    assert inspection.check(path, schema_of()).serious == ("table:short-lines",)
    (tmp_path / "t.csv").write_text(UNLIKE["total"][0])
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str)
    found = inspection.check(frame, schema_of())
    assert found.serious == ("table:unlike-rows",)
    assert "(row 301)" in found.findings[0].message
    assert found.read == {"table": {"rows": 301, "units": 301}}


def test_numbers_are_always_printed(tmp_path: Path, capsys: Any) -> None:
    schema_of().save(tmp_path / "s.schema.yaml")
    ask = ["schema", "check", str(tmp_path / "s.schema.yaml"), str(tmp_path / "extract.csv")]
    (tmp_path / "extract.csv").write_text(CLEAN)
    assert call(*ask) == 0
    words = "300 rows of 300 units (pid), from 300 records below the header, on 301 lines"
    assert words in capsys.readouterr().out
    (tmp_path / "extract.csv").write_text(REFUSED["notes"][0])
    assert call(*ask, "--json") == 3
    document = json.loads(capsys.readouterr().out)
    sizes = {"lines": 376, "records": 375, "rows": 300, "units": 300}
    assert document["read"] == {"table": sizes}


@settings(deadline=None, max_examples=300)
@given(st.lists(st.text(st.sampled_from('ab,"\n\r \ufeff'), max_size=12), min_size=1, max_size=9))
def test_one_scanner_whoever_reads(tmp_path_factory: Any, parts: list[str]) -> None:
    """A file passes the check of records if it can be read, and the log has the rows then read."""
    path = tmp_path_factory.mktemp("scanned") / "t.csv"
    path.write_text("a,b\n" + "\n".join(parts), newline="")
    table = CsvTable(path, ("a", "b"), Dialect())

    def outcome(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except TableError as error:
            return str(error)

    read = outcome(lambda: [list(row) for _, row in table.records()])
    passed = outcome(table.check_records)
    assert (passed is None) == isinstance(read, list)
    log = RecordLog()
    with path.open("rb") as raw:
        logged = [list(row) for row in RecordScanner(path, raw, Dialect(), log=log).rows()]
    irregular = sum(one.count for one in log.irregular.values())
    assert (irregular == 0) == isinstance(read, list)
    assert log.records == len(logged) - 1 + irregular == log.rows + irregular
    if isinstance(read, list):
        assert logged == read
    else:
        assert passed == read  # at the same line, in the same words
