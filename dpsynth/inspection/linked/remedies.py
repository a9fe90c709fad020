"""What to do about a finding, in the places of a package: a resource, and a test of a long table.

A test declares its values in one flat mapping with fewer keys than a field, so a remedy that holds
for a column may be one that a test cannot have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpsynth._util.formatting import counted, percent
from dpsynth._util.messages import listed
from dpsynth.inspection.findings import (
    ABSENT,
    CLIPPED,
    REPLACED,
    UNKNOWN,
    UNREADABLE,
    Cause,
    Finding,
)
from dpsynth.inspection.hints import REST, SHOW
from dpsynth.schema import LinkedSchema

_END = "set at the end of the schema: "
_LIMIT = (
    "a test cannot declare limits of detection: let the source write a number, such as the limit, "
    "and say so in the test's bounds_basis"
)
_UNIT = (
    "a test has one unit: convert results of another one in the source by their column of units, "
    "or name a test for each unit there, such as glucose_mg_dl and glucose_mmol_l"
)
_WORDS = f"let the source write the categories that the test declares; {SHOW}"
_OF_TEST = {
    "missing-word": 'add the word to the test: missingValues: ["", "WORD"]',
    "missing-code": (
        'add the code to the test, if its coding manual says so: missingValues: ["", "CODE"]'
    ),
    "censored-low": _LIMIT,
    "censored-high": _LIMIT,
    "thousands": "let the source write numbers without it: 5000, not 5,000",
    "reader-word": 'add the word to the test: missingValues: ["", "WORD"]',
    "rounded": "if the rest matters, declare a smaller step in the test: step",
    "unit-text": "let the source write the number alone, and declare the unit of the test: ucum",
    "unit": _UNIT,
    "fraction": "set type: number for the column of values",
    **dict.fromkeys(("label", "case", "zeros", "dots", "spelling", "typing"), _WORDS),
}
_NO_NUMBERS = (
    "if its results are words and not numbers: give the column of values type: string, declare the "
    "words in the test's enum, and add type: number to each test of numbers"
)
_WHAT = {
    UNREADABLE: "are unreadable",
    UNKNOWN: "are of categories that are not declared",
    CLIPPED: "are outside the bounds",
    ABSENT: "are missing",
    REPLACED: "come back from a fit as something else, or are not used",
}
MAX_ALONE = 2  # findings of tests that are shown one by one


def in_resource(finding: Finding, table: str) -> Finding:
    """Name the resource in remedies that a schema of one table has at its end."""
    causes = (
        replace(one, remedy=one.remedy.replace(_END, f"set in resource {table}: "))
        for one in finding.causes
    )
    return replace(finding, causes=tuple(causes))


def of_test(finding: Finding, table: str, *, numeric: bool) -> Finding:
    """Give a finding about a test its place, and remedies that a test can have.

    Args:
        finding: about the values of a test, whose place is its name.
        table: the long table.
        numeric: whether the test declares numbers.
    """
    causes = tuple(_cause_of_test(one) for one in finding.causes)
    remedy = finding.remedy.replace(REST, "to keep the rest, add to the test: on_unknown: other")
    found = replace(finding, place=f"{table}.{finding.place}", causes=causes, remedy=remedy)
    if numeric and finding.kind == UNREADABLE and 2 * finding.unexplained > finding.total:
        found = replace(found, remedy=_NO_NUMBERS)
    if numeric and finding.kind == CLIPPED and not causes:
        found = replace(
            found, remedy=f"compare the bounds with their source (bounds_basis); {_UNIT}"
        )
    return in_resource(found, table)


def _cause_of_test(cause: Cause) -> Cause:
    plain = cause.remedy.replace("the column: dpsynth:", "the test:").replace("column", "test")
    return replace(cause, remedy=_OF_TEST.get(cause.key, plain))


def together(findings: Iterable[Finding], schema: LinkedSchema) -> list[Finding]:
    """Put findings of many tests of one table that say the same into one; for a person's eyes.

    Findings agree if kind, level, remedy and causes do. Up to two stay as they are.

    Args:
        findings: the worst first.
        schema: of the linked tables.
    """
    tests = {f"{one.name}.{test.name}": one.name for one in schema.children for test in one.tests}
    groups: dict[tuple[str, object], list[Finding]] = {}
    for number, one in enumerate(findings):
        causes = tuple((cause.key, cause.remedy) for cause in one.causes)
        table = tests.get(one.place, "")
        alone = number if not table or one.kind not in _WHAT else None
        same = one.kind, one.level, one.remedy, causes, alone
        groups.setdefault((table, same), []).append(one)
    shown = []
    for (table, _), group in groups.items():
        shown += [_joined(table, group)] if len(group) > MAX_ALONE else group
    return shown


def _joined(table: str, group: Sequence[Finding]) -> Finding:
    """Return one finding about several tests of a table."""
    first, names = group[0], [one.place.removeprefix(f"{table}.") for one in group]
    causes = [
        replace(cause, cells=sum(one.causes[place].cells for one in group))
        for place, cause in enumerate(first.causes)
    ]
    shares = sorted(one.count / one.total for one in group if one.total)
    count, total = sum(one.count for one in group), sum(one.total for one in group)
    effect = first.message.partition("; ")[2]
    span = " to ".join(dict.fromkeys([percent(shares[0]), percent(shares[-1])]))
    message = (
        f"{counted(count, 'cell')} of {counted(len(group), 'test')} {_WHAT[first.kind]}, "
        f"{span} of those of a test"
        f"{'; ' if effect else ''}{effect}: {listed(names)}"
    )
    return replace(
        first,
        place=table,
        message=message,
        count=count,
        total=total,
        causes=tuple(causes),
        unseen=sum(one.unseen for one in group),
    )
