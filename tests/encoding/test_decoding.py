"""Coded histories become tables whose keys agree, and which are read as the same histories."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from dpsynth.encoding import (
    Histories,
    HistoryCodec,
    SeriesRows,
    decode_histories,
    read_histories,
    with_keys,
)
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import open_linked, open_synthetic_linked, written_schema

from ..support.clinic import clinic_codec, clinic_schema, clinic_tables
from ..support.linked_rows import InOrder, frames, patient_rows
from ..support.linked_tables import package


def histories_of_clinic() -> Histories:
    tables = open_linked(clinic_tables(), clinic_schema())
    return read_histories(tables, clinic_codec(), SeededEntropy(1))


def mixed() -> tuple[LinkedSchema, Histories]:
    """Return rows of a package with wide, long and once-only tables, dates, days and orders."""
    document = package()
    document["resources"][0]["schema"]["fields"][3]["constraints"].pop("required")
    schema, rng = LinkedSchema.from_dict(document), np.random.default_rng(3)
    rows: dict[str, list[list[str]]] = {}
    for number in range(60):
        for name, more in patient_rows(f"p{number:02d}", rng).items():
            rows.setdefault(name, []).extend(more)
    tables = open_linked(frames(rows), schema)
    return schema, read_histories(tables, HistoryCodec(schema), InOrder(1))


def values_of(rows: SeriesRows) -> list[tuple[int, ...]]:
    return list(map(tuple, np.column_stack([rows.patients, rows.values]).tolist()))


def as_rows(
    rows: SeriesRows, kept: npt.NDArray[np.bool_] | None = None
) -> Counter[tuple[int, ...]]:
    table = np.column_stack([rows.patients, rows.days, rows.values])
    return Counter(map(tuple, (table if kept is None else table[kept]).tolist()))


@pytest.mark.parametrize("case", ["clinic", "mixed"])
def test_tables_are_read_as_the_histories_that_they_were_decoded_from(case: str) -> None:
    schema, drawn = (clinic_schema(), histories_of_clinic()) if case == "clinic" else mixed()
    keys = np.arange(len(drawn)) + 1
    tables = with_keys(
        decode_histories(drawn, HistoryCodec(schema), np.random.default_rng(2)), schema, keys
    )
    codec = HistoryCodec(written_schema(schema))
    back = read_histories(open_synthetic_linked(tables, schema), codec, InOrder(1))
    assert np.array_equal(back.baseline, drawn.baseline)
    for before, after in zip(drawn.rows, back.rows, strict=True):
        for one, other in zip(before, after, strict=True):
            assert np.array_equal(one.patients, other.patients)
            # the end of follow-up is drawn within its code: only days after it are moved
            kept = one.days <= back.ends[one.patients]
            assert kept.mean() > 0.6
            assert as_rows(one, kept) <= as_rows(other)
            assert sorted(values_of(one)) == sorted(values_of(other))


def test_frames_have_the_columns_that_are_written_and_types_that_fit() -> None:
    schema = clinic_schema()
    tables = decode_histories(histories_of_clinic(), clinic_codec(), np.random.default_rng(1))
    for name, written in published_tables(schema).items():
        assert list(tables[name]) == [column.name for column in written.modelled]
    visits = tables["visits"]
    assert visits["date"].dtype.kind == "M"
    assert visits.groupby("patient")["date"].is_monotonic_increasing.all()
    assert set(tables["labs"]["test"]) == {"hba1c", "creatinine"}
    assert not tables["events"].duplicated(["patient", "event"]).any()


def test_patients_who_are_left_out_take_all_their_rows_with_them() -> None:
    schema, drawn = clinic_schema(), histories_of_clinic()
    tables = decode_histories(drawn, clinic_codec(), np.random.default_rng(1))
    keys = np.where(np.arange(len(drawn)) % 2 == 0, np.arange(len(drawn)), -1)
    kept = with_keys(tables, schema, keys)
    for name, table in kept.items():
        numbers = table["patient"].str.removeprefix("synthetic-").astype(int)
        assert (numbers % 2 == 0).all()
        assert len(table) == (tables[name]["patient"] % 2 == 0).sum()


def test_a_patient_without_an_origin_has_no_dated_rows() -> None:
    schema, drawn = mixed()
    codec = HistoryCodec(schema)
    place = codec.patients.names.index("index")
    drawn.baseline[0, place] = codec.patients.sizes[place] - 1  # missing
    tables = decode_histories(drawn, codec, np.random.default_rng(1))
    assert tables["patients"]["index"].isna()[0]
    assert 0 not in set(tables["visits"]["id"])
    assert 0 in set(tables["labs"]["id"])
