"""Coded histories back to tables: a frame for each, whose keys agree.

Everything here is post-processing of what a generator drew (Dwork and Roth, The Algorithmic
Foundations of Differential Privacy, 2014, Proposition 2.1); no private row is read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.linked.codec import ChildCodec, HistoryCodec
from dpsynth.encoding.linked.histories import NEVER, Histories, SeriesRows
from dpsynth.schema import (
    ChildTable,
    Column,
    LinkedSchema,
    Schema,
    published_tables,
    text_keys,
)
from dpsynth.schema.relations import DAY
from dpsynth.tables import texts_of, typed_series, typed_values

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def decode_histories(
    histories: Histories, codec: HistoryCodec, rng: np.random.Generator
) -> dict[str, pd.DataFrame]:
    """Return a frame of typed cells for each table, with the columns of `published_tables`.

    The key of a patient is her place among the histories, from 0, as a whole number in every table;
    `with_keys` gives the keys that are written. Rows stand by patient, then by day. A date is the
    patient's origin and the days since then; the row of a patient without an origin has none, and
    is left out. Times of day are not modelled: a date and time is at midnight.

    Args:
        histories: as a generator draws them.
        codec: of their schema.
        rng: draws each value among those that its code stands for.
    """
    tables = published_tables(codec.schema)
    own = codec.schema.patients
    patients = codec.patients.decode(histories.baseline, rng)
    patients[codec.schema.key] = np.arange(len(histories))
    frames = {own.name: _in_order(patients, tables[own.name])}
    origins = _origins(patients, codec.schema)
    onsets, series = iter(_by_table(histories.onsets, codec)), iter(histories.rows)
    for child in codec.children:
        name = child.child.name
        if child.child.once is not None:
            frame = _events(next(onsets), child, rng)
        else:
            frame = _rows(next(series), child, tables[name], origins, rng)
        frames[name] = _in_order(_dated(frame, child.child, tables[name], origins), tables[name])
    return frames


def with_keys(
    frames: dict[str, pd.DataFrame], schema: LinkedSchema, keys: Ints
) -> dict[str, pd.DataFrame]:
    """Return the frames with the key of each patient in place of her number, and none without one.

    Args:
        frames: as `decode_histories` returns them.
        schema: of the tables.
        keys: of each patient; -1 of those who are left out.
    """
    columns = {schema.patients.name: schema.key} | {c.name: c.key for c in schema.children}
    tables = published_tables(schema)
    keyed = {}
    for name, frame in frames.items():
        column = columns[name]
        own = keys[frame[column].to_numpy()]
        frame = frame[own >= 0].reset_index(drop=True)
        is_text = tables[name].column(column).kind.is_text
        of_rows = own[own >= 0]
        keyed[name] = frame.assign(**{column: text_keys(of_rows) if is_text else of_rows})
    return keyed


def _in_order(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    return frame[[column.name for column in schema.modelled]]


def _texts(numbers: Ints) -> npt.NDArray[np.object_]:
    return np.array([str(number) for number in numbers.tolist()], dtype=object)


def _by_table(onsets: Ints, codec: HistoryCodec) -> list[Ints]:
    """Return the columns of onsets, table by table."""
    widths = [len(one.names) for one in codec.children if one.child.once is not None]
    return np.split(onsets, np.cumsum(widths)[:-1], axis=1) if widths else []


def _events(onsets: Ints, codec: ChildCodec, rng: np.random.Generator) -> pd.DataFrame:
    """Return a row for each event of each patient, with its day."""
    child = codec.child
    assert child.once is not None and child.time is not None
    days, events = onsets.T.ravel(), np.repeat(np.arange(onsets.shape[1]), len(onsets))
    patients = np.tile(np.arange(len(onsets)), onsets.shape[1])
    kept = np.flatnonzero(days != NEVER)
    kept = kept[np.lexsort((events[kept], days[kept], patients[kept]))]
    frame = codec.codec.decode(events[kept, None].astype(np.uint16), rng)
    return frame.assign(**{child.key: patients[kept], child.time: days[kept]})


def _rows(
    series: tuple[SeriesRows, ...],
    codec: ChildCodec,
    table: Schema,
    origins: Floats | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the rows of a wide or long table, by patient and day, as coded days."""
    child = codec.child
    patients = np.concatenate([rows.patients for rows in series])
    days = np.concatenate([rows.days for rows in series])
    tests = np.repeat(np.arange(len(series)), [len(rows.patients) for rows in series])
    codes = np.concatenate([rows.values for rows in series])
    # rows of a test stand in their order already; lexsort keeps the order of equal ones
    order = np.lexsort((tests, days, patients))
    patients, days, tests, codes = patients[order], days[order], tests[order], codes[order]
    whole = np.empty((len(codes), len(codec.codec.names)), dtype=np.uint16)
    if codec.naming is not None:
        whole[:, codec.naming] = tests
    whole[:, list(codec.others)] = codes[:, codes.shape[1] - len(codec.others) :]
    beside = None
    if child.time is not None and origins is not None and child.origin is not None:
        beside = {child.time: _dates(days + origins[patients], table.column(child.time))}
    frame = codec.codec.decode(whole, rng, beside)
    frame = frame.assign(**{child.key: patients})
    if child.series is not None:
        value = child.series.value
        frame[value] = _values(codec, tests, codes[:, 0], table.column(value), rng)
    if child.time is not None:
        frame[child.time] = days
    if child.order is not None:
        starts = np.flatnonzero(np.diff(patients, prepend=-1))
        place = np.arange(len(patients)) - np.repeat(starts, np.diff([*starts, len(patients)])) + 1
        is_text = table.column(child.order).kind.is_text
        frame[child.order] = _texts(place) if is_text else place
    return frame


def _values(
    codec: ChildCodec,
    tests: Ints,
    codes: npt.NDArray[np.uint16],
    column: Column,
    rng: np.random.Generator,
) -> pd.Series:
    """Return the value of each row of a long table, decoded by its own test."""
    assert codec.child.series is not None
    kinds = [test.kind for test in codec.child.series.columns]
    numbers = np.full(len(tests), np.nan)
    texts = np.full(len(tests), None, dtype=object)
    for place, coder in enumerate(codec.tests):
        rows = np.flatnonzero(tests == place)
        cells = coder.decode(codes[rows], rng)
        if column.kind.is_text:
            texts[rows] = texts_of(cells, boolean=True)
        else:
            numbers[rows] = typed_values(cells, kinds[place])
    if column.kind.is_text:
        return pd.Series(texts)
    return typed_series(numbers, np.isnan(numbers), column)


def _origins(patients: pd.DataFrame, schema: LinkedSchema) -> Floats | None:
    """Return the day of each patient's origin since 1970-01-01; None where no table has dates."""
    if schema.origin is None:
        return None
    kind = schema.patients.column(schema.origin).kind
    days = typed_values(patients[schema.origin], kind)
    return days if kind.in_days else np.floor(days / DAY)


def _dated(
    frame: pd.DataFrame, child: ChildTable, table: Schema, origins: Floats | None
) -> pd.DataFrame:
    """Put dates in the place of days since the origin, where the table has dates."""
    if child.origin is None or child.time is None or origins is None:
        return frame
    days = frame[child.time].to_numpy() + origins[frame[child.key].to_numpy()]
    frame = frame[np.isfinite(days)].reset_index(drop=True)
    return frame.assign(**{child.time: _dates(days[np.isfinite(days)], table.column(child.time))})


def _dates(days: Floats, column: Column) -> pd.Series:
    """Return days since 1970-01-01 as dates; missing where a patient has no origin."""
    gone = ~np.isfinite(days)
    values = np.where(gone, 0.0, days) * (1 if column.kind.in_days else DAY)
    return typed_series(values, gone, column)
