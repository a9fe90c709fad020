"""The paragraph for an assessment: true to the certificate, open where only the office knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle import dpia_of, write_dpia
from dpsynth.bundle.format import Audits
from dpsynth.bundle.pages import dpia_paragraph
from dpsynth.certificate import Certificate, Overridden, largest_posterior
from dpsynth.errors import ArtifactError, InputError
from dpsynth.schema import Schema

from ..support.public_audit_example import public_audit


@pytest.fixture
def certificate(run_folder: Path) -> Certificate:
    return Certificate.from_dict(read_document(run_folder / "run.json")["certificate"])


def test_a_run_and_its_bundle_give_the_same(run_folder: Path, bundle: Path) -> None:
    assert dpia_of(run_folder) == dpia_of(bundle)


def test_it_is_written_as_text(run_folder: Path, tmp_path: Path) -> None:
    write_dpia(run_folder, tmp_path / "draft.txt")
    text = (tmp_path / "draft.txt").read_text()
    assert text == "\n\n".join(dpia_of(run_folder)) + "\n"


def test_it_states_the_measures(every_type: Schema, certificate: Certificate) -> None:
    text = " ".join(dpia_paragraph(every_type, certificate))
    bound = 100 * largest_posterior(0.5, certificate.composed_epsilon, certificate.delta)
    for words in (
        "GDPR Article 9",
        "[purpose]",
        "[Article 6 and Article 9 (2), and national law]",
        "epsilon 3 and delta 1e-6",
        "at most 2 rows of each",
        "Article 29 Working Party",
        "dataset 'cohort': 1 fit",
        "under no policy",
        "was not attacked",
        "treat the synthetic table as personal data",
    ):
        assert words in text, words
    assert f"it at most {bound:.1f}" in text or f"it at most {bound + 0.1:.1f}" in text


def test_it_hides_neither_failures_nor_overrides(
    every_type: Schema, certificate: Certificate
) -> None:
    audit = public_audit()
    failed = replace(audit.controls[0], passed=False)
    audits = Audits("c" * 64, (replace(audit, controls=(failed, *audit.controls[1:])),))
    paragraph = replace(certificate, overrides=(Overridden("audit", "a reason", "A. Smith"),))
    text = " ".join(dpia_paragraph(every_type, paragraph, audits))
    assert "1 of their checks failed" in text and "none refuted" not in text
    assert "gate 'audit' was overridden by A. Smith: a reason" in text


def test_rows_as_units_are_not_called_patients(
    every_type: Schema, certificate: Certificate
) -> None:
    unit = replace(certificate.unit, name=None, max_rows=1, person=None)
    text = " ".join(dpia_paragraph(every_type, replace(certificate, unit=unit)))
    assert "the people whom the rows describe; each row counts as one person" in text
    assert "one row of the source" in text


def test_one_fit_is_bounded_once_and_several_together(
    every_type: Schema, certificate: Certificate
) -> None:
    assert certificate.ledger is not None and certificate.ledger.fits == 1
    text = " ".join(dpia_paragraph(every_type, certificate))
    assert text.count("% likely") == 1 and "all of them" not in text
    charge = replace(certificate.ledger, fits=2, epsilon_total=6.0, delta_total=2e-6)
    text = " ".join(dpia_paragraph(every_type, replace(certificate, ledger=charge)))
    assert text.count("% likely") == 2
    assert "sees the results of all of them may come to think it at most 99.8 % likely" in text


@pytest.mark.parametrize("reason", ["no figure is used", "no figure is used.", "no figure. "])
def test_a_reason_ends_with_one_stop(
    every_type: Schema, certificate: Certificate, reason: str
) -> None:
    paragraph = replace(certificate, overrides=(Overridden("audit", reason, "A. Smith"),))
    evidence = dpia_paragraph(every_type, paragraph)[3]
    assert evidence.endswith(f": {reason.strip().removesuffix('.')}.")


def test_what_is_neither_is_refused(tmp_path: Path, run_folder: Path) -> None:
    with pytest.raises(InputError, match="neither a run nor a bundle"):
        dpia_of(tmp_path)
    (run_folder / "run.json").write_text("{")
    with pytest.raises(ArtifactError):
        dpia_of(run_folder)
