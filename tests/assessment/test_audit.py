"""The verb audit and its command: what is asked for is done, and what is internal stays so."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pandas as pd
import pytest

from dpsynth import fit_not_private
from dpsynth.assessment import Candidate, Real, audit, training_audit
from dpsynth.bundle import release, verify
from dpsynth.bundle.format import read_audits
from dpsynth.errors import InputError
from dpsynth.eval.attacks import audit as documents
from dpsynth.ledger import Ledger
from dpsynth.privacy import SeededEntropy
from dpsynth.synthesis import Run

from ..support.audited_office import Office, fitted_office, make_quick, quiet_table
from ..support.evaluated_office import DEMO, call
from ..support.short_judges import shorten_judges

ONCE = ("--canaries", "60", "--repeats", "0", "--quiet")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return fitted_office(tmp_path_factory.mktemp("office"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, office: Office) -> None:
    make_quick(monkeypatch, office)


def test_a_run_alone_is_audited_without_a_real_row(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    (office.folder / "run" / "audit.json").unlink(missing_ok=True)
    hidden = [(office.folder / name) for name in ("train.csv", "holdout.csv")]
    for path in hidden:
        path.rename(path.with_suffix(".gone"))
    try:
        arguments = ("--canaries", "60", "--repeats", "0", "--json")
        assert call("audit", office.path("run"), *arguments) == 0
    finally:
        for path in hidden:
            path.with_suffix(".gone").rename(path)
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "quiet" and result["tables"] is None
    assert {finding["key"] for finding in result["findings"]} == {
        "training:black",
        "training:white",
    }
    audits = read_audits(office.folder / "run")
    assert audits is not None and len(audits.audits) == 1
    assert audits.audits[0].canaries == 60 and audits.audits[0].claim.epsilon == 2.0


@pytest.fixture(scope="module")
def audited(office: Office) -> bytes:
    """Audit the run and its table, with noise of seed 5, into `internal`; return what is public."""
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    arguments = ["audit", office.path("run"), *office.tables, *ONCE]
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch, office)
        shorten_judges(patch)
        patch.setattr(training_audit, "OsEntropy", lambda: SeededEntropy(5))
        assert call(*arguments, "-o", office.path("internal")) in (0, 3)
    return path.read_bytes()


def test_the_bundle_takes_the_public_audit_along_and_nothing_internal(
    office: Office, tmp_path: Path, audited: bytes
) -> None:
    (office.folder / "run" / "audit.json").write_bytes(audited)
    bundle = release(
        office.path("run"),
        tmp_path / "bundle",
        table=office.path("out.parquet"),
        ledger=Ledger(office.path("ledger.sqlite")),
    )
    verify(bundle)
    document = json.loads((bundle / "audit.json").read_text())
    assert document["format"] == "dpsynth-audits"
    words = (bundle / "audit.json").read_text() + (bundle / "report.html").read_text()
    internal = json.loads((office.folder / "internal" / "audit.json").read_text())
    sentences = [
        statement["sentence"]
        for statement in (*internal["findings"], *internal["powers"])
        if not statement["key"].startswith("training")
    ]
    assert len(sentences) > 20
    for word in ("singling", "holdout.csv", "train.csv", *sentences):
        assert word not in words
    assert internal["internal"] is True and "membership" in internal["parts"]
    assert internal["tables"]["synthetic"]["sha256"] and internal["run"]["epsilon"] == 2.0


def test_the_public_audit_does_not_depend_on_the_tables(
    office: Office, monkeypatch: pytest.MonkeyPatch, audited: bytes
) -> None:
    """Same seed and noise: with and without real tables the same file is written."""
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    monkeypatch.setattr(training_audit, "OsEntropy", lambda: SeededEntropy(5))
    assert call("audit", office.path("run"), *ONCE) in (0, 3)
    assert path.read_bytes() == audited


@pytest.mark.long
def test_results_are_for_their_owner_and_share_a_folder_with_an_evaluation(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet_table(monkeypatch)
    folder = tmp_path / "internal"
    arguments = [office.path("run"), *office.tables, "-o", str(folder), "--quiet"]
    assert call("audit", *arguments, "--no-training") == 0
    assert {path.name for path in folder.iterdir()} == {"audit.json", "internal.html"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert call("audit", *arguments, "--no-training") == 2  # not replaced unless asked
    assert call("audit", *arguments, "--no-training", "--force") == 0
    assert call("evaluate", *arguments) in (0, 3)
    names = {"audit.json", "evaluation.json", "internal.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert call("audit", *arguments, "--no-training", "--force") == 0
    assert {path.name for path in folder.iterdir()} == names
    other = tmp_path / "other.parquet"
    assert call("sample", office.path("run"), "--rows", "300", "-o", str(other), "--quiet") == 0
    arguments[arguments.index("--synthetic") + 1] = str(other)
    assert call("audit", *arguments, "--no-training", "--force") == 2  # about another table


@pytest.mark.long
def test_tables_of_other_tools_are_attacked_whole(office: Office, tmp_path: Path) -> None:
    """All attacks and all controls on a table by schema; copies are found."""
    train = pd.read_csv(office.path("train.csv"))
    train.sample(900, random_state=1, replace=True).to_csv(tmp_path / "theirs.csv", index=False)
    document = audit(
        DEMO,
        real=Real(
            office.path("train.csv"),
            Candidate("theirs", str(tmp_path / "theirs.csv")),
            office.path("holdout.csv"),
        ),
    )
    successes = {finding["key"] for finding in document["findings"] if finding["found"]}
    assert {"memorization:copies", "membership:distance", "singling_out:many"} <= successes
    assert document["verdict"] in ("found", "failed")
    parts = {"memorization", "membership", "attribute", "linkability", "singling_out"}
    assert set(document["parts"]) == parts
    keys = {finding["key"] for finding in document["findings"]}
    assert {power["key"] for power in document["powers"]} == keys
    assert document["format"] == documents.FORMAT and document["internal"] is True
    json.dumps(document, allow_nan=False)


def test_a_run_without_privacy_has_no_claim_to_audit(
    office: Office, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpsynth.synthesis.run import DOCUMENT

    run = Run.load(office.path("run"))
    bare = Run(run.schema, run.model, run.config, run.arrays, None, ("not-private",))
    bare.save(tmp_path / "bare")
    assert (tmp_path / "bare" / DOCUMENT).is_file() and fit_not_private
    assert call("audit", str(tmp_path / "bare")) == 2
    assert "fitted without privacy" in capsys.readouterr().err


def test_nothing_to_audit_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to audit"):
        audit(DEMO)
