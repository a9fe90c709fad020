"""Temporal rules read the tables that histories are decoded to, as they stand."""

from __future__ import annotations

import numpy as np

from dpsynth.encoding import HistoryCodec, decode_histories
from dpsynth.schema import LinkedSchema, TemporalRule

from ..support.clean_ward import tables, ward
from ..support.linked_rows import read

RULES = {
    "count(visits) == 3 and count(labs, hdl) == 3 and count(labs, smoke) == 1": True,
    "each(visits).date >= patients.index": True,
    "each(visits).date < patients.index": False,
    "next(visits).date > each(visits).date": True,
    "last(labs, hdl).value >= first(labs, hdl).value": True,
    "each(labs, smoke).value == 1 or event(stroke) >= 0": True,
    "event(mi) >= last(labs).days": True,
    "event(mi) < first(labs).days": False,
    "first(orders).drug in ('x', 'y')": True,
    "each(labs).test == 'hdl' implies each(labs).fasting == 'no'": True,
}


def test_rules_hold_of_decoded_tables() -> None:
    schema = LinkedSchema.from_dict(ward())
    histories = read(tables(), document=ward())
    decoded = decode_histories(histories, HistoryCodec(schema), np.random.default_rng(1))
    for text, holds in RULES.items():
        mine = TemporalRule.parse(text).holds(decoded, schema)
        assert len(mine) == len(histories)
        assert mine.all() if holds else not mine.all(), text
    for rule in schema.rules:
        assert rule.holds(decoded, schema).all()
