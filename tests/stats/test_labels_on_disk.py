"""Labels on disk: what was changed, forged or not paid for is found; what was paid for leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpsynth
from dpsynth._util.strict_json import written
from dpsynth.errors import ArtifactError, GateError, VerificationError
from dpsynth.ledger import Ledger, verify_ledger
from dpsynth.stats import (
    Answers,
    evidence_by_folder,
    release_answers,
    verify_answers,
)

from ..support.labelled_ward import BUDGET, WARD, labelled_ward, patients


@pytest.fixture(scope="module")
def found() -> Answers:
    return labelled_ward()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    place = tmp_path / "out"
    tables = (patients(200, 1), patients(20, 2), WARD, "ill")
    dpsynth.labels(*tables, **BUDGET, teachers=9, ledger=ledger, output=place)
    return place


def test_a_folder_is_verified_and_released_by_its_ledger(folder: Path, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert len(verify_answers(folder, ledger=ledger)) == 3
    assert verify_ledger(ledger, evidence_by_folder([folder]))
    bundle = release_answers(folder, tmp_path / "bundle", ledger=ledger)
    assert {path.name: path.read_bytes() for path in bundle.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


CHANGES: dict[str, tuple[str, bytes, bytes]] = {
    "a label": ("labelled.csv", b",yes\n", b",no\n"),
    "a public cell": ("labelled.csv", b",f,", b",m,"),
    "a share": ("votes.csv", b",0.", b",1."),
    "the certificate": ("privacy.json", b"2.0", b"1.0"),
    "the page": ("report.html", b"Labels", b"labels"),
    "the document": ("labels.json", b'"votes"', b'"votez"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(change: str, folder: Path) -> None:
    name, before, after = CHANGES[change]
    content = (folder / name).read_bytes()
    assert before in content
    (folder / name).write_bytes(content.replace(before, after))
    with pytest.raises(VerificationError):
        verify_answers(folder)


def test_a_file_more_is_found(folder: Path) -> None:
    (folder / "raw.csv").write_text("x")
    with pytest.raises(VerificationError, match="not part"):
        verify_answers(folder)


def changed(answers: Answers, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Answers:
    return replace(answers, numbers=answers.numbers | {name: change(answers.numbers[name])})


Forge = Callable[[Answers], Answers]
FORGED: dict[str, Forge] = {
    "a row of votes more": lambda one: changed(
        one, "votes", lambda votes: np.vstack([votes, [[7, 7]]])
    ),
    "a class more": lambda one: changed(
        one, "votes", lambda votes: np.hstack([votes, votes[:, :1]])
    ),
    "a student of other votes": lambda one: changed(one, "student", lambda weights: weights + 5000),
    "a feature more": lambda one: changed(
        one, "student", lambda weights: np.vstack([weights, [[0, 0]]])
    ),
    "a lesser cost": lambda one: replace(
        one, certificate=replace(one.certificate, composed_epsilon=0.01)
    ),
    "fewer teachers": lambda one: replace(one, request=replace(one.request, teachers=7)),
    "no stamp": lambda one: replace(one, stamps=()),
    "no stamp of the ledger": lambda one: replace(one, stamps=("seeded-entropy",)),
}


@pytest.mark.parametrize("change", FORGED)
def test_what_nobody_paid_for_does_not_load(change: str, found: Answers, tmp_path: Path) -> None:
    """Though the digests are those of the forger, and other files follow where they can."""
    forged = FORGED[change](found)
    follows = " more" not in change  # numbers more than there is room for have no tables
    files = forged.files() if follows else found.files()
    for name, content in (files | {"labels.json": written(forged.document)}).items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError):
        Answers.load(tmp_path)


def test_stamped_labels_are_read_back_and_not_released(found: Answers, tmp_path: Path) -> None:
    found.save(tmp_path / "out")
    assert Answers.load(tmp_path / "out").digest == found.digest
    with pytest.raises(GateError, match="seeded"):
        release_answers(tmp_path / "out", tmp_path / "bundle")
