"""A date of a row that counts from the row's own time: a discharge after its admission."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from dpsynth.errors import SchemaError
from dpsynth.schema import LinkedSchema, published_tables

from ...support.linked_tables import package
from ...support.linked_tables import stays as with_stays

VISITS = "resources[3]"


def mistakes(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SchemaError) as caught:
        LinkedSchema.from_dict(document)
    return {problem.place: problem.message for problem in caught.value.problems}


def field(document: dict[str, Any], name: str) -> dict[str, Any]:
    fields = document["resources"][3]["schema"]["fields"]
    return next(one for one in fields if one["name"] == name)


def test_the_time_stays_unmodelled_and_gives_the_interval_its_bounds() -> None:
    schema = LinkedSchema.from_dict(with_stays())
    visits = schema.child("visits").schema
    assert not visits.column("date").modelled and visits.column("date").minimum is None
    left = published_tables(schema)["visits"].column("left")
    assert left.interval is not None and left.interval.base == "date"
    # the window reaches ten years beyond the origins of 2000 to 2010, and a stay 60 days more
    assert left.minimum == date(1990, 1, 3)
    assert left.maximum == date(2020, 12, 29) + (date(2021, 3, 1) - date(2020, 12, 31))
    assert published_tables(schema)["visits"].column("date").maximum == date(2020, 12, 29)


def test_it_is_written_and_read_as_the_same_schema() -> None:
    schema = LinkedSchema.from_dict(with_stays())
    again = LinkedSchema.from_dict(schema.to_dict())
    assert again == schema and again.hash() == schema.hash()
    assert "constraints" not in field(schema.to_dict(), "date")
    assert field(schema.to_dict(), "left")["dpsynth"]["after"] == "date"


def test_other_packages_keep_their_hash() -> None:
    """The time of a table without such a date is read as before."""
    document = package()
    field(document, "date")["constraints"] = {"minimum": "1990-01-01", "maximum": "2030-12-31"}
    kept = LinkedSchema.from_dict(document).child("visits").schema.column("date")
    document = with_stays()
    field(document, "date")["constraints"] = {"minimum": "1990-01-01", "maximum": "2030-12-31"}
    assert LinkedSchema.from_dict(document).child("visits").schema.column("date") == kept


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"after": "daet"}, "schema.fields[5] 'left'.dpsynth.after", "there is no column 'daet'"),
        ({"after": "visit"}, "schema.fields[5] 'left'.dpsynth.after", "has role drop"),
        ({"longest": None}, "schema.fields[5] 'left'.dpsynth.longest", "is missing"),
    ],
)
def test_mistakes_are_noted_at_their_place(change: dict[str, Any], place: str, words: str) -> None:
    document = with_stays()
    own = field(document, "left")["dpsynth"]
    own |= change
    if own["longest"] is None:
        del own["longest"]
    found = mistakes(document)
    assert words in found[f"{VISITS}.{place}"]


def test_days_are_no_dates() -> None:
    document = with_stays()
    field(document, "date")["type"] = "integer"
    del document["resources"][3]["dpsynth"]["origin"]
    assert "a date or datetime is expected" in str(mistakes(document))


def test_a_mistake_in_the_field_of_the_time() -> None:
    document = with_stays()
    field(document, "date")["fromat"] = "%d.%m.%Y"
    found = mistakes(document)
    assert list(found) == [f"{VISITS}.schema.fields[1] 'date'.fromat"]


def test_a_rule_of_the_rows_does_not_see_the_time() -> None:
    document = with_stays()
    document["resources"][3]["dpsynth"]["rules"] = ["left >= date"]
    found = mistakes(document)
    assert "write a temporal rule" in found[f"{VISITS}.dpsynth.rules[0]"]
