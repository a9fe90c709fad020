"""P27: an error of a library is replaced, not chained: a traceback would show what it quotes.

The check: Arrow fails with a canary in its message wherever it reads; the whole text that Python
would print for the error that comes out, those above it included, holds no canary.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table

CANARY = "Xq7" + "Zanzibar"  # in two parts: a traceback shows lines of this file
COLUMNS = ("patient", "visited", "sex", "ward", "weight", "age", "admitted")


def failing(*arguments: Any, **settings: Any) -> Any:
    raise pa.ArrowInvalid("cannot convert " + CANARY)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(dict.fromkeys(COLUMNS, ["1"])), path)
    return path


def shown(read: Callable[[], object]) -> str:
    """What Python prints of the error."""
    with pytest.raises(TableError) as caught:
        read()
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("place", ["cells_of", "pq.ParquetFile", "pq.ParquetFile.iter_batches"])
def test_what_arrow_says_is_not_in_the_traceback(
    place: str, table: Path, clinic: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"dpsynth.tables.parquet.{place}", failing)
    if place == "pq.ParquetFile.iter_batches":  # Arrow fails at the first batch, not before
        monkeypatch.setattr(f"dpsynth.tables.parquet.{place}", lazily_failing)
    trace = shown(lambda: list(open_table(table, clinic).chunks()))
    assert CANARY not in trace and "Arrow" not in trace


def lazily_failing(*arguments: Any, **settings: Any) -> Any:
    yield failing()


def test_a_chained_error_is_caught() -> None:
    """Broken twin: the error is replaced, and Python prints the one before it all the same."""

    def chaining() -> None:
        try:
            failing()
        except pa.ArrowException:
            raise TableError("damaged")  # noqa: B904

    assert CANARY in shown(chaining)
