"""Evaluate, compare and publish, end to end: what is written where, and what is refused."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import Candidate, evaluate, publish_quality
from dpsynth.assessment import evaluation as verbs
from dpsynth.bundle import release, verify
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.eval.core import Tables
from dpsynth.eval.evaluation import evaluation
from dpsynth.eval.gates import gates
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.tables import simulate

from ..support import related_columns
from ..support.evaluated_office import DEMO, Office, call
from ..support.related_columns import ADMITTED, DISCHARGED
from ..support.short_judges import shorten_judges
from ..support.some_cases import some_of


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        shorten_judges(patch)
        yield


@pytest.fixture(scope="module")
def document(shared_office: Office) -> dict[str, Any]:
    candidate = Candidate.of_run(shared_office.folder / "run", shared_office.folder / "out.parquet")
    return evaluate(
        DEMO,
        shared_office.folder / "source.csv",
        candidate,
        shared_office.folder / "holdout.csv",
        output=shared_office.folder / "internal",
    )


@pytest.mark.long
def test_the_document_says_which_tables_were_judged(
    shared_office: Office, document: dict[str, Any]
) -> None:
    assert document["internal"] is True
    assert document["schema"]["sha256"] == DEMO.hash()
    samples = json.loads((shared_office.folder / "run" / "samples.json").read_text())["samples"]
    assert document["tables"]["synthetic"]["sha256"] == samples[0]["tables"]["synthetic"]
    assert document["tables"]["holdout"]["units"] == 150
    assert document["run"]["model"] == "mixture" and document["run"]["epsilon"] == 20.0


def test_the_schema_is_named_as_the_run_names_it_where_columns_are_coded_otherwise() -> None:
    """An interval is coded as its gap; the page tells by the schema what is of one table."""
    published = Schema.from_dict(related_columns.document(DISCHARGED, ADMITTED))
    codec, rng = Codec(published), np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 80) for size in codec.sizes], axis=1)
    rows = codec.decode(codes, rng)
    real = rows.astype(str).assign(patient=[f"p{row}" for row in range(len(rows))])
    document = evaluation(Tables.read(published, real, rows), limits=())
    assert codec.schema.hash() != published.hash()
    assert document["schema"]["sha256"] == published.hash()


def test_gates_know_the_noise_that_the_certificate_announces(
    shared_office: Office, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.load(shared_office.folder / "run")
    event = next(one for one in run.certificate["events"] if one["kind"] == "joint_histograms")
    sd = event["sigma"] / (event["unit_mass"] or 1)
    assert document["run"]["noise"] == pytest.approx(sd / DEMO.population.value)
    given: list[float] = []
    monkeypatch.setattr(verbs, "evaluation", lambda *_, noise, **__: given.append(noise) or {
        "tables": {"source": {}, "synthetic": {}, "holdout": None}})  # fmt: skip
    files = [shared_office.folder / name for name in ("source.csv", "out.parquet")]
    evaluate(DEMO, files[0], Candidate.of_run(shared_office.folder / "run", files[1]))
    evaluate(DEMO, files[0], Candidate("theirs", files[1]))
    assert given == [document["run"]["noise"], 0.0]


def test_every_figure_carries_size_and_best_value(document: dict[str, Any]) -> None:
    measures = document["measures"]
    assert {"tvd1", "tvd2", "tvd3", "c2st", "rules", "queries", "group_means"} <= set(measures)
    assert any(key.startswith("tstr:") for key in measures)
    for key, one in measures.items():
        assert one["n"] >= 1 and one["best"] in (0, 0.5, 1), key
        assert one["low"] is None or one["low"] <= one["value"] <= one["high"], key
    assert set(document["parts"]) == {
        *("fidelity", "rules", "clinical_edits", "usefulness", "subgroups"),
    }


def test_the_folder_is_for_its_owner_and_holds_document_and_page(
    shared_office: Office, document: dict[str, Any]
) -> None:
    folder = shared_office.folder / "internal"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {"evaluation.json", "internal.html"}
    assert json.loads((folder / "evaluation.json").read_text())["measures"] == document["measures"]
    assert "do not release" in (folder / "internal.html").read_text().lower()
    inside_run = {path.name for path in (shared_office.folder / "run").iterdir()}
    assert inside_run == {"run.json", "state.safetensors", "samples.json"}


def test_the_command_reports_and_a_failed_gate_is_exit_code_3(
    office: Office,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    document: dict[str, Any],
) -> None:
    """The same seed and tables give the same document; only the gates are others."""
    path = tmp_path / "gates.yaml"
    path.write_text("version: 1\ngates: [{key: tvd1, at_most: 0.0001, reason: none can}]\n")
    arguments = ["evaluate", office.path("run"), *office.arguments, "--json"]
    assert call(*arguments, "--gates", str(path), "-o", office.path("new")) == 3
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["kind"] == "dpsynth.evaluate" and report["internal"] is True
    assert [v["passed"] for v in report["gates"] if v["key"] == "tvd1"] == [False]
    assert re.search("internal gates? failed: .*tvd1", err)
    assert (office.folder / "new" / "internal.html").exists()  # the verdict stops nothing else
    again = json.loads((office.folder / "new" / "evaluation.json").read_text())
    assert again | {"gates": document["gates"]} == json.loads(json.dumps(document))


def test_a_result_is_replaced_only_when_asked_and_only_if_it_is_one(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    (office.folder / "mine").mkdir()
    (office.folder / "mine" / "notes.txt").write_text("keep me")
    arguments = ["evaluate", office.path("run"), *office.arguments]
    assert call(*arguments, "-o", office.path("mine")) == 2
    assert "exists" in capsys.readouterr().err
    assert call(*arguments, "-o", office.path("mine"), "--force") == 2
    assert "no earlier result" in capsys.readouterr().err
    assert (office.folder / "mine" / "notes.txt").read_text() == "keep me"


@pytest.mark.parametrize("rows", some_of([(1, 1), (1, 40), (40, 1)], every=2))
def test_tables_of_a_row_or_so_give_what_figures_they_can(rows: tuple[int, int]) -> None:
    source, drawn = rows
    real, synthetic = simulate(40, seed=1)[:source], simulate(40, seed=2)[:drawn]
    result = evaluate(DEMO, real.assign(hba1c=None), Candidate("few", synthetic))
    assert result["measures"]["tvd1"]["n"] == drawn and result["notes"]


@pytest.mark.long
def test_cells_outside_the_schema_are_named_in_the_notes() -> None:
    drawn = simulate(40, seed=2).assign(ward="oncology")
    result = evaluate(DEMO, simulate(40, seed=1), Candidate("theirs", drawn))
    [note] = [one for one in result["notes"] if "ward" in one and "departs" in one]
    assert "oncology" not in note  # a note names columns and rules
    assert any(one.startswith("only ") for one in result["notes"])


def test_the_gates_that_ship_can_be_printed_and_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call("evaluate", "--show-gates") == 0
    (tmp_path / "gates.yaml").write_text(capsys.readouterr().out)
    assert gates(tmp_path / "gates.yaml") == gates()


def test_what_could_not_be_judged_is_said(
    office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = {"key": "c2st", "passed": None, "value": None, "limit": "at most 0.8"}
    empty = {"measures": {}, "gates": [verdict], "notes": [], "internal": True, "tables": {}}
    monkeypatch.setattr(verbs.RealRows, "judged", lambda *_: {**empty, "seed": 0, "run": None})
    assert call("evaluate", office.path("run"), *office.arguments) == 0
    assert "not judged: c2st" in capsys.readouterr().err


@pytest.mark.parametrize("inside", ["run", "run/more", "bundle/data"])
def test_results_do_not_go_into_a_run_or_a_bundle(
    office: Office, capsys: pytest.CaptureFixture[str], inside: str
) -> None:
    (office.folder / "bundle" / "data").mkdir(parents=True)
    (office.folder / "bundle" / "datapackage.json").write_text("{}")
    place = office.path(f"{inside}/internal")
    assert call("evaluate", office.path("run"), *office.arguments, "-o", place) == 2
    assert "must not go into a run or a bundle" in capsys.readouterr().err


def test_nothing_is_spent_where_the_result_has_no_place(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    (office.folder / "mine").mkdir()
    arguments = ["evaluate", office.path("run"), *office.arguments, "--publish"]
    assert call(*arguments, "-o", office.path("mine")) == 2
    source = office.path("source.csv")
    shared = [source, "--synthetic", office.path("out.parquet"), "--holdout", source]
    assert call("evaluate", office.path("run"), *shared, "--publish") == 2
    assert Ledger().state().entries[-1].measured is None


def test_force_puts_a_new_result_in_the_place_of_the_old(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = office.folder / "internal"
    folder.mkdir(exist_ok=True)
    for name in ("evaluation.json", "internal.html"):
        (folder / name).write_text("old")
    cheap = {"measures": {}, "gates": [], "notes": [], "internal": True, "tables": {}, "seed": 0}
    cheap |= {"format": "dpsynth-evaluation", "run": None}
    monkeypatch.setattr(verbs.RealRows, "judged", lambda *_: dict(cheap))
    monkeypatch.setattr(verbs, "internal_page", lambda *_: "new")
    arguments = ["evaluate", office.path("run"), *office.arguments, "-o", str(folder), "--force"]
    assert call(*arguments) == 2, "a document of somebody else, which only has this name"
    assert (folder / "evaluation.json").read_text() == "old"
    (folder / "evaluation.json").write_text('{"format": "dpsynth-evaluation"}')
    assert call(*arguments) == 0
    assert (folder / "internal.html").read_text() == "new"

    def full(*_: Any) -> str:
        raise InputError("the disk is full")

    monkeypatch.setattr(verbs, "internal_page", full)
    assert call(*arguments) == 2
    assert (folder / "internal.html").read_text() == "new"  # nothing is lost
    assert not list(office.folder.glob(".internal*"))


def test_a_table_that_the_run_did_not_draw_is_refused(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.read_parquet(office.path("out.parquet"))
    for name in ("edited.parquet", "out.parquet"):  # the name does not matter
        table.iloc[:-1].to_parquet(office.path(name))
        arguments = [office.path("source.csv"), "--synthetic", office.path(name)]
        assert call("evaluate", office.path("run"), *arguments) == 3
        assert "not recorded" in capsys.readouterr().err


def test_published_figures_reach_the_bundle_of_the_table_they_are_about(office: Office) -> None:
    publish_quality(office.path("run"), office.path("out.parquet"), office.path("holdout.csv"))
    bundle = release(office.path("run"), office.folder / "bundle", table=office.path("out.parquet"))
    verify(bundle)
    quality = json.loads((bundle / "quality.json").read_text())
    assert quality["event"] == "quality" and len(quality["columns"]) == len(DEMO.modelled)
    page = (bundle / "report.html").read_text()
    assert "two columns at a time" in page


@pytest.mark.long
def test_evaluation_and_its_page_need_no_torch() -> None:
    code = (
        "import sys, importlib.abc\n"
        "class NoTorch(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('no torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from dpsynth.assessment import Candidate, evaluate\n"
        "from dpsynth.eval.report import internal_page\n"
        "from dpsynth import Schema\n"
        "from dpsynth.tables import simulate\n"
        "one, two = simulate(60, seed=1), simulate(60, seed=2)\n"
        "found = evaluate(Schema.load('demo'), one, Candidate('two', two))\n"
        "assert found['measures']['tvd2']['reference'] is None\n"
        "assert 'Do not release' in internal_page(found)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
