"""An event that ends follow-up: how it is declared, and what a check says of it."""

from __future__ import annotations

import copy

import pytest

from dpsynth import inspection
from dpsynth.errors import SchemaError
from dpsynth.inspection import Level
from dpsynth.schema import LinkedSchema

from ...support.clean_ward import tables, ward


@pytest.mark.parametrize("wrong", [0, 6])
def test_it_is_expected_on_the_last_day(wrong: int) -> None:
    document, made = ward(), tables()
    document["dpsynth"]["ended_by"] = "mi"
    schema = LinkedSchema.from_dict(document)
    assert LinkedSchema.from_dict(schema.to_dict()).ended_by == "mi"
    happened = made["events"]["event"] == "mi"
    made["events"].loc[happened, "days"] = "2000"  # the end of all
    made["events"].loc[made["events"].index[happened][:wrong], "days"] = "1999"
    found = inspection.check(made, schema)
    keys = [f"{one.place}:{one.kind}" for one in found.findings]
    assert keys == ["events.days:not-last"] * (wrong > 0)
    if wrong:
        (finding,) = found.findings
        assert "(6 of 30 patients) with mi have it on another day" in finding.message
        assert finding.level is Level.SERIOUS


@pytest.mark.parametrize(
    ("change", "words"), [("no end", "needs 'end'"), ("two tables", "list 'mi'")]
)
def test_one_table_lists_it_and_there_is_an_end(change: str, words: str) -> None:
    document = ward()
    document["dpsynth"]["ended_by"] = "mi"
    if change == "no end":
        del document["dpsynth"]["end"], document["dpsynth"]["rules"]
    else:
        document["resources"].append(copy.deepcopy(document["resources"][2]) | {"name": "more"})
    with pytest.raises(SchemaError) as refused:
        LinkedSchema.from_dict(document)
    assert "dpsynth.ended_by" in str(refused.value) and words in str(refused.value)
