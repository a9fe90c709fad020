"""``release`` and ``verify`` as they are typed: words, overrides, keys, exit codes."""

from __future__ import annotations

import io
import json
import signal
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle.format import append_audit
from dpsynth.cli import main
from dpsynth.cli.process import ASKED as NAMES
from dpsynth.ledger import Ledger, adopt
from dpsynth.policy import Policy

from ..support.public_audit_example import public_audit, seen

ASKED = tuple(getattr(signal, name) for name in NAMES)
ABOUT = "publisher: General Hospital\nlicence: CC-BY-4.0\nintended_use: Teaching\n"


def dpsynth(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, which has loaded what it needs."""
    out, err = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in ASKED}
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert isinstance(stopped.value.code, int)
    return subprocess.CompletedProcess(
        arguments, stopped.value.code, out.getvalue(), err.getvalue()
    )


@pytest.fixture
def refuted(run_folder: Path) -> Path:
    append_audit(run_folder, seen(public_audit(), 1, refuted=True))
    return run_folder


def test_what_the_office_says_is_in_the_bundle(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "about.yaml").write_text(ABOUT)
    bundle = tmp_path / "bundle"
    done = dpsynth(
        "release", run_folder, "-o", bundle, "--about", tmp_path / "about.yaml", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert {"CARD.md", "croissant.json"} <= set(json.loads(done.stdout)["files"])
    manifest = read_document(bundle / "datapackage.json")
    assert manifest["contributors"] == [{"title": "General Hospital", "roles": ["publisher"]}]
    for file in ("CARD.md", "report.html", "croissant.json"):
        assert "General Hospital" in (bundle / file).read_text()
    checked = dpsynth("verify", bundle, "--ledger")
    assert checked.returncode == 0 and "the ledger matches the certificate" in checked.stdout


def test_a_mistake_in_the_words_is_named_and_nothing_is_written(
    run_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "about.yaml").write_text("license: MIT\n")
    done = dpsynth("release", run_folder, "-o", tmp_path / "b", "--about", tmp_path / "about.yaml")
    assert done.returncode == 2 and "did you mean 'licence'?" in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_gate_stops_and_a_named_person_lets_pass(refuted: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    done = dpsynth("release", refuted, "-o", bundle)
    assert done.returncode == 3 and "--override REASON --by NAME" in done.stderr
    excuse = ("--override", "a false alarm", "--by", "A. Smith")
    done = dpsynth("release", refuted, "-o", bundle, *excuse)
    assert done.returncode == 0, done.stderr
    assert read_document(bundle / "privacy.json")["overrides"][0]["by"] == "A. Smith"
    assert dpsynth("verify", bundle).returncode == 0


def test_an_override_needs_both_and_a_gate(run_folder: Path, tmp_path: Path) -> None:
    for more, words in (
        (("--override", "why"), "give both --override REASON and --by NAME"),
        (("--by", "A. Smith"), "give both --override REASON and --by NAME"),
        (("--override", "why", "--by", "A. Smith"), "no gate stops this release"),
    ):
        done = dpsynth("release", run_folder, "-o", tmp_path / "b", *more)
        assert done.returncode == 2 and words in done.stderr
        assert not (tmp_path / "b").exists()


def test_a_gate_that_the_policy_requires_stops(run_folder: Path, tmp_path: Path) -> None:
    document = {
        "dpsynth_policy": 1,
        "name": "office",
        "delta": 1e-3,
        "caps": {"total": {"epsilon": 100, "basis": "a test"}},
        "gates": ["audit"],
    }
    adopt(Ledger.present(), Policy.from_dict(document, "policy.yaml"))
    done = dpsynth("release", run_folder, "-o", tmp_path / "bundle")
    assert done.returncode == 3 and "not audited" in done.stderr


def test_the_schema_of_the_certificate_is_printed(bundle: Path) -> None:
    done = dpsynth("verify", "--show-schema")
    assert done.returncode == 0
    assert json.loads(done.stdout)["$id"] == "urn:dpsynth:certificate:1"


def test_a_draft_is_written_with_a_release_before_and_after_it(
    run_folder: Path, tmp_path: Path
) -> None:
    bundle, drafts = tmp_path / "bundle", [tmp_path / f"{name}.txt" for name in "abc"]
    for arguments in (
        (run_folder, "--dpia", drafts[0]),
        (run_folder, "-o", bundle, "--dpia", drafts[1]),
        (bundle, "--dpia", drafts[2]),
    ):
        done = dpsynth("release", *arguments)
        assert done.returncode == 0, done.stderr
        assert f"assessment  {arguments[-1]}" in done.stdout
    before, along, after = [draft.read_text() for draft in drafts]
    assert before.startswith("Processing. From the table") and before == along == after
    assert dpsynth("verify", bundle).returncode == 0


def test_a_bundle_is_not_released_again(bundle: Path, tmp_path: Path) -> None:
    events, draft, second = tmp_path / "events", tmp_path / "draft.txt", tmp_path / "second"
    for more in (
        (),
        ("-o", second),
        ("--dpia", draft, "-o", second),
        ("--dpia", draft, "--rows", 9),
    ):
        done = dpsynth("release", bundle, *more)
        assert done.returncode == 2 and "is a bundle already" in done.stderr
    done = dpsynth("release", bundle, "--meds", events, "--dpia", draft)
    assert done.returncode == 2 and "has a single table" in done.stderr
    assert not any(path.exists() for path in (events, draft, second))


def test_a_release_needs_its_folder(run_folder: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.txt"
    for more in ((), ("--meds", tmp_path / "e"), ("--dpia", draft, "--seed", 1)):
        done = dpsynth("release", run_folder, *more)
        assert done.returncode == 2 and "give -o, the new folder for the bundle" in done.stderr
    done = dpsynth("release", tmp_path, "--dpia", draft)
    assert done.returncode == 2 and "neither a run nor a bundle" in done.stderr
    assert not draft.exists()
