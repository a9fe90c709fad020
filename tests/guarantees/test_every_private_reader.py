"""Every way in which private rows are read goes through the same tests, of each kind of mistake.

`private_readers.py` lists the ways; `reader_faults.py` has the kinds:

1. nothing passes the mechanisms: what they let out held fixed, all tables give the same, to the
   byte (P02, P15, P17);
2. what was drawn is what enters: units by their coins, noise by its draws, each once (P03, P09);
3. noise comes from the system's source, and is what the plan says (P16, P19);
4. each event of the plan runs exactly once, and no other (P10, P14);
5. a unit with a hundred times the rows allowed moves no answer further than was charged (P20);
6. what a unit adds depends on nobody else, and on no order of the table (P12, P28);
7. the ledger is charged first, and the policy of each dataset is kept (P14, P31).

Broken twins show that each kind is found, at places where nothing else looked. At the end, the
calls that ran are held against those in the code: a reader or a mechanism that no entry reaches is
refused.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import (
    counted_rows,
    find_codes,
    find_codes_of_patients,
    read_coded_cells,
    read_cohort,
    read_histories,
    read_shards,
)
from dpsynth.errors import BudgetError
from dpsynth.models.dpsgd import DpSgd, Units
from dpsynth.models.histories.networks.patient_units import PatientUnits
from dpsynth.models.registry import LINKED, NAMES
from dpsynth.privacy import OsEntropy, PrivacyPlan, SeededEntropy
from dpsynth.stats import Randomiser, read_linked_rows
from dpsynth.stats.entries import KINDS as STATISTICS
from dpsynth.stats.linking import open_pairs, read_pairs
from dpsynth.tables import open_columns, open_linked, open_reference, open_table

from ..support.source_code import ROOT
from . import private_readers as registry
from .call_sites import CallSite, call_sites, sites_in
from .private_readers import READERS, Office, PrivateReader
from .reader_faults import ALL, KINDS, Desk, Twin, faults, policed, prepared
from .transcript import Transcript, listening, mechanisms, taken

Patch = pytest.MonkeyPatch
OPENING = (
    open_columns,
    open_linked,
    open_pairs,
    open_reference,
    open_table,
    counted_rows,
    find_codes,
    find_codes_of_patients,
    read_coded_cells,
    read_cohort,
    read_histories,
    read_linked_rows,
    read_pairs,
    read_shards,
)
"""Functions that open private tables, or read and code their rows."""

WATCHED = (*mechanisms(), *OPENING, OsEntropy, SeededEntropy)
BY_NAME = {reader.name: reader for reader in READERS}
REFUSED = "refused"
SITES: dict[str, set[tuple[str, str, int]]] = {}


@pytest.fixture(scope="module")
def desk(new_ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Runs readers while their mechanisms are listened to."""
    calibrate = functools.lru_cache(maxsize=None)(PrivacyPlan.calibrate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSYNTH_USER", "tester")
        patch.setattr(PrivacyPlan, "calibrate", calibrate)
        with listening(patch, OPENING):
            yield Desk(tmp_path_factory.mktemp("readers"), new_ledger)


def found_in(
    desk: Desk,
    reader: PrivateReader,
    *twins: Twin,
    which: tuple[str, ...] = ALL,
    policy: bool = True,
) -> set[str]:
    """Run a reader and all kind tests on it; that of the policy only if it is asked for."""
    with prepared(reader, *twins) as patch:
        try:
            runs = desk.recorded(reader, patch, which)
        except BudgetError as error:  # the plan is asked for what it does not pay for
            if not twins:
                raise
            return {f"{REFUSED}: {error}"}
        if not twins:
            SITES[reader.name] = {site for run in runs.values() for site in run.transcript.sites}
        return faults(runs, reader) | (policed(desk, reader, patch) if policy else set())


REPEATED = ("fit of distilled", "fit of distilled, linked tables")
"""Readers of which every mechanism is another's too."""


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.long if one.name in REPEATED else ())
        for one in READERS
    ],
)
def test_a_reader_makes_no_known_mistake(reader: PrivateReader, desk: Desk) -> None:
    assert found_in(desk, reader) == set()


# Broken twins: of each kind, at places where single tests do not look -----------------------------


def first_of(units: type[Any]) -> Twin:
    """As many units as were drawn, but the first ones."""

    def twin(patch: Patch) -> None:
        batch = units.batch
        patch.setattr(units, "batch", lambda self, chosen: batch(self, np.arange(len(chosen))))

    return twin


def averaged(place: str) -> Twin:
    """An answer that is asked for twice, and averaged."""

    def twin(patch: Patch) -> None:
        module, name = place.rsplit(".", 1)
        asked = _attribute(module, name)

        def twice(*given: Any) -> Any:
            first, second = asked(*given), asked(*given)
            if isinstance(first, list):
                return [(a + b) // 2 for a, b in zip(first, second, strict=True)]
            return first if isinstance(first, tuple) else (first + second) // 2

        patch.setattr(place, twice)

    return twin


def _attribute(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


def seeded(place: str) -> Twin:
    """Noise of a seed, in place of the source's."""

    def twin(patch: Patch) -> None:
        module, name = place.rsplit(".", 1)
        asked = _attribute(module, name)
        patch.setattr(place, lambda *given: asked(*given[:-1], SeededEntropy(4)))

    return twin


def the_batch_of_the_first_step(patch: Patch) -> None:
    draw = DpSgd.sample_batch
    kept: list[Any] = []

    def again(self: DpSgd, units: int) -> Any:
        if self.steps_taken == 0:
            kept[:] = [draw(self, units)]
        else:
            draw(self, units)
        self._drawn = len(kept[0])
        return kept[0]

    patch.setattr(DpSgd, "sample_batch", again)


def each_batch_for_two_steps(patch: Patch) -> None:
    draw = DpSgd.sample_batch
    kept: list[Any] = []

    def every_other(self: DpSgd, units: int) -> Any:
        if self.steps_taken % 2 == 0:
            kept[:] = [draw(self, units)]
        self._drawn = len(kept[0])
        return kept[0]

    patch.setattr(DpSgd, "sample_batch", every_other)


def rows_in_the_place_of_units(patch: Patch) -> None:
    """Candidates are ranked by their rows; units were charged."""

    def rows(added: Any, part: int, size: int) -> Any:
        cells = added.cells[:, part]
        return np.bincount(cells[cells >= 0], minlength=size).astype(np.int64)

    for module in ("dpsynth.stats.counts", "dpsynth.privacy.answers"):
        patch.setattr(f"{module}.units_in_cells", rows, raising=False)


def the_first_rows_alone(patch: Patch) -> None:
    """Pairs count as the table has them, up to so many."""
    matched = _attribute("dpsynth.privacy.answers", "largest_matching")
    patch.setattr(
        "dpsynth.privacy.answers.largest_matching",
        lambda first, second, cap: matched(first[:20], second[:20], cap),
    )


def votes_by_all_rows(patch: Patch) -> None:
    """Each teacher knows how many rows all teachers have."""
    voted = _attribute("dpsynth.stats.labelling", "votes_of_teachers")

    def told(rows: Any, *rest: Any, **named: Any) -> Any:
        return np.where(len(rows) % 2, 1, 0).astype(np.int16) ^ np.abs(voted(rows, *rest, **named))

    patch.setattr("dpsynth.stats.labelling.votes_of_teachers", told)


def columns_of_the_next_patient(patch: Patch) -> None:
    """Rows of a linked table stand beside the columns of another patient."""
    read = _attribute("dpsynth.stats.answering", "read_histories")

    def shifted(*given: Any) -> Any:
        histories = read(*given)
        return replace(histories, baseline=np.roll(histories.baseline, 1, axis=0))

    patch.setattr("dpsynth.stats.answering.read_histories", shifted)


def ranks_of_values(patch: Patch) -> None:
    """Cells are coded by their rank among all rows."""
    read = _attribute("dpsynth.stats.answering", "read_cohort")

    def ranked(*given: Any) -> Any:
        cohort = read(*given)
        place = list(registry.CLINIC.modelled).index(registry.CLINIC.modelled[3])
        ages = cohort.codes[..., place]
        codes = cohort.codes.copy()
        codes[..., place] = np.searchsorted(np.unique(ages[cohort.mask]), ages)
        return replace(cohort, codes=codes)

    patch.setattr("dpsynth.stats.answering.read_cohort", ranked)


def the_least_noise_for_all(patch: Patch) -> None:
    """Every answer gets the noise of the most precise one."""
    asked = _attribute("dpsynth.stats.counts", "row_sums")

    def least(rows: Any, sizes: Any, event: Any, entropy: Any) -> Any:
        return asked(rows, sizes, replace(event, sigma=event.sigma / 2), entropy)

    patch.setattr("dpsynth.stats.counts.row_sums", least)


def an_event_left_out(patch: Patch) -> None:
    """An answer is taken for another one, and what was paid for the other is not spent."""
    asked = _attribute("dpsynth.stats.linking", "link_counts")
    kept: list[Any] = []

    def first(links: Any, event: Any, entropy: Any) -> Any:
        if event.name == "matches":
            kept[:] = [asked(links, event, entropy)]
        return kept[0]

    patch.setattr("dpsynth.stats.linking.link_counts", first)


def every_pair_of_a_record(patch: Patch) -> None:
    """All pairs are counted, however many a record is in."""
    patch.setattr("dpsynth.privacy.answers.largest_matching", lambda first, second, cap: len(first))


def the_first_register_alone(patch: Patch) -> None:
    """The second register pays nothing, and its policy is not asked."""
    charged = _attribute("dpsynth.stats.charged_answers", "charged_all")
    numbers = itertools.count()

    def first(book: Any, plan: Any, payers: Any, *rest: Any, **named: Any) -> Any:
        others = [(s, replace(use, dataset=f"nobody-{next(numbers)}")) for s, use in payers[1:]]
        return charged(book, plan, [payers[0], *others], *rest, **named)

    patch.setattr("dpsynth.stats.charged_answers.charged_all", first)


def a_look_before_the_charge(place: str) -> Twin:
    """Opening a table reads its first rows."""

    def twin(patch: Patch) -> None:
        module, name = place.rsplit(".", 1)
        opened = _attribute(module, name)

        def peeking(*given: Any) -> Any:
            tables = opened(*given)
            for table in tables.values() if isinstance(tables, dict) else [tables]:
                next(iter(table.chunks()), None)
            return tables

        patch.setattr(place, peeking)

    return twin


def the_number_of_rows(patch: Patch) -> None:
    """An answer holds how many rows there are."""
    counts = _attribute("dpsynth.stats.counts", "row_sums")

    def told(rows: Any, *rest: Any) -> Any:
        return [part + len(rows.units) for part in counts(rows, *rest)]

    patch.setattr("dpsynth.stats.counts.row_sums", told)


def a_student_of_patients(patch: Patch) -> None:
    """Votes say how many patients there are."""
    asked = _attribute("dpsynth.stats.labelling", "asked_of_teachers")

    def told(task: Any, cohort: Any, *rest: Any) -> Any:
        return asked(task, cohort, *rest) + len(cohort.mask)

    patch.setattr("dpsynth.stats.labelling.asked_of_teachers", told)


def the_patients_there_are(patch: Patch) -> None:
    """A run of linked tables holds how many patients it was fitted to."""
    fitted = _attribute("dpsynth.models.histories", "CohortGenerator")
    fit, arrays = fitted.fit, fitted.arrays
    seen: list[int] = []

    def counting(self: Any, histories: Any, *rest: Any) -> Any:
        seen[:] = [len(histories)]
        return fit(self, histories, *rest)

    patch.setattr(fitted, "fit", counting)
    patch.setattr(fitted, "arrays", lambda self: arrays(self) | {"patients": np.array(seen)})


def each_row_twice(patch: Patch) -> None:
    """Counts hold each row twice, after everything was checked."""
    counted = _attribute("dpsynth.privacy.mechanisms", "_weighted_counts")
    patch.setattr("dpsynth.privacy.mechanisms._weighted_counts", lambda *given: 2 * counted(*given))


LINKED_NETWORK = "fit of autoregressive, linked tables"
ALONE, MOVED, JOINED = ALL[:1], ("crowd", "crowd joined"), ALL[:4]
TWINS: list[tuple[str, Twin, str, tuple[str, ...]]] = [
    (LINKED_NETWORK, first_of(PatientUnits), "other units", ("crowd", "by coins")),
    ("fit of another package", first_of(Units), "other units", ("crowd", "by coins")),
    ("fit of another package", the_batch_of_the_first_step, "other units", ("crowd", "by coins")),
    ("fit of another package", each_batch_for_two_steps, "steps were taken", ALONE),
    (
        "statistics",
        averaged("dpsynth.stats.means.row_sums"),
        "ran 2 times",
        ALONE,
    ),
    ("linkage", averaged("dpsynth.stats.linking.link_counts"), "ran 2 times", ALONE),
    (
        "labels by best votes",
        averaged("dpsynth.stats.labelling.noisy_votes"),
        "ran 2 times",
        ALONE,
    ),
    (
        "published quality",
        averaged("dpsynth.assessment.published_quality.ask"),
        "ran 2 times",
        ALONE,
    ),
    (
        "few counts",
        seeded("dpsynth.stats.counts.laplace_counts"),
        "another noise",
        ALONE,
    ),
    ("linkage", seeded("dpsynth.stats.linking.link_counts"), "another noise", ALONE),
    (
        "fit with discovered codes",
        seeded("dpsynth.encoding.code_search.select_codes"),
        "another noise",
        ALONE,
    ),
    ("statistics", the_least_noise_for_all, "is not in the plan", ALONE),
    ("linkage", an_event_left_out, "ran 0 times", ALONE),
    ("statistics", rows_in_the_place_of_units, "a unit moves it", MOVED),
    ("linkage", every_pair_of_a_record, "a unit moves it", MOVED),
    ("fit", each_row_twice, "a unit moves it", MOVED),
    ("linkage", the_first_rows_alone, "order of the table", ("crowd", "reordered")),
    ("labels by best votes", votes_by_all_rows, "several teachers", JOINED),
    ("statistics, linked tables", columns_of_the_next_patient, "depends on other units", JOINED),
    ("statistics", ranks_of_values, "depends on other units", JOINED),
    ("linkage", the_first_register_alone, "policy of dataset 2", ALONE),
    (
        "statistics",
        a_look_before_the_charge("dpsynth.stats.answering.open_table"),
        "before the charge",
        ALONE,
    ),
    (
        "statistics, linked tables",
        a_look_before_the_charge("dpsynth.stats.answering.open_linked"),
        "before the charge",
        ALONE,
    ),
    (
        "linkage",
        a_look_before_the_charge("dpsynth.stats.linking.open_pairs"),
        "charge",
        ALONE,
    ),
    ("statistics", the_number_of_rows, "past the mechanisms", ("crowd", "stranger")),
    ("labels by best votes", a_student_of_patients, "past the mechanisms", ("crowd", "stranger")),
    (
        "fit with discovered codes, linked tables",
        the_patients_there_are,
        "past the mechanisms",
        ("crowd", "stranger"),
    ),
]


@pytest.mark.parametrize(
    ("name", "twin", "fault", "which"),
    TWINS,
    ids=[f"{name}: {getattr(twin, '__qualname__', '').split('.')[0]}" for name, twin, *_ in TWINS],
)
def test_a_broken_twin_is_caught(
    name: str, twin: Twin, fault: str, which: tuple[str, ...], desk: Desk
) -> None:
    found = found_in(desk, BY_NAME[name], twin, which=which, policy="policy" in fault)
    assert any(fault in one or one.startswith(REFUSED) for one in found), found


# The local model: nothing is charged, and each report is private by itself ------------------------


def reports(desk: Desk, tables: Any, *twins: Twin) -> list[str]:
    """The reports of people, in the order of their table."""
    reader = BY_NAME["perturbed answers"]
    with prepared(reader, *twins) as patch:
        office = Office(None, desk.folder, patch, ())
        with taken(Transcript(None, [tables])):
            return str(reader.run(tables, office)["rows"].decode()).splitlines()[1:]


def depends_on_others(desk: Desk, *twins: Twin) -> bool:
    """Whether a report follows from more than a person's own answers and coins."""
    world = registry.people()
    before = reports(desk, world.crowd, *twins)
    after = reports(desk, world.joined(world.crowd), *twins)
    alike = reports(desk, world.crowd.assign(sex="F", ward="w1"), *twins)
    changed = world.crowd.copy()
    changed.loc[3] = ["M", "w29"]
    others = [n for n, one in enumerate(reports(desk, changed, *twins)) if one != before[n]]
    return after[: len(before)] != before or len(set(alike)) == 1 or not set(others) <= {3}


def one_coin_for_all(patch: Patch) -> None:
    report = Randomiser.reports

    class Shared:
        def __init__(self, source: Any) -> None:
            self.source = source

        def integers(self, low: int, high: int, size: Any) -> Any:
            one = self.source.integers(low, high, (1, *size[1:]) if isinstance(size, tuple) else 1)
            return np.broadcast_to(one, size).copy()

    patch.setattr(
        Randomiser, "reports", lambda self, codes, source: report(self, codes, Shared(source))
    )


def coins_by_answers(patch: Patch) -> None:
    """Whoever answered alike shares a coin."""
    report = Randomiser.reports

    def shared(self: Randomiser, codes: Any, source: Any) -> Any:
        found = report(self, codes, source)
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        return found[first[which]]

    patch.setattr(Randomiser, "reports", shared)


def test_a_report_follows_from_own_answers_and_own_coins(desk: Desk) -> None:
    assert not depends_on_others(desk)
    assert depends_on_others(desk, one_coin_for_all)
    assert depends_on_others(desk, coins_by_answers)


# The registry is checked against the code ---------------------------------------------------------

INTERNAL = {
    "dpsynth/inspection/": "findings about a table, for the office alone, before any charge",
    "eval/": "figures and attacks that are marked internal",
    "dpsynth/assessment/evaluation.py": "figures that are marked internal",
    "dpsynth/encoding/any_table.py": "tables of other tools, for figures that are internal",
    "dpsynth/assessment/fitted_controls.py": "attacked on simulated patients",
    "dpsynth/assessment/shadow_models.py": "attacks that are marked internal",
    "dpsynth/forecasts/": "synthetic rows and simulated patients",
    "dpsynth/assessment/training_audit.py": "attacked on synthetic rows, as among real ones",
    "dpsynth/synthesis/replicates.py": "synthetic rows of a run",
    "dpsynth/tables/splitting.py": "whole rows, dealt into private files",
    "dpsynth/tables/opt_out.py": "a list of who is left out, for a split",
    "dpsynth/tables/text_table.py": "reads a file for its owner; a fit checks what comes of it",
    "dpsynth/encoding/strict_table.py": "synthetic tables",
    "models/auditing/": "canaries of an audit",
}
"""Where rows are read and nothing of them is let out; or where no row is private."""

ELSEWHERE = {
    ("dpsynth/synthesis/fitting.py", "fit_not_private", "open_table"): "never released (P16)",
    ("dpsynth/synthesis/fitting.py", "fit_not_private", "OsEntropy"): "never released (P16)",
    ("models/dpsgd/trainer.py", "sample_batch", "uniform"): "never released (P16)",
    ("dpsynth/encoding/chunks.py", "__call__", "chunks"): "in other processes (P26)",
    ("dpsynth/encoding/shards.py", "__call__", "chunks"): "in other processes (P26)",
    ("dpsynth/encoding/shards.py", "_dealt", "chunks"): "no file (caps over all shards)",
    ("models/generators/training.py", "assist", "OsEntropy"): "in other processes (P26)",
    ("dpsynth/assessment/published_quality.py", "publish_quality", "chunks"): "synthetic rows",
    ("dpsynth/tables/table.py", "open_synthetic_linked", "open_columns"): "synthetic rows",
    ("dpsynth/stats/labels.py", "_opened", "open_columns"): "public rows",
    ("dpsynth/draft/table_header.py", "read_table_header", "open_reference"): "names alone (P06)",
    ("models/histories/networks/autoregressive.py", "_canaries", "SeededEntropy"): "canaries",
}
"""Calls in a function that other tests run, or that are of no private row."""


def unregistered(places: tuple[CallSite, ...], reached: set[tuple[str, str, int]]) -> list[str]:
    """Calls that no entry of the registry reaches, and that are not declared to need none."""
    return [
        f"{site.file}:{site.first}: {site.name} in {site.function or 'the module'}"
        for site in places
        if not site.is_reached(reached)
        and not any(site.file.startswith(place) for place in INTERNAL)
        and (site.file, site.function.split(".")[-1], site.name) not in ELSEWHERE
    ]


def everything_reached(desk: Desk) -> set[tuple[str, str, int]]:
    """What all entries call, and from where; those that no test has run yet run once."""
    for reader in READERS:
        if reader.name not in SITES:
            found_in(desk, reader, which=("crowd",), policy=False)
    return set().union(*SITES.values())


def test_every_call_of_a_reader_and_of_a_mechanism_is_registered(desk: Desk) -> None:
    reached = everything_reached(desk)
    assert unregistered(call_sites(WATCHED), reached) == []


NEW = """
from dpsynth.encoding import read_cohort as rows_of
from dpsynth.privacy import joint_histograms, row_sums


def statistic(table, codec, schema, source, event):
    cohort = rows_of(table, codec, schema, source)
    return joint_histograms(cohort, codec.sizes, event, source)


def handed_on(ask):
    return ask(row_sums)


def own_noise(source, size):
    for chunk in source.table.chunks():
        yield source.discrete_gaussian(3.0, size)
"""


def test_a_call_that_no_entry_reaches_is_reported() -> None:
    places = tuple(sites_in(ast.parse(NEW), "dpsynth/stats/new.py", WATCHED))
    assert unregistered(places, set()) == [
        "dpsynth/stats/new.py:7: read_cohort in statistic",
        "dpsynth/stats/new.py:8: joint_histograms in statistic",
        "dpsynth/stats/new.py:12: row_sums in handed_on",
        "dpsynth/stats/new.py:16: chunks in own_noise",
        "dpsynth/stats/new.py:17: discrete_gaussian in own_noise",
    ]
    ran = {("read_cohort", "dpsynth/stats/new.py", 7), ("row_sums", "dpsynth/stats/other.py", 1)}
    assert len(unregistered(places, ran)) == 3  # what is handed on is called somewhere else


def test_what_is_declared_to_need_no_entry_is_there() -> None:
    places = call_sites(WATCHED)
    for place in INTERNAL:
        assert any(site.file.startswith(place) for site in places), place
    known = {(site.file, site.function.split(".")[-1], site.name) for site in places}
    assert ELSEWHERE.keys() - known == set()


def test_every_generator_and_every_kind_of_statistic_has_an_entry() -> None:
    assert f"{len(READERS)} entries" in (ROOT / "docs/privacy.md").read_text()
    assert all(f"fit of {name}" in BY_NAME for name in NAMES)
    assert all(f"fit of {name}, linked tables" in BY_NAME for name in LINKED)
    asked = {kind for kind in STATISTICS for entry in registry.ENTRIES if kind in entry}
    assert asked == set(STATISTICS)
    assert all(kind in {*KINDS, "drawn parts"} for reader in READERS for kind in reader.without)
