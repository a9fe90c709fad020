"""The parts of a forecast: assumed rows, distances, subgroups, and the search of an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dpsynth.encoding import Codec
from dpsynth.eval.core import Bins
from dpsynth.eval.fidelity import mean_tvd
from dpsynth.forecasts import Errors
from dpsynth.forecasts.errors import Subgroups
from dpsynth.forecasts.forecast import ErrorCurve, _cohort, _row_counts
from dpsynth.forecasts.rows import assumed
from dpsynth.models import Assumption, Domain
from dpsynth.models.assumed_shares import NAMES
from dpsynth.schema import Schema

from ..support.forecast_table import forecast_rows, forecast_schema


def test_distances_are_those_of_an_evaluation() -> None:
    codec = Codec(forecast_schema())
    source, synthetic = (codec.encode(forecast_rows(500, seed)) for seed in (1, 2))
    errors = Errors.between(source, synthetic, codec)
    bins = Bins.of(source, codec)
    a, b = bins.cut(source).T, bins.cut(synthetic).T
    assert errors.mean_of_columns == pytest.approx(mean_tvd(a, b, 1))
    assert errors.mean_of_pairs == pytest.approx(mean_tvd(a, b, 2))
    same = Errors.between(source, source, codec)
    assert same.mean_of_pairs == 0 and (same.subgroups.kept == 1).all()
    assert not same.subgroups.inside.any() and same.subgroups.chance.any()


@pytest.mark.parametrize("name", NAMES)
def test_assumed_rows_follow_their_shares(name: str) -> None:
    schema = forecast_schema()
    codec = Codec(schema)
    nullable = tuple(column.nullable for column in codec.schema.modelled)
    assumption = Assumption.of(name, Domain.of(schema, codec), nullable)
    drawn = assumption.rows(40_000, np.random.default_rng(1))
    for place, shares in enumerate(assumption.shares):
        assert len(shares) == codec.sizes[place] and shares.sum() == pytest.approx(1)
        found = np.bincount(drawn[:, place], minlength=len(shares)) / len(drawn)
        assert np.abs(found - shares).sum() / 2 < 0.03


def test_assumed_rows_keep_the_rules_of_the_schema() -> None:
    for schema in (Schema.load("demo"), forecast_schema(rules=["age >= 40", "stay < 20"])):
        codec = Codec(schema)
        for source in assumed(schema, codec):
            rows = source.rows(500, np.random.default_rng(1))
            frame = codec.decode(rows, np.random.default_rng(2))
            assert len(rows) == 500
            assert all(rule.holds(frame).mean() > 0.99 for rule in schema.rules)


def test_rules_that_no_assumed_row_keeps_are_left_out() -> None:
    schema = forecast_schema(rules=["age < 0"])
    source = assumed(schema, Codec(schema))[0]
    assert len(source.rows(50, np.random.default_rng(1))) == 50


@pytest.mark.parametrize(("rows", "mean"), [(400, 1.0), (600, 1.5), (1200, 3.0), (9000, 4.0)])
def test_units_have_as_many_rows_as_the_public_facts_say(rows: int, mean: float) -> None:
    count = {"value": rows, "basis": "made for this test"}
    most = {"value": 4, "basis": "made for this test"}
    document = forecast_schema().to_dict()
    document["fields"].insert(0, {"name": "key", "type": "string", "dpsynth": {"role": "unit"}})
    document["dpsynth"] |= {"rows": count, "max_rows": most}
    schema = Schema.from_dict(document)
    shares = _row_counts(schema)
    assert shares.sum() == pytest.approx(1) and shares @ np.arange(1, 5) == pytest.approx(mean)
    source = assumed(schema, Codec(schema))[0]
    cohort = _cohort(schema, source, 400, np.random.default_rng(1))
    assert cohort.mask.sum(axis=1).min() >= 1 and not cohort.codes[~cohort.mask].any()
    assert cohort.mask.sum() == pytest.approx(400 * mean, rel=0.1)
    assert (cohort.mask[:, :-1] >= cohort.mask[:, 1:]).all()  # padding comes last


def subgroups(survives: Callable[[int], bool]) -> Subgroups:
    """Subgroups of 5 to 500 rows, of which some survive."""
    rows = np.arange(5, 500)
    kept = np.where([survives(size) for size in rows], 1.1, 2.1)
    nothing = np.empty(0)
    ones = np.ones(len(rows), dtype=np.int64)
    return Subgroups(rows, kept, ones, np.empty(0, dtype=np.int64), nothing, nothing)


def test_the_smallest_subgroup_that_survives_is_found() -> None:
    assert subgroups(lambda size: size >= 100).smallest(1) == pytest.approx(100, rel=0.25)
    assert subgroups(lambda size: True).smallest(1) == 5
    assert subgroups(lambda size: False).smallest(1) is None
    assert subgroups(lambda size: True).smallest(2) is None  # there are none of two columns
    sizes = {size["rows"]: size["survive"] for size in subgroups(lambda n: n >= 100).by_size()}
    assert sizes[10] == 0 and sizes[300] == 1


@pytest.mark.parametrize("wanted", [0.5, 0.02, 0.004])
def test_a_search_ends_close_below_the_wanted_error(wanted: float) -> None:
    """The error falls as 1 / place, down to a floor."""

    def error(place: float) -> float:
        return float(np.hypot(0.003, 0.02 / place))

    curve = ErrorCurve(0.01, 20.0, whole=False)
    for place in (1.0, 3.0, 9.0):
        curve.add(place, error(place))
    place, found, reached = curve.search(wanted, error)
    assert reached and found == error(place) and 0.8 * wanted < found <= wanted
    assert place == float(f"{place:.2g}")


def test_a_search_stops_at_its_bounds() -> None:
    curve = ErrorCurve(200, 5000, whole=True)
    curve.add(400, 0.1)
    place, found, reached = curve.search(0.001, lambda units: 40 / units)
    assert (place, reached) == (5000, False) and found == pytest.approx(0.008)
    place, _, reached = curve.search(0.9, lambda units: 40 / units)
    assert (place, reached) == (200, True)


def test_errors_that_rise_by_chance_are_levelled() -> None:
    curve = ErrorCurve(0.01, 20.0, whole=False)
    for place, error in ((1.0, 0.02), (2.0, 0.01), (4.0, 0.0144), (8.0, 0.01)):
        curve.add(place, error)
    assert [error for _, error in curve.levelled()] == pytest.approx([0.02, 0.012, 0.012, 0.01])
