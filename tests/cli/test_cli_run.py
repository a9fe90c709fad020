"""``dpsynth run``: options, the file, what it shows and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment.results_folder import AUDIT, EVALUATION, PAGE, beside, write_results
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.tables import simulate
from dpsynth.workflow import stages, subjects

from ..support.command_line import Cli

BUDGET = ("--dataset", "cohort", "--epsilon", "3", "--delta", "1e-6", "--model", "independent")
COLUMNS = ("patient_id", "sex", "age", "smoker")


@pytest.fixture
def cli(command_line: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Call ``dpsynth run`` in a folder with a table, its schema, and quick internal stages."""
    document = Schema.load("demo").to_dict()
    document["fields"] = [field for field in document["fields"] if field["name"] in COLUMNS]
    del document["dpsynth"]["rules"]
    document["dpsynth"]["population"]["value"] = 100
    document["dpsynth"]["rows"]["value"] = 100
    Schema.from_dict(document).save("small.schema.yaml")
    simulate(60, seed=1).to_csv("cohort.csv", index=False)
    monkeypatch.setattr(subjects, "evaluate", evaluated)
    monkeypatch.setattr(subjects, "audit", audited)
    monkeypatch.setattr(stages, "read_audits", lambda run: ())
    return lambda *arguments: command_line("run", *arguments)


def evaluated(_: Any, source: Any, candidate: Any, *rest: Any, output: Path, **more: Any) -> None:
    tables = {"synthetic": {"sha256": file_digest(candidate.table)}}
    failed = [{"key": gate.key, "passed": False} for gate in more["limits"] if gate.limit == 0.123]
    kept(output, EVALUATION, AUDIT, {"tables": tables, "gates": failed})


def audited(_: Any, *, real: Any, output: Path, **more: Any) -> None:
    sha256 = None if real is None else file_digest(real.candidate.table)
    tables = {"synthetic": {"sha256": sha256}}
    kept(output, AUDIT, EVALUATION, {"tables": tables, "findings": [], "controls": []})


def kept(folder: Path, name: str, other: str, document: dict[str, Any]) -> None:
    before = beside(folder, other, None)
    both = {name: document} | ({} if before is None else {other: before})
    write_results(folder, both, {PAGE: "page"})


SMALL = ("small.schema.yaml", "cohort.csv", *BUDGET)


def test_in_one_go_and_again(cli: Cli) -> None:
    first = cli(*SMALL, "-o", "bundle/")
    assert first.code == 0, first.err
    assert "bundle      bundle: epsilon 3, delta 1e-06, verified" in first.out
    assert "internal    bundle.internal/internal.html" in first.out
    assert "dpsynth sign bundle --key office.key" in " ".join(first.err.split())
    for stage in ("check", "split", "fit", "sample", "evaluate", "audit", "release"):
        assert any(
            line.split()[:2] == [stage, "done"] and line.endswith(" s")
            for line in first.err.splitlines()
        )
    again = cli(*SMALL, "-o", "bundle/")
    assert again.code == 0 and again.err.count("kept") == 7 and " done " not in again.err
    assert [entry.status for entry in Ledger().entries()] == ["charged"]


def test_json_and_quiet(cli: Cli) -> None:
    Ledger()  # a new one is told of, also where nothing else is
    result = cli(*SMALL, "-o", "bundle", "--json")
    assert result.code == 0 and result.err == ""
    document = result.json
    assert (document["kind"], document["version"]) == ("dpsynth.run", 1)
    assert document["internal"] is True
    assert document["bundle"] == "bundle" and Path(document["page"]).is_file()
    assert [stage["state"] for stage in document["stages"]] == ["done"] * 7
    assert document["gates_failed"] == document["attacks_found"] == []
    silent = cli(*SMALL, "-o", "bundle", "--quiet")
    assert silent.err == "" and silent.out.startswith("bundle ")


def test_a_dry_run_opens_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    Path("cohort.csv").unlink()
    before = sorted(tmp_path.rglob("*"))
    ended = cli(*SMALL, "-o", "bundle", "--dry-run")
    assert ended.code == 0, ended.err
    for words in ("one-way histograms", "80 units (public); 0.2 held out", "release   to do"):
        assert words in ended.out, ended.out
    result = cli(*SMALL, "-o", "bundle", "--dry-run", "--json").json
    assert result["kind"] == "dpsynth.run-plan" and result["plan"]["composed_epsilon"] <= 3
    assert result["population"] == 80 and result["settings"]["holdout"] == 0.2
    assert {stage["state"] for stage in result["stages"]} == {"to do"}
    assert sorted(tmp_path.rglob("*")) == before


def test_settings_are_saved_resolved_before_anything_is_read(cli: Cli) -> None:
    refused = cli("small.schema.yaml", "absent.csv", *BUDGET[:-1], "auto", "-o", "b",
                  "--save-config", "dpsynth.yaml")  # fmt: skip
    assert refused.code == 2 and "no such file" in refused.err
    saved = yaml.safe_load(Path("dpsynth.yaml").read_text())
    assert saved["model"] in ("independent", "mixture", "tvae") and saved["rows"] == 80
    assert isinstance(saved["seed"], int) and saved["evaluate_seed"] == saved["audit_seed"] == 0
    assert (saved["canaries"], saved["holdout"], saved["attacks"]) == (1000, 0.2, True)
    assert (saved["work"], saved["internal"]) == ("b.work", "b.internal")
    assert not Path("b.work").exists() and Ledger().entries() == []


def test_settings_that_a_dry_run_saved_are_those_of_the_run(cli: Cli) -> None:
    """Also the seed that was drawn then; and other settings do not take their place."""
    words = (*SMALL, "-o", "bundle", "--save-config", "dpsynth.yaml")
    assert cli(*words, "--dry-run").code == 0
    saved = Path("dpsynth.yaml").read_bytes()
    done = cli(*words, "--json")
    assert done.code == 0, done.err
    assert Path("dpsynth.yaml").read_bytes() == saved
    drawing = json.loads(Path("bundle/datapackage.json").read_text())["dpsynth"]["drawing"]
    assert drawing["seed"] == yaml.safe_load(saved)["seed"]
    other = cli(*words, "--rows", "7")
    assert other.code == 2 and "dpsynth.yaml exists" in other.err
    assert Path("dpsynth.yaml").read_bytes() == saved


def test_a_release_is_repeated_from_the_file(cli: Cli) -> None:
    first = cli(*SMALL, "-o", "bundle", "--save-config", "dpsynth.yaml", "--seed", "7")
    assert first.code == 0
    again = cli()  # reads dpsynth.yaml, and finds everything done
    assert again.code == 0 and again.err.count("kept") == 7
    other = cli("-o", "second")
    assert other.code == 0 and other.err.count(" done ") == 7 and Path("second.work").is_dir()
    manifests = [
        json.loads(Path(name, "datapackage.json").read_text())["dpsynth"]["drawing"]
        for name in ("bundle", "second")
    ]
    assert manifests[0]["seed"] == manifests[1]["seed"] == 7
    assert manifests[0]["size"] == manifests[1]["size"] == 80
    changed = cli(*SMALL, "-o", "third", "--save-config", "dpsynth.yaml", "--seed", "8")
    assert changed.code == 2 and "dpsynth.yaml exists" in changed.err
    assert not Path("third.work").exists()


def test_another_file_is_named_by_config_and_options_win(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = cli(*SMALL, "-o", "bundle", "--save-config", "conf/mine.yaml", "--dry-run", "--json")
    assert saved.code == 0
    monkeypatch.setenv("DPSYNTH_DATASET", "of-the-environment")
    result = cli("--config", "conf/mine.yaml", "--epsilon", "2", "--dry-run", "--json").json
    assert result["settings"]["epsilon"] == 2 and result["settings"]["dataset"] == "cohort"
    assert result["settings"]["output"] == "bundle"
    assert result["settings"]["data"] == "cohort.csv"  # written as ../cohort.csv
    unnamed = cli(*SMALL[:2], *SMALL[4:], "-o", "b", "--dry-run", "--json").json
    assert unnamed["settings"]["dataset"] == "of-the-environment"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing SCHEMA, DATA, '--dataset', '--epsilon', '--delta', '--output', or write"),
        (SMALL, "Missing '--output'."),
        ((*SMALL[:4], "-o", "b"), "Missing '--epsilon', '--delta'."),
        (("--config", "absent.yaml"), "absent.yaml does not exist"),
        ((*SMALL, "-o", "b", "--holdout", "1.5"), "holdout: a number at least 0 and below 1"),
        ((*SMALL, "-o", "b", "--canaries", "3"), "canaries must be 50"),
        ((*SMALL, "-o", "b", "--opt-out", "absent.txt"), "absent.txt: there is no such file"),
        ((*SMALL, "-o", "b", "--gates", "absent.yaml"), "absent.yaml"),
        ((*SMALL, "-o", "b", "--about", "absent.yaml"), "absent.yaml"),
        ((*SMALL, "-o", "b", "--model", "tave"), "did you mean 'tvae'"),
        (
            (*SMALL, "-o", "b", "--override", "it is fine"),
            "give both --override REASON and --by NAME",
        ),
    ],
)
def test_bad_input_is_exit_code_2_before_anything_is_made(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    before = sorted(Path().iterdir())
    ended = cli(*arguments)
    assert ended.code == 2 and ended.out == "", ended
    assert said in ended.err.replace("\n", " "), ended.err
    assert sorted(Path().iterdir()) == before and Ledger().entries() == []


def test_an_opt_out_list_needs_a_unit(cli: Cli) -> None:
    document = yaml.safe_load(Path("small.schema.yaml").read_text())
    del document["fields"][0], document["dpsynth"]["max_rows"], document["dpsynth"]["person"]
    Path("rows.schema.yaml").write_text(yaml.safe_dump(document))
    Path("gone.txt").write_text("p1\n")
    ended = cli("rows.schema.yaml", *SMALL[1:], "-o", "b", "--opt-out", "gone.txt")
    assert ended.code == 2 and "role unit" in ended.err, ended.err


def test_an_internal_gate_that_failed_is_exit_code_3_and_the_bundle_is_there(cli: Cli) -> None:
    Path("gates.yaml").write_text(
        "version: 1\ngates:\n  - {key: tvd1, at_most: 0.123, reason: a test}\n"
    )
    for _ in range(2):
        ended = cli(*SMALL, "-o", "bundle", "--gates", "gates.yaml")
        assert ended.code == 3 and "1 internal gate failed (tvd1)" in ended.err, ended.err
        assert "internal.html before you publish" in ended.err
        assert Path("bundle/datapackage.json").is_file() and "verified" in ended.out


def test_an_interrupted_fit_is_exit_code_130_and_then_4(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.models.generators.Independent.fit", stop)
        stopped = cli(*SMALL, "-o", "bundle")
    assert stopped.code == 130 and "epsilon 3" in stopped.err and "--fit-again" in stopped.err
    refused = cli(*SMALL, "-o", "bundle")
    assert refused.code == 4 and "--fit-again" in refused.err and refused.out == ""
    assert cli(*SMALL, "-o", "bundle", "--fit-again").code == 0
    assert [entry.status for entry in Ledger().entries()] == ["failed", "charged"]


def test_nothing_shown_quotes_a_cell(cli: Cli) -> None:
    lines = Path("cohort.csv").read_text().splitlines()
    Path("cohort.csv").write_text("\n".join([lines[0], *lines[1:], 'Quokka7Zx,"open']))
    ended = cli(*SMALL, "-o", "bundle")
    assert ended.code == 3 and "Quokka" not in ended.err + ended.out
    assert Ledger().entries() == []
