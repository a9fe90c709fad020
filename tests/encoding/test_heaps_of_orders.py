"""The upper column of an order is written as its own values are, and not as its gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import (
    Codec,
    Cohort,
    Histories,
    HistoryCodec,
    Roundings,
    SeriesRows,
    coder_of,
    decode_histories,
)
from dpsynth.encoding.column_codecs import NumericCoder
from dpsynth.encoding.grain import NONE, Grains, landed
from dpsynth.models import Domain
from dpsynth.models.grain_settings import measured
from dpsynth.models.histories import domain_of
from dpsynth.models.histories.roundings import _rates
from dpsynth.models.histories.row_grains import counted_of
from dpsynth.models.marginals import GrainCounts, MergedBins, followed, points_of
from dpsynth.models.marginals.grains import UNITS, grained, points_by_grain
from dpsynth.schema import LinkedSchema, Schema

SEX = {
    "name": "sex",
    "type": "string",
    "constraints": {"enum": ["F", "M"], "required": True},
    "dpsynth": {"bounds_basis": "form"},
}
RULES = [{"order": "low < high <= top"}]
BOUNDS = {"low": (30, 180, True), "high": (60, 260, False), "top": (60, 300, False)}


def schema(rules: Any = RULES, bounds: Any = BOUNDS, **own: Any) -> Schema:
    fields = [
        {
            "name": name,
            "type": "integer",
            "constraints": {"minimum": low, "maximum": high, "required": required},
            "dpsynth": {"bounds_basis": "cuff"} | own,
        }
        for name, (low, high, required) in bounds.items()
    ]
    size = {"value": 900, "basis": "report"}
    facts = {"version": 1, "population": size, "rows": size, "rules": rules}
    return Schema.from_dict({"name": "ward", "fields": fields, "dpsynth": facts})


def rows(number: int, seed: int = 0) -> pd.DataFrame:
    """Pressures, some of them missing, and some that break the order."""
    rng = np.random.default_rng(seed)
    low = rng.integers(30, 181, number)
    high = np.clip(low + rng.integers(-5, 90, number), 60, 260)
    top = np.clip(high + rng.integers(-5, 50, number), 60, 300)
    frame = pd.DataFrame({"low": low, "high": high, "top": top}).astype(str)
    return frame.mask(rng.random(frame.shape) < [0.0, 0.1, 0.1], "")


def test_the_cell_of_a_row_is_the_grain_of_the_value_that_it_publishes() -> None:
    facts = schema()
    codec, frame = Codec(facts), rows(3000)
    codes = codec.encode(frame)
    domain = Domain.of(facts, codec)
    assert [feature.name for feature in domain.features] == ["low", "high", "top"]
    assert [bool(feature.grains) for feature in domain.features] == [True, False, False]
    assert measured(domain) == [0, 1, 2]
    cohort = Cohort(codes[:, None], np.ones((len(codes), 1), dtype=bool))
    cells = grained(cohort, domain).codes[:, 0]
    published = codec.decode(codes, np.random.default_rng(0))
    for place, name in enumerate(("low", "high", "top")):
        coder = coder_of(facts.column(name), ".")
        assert isinstance(coder, NumericCoder)
        grains = Grains.of(coder)
        assert grains is not None
        values = published[name].to_numpy(dtype=float, na_value=np.nan)
        missing = np.isnan(values)
        own = grains.of_points[coder.lattice.positions(np.where(missing, 0.0, values))]
        wanted = np.where(missing | (own == NONE), len(grains.units), own)
        assert cells[:, place].tolist() == wanted.tolist()
        assert domain.features[place].units == len(grains.units)
    alone = grained(Cohort(cohort.codes[7:8], cohort.mask[7:8]), domain)  # whoever else there is
    assert alone.codes[0, 0].tolist() == cells[7].tolist()


def test_codes_of_a_gap_keep_their_shares() -> None:
    facts = schema()
    domain = Domain.of(facts, Codec(facts))
    numbers = [np.array([900.0, *[0.0] * (feature.units - 1)]) for feature in domain.features]
    counts = GrainCounts(tuple(numbers), 5.0, 1.0)
    assert points_by_grain(domain.features[1]).sum() == 201 - 2  # both bounds have none
    assert counts.weights(domain).shape == (3, UNITS)
    points = points_of(domain, counts)
    assert points is not None and points[0] is not None and points[1] is None is points[2]
    columns = [
        MergedBins(np.zeros(size, np.uint16), np.full(size, 1 / size)) for size in domain.sizes
    ]
    nothing = [np.zeros(feature.cells) for feature in domain.features]
    found = followed(columns, domain, counts, nothing, 5.0)
    assert found[1] is columns[1] and found[0] is not columns[0]


def heaped(facts: Schema, share: float) -> np.ndarray:
    """Weights by which so much of each column is a multiple of ten, and the others are even."""
    weights = np.ones((3, UNITS))
    for place, column in enumerate(facts.modelled):
        coder = coder_of(column, ".")
        assert isinstance(coder, NumericCoder)
        grains = Grains.of(coder)
        assert grains is not None
        own = np.bincount(grains.of_points[grains.of_points >= 0], minlength=len(grains.units))
        tens = np.array(grains.units) % 10 == 0
        for some, part in ((tens, share), (~tens, 1 - share)):
            weights[place, : len(own)][some] = part * own.sum() / own[some].sum()
    return weights


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_drawn_rows_land_on_round_values_and_keep_their_order(share: float) -> None:
    facts = schema()
    codec = Codec(facts)
    codes = codec.encode(rows(6000, seed=1))
    plain = codec.decode(codes, np.random.default_rng(0))
    found = codec.following_grains(heaped(facts, share)).decode(codes, np.random.default_rng(0))
    assert (found["low"] == plain["low"]).all()  # each code stands for one value
    for name in ("high", "top"):
        own = found[name].dropna().astype(int)
        inside = own[(own > 60) & (own < BOUNDS[name][1]) & (own != found["low"][own.index] + 1)]
        assert (inside % 10 == 0).mean() == pytest.approx(share, abs=0.06)
        assert (found[name].isna() == plain[name].isna()).all()
        both = found[name].notna()
        assert (found[name][both] > found["low"][both]).all() or name == "top"
        moved = (found["high"] - plain["high"]).dropna().abs()
        assert moved.max() <= 15
    pair = found.dropna()
    assert (pair["high"] > pair["low"]).all() and (pair["top"] >= pair["high"]).all()
    assert (codec.conforms(found), codec.conforms(plain)) == ([], [])


def test_a_gap_is_no_longer_than_declared() -> None:
    facts = schema([{"order": "low < high", "longest": 43}])
    codec = Codec(facts)
    codes = codec.encode(rows(4000, seed=2))
    found = codec.following_grains(heaped(facts, 1.0)).decode(codes, np.random.default_rng(0))
    gaps = (found["high"] - np.maximum(found["low"] + 1, 60)).dropna()
    assert gaps.min() >= 0 and gaps.max() <= 43


def test_columns_of_too_many_values_are_left_as_they_are() -> None:
    wide = {"low": (0, 9000, True), "high": (0, 9500, True)}
    facts = schema([{"order": "low <= high"}], wide)
    assert Codec(facts).raised == (None, None)
    few = {"low": (0, 20, True), "high": (0, 30, True), "top": (0, 300, True)}
    codec = Codec(schema([{"order": "low <= high <= top"}], few))
    assert codec.raised == (
        None,
        None,
        None,
    )  # the value of `high` is not counted, so neither is top
    assert codec.following_grains(np.ones((3, UNITS)))._heaps == {}


def test_nothing_moves_without_weights_or_rows() -> None:
    facts = schema()
    coder = coder_of(facts.column("high"), ".")
    assert isinstance(coder, NumericCoder)
    points, rng = np.arange(5, 50), np.random.default_rng(0)
    ends = np.zeros(45, np.int64), np.full(45, 200)
    assert landed(points, ends, coder, np.ones(UNITS), rng).tolist() == points.tolist()
    none = np.empty(0, np.int64)
    assert len(landed(none, (none, none), coder, np.zeros(UNITS), rng)) == 0


def test_rows_of_linked_tables_land_on_them_too() -> None:
    """An order of a table of rows: what is counted of it, and how it is drawn."""
    key = {"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}
    flat = schema().to_dict()
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": "integer"}, *flat["fields"]]
    own = {"order": "n", "max_rows": {"value": 4, "basis": "policy"}, "rules": RULES}
    visits = {"foreignKeys": [key], "fields": fields}
    patients = {"primaryKey": "id", "fields": [{"name": "id", "type": "string"}, SEX]}
    size = {"value": 900, "basis": "report"}
    package = LinkedSchema.from_dict(
        {
            "name": "ward",
            "resources": [
                {"name": "patients", "schema": patients},
                {"name": "visits", "schema": visits, "dpsynth": own},
            ],
            "dpsynth": {"version": 1, "patients": "patients", "population": size},
        }
    )
    codec = HistoryCodec(package)
    [counted] = counted_of(domain_of(codec))
    assert counted.columns == [0, 1, 2] and counted.event.histograms == 3
    values = codec.children[0].codec.encode(rows(2000, seed=3))
    who = np.repeat(np.arange(500), 4)
    empty = np.empty((500, 0), dtype=np.int64)
    series = ((SeriesRows(who, np.zeros(2000, np.int64), values),),)
    histories = Histories(np.zeros((500, 1), np.uint16), np.zeros(500, np.int64), empty, series)
    weights = heaped(schema(), 1.0)
    weights[0] = 0.0  # rates of a column that is no gap
    found = codec.following(Roundings(np.zeros((1, UNITS)), ((weights,),)))
    drawn = decode_histories(histories, found, np.random.default_rng(0))["visits"]
    tops = drawn["top"].dropna().astype(int)
    assert (tops % 10 == 0).mean() > 0.9
    table = domain_of(codec).tables[0].series[0].values
    tens = np.array([900.0, *[0.0] * (table[1].units - 1)])
    counts = GrainCounts((np.empty(0), tens, np.empty(0)), 5.0, 1.0)
    weighed = (values, np.ones(2000, np.int64))
    assert (_rates(table, counts, weighed, weighed)[1] != 1.0).any()
