"""P30: a file of a bundle that is there or not as some patient's cells have it: one exact bit.

Sources that differ by one hostile patient are measured, evaluated and attacked, with the answers of
the mechanism stubbed equal; what is public must be of one shape: the same files, the same keys, the
same figures. The broken twin is the code as it was, which stopped at a refused cell.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import attack_audit as audit_verbs
from dpsynth.assessment import published_quality
from dpsynth.assessment.published_quality import publish_quality
from dpsynth.bundle.verifier import verify
from dpsynth.bundle.writer import release
from dpsynth.certificate.override import Override
from dpsynth.encoding.cohort import read_cohort
from dpsynth.errors import GateError, InputError, RefusedCellError, TableError
from dpsynth.eval.attacks.controls import Control
from dpsynth.ledger.ledger import Ledger
from dpsynth.privacy.noisy_queries import Answer
from dpsynth.schema.schema import Schema
from dpsynth.tables.simulated import simulate
from dpsynth.workflow import assessment_stages
from dpsynth.workflow.runner import Outcome, run_stages
from dpsynth.workflow.settings import Settings

from ..support.small_office import small_office

pytestmark = pytest.mark.filterwarnings("ignore:a new ledger was created")
KEPT = ("patient_id", "sex", "age", "smoker", "ward", "readmitted_30d")
PATIENT = "hostile"


def strict() -> Schema:
    """A few columns, some of which refuse what they do not declare."""
    document = Schema.load("demo").to_dict()
    document["fields"] = [one for one in document["fields"] if one["name"] in KEPT]
    for one in document["fields"]:
        if one["name"] == "age":
            one.setdefault("dpsynth", {})["on_bad"] = "refuse"
        if one["name"] == "ward":
            one.setdefault("dpsynth", {})["on_unknown"] = "refuse"
    del document["dpsynth"]["rules"]
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 300
    return Schema.from_dict(document)


STRICT = strict()


def rows(**cells: Any) -> pd.DataFrame:
    ordinary = {"sex": "female", "age": "50", "smoker": "never", "ward": "obstetrics"}
    ordinary |= {"readmitted_30d": "false", "patient_id": PATIENT}
    return pd.DataFrame([ordinary | cells])[list(KEPT)]


HOSTILE: dict[str, pd.DataFrame] = {
    "a refused number": rows(age="none of your business"),
    "a refused category": rows(ward="moon"),
    "all missing": rows(**{name: "" for name in KEPT if name != "patient_id"}),
    "nothing but a key": rows(**{name: None for name in KEPT if name != "patient_id"}),
    "out of bounds": rows(age="1e300"),
    "many rows": pd.concat([rows(age=str(20 + one % 60)) for one in range(500)]),
    "some refused": pd.concat([rows(), rows(age="x"), rows()]),
    "no key": rows(patient_id=""),
}
"""What one patient may bring; all else is as it was without."""


def others(units: int = 40) -> pd.DataFrame:
    table = simulate(units, seed=1)[list(KEPT)].astype(str)
    return table.replace({"nan": "", "<NA>": "", "True": "true", "False": "false"})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """A run that set a share aside, a table of it and the ledger: copies of one, in each folder."""
    base = tmp_path_factory.mktemp("fitted")
    small_office(base, others(60), STRICT, rows=300, seed=1, publish_quality=0.1)

    def made(folder: Path) -> Path:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        return folder

    return made


def same_answers(*words: Any) -> tuple[Answer, ...]:
    """Answer as if there was one real row in each cell, whoever is there."""
    cohort, sizes, questions, parts, event, _ = words
    assert cohort.codes.shape[1:] == (STRICT.unit.max_rows, len(sizes))
    found = [Answer(np.array([300]), event.sigma_for(parts[0]))]
    codes = np.zeros((1, len(sizes)), dtype=np.uint16)
    for question, part in zip(questions, parts[1:], strict=True):
        found.append(Answer(np.ones_like(question.exact(codes, 300.0)), event.sigma_for(part)))
    return tuple(found)


def bundle_of(folder: Path, source: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Measure on this source, and release."""
    source.to_csv(folder / "holdout.csv", index=False)
    ledger = Ledger(folder / "ledger.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr(published_quality, "ask", same_answers)
        publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
    release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    verify(folder / "bundle")
    return folder / "bundle"


def shape(value: Any) -> Any:
    """Keys and types of a document; lists by their lengths."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


def public_shape(bundle: Path) -> dict[str, Any]:
    """Every file of a bundle, with its keys where it has some."""
    return {
        path.relative_to(bundle).as_posix(): shape(json.loads(path.read_text()))
        if path.suffix == ".json"
        else None
        for path in sorted(bundle.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_patient_of_the_holdout_changes_no_file_and_no_key(
    kind: str, fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = bundle_of(fitted(tmp_path / "without"), others(), monkeypatch)
    source = pd.concat([others(), HOSTILE[kind]])
    within = bundle_of(fitted(tmp_path / "within"), source, monkeypatch)
    assert public_shape(within) == public_shape(without)
    assert (within / "quality.json").read_bytes() == (without / "quality.json").read_bytes()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_patient_alone_is_measured_like_nobody(
    kind: str, fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The neighbour of a table of one patient is a table without rows."""
    alone = bundle_of(fitted(tmp_path / "alone"), HOSTILE[kind], monkeypatch)
    nobody = bundle_of(fitted(tmp_path / "nobody"), HOSTILE[kind][:0], monkeypatch)
    assert public_shape(alone) == public_shape(nobody)


def test_a_table_without_rows_is_really_asked(
    fitted: Callable[[Path], Path], tmp_path: Path
) -> None:
    """With the mechanism as it is: nobody, and then one patient whose every cell is refused."""
    for number, source in enumerate((others()[:0], HOSTILE["a refused number"])):
        folder = fitted(tmp_path / str(number))
        source.to_csv(folder / "holdout.csv", index=False)
        ledger = Ledger(folder / "ledger.sqlite")
        quality = publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
        assert len(quality.columns) == len(KEPT) - 1


@pytest.mark.parametrize("kind", ["a refused number", "a refused category", "some refused"])
def test_the_broken_twin_is_seen(
    kind: str, fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: nothing is read before the charge, a refused cell stops, and release goes on."""
    monkeypatch.setattr(published_quality, "_read_through", lambda *_: None)
    monkeypatch.setattr(published_quality, "read_cohort", lambda *words: read_cohort(*words[:5]))
    folder = fitted(tmp_path)
    with pytest.raises(RefusedCellError) as stopped:
        bundle_of(folder, pd.concat([others(), HOSTILE[kind]]), monkeypatch)
    assert any("is spent" in note for note in stopped.value.__notes__)
    ledger = Ledger(folder / "ledger.sqlite")
    monkeypatch.setattr("dpsynth.bundle.gates.public_gates.reserved", lambda events: None)
    release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    assert not (folder / "bundle" / "quality.json").exists()  # the bit, in a bundle that verifies


def test_the_others_are_coded_as_without_the_hostile_one() -> None:
    """Rows that are left out are left out by their own cells."""
    from dpsynth.encoding.codec import Codec
    from dpsynth.privacy.entropy import SeededEntropy
    from dpsynth.tables.table import open_table

    codec = Codec(STRICT)

    def units(frame: pd.DataFrame) -> list[bytes]:
        table = open_table(frame, STRICT)
        cohort = read_cohort(table, codec, STRICT, SeededEntropy(1), None, "drop")
        found = [np.sort(c[m], axis=0) for c, m in zip(cohort.codes, cohort.mask, strict=True)]
        return sorted(one.tobytes() for one in found)

    few = others().groupby("patient_id").head(STRICT.unit.max_rows)
    without = units(few)
    assert units(pd.concat([HOSTILE["a refused number"], few])) == without
    assert len(units(pd.concat([few, HOSTILE["some refused"]]))) == len(without) + 1


# Nothing but a person lets a bundle go without the figures ----------------------------------


@pytest.mark.parametrize("text", ['"open', "a,b,c,d,e,f,g,h\n", "\0"])
def test_a_damaged_table_spends_nothing_and_no_bundle_comes_of_it(
    text: str, fitted: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = fitted(tmp_path)
    damaged = folder / "holdout.csv"
    others().to_csv(damaged, index=False)
    damaged.write_text(damaged.read_text() + text)
    ledger = Ledger(folder / "ledger.sqlite")
    with pytest.raises(TableError):
        publish_quality(folder / "run", folder / "out.parquet", damaged, ledger=ledger)
    assert ledger.state().entries[-1].measured is None
    with pytest.raises(GateError, match="quality figures that the budget paid for"):
        release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    assert not (folder / "bundle").exists()


def test_figures_that_are_lost_are_left_out_by_name_only(
    fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fitted(tmp_path)
    ledger = Ledger(folder / "ledger.sqlite")

    def dies(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(published_quality, "ask", dies)
    others().to_csv(folder / "holdout.csv", index=False)
    with pytest.raises(KeyboardInterrupt):
        publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
    words: dict[str, Any] = {"table": folder / "out.parquet", "ledger": ledger}
    with pytest.raises(GateError, match="--override REASON --by NAME"):
        release(folder / "run", folder / "bundle", **words)
    excuse = Override("a power cut while it was measured", "A. Person")
    release(folder / "run", folder / "bundle", override=excuse, **words)
    verify(folder / "bundle")
    privacy = json.loads((folder / "bundle" / "privacy.json").read_text())
    assert [one["gate"] for one in privacy["overrides"]] == ["quality"]


# A whole run --------------------------------------------------------------------------------


def whole_run(folder: Path, source: pd.DataFrame, patch: pytest.MonkeyPatch) -> Outcome:
    """Go from a table to a bundle; who is held out is decided by name."""
    folder.mkdir()
    patch.setenv("DPSYNTH_LEDGER", str(folder / "ledger.sqlite"))
    patch.setattr(published_quality, "ask", same_answers)
    Ledger.create(folder / "ledger.sqlite")
    source.to_csv(folder / "data.csv", index=False)
    STRICT.save(folder / "schema.yaml")
    settings = Settings.of(
        schema=str(folder / "schema.yaml"),
        data=str(folder / "data.csv"),
        dataset="demo",
        epsilon=3.0,
        delta=1e-6,
        model="independent",
        output=str(folder / "bundle"),
        canaries=50,
        seed=1,
        publish_quality=0.1,
    )
    return run_stages(settings)


@pytest.fixture
def dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hostile patient is held out, and the controls are not played: they take minutes."""
    from dpsynth.workflow import table_stages

    def split(data: Any, schema: Any, folder: Path, **_: Any) -> tuple[Path, Path]:
        table = pd.read_csv(data, dtype=str, keep_default_na=False)
        chosen = table["patient_id"].isin([PATIENT, *sorted(set(table["patient_id"]))[:8]])
        folder.mkdir()
        for name, side in (("train.csv", table[~chosen]), ("holdout.csv", table[chosen])):
            side.to_csv(folder / name, index=False)
        return folder / "train.csv", folder / "holdout.csv"

    monkeypatch.setattr(table_stages, "split_file", split)
    control = Control("noisy", "A fit", "positive", "training:canaries", True, "seen")
    monkeypatch.setattr(audit_verbs, "fitted_controls", lambda *_: [control])


@pytest.mark.parametrize("kind", ["a refused number", "all missing", "out of bounds"])
def test_a_run_gives_the_same_bundle_whoever_is_held_out(
    kind: str, dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = whole_run(tmp_path / "without", others(), monkeypatch)
    source = pd.concat([others(), HOSTILE[kind]])
    within = whole_run(tmp_path / "within", source, monkeypatch)
    assert public_shape(within.order.bundle) == public_shape(without.order.bundle)
    assert "audit.json" in public_shape(within.order.bundle)


def test_too_few_people_to_attack_are_told_inside_and_change_nothing_outside(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = whole_run(tmp_path / "few", others(), monkeypatch)
    assert any("too few people to attack" in one for one in outcome.not_done)
    with pytest.raises(GateError, match="not done: .*too few people"):
        outcome.require_quiet()
    page = (outcome.order.internal / "internal.html").read_text()
    assert "The table was not attacked" in page
    again = run_stages(outcome.order)  # and it is not tried again and again
    assert {one.state for one in again.states} <= {"kept", "not needed"}
    assert len(json.loads((outcome.order.run / "audit.json").read_text())["audits"]) == 1


def test_the_twin_that_stops_at_exact_counts_is_seen(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: the audit's InputError went out, and there was no bundle."""
    audit_run = audit_verbs.audit_run

    def strictly(*words: Any, **more: Any) -> Any:
        return audit_run(*words, **(more | {"tolerant": False}))

    monkeypatch.setattr(assessment_stages, "audit_run", strictly)
    with pytest.raises(InputError, match="too few people"):
        whole_run(tmp_path / "few", others(), monkeypatch)
    assert not (tmp_path / "few" / "bundle").exists()


def test_unexpected_errors_over_real_rows_are_told_without_their_text(
    dealt: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quotes(*_: Any, **__: Any) -> Any:
        raise ValueError("a private cell")

    monkeypatch.setattr("dpsynth.assessment.evaluation.evaluation", quotes)
    monkeypatch.setattr("dpsynth.assessment.attack_audit.attacked", quotes)
    outcome = whole_run(tmp_path / "run", others(), monkeypatch)
    assert len(outcome.not_done) == 2
    assert all("unexpected ValueError" in one for one in outcome.not_done)
    page = (outcome.order.internal / "internal.html").read_text()
    assert "unexpected ValueError" in page and "a private cell" not in page
    assert (outcome.order.bundle / "quality.json").is_file()
