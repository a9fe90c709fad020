"""report.html in words: escaped, in the terms of its unit, with its audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth.bundle.format import About, Audits, Provenance
from dpsynth.bundle.format.audits import PublicAudit
from dpsynth.bundle.gates import Profile, judge
from dpsynth.bundle.pages.audit_cards import at_least
from dpsynth.certificate import Certificate, Overridden
from dpsynth.encoding import typed_frames
from dpsynth.schema import Schema

from ..support.page_reader import Reader, said
from ..support.public_audit_example import public_audit, seen
from ..support.public_quality_example import AUDITS, QUALITY

TABLE = "data/synthetic.parquet"

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
    assert not {"script"} & {name for name, _ in Reader(evil).tags}


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
    verdicts = judge(certificate, [profile], AUDITS)
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
