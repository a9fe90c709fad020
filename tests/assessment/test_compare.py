"""Tables of other tools, comparisons, and requests that are refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dpsynth.assessment import Candidate, evaluate
from dpsynth.assessment import evaluation as verbs
from dpsynth.eval.core import tables as tables_module
from dpsynth.schema import Schema
from dpsynth.tables import Table, simulate

from ..support.evaluated_office import Office, call


@pytest.mark.long
def test_another_tools_table_is_judged_by_the_schema(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_table = {}

    def judged(real: verbs.RealRows, candidate: Candidate, *_: Any) -> dict[str, Any]:
        judged_table.update(
            schema=real.tables.codec.published.name,
            table=Path(str(candidate.table)).name,
            run=candidate.run,
        )
        return {"measures": {}, "gates": [], "notes": [], "internal": True, "tables": {},
                "seed": 0, "run": None}  # fmt: skip

    monkeypatch.setattr(verbs.RealRows, "judged", judged)
    assert call("evaluate", "demo", *office.arguments) == 0
    assert judged_table == {"schema": "demo", "table": "out.parquet", "run": None}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--publish"], "--publish needs a run"),
        (["--seed", "-1"], "whole number from 0"),
        (["--workers", "0"], "--workers"),
        (["--gates", "none.yaml"], "none.yaml does not exist"),
    ],
)
def test_wrong_requests_are_said_in_a_sentence(
    office: Office, capsys: pytest.CaptureFixture[str], extra: list[str], said: str
) -> None:
    assert call("evaluate", "demo", *office.arguments, *extra) == 2
    assert said in capsys.readouterr().err


def test_people_in_source_and_holdout_are_refused(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    source, table = office.path("source.csv"), office.path("out.parquet")
    code = call("evaluate", "demo", source, "--synthetic", table, "--holdout", source)
    assert code == 2 and "dpsynth split" in capsys.readouterr().err


@pytest.mark.long
def test_a_comparison_judges_all_on_the_same_tasks(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    code = call(
        "compare",
        "demo",
        office.path("source.csv"),
        f"drawn={office.path('out.parquet')}",
        f"run={office.path('run')}",
        "--holdout",
        office.path("holdout.csv"),
        "--json",
        "-o",
        office.path("comparison"),
    )
    report = json.loads(capsys.readouterr().out)
    assert code == 0 and set(report["measures"]) == {"drawn", "run"}
    one, two = report["measures"]["drawn"], report["measures"]["run"]
    assert one["tvd2"]["reference"] != one["tvd2"]["value"] != two["tvd2"]["value"]
    target = next(key for key in one if key.startswith("tstr:"))
    assert one[target]["n"] == two[target]["n"]  # the same people are predicted
    names = {path.name for path in (office.folder / "comparison").iterdir()}
    assert names == {"comparison.json", "comparison.html"}


@pytest.mark.long
def test_a_comparison_reads_the_real_tables_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many candidates there are; with the same figures as separate evaluations."""
    source, holdout = tmp_path / "source.csv", tmp_path / "holdout.csv"
    simulate(120, seed=1).to_csv(source, index=False)
    others = simulate(60, seed=2)
    others["patient_id"] = others["patient_id"].astype(str) + "h"
    others.to_csv(holdout, index=False)
    reads: list[str] = []
    opened = tables_module.open_table

    def counted(path: Any, schema: Schema) -> Table:
        table = opened(path, schema)
        reads.append(Path(path).name)
        return table

    monkeypatch.setattr(tables_module, "open_table", counted)
    monkeypatch.setattr(verbs, "open_table", counted)
    candidates = [
        Candidate(f"table {seed}", simulate(100, seed=seed).drop(columns="patient_id"))
        for seed in (3, 4)
    ]
    schema, opens = Schema.load("demo"), Opens(source, holdout)
    documents = verbs.compare(schema, source, candidates, holdout)
    assert reads == ["source.csv", "holdout.csv"]
    of_both = opens.count
    opens.count = 0
    alone = evaluate(schema, source, candidates[1], holdout)
    assert of_both == opens.count > 0  # files are opened as often as for a single table
    assert documents[1]["measures"] == alone["measures"]


class Opens:
    """Counts how often the operating system is asked to open some files."""

    def __init__(self, *paths: Path) -> None:
        self.count = 0
        names = {str(path) for path in paths}

        def heard(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and str(arguments[0]) in names:
                self.count += 1

        sys.addaudithook(heard)  # stays until the process ends; the paths are of one test


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (["a=out.parquet"], "two tables or more"),
        (["a=out.parquet", "a=out.parquet"], "different names"),
        (["a=out.parquet", "b=none.csv"], "no such table or run"),
    ],
)
def test_a_comparison_needs_two_tables_that_are_there(
    office: Office,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    candidates: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(office.folder)
    assert call("compare", "demo", "source.csv", *candidates) == 2
    assert said in capsys.readouterr().err
