"""docs/extending.md: a public file from outside the package is released and verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth._util.strict_json import file_digest, written
from dpsynth.bundle import release, verify
from dpsynth.bundle.files import FILES, Material
from dpsynth.bundle.format import BundleFile, Contents
from dpsynth.errors import VerificationError

PATH = "columns.txt"


def columns_text(material: Material) -> bytes:
    """List the columns of the synthetic table, and how many of their cells are missing."""
    lines = [
        f"{column.column.name}: {column.missing} missing\n" for column in material.profile.columns
    ]
    return "".join(lines).encode()


TOY = BundleFile(
    PATH,
    name="columns",
    title="The columns, one a line",
    format="txt",
    mediatype="text/plain",
    derive=columns_text,
)


def rules_document(contents: Contents) -> dict[str, object]:
    """List the rules that every synthetic row keeps."""
    return {"rules": [rule.text for rule in contents.heading.schema.rules]}


DOCUMENT = BundleFile(
    "rules.json",
    name="rules",
    title="The rules that every row keeps",
    format="json",
    mediatype="application/json",
    document=rules_document,
)


@pytest.fixture
def released(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle with two files more."""
    monkeypatch.setitem(FILES, PATH, TOY)
    monkeypatch.setitem(FILES, DOCUMENT.path, DOCUMENT)
    return release(run_folder, tmp_path / "extended", size=50, seed=1)


def relist(bundle: Path, path: str) -> None:
    """Correct the manifest after a file was changed, as a forger would."""
    manifest = bundle / "datapackage.json"
    document = json.loads(manifest.read_text())
    for entry in document["resources"]:
        if entry["path"] == path:
            entry["hash"] = f"sha256:{file_digest(bundle / path)}"
            entry["bytes"] = (bundle / path).stat().st_size
    manifest.write_bytes(written(document))


def test_the_file_is_written_listed_and_compared(released: Path) -> None:
    text = (released / PATH).read_text()
    assert text.startswith("age: 0 missing\nweight: ")
    assert json.loads((released / "rules.json").read_text()) == {
        "rules": ["admitted <= discharged"]
    }
    listed = json.loads((released / "datapackage.json").read_text())["resources"]
    entries = {entry["path"]: entry for entry in listed}
    assert entries[PATH]["title"] == "The columns, one a line"
    assert list(entries)[-2:] == [PATH, "rules.json"]
    checks = verify(released)
    assert f"{PATH} matches the other files" in checks
    assert "every document is written as a release writes it" in checks


@pytest.mark.parametrize(
    ("path", "finding"),
    [
        (PATH, "does not match the other files"),
        ("rules.json", "is not written as a release writes it"),
    ],
)
def test_a_forged_file_is_found_though_it_is_listed(
    released: Path, path: str, finding: str
) -> None:
    (released / path).write_bytes((released / path).read_bytes() + b"patient 00173\n")
    relist(released, path)
    with pytest.raises(VerificationError, match=finding):
        verify(released)


def test_a_bundle_without_it_is_told_apart(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(bundle)
    monkeypatch.setitem(FILES, PATH, TOY)
    with pytest.raises(VerificationError, match=f"{PATH}: is missing"):
        verify(bundle)


def test_a_reader_without_the_entry_refuses_the_file(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(FILES, PATH)
    with pytest.raises(VerificationError, match="not a file of a bundle"):
        verify(released)


def test_a_document_without_content_cannot_travel_along(
    released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = BundleFile("rules.json", "rules", DOCUMENT.title, *("json", "application/json"),
                         document=lambda contents: None)  # fmt: skip
    monkeypatch.setitem(FILES, "rules.json", nothing)
    with pytest.raises(VerificationError, match="nothing else in the bundle gives"):
        verify(released)


def test_a_file_that_nothing_compares_is_refused() -> None:
    with pytest.raises(ValueError, match="is a table, or has one of document and derive"):
        BundleFile("notes.txt", "notes", "Notes", "txt", "text/plain")
