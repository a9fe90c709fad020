"""Linked tables are opened as strictly as a single one: private cells arrive as text."""

from __future__ import annotations

import pytest

from dpsynth.errors import TableError
from dpsynth.tables import open_linked, open_synthetic_linked

from ...support.clinic import clinic_run, clinic_schema, clinic_tables


def test_keys_that_another_program_has_typed_are_refused() -> None:
    """One key that is no number would change how all others are written (P28)."""
    for name in ("patients", "labs"):
        tables = dict(clinic_tables())
        keys = [number + 0.5 for number in range(len(tables[name]))]
        tables[name] = tables[name].assign(patient=keys)
        with pytest.raises(TableError, match="patient"):
            open_linked(tables, clinic_schema())


def test_synthetic_tables_may_have_any_type() -> None:
    drawn = clinic_run().sample(10, seed=1)
    typed = {
        name: table.assign(patient=table["patient"].str.len()) for name, table in drawn.items()
    }
    assert set(open_synthetic_linked(typed, clinic_schema())) == set(drawn)
