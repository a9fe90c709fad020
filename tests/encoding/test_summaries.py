"""Summaries of histories are a table of typed cells, however the source writes its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsynth.encoding import (
    Codec,
    Histories,
    HistoryCodec,
    read_histories,
    summaries,
    summary_schema,
)
from dpsynth.schema import LinkedSchema
from dpsynth.tables import open_linked, open_table

from ..support.linked_rows import InOrder, frames, patient_rows, together
from ..support.linked_tables import package


def foreign() -> dict[str, Any]:
    """The package of a source with words, dates and signs of its own."""
    document = package()
    patients = document["resources"][0]
    own = {"bounds_basis": "form"}
    patients["schema"]["fields"][3]["format"] = "%d.%m.%Y"
    patients["schema"]["fields"] += [
        {"name": "ill", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {
            "name": "size",
            "type": "number",
            "constraints": {"minimum": 0, "maximum": 9},
            "dpsynth": own | {"missing": {"refused": ["-9"]}, "censored": {"low": 1}, "step": 0.5},
        },
    ]
    patients["dpsynth"] = {"dialect": {"delimiter": ";", "decimal": ","}}
    return document


def histories() -> tuple[HistoryCodec, Histories]:
    rng = np.random.default_rng(4)
    tables = frames(together([patient_rows(f"p{number}", rng) for number in range(30)]))
    patients = tables["patients"]
    patients["index"] = ["03.02.2004"] * 30
    patients["ill"] = ["ja", "nein", ""] * 10
    patients["size"] = ["2,5", "<1", "-9", "", "9"] * 6
    schema = LinkedSchema.from_dict(foreign())
    codec = HistoryCodec(schema)
    return codec, read_histories(open_linked(tables, schema), codec, InOrder(1))


def test_a_frame_of_summaries_is_read_by_its_schema() -> None:
    """An audit opens both sides as private tables, which must be what their schema declares."""
    codec, drawn = histories()
    schema, frame = summary_schema(codec), summaries(drawn, codec)
    assert open_table(frame, schema) is not None
    read = Codec(schema).read(frame)[1]
    assert frame["ill"].tolist()[:2] == [True, False] and read["ill"].tolist()[:2] == [True, False]
    assert (read["index"].dt.strftime("%Y-%m-%d") == "2004-02-03").all()
    assert set(frame["size_status"]) == set(read["size_status"])


def test_nothing_is_lost_between_frame_and_codes() -> None:
    codec, drawn = histories()
    schema, frame = summary_schema(codec), summaries(drawn, codec)
    coded = Codec(schema)
    for name, codes in zip(coded.names, coded.encode(frame).T, strict=True):
        column = schema.column(name)
        missing = codes == coded.sizes[coded.names.index(name)] - 1
        assert not column.nullable or (missing == frame[name].isna()).all(), name
