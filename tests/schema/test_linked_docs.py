"""The examples of docs/cohorts.md are schemas, or parts of one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.schema import LinkedSchema

from ..support.dated_tables import dated, in_hours
from ..support.declared_tables import declared, vitals

PAGE = Path(__file__).parents[2] / "docs/cohorts.md"


def blocks() -> list[Any]:
    """What the page shows as YAML: the whole example, then a part for each declaration."""
    texts = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [parse_yaml(text.encode(), "docs/cohorts.md") for text in texts]


def test_the_example_is_complete() -> None:
    schema = LinkedSchema.from_dict(blocks()[0])
    schema.require_complete()
    assert [table.kind for table in schema.children] == ["long", "once", "wide"]
    assert LinkedSchema.from_dict(schema.to_dict()) == schema


def test_parts_of_the_section_on_declarations_can_be_read() -> None:
    [drugs], [visits], [hours], implied, last, values = blocks()[1:7]
    document = declared()
    tables = {one["name"]: one for one in document["resources"]}
    tables["drugs"]["dpsynth"] = drugs["dpsynth"]
    own = tables["visits"]["dpsynth"]
    del own["rows"], visits["dpsynth"]["time"]  # the visits of the test have dates
    own |= visits["dpsynth"]
    tables["visits"]["schema"]["fields"][2:] = values["fields"]
    tables["events"]["schema"]["fields"][2]["constraints"]["enum"] = [
        *("infarction", "heart_disease", "stroke", "brain_scan", "death"),
    ]
    document["dpsynth"] |= implied["dpsynth"] | last["dpsynth"]
    document["dpsynth"]["end"] = "followed"
    schema = LinkedSchema.from_dict(document)
    assert schema.child("visits").cumulative == ("smoked", "stage", "children")
    assert schema.child("visits").schedule and schema.child("drugs").inside and schema.last_day
    assert [one.same_day for one in schema.implies] == [False, True]
    icu = vitals()
    icu["resources"][1]["dpsynth"] = hours["dpsynth"]
    assert LinkedSchema.from_dict(icu).child("vitals").exactly == 24


def test_parts_of_the_section_on_calendar_time_can_be_read() -> None:
    [visits], [stays], hours = blocks()[7:]
    document = in_hours()
    document["dpsynth"] |= hours["dpsynth"] | {"end": "left"}
    window = LinkedSchema.from_dict(document).window
    assert window is not None and window.noun == "hour" and hours["dpsynth"]["end"] == "discharged"
    document = dated((), "date")
    document["resources"][3]["dpsynth"] = visits["dpsynth"]
    assert str(LinkedSchema.from_dict(document).start) == "2020-01-01"
    document = dated()
    own = document["resources"][3]
    own["dpsynth"] = stays["dpsynth"]
    own["schema"]["fields"][1:2] = stays["schema"]["fields"]
    schema = LinkedSchema.from_dict(document).child("visits")
    assert schema.calendar == ("weekday", "hour")
    assert schema.schema.column("discharged").calendar == ("hour",)
