"""A certificate says of every linked table how many rows of a patient count, and which ones."""

from __future__ import annotations

from dpsynth.certificate import bounds_of
from dpsynth.schema import LinkedSchema

from ..support.clinic import clinic_schema


def test_rows_that_are_consecutive_are_not_called_random() -> None:
    document = clinic_schema().to_dict()
    visits = next(one for one in document["resources"] if one["name"] == "visits")
    visits["dpsynth"]["keep"] = "window"
    bounds = {one.name: one for one in bounds_of(LinkedSchema.from_dict(document))}
    assert list(bounds) == list(clinic_schema().table_names)
    assert bounds["visits"].keep == "window"
    assert bounds["visits"].words == "at most 24 rows of table visits, consecutive ones"
    assert bounds["labs"].keep == "random"
