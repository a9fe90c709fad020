"""The verbs end to end, from the Python API: any source, valid tables, nothing read unpaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pytest

import dpsynth
from dpsynth.encoding.codec import Codec
from dpsynth.errors import BudgetError, InputError, RefusedCellError, SchemaError, TableError
from dpsynth.ledger.ledger import Ledger
from dpsynth.models.registry import NAMES
from dpsynth.privacy.accounting import epsilon as composed_epsilon
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.privacy.events import event_from_dict
from dpsynth.schema.column import Declared
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import fitting, preparation
from dpsynth.synthesis.run import Run

UNITS = 400


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    """Typed cells for the schema of every type: 400 units with 1 to 3 rows, and a column more."""
    rng = np.random.default_rng(1)
    keys = np.repeat([f"P{unit:04d}" for unit in range(UNITS)], rng.integers(1, 4, UNITS))
    rows = len(keys)
    admitted = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1000, rows), "D")
    seconds = pd.to_timedelta(rng.integers(0, 31 * 1440, rows) * 60, "s")

    def sometimes(values: Any) -> pd.Series[Any]:
        """Leave out one cell of ten."""
        return pd.Series(values).mask(pd.Series(rng.random(rows) < 0.1))

    return pd.DataFrame(
        {
            "key": keys,
            "age": rng.integers(18, 100, rows),
            "weight": sometimes(rng.integers(300, 2001, rows) / 10),
            "grade": sometimes(pd.array(rng.integers(1, 4, rows), dtype="Int64")),
            "sex": sometimes(rng.choice(["F", "M, or other"], rows)),
            "smoker": sometimes(pd.array(rng.random(rows) < 0.3, dtype="boolean")),
            "admitted": sometimes(admitted),
            "discharged": admitted + pd.to_timedelta(rng.integers(0, 30, rows), "D"),
            "measured": sometimes(pd.Timestamp("2015-01-01") + seconds),
            "born": sometimes(pd.array(rng.integers(1900, 2001, rows), dtype="Int64")),
            "note": "never read",
        }
    )


@pytest.fixture(scope="module")
def sources(
    patients: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pd.DataFrame | Path]:
    """The same table four times."""
    folder = tmp_path_factory.mktemp("sources")
    found: dict[str, pd.DataFrame | Path] = {"DataFrame": patients}
    for suffix in ("csv", "csv.gz"):
        found[suffix] = folder / f"table.{suffix}"
        patients.to_csv(folder / f"table.{suffix}", index=False, date_format="%Y-%m-%dT%H:%M:%S")
    found["parquet"] = folder / "table.parquet"
    patients.to_parquet(folder / "table.parquet")
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    (tmp_path / "state").mkdir()
    return Ledger.create(tmp_path / "state" / "ledger.sqlite")


@pytest.fixture
def fit(every_type: Schema, ledger: Ledger) -> Callable[..., Run]:
    """`dpsynth.fit` of `independent` with the test's ledger; keywords replace what is given."""

    def call(data: Any, schema: Any = every_type, **changes: Any) -> Run:
        settings: dict[str, Any] = {
            "epsilon": 3.0,
            "delta": 1e-6,
            "dataset": "cohort",
            "model": "independent",
            "ledger": ledger,
        }
        return dpsynth.fit(data, schema, **settings | changes)

    return call


# From any source to a valid table -------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("source", ["DataFrame", "csv", "csv.gz", "parquet"])
def test_a_fit_from_any_source_gives_valid_rows(
    fit: Callable[..., Run],
    sources: dict[str, Any],
    source: str,
    every_type: Schema,
) -> None:
    run = fit(sources[source])
    drawn = run.sample(50, seed=1)
    assert len(drawn) == 50
    assert list(drawn.columns) == [column.name for column in every_type.modelled]
    assert Codec(every_type).conforms(drawn) == []
    pd.testing.assert_frame_equal(drawn, dpsynth.sample(run, 50, seed=1))
    assert {name: str(kind) for name, kind in drawn.dtypes.items()} == {
        "age": "int64",
        "weight": "float64",
        "grade": "Int64",
        "sex": "object",
        "smoker": "boolean",
        "admitted": "datetime64[s]",
        "discharged": "datetime64[s]",
        "measured": "datetime64[s]",
        "born": "Int64",
    }


@pytest.mark.parametrize("source", ["csv", "csv.gz", "parquet"])
def test_every_source_is_read_alike(
    fit: Callable[..., Run], sources: dict[str, Any], source: str
) -> None:
    """With the same seeded noise, the same table learns the same numbers, whatever its format."""
    first, second = (fit(sources[kind], entropy=SeededEntropy(5)) for kind in ("DataFrame", source))
    np.testing.assert_array_equal(first.arrays["shares"], second.arrays["shares"])


def test_a_generous_budget_gives_the_columns_back(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    """At epsilon 100 the noise is a few rows of 700; at most two rows of a unit count."""
    drawn = fit(patients, epsilon=100.0).sample(20_000, seed=2)
    kept = patients.groupby("key").head(2)
    for name in ("grade", "sex", "smoker"):
        true = kept[name].astype(object).fillna("missing").value_counts(normalize=True)
        found = drawn[name].astype(object).fillna("missing").value_counts(normalize=True)
        assert abs(true - found).max() < 0.08, name
    assert drawn["weight"].isna().mean() == pytest.approx(0.1, abs=0.05)


@pytest.mark.smoke
@pytest.mark.parametrize("model", NAMES)
def test_a_fit_of_any_model_gives_valid_rows(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    every_type: Schema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    """And the same ones when it is read back from its folder."""
    for place in (
        "warm_started.WARM_BATCH",
        "ctgan.WARM_BATCH",
        "ctgan.FAKES",
        "ctgan_trainer.BATCH",
    ):
        monkeypatch.setattr(f"dpsynth.models.generators.{place}", 200)  # for the time it takes
    run = fit(patients, model=model, output=tmp_path / "run")
    drawn = run.sample(500, seed=3)
    assert Codec(every_type).conforms(drawn) == []
    pd.testing.assert_frame_equal(Run.load(tmp_path / "run").sample(500, seed=3), drawn)


def test_a_fit_without_a_model_takes_the_one_that_auto_chooses(every_type: Schema) -> None:
    budget = {"epsilon": 3.0, "delta": 1e-6}
    assert preparation.prepare(every_type, **budget).model == "mixture"
    many = replace(every_type, population=Declared(1_000_000, "a test"))
    assert preparation.prepare(many, **budget).model == "autoregressive"


def test_a_schema_may_be_a_path(
    fit: Callable[..., Run], patients: pd.DataFrame, every_type: Schema, tmp_path: Path
) -> None:
    every_type.save(tmp_path / "mine.schema.yaml")
    assert fit(patients, tmp_path / "mine.schema.yaml").schema == every_type
    assert fit(patients, str(tmp_path / "mine.schema.yaml")).schema == every_type


def test_a_schema_may_be_a_shipped_name(fit: Callable[..., Run]) -> None:
    from dpsynth.tables.simulated import simulate

    run = fit(simulate(100, seed=1), "demo")
    assert run.schema.name == "demo"
    assert Codec(run.schema).conforms(run.sample(200, seed=1)) == []


def test_columns_outside_the_schema_change_nothing(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    bare = patients.drop(columns="note")
    first, second = (fit(table, entropy=SeededEntropy(6)) for table in (patients, bare))
    np.testing.assert_array_equal(first.arrays["shares"], second.arrays["shares"])


def test_the_source_is_left_as_it_was(fit: Callable[..., Run], patients: pd.DataFrame) -> None:
    before = patients.copy(deep=True)
    fit(patients)
    pd.testing.assert_frame_equal(patients, before)


def test_a_wrong_population_costs_accuracy_only(
    fit: Callable[..., Run], patients: pd.DataFrame, every_type: Schema
) -> None:
    for population in (UNITS // 10, UNITS * 10):
        wrong = replace(every_type, population=replace(every_type.population, value=population))
        run = fit(patients, wrong)
        assert Codec(wrong).conforms(run.sample(100, seed=1)) == []
        assert run.certificate["population"] == population


def test_sample_draws_the_public_number_of_rows(made_run: Run) -> None:
    assert len(made_run.sample(seed=1)) == made_run.schema.rows.value == 700
    assert len(dpsynth.sample(made_run)) == 700
    pd.testing.assert_index_equal(made_run.sample(5, seed=1).index, pd.RangeIndex(5))


def test_without_a_seed_each_table_is_another(made_run: Run) -> None:
    assert not made_run.sample(100).equals(made_run.sample(100))


def test_privacy_parameters_have_no_default(patients: pd.DataFrame, every_type: Schema) -> None:
    call: Any = dpsynth.fit
    for left_out in ("epsilon", "delta", "dataset"):
        settings = {"epsilon": 1.0, "delta": 1e-6, "dataset": "cohort"}
        del settings[left_out]
        with pytest.raises(TypeError, match=left_out):
            call(patients, every_type, **settings)


# The certificate and the ledger ---------------------------------------------------------------


def test_what_is_charged_is_what_is_certified(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    run = fit(patients, purpose="first look")
    (entry,) = ledger.entries()
    assert (entry.status, entry.dataset, entry.purpose) == ("charged", "cohort", "first look")
    assert (entry.epsilon, entry.delta, entry.model) == (3.0, 1e-6, "independent")
    assert entry.schema_hash == every_type.hash()
    certificate = run.certificate
    assert certificate["events"] == entry.plan["events"]
    assert certificate["ledger"]["id"] == ledger.id
    assert certificate["ledger"]["entry"] == entry.id
    events = tuple(event_from_dict(event) for event in certificate["events"])
    assert composed_epsilon(events, 1e-6) <= certificate["composed_epsilon"] <= 3.0
    assert run.stamps == ()


def test_fits_on_one_dataset_add_up(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    fit(patients, epsilon=1.0)
    second = fit(patients, epsilon=0.5)
    assert second.certificate["ledger"]["fits"] == 2
    assert second.certificate["ledger"]["epsilon_total"] == 1.5
    assert ledger.spent("cohort").fits == 2 and ledger.spent("another").fits == 0


def test_stamps_say_why_a_run_may_not_be_released(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    free = fit(patients, ledger=None, without_ledger=True)
    assert free.stamps == ("no-ledger",) and free.certificate["ledger"] is None
    assert ledger.entries() == []
    both = fit(patients, without_ledger=True, entropy=SeededEntropy(1))
    assert set(both.stamps) == {"no-ledger", "seeded-entropy"}
    assert fit(patients, entropy=SeededEntropy(1)).stamps == ("seeded-entropy",)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> list[list[str]]:
    """Note, at the moment when the first row is read, what the ledger holds."""
    statuses: list[list[str]] = []
    open_table = fitting.open_table

    class Watched:
        def __init__(self, table: Any) -> None:
            self._table = table
            self.columns = table.columns

        def chunks(self, progress: Any = None) -> Iterator[pd.DataFrame]:
            statuses.append([entry.status for entry in ledger.entries()])
            yield from self._table.chunks(progress)

    def watch(data: Any, schema: Schema) -> Watched:
        return Watched(open_table(data, schema))

    monkeypatch.setattr(fitting, "open_table", watch)
    return statuses


def test_a_delta_that_allows_to_publish_a_unit_is_refused(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger
) -> None:
    with pytest.raises(InputError, match="is not below 1 over the population"):
        fit(patients, delta=0.02)
    assert ledger.entries() == []


def test_the_budget_is_reserved_before_the_first_row_is_read(
    fit: Callable[..., Run], patients: pd.DataFrame, watched: list[list[str]]
) -> None:
    fit(patients)
    assert watched == [["reading"]]


def test_no_row_is_read_when_the_ledger_refuses(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    watched: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise BudgetError("the cap is reached")

    monkeypatch.setattr(Ledger, "reserve", refuse)
    with pytest.raises(BudgetError, match="cap"):
        fit(patients)
    assert watched == []


def mistakes(tmp_path: Path) -> dict[str, tuple[dict[str, Any], type[Exception]]]:
    """Mistakes that can be seen before any row is read."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("a file, not a folder\n")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "headless.csv").write_text("a,b\n1,2\n")
    return {
        "output exists": ({"output": tmp_path / "taken"}, InputError),
        "output lies in a file": ({"output": tmp_path / "file" / "run"}, InputError),
        "output is a dangling link": ({"output": tmp_path / "dangling"}, InputError),
        "no such file": ({"data": tmp_path / "absent.csv"}, TableError),
        "no such columns": ({"data": tmp_path / "headless.csv"}, TableError),
        "unknown kind of file": ({"data": tmp_path / "file"}, TableError),
        "unknown model": ({"model": "tave"}, InputError),
        "unknown schema": ({"schema": "cardioo"}, InputError),
        "no budget": ({"epsilon": 0.0}, InputError),
        "delta of one": ({"delta": 1.0}, InputError),
        "budget too small": ({"epsilon": 1e-9, "delta": 1e-10}, InputError),
        "a name that cannot be counted": ({"dataset": "my cohort"}, InputError),
    }


@pytest.mark.parametrize(
    "mistake",
    [
        "output exists",
        "output lies in a file",
        "output is a dangling link",
        "no such file",
        "no such columns",
        "unknown kind of file",
        "unknown model",
        "unknown schema",
        "no budget",
        "delta of one",
        "budget too small",
        "a name that cannot be counted",
    ],
)
def test_a_mistake_is_refused_before_the_ledger_is_charged(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    ledger: Ledger,
    watched: list[list[str]],
    tmp_path: Path,
    mistake: str,
) -> None:
    changes, error = mistakes(tmp_path)[mistake]
    with pytest.raises(error):
        fit(**{"data": patients} | changes)
    assert ledger.entries() == []
    assert watched == []


def test_a_draft_is_refused(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    with pytest.raises(SchemaError, match="draft"):
        fit(patients, replace(every_type, draft=True))
    assert ledger.entries() == []


def broken_csv(source: Path, target: Path) -> Path:
    """The table with a row of too many fields at its end."""
    target.write_text(source.read_text() + ",".join(["SECRET"] * 30) + "\n")
    return target


def test_a_fit_that_dies_while_reading_counts_as_spent(
    fit: Callable[..., Run], sources: dict[str, Any], ledger: Ledger, tmp_path: Path
) -> None:
    damaged = broken_csv(sources["csv"], tmp_path / "damaged.csv")
    with pytest.raises(TableError, match="30 fields") as caught:
        fit(damaged, output=tmp_path / "run")
    assert "SECRET" not in str(caught.value)
    (entry,) = ledger.entries()
    assert entry.status == "failed" and entry.history[-1].note == "TableError"
    assert ledger.spent("cohort").epsilon_sum == 3.0
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".tmp*"))


def test_an_error_after_the_charge_says_what_it_cost(
    fit: Callable[..., Run], sources: dict[str, Any], tmp_path: Path
) -> None:
    """As a note of the exception, so that it reaches whoever sees the error."""
    damaged = broken_csv(sources["csv"], tmp_path / "damaged.csv")
    with pytest.raises(TableError) as caught:
        fit(damaged)
    notes = " ".join(getattr(caught.value, "__notes__", []))
    assert "epsilon 3" in notes and "cohort" in notes


def test_an_interrupt_counts_as_spent_and_leaves_nothing(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, tmp_path: Path
) -> None:
    def interrupt(stage: str, fraction: float) -> None:
        if stage == "histograms":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(patients, output=tmp_path / "run", progress=interrupt)
    (entry,) = ledger.entries()
    assert entry.status == "failed" and entry.history[-1].note == "KeyboardInterrupt"
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".tmp*"))


def test_a_refused_cell_is_noted_without_its_content(
    fit: Callable[..., Run], patients: pd.DataFrame, ledger: Ledger, every_type: Schema
) -> None:
    columns = tuple(
        replace(column, on_unknown="refuse") if column.name == "sex" else column
        for column in every_type.columns
    )
    wrong = patients.assign(sex=patients["sex"].mask(patients.index == 7, "SECRET"))
    with pytest.raises(RefusedCellError) as caught:
        fit(wrong, replace(every_type, columns=columns))
    (entry,) = ledger.entries()
    assert entry.allow_refuse and entry.history[-1].note == "refused a cell"
    assert "SECRET" not in str(caught.value)


def test_progress_tells_stages_and_fractions(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    stages: list[tuple[str, float]] = []
    fit(patients, progress=lambda stage, part: stages.append((stage, part)))
    assert list(dict.fromkeys(stage for stage, _ in stages)) == ["reading", "histograms"]
    assert all(0 <= part <= 1 for _, part in stages)
    assert ("reading", 1.0) in stages and stages[-1] == ("histograms", 1.0)


def test_a_plan_needs_no_data(every_type: Schema) -> None:
    prepared = preparation.prepare(every_type, epsilon=2.0, delta=1e-6, model="tvae")
    assert 0.98 * 2.0 < prepared.plan.epsilon <= 2.0
    again = preparation.prepare(every_type, epsilon=2.0, delta=1e-6, model="tvae")
    assert again.plan == prepared.plan
    names = [event.name for event in prepared.plan.events]
    assert names == ["one-way histograms", "two-way histograms", "DP-SGD steps"]
