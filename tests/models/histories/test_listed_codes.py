"""Listed codes in linked tables are counted by group and one by one, and each count is paid for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpsynth.encoding import HistoryCodec
from dpsynth.models.base import REPEATS
from dpsynth.models.histories import PersonTable, domain_of, shares_of_histories
from dpsynth.models.histories.settings import empty_step_table
from dpsynth.models.histories.steps import Stack
from dpsynth.models.histories.steps.stack import levels_of
from dpsynth.privacy import JointHistograms, PrivacyBudget
from dpsynth.schema import LinkedSchema

from ...support.code_sets import CODES, codes_field
from ...support.linked_tables import package

PARENTS = (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3)  # missing is apart


def domain() -> object:
    """The package of the tests, whose patients and visits have a listed code."""
    document, field = package(), codes_field()
    del field["dpsynth"]["codes"]["several"]
    document["resources"][0]["schema"]["fields"].append(field | {"name": "cause"})
    document["resources"][3]["schema"]["fields"].append(field)
    return domain_of(HistoryCodec(LinkedSchema.from_dict(document)))


def test_groups_of_patients_first_rows_and_steps() -> None:
    found = domain()
    person = {one.name: one for one in PersonTable(found).features}
    assert person["cause"].parents == PARENTS
    first = person["first dx of visits"]
    assert first.parents == (*PARENTS, 4) and first.size == len(CODES) + 2, "no row is apart"
    [visits] = [table for table in found.tables if table.name == "visits"]
    steps = {one.name: one for one in empty_step_table(found, visits, 0).features}
    assert steps["dx"].parents == steps["dx before"].parents == PARENTS


def test_each_count_of_a_column_is_paid_for() -> None:
    found = domain()
    events = {
        share.event.name: share.event
        for share in shares_of_histories(found, PrivacyBudget(1.0, 1e-6))
        if isinstance(share.event, JointHistograms)
    }
    person = PersonTable(found).features
    one_way = events["patients: one-way histograms"]
    alone = sum(len(replace(one, parents=()).levels) for one in person)
    assert one_way.histograms == sum(len(one.levels) for one in person) == alone + 2 * REPEATS
    [visits] = [table for table in found.tables if table.name == "visits"]
    features = empty_step_table(found, visits, 0).features
    assert levels_of([features]) == sum(len(one.levels) for one in features)
    steps = next(event for name, event in events.items() if "visits" in name and "one-way" in name)
    assert steps.histograms == levels_of([features])


def test_a_step_enters_one_cell_of_each_count() -> None:
    found = domain()
    [visits] = [table for table in found.tables if table.name == "visits"]
    [feature] = [one for one in visits.series[0].values if one.name == "dx"]
    stack = Stack(((feature,),), (np.array([[5]]),), (np.array([0]),), (np.array([1]),))
    seen = []

    def kept(cells_of: object, sizes: list[list[int]], *rest: object) -> list[list[np.ndarray]]:
        seen.extend([sizes, [parts[0].tolist() for parts in cells_of(stack)]])
        return [[np.zeros(size[0], dtype=np.int64)] for size in sizes]

    object.__setattr__(stack, "_released", kept)
    event = JointHistograms("x", 1 + REPEATS, 1, 1.0)
    counts = stack.one_way(event, None)
    assert seen[0] == [[4], *[[len(CODES) + 1]] * REPEATS], "groups first, then codes"
    assert seen[1] == [[PARENTS[5]], *[[5]] * REPEATS]
    assert len(counts[0][0]) == 1 + REPEATS
    assert len(replace(feature, parents=()).levels) == 1
