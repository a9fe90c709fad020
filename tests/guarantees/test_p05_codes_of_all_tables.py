"""P05 in linked tables: the rare codes of one patient, in all of her tables together.

The check, with delta = 1e-2: 1 500 patients have codes that nobody else has, in the table of
patients and in three tables of rows. One of a patient's codes is published no more often than delta
allows (the lower Clopper-Pearson bound at 99.9 %). The broken twins: a patient is somebody else in
each table, and a threshold as if she were in one table alone. And what was neither declared nor
found is in no file of a run and no synthetic table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate
from dpsynth.encoding import code_search, find_codes_of_patients
from dpsynth.errors import InputError, SchemaError
from dpsynth.models import discovery_event
from dpsynth.models.histories import planned_histories
from dpsynth.models.histories.networks import shares_of_linked
from dpsynth.privacy import CodeDiscovery, Occurrences, PrivacyBudget, SeededEntropy
from dpsynth.schema import LinkedSchema, tables_as_declared, tables_with_found
from dpsynth.synthesis import Run, fit, prepare
from dpsynth.tables import open_linked

from ..support.discovered_cohort import CODE, ICD, ROWS, cohort_of, discovered_cohort
from ..support.short_training import shorten_histories

TABLES = ("stays", "drugs", "tests")
SCHEMA = discovered_cohort(TABLES)
RUNS, CONFIDENCE, DELTA = 1_500, 0.999, 1e-2
BUDGET = PrivacyBudget(3.0, 1e-6)


def event_of(schema: LinkedSchema) -> CodeDiscovery:
    event = discovery_event(schema, BUDGET)
    assert event is not None
    return replace(event, delta=DELTA, noise_multiplier=1.2)


EVENT = event_of(SCHEMA)


def alone(patients: int, rows: int = ROWS) -> dict[str, pd.DataFrame]:
    """Patients each of whose codes nobody else has."""
    letters = product(ascii_uppercase, ascii_uppercase, range(1000))
    names = (f"{one}{other}{number:03}" for one, other, number in letters)
    devices = [next(names) for _ in range(patients)]
    codes = {
        table: [[next(names) for _ in range(rows)] for _ in range(patients)] for table in TABLES
    }
    return cohort_of(devices, codes)


ALONE = alone(RUNS)


def found_in(
    tables: dict[str, pd.DataFrame], event: CodeDiscovery, schema: LinkedSchema = SCHEMA
) -> dict[str, dict[str, tuple[str, ...]]]:
    return find_codes_of_patients(open_linked(tables, schema), schema, event, SeededEntropy(7))


def shown(event: CodeDiscovery) -> int:
    """Of how many patients some code is published."""
    found = found_in(ALONE, event)
    codes = {code for columns in found.values() for own in columns.values() for code in own}
    owners = set()
    for name, column in (("patients", "device"), *((table, "code") for table in TABLES)):
        owners |= set(ALONE[name]["id"][ALONE[name][column].isin(codes)])
    return len(owners)


def at_least(hits: int) -> float:
    return float(beta.ppf(1 - CONFIDENCE, hits, RUNS - hits + 1)) if hits else 0.0


def test_codes_of_one_patient_in_all_tables_show_with_at_most_delta() -> None:
    assert (EVENT.columns, EVENT.rows_per_unit, EVENT.most_codes) == (4, ROWS, 12)
    assert at_least(shown(EVENT)) <= DELTA


def test_a_patient_who_is_somebody_else_in_each_table_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broken twin: units of one table are others than those of the next, each in full."""

    def apart(*args: Any) -> Any:
        owners, codes = kept(*args)
        calls.append(1)
        return owners + len(calls) * RUNS, codes

    kept, calls = code_search._kept, [1]
    monkeypatch.setattr(code_search, "_kept", apart)
    assert at_least(shown(replace(EVENT, columns=1))) > DELTA


def test_a_threshold_for_one_table_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    one = event_of(discovered_cohort(())).threshold
    assert one < EVENT.threshold
    monkeypatch.setattr(CodeDiscovery, "threshold", one)
    assert at_least(shown(EVENT)) > DELTA


def asked(
    tables: dict[str, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> tuple[Occurrences, CodeDiscovery]:
    """What is asked of the mechanism."""
    seen: list[Any] = []

    def watched(occurrences: Occurrences, event: CodeDiscovery, entropy: Any) -> Any:
        seen.append((occurrences, event))
        return selected(occurrences, event, entropy)

    selected = code_search.select_codes
    monkeypatch.setattr(code_search, "select_codes", watched)
    found_in(tables, EVENT)
    [once] = seen
    return once  # type: ignore[no-any-return]


def test_a_patient_counts_once_and_with_no_more_rows_than_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    occurrences, event = asked(alone(5, rows=50), monkeypatch)
    _, codes = np.unique(occurrences.units, return_counts=True)
    assert codes.tolist() == [1 + 3 * ROWS] * 5
    assert event.most_codes >= codes.max()


def every_row(owners: Any, maximum: int, entropy: Any) -> Any:
    """Broken twin: the cap is left out."""
    rows = np.flatnonzero(owners >= 0)
    return rows, np.zeros(len(rows), dtype=np.int64)


def test_rows_beyond_the_cap_are_refused_by_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_search, "select", every_row)
    with pytest.raises(InputError, match="a unit has more"):
        found_in(alone(5, rows=50), EVENT)


def test_rows_of_nobody_have_no_part_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = alone(4)
    tables["patients"] = tables["patients"].iloc[1:]
    tables["drugs"].loc[:, "id"] = ""
    occurrences, _ = asked(tables, monkeypatch)
    assert len(occurrences.units) == 3 * (1 + 2 * ROWS)


def test_a_table_without_rows_is_searched() -> None:
    tables = alone(3)
    tables["drugs"] = tables["drugs"].iloc[:0]
    assert found_in(tables, EVENT)["drugs"] == {"code": ()}


def ward() -> dict[str, pd.DataFrame]:
    """Codes that many have, and one patient with a rare device and a rare diagnosis."""
    devices = [("AA001", "BB002")[number % 2] for number in range(299)]
    codes = [["428.0", "250.01"][: 1 + number % 2] for number in range(299)]
    return cohort_of([*devices, "QQ777"], {"stays": [*codes, ["733.12"]]})


@pytest.fixture(scope="module")
def run() -> Run:
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        schema = discovered_cohort(("stays",), ICD, patients=300)
        return fit(*(ward(), schema), epsilon=8, delta=1e-6, dataset="ward", without_ledger=True)


def test_a_code_that_was_not_found_is_nowhere(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    cohort = run.sample(500, seed=1)
    assert set(cohort["patients"]["device"].dropna()) <= {"AA001", "BB002", "other"}
    assert {"428.0", "250.01"} <= set(cohort["stays"]["code"])
    files = [file.read_bytes() for file in (tmp_path / "run").iterdir()]
    for code in ("QQ777", "733.12"):
        assert not any(code.encode() in file for file in files)
        assert not any((frame == code).any().any() for frame in cohort.values())
    again = Run.load(tmp_path / "run")
    assert again.schema == run.schema
    assert again.schema.hash() == discovered_cohort(("stays",), ICD, patients=300).hash()


def test_the_certificate_lists_the_event_and_is_checked(run: Run) -> None:
    assert run.certificate is not None
    certificate = Certificate.from_dict(run.certificate)
    problems = [str(one) for one in check_certificate(certificate, run.schema, None)]
    assert [one for one in problems if "no ledger was charged" not in one] == []
    without = replace(certificate, events=certificate.events[1:])
    assert isinstance(certificate.events[0], CodeDiscovery)
    found = [str(one) for one in check_certificate(without, run.schema, None)]
    assert any("'code discovery'" in one and "is missing" in one for one in found)


def test_a_plan_is_the_same_before_and_after_codes_are_found() -> None:
    complete = tables_with_found(SCHEMA, {"patients": {"device": ("AA001",)}})
    assert tables_as_declared(complete) == SCHEMA
    assert planned_histories(complete) == planned_histories(SCHEMA)
    plans = [prepare(one, epsilon=3, delta=1e-6).plan for one in (SCHEMA, complete)]
    assert plans[0] == plans[1]
    after = shares_of_linked("cohort", planned_histories(complete), BUDGET)
    assert [one.event for one in after] == [event.undecided() for event in plans[0].events[1:]]


def refused(document: Callable[[dict[str, Any]], None]) -> str:
    whole = SCHEMA.to_dict()
    document(whole)
    with pytest.raises(SchemaError) as raised:
        LinkedSchema.from_dict(whole)
    return str(raised.value)


def test_events_and_tests_are_declared() -> None:
    def once(whole: dict[str, Any]) -> None:
        stays = whole["resources"][1]
        stays["schema"]["fields"][1]["name"] = "day"
        stays["dpsynth"] = {"time": "day", "once": "code"}
        whole["dpsynth"]["window"] = {"first": 0, "last": 9, "basis": "protocol"}

    def tests(whole: dict[str, Any]) -> None:
        value = {"name": "value", "type": "string"}
        stays = whole["resources"][1]
        stays["schema"]["fields"] = [*stays["schema"]["fields"][:2], value, {**value, "name": "t"}]
        series = {"column": "t", "value": "value", "tests": {"x": {"codes": dict(CODE)}}}
        stays["dpsynth"]["series"] = series

    for document in (once, tests):
        assert "so a fit cannot discover them" in refused(document)
