"""report.html: a pure function of public things, escaped, complete, and held to the bundle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import Drawing
from dpsynth.bundle_page import bundle_page, writer_of
from dpsynth.bundle_tables import typed_frames
from dpsynth.certificate import Certificate
from dpsynth.claims import not_covered
from dpsynth.errors import ArtifactError, GateError
from dpsynth.profile import Profile
from dpsynth.public_gates import judge
from dpsynth.public_report import public_page
from dpsynth.quality_file import (
    Calibration,
    ColumnDistance,
    Quality,
    Statistic,
    TargetQuality,
    read_quality,
    write_quality,
)
from dpsynth.release import release
from dpsynth.samples import read_samples, record_sample
from dpsynth.schema import Schema
from dpsynth.verify import verify

Forger = Any  # tests/conftest.py
TABLE = "data/synthetic.parquet"
QUALITY = Quality(
    table_sha256="a" * 64,
    rows=300,
    event="one-way histograms",
    statistics=(
        Statistic("tvd2", "Pairs of columns", 0.0612, 0.05, 0.07, 0.02, "how pairs differ"),
        Statistic("c2st", "Told apart", 0.6, 0.5, 0.7, None, "how well rows are told apart"),
    ),
    columns=(ColumnDistance("age", 0.0312, 0.01, 0.05, 0.02),),
    targets=(TargetQuality("smoker", "true", 0.71, 0.68, 0.74, (Calibration(0.1, 0.12),)),),
    note="Intervals hold with 95 %.",
)


class _Reader(HTMLParser):
    """Collects tags, texts, and what a sound document must have."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "link", "img", "input", "path", "rect", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect", "circle"):
            assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def certificate(forger: Forger) -> Certificate:
    return Certificate.from_dict(forger.read("privacy.json"))


@pytest.fixture
def drawing(forger: Forger) -> Drawing:
    return Drawing.from_dict(forger.read("datapackage.json")["dpsynth"], "dpsynth")


@pytest.fixture
def page(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Drawing
) -> Callable[..., str]:
    """Write the page of the test's bundle, with some inputs changed."""
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))

    def of(**changes: Any) -> str:
        given: dict[str, Any] = {
            "schema": every_type,
            "certificate": certificate,
            "profile": profile,
            "verdicts": judge(certificate, profile),
            "drawing": drawing,
            "table_sha256": "b" * 64,
            **changes,
        }
        return public_page(**given)

    return of


def said(page: str) -> str:
    return re.sub(r"\s+", " ", _Reader(page).text)


def test_a_bundle_holds_the_page_of_its_files(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Drawing
) -> None:
    content = (bundle / "report.html").read_bytes()
    assert bundle_page(bundle, every_type, certificate, drawing, None).content == content
    assert writer_of(content) == "0.1.0"


def test_the_page_says_what_a_reader_must_know(
    page: Callable[..., str], every_type: Schema, certificate: Certificate
) -> None:
    text = said(page())
    for words in (
        "Synthetic data. No record in it is a real patient's",
        "differential privacy with epsilon 3 and delta 1e-6",
        "Do not compute standard errors, confidence intervals or p-values as if",
        "spread more evenly than chance",
        "by a factor of at most 20.1",
        "at most 1 in 1,000,000",
        "Thought 50 % likely before: at most",
        "At most 2 rows of a patient",
        "No quality figure is published, for none was paid for",
        "all 6 passed",
        "one-way histograms",
        "admitted <= discharged: kept by every row",
    ):
        assert words in text, words
    assert certificate.ledger is not None
    for sentence in not_covered(every_type, certificate.ledger):
        assert sentence[1:] in text
    for column in every_type.modelled:
        assert column.name in text
    assert "key" not in {card["id"] for card in _Reader(page()).all("h3") if "id" in card}


def test_every_figure_of_the_profile_is_in_a_table(page: Callable[..., str], bundle: Path) -> None:
    rows = [line.split(",") for line in (bundle / "data/synthetic.csv").read_text().splitlines()]
    grades = [row[rows[0].index("grade")] for row in rows[1:]]
    for grade in "123":
        share = f"{100 * grades.count(grade) / 300:.1f}"
        assert f"<bdi>{grade}</bdi></th>" in page()
        assert f'>{grades.count(grade)}</td><td class="number">{share}&nbsp;%</td>' in page()


def test_the_same_inputs_give_the_same_bytes(page: Callable[..., str]) -> None:
    assert page() == page()
    assert page(table_sha256="c" * 64) == page().replace("b" * 64, "c" * 64)


def test_the_page_is_sound_and_can_be_heard(page: Callable[..., str]) -> None:
    reader = _Reader(page(quality=QUALITY))
    assert reader.open == []
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for name in ("header", "main", "footer", "nav", "h1"):
        assert len(reader.all(name)) == 1
    assert reader.all("html") == [{"lang": "en"}]
    for picture in reader.all("svg"):
        assert picture["role"] == "img" and picture["aria-labelledby"] in ids
    assert page().count("<svg") == page().count("<title id=")
    for header in reader.all("th"):
        assert header["scope"] in ("row", "col")
    for link in reader.all("a"):
        assert str(link["href"]).startswith("#") and str(link["href"])[1:] in ids
    levels = [int(name[1]) for name, _ in reader.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_the_page_asks_for_nothing(page: Callable[..., str]) -> None:
    reader = _Reader(page(quality=QUALITY))
    assert not {"script", "img", "link", "iframe", "object", "form"} & {t for t, _ in reader.tags}
    for name, attrs in reader.tags:
        assert not {"src", "srcset", "xlink:href"} & set(attrs), name
        assert not [key for key in attrs if key.startswith("on")]
    assert "url(" not in page() and "@import" not in page() and "http" not in said(page())
    [policy] = [m for m in reader.all("meta") if "http-equiv" in m]
    assert str(policy["content"]).startswith("default-src 'none'")


EVIL = "<script>alert(1)</script>\u202e&\"'"


def test_what_people_wrote_is_escaped(
    page: Callable[..., str], every_type: Schema, drawing: Drawing
) -> None:
    evil = page(
        schema=replace(every_type, title=EVIL, description=EVIL),
        drawing=replace(drawing, model=EVIL, condition=EVIL, run_sha256=EVIL),
        table_sha256=EVIL,
        quality=replace(
            QUALITY,
            event=EVIL,
            note=EVIL,
            statistics=(replace(QUALITY.statistics[0], title=EVIL, meaning=EVIL),),
            columns=(replace(QUALITY.columns[0], column=EVIL),),
            targets=(replace(QUALITY.targets[0], target=EVIL, class_=EVIL),),
        ),
    )
    assert "<script" not in evil and "\u202e" not in evil
    assert said(evil).count("<script>alert(1)</script>[U+202E]&\"'") >= 10
    assert not {"script"} & {name for name, _ in _Reader(evil).tags}


def test_names_of_columns_and_categories_are_escaped(
    page: Callable[..., str], every_type: Schema, certificate: Certificate
) -> None:
    def evil(column: Any) -> Any:
        labels = dict.fromkeys(column.levels, EVIL)
        return replace(column, name=EVIL, title=EVIL, ucum=EVIL, bounds_basis=EVIL, labels=labels)

    profile = Profile.of(every_type, [])
    columns = tuple(
        replace(
            one,
            column=evil(one.column),
            rows=4,
            bins=tuple(replace(b, label=EVIL) for b in one.bins),
        )
        for one in profile.columns
    )
    written = page(profile=replace(profile, rows=4, columns=columns))
    assert "<script" not in written and "\u202e" not in written


def test_a_row_unit_is_not_called_a_patient(
    page: Callable[..., str], certificate: Certificate
) -> None:
    unit = replace(certificate.unit, name=None, max_rows=1)
    text = said(page(certificate=replace(certificate, unit=unit)))
    assert "for each row of the source table, differential privacy" in text
    assert "A person with several rows is protected for each of them alone" in text


def test_other_fits_on_the_data_are_shown(
    page: Callable[..., str], certificate: Certificate
) -> None:
    assert certificate.ledger is not None
    more = replace(certificate.ledger, fits=2, epsilon_total=13.0, delta_total=2e-6)
    text = said(page(certificate=replace(certificate, ledger=more)))
    assert "All 2 fits on these patients' data together: epsilon 13, delta 2e-6" in text
    assert "promises little" in text and "promises little" not in said(page())


def test_paid_figures_are_shown_with_their_intervals(page: Callable[..., str]) -> None:
    text = said(page(quality=QUALITY))
    for words in ("0.0612", "0.05 to 0.07", "not given", "0.0312", "AUC 0.71 (0.68 to 0.74)"):
        assert words in text
    assert "No quality figure is published" not in text


def test_a_failed_check_is_named_at_the_top(
    page: Callable[..., str], every_type: Schema, certificate: Certificate, bundle: Path
) -> None:
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))
    text = said(page(verdicts=judge(certificate, profile, most_epsilon=2.0)))
    assert "5 of 6 passed; not this: epsilon is at most 2." in text
    assert "beyond its limit" in text


def test_a_wide_table_has_a_small_page(page: Callable[..., str], every_type: Schema) -> None:
    """Fifty columns like the nine, five of which have 30 ranges, stay below half a megabyte."""
    assert len(page()) / len(every_type.modelled) * 50 < 500_000


# What verification and release make of it.


@pytest.mark.parametrize(
    ("before", "after"),
    [("No record in it is", "Many a record in it is"), ("</main>", "<!-- Ms Miller --></main>")],
)
def test_another_page_is_found(forger: Forger, bundle: Path, before: str, after: str) -> None:
    path = bundle / "report.html"
    path.write_text(path.read_text().replace(before, after))
    forger.relist()
    assert "report.html: is not the page that the other files give" in forger.findings()


def test_the_page_of_another_version_is_held_to_its_hash(forger: Forger, bundle: Path) -> None:
    path = bundle / "report.html"
    path.write_text(path.read_text().replace("dpsynth 0.1.0", "dpsynth 9.9"))
    forger.relist()
    assert "report.html has its listed SHA-256; dpsynth 9.9 can compare it" in verify(bundle)


@pytest.fixture
def measured(run_folder: Path, bundle: Path) -> tuple[Path, Path]:
    """A run, and a table that was drawn from it and measured."""
    record_sample(run_folder, bundle / TABLE, rows=300, seed=7)
    [sample] = read_samples(run_folder)
    write_quality(run_folder, replace(QUALITY, table_sha256=sample.sha256))
    return run_folder, bundle / TABLE


def test_paid_figures_travel_along(
    measured: tuple[Path, Path], tmp_path: Path, every_type: Schema
) -> None:
    run, table = measured
    made = release(run, tmp_path / "made", table=table)
    kept = Quality.from_dict(json.loads((made / "quality.json").read_text()))
    assert kept == read_quality(run)
    assert "AUC 0.71" in said((made / "report.html").read_text())
    assert "the quality figures are about a table of this bundle" in verify(made)


def test_figures_of_another_table_are_refused(measured: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(GateError, match="figures of another table"):
        release(measured[0], tmp_path / "made", rows=300, seed=8)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": "nothing"}, "nobody paid"),
        ({"columns": (ColumnDistance("key", 0, 0, 0, None),)}, "names a column"),
        ({"targets": (TargetQuality("key", "x", 0, 0, 0, ()),)}, "names a target"),
    ],
)
def test_figures_that_were_not_paid_for_are_refused(
    measured: tuple[Path, Path], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    run, table = measured
    quality = read_quality(run)
    assert quality is not None
    write_quality(run, replace(quality, **change))
    with pytest.raises(GateError, match=message):
        release(run, tmp_path / "made", table=table)


def test_unpaid_figures_in_a_bundle_are_found(
    measured: tuple[Path, Path], tmp_path: Path, forger: Forger
) -> None:
    forger = type(forger)(release(measured[0], tmp_path / "made", table=measured[1]))
    forger.edit("quality.json", lambda document: document.update(event="nothing"))
    assert "quality.json: its event is none of the certificate's" in forger.findings()


QUALITY_MISTAKES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown key": lambda d: d.update(source="x"),
    "another version": lambda d: d.update(version=2),
    "no SHA-256": lambda d: d.update(table_sha256="x"),
    "no rows": lambda d: d.update(rows=0),
    "a figure that is text": lambda d: d["statistics"][0].update(value="0.1"),
    "an interval upside down": lambda d: d["statistics"][0].update(low=1, high=0),
    "a chance that is true": lambda d: d["columns"][0].update(chance=True),
    "a calibration of three": lambda d: d["targets"][0]["calibration"][0].update(rows=[1]),
    "no list": lambda d: d.update(columns={}),
    "a list too long": lambda d: d.update(columns=d["columns"] * 10_001),
}


@pytest.mark.parametrize("name", QUALITY_MISTAKES)
def test_quality_is_read_strictly(name: str) -> None:
    document = json.loads(json.dumps(QUALITY.to_dict()))
    assert Quality.from_dict(document) == QUALITY
    QUALITY_MISTAKES[name](document)
    with pytest.raises(ArtifactError, match=r"quality\.json"):
        Quality.from_dict(document)
