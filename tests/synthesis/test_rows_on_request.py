"""Categories in equal numbers, and rows that the user begins: `--balance` and `--like`."""

from __future__ import annotations

import dataclasses
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpsynth.cli.group import commands
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.schema import Schema
from dpsynth.synthesis import Completion, Run, Sampler

from ..support.quick_fit import quick_fit
from ..support.schema_fields import schema_field


def test_categories_in_equal_numbers(demo_run: Run) -> None:
    balanced = Sampler.of(demo_run, balance="readmitted_30d", where="age > 50")
    [frame] = balanced.frames(301, seed=1)
    assert sorted(frame["readmitted_30d"].value_counts()) == [150, 151]
    assert (frame["age"] > 50).all()
    order = frame["readmitted_30d"].astype(bool).to_numpy()
    assert order[:150].any() and not order[:150].all(), "in random order"
    pd.testing.assert_frame_equal(frame, next(balanced.frames(301, seed=1)))


def test_texts_are_balanced_too(demo_run: Run) -> None:
    [frame] = Sampler.of(demo_run, balance="smoker").frames(90, seed=1)
    assert frame["smoker"].value_counts().nunique() == 1


def run_of_names(shares: list[float]) -> Run:
    """A run of one column, with given shares of "Crohn's", "other kind" and "other"."""
    facts = {"value": 300, "basis": "report"}
    field = schema_field("name", "string", "form", enum=["Crohn's", "other kind"], required=True)
    schema = {"fields": [field], "dpsynth": {"version": 1, "population": facts, "rows": facts}}
    table = pd.DataFrame({"name": ["Crohn's", "other kind", "neither"] * 100})
    run = quick_fit(table, Schema.from_dict(schema))
    assert run.arrays["shares"].shape == (3,)
    return dataclasses.replace(run, arrays={"shares": np.array(shares)})


def test_a_category_may_hold_an_apostrophe() -> None:
    run = run_of_names([0.3, 0.69998, 0.00002])
    [frame] = Sampler.of(run, balance="name").frames(39, seed=1)
    assert frame["name"].value_counts().to_dict() == dict.fromkeys(
        ["Crohn's", "other kind", "other"], 13
    )


def test_a_category_that_is_never_drawn_is_left_out() -> None:
    run = run_of_names([0.4, 0.6, 0.0])
    with pytest.warns(DpsynthWarning, match="categories of 'name' here, .* left out: oth"):
        balanced = Sampler.of(run, balance="name")
    [frame] = balanced.frames(40, seed=1)
    assert frame["name"].value_counts().to_dict() == {"Crohn's": 20, "other kind": 20}
    with pytest.raises(InputError, match="no row can meet \"name == 'other'\""):
        Sampler.of(run, balance="name", where="name == 'other'")


@pytest.mark.parametrize("column", ["age", "no"])
def test_a_column_without_categories_is_refused(demo_run: Run, column: str) -> None:
    with pytest.raises(InputError, match=f"not by '{column}'; choose one of"):
        Sampler.of(demo_run, balance=column)


def test_given_cells_stay_and_the_others_follow_them(demo_run: Run) -> None:
    rows = pd.DataFrame({"age": ["80"] * 400 + ["25"] * 400 + [""] * 5, "bmi": ["31.7"] * 805})
    frame = Completion(demo_run, rows).frame(seed=1)
    assert frame.index.tolist() == list(range(805))
    assert frame["age"].tolist()[:800] == [80] * 400 + [25] * 400
    assert (frame["bmi"] == 31.7).all()
    assert frame["sbp"][:400].mean() > frame["sbp"][400:800].mean() + 3, "older"
    pd.testing.assert_frame_equal(frame, Completion(demo_run, rows).frame(seed=1))
    for rule in demo_run.schema.rules:
        assert rule.holds(frame).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"age": ["50", "433"]}, "1 cell of column 'age' cannot be given, the first in row 2"),
        ({"sex": ["x"]}, "1 cell of column 'sex'"),
        ({"patient_id": ["7"]}, "column 'patient_id' cannot be given: it is not a column"),
        ({"agee": ["7"]}, "did you mean 'age'"),
        ({"age": []}, "1 to 100,000 rows"),
        ({"sbp": ["90"], "dbp": ["100"]}, "row 1 cannot be completed"),
    ],
)
def test_mistakes_name_the_row_and_no_cell(
    demo_run: Run, rows: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        Completion(demo_run, pd.DataFrame(rows, dtype=str)).frame(seed=1)
    assert "433" not in str(error.value)


def test_a_model_that_cannot_complete_says_which_can(opaque: Run) -> None:
    with pytest.raises(
        InputError, match="model 'opaque' cannot complete rows; choose one of .*mixture"
    ):
        Completion(opaque, pd.DataFrame({"age": ["50"]}))


@pytest.mark.parametrize("content", [b"age\n\xc4Zanzibar\n", b'age\n70,Zanzibar\n"Zanzibar\n'])
def test_a_file_that_cannot_be_read_is_not_quoted(
    demo_run: Run, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "like.csv").write_bytes(content)
    with pytest.raises(InputError, match="is not a CSV file in UTF-8") as caught:
        Completion.read(demo_run, tmp_path / "like.csv")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_the_command(demo_run: Run, tmp_path: Path) -> None:
    run = demo_run.save(tmp_path / "run")
    (tmp_path / "like.csv").write_text("age,sex\n70,female\n,male\n")

    def call(*words: str) -> str:
        result = CliRunner().invoke(commands, ["sample", str(run), "--seed", "1", *words])
        assert result.exit_code == 0, result.output
        return result.output

    out = str(tmp_path / "out.csv")
    text = call("-o", out, "--like", str(tmp_path / "like.csv"))
    assert "2 synthetic rows" in text and "release     no" in text
    found = pd.read_csv(out)
    assert found["age"][0] == 70 and found["sex"].tolist() == ["female", "male"]
    assert stat.S_IMODE(Path(out).stat().st_mode) == 0o600, "the user's cells may be a patient's"
    within = ["sample", str(run), "-o", str(run / "out.csv"), "--like", str(tmp_path / "like.csv")]
    result = CliRunner().invoke(commands, within)
    assert isinstance(result.exception, InputError) and "inside" in str(result.exception)
    result = CliRunner().invoke(commands, ["sample", str(run), "-o", out, "--force"])
    assert isinstance(result.exception, InputError), "no record says that it is synthetic"
    out = str(tmp_path / "balanced.csv")
    text = call("-o", out, "--rows", "60", "--balance", "sex")
    assert "release     no" in text
    assert pd.read_csv(out)["sex"].value_counts().tolist() == [30, 30]
    assert not (run / "samples.json").exists(), "a release takes no rows of these kinds"
    out = str(tmp_path / "older.csv")
    text = call("-o", out, "--rows", "40", "--where", "age > 70 and sbp > 150")
    assert "condition   " in text and "of the population" in text
    assert np.all(pd.read_csv(out)["age"] > 70)
    assert (run / "samples.json").exists()
    result = CliRunner().invoke(
        commands, ["sample", str(run), "-o", out, "--like", "x", "--rows", "3"]
    )
    assert result.exit_code == 2 and "does not go with --like" in result.output
