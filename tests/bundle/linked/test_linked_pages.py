"""What people read of linked tables: the page, the card, and how the tables hang together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle.files import profiles_of
from dpsynth.bundle.format import Contents, ManifestHeader
from dpsynth.bundle.gates import judge
from dpsynth.bundle.pages import public_page
from dpsynth.bundle.pages.limits import HISTORIES, limits_of
from dpsynth.certificate import Certificate, budget_lines, protected
from dpsynth.schema import LinkedSchema

from ...support.clinic_office import RULE
from ...support.page_reader import Reader, said

TABLES = ("patients", "visits", "labs", "events")


@pytest.fixture
def contents(cohort_bundle: Path) -> Contents:
    schema = LinkedSchema.from_dict(read_document(cohort_bundle / "schema.json"))
    heading = ManifestHeader.of(read_document(cohort_bundle / "datapackage.json"), schema)
    return Contents(heading, Certificate.from_dict(read_document(cohort_bundle / "privacy.json")))


@pytest.fixture
def page(cohort_bundle: Path) -> str:
    return said((cohort_bundle / "report.html").read_text())


def test_the_page_has_every_table_and_every_test(page: str) -> None:
    for name in TABLES:
        assert f"Table {name}" in page
    assert "60 synthetic patients with their rows in 4 tables (patients: 60 rows, visits: " in page
    assert "hba1c (test)" in page and "creatinine (test)" in page
    assert "rows are not linked" not in page and "--publish-quality" not in page


def test_the_page_says_how_tables_hang_together(page: str) -> None:
    for words in (
        "Column 'patient' numbers them; the other tables name them by it.",
        "Column 'followed' is the last day of follow-up; nothing happens after it.",
        "column 'test' names the test, and column 'value' holds its value.",
        "a patient has each event at most once.",
        "its day counts from column 'included' of patients, from day 0 to day 1,826",
    ):
        assert words in page


def test_the_page_says_what_of_a_patient_was_used(page: str) -> None:
    for words in (
        "One row of table patients.",
        "At most 24 rows of table visits, chosen at random.",
        "At most 16 rows of each of 2 tests of table labs, chosen at random.",
        "The first day of each of 3 events of table events.",
        "Days before 0 count as that day, and days after 1,826 or after the end of follow-up",
    ):
        assert words in page


def test_the_page_lists_temporal_rules_and_the_digest_of_each_table(page: str) -> None:
    assert f"{RULE}: every row follows it" in page
    for name in TABLES:
        assert f"data/synthetic-{name}.parquet, SHA-256" in page


def test_each_part_of_the_page_has_a_name_of_its_own(cohort_bundle: Path) -> None:
    tags = Reader((cohort_bundle / "report.html").read_text()).tags
    keys = [values["id"] for _, values in tags if "id" in values]
    assert len(set(keys)) == len(keys)
    assert {"table-1-column-1", "table-3-column-4"} <= set(keys)


def test_a_page_of_tables_without_rows_can_be_written(
    contents: Contents, cohort_bundle: Path
) -> None:
    first, *others = profiles_of(cohort_bundle, contents.heading.schema)
    nothing = [
        replace(
            one,
            rows=0,
            columns=tuple(
                replace(c, rows=0, missing=0, bins=(), distinct=0, mean=None, five=())
                for c in one.columns
            ),
        )
        for one in others
    ]
    profiles = (first, *nothing)
    text = public_page(contents, profiles, judge(contents.certificate, profiles), {})
    assert "no rows" in said(text)


def test_the_card_has_every_table(cohort_bundle: Path) -> None:
    text = (cohort_bundle / "CARD.md").read_text()
    for name in TABLES:
        assert f"### {name}\n" in text
    assert "| Patients | 60 |" in text and "| Tables | patients, visits, labs, events |" in text
    assert "| patient | Number of the patient | key |" in text
    assert "| hba1c (test) |  | number | % |" in text
    assert "Use such linked tables to write and test code" in text
    assert "\n\n\n" not in text


def test_the_guarantee_is_about_all_tables(contents: Contents) -> None:
    certificate = contents.certificate
    words = protected(certificate.unit, certificate.tables)
    assert "with all of their rows in all tables together" in words
    assert "At most one row" not in words and "at most 24 rows of table visits" in words
    several = replace(
        certificate.unit, person="patient", max_units=3, max_units_basis="three sites"
    )
    words = protected(several, certificate.tables)
    assert "at most 3 values of column 'patient' of table patients" in words
    assert "three sites" in words


def test_each_event_is_worded_by_its_own_table(contents: Contents) -> None:
    lines = {line.name: line.purpose for line in budget_lines(contents.certificate, quality=False)}
    for table in ("visits", "labs"):
        assert lines[f"{table}, rows: memory"] == (
            "how alike values of a patient are that lie some days apart"
        )
    assert lines["rows: values"] == "how the values of each test are distributed"
    assert not [one for name, one in lines.items() if "rows:" in name and "of a column" in one]


def test_limits_are_those_of_histories(contents: Contents) -> None:
    limits = limits_of(contents.heading)
    assert HISTORIES in limits
    assert any(one.startswith("Patients are drawn with stratified sampling") for one in limits)


def test_what_holds_of_many_events_is_said_once(cohort_bundle: Path) -> None:
    page = (cohort_bundle / "report.html").read_text()
    certificate = (cohort_bundle / "privacy.json").read_text()
    words = "no floating-point number is drawn"
    assert certificate.count(words) > 3 and page.count(words) == 1
    assert f"Each of the {certificate.count(words)} events below: whole counts" in page
