"""Distances between tables by hand, and all of fidelity on the demo cohort."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Estimate, PartResult, Tables, coarse, decile_edges
from dpsynth.eval.fidelity import (
    distributions,
    mean_tvd,
    records,
    rows_told_apart,
    sdmetrics_reports,
    together,
)
from dpsynth.eval.fidelity.relations import tvd
from dpsynth.eval.overview import overview
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ...support.schema_fields import schema_field


def table(*columns: list[int]) -> np.ndarray:
    return np.column_stack(columns).astype(np.uint16)


def test_tvd_of_one_column_by_hand() -> None:
    a = table([0, 0, 1, 2])  # 1/2, 1/4, 1/4, 0
    b = table([0, 1, 1, 3])  # 1/4, 1/2, 0, 1/4
    assert tvd(a, b, [0]) == pytest.approx((1 / 4 + 1 / 4 + 1 / 4 + 1 / 4) / 2)


def test_tvd_of_tables_of_different_length() -> None:
    a = table([0, 1])  # 1/2, 1/2
    b = table([0, 0, 0, 1, 1])  # 3/5, 2/5
    assert tvd(a, b, [0]) == pytest.approx(0.1)


def test_tvd_sees_a_relation_that_no_column_shows() -> None:
    a = table([0, 0, 1, 1], [0, 0, 1, 1])
    b = table([0, 0, 1, 1], [0, 1, 0, 1])
    assert tvd(a, b, [0]) == tvd(a, b, [1]) == 0
    assert tvd(a, b, [0, 1]) == pytest.approx((1 / 4 + 1 / 4 + 1 / 4 + 1 / 4) / 2)


def test_tvd_takes_pairs_apart_whatever_their_codes() -> None:
    """(0, 12) and (1, 2) must not fall together."""
    assert tvd(table([0], [12]), table([1], [2]), [0, 1]) == 1
    assert tvd(table([0], [300]), table([300], [0]), [0, 1]) == 1


def test_tvd_is_symmetric_and_between_0_and_1() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 5, (50, 3)), rng.integers(0, 6, (70, 3))
    assert tvd(a, a, [0, 1, 2]) == 0
    assert tvd(a, b, [0, 1]) == pytest.approx(tvd(b, a, [0, 1]))
    assert 0 < tvd(a, b, [0]) <= tvd(a, b, [0, 1]) <= tvd(a, b, [0, 1, 2]) <= 1
    assert tvd(table([1, 1]), table([2]), [0]) == 1


def test_mean_tvd_takes_every_set_of_columns_once() -> None:
    a = table([0, 0, 1, 1], [0, 0, 1, 1], [7, 7, 7, 7])
    b = table([0, 0, 1, 1], [0, 1, 0, 1], [8, 8, 8, 8])
    assert mean_tvd(a, b, 1) == pytest.approx((0 + 0 + 1) / 3)
    assert mean_tvd(a, b, 2) == pytest.approx((0.5 + 1 + 1) / 3)
    assert mean_tvd(a, b, 3) == 1


def test_deciles_by_hand() -> None:
    """Cells 0 to 99, each once: the k-th decile lies at 9.9 k; 100 is the code of missing."""
    codes = table([*range(100), 100])
    (edges,) = decile_edges(codes, [100])
    assert edges is not None
    assert edges.tolist() == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]
    bins = coarse(codes, [edges])[:, 0]
    assert np.bincount(bins).tolist() == [10] * 10 + [1]
    assert bins[-1] == 10  # missing stands alone


def test_heaped_values_give_fewer_bins() -> None:
    codes = table([5] * 90 + [11] * 10)
    (edges,) = decile_edges(codes, [12])
    assert edges is not None
    assert coarse(codes, [edges])[:, 0].tolist() == [0] * 90 + [1] * 10


def test_missing_stands_alone_even_beside_the_last_cell() -> None:
    codes = table([19] * 50 + [20] * 50)  # 20 cells; 20 is missing
    edges = decile_edges(codes, [20])
    bins = coarse(codes, edges)[:, 0]
    assert len(set(bins[:50])) == 1 and len(set(bins[50:])) == 1 and bins[0] != bins[-1]


def test_columns_that_are_short_or_have_no_order_are_left_alone() -> None:
    codes = table([0, 3, 9], [40, 2, 7])
    assert decile_edges(codes, [10, 0]) == [None, None]
    np.testing.assert_array_equal(coarse(codes, [None, None]), codes)


def test_a_column_without_a_value_is_left_alone() -> None:
    assert decile_edges(table([30, 30]), [30]) == [None]


def test_the_cuts_are_those_of_the_reference() -> None:
    """A table is cut where the reference is, so that both use one set of bins."""
    (edges,) = decile_edges(table([*range(100)]), [100])
    assert edges is not None
    assert coarse(table([0, 50, 99]), [edges])[:, 0].tolist() == [0, 5, 9]


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    """Two columns that always agree, 1000 rows."""
    rng = np.random.default_rng(2)
    sex = rng.choice(["F", "M"], 1000)
    return pd.DataFrame({"sex": sex, "title": np.where(sex == "F", "Mrs", "Mr")})


@pytest.fixture(scope="module")
def schema() -> Schema:
    number = {"value": 1000, "basis": "made for this test"}
    words = {"sex": ["F", "M"], "title": ["Mrs", "Mr"]}
    return Schema.from_dict(
        {
            "fields": [
                schema_field(name, "string", "made for this test", enum=words[name], required=True)
                for name in words
            ],
            "dpsynth": {"version": 1, "population": number, "rows": number},
        }
    )


def test_overview_of_the_table_itself(pairs: pd.DataFrame, schema: Schema) -> None:
    """Half of each pair is broken up by the shuffle; a bootstrap of 1000 moves a share by .016."""
    one_way, two_way = overview(schema, pairs, pairs).values()
    assert one_way.value == two_way.value == 0
    assert one_way.ceiling == 0  # shuffling keeps each column
    assert two_way.ceiling == pytest.approx(0.5, abs=0.05)
    assert 0 < one_way.floor < 0.05 and 0 < two_way.floor < 0.05


def test_overview_sees_what_a_shuffle_breaks(pairs: pd.DataFrame, schema: Schema) -> None:
    shuffled = pairs.assign(title=pairs["title"].sample(frac=1, random_state=3).to_numpy())
    one_way, two_way = overview(schema, pairs, shuffled).values()
    assert one_way.value == 0
    assert two_way.value == pytest.approx(two_way.ceiling, abs=0.05)
    assert two_way.value > 0.4


def test_overview_of_tables_of_different_length(pairs: pd.DataFrame, schema: Schema) -> None:
    """All the women: the column is off by the share of men, counted by hand."""
    women = pairs[pairs["sex"] == "F"]
    one_way, two_way = overview(schema, pairs, women).values()
    assert one_way.value == pytest.approx((pairs["sex"] == "M").mean())
    assert two_way.value == pytest.approx((pairs["sex"] == "M").mean())


def split(rows: int, seed: int) -> pd.DataFrame:
    """Patients of the demo cohort; those of a seed above 1 have other keys."""
    frame = simulate(rows, seed=seed)
    if seed > 1:
        frame["patient_id"] = frame["patient_id"].astype(str) + f"h{seed}"
    return frame


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    """Each column on its own."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {name: frame[name].to_numpy()[rng.permutation(len(frame))] for name in frame.columns}
    )


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast classifier, where nothing depends on how good it is."""
    monkeypatch.setattr(records, "SETTINGS", {**records.SETTINGS, "max_iter": 8})


def fidelity(tables: Tables, rng: np.random.Generator, *, sdmetrics: bool = True) -> PartResult:
    """All of the part "fidelity"."""
    parts = [distributions(tables, rng), rows_told_apart(tables, rng)]
    return together([*parts, sdmetrics_reports(tables, rng)] if sdmetrics else parts)


@pytest.fixture(scope="module")
def demo() -> PartResult:
    """The demo cohort against its shuffled columns, with a holdout."""
    source = split(700, 1)
    tables = Tables.read(Schema.load("demo"), source, shuffled(source), split(700, 2))
    return fidelity(tables, np.random.default_rng(0))


def values(part: PartResult) -> dict[str, Estimate]:
    return {measure.key: measure.estimate for measure in part.measures}


@pytest.mark.smoke
def test_all_measures_and_details_are_there(demo: PartResult) -> None:
    schema = Schema.load("demo")
    columns = {f"tvd1:{column.name}" for column in schema.modelled}
    numeric = [column.name for column in schema.modelled if not column.is_categorical]
    columns |= {f"{key}:{name}" for key in ("mean", "reach") for name in (*numeric,)}
    columns |= {"mean_worst", "reach_worst"}
    published = {key for key in values(demo) if key.startswith("followed")}
    assert {key.partition(":")[0] for key in published} <= {"followed", "followed_worst"}
    columns |= published
    assert set(values(demo)) == columns | {
        *("tvd1", "tvd2", "tvd3", "correlation", "information", "missing", "patterns"),
        *("heaping", "tails", "outside", "outside_worst", "queries", "queries_worst", "c2st"),
        *("sdmetrics_quality", "sdmetrics_shapes", "sdmetrics_pairs", "sdmetrics_diagnostic"),
        *("never", "never_rows", "strongest", "levels", "patterns_unseen"),
    }
    assert set(demo.details) == {
        *("columns", "pairs", "missing_patterns", "heaping", "tails", "outside", "queries", "c2st"),
        *("sdmetrics", "embedding", "location", "followed", "followed_pairs", "unseen"),
        *("strongest", "undeclared_levels"),
    }
    assert set(demo.details["pairs"]) == {"names", "tvd", "correlation", "information"}
    assert json.loads(json.dumps(demo.details, allow_nan=False)) == demo.details
    assert all(measure.meaning.endswith(".") for measure in demo.measures)


def test_shuffled_columns_keep_their_own_distribution_and_lose_everything_else(
    demo: PartResult,
) -> None:
    found = values(demo)
    for key in ("tvd1", "missing", "heaping", "tails"):
        assert found[key].value < found[key].reference
    for key in ("information", "correlation", "patterns"):
        assert found[key].low > found[key].reference
        assert found[key].low > found[key].chance
    assert found["tvd2"].low > found["tvd2"].chance
    assert found["c2st"].low > 0.8
    assert found["c2st"].reference == pytest.approx(0.5, abs=0.08)
    assert found["sdmetrics_shapes"].value > found["sdmetrics_shapes"].reference  # so much for it
    assert found["sdmetrics_pairs"].value < found["sdmetrics_pairs"].reference


def test_every_value_has_its_size_and_its_reference(demo: PartResult) -> None:
    for key, estimate in values(demo).items():
        assert estimate.n > 1000 and estimate.reference is not None
        if not key.startswith("sdmetrics"):
            assert estimate.low is not None and estimate.low <= estimate.value <= estimate.high


@pytest.mark.long
def test_the_table_itself_is_at_distance_0_without_a_holdout() -> None:
    source = split(90, 1)
    part = fidelity(Tables.read(Schema.load("demo"), source, source), np.random.default_rng(0))
    found = values(part)
    for key in ("tvd1", "tvd2", "tvd3", "information", "correlation", "patterns", "queries_worst"):
        assert found[key].value == 0
        assert found[key].reference is None and found[key].chance > 0
    assert found["sdmetrics_quality"].value == pytest.approx(1)
    assert found["sdmetrics_quality"].chance is not None
    assert part.details["sdmetrics"]["holdout"] is None


@pytest.mark.long
def test_the_same_seed_gives_the_same_figures() -> None:
    source = split(80, 1)
    tables = Tables.read(Schema.load("demo"), source, shuffled(source), split(60, 2))
    parts = [fidelity(tables, np.random.default_rng(3), sdmetrics=False) for _ in range(2)]
    assert parts[0] == parts[1]


def test_one_synthetic_row_is_compared_as_far_as_it_goes() -> None:
    source = split(60, 1)
    tables = Tables.read(Schema.load("demo"), source, source.iloc[:1], split(60, 2))
    part = fidelity(tables, np.random.default_rng(0))
    found = values(part)
    assert found["tvd1"].n == 1 and found["tvd1"].low is None
    assert "c2st" not in found and any("c2st" in note for note in part.notes)
    json.dumps(part.details, allow_nan=False)


@pytest.mark.long
def test_columns_without_values_and_constant_ones_do_no_harm() -> None:
    schema = Schema.load("demo")
    bare = split(60, 1).assign(hba1c=None, bmi=None, ward="surgery", sbp=120, dbp=80)
    full = split(60, 3)
    for source, synthetic in ((bare, full), (full, bare), (bare, bare)):
        tables = Tables.read(schema, source, synthetic)
        part = fidelity(tables, np.random.default_rng(0), sdmetrics=synthetic is full)
        json.dumps(part.details, allow_nan=False)
        assert {"tvd1", "tvd2", "queries", "c2st", "missing"} <= set(values(part))
