"""What differs in a later run: settings, data, splits and runs of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth import fit
from dpsynth._util.strict_json import file_digest, read_document
from dpsynth.bundle.format import About
from dpsynth.errors import (
    ArtifactError,
    DpsynthWarning,
    InputError,
)
from dpsynth.ledger import Ledger, Store
from dpsynth.privacy import Unit
from dpsynth.schema import Schema
from dpsynth.synthesis import charged_fit
from dpsynth.workflow import ResolvedSettings, RunState, Settings, run_stages, subjects
from dpsynth.workflow.runner import KEPT

from ..support.reservations import reserve
from ..support.workflow_office import Office, interrupt, states


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
    for changes, message in changed:
        with pytest.raises(InputError) as refused:
            finished.run(**changes)
        assert message in str(refused.value) and "other settings" in str(refused.value)
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
                patch.setattr(subjects, "evaluate", interrupt)
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
    settings = office.settings
    prepared = ResolvedSettings.of(settings).prepared
    Ledger().reserve(
        "demo",
        purpose="",
        tier=None,
        policy=None,
        plan=prepared.plan.to_dict(),
        epsilon=settings.epsilon,
        delta=settings.delta,
        model="independent",
        schema_hash="a" * 64,
        unit=Unit.of(ResolvedSettings.of(settings).fitted),
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


@pytest.mark.long
def test_the_seed_that_was_drawn_is_kept(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="release")
    first = ResolvedSettings.of(office.settings).settings.seed
    table = office.work.joinpath("synthetic.parquet").read_bytes()
    assert states(office.run())["sample"] == KEPT
    assert ResolvedSettings.of(office.settings).settings.seed == first
    run = Settings.load(office.work / "settings.yaml")
    assert run.seed == first and run.rows == 200 and run.canaries == 60
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


@pytest.mark.parametrize("side", ["train", "holdout"])
@pytest.mark.parametrize("after", ["split", "fit", "sample"])
def test_a_side_that_was_changed_stops_the_next_stage(
    office: Office, side: str, after: str
) -> None:
    """Within one run, too: a file that another process writes to is not what was dealt."""

    def change(state: RunState) -> None:
        if state.stage == after:
            path = office.work / "split" / f"{side}.csv"
            path.write_bytes(path.read_bytes() + b"\n")

    with pytest.raises(InputError, match=rf"{side}\.csv was changed or removed"):
        run_stages(office.settings, tell=change)
    assert len(Ledger().entries()) == (after != "split")  # nothing was charged for other rows


def test_a_fit_of_the_original_file_is_recognised(office: Office) -> None:
    """A run fitted its split; who then fits the file itself under another name is told."""
    office.run()
    schema = Schema.load(office.settings.schema)
    with pytest.warns(DpsynthWarning, match="the same data were fitted as dataset 'demo'"):
        fit(office.settings.data, schema, epsilon=1, delta=1e-6, dataset="other", model="mixture")
    ledger = Ledger()
    first, second = ledger.entries()  # and later, whoever looks at the ledger
    shown = {first.id: ("other",), second.id: ("demo",)}
    assert ledger.twins(ledger.state()) == shown


@pytest.mark.parametrize("last", [True, False], ids=["fitted first", "fitted last"])
def test_a_fit_of_several_sources_is_recognised_by_each(
    last: bool, monkeypatch: pytest.MonkeyPatch, office: Office
) -> None:
    office.run()
    ledger = Ledger()
    [entry] = ledger.entries()
    with ledger.store.reading() as connection:
        digests = sorted(ledger.store.sources(connection)[entry.id])
    assert len(digests) == 2  # of the file, and of the part that was split off
    other = reserve(ledger, "other")
    assert ledger.saw(other.id, digests[last]) == ("demo",)
    twins = {entry.id: ("other",), other.id: ("demo",)}
    assert ledger.twins(ledger.state()) == twins
    sources = Store.sources

    def one_each(self: Store, connection: Any) -> dict[str, set[str]]:
        """Broken twin: of each entry, one digest is kept."""
        return {name: {max(own)} for name, own in sources(self, connection).items()}

    monkeypatch.setattr(Store, "sources", one_each)
    assert (ledger.twins(ledger.state()) == twins) == last


@pytest.mark.parametrize("stop", [KeyboardInterrupt, InputError("the file is gone")])
def test_a_stop_while_the_original_is_recognised_closes_the_entry(
    stop: Any, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has been read by then, so the entry counts, and nobody is told that it may be voided."""
    compare = charged_fit.compare_source

    def stopping(book: Any, entry: Any, source: Any) -> Any:
        if str(source) == str(office.settings.data):
            raise stop
        return compare(book, entry, source)

    monkeypatch.setattr(charged_fit, "compare_source", stopping)
    with pytest.raises((KeyboardInterrupt, InputError)) as stopped:
        office.run()
    notes = " ".join(stopped.value.__notes__)
    assert "rows may have been read" in notes and "--fit-again" in notes
    assert "no row was read" not in notes
    [entry] = Ledger().entries()
    assert (entry.status, entry.voidable) == ("failed", False)
