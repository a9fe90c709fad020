"""A run from the URL of a database or a sheet: how settings keep it, and that it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate, with_query
from dpsynth.workflow import Settings
from dpsynth.workflow.work_folder import SETTINGS

from ..support.workflow_office import Office, states
from .test_settings import LEAST, kept

URL = "postgresql://office@host/db#ward.stays"


def test_a_url_is_kept_as_it_is_and_a_query_s_file_like_a_path(tmp_path: Path) -> None:
    loaded = Settings.load(kept(tmp_path / "a", LEAST | {"data": URL}))
    assert loaded.data == URL and loaded.to_dict(tmp_path)["data"] == URL
    query = with_query("postgresql://office:${WARD}@host/db", "stays.sql")
    with pytest.raises(InputError, match="WARD, which is not set"):
        Settings.load(kept(tmp_path / "b", LEAST | {"data": query}))
    (tmp_path / "a" / "stays.sql").write_text("SELECT 1")
    named = LEAST | {"data": with_query("postgresql://host/db", "stays.sql")}
    loaded = Settings.load(kept(tmp_path / "a", named))
    assert str(loaded.data) == f"postgresql://host/db#@{tmp_path}/a/stays.sql"
    assert loaded.to_dict(tmp_path / "a")["data"] == "postgresql://host/db#@stays.sql"
    loaded.save(tmp_path / "a" / "again.yaml")
    assert Settings.load(tmp_path / "a" / "again.yaml") == loaded
    secret = LEAST | {"data": "postgresql://office:hunter2@host/db#stays"}
    with pytest.raises(InputError, match="holds a password") as refused:
        Settings.load(kept(tmp_path / "c", secret))
    assert "hunter2" not in str(refused.value)


@pytest.mark.long
def test_a_run_from_a_database_splits_it_once_and_goes_on(office: Office, server: Any) -> None:
    address = server.new()
    frame = pd.read_csv(office.settings.data, dtype=str)
    engine = sa.create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
    frame.to_sql("stays", engine, index=False)
    data = f"{address}#public.stays"
    with pytest.raises(KeyboardInterrupt):
        office.run(data=data, at="sample")
    with engine.begin() as connection:  # what is fitted is the copy that was split
        connection.exec_driver_sql("DROP TABLE stays")
    engine.dispose()
    outcome = office.run(data=data)
    assert states(outcome)["split"] == states(outcome)["fit"] == "kept"
    assert outcome.order.train.suffix == ".parquet"
    assert data in (office.work / SETTINGS).read_text()
    assert office.statuses == ["charged"]
    with pytest.raises(InputError, match="data"):
        office.run(data=f"{address}#public.others")


def test_a_run_from_a_sheet(office: Office, tmp_path: Path) -> None:
    frame = simulate(100, seed=4).astype(object)
    frame["patient_id"] = frame["patient_id"].astype(str)
    frame.to_excel(tmp_path / "extract.xlsx", index=False, sheet_name="Stays")
    outcome = office.run(data=Path(f"{tmp_path}/extract.xlsx#Stays"))
    assert states(outcome)["release"] == "done"
    assert len(Ledger().entries()) == 1
