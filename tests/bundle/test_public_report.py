"""report.html: a pure function of public things, escaped, complete, and held to the bundle."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.formatting import figure
from dpsynth.assessment.published_quality import publish_quality
from dpsynth.bundle.derived import Derived, profile_of
from dpsynth.bundle.evidence import evidence_by_folder
from dpsynth.bundle.format.about import About
from dpsynth.bundle.format.audits import AuditClaim, Audits, PublicAudit
from dpsynth.bundle.format.contents import Contents
from dpsynth.bundle.format.manifest import ManifestHeader
from dpsynth.bundle.format.provenance import Provenance
from dpsynth.bundle.format.quality import (
    Calibration,
    ColumnDistance,
    Quality,
    Statistic,
    TargetQuality,
    read_quality,
    write_quality,
)
from dpsynth.bundle.gates.profile import Profile
from dpsynth.bundle.gates.public_gates import judge
from dpsynth.bundle.pages.audit_cards import at_least
from dpsynth.bundle.pages.report import public_page
from dpsynth.bundle.verifier import verify
from dpsynth.bundle.writer import release
from dpsynth.certificate.certificate import Certificate
from dpsynth.certificate.override import Overridden
from dpsynth.certificate.statements import not_covered
from dpsynth.encoding.strict_table import typed_frames
from dpsynth.errors import ArtifactError, BudgetError, GateError, VerificationError
from dpsynth.ledger.ledger import Ledger
from dpsynth.ledger.verification import verify_ledger
from dpsynth.schema.schema import Schema
from dpsynth.tables.simulated import simulate

from ..support.public_audit_example import public_audit, seen
from ..support.small_office import small_office

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


AUDITS = Audits("c" * 64, (public_audit(), public_audit(9)))


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
def drawing(forger: Forger) -> Provenance:
    return Provenance.from_dict(forger.read("datapackage.json")["dpsynth"]["drawing"], "drawing")


@pytest.fixture
def page(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Provenance
) -> Callable[..., str]:
    """Write the page of the test's bundle, with some inputs changed."""
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))

    def of(**changes: Any) -> str:
        given: dict[str, Any] = {"drawing": drawing, "about": About(), **changes}
        heading = ManifestHeader(given.get("schema", every_type), given["drawing"], given["about"])
        told = changes.get("certificate", certificate)
        return public_page(
            Contents(heading, told, changes.get("quality"), changes.get("audits")),
            changes.get("profile", profile),
            changes.get("verdicts", judge(certificate, profile)),
            table_sha256=changes.get("table_sha256", "b" * 64),
        )

    return of


def said(page: str) -> str:
    return re.sub(r"\s+", " ", _Reader(page).text)


def test_a_bundle_holds_the_page_of_its_files(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Provenance
) -> None:
    contents = Contents(ManifestHeader(every_type, drawing, About()), certificate)
    made = Derived.of(bundle, contents, profile_of(bundle, every_type))
    assert set(made.files) == {"report.html", "CARD.md", "croissant.json"}
    for path, content in made.files.items():
        assert (bundle / path).read_bytes() == content


def test_the_page_says_what_a_reader_must_know(
    page: Callable[..., str], every_type: Schema, certificate: Certificate
) -> None:
    text = said(page())
    for words in (
        "Synthetic data. No row was copied from a real record: every row was drawn",
        "differential privacy for each patient, with epsilon 3 and delta 1e-6",
        "Do not compute standard errors, confidence intervals or p-values as if",
        "stratified sampling, so they vary less than independent draws",
        "by a factor of at most 20.1",
        "at most 1 in 1,000,000",
        "this bound may not hold",
        "50 % likely before the release: at most",
        "At most 2 rows of each patient",
        "No quality figures are published with this bundle",
        "6 of 7 checks passed. Not run: the attack on the training.",
        "No audit was run",
        "one-way histograms",
        "admitted <= discharged: every row follows it",
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
    reader = _Reader(page(quality=QUALITY, audits=AUDITS))
    assert reader.open == []
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for name in ("header", "main", "footer", "nav", "h1"):
        assert len(reader.all(name)) == 1
    assert reader.all("html") == [{"lang": "en"}]
    for picture in reader.all("svg"):
        assert picture["role"] == "img" and picture["aria-labelledby"] in ids
    assert page(audits=AUDITS).count("<svg") == page(audits=AUDITS).count("<title id=")
    for header in reader.all("th"):
        assert header["scope"] in ("row", "col")
    for link in reader.all("a"):
        assert str(link["href"]).startswith("#") and str(link["href"])[1:] in ids
    levels = [int(name[1]) for name, _ in reader.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_the_page_asks_for_nothing(page: Callable[..., str]) -> None:
    reader = _Reader(page(quality=QUALITY, audits=AUDITS))
    assert not {"script", "img", "link", "iframe", "object", "form"} & {t for t, _ in reader.tags}
    for name, attrs in reader.tags:
        assert not {"src", "srcset", "xlink:href"} & set(attrs), name
        assert not [key for key in attrs if key.startswith("on")]
    assert "url(" not in page() and "@import" not in page() and "http" not in said(page())
    [policy] = [m for m in reader.all("meta") if "http-equiv" in m]
    assert str(policy["content"]).startswith("default-src 'none'")


EVIL = "<script>alert(1)</script>\u202e&\"'"


def _hostile() -> PublicAudit:
    audit = public_audit(dpsynth=EVIL, model=EVIL)
    power = replace(audit.views[0].power, sentence=EVIL)
    control = replace(audit.controls[0], key=EVIL, title=EVIL, attack=EVIL, sentence=EVIL)
    hostile = replace(audit, controls=(control,))
    return seen(hostile, title=EVIL, sentence=EVIL, power=power)


WORDS = (
    *("title", "version", "date", "publisher", "contact", "licence", "licence_url"),
    *("citation", "intended_use", "limits"),
)


def test_what_people_wrote_is_escaped(
    page: Callable[..., str], every_type: Schema, certificate: Certificate, drawing: Provenance
) -> None:
    evil = page(
        schema=replace(every_type, title=EVIL, description=EVIL),
        drawing=replace(drawing, model=EVIL, condition=EVIL, run_sha256=EVIL),
        about=About(**dict.fromkeys(WORDS, EVIL)),
        certificate=replace(certificate, overrides=(Overridden("audit", EVIL, EVIL),)),
        table_sha256=EVIL,
        quality=replace(
            QUALITY,
            event=EVIL,
            note=EVIL,
            statistics=(replace(QUALITY.statistics[0], title=EVIL, meaning=EVIL),),
            columns=(replace(QUALITY.columns[0], column=EVIL),),
            targets=(replace(QUALITY.targets[0], target=EVIL, class_=EVIL),),
        ),
        audits=Audits(EVIL, (_hostile(),)),
    )
    assert "<script" not in evil and "\u202e" not in evil
    assert said(evil).count("<script>alert(1)</script>[U+202E]&\"'") >= 27
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
    unit = replace(certificate.unit, name=None, max_rows=1, person=None)
    text = said(page(certificate=replace(certificate, unit=unit)))
    assert "differential privacy for each row of the source table, with epsilon" in text
    assert "If a person has several rows, it protects each row separately" in text


def test_other_fits_on_the_data_are_shown(
    page: Callable[..., str], certificate: Certificate
) -> None:
    assert certificate.ledger is not None
    more = replace(certificate.ledger, fits=2, epsilon_total=13.0, delta_total=2e-6)
    text = said(page(certificate=replace(certificate, ledger=more)))
    title = "All 2 fits that the ledger counted for the same patients when this fit was certified"
    assert f"{title}: epsilon 13, delta 2e-6" in text
    assert "promises little" in text and "promises little" not in said(page())


def test_paid_figures_are_shown_with_their_intervals(page: Callable[..., str]) -> None:
    text = said(page(quality=QUALITY))
    for words in ("0.0612", "0.05 to 0.07", "not given", "0.0312", "AUC 0.71 (0.68 to 0.74)"):
        assert words in text
    assert "No quality figures are published" not in text


def test_audits_are_told_in_plain_words(
    page: Callable[..., str], certificate: Certificate, bundle: Path, every_type: Schema
) -> None:
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))
    verdicts = judge(certificate, profile, AUDITS)
    text = said(page(audits=AUDITS, verdicts=verdicts))
    black, white = AUDITS.audits[0].views
    proved, guesses, correct = white.proved
    for words in (
        "Audit 1 of 2: 1,000 invented patients, of which the coin tosses included 489",
        "Audit 2 of 2",
        "Planted among 500 invented patients that this model generated. Seed 9",
        f"{guesses}{correct}{guesses // 2}at least {at_least(proved)}4.61at most 3",
        f"at least {at_least(black.proved[0])}not known",
        "Every noisy result. Would have refuted the claim with probability 90%",
        "Worked, deliberate leak: A generator without noise",
        "Worked, no leak: A generator that never saw",
        "The accounting is the proof. An audit is an attack, and an attack can miss a leak.",
        "all 7 passed",
    ):
        assert words in text, words
    for words in ("No audit was run", "not audited", "Failed"):
        assert words not in text, words


def test_one_audit_is_not_numbered_and_controls_may_be_missing(page: Callable[..., str]) -> None:
    text = said(page(audits=Audits("c" * 64, (public_audit(controls=()),))))
    assert "1 of 1" not in text and "nothing shows that it would have found a leak" in text


def test_rows_are_not_called_patients_where_audits_are_told(
    page: Callable[..., str], certificate: Certificate
) -> None:
    unit = replace(certificate.unit, name=None, max_rows=1, person=None)
    text = said(page(certificate=replace(certificate, unit=unit), audits=AUDITS))
    assert "1,000 invented rows, of which the coin" in text and "invented patient" not in text


@pytest.mark.parametrize("change", [{"epsilon_fdp": 2.5}, {"sentence": "x"}, {"roc": None}])
def test_any_change_of_an_audit_changes_the_page(
    page: Callable[..., str], change: dict[str, Any]
) -> None:
    roc = replace(AUDITS.audits[1].views[0].roc, fpr=(), tpr=())
    change = {"roc": roc} if "roc" in change else change
    changed = replace(AUDITS, audits=(AUDITS.audits[0], seen(AUDITS.audits[1], **change)))
    assert page(audits=changed) != page(audits=AUDITS)


@pytest.mark.parametrize(
    ("claimed", "least"), [(0.01, None), (0.01, 250.0), (3.0, 1e9), (700.0, 0.5), (1e6, 1e299)]
)
def test_a_picture_of_any_leak_can_be_drawn(
    page: Callable[..., str], claimed: float, least: float | None
) -> None:
    audit = public_audit(claim=AuditClaim(claimed, 1e-6))
    audit = seen(audit, 1, power=replace(audit.views[1].power, least=least))
    written = page(audits=Audits("c" * 64, (audit,)))
    picture = re.search(r'<svg[^>]*aria-labelledby="audit-1-picture".*?</svg>', written)
    assert picture is not None
    places = [float(x) for x in re.findall(r'(?: x="|M)(-?[0-9.e+]+)', picture[0])]
    assert places and all(-0.1 <= x <= 320.1 for x in places)
    assert 2 <= len(re.findall(r'text-anchor="middle"', picture[0])) <= 6


def test_a_failed_check_is_named_at_the_top(
    page: Callable[..., str], every_type: Schema, certificate: Certificate, bundle: Path
) -> None:
    profile = Profile.of(every_type, typed_frames(bundle / TABLE, every_type))
    text = said(page(verdicts=judge(certificate, profile, most_epsilon=2.0)))
    named = "Not run: the attack on the training. Not passed: “Epsilon is at most 2”."
    assert f"5 of 7 checks passed. {named}" in text
    assert "over its limit" in text


def test_a_wide_table_has_a_small_page(page: Callable[..., str], every_type: Schema) -> None:
    """Fifty columns like the nine, five of which have 30 ranges, stay below half a megabyte."""
    assert len(page()) / len(every_type.modelled) * 50 < 500_000


# What verification and release make of it.


@pytest.mark.parametrize(
    ("before", "after"),
    [("No row was copied", "Many a row was copied"), ("</main>", "<!-- Ms Miller --></main>")],
)
def test_another_page_is_found(forger: Forger, bundle: Path, before: str, after: str) -> None:
    path = bundle / "report.html"
    path.write_text(path.read_text().replace(before, after))
    forger.relist()
    assert "report.html: does not match the other files" in forger.findings()


def test_what_another_version_derived_is_held_to_its_hash(forger: Forger, bundle: Path) -> None:
    path = bundle / "report.html"
    path.write_text(path.read_text().replace("dpsynth 0.1.0", "dpsynth 9.9"))
    forger.edit("datapackage.json", lambda d: d["dpsynth"].update(writer="9.9"))
    forger.relist()
    assert "was written by dpsynth 9.9" in forger.findings()
    checks = verify(bundle, other_version=True)
    for file in ("report.html", "CARD.md", "croissant.json"):
        assert f"{file} has its listed SHA-256; dpsynth 9.9 can compare it" in checks


@dataclass(frozen=True)
class Measured:
    """A run, and a table that was drawn from it and measured."""

    run: Path
    table: Path

    def release(self, output: Path, **more: Any) -> Path:
        return release(self.run, output, **({"table": self.table} | more))


@pytest.fixture(scope="module")
def _measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, demo = tmp_path_factory.mktemp("measured"), Schema.load("demo")
    source = simulate(300, seed=1)
    small_office(folder, source, demo, rows=300, seed=7, epsilon=20.0, publish_quality=0.3)
    ledger = Ledger(folder / "ledger.sqlite")
    shutil.copyfile(folder / "ledger.sqlite", folder / "before.sqlite")
    publish_quality(folder / "run", folder / "out.parquet", source, ledger=ledger)
    return folder


@pytest.fixture
def measured(_measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """A copy of the test's own, with its ledger at hand."""
    own = shutil.copytree(_measured, tmp_path / "office")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(own / "ledger.sqlite"))
    return Measured(own / "run", own / "out.parquet")


def edited(run: Path, **change: Any) -> None:
    quality = read_quality(run)
    assert quality is not None
    write_quality(run / "quality.json", replace(quality, **change))


def test_paid_figures_travel_along(measured: Measured, tmp_path: Path) -> None:
    made = measured.release(tmp_path / "made")
    kept = Quality.from_dict(json.loads((made / "quality.json").read_text()))
    assert kept == read_quality(measured.run)
    page = said((made / "report.html").read_text())
    assert figure(kept.statistics[1].value) in page and "two columns at a time" in page
    assert "the quality figures are about a table of this bundle" in verify(made)
    assert verify_ledger(Ledger(), evidence_by_folder([made, measured.run]))


def test_figures_of_another_table_are_refused(measured: Measured, tmp_path: Path) -> None:
    with pytest.raises(GateError, match="figures of another table"):
        measured.release(tmp_path / "made", table=None, rows=300, seed=8)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": "nothing"}, "set no budget aside"),
        ({"event": "one-way histograms"}, "set no budget aside"),
        ({"columns": (ColumnDistance("patient_id", 0, 0, 0, None),)}, "names a column"),
        ({"targets": (TargetQuality("patient_id", "x", 0, 0, 0, ()),)}, "names a target"),
        ({"rows": 10**6}, "another number of rows"),
    ],
)
def test_figures_that_do_not_fit_the_plan_are_refused(
    measured: Measured, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    edited(measured.run, **change)
    with pytest.raises(GateError, match=message):
        measured.release(tmp_path / "made")


def test_figures_that_the_ledger_did_not_see_are_refused(
    measured: Measured, tmp_path: Path
) -> None:
    edited(measured.run, note="Better than they are.")
    with pytest.raises(BudgetError, match="has no payment for"):
        measured.release(tmp_path / "made")
    with pytest.raises(VerificationError, match="does not hold its quality figures"):
        verify_ledger(Ledger(), evidence_by_folder([measured.run]))


def test_figures_from_another_copy_of_the_ledger_are_refused(
    measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever measures on copies could take the mean of many answers."""
    monkeypatch.setenv("DPSYNTH_LEDGER", str(measured.run.parent / "before.sqlite"))
    with pytest.raises(BudgetError, match="has no payment for"):
        measured.release(tmp_path / "made")


def test_unpaid_figures_in_a_bundle_are_found(
    measured: Measured, tmp_path: Path, forger: Forger
) -> None:
    forger = type(forger)(measured.release(tmp_path / "made"))
    forger.edit("quality.json", lambda document: document.update(event="nothing"))
    assert "set no budget aside for it" in forger.findings()


def test_figures_of_a_table_that_is_not_there_are_found(
    measured: Measured, tmp_path: Path, forger: Forger
) -> None:
    forger = type(forger)(measured.release(tmp_path / "made"))
    forger.edit("quality.json", lambda document: document.update(table_sha256="a" * 64))
    assert "is about a table that is not in the bundle" in forger.findings()


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
