"""Each kind of tampering is found and named, with exit code 5, by the command that readers run.

First what is done by hand, then what a forger does who renews every hash that would give it away.
What a forger can do who rewrites a whole bundle consistently is found by the signature alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth._util.strict_json import read_document, written
from dpsynth.bundle import release, sign, verify
from dpsynth.bundle.format import create_key
from dpsynth.bundle.format.layout import SIGNATURE
from dpsynth.certificate import Certificate, not_covered
from dpsynth.errors import InputError, VerificationError
from dpsynth.synthesis import Run

from ..support.forger import Forger

TABLE, TEXT = "data/synthetic.parquet", "data/synthetic.csv"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The office's key pair."""
    return create_key(tmp_path_factory.mktemp("keys") / "office.key", None)


@pytest.fixture
def signed(bundle: Path, keys: tuple[Path, Path]) -> Path:
    sign(bundle, keys[0])
    return bundle


@pytest.fixture
def other(bundle: Path, run_folder: Path, tmp_path: Path) -> Path:
    """A sound bundle of the same run: other rows."""
    return release(run_folder, tmp_path / "other", size=300, seed=8)


def one_cell(line: str) -> str:
    """Give a row another age that the schema allows."""
    age, rest = line.split(",", 1)
    return f"{18 if age != '18' else 19},{rest}"


def edit_text(bundle: Path) -> None:
    lines = (bundle / TEXT).read_text().splitlines()
    (bundle / TEXT).write_text("\n".join([lines[0], one_cell(lines[1]), *lines[2:]]) + "\n")


def edit_json(file: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(bundle: Path) -> None:
        document = read_document(bundle / file)
        change(document)
        (bundle / file).write_bytes(written(document))

    return edit


def edit_bytes(file: str) -> Callable[[Path], None]:
    def edit(bundle: Path) -> None:
        content = bytearray((bundle / file).read_bytes())
        content[len(content) // 2] ^= 1
        (bundle / file).write_bytes(content)

    return edit


BY_HAND: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a cell edited in the text": (edit_text, f"{TEXT}: was changed"),
    "a byte edited in the table": (edit_bytes(TABLE), f"{TABLE}: was changed"),
    "epsilon lowered": (
        edit_json("privacy.json", lambda d: d.update(epsilon=1.0)),
        "privacy.json: was changed",
    ),
    "an event removed": (
        edit_json("privacy.json", lambda d: d["events"].pop()),
        "privacy.json: was changed",
    ),
    "the page edited": (edit_bytes("report.html"), "report.html: was changed"),
    "the card edited": (edit_bytes("CARD.md"), "CARD.md: was changed"),
    "the Croissant document edited": (
        edit_json("croissant.json", lambda d: d.update(name="x")),
        "croissant.json: was changed",
    ),
    "the licence edited": (
        edit_json("datapackage.json", lambda d: d.update(licenses=[{"name": "CC0-1.0"}])),
        "datapackage.json: 1 entries are missing, unknown or changed",
    ),
    "a file added": (
        lambda bundle: (bundle / "notes.txt").write_text("x"),
        "notes.txt: is there, but is not listed in the manifest",
    ),
    "a file added beside the tables": (
        lambda bundle: (bundle / "data/patients.csv").write_text("x"),
        "data/patients.csv: is there, but is not listed in the manifest",
    ),
    "a file removed": (lambda bundle: (bundle / "CARD.md").unlink(), "CARD.md: is missing"),
    "the manifest removed": (
        lambda bundle: (bundle / "datapackage.json").unlink(),
        "datapackage.json: ",
    ),
    "rows in the signature's place": (
        lambda bundle: (bundle / SIGNATURE).write_text("F,40,70.5\n" * 9),
        f"{SIGNATURE}: is not a signature: it must have 64 bytes",
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_done_by_hand_is_found(bundle: Path, name: str) -> None:
    change, words = BY_HAND[name]
    verify(bundle)
    change(bundle)
    with pytest.raises(VerificationError) as refusal:
        verify(bundle)
    assert words in str(refusal.value)


@pytest.mark.parametrize("file", [TABLE, TEXT, "report.html", "CARD.md", "croissant.json"])
def test_a_file_swapped_with_another_bundle_is_found(
    bundle: Path, other: Path, forger: Forger, file: str
) -> None:
    """Also if the manifest is renewed: files of two bundles do not fit together."""
    shutil.copyfile(other / file, bundle / file)
    assert f"{file}: was changed" in forger.findings()
    forger.relist()
    forger.findings()


def test_the_certificate_of_another_run_is_found(
    bundle: Path, run_folder: Path, forger: Forger
) -> None:
    """Same schema, model and budget; the page and the card show another certificate."""
    text = Certificate.from_dict(read_document(run_folder / "run.json")["certificate"])
    assert text.ledger is not None
    charge = replace(text.ledger, entry="9" * 32, fits=2, record=7, epsilon_total=6.0)
    words = not_covered(Run.load(run_folder).schema, charge)
    another = replace(text, ledger=charge, not_covered=words)
    (bundle / "privacy.json").write_bytes(written(another.to_dict()))
    assert "privacy.json: was changed" in forger.findings()
    forger.relist()
    assert "report.html: does not match the other files" in forger.findings()


def test_a_certificate_of_less_is_found_however_consistent(forger: Forger) -> None:
    forger.recertify(lambda d: d.update(epsilon=1.0, composed_epsilon=0.99))
    assert "above the claim of 1" in forger.findings()
    forger.recertify(lambda d: d.update(epsilon=3.0, composed_epsilon=2.5))
    assert "not to the stated 2.5" in forger.findings()


def test_a_removed_event_is_found_however_consistent(forger: Forger) -> None:
    forger.recertify(lambda d: d.update(events=[d["events"][0] | {"name": "something else"}]))
    findings = forger.findings()
    assert "event 'one-way histograms', which model independent runs, is missing" in findings


def test_a_signed_bundle_verifies_with_the_key_and_without(
    signed: Path, keys: tuple[Path, Path]
) -> None:
    assert any("signed with the key" in line for line in verify(signed, key=keys[1]))
    assert any("was not checked" in line for line in verify(signed))
    assert (signed / SIGNATURE).stat().st_size == 64
    for path in signed.rglob("*"):
        assert not path.is_file() or b"KEY-----" not in path.read_bytes()


def test_what_a_consistent_forger_makes_is_found_by_the_key(
    run_folder: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """The forger has dpsynth and the run, draws other rows, and takes the signature along."""
    ours = release(run_folder, tmp_path / "ours", size=300, seed=7)
    sign(ours, keys[0])
    forged = release(run_folder, tmp_path / "forged", size=300, seed=666)
    shutil.copyfile(ours / SIGNATURE, forged / SIGNATURE)
    verify(forged)  # consistent in itself
    with pytest.raises(VerificationError, match=SIGNATURE):
        verify(forged, key=keys[1])


def test_a_removed_or_foreign_signature_is_found(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    stranger, public = create_key(tmp_path / "stranger.key", None)
    with pytest.raises(VerificationError, match=SIGNATURE):
        verify(signed, key=public)
    (signed / SIGNATURE).unlink()
    sign(signed, stranger)
    with pytest.raises(VerificationError, match=SIGNATURE):
        verify(signed, key=keys[1])
    (signed / SIGNATURE).unlink()
    verify(signed)
    with pytest.raises(VerificationError, match="is missing: this bundle is not signed"):
        verify(signed, key=keys[1])


def without_gaps(document: Any) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize("file", ["datapackage.json", "schema.json", "privacy.json"])
@pytest.mark.parametrize(
    "hidden",
    [
        lambda d: d | {"JANE DOE, born 1980": None},
        lambda d: d | {"note": "JANE DOE"},
        lambda d: dict(reversed(d.items())),
    ],
)
def test_nothing_hides_in_a_document(
    bundle: Path, forger: Forger, file: str, hidden: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    (bundle / file).write_bytes(written(hidden(read_document(bundle / file))))
    if file != "datapackage.json":
        forger.relist()
    assert file in forger.findings()


@pytest.mark.parametrize("file", ["datapackage.json", "schema.json", "privacy.json"])
def test_a_document_without_its_gaps_is_found(bundle: Path, forger: Forger, file: str) -> None:
    (bundle / file).write_bytes(without_gaps(read_document(bundle / file)))
    if file != "datapackage.json":
        forger.relist()
    assert f"{file}: is not written as a release writes it" in forger.findings()


def test_what_another_version_wrote_is_accepted_only_if_asked_for(
    bundle: Path, forger: Forger
) -> None:
    (bundle / "CARD.md").write_text("# Anonymous data")
    forger.edit("datapackage.json", lambda d: d["dpsynth"].update(writer="9.9.9"))
    assert "was written by dpsynth 9.9.9" in forger.findings()
    assert any("its listed SHA-256" in line for line in verify(bundle, other_version=True))


def test_names_of_files_cannot_steer_a_terminal(bundle: Path, forger: Forger) -> None:
    (bundle / "\x1b[2Jverified").write_text("x")
    assert "\x1b" not in forger.findings() and r"\x1b[2Jverified" in forger.findings()


@pytest.mark.parametrize("entry", [{"run_sha256": "`<img>`"}, {"condition": "age > \x1b[2J"}])
def test_a_drawing_has_no_text_of_its_own(forger: Forger, entry: dict[str, str]) -> None:
    forger.edit("datapackage.json", lambda d: d["dpsynth"]["drawing"].update(entry))
    assert "datapackage.json: dpsynth.drawing." in forger.findings()


def test_a_key_that_is_none_is_a_usage_error(signed: Path, keys: tuple[Path, Path]) -> None:
    for key in (keys[0], signed / "CARD.md", signed / "nothing"):
        with pytest.raises(InputError):
            verify(signed, key=key)


def test_the_command_names_what_it_found_and_ends_with_5(
    signed: Path, keys: tuple[Path, Path], command_line: Callable[..., Any]
) -> None:
    outcome = command_line("verify", signed, "--key", keys[1], "--json")
    assert outcome.code == 0 and outcome.json["signed"] is True
    edit_text(signed)
    outcome = command_line("verify", signed)
    assert outcome.code == 5 and f"{TEXT}: was changed" in outcome.err


def test_the_same_run_gives_the_same_bytes_signature_included(
    run_folder: Path, tmp_path: Path, keys: tuple[Path, Path], files_of: Any
) -> None:
    bundles = [release(run_folder, tmp_path / name, size=200, seed=3) for name in ("a", "b")]
    for bundle in bundles:
        sign(bundle, keys[0])
    assert files_of(bundles[0]) == files_of(bundles[1])
    assert SIGNATURE in files_of(bundles[0])
    assert len(np.unique([len(files_of(bundle)) for bundle in bundles])) == 1
