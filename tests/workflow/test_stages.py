"""A whole run: every stage can be interrupted and resumed, and the budget is never spent twice.

The evaluation and the audit are stood in for by ones that only write their documents, except where
they are what is tested.
"""

from __future__ import annotations

import json
import stat
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.strict_json import file_digest, read_document, written
from dpsynth.assessment import attack_audit as audit_verbs
from dpsynth.assessment import training_audit
from dpsynth.assessment.results_folder import AUDIT, EVALUATION, PAGE, beside, write_results
from dpsynth.bundle.evidence import close_entry
from dpsynth.bundle.format.about import About
from dpsynth.bundle.format.signature import create_key
from dpsynth.bundle.signing import sign
from dpsynth.bundle.verifier import verify
from dpsynth.certificate.certificate import Certificate
from dpsynth.certificate.override import Override
from dpsynth.errors import (
    ArtifactError,
    BudgetError,
    DpsynthWarning,
    GateError,
    InputError,
    TableError,
    VerificationError,
)
from dpsynth.eval.attacks.controls import Control
from dpsynth.ledger.actions import sign as sign_entry
from dpsynth.ledger.ledger import Ledger
from dpsynth.privacy.unit import Unit
from dpsynth.schema.schema import Schema
from dpsynth.synthesis.run import Run
from dpsynth.tables.simulated import simulate
from dpsynth.workflow import assessment_stages, release_stage
from dpsynth.workflow.resolved_settings import ResolvedSettings
from dpsynth.workflow.runner import KEPT, Outcome, planned, run_stages
from dpsynth.workflow.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore:a new ledger was created")
NAMES = ("split", "fit", "sample", "evaluate", "audit", "release")
PASSED = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")

KEPT_COLUMNS = ("patient_id", "sex", "age", "smoker", "ward", "readmitted_30d")


@pytest.fixture(scope="module")
def cohort() -> pd.DataFrame:
    return simulate(60, seed=1)


def small_schema(path: Path) -> Path:
    """A few columns of the demo, so that a run takes a second."""
    document = Schema.load("demo").to_dict()
    document["fields"] = [one for one in document["fields"] if one["name"] in KEPT_COLUMNS]
    del document["dpsynth"]["rules"]
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 300
    Schema.from_dict(document).save(path)
    return path


@dataclass
class Office:
    """Settings of a run in a folder of its own, and what its internal stages will find."""

    folder: Path
    settings: Settings
    gates: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    controls: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def run(self, *, at: str | None = None, again: bool = False, **changes: Any) -> Outcome:
        """Carry out the stages; with ``at``, interrupt at that progress."""

        def progress(stage: str, fraction: float) -> None:
            if at == stage:
                raise KeyboardInterrupt

        return run_stages(
            replace(self.settings, **changes),
            fit_again=again,
            progress=progress,
        )

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def work(self) -> Path:
        return self.path("bundle.work")

    @property
    def statuses(self) -> list[str]:
        return [entry.status for entry in Ledger().entries()]

    def evaluate(self, schema: Any, source: Any, candidate: Any, holdout: Any, **more: Any) -> None:
        self.calls.append(("evaluate", {"source": source, "holdout": holdout, **more}))
        tables = {"synthetic": {"sha256": file_digest(candidate.table)}}
        document = {"tables": tables, "gates": self.gates}
        self._write(more["output"], EVALUATION, AUDIT, document)

    def audit(self, schema: Any, *, real: Any, trained: Any, **more: Any) -> None:
        self.calls.append(("audit", {"real": real, "trained": trained, **more}))
        document: dict[str, Any] = {"findings": self.findings, "controls": self.controls}
        document["tables"] = None
        if real is not None:
            document["tables"] = {"synthetic": {"sha256": file_digest(real.candidate.table)}}
        self._write(more["output"], AUDIT, EVALUATION, document)

    def _write(self, folder: Path, name: str, other: str, document: dict[str, Any]) -> None:
        kept = beside(folder, other, None)
        documents = {name: document} | ({} if kept is None else {other: kept})
        write_results(folder, documents, {PAGE: "page"})


@pytest.fixture
def office(cohort: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    cohort.to_csv(tmp_path / "cohort.csv", index=False)
    told = Settings.of(
        schema=str(small_schema(tmp_path / "small.schema.yaml")),
        data=tmp_path / "cohort.csv",
        dataset="demo",
        epsilon=3.0,
        delta=1e-6,
        model="independent",
        output=tmp_path / "bundle",
        holdout=0.4,
        rows=200,
        canaries=60,
    )
    made = Office(tmp_path, told)
    monkeypatch.setattr(assessment_stages, "evaluate", made.evaluate)
    monkeypatch.setattr(assessment_stages, "audit_run", made.audit)
    monkeypatch.setattr(assessment_stages, "read_audits", lambda run: ())
    return made


def states(outcome: Outcome) -> dict[str, str]:
    return {one.stage: one.state for one in outcome.states}


# From end to end ------------------------------------------------------------------------------


def test_the_whole_way(
    tmp_path: Path, cohort: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real evaluation and audit; the attacks on tables have tests of their own."""
    monkeypatch.setattr(audit_verbs, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(audit_verbs, "attacked", lambda *_, **__: ({}, [PASSED]))
    monkeypatch.setattr(training_audit, "BACKGROUND", 200)
    cohort.to_csv(tmp_path / "cohort.csv", index=False)
    gone = cohort["patient_id"].unique()[:5].tolist()
    (tmp_path / "gone.txt").write_text("\n".join(gone))
    told = Settings.of(
        **{"schema": str(small_schema(tmp_path / "small.schema.yaml")), "dataset": "demo"},
        **{"data": tmp_path / "cohort.csv"},
        **{"epsilon": 3.0, "delta": 1e-6, "model": "independent", "output": tmp_path / "bundle"},
        **{"opt_out": tmp_path / "gone.txt", "canaries": 60},
        **{"publish_quality": 0.2, "about": {"publisher": "A hospital"}},
    )
    outcome = run_stages(told)
    assert states(outcome) == dict.fromkeys(NAMES, "done")
    bundle, work, internal = (tmp_path / f"bundle{end}" for end in ("", ".work", ".internal"))
    assert verify(bundle)
    files = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert {"audit.json", "quality.json", "CARD.md"} <= files
    assert "datapackage.json.sig" not in files  # somebody reads the internal page first
    manifest = json.loads((bundle / "datapackage.json").read_text())
    assert manifest["dpsynth"]["about"] == {"publisher": "A hospital"}

    certificate = json.loads((bundle / "privacy.json").read_text())
    assert certificate["population"] == 80  # 0.8 of the schema's 100
    assert certificate["epsilon"] == 3.0 and certificate["ledger"]["dataset"] == "demo"
    assert "held out" in (bundle / "schema.json").read_text()

    sides = [pd.read_csv(work / "split" / f"{name}.csv") for name in ("train", "holdout")]
    kept = set(pd.concat(sides)["patient_id"])
    assert kept == set(cohort["patient_id"]) - set(gone)
    assert any("5 keys were read" in note for note in outcome.notes)

    evaluation = json.loads((internal / EVALUATION).read_text())
    assert evaluation["tables"]["synthetic"]["sha256"] == file_digest(work / "synthetic.parquet")
    assert evaluation["tables"]["holdout"]["name"] == "holdout.csv"
    public_audit = json.loads((bundle / "audit.json").read_text())
    assert [one["canaries"] for one in public_audit["audits"]] == [60]

    for folder in (work, internal):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("settings.yaml", "stages.json", "fitted.schema.yaml", "synthetic.parquet"):
        assert stat.S_IMODE((work / name).stat().st_mode) == 0o600
    assert (work / ".gitignore").read_text() == "*\n"

    private_digests = [
        file_digest(path) for path in (tmp_path / "cohort.csv", *work.glob("split/*"))
    ]
    private_digests.append(file_digest(tmp_path / "gone.txt"))
    for path in (*bundle.rglob("*.*"), work / "settings.yaml"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(digest.encode() in content for digest in private_digests), path
    assert len(private_digests) == 4

    again = run_stages(told)
    assert states(again) == dict.fromkeys(NAMES, KEPT)
    assert (again.gates, again.attacks) == (outcome.gates, outcome.attacks)
    assert [entry.status for entry in Ledger().entries()] == ["charged"]
    assert len(Ledger().entries()[0].releases) == 1


# Interrupted and resumed ----------------------------------------------------------------------


@pytest.mark.parametrize("stage", NAMES)
def test_a_run_that_was_interrupted_before_a_stage_goes_on(office: Office, stage: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at=stage)
    place = NAMES.index(stage)
    marks = [one.state for one in planned(ResolvedSettings.of(office.settings))]
    assert marks == ["done"] * place + ["to do"] * (len(NAMES) - place)
    done = states(office.run())
    assert [done[name] for name in NAMES] == [KEPT] * place + ["done"] * (len(NAMES) - place)
    assert office.statuses == ["charged"]
    assert verify(office.path("bundle"))
    assert [name for name, _ in office.calls] == ["evaluate", "audit"]


@pytest.mark.parametrize(
    ("within", "stage"),
    [
        ("split: reading", "split"),
        ("sample: drawing", "sample"),
        ("release: bundle", "release"),
    ],
)
def test_a_stage_that_was_interrupted_is_made_again(
    office: Office, within: str, stage: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at=within)
    assert states(office.run())[stage] == "done"
    assert office.statuses == ["charged"]
    assert not list(office.folder.rglob(".tmp-*"))


def test_an_interrupted_fit_is_charged_and_not_made_again_unless_told(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        office.run(at="fit: reading")
    assert any("--fit-again" in note for note in stopped.value.__notes__)
    assert office.statuses == ["failed"]
    for _ in range(2):
        with pytest.raises(BudgetError) as refused:
            office.run()
        entry = Ledger().entries()[0]
        said = str(refused.value)
        assert entry.id[:12] in said and "'demo'" in said and "epsilon 3" in said
        assert "--fit-again" in said and refused.value.exit_code == 4
    assert office.statuses == ["failed"]
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: reading", again=True)
    with pytest.raises(BudgetError, match="2 fits"):
        office.run()
    assert states(office.run(again=True))["fit"] == "done"
    assert office.statuses == ["failed", "failed", "charged"]
    assert states(office.run(again=True))["fit"] == KEPT  # where there is a run, nothing is fitted
    assert len(office.statuses) == 3


def test_a_fit_whose_process_was_killed_counts(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could close its entry: it stays at `reading`."""
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.ledger.charging._fail", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            office.run(at="fit: histograms")
    assert office.statuses == ["reading"]
    with pytest.raises(BudgetError, match="--fit-again"):
        office.run()
    assert states(office.run(again=True))["fit"] == "done"


def test_a_run_that_was_written_when_its_fit_was_interrupted_is_put_aside(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry says failed, so that it could never be released."""
    save = Run.save

    def interrupted(self: Run, folder: str | Path) -> Path:
        save(self, folder)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            office.run()
    assert (office.work / "run").is_dir() and office.statuses == ["failed"]
    with pytest.raises(BudgetError, match="--fit-again"):
        office.run()
    office.run(again=True)
    assert (office.work / "run-interrupted-1" / "run.json").is_file()
    assert office.statuses == ["failed", "charged"]


def test_a_run_whose_entry_could_not_be_closed_is_kept(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", stop)
        with pytest.raises(KeyboardInterrupt):
            office.run()
    assert office.statuses == ["reading"]
    with pytest.warns(DpsynthWarning, match="dpsynth ledger close"):
        with pytest.raises(BudgetError, match="still open"):
            office.run()
    monkeypatch.setenv("DPSYNTH_USER", "somebody")
    close_entry(Ledger(), office.work / "run")
    assert states(office.run())["fit"] == KEPT
    assert office.statuses == ["charged"]


def test_a_fit_that_was_refused_before_it_read_needs_no_word(
    office: Office, tmp_path: Path
) -> None:
    strict = tmp_path / "strict.yaml"
    strict.write_text(
        'dpsynth_policy: 1\nname: Strict\ndelta: 1.0e-5\ncaps: {total: {epsilon: 1, basis: "b"}}\n'
    )
    with pytest.raises(BudgetError, match="Strict"):
        office.run(policy=strict)
    assert office.statuses == []
    assert states(office.run())["split"] == KEPT
    assert office.statuses == ["charged"]


def test_a_file_that_is_not_the_table_is_refused_before_the_charge(office: Office) -> None:
    office.path("other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="lacks"):
        office.run(data=office.path("other.csv"), holdout=0.0)
    assert office.statuses == []
    office.run(holdout=0.0)
    assert office.statuses == ["charged"]


def test_a_reservation_that_read_nothing_is_named(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise BudgetError("the ledger is lost")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "begin", stop)
        with pytest.raises(BudgetError, match="lost") as refused:
            office.run()
        assert not any("--fit-again" in note for note in refused.value.__notes__)
    first = Ledger().entries()[0]
    with pytest.warns(DpsynthWarning, match=f"read no row.*void {first.id[:12]}"):
        office.run()
    assert office.statuses == ["reserved", "charged"]


def test_another_ledger_is_not_charged_in_its_place(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: reading")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "new.sqlite"))
    with pytest.raises(InputError, match="there is no ledger at"):
        office.run(again=True)
    Ledger.create()
    with pytest.raises(BudgetError, match="is another ledger; set DPSYNTH_LEDGER"):
        office.run(again=True)
    assert Ledger().entries() == []


def test_an_older_copy_of_the_ledger_is_not_gone_on_with(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the work folder saw is not in it: the fit that was charged would be forgotten."""
    old = tmp_path / "old.sqlite"
    old.write_bytes(Path(Ledger().place).read_bytes())
    office.run()
    monkeypatch.setenv("DPSYNTH_LEDGER", str(old))
    with pytest.raises(BudgetError, match=r"not as .* saw it: it ends at record 0, but had"):
        office.run()


# What differs ---------------------------------------------------------------------------------


@pytest.fixture
def finished(office: Office) -> Office:
    office.run()
    return office


def test_a_stage_that_is_done_keeps_its_settings(finished: Office) -> None:
    gone = finished.path("gone.txt")
    gone.write_text("nobody\n")
    changed: list[tuple[dict[str, Any], str]] = [
        ({"epsilon": 2.0}, "epsilon was 3.0 and is 2.0"),
        ({"delta": 1e-7}, "delta was"),
        ({"dataset": "other"}, "dataset was 'demo' and is 'other'"),
        ({"model": "mixture"}, "model was 'independent' and is 'mixture'"),
        ({"holdout": 0.3}, "holdout was 0.4 and is 0.3"),
        ({"publish_quality": 0.1}, "publish_quality was nothing and is 0.1"),
        ({"purpose": "other"}, "purpose was '' and is 'other'"),
        ({"rows": 100}, "rows was 200 and is 100"),
        ({"seed": 5}, "seed was"),
        ({"canaries": 70}, "canaries was 60 and is 70"),
        ({"attacks": False}, "attacks was true and is false"),
        ({"evaluate_seed": 1}, "evaluate_seed was 0 and is 1"),
        ({"about": About(title="Other")}, "about.title was nothing and is 'Other'"),
        ({"opt_out": gone}, "opt_out was left out"),
    ]
    for changes, said in changed:
        with pytest.raises(InputError) as refused:
            finished.run(**changes)
        assert said in str(refused.value) and "other settings" in str(refused.value)
    assert states(finished.run())["release"] == KEPT
    assert finished.statuses == ["charged"]


def test_words_can_be_changed_at_no_charge(finished: Office, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at no charge"):
        finished.run(about=About(title="Other"))
    finished.path("bundle").rename(tmp_path / "old")
    done = states(finished.run(about=About(title="Other")))
    assert (done["fit"], done["audit"], done["release"]) == (KEPT, KEPT, "done")
    manifest = read_document(finished.path("bundle/datapackage.json"))
    assert manifest["title"] == "Other" and finished.statuses == ["charged"]


@pytest.mark.parametrize("stage", ["split", "sample", "evaluate", "release"])
def test_an_interruption_says_what_it_left(office: Office, stage: str) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        within = {"split": "split: reading", "sample": "sample: drawing"}
        if stage == "evaluate":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(assessment_stages, "evaluate", _interrupt)
                office.run()
        office.run(at=within.get(stage, "release: bundle"))
    assert any(f"in stage {stage}" in note for note in stopped.value.__notes__)


def test_what_a_killed_process_left_is_removed(office: Office) -> None:
    """Real rows among it; also where it was killed before the work folder was one."""
    left = [
        office.work / ".tmp-01234567-split",
        office.folder / ".tmp-01234567-bundle",
        office.folder / ".tmp-89abcdef-bundle.internal",
    ]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "train.csv").write_text("patient_id\n")
    (office.work / ".tmp-01234567-.gitignore").write_text("*")
    other = office.folder / ".tmp-01234567-other"
    other.write_text("of another process")
    office.run()
    assert not any(folder.exists() for folder in left) and other.exists()
    assert not list(office.work.glob(".tmp-*"))


def test_a_budget_that_was_reserved_and_never_noted_is_said(office: Office) -> None:
    """As after a kill between the entry in the ledger and its note in the work folder."""
    told = office.settings
    prepared = ResolvedSettings.of(told).prepared
    Ledger().reserve(
        "demo",
        purpose="",
        tier=None,
        policy=None,
        plan=prepared.plan.to_dict(),
        epsilon=told.epsilon,
        delta=told.delta,
        model="independent",
        schema_hash="a" * 64,
        unit=Unit.of(ResolvedSettings.of(told).fitted),
        allow_refuse=False,
        population=80,
    )
    with pytest.warns(DpsynthWarning, match="dpsynth ledger void"):
        office.run()


def test_keys_that_nobody_has_are_said_at_the_end(office: Office, cohort: pd.DataFrame) -> None:
    gone = [*cohort["patient_id"].unique()[:2], "p-nobody"]
    office.path("gone.txt").write_text("\n".join(gone))
    with pytest.warns(DpsynthWarning, match="2 of 3 keys"):
        outcome = office.run(opt_out=office.path("gone.txt"))
    assert any("2 of 3 keys" in note and "without a row: 1." in note for note in outcome.notes)


def test_a_setting_may_change_until_a_stage_has_taken_it(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="audit", seed=4)
    office.run(canaries=70, attacks=False, seed=4, about=About(title="New"))
    _, asked = office.calls[-1]
    assert asked["trained"].canaries == 70 and asked["real"] is None


def test_the_seed_that_was_drawn_is_kept(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="release")
    first = ResolvedSettings.of(office.settings).settings.seed
    table = office.work.joinpath("synthetic.parquet").read_bytes()
    assert states(office.run())["sample"] == KEPT
    assert ResolvedSettings.of(office.settings).settings.seed == first
    kept = Settings.load(office.work / "settings.yaml")
    assert kept.seed == first and kept.rows == 200 and kept.canaries == 60
    for change in (Path.unlink, lambda path: path.write_bytes(table + b"x")):
        change(office.work / "synthetic.parquet")
        done = states(office.run())  # the same run, rows and seed: the same table
        assert (done["sample"], done["evaluate"], done["release"]) == ("done", KEPT, KEPT)
        assert office.work.joinpath("synthetic.parquet").read_bytes() == table
    assert [name for name, _ in office.calls] == ["evaluate", "audit"]
    assert office.run().order.settings.seed == first


def test_other_data_under_the_same_name_are_noticed(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="sample")
    data = office.path("cohort.csv")
    data.write_text(data.read_text().replace("female", "male", 1))
    with pytest.raises(InputError, match="the file for data has another content") as refused:
        office.run()
    assert "female" not in str(refused.value) and file_digest(data) not in str(refused.value)


@pytest.mark.parametrize("first", [False, True])
def test_an_opt_out_list_cannot_come_or_go_after_the_fit(
    office: Office, cohort: pd.DataFrame, first: bool
) -> None:
    """Also where nobody is held out, and the split is needed for the list alone."""
    gone = office.path("gone.txt")
    gone.write_text("\n".join(cohort["patient_id"].unique()[:3]))
    lists = [gone if first else None, None if first else gone]
    with pytest.raises(KeyboardInterrupt):
        office.run(at="sample", holdout=0.0, opt_out=lists[0])
    with pytest.raises(InputError, match="opt_out was"):
        office.run(holdout=0.0, opt_out=lists[1])
    assert not office.path("bundle").exists() and office.statuses == ["charged"]
    office.run(holdout=0.0, opt_out=lists[0])


def test_a_list_on_which_nobody_is_stops_before_the_charge(office: Office) -> None:
    office.path("gone.txt").write_text("somebody else\n")
    with pytest.raises(InputError, match="no key on the opt-out list"):
        office.run(opt_out=office.path("gone.txt"))
    assert not Ledger().entries()


def test_a_split_that_a_fit_was_made_from_is_not_dealt_again(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="sample")
    office.work.joinpath("split").rename(office.path("aside"))
    with pytest.raises(InputError, match="the same holdout cannot be drawn again"):
        office.run()
    office.path("aside").rename(office.work / "split")
    assert states(office.run())["fit"] == KEPT


def test_the_run_of_another_work_folder_is_refused(office: Office) -> None:
    other = {"output": office.path("other")}
    for changes in ({}, other):
        with pytest.raises(KeyboardInterrupt):
            office.run(at="sample", **changes)
    run = office.work / "run"
    run.rename(office.path("aside"))
    office.path("other.work").joinpath("run").rename(run)
    with pytest.raises(ArtifactError, match="is not the run that was fitted here"):
        office.run()


@pytest.mark.parametrize("file", ["split/train.csv", "split/holdout.csv"])
def test_a_side_of_the_split_that_was_changed_is_noticed(office: Office, file: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit")
    path = office.work / file
    path.write_text(path.read_text().replace("female", "male", 1))
    with pytest.raises(InputError, match="was changed or removed"):
        office.run()


def test_a_run_that_is_not_the_one_that_was_ordered_is_refused(
    office: Office, tmp_path: Path
) -> None:
    office.run(output=tmp_path / "other", epsilon=1.0)
    with pytest.raises(KeyboardInterrupt):
        office.run(at="sample")
    (office.work / "run").rename(tmp_path / "aside")
    (tmp_path / "other.work" / "run").rename(office.work / "run")
    with pytest.raises(ArtifactError, match="does not match the settings"):
        office.run()


# Places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["bundle", "bundle.internal", "bundle.work"])
def test_what_is_in_the_way_is_refused_before_anything_is_spent(office: Office, place: str) -> None:
    office.path(place).mkdir()
    (office.path(place) / "thesis.txt").write_text("years")
    with pytest.raises(InputError, match="exists"):
        office.run()
    assert office.statuses == []
    assert [path.name for path in office.path(place).iterdir()] == ["thesis.txt"]


def test_a_bundle_whose_work_folder_is_gone_is_left_alone(finished: Office) -> None:
    finished.work.rename(finished.path("gone"))
    finished.path("bundle.internal").rename(finished.path("gone.internal"))
    with pytest.raises(InputError, match="was not written from"):
        finished.run()
    assert finished.statuses == ["charged"]


def test_a_bundle_that_was_changed_is_noticed(finished: Office) -> None:
    table = finished.path("bundle") / "data" / "synthetic.csv"
    table.write_text(table.read_text() + "\n")
    with pytest.raises(VerificationError):
        finished.run()


def test_the_bundle_of_another_run_is_refused(finished: Office, tmp_path: Path) -> None:
    finished.run(output=tmp_path / "other")
    finished.path("bundle").rename(tmp_path / "first")
    (tmp_path / "other").rename(finished.path("bundle"))
    with pytest.raises(InputError, match="the bundle of another run"):
        finished.run()


def test_a_bundle_may_be_signed_between(finished: Office, tmp_path: Path) -> None:
    private, public = create_key(tmp_path / "office.key", None)
    sign(finished.path("bundle"), private)
    assert set(states(finished.run()).values()) == {KEPT}
    assert verify(finished.path("bundle"), key=public)


def test_folders_do_not_lie_in_one_another(office: Office) -> None:
    for changes in (
        {"work": office.path("bundle") / "work"},
        {"internal": office.path("bundle")},
        {"output": office.path("x"), "work": office.path("w"), "internal": office.path("w/in")},
    ):
        with pytest.raises(InputError, match="three separate folders"):
            office.run(**changes)


def test_two_at_once_are_refused(office: Office) -> None:
    seen: list[str] = []

    def second(stage: str, fraction: float) -> None:
        if stage == "sample":
            with pytest.raises(InputError, match="another process is working"):
                office.run()
            seen.append(stage)

    run_stages(office.settings, progress=second)
    assert seen == ["sample"] and office.statuses == ["charged"]


# Without a holdout ----------------------------------------------------------------------------


def test_without_a_holdout_the_source_is_fitted_and_only_the_training_attacked(
    office: Office,
) -> None:
    outcome = office.run(holdout=0.0)
    assert states(outcome)["split"] == "not needed" and not (office.work / "split").exists()
    (_, evaluated), (_, audited) = office.calls
    assert evaluated["source"] == office.settings.data and evaluated["holdout"] is None
    assert audited["real"] is None and audited["trained"].canaries == 60
    certificate = json.loads((office.path("bundle") / "privacy.json").read_text())
    assert certificate["population"] == 100


def test_without_a_holdout_the_split_only_leaves_out(office: Office, cohort: pd.DataFrame) -> None:
    gone = cohort["patient_id"].unique()[:3]
    office.path("gone.csv").write_text("\n".join(["patient_id", *gone]))
    outcome = office.run(holdout=0.0, opt_out=office.path("gone.csv"))
    assert states(outcome)["split"] == "done"
    train = pd.read_csv(office.work / "split" / "train.csv")
    assert set(train["patient_id"]) == set(cohort["patient_id"]) - set(gone)
    assert office.calls[0][1]["source"] == office.work / "split" / "train.csv"
    assert not (office.work / "split" / "holdout.csv").exists()


# What is found --------------------------------------------------------------------------------


def test_internal_verdicts_do_not_decide_but_are_told(office: Office) -> None:
    office.gates += [{"key": "c2st", "passed": False}, {"key": "tvd1", "passed": True}]
    office.gates += [{"key": "cox", "passed": None}]
    office.findings += [{"key": "membership:density", "found": True}, {"key": "x", "found": False}]
    office.controls += [{"key": "copied", "passed": False}]
    for _ in range(2):  # the same command gives the same answer
        outcome = office.run()
        assert outcome.gates == ("c2st",) and outcome.attacks == ("membership:density",)
        with pytest.raises(GateError) as refused:
            outcome.require_quiet()
        said = str(refused.value)
        assert "1 internal gate failed (c2st)" in said and "1 attack succeeded" in said
        assert "1 control of the audit failed (copied)" in said
        assert "was still written" in said and "internal.html before you publish" in said
    bundle = b"".join(p.read_bytes() for p in office.path("bundle").rglob("*") if p.is_file())
    assert b"density" not in bundle


def test_a_quiet_run_is_quiet(finished: Office) -> None:
    finished.run().require_quiet()


def test_a_public_gate_stops_the_bundle(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise GateError("a public gate")

    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.workflow.release_stage.release", stop)
        with pytest.raises(GateError, match="a public gate") as refused:
            office.run()
    assert any("no bundle was written" in note for note in refused.value.__notes__)
    assert not office.path("bundle").exists() and office.path("bundle.internal").exists()
    office.run()
    assert office.path("bundle").exists() and office.statuses == ["charged"]


def test_a_gate_can_be_overridden_by_name(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    excuse, seen = Override("the ward treats women", "Dr. Miller"), []
    release = release_stage.release

    def gated(*words: Any, override: Override | None, **more: Any) -> Path:
        if override is None:
            raise GateError("it stops")
        seen.append(override)
        return release(*words, **more)

    monkeypatch.setattr(release_stage, "release", gated)
    with pytest.raises(GateError, match="it stops"):
        office.run()
    done = states(run_stages(office.settings, override=excuse))
    assert seen == [excuse] and done["audit"] == KEPT and done["release"] == "done"


def test_an_override_of_a_bundle_that_has_none_is_refused(finished: Office) -> None:
    excuse = Override("the ward treats women", "Dr. Miller")
    with pytest.raises(InputError, match="without this override"):
        run_stages(finished.settings, override=excuse)
    certificate = Certificate.from_dict(read_document(finished.path("bundle/privacy.json")))
    for reason, refused in (("the ward treats women", False), ("no reason", True)):
        overridden = Override(reason, "Dr. Miller").of(["audit"])
        document = replace(certificate, overrides=overridden).to_dict()
        finished.path("bundle/privacy.json").write_bytes(written(document))
        with pytest.raises(InputError) if refused else nullcontext():
            release_stage._require_written(excuse, finished.path("bundle"))


def test_a_policy_that_wants_signatures_lets_it_go_on_when_they_are_there(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careful = tmp_path / "careful.yaml"
    careful.write_text(
        "dpsynth_policy: 1\nname: Careful\ndelta: 1.0e-5\nsign_off: {people: 1}\n"
        'caps: {total: {epsilon: 9, basis: "b"}}\n'
    )
    with pytest.raises(BudgetError, match="1 more person to sign") as refused:
        office.run(policy=careful)
    assert any("run the same command again to continue" in note for note in refused.value.__notes__)
    monkeypatch.setenv("DPSYNTH_USER", "somebody else")
    sign_entry(Ledger(), Ledger().entries()[0].id)
    done = states(office.run(policy=careful))
    assert (done["audit"], done["release"]) == (KEPT, "done")
    assert office.statuses == ["charged"]


def test_public_figures_are_paid_before_anything_else_is_known(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = assessment_stages.publish_quality

    def noted(*words: Any, **more: Any) -> Any:
        office.calls.append(("publish", {"data": words[2]}))
        return publish(*words, **more)

    monkeypatch.setattr(assessment_stages, "publish_quality", noted)
    with pytest.raises(KeyboardInterrupt):  # between the figures and the evaluation
        with monkeypatch.context() as patch:
            patch.setattr(assessment_stages, "evaluate", _interrupt)
            office.run(publish_quality=0.2)
    office.run(publish_quality=0.2)
    assert [name for name, _ in office.calls] == ["publish", "evaluate", "audit"]
    assert office.calls[0][1]["data"] == office.work / "split" / "holdout.csv"
    assert (office.path("bundle") / "quality.json").is_file()


def test_a_share_that_was_spent_in_vain_is_said(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.assessment.published_quality.ask", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            office.run(publish_quality=0.2)
    with pytest.raises(GateError, match="quality figures that the budget paid for"):
        office.run(publish_quality=0.2)
    assert not office.path("bundle").exists()
    order = ResolvedSettings.of(replace(office.settings, publish_quality=0.2))
    outcome = run_stages(order, override=Override("a power cut", "A. Person"))
    assert not (office.path("bundle") / "quality.json").exists()
    privacy = read_document(outcome.order.bundle / "privacy.json")
    assert [one["gate"] for one in privacy["overrides"]] == ["quality"]


def _interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
