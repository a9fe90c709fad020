"""Synthetic tables that break a declaration of histories do not pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.checks import Findings, check_cohort
from dpsynth.bundle.files import profiles_of
from dpsynth.encoding import HistoryCodec, decode_histories, with_keys
from dpsynth.schema import LinkedSchema, published_tables
from dpsynth.tables import write_linked

from ...support.declared_tables import PATIENTS, declared, tables
from ...support.linked_rows import read

Tables = dict[str, pd.DataFrame]
SCHEMA = LinkedSchema.from_dict(declared())


def cohort() -> Tables:
    """A cohort that keeps all declarations: coded histories of made-up patients, decoded."""
    histories = read(tables(), document=declared())
    drawn = decode_histories(histories, HistoryCodec(SCHEMA), np.random.default_rng(1))
    return with_keys(drawn, SCHEMA, np.arange(1, PATIENTS + 1))


def written(folder: Path, made: Tables) -> list[tuple[str, str]]:
    """Write a cohort as a bundle has it, and check it."""
    write_linked([made], folder / "data", published_tables(SCHEMA), kind=".parquet")
    findings = Findings()
    check_cohort(folder, SCHEMA, findings)
    return [(problem.place, problem.message) for problem in findings.problems]


def outside(made: Tables) -> None:
    made["drugs"].loc[0, "day"] = 9


def off_schedule(made: Tables) -> None:
    made["visits"].loc[0, "date"] += pd.Timedelta(days=30)


def missed(made: Tables) -> None:
    made["visits"] = made["visits"][1:].reset_index(drop=True)


def not_implied(made: Tables) -> None:
    made["events"].loc[made["events"]["event"] == "chd", "event"] = "death"
    made["events"] = made["events"].drop_duplicates(["id", "event"]).reset_index(drop=True)


def back(made: Tables) -> None:
    made["visits"].loc[0, "children"] = 9


CASES: dict[str, tuple[Callable[[Tables], None], str]] = {
    "outside": (outside, "each row of drugs lies on a day of a row of stays"),
    "off the schedule": (
        off_schedule,
        "each row of visits lies at most 20 days off a due day",
    ),
    "missed": (
        missed,
        "each patient has one row in visits for each due day up to the end of follow-up",
    ),
    "not implied": (not_implied, "each patient with mi has chd on that day or before"),
    "back": (back, "children of visits never falls from a row of a patient to a later one"),
}


def test_a_cohort_that_keeps_all_passes(tmp_path: Path) -> None:
    assert written(tmp_path, cohort()) == []
    rules = profiles_of(tmp_path, SCHEMA)[0].rules
    assert len(rules) == 8 and not any(rule.broken for rule in rules)
    assert [words for _, words in CASES.values() if words not in {one.text for one in rules}] == []


@pytest.mark.parametrize("case", CASES)
def test_a_cohort_that_breaks_one_is_found(tmp_path: Path, case: str) -> None:
    change, words = CASES[case]
    made = cohort()
    change(made)
    problems = written(tmp_path, made)
    assert (f"data/synthetic-{SCHEMA.patients.name}.parquet",) * len(problems) == tuple(
        place for place, _ in problems
    )
    assert f"rule '{words}': some patients break it" in [message for _, message in problems]
    counts = {one.text: one.broken for one in profiles_of(tmp_path, SCHEMA)[0].rules}
    assert counts[words] == (14 if case == "not implied" else 1)
