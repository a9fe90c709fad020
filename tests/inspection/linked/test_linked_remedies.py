"""Each remedy for linked tables is applied, as its text says, and the tables checked again."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import yaml

from dpsynth import inspection
from dpsynth.inspection import CheckResult, Finding, Level
from dpsynth.inspection.findings import CROWD, WRITTEN
from dpsynth.inspection.keys import _FOLDS, _LAST
from dpsynth.inspection.linked_findings import LINKED_KINDS
from dpsynth.schema import LinkedSchema

from ...support.clean_ward import tables, ward
from . import test_linked_check as flaws
from .test_declarations import KINDS

Tables = dict[str, pd.DataFrame]
Document = dict[str, Any]
Change = Callable[[Tables], None]


@dataclass
class Row:
    """Tables that have a finding, and what its remedy leaves to the office."""

    flaw: Change
    kind: str
    says: str  # what of the remedy is applied
    cause: str = ""
    source: Change | None = None
    declared: Callable[[Document], None] | None = None  # by hand, where it is no line
    before: Callable[[Document], None] | None = None
    fill: tuple[str, str] = ("", "")
    then: str = ""  # a finding that is true of the tables once the remedy is applied


def clean(*names: str) -> Change:
    """Let the source write some tables as it should have."""

    def mend(broken: Tables) -> None:
        broken.update({name: tables()[name] for name in names})

    return mend


def blank_keys(broken: Tables) -> None:
    broken["labs"]["id"] = " " + broken["labs"]["id"]


def signed_keys(broken: Tables) -> None:
    broken["labs"]["id"] = broken["labs"]["id"].str[:2] + "-" + broken["labs"]["id"].str[2:]


def repeated(document: Document) -> None:
    document["resources"][0]["dpsynth"] = {"repeated": True}


def varying(broken: Tables) -> None:
    broken["patients"] = pd.concat([broken["patients"]] * 2, ignore_index=True)
    broken["patients"].loc[60:89, "sex"] = "M"


def one_sex(broken: Tables) -> None:
    broken["patients"] = pd.concat([tables()["patients"]] * 2, ignore_index=True)


def not_last(broken: Tables) -> None:
    happened = broken["events"]["event"] == "mi"
    broken["events"].loc[happened, "days"] = "1999"


def key(**settings: bool) -> Callable[[Document], None]:
    def declare(document: Document) -> None:
        document["dpsynth"]["key"] = settings

    return declare


def without(*path: Any) -> Callable[[Document], None]:
    def declare(document: Document) -> None:
        for name in path[:-1]:
            document = document[name]
        del document[path[-1]]

    return declare


def crowd_is_no_patient(document: Document) -> None:
    for resource in document["resources"]:
        resource["schema"]["fields"][0]["missingValues"] = ["", "00100"]


def events_again(document: Document) -> None:
    own = document["resources"][2]["dpsynth"]
    del own["once"]
    own["max_rows"] = {"value": 4, "basis": "protocol"}


def last_is_end(broken: Tables) -> None:
    broken["events"].loc[broken["events"]["event"] == "mi", "days"] = "2000"


def no_number(broken: Tables) -> None:
    broken["visits"]["id"] = broken["visits"]["id"].str.removesuffix(".0")


TABLE: dict[str, Row] = {
    "strangers": Row(flaws.strangers, "strangers", "the same people", source=clean("labs")),
    "key-case": Row(flaws.other_case, "strangers", "{case: true}", "key-case"),
    "key-blanks": Row(
        blank_keys, "strangers", "{trim: true}", "key-blanks", before=key(trim=False)
    ),
    "key-zeros": Row(flaws.lost_zeros, "strangers", "{leading_zeros: false}", "key-zeros"),
    "key-number": Row(
        flaws.lost_zeros_as_floats, "strangers", "let the source write keys as text",
        "key-number", source=no_number,
    ),
    "key-signs": Row(
        signed_keys, "strangers", "write the keys alike", "key-signs",
        source=clean("labs"),
    ),
    "missing key": Row(
        flaws.unknown_keys, "strangers", "missingValues", "missing-word",
        fill=("WORD", "unbekannt"), then="keyless",
    ),
    "no-rows": Row(
        flaws.nobody_has_rows, "no-rows", "export the table again", source=clean("orders")
    ),
    "twice": Row(flaws.twice, "twice", "{repeated: true}"),
    "varying": Row(varying, "varying", "move columns that change", source=one_sex, before=repeated),
    "written-differently": Row(
        flaws.two_under_one_key, "written-differently", "{key: {trim: false", before=key(case=True),
        then="strangers",
    ),
    "no-origin": Row(flaws.no_origin, "no-origin", "complete the column", source=clean("patients")),
    "timeless": Row(flaws.no_day, "timeless", "complete the day", source=clean("labs")),
    "early": Row(
        flaws.early, "early", "window: {first: ...}", fill=("first: ...", "first: -3651")
    ),
    "late": Row(flaws.late, "late", "correct them in the source", source=clean("labs")),
    "not-last": Row(
        not_last, "not-last", "remove ended_by",
        before=lambda document: document["dpsynth"].update(ended_by="mi"),
        declared=without("dpsynth", "ended_by"),
    ),
    "not-last in the source": Row(
        not_last, "not-last", "correct the day", source=last_is_end,
        before=lambda document: document["dpsynth"].update(ended_by="mi"),
    ),
    "crowd": Row(
        flaws.crowd, "crowd", "list it in the key's missingValues", declared=crowd_is_no_patient,
        then="keyless",
    ),
    "again": Row(flaws.again, "again", "declare the table without once", declared=events_again),
    "long-gap": Row(
        flaws.long_gaps, "long-gap", "or leave it out",
        declared=without("resources", 3, "dpsynth", "longest_gap"),
    ),
    "unlinked": Row(
        flaws.unlinked, "unlinked", "compare the extracts of both", source=clean("orders")
    ),
}  # fmt: skip


def check(document: Document, broken: Tables) -> CheckResult:
    return inspection.check(broken, LinkedSchema.from_dict(document))


def merged(document: Any, line: Any) -> Any:
    if not (isinstance(document, dict) and isinstance(line, dict)):
        return line
    return document | {name: merged(document.get(name), value) for name, value in line.items()}


def applied(row: Row, document: Document, remedy: str, place: str) -> Document:
    """Merge the line of a remedy into the place that it names."""
    if row.declared is not None:
        row.declared(document)
    match = re.search(r"(dpsynth: \{.*\}|missingValues: \[[^\]]*\])", remedy)
    if row.declared is not None or match is None or (row.source and row.cause != "key-number"):
        return document
    line = yaml.safe_load(re.split(r", and let|, or with", match[0])[0].replace(*row.fill))
    named = re.search(r"in resource (\w+)", remedy)
    if "missingValues" in line:  # of the key of the table
        resource = next(one for one in document["resources"] if one["name"] == place)
        resource["schema"]["fields"][0] |= line
    elif named:
        numbers = [one["name"] for one in document["resources"]]
        place_of = numbers.index(named[1])
        document["resources"][place_of] = merged(document["resources"][place_of], line)
    else:
        document = merged(document, line)
    return document


@pytest.mark.parametrize("name", TABLE)
def test_a_remedy_mends_what_it_is_proposed_for(name: str) -> None:
    row, document, broken = TABLE[name], ward(), tables()
    row.flaw(broken)
    if row.before is not None:
        row.before(document)
    before = check(copy.deepcopy(document), broken)
    finding = next(one for one in before.findings if one.kind == row.kind)
    remedies = [cause.remedy for cause in finding.causes if cause.key == row.cause]
    remedy = remedies[0] if row.cause else finding.remedy
    assert row.says in remedy, remedy
    document = applied(row, document, remedy, finding.place)
    if row.source is not None:
        row.source(broken)
    after = check(document, broken)
    assert not [one for one in after.findings if is_left(one, finding, row)]
    ours = {one.key for one in before.findings}
    new = [one for one in after.findings if one.key not in ours and one.level > Level.NOTE]
    worse = {one.kind for one in new if one.level >= finding.level}
    assert worse <= {row.then}, [one.message for one in new]


def is_left(one: Finding, finding: Finding, row: Row) -> bool:
    same = one.key == finding.key
    return same and (not row.cause or any(cause.key == row.cause for cause in one.causes))


def test_every_kind_of_linked_tables_has_its_row() -> None:
    own = {*LINKED_KINDS} - KINDS - {"of-no-table"}  # see tests/tables/linked/test_rows_where.py
    assert {row.kind for row in TABLE.values()} == {*own, CROWD, WRITTEN}
    in_one_table = {"key-point", "key-inner-zeros", "key-form", "key-several"}  # see test_keys.py
    folds = {fold[0] for fold in (*_FOLDS, _LAST)}
    assert folds - in_one_table <= {row.cause for row in TABLE.values()}
