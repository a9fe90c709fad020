"""What single commands say and do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dpsynth.schema import Schema, shipped_packages, shipped_schemas
from dpsynth.tables import simulate

from ..support.command_line import BUDGET, Cli


def test_schema_list_names_those_that_ship(cli: Cli) -> None:
    names = [*shipped_schemas(), *shipped_packages()]
    assert cli("schema", "list", "--json").json["schemas"] == names
    shown = cli("schema", "list").out
    assert all(name in shown for name in shipped_schemas())


@pytest.mark.parametrize("name", shipped_schemas())
def test_schema_show_is_a_schema(cli: Cli, tmp_path: Path, name: str) -> None:
    ended = cli("schema", "show", name)
    assert ended.code == 0
    (tmp_path / "mine.schema.yaml").write_text(ended.out)
    assert Schema.load(tmp_path / "mine.schema.yaml") == Schema.load(name)


def test_schema_check_lists_every_mistake_at_once(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("cardio").to_dict()
    del document["fields"][1]["constraints"]["minimum"]
    document["fields"][2]["type"] = "integr"
    document["dpsynth"]["populaton"] = 3
    (tmp_path / "mine.schema.yaml").write_text(yaml.safe_dump(document))
    refused = cli("schema", "check", "mine.schema.yaml")
    assert refused.code == 2
    for part in ("'age'", "minimum", "did you mean 'integer'", "did you mean 'population'"):
        assert part in refused.err, refused.err


def test_schema_check_refuses_a_draft(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("cardio").to_dict()
    document["dpsynth"]["draft"] = True
    (tmp_path / "mine.schema.yaml").write_text(yaml.safe_dump(document))
    refused = cli("schema", "check", "mine.schema.yaml")
    assert refused.code == 2 and "draft" in refused.err


def test_schema_check_with_data_counts_cells_by_hand(cli: Cli, tmp_path: Path) -> None:
    """Four visits: one bmi missing and one clipped, one unknown ward, one sbp unreadable."""
    visits = simulate(50, seed=1).astype(object).head(4)
    visits[["bmi", "sbp", "dbp"]] = [[25.0, 120, 80]] * 4
    visits["ward"] = ["medicine", "surgery", "cardiology", "SECRET"]
    visits["bmi"] = [25.0, "", 500.0, 30.0]
    visits["sbp"] = [120, 130, "high", 140]
    visits.to_csv(tmp_path / "visits.csv", index=False)
    result = cli("schema", "check", "demo", "visits.csv", "--json").json
    assert result["internal"] is True
    nothing = {"missing": 0.0, "clipped": 0.0, "unknown": 0.0, "bad": 0.0}
    assert result["cells"]["bmi"] == nothing | {"missing": 0.25, "clipped": 0.25}
    assert result["cells"]["ward"] == nothing | {"unknown": 0.25}
    assert result["cells"]["sbp"] == nothing | {"bad": 0.25}
    assert result["cells"]["dbp"] == nothing
    ended = cli("schema", "check", "demo", "visits.csv")
    assert "INTERNAL" in ended.out and "SECRET" not in ended.out + ended.err
    assert re.search(r"bmi +25\.00% +25\.00% +0\.00% +0\.00%", ended.out)


def test_schema_check_with_data_counts_units(cli: Cli, tmp_path: Path) -> None:
    """At most four visits count: of patients with 5, 2 and 1 visits a third has more."""
    visits = simulate(100, seed=1).head(10)
    visits["patient_id"] = ["a"] * 5 + ["b"] * 2 + ["c"] + [None] * 2
    visits.to_csv(tmp_path / "visits.csv", index=False)
    result = cli("schema", "check", "demo", "visits.csv", "--json").json
    assert result["units"] == {"keyless_rows": 2, "over_max_rows": pytest.approx(1 / 3)}
    shown = cli("schema", "check", "demo", "visits.csv").out
    assert "33.33%" in shown


def test_a_plan_says_what_few_patients_carry(cli: Cli, tmp_path: Path) -> None:
    document = yaml.safe_load(cli("schema", "show", "clinic").out)
    budget = ("--epsilon", "3", "--delta", "1e-6")
    document["dpsynth"]["population"]["value"] = 60
    (tmp_path / "few.package.yaml").write_text(yaml.safe_dump(document))
    of_few = ("plan", f"{tmp_path}/few.package.yaml", *budget)
    few, many = cli(*of_few, "--model", "distilled"), cli("plan", "clinic", *budget)
    for said in (
        "carries     about 0 of 5 columns of the table of patients well, with 60 patients",
        "not well: sex, age",
        "values      in labs, a mean is off by about 6.7 standard deviations: mostly noise; ",
        "2 numbers of rows share the weight of a patient, so one counts as 30 patients",
        "helps       More patients. From about ",
    ):
        assert said in few.out
    assert (
        "about 1.2 standard deviations: mostly noise; 4 numbers of rows share" in cli(*of_few).out
    )
    assert "carries     about 5 of 5 columns" in many.out
    assert "helps" not in many.out and "mostly noise;" not in many.out


def test_a_plan_names_every_mechanism(cli: Cli) -> None:
    ended = cli("plan", "demo", "--epsilon", "3", "--delta", "1e-6", "--model", "tvae")
    for words in (
        "granularity of numbers",
        "one-way histograms",
        "two-way histograms",
        "DP-SGD steps",
    ):
        assert words in ended.out
    assert (
        "column 'patient_id'" in ended.out
        and "at most 4 rows each" in ended.out
        and "20000 units" in ended.out
    )
    for model, events in (("auto", 3), ("autoregressive", 4)):
        budget = ("--epsilon", "3", "--delta", "1e-6", "--model", model)
        result = cli("plan", "demo", *budget, "--json").json
        assert result["plan"]["composed_epsilon"] <= 3
        assert len(result["plan"]["events"]) == events


@pytest.mark.smoke
def test_fit_sample_release_verify(cli: Cli, cohort: Path) -> None:
    """The main job, command by command."""
    fitted = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run", "--json")
    assert fitted.json["epsilon"] == 3.0 and fitted.json["composed_epsilon"] <= 3.0
    assert fitted.json["ledger"]["fits"] == 1 and fitted.json["stamps"] == []
    drawn = cli("sample", "run", "--rows", "300", "--seed", "7", "-o", "table.parquet", "--json")
    assert drawn.json["rows"] == 300 and drawn.json["seed"] == 7
    released = cli("release", "run", "--table", "table.parquet", "-o", "bundle", "--json")
    assert "datapackage.json" in released.json["files"]
    checked = cli("verify", "bundle", "--json")
    assert checked.code == 0 and checked.json["verified"] is True and checked.json["checks"]


def test_a_refit_is_refused_before_it_is_charged(cli: Cli, cohort: Path) -> None:
    arguments = ("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert cli(*arguments).code == 0
    refused = cli(*arguments)
    assert refused.code == 2 and "exists" in refused.err
    shown = cli("ledger", "show", "--json").json
    assert shown["datasets"]["cohort"]["fits"] == 1


def test_fit_words_the_number_of_fits(cli: Cli, cohort: Path) -> None:
    arguments = ("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o")
    assert "1 fit," in cli(*arguments, "first").out
    assert "2 fits, total epsilon 6" in cli(*arguments, "second").out


def test_the_dataset_may_come_from_the_environment(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_DATASET", "ward-7")
    budget = BUDGET[2:]
    assert cli("fit", "demo", cohort, *budget, "--model", "independent", "-o", "run").code == 0
    assert list(cli("ledger", "show", "--json").json["datasets"]) == ["ward-7"]


def test_ledger_show_lists_and_filters(cli: Cli, cohort: Path) -> None:
    place = Path("ledger.sqlite").rename("elsewhere.sqlite")
    assert "there is no ledger" in cli("ledger", "show").err
    place.rename("ledger.sqlite")
    for number, name in enumerate(("first", "second", "second")):
        changed = ["--dataset", name, *BUDGET[2:], "--purpose", f"try {number}"]
        fitted = cli("fit", "demo", cohort, *changed, "--model", "independent", "-o", f"r{number}")
        assert fitted.code == 0
    ended = cli("ledger", "show")
    assert ended.out.count("charged") == 3 and "try 2" in ended.out
    assert "first: 1 fit, total epsilon 3" in ended.out
    assert "second: 2 fits, total epsilon 6" in ended.out
    only = cli("ledger", "show", "--dataset", "second", "--json").json
    second = only["datasets"].pop("second")
    assert (second["fits"], second["epsilon"], second["delta"]) == (2, 6.0, 2e-6)
    assert only["datasets"] == {}
    assert [entry["purpose"] for entry in only["entries"]] == ["try 1", "try 2"]


def test_sample_is_repeatable_and_replaces_nothing(cli: Cli, run_folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        assert cli("sample", run_folder, "--rows", "30", "--seed", "5", "-o", name).code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    refused = cli("sample", run_folder, "--rows", "30", "--seed", "6", "-o", "a.csv")
    assert refused.code == 2 and "exists" in refused.err
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    forced = cli("sample", run_folder, "--rows", "30", "--seed", "6", "-o", "a.csv", "--force")
    assert forced.code == 0
    assert Path("a.csv").read_bytes() != Path("b.csv").read_bytes()


@pytest.mark.parametrize("name", ["extract.csv", "extract.csv.gz", "extract.parquet"])
@pytest.mark.parametrize("more", [(), ("--replicates", "2"), ("--balance", "sex")])
def test_force_replaces_only_what_dpsynth_drew(
    cli: Cli, run_folder: Path, tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    """A private extract stays, and so does a drawn table that was changed since."""
    import pandas as pd

    stem, _, suffix = name.partition(".")
    numbered = tmp_path / (f"{stem}-1.{suffix}" if "--replicates" in more else name)
    arguments = ("sample", run_folder, "--rows", "30", "--seed", "5", "-o", name, *more, "--force")
    private = pd.DataFrame({"age": [70, 71], "sex": ["F", "M"]})
    private.to_parquet(numbered) if suffix == "parquet" else private.to_csv(numbered)
    before = numbered.read_bytes()
    refused = cli(*arguments)
    assert refused.code == 2 and "--force does not replace it" in refused.err, refused.err
    assert numbered.read_bytes() == before
    numbered.unlink()
    assert cli(*arguments).code == 0
    if "--balance" not in more or suffix == "parquet":  # recorded, or marked
        assert cli(*arguments).code == 0
    if suffix == "csv":
        numbered.write_text(numbered.read_text() + "my notes\n")
        refused = cli(*arguments)
        assert refused.code == 2 and "was changed since" in refused.err


def test_sample_keeps_to_a_condition(cli: Cli, run_folder: Path) -> None:
    arguments = ("sample", run_folder, "--rows", "40", "--seed", "1", "-o")
    assert cli(*arguments, "old.csv", "--where", "age >= 80").code == 0
    import pandas as pd

    assert (pd.read_csv("old.csv")["age"] >= 80).all()
    refused = cli(*arguments, "none.csv", "--where", "age >= 800")
    assert refused.code == 2 and "age >= 800" in refused.err
    assert not Path("none.csv").exists()


def test_sample_without_a_seed_tells_the_one_it_took(cli: Cli, run_folder: Path) -> None:
    first = cli("sample", run_folder, "--rows", "10", "-o", "a.csv", "--json").json
    again = cli(
        "sample", run_folder, "--rows", "10", "--seed", first["seed"], "-o", "b.csv", "--json"
    ).json
    assert again["sha256"] == first["sha256"]


@pytest.mark.parametrize("output", ["out.xlsx", "folder", "run/nested.txt"])
def test_sample_refuses_an_output_that_it_cannot_write(
    cli: Cli, run_folder: Path, tmp_path: Path, output: str
) -> None:
    (tmp_path / "folder").mkdir()
    refused = cli("sample", run_folder, "--rows", "10", "--seed", "1", "-o", output)
    assert refused.code == 2 and "Traceback" not in refused.err


def test_sample_writes_nothing_into_a_bundle(cli: Cli, run_folder: Path, bundle: Path) -> None:
    before = sorted(bundle.rglob("*"))
    for options in ([], ["--replicates", "2"], ["--force"]):
        refused = cli(
            "sample", run_folder, "--rows", "10", "-o", bundle / "data" / "more.csv", *options
        )
        assert refused.code == 2 and "is inside the bundle" in refused.err
    assert sorted(bundle.rglob("*")) == before


@pytest.mark.parametrize("rows", ["9" * 400, "-" + "9" * 400, "1" + "0" * 30])
@pytest.mark.parametrize("more", [(), ("--replicates", "2"), ("--balance", "sex")])
def test_numbers_of_rows_that_no_disk_holds_are_refused(
    cli: Cli, run_folder: Path, rows: str, more: tuple[str, ...]
) -> None:
    refused = cli("sample", run_folder, f"--rows={rows}", "-o", "huge.csv", *more)
    assert refused.code == 2 and "rows must be at" in refused.err and len(refused.err) < 200
    assert not Path("huge.csv").exists()
