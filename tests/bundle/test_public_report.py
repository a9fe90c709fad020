"""report.html: a pure function of public things, escaped, complete, and held to the bundle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import verify
from dpsynth.bundle.files import DerivedFiles, profiles_of
from dpsynth.bundle.format import About, Audits, Contents, ManifestHeader, Provenance
from dpsynth.bundle.format.audits import AuditClaim
from dpsynth.bundle.gates import Profile, judge
from dpsynth.certificate import Certificate, not_covered
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema

from ..support.forger import Forger
from ..support.page_reader import Reader, said
from ..support.public_audit_example import public_audit, seen
from ..support.public_quality_example import AUDITS, QUALITY

TABLE = "data/synthetic.parquet"


def test_a_bundle_holds_the_page_of_its_files(
    bundle: Path, every_type: Schema, certificate: Certificate, drawing: Provenance
) -> None:
    contents = Contents(ManifestHeader(every_type, drawing, About()), certificate)
    derived = DerivedFiles.of(bundle, contents, profiles_of(bundle, every_type))
    assert set(derived.files) == {"report.html", "CARD.md", "croissant.json", "data/SYNTHETIC.txt"}
    for path, content in derived.files.items():
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
        "An attack that wrongly accuses 1 % of the people who are not in the data (false alarms)",
        "They compare the data with and without a patient with all of their rows.",
        "They were not measured: an audit measures what its attacks reach.",
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
    assert "key" not in {card["id"] for card in Reader(page()).all("h3") if "id" in card}


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
    reader = Reader(page(quality=QUALITY, audits=AUDITS))
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
    reader = Reader(page(quality=QUALITY, audits=AUDITS))
    assert not {"script", "img", "link", "iframe", "object", "form"} & {t for t, _ in reader.tags}
    for name, attrs in reader.tags:
        assert not {"src", "srcset", "xlink:href"} & set(attrs), name
        assert not [key for key in attrs if key.startswith("on")]
    assert "url(" not in page() and "@import" not in page() and "http" not in said(page())
    [policy] = [m for m in reader.all("meta") if "http-equiv" in m]
    assert str(policy["content"]).startswith("default-src 'none'")


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
    text = said(page(verdicts=judge(certificate, [profile], most_epsilon=2.0)))
    named = "Not run: the attack on the training. Not passed: “Epsilon is at most 2”."
    assert f"5 of 7 checks passed. {named}" in text
    assert "over its limit" in text


def test_a_wide_table_has_a_small_page(page: Callable[..., str], every_type: Schema) -> None:
    """Fifty columns like the nine, five of which have 30 ranges, stay below half a megabyte."""
    assert len(page()) / len(every_type.modelled) * 50 < 500_000


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
