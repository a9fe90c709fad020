"""Verification finds whatever a bundle should not have, and needs neither torch nor a database."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import release, verify
from dpsynth.bundle.format import append_audit
from dpsynth.errors import InputError, VerificationError

from ..support.forger import Forger
from ..support.public_audit_example import public_audit

Document = dict[str, Any]
TABLE, TEXT = "data/synthetic.parquet", "data/synthetic.csv"


@pytest.mark.smoke
def test_a_sound_bundle_passes_every_check(forger: Forger, bundle: Path) -> None:
    checks = "\n".join(verify(bundle))
    for part in (
        "listed with its SHA-256",
        "schema is complete",
        "describes each file",
        "compose to at most epsilon 3 at delta 1e-06",
        f"every cell of {TABLE}",
        f"every cell of {TEXT}",
        "has the same 300 rows",
        "contains nothing except its rows",
        "report.html matches the other files",
        "CARD.md matches the other files",
        "croissant.json matches the other files",
    ):
        assert part in checks
    forger.relist()  # the forger's tool alone changes nothing
    assert len(verify(bundle)) == 13


def test_no_bundle_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        verify(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(VerificationError, match=r"datapackage\.json: "):
        verify(tmp_path / "empty")


@pytest.mark.parametrize(
    "file", [TABLE, TEXT, "schema.json", "privacy.json", "report.html", "datapackage.json"]
)
def test_a_missing_file_is_found(forger: Forger, bundle: Path, file: str) -> None:
    (bundle / file).unlink()
    assert f"{file}" in forger.findings() and "is missing" in forger.findings()


@pytest.mark.parametrize("file", [TABLE, TEXT, "schema.json", "privacy.json", "report.html"])
def test_a_missing_file_is_found_although_the_manifest_forgets_it(
    forger: Forger, bundle: Path, file: str
) -> None:
    (bundle / file).unlink()
    manifest = forger.read("datapackage.json")
    manifest["resources"] = [r for r in manifest["resources"] if r["path"] != file]
    (bundle / "datapackage.json").write_text(json.dumps(manifest))
    assert file in forger.findings()


@pytest.mark.parametrize("file", [TABLE, TEXT, "schema.json", "privacy.json", "report.html"])
def test_a_changed_byte_is_found(forger: Forger, bundle: Path, file: str) -> None:
    content = bytearray((bundle / file).read_bytes())
    content[-2] ^= 1
    (bundle / file).write_bytes(content)
    assert f"{file}: was changed" in forger.findings()


@pytest.mark.parametrize("place", ["rows.csv", "data/rows.csv", "data/.hidden", "tmp-x"])
def test_an_added_file_is_found(forger: Forger, bundle: Path, place: str) -> None:
    (bundle / place).write_text("x")
    assert f"{place}: is there, but is not listed in the manifest" in forger.findings()


@pytest.mark.parametrize("place", ["extra", "data/extra", ".hidden"])
def test_an_added_folder_is_found(forger: Forger, bundle: Path, place: str) -> None:
    (bundle / place).mkdir()
    assert f"{place}: is a folder that does not belong in a bundle" in forger.findings()


def test_an_added_file_is_found_although_it_is_listed(forger: Forger, bundle: Path) -> None:
    (bundle / "rows.csv").write_text("x")
    item = {"name": "rows", "path": "rows.csv", "bytes": 0, "hash": ""}
    forger.edit("datapackage.json", lambda d: d["resources"].append(item))
    assert "not a file of a bundle of version 1" in forger.findings()


@pytest.mark.parametrize("file", [TABLE, "privacy.json", "datapackage.json", "data"])
def test_a_link_is_found_and_not_followed(
    forger: Forger, bundle: Path, tmp_path: Path, file: str
) -> None:
    shutil.move(bundle / file, tmp_path / "elsewhere")
    (bundle / file).symlink_to(tmp_path / "elsewhere")
    assert forger.findings().endswith(
        f"1 finding:\n  {file}: is not a plain file; a bundle cannot have links"
    )


def test_a_pipe_is_found_and_not_read(forger: Forger, bundle: Path) -> None:
    os.mkfifo(bundle / "data" / "pipe")
    assert "data/pipe: is not a plain file" in forger.findings()


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "data/../../x",
        "/etc/passwd",
        "..\\x",
        "C:/x",
        "./schema.json",
        "data//synthetic.csv",
        "",
        ".",
        "http://example.org/x",
        None,
        7,
    ],
)
def test_a_path_out_of_the_bundle_is_found(forger: Forger, bundle: Path, path: Any) -> None:
    forger.edit("datapackage.json", lambda d: None)
    manifest = forger.read("datapackage.json")
    manifest["resources"][2]["path"] = path
    (bundle / "datapackage.json").write_text(json.dumps(manifest))
    assert "resources[2].path" in forger.findings()


def test_a_file_that_is_listed_twice_is_found(forger: Forger) -> None:
    forger.edit("datapackage.json", lambda d: d["resources"].append(d["resources"][0]))
    assert "resources[8].path occurs twice" in forger.findings()


MANIFEST_CHANGES: dict[str, Callable[[Document], Any]] = {
    "another title": lambda d: d.update(title="Real patients"),
    "an unknown entry": lambda d: d.update(contributors=[{"title": "x"}]),
    "another profile": lambda d: d.pop("$schema"),
    "another table schema": lambda d: d["resources"][0]["schema"]["fields"].pop(),
    "other bounds": lambda d: d["resources"][1]["schema"]["fields"][0].update(constraints={}),
    "another media type": lambda d: d["resources"][0].update(mediatype="text/html"),
    "a stowaway": lambda d: d["resources"][2].update(data=[1, 2, 3]),
    "another version": lambda d: d["dpsynth"].update(version=1),
    "another format": lambda d: d["dpsynth"].update(format="x"),
    "no drawing": lambda d: d.pop("dpsynth"),
    "a drawing with more": lambda d: d["dpsynth"]["drawing"].update(noise_seed=1),
    "no list of files": lambda d: d.update(resources={}),
    "a file that is no object": lambda d: d["resources"].append("x"),
    "another number of rows": lambda d: d["dpsynth"]["drawing"].update(size=301),
    "another model": lambda d: d["dpsynth"]["drawing"].update(model="tvae"),
}


@pytest.mark.parametrize("name", MANIFEST_CHANGES)
def test_a_changed_manifest_is_found(forger: Forger, bundle: Path, name: str) -> None:
    manifest = forger.read("datapackage.json")
    MANIFEST_CHANGES[name](manifest)
    (bundle / "datapackage.json").write_text(json.dumps(manifest))
    forger.findings()


@pytest.mark.parametrize("content", ["", "[]", '{"resources": NaN}', "\x00", '{"a": 1, "a": 1}'])
@pytest.mark.parametrize("file", ["datapackage.json", "schema.json", "privacy.json"])
def test_a_document_that_is_not_strict_json_is_found(
    forger: Forger, bundle: Path, file: str, content: str
) -> None:
    (bundle / file).write_text(content)
    if file != "datapackage.json":
        forger.relist()
    assert file in forger.findings()


def test_every_finding_is_listed(forger: Forger, bundle: Path) -> None:
    (bundle / "rows.csv").write_text("x")
    forger.rewrite_text(lambda lines: lines[:-1])
    forger.recertify(lambda d: d.update(epsilon=1.0))
    findings = forger.findings()
    assert "rows.csv" in findings and "has other rows" in findings and "above the claim" in findings


@pytest.fixture
def audited(run_folder: Path, tmp_path: Path, forger: Forger) -> Forger:
    """Someone who edits a bundle with two audits."""
    for seed in (7, 8):
        append_audit(run_folder, public_audit(seed))
    return type(forger)(release(run_folder, tmp_path / "audited", size=300, seed=7))


def white(document: Document) -> Document:
    """Give the second view of the first audit."""
    view: Document = document["audits"][0]["views"][1]
    return view


def test_a_bundle_with_audits_passes_every_check(audited: Forger) -> None:
    checks = verify(audited.bundle)
    assert "what the audits prove follows from their guesses, about this run" in checks
    assert len(checks) == 14


PAGE = "report.html: does not match the other files"
AUDIT_CHANGES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "of another run": (lambda d: d.update(run_sha256="c" * 64), "the audits of another run"),
    "one left out": (lambda d: d["audits"].pop(), PAGE),
    "two turned round": (lambda d: d["audits"].reverse(), PAGE),
    "another claim": (
        lambda d: d["audits"][1]["claim"].update(epsilon=4.0),
        "audit 2: it is about another claim",
    ),
    "a bound understated": (
        lambda d: white(d).update(epsilon=0.1),
        "audit 1: view white: its bound on epsilon",
    ),
    "a bound on the curve understated": (lambda d: white(d).update(epsilon_fdp=0.1), PAGE),
    "a point of a curve": (lambda d: white(d)["roc"]["tpr"].__setitem__(0, 0), PAGE),
    "a better sentence": (lambda d: white(d).update(sentence="nothing leaks"), PAGE),
    "an unknown key": (
        lambda d: white(d).update(rows=[1]),
        "audits[0].views[1]: 'rows' is unknown",
    ),
    "an internal audit": (lambda d: d.update(format="dpsynth-audit"), "is an internal audit"),
    "a refuted claim": (
        lambda d: white(d).update(refuted=True),
        "a check that did not pass: 'No audit on synthetic rows refuted the claim",
    ),
    "a failed control": (
        lambda d: d["audits"][0]["controls"][0].update(passed=False),
        "control 'A generator without noise, overfitted on purpose' failed",
    ),
}


@pytest.mark.parametrize("name", AUDIT_CHANGES)
def test_a_changed_audit_is_found(audited: Forger, name: str) -> None:
    change, words = AUDIT_CHANGES[name]
    audited.edit("audit.json", change)
    assert words in audited.findings()


def test_an_audit_that_is_taken_away_is_found(audited: Forger) -> None:
    (audited.bundle / "audit.json").unlink()
    assert "audit.json: is missing" in audited.findings()
    manifest = audited.read("datapackage.json")
    manifest["resources"] = [r for r in manifest["resources"] if r["path"] != "audit.json"]
    (audited.bundle / "datapackage.json").write_text(json.dumps(manifest))
    assert PAGE in audited.findings()


def test_a_huge_audit_is_found_and_not_read(audited: Forger) -> None:
    os.truncate(audited.bundle / "audit.json", 2**26)
    audited.relist()
    assert "is larger than 32 MiB" in audited.findings()


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "opacus", "sqlalchemy", "opendp", "safetensors"):
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.long
def test_verification_needs_neither_torch_nor_a_database(bundle: Path, audited: Forger) -> None:
    """Nor evaluations: of a bundle without audits, and of one with them."""
    code = BLOCKED + "from dpsynth.bundle import verify\n"
    code += "print(*(len(verify(path)) for path in sys.argv[1:]))\n"
    code += "print([name for name in sys.modules if name.startswith('dpsynth.eval')])"
    command = [sys.executable, "-c", code, str(bundle), str(audited.bundle)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "13 14\n[]\n"  # files, the note SYNTHETIC.txt among them


def test_the_block_would_be_noticed() -> None:
    """The broken twin: a module that does need torch does not load."""
    command = [sys.executable, "-c", BLOCKED + "from dpsynth.models.generators import Tvae"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "torch is blocked" in done.stderr
