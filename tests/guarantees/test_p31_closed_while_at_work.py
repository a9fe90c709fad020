"""P31: a fit that somebody gave up goes on elsewhere, and spends after it has left its window.

Whoever gives a fit up sees processes of their own machine alone. The check: every verb that spends
is given up, as from another machine, after it has read and before it counts, and while it counts.
Nothing is drawn after the first, and nothing is kept after either. One test walks the syntax tree
for verbs that spend and are not tried here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpsynth
from dpsynth.assessment import audited_on_real, publish_quality, published_quality
from dpsynth.errors import ClosedEntryError
from dpsynth.files import OutputClaim
from dpsynth.ledger import Ledger, Use, actions, charging, forfeit
from dpsynth.privacy import OsEntropy
from dpsynth.stats import LinkageRequest, StatisticsRequest
from dpsynth.synthesis import fitting, readers, record_sample
from dpsynth.synthesis.checkpoints import NAME
from dpsynth.tables import simulate, simulate_cohort, write_table

from ..support.discovered_cohort import ICD, cohort_of, discovered_cohort
from ..support.discovered_ward import discovered_ward, ward
from ..support.labelled_ward import WARD, patients
from ..support.quick_fit import quick_fit
from ..support.short_training import shorten_histories, shorten_networks
from ..support.two_registers import BUDGET, pairs, request
from .stopped_fits import STEPS, Office

NOISE = ("discrete_gaussian", "discrete_laplace", "top", "normal")
PACKAGE = Path(dpsynth.__file__).parent


@dataclass
class Desk:
    """A ledger, and an output; what was drawn since it was given up."""

    folder: Path
    ledger: Ledger
    given_up: bool = False
    draws: list[str] = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def give_up(self) -> None:
        """Give up all that may still spend, as somebody on another machine."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DPSYNTH_USER", "noether")
            patch.setattr(actions, "at_work", lambda _: False)
            for entry in self.ledger.entries():
                if entry.ended is None:
                    forfeit(self.ledger, entry.id, "its machine is gone")
        self.given_up = True


def fit(desk: Desk) -> Any:
    return quick_fit(simulate(60, seed=1), "demo", ledger=desk.ledger, output=desk.output)


def discovery(desk: Desk) -> Any:
    options: dict[str, Any] = {"epsilon": 8.0, "ledger": desk.ledger, "output": desk.output}
    return quick_fit(ward(60), discovered_ward(), **options)


def linked_discovery(desk: Desk) -> Any:
    tables = cohort_of([("AA001", "BB002")[n % 2] for n in range(60)], {"stays": [["428.0"]] * 60})
    budget: dict[str, Any] = {"epsilon": 8, "delta": 1e-5, "dataset": "clinic"}
    options: dict[str, Any] = {"ledger": desk.ledger, "output": desk.output}
    schema = discovered_cohort(("stays",), ICD, patients=60)
    return fitting.fit(tables, schema, **budget, **options)


def linked_fit(desk: Desk) -> Any:
    tables = simulate_cohort(60, seed=1)
    budget: dict[str, Any] = {"epsilon": 2, "delta": 1e-5, "dataset": "clinic"}
    options: dict[str, Any] = {"ledger": desk.ledger, "output": desk.output}
    return fitting.fit(tables, "clinic", **budget, **options)


def statistics(desk: Desk) -> Any:
    entries = [{"name": "by sex", "count": "patients", "by": ["sex"]}]
    asked = StatisticsRequest.from_dict({"schema": "demo", "statistics": entries})
    budget: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "dataset": "demo"}
    options: dict[str, Any] = {"ledger": desk.ledger, "output": desk.output}
    return dpsynth.statistics(simulate(60, seed=1), asked, **budget, **options)


def labels(desk: Desk) -> Any:
    queries = patients(20, 2, label=False)
    budget: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "dataset": "cohort"}
    options: dict[str, Any] = {"teachers": 60, "ledger": desk.ledger, "output": desk.output}
    return dpsynth.labels(patients(300, 1), queries, WARD, "ill", **budget, **options)


def linkage(desk: Desk) -> Any:
    options: dict[str, Any] = {"ledger": desk.ledger, "output": desk.output}
    return dpsynth.linkage(
        pairs(100),
        LinkageRequest.from_dict(request() | {"same_people": False}),
        **BUDGET,
        **options,
    )


def quality(desk: Desk) -> Any:
    """Of a run that was charged before; its figures would lie in its folder."""
    folder = desk.folder / "run"
    if not folder.exists():
        source = simulate(60, seed=1)
        run = quick_fit(source, "demo", publish_quality=0.1, ledger=desk.ledger, output=folder)
        table = desk.folder / "out.parquet"
        write_table([run.sample(100, seed=1)], table, run.schema)
        record_sample(folder, table, size=100, seed=1)
    desk.draws.clear()
    measured = (folder, desk.folder / "out.parquet", simulate(60, seed=1))
    found = publish_quality(*measured, ledger=desk.ledger)
    (folder / "quality.json").rename(desk.output)
    return found


def audit(desk: Desk) -> Any:
    source = simulate(60, seed=1)
    run = quick_fit(source, "demo")
    desk.draws.clear()
    terms = {"ledger": desk.ledger, "count": 60}
    return audited_on_real(run, source, Use("demo", "audit"), **terms)


Verb = Callable[[Desk], Any]
VERBS: dict[Verb, str] = {  # each with what reads its private rows
    fit: "synthesis.readers.read_cohort",
    discovery: "encoding.code_search.Occurrences",  # the event that finds codes reads itself
    linked_discovery: "encoding.code_search.Occurrences",
    linked_fit: "synthesis.readers.read_histories",
    statistics: "stats.answering.read_cohort",
    labels: "synthesis.readers.read_cohort",
    linkage: "stats.linking.read_pairs",
    quality: "assessment.published_quality.read_cohort",
    audit: "assessment.charged_audit.read_cohort",
}
SPEND = {"charged", "charged_all", "spend_quality"}
TRIED = {"charged_fit", "charged_answers", "published_quality", "charged_audit"}


@pytest.fixture
def desk(tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose draws of noise are watched, once it was given up."""
    found = Desk(tmp_path, ledger)

    def watched(name: str) -> Any:
        draw = getattr(OsEntropy, name)

        def drawn(*given: Any, **more: Any) -> Any:
            if found.given_up:
                found.draws.append(name)
            return draw(*given, **more)

        return drawn

    for name in NOISE:
        monkeypatch.setattr(OsEntropy, name, watched(name))
    shorten_histories(monkeypatch)
    shorten_networks(monkeypatch)
    return found


def given_up_after(name: str, desk: Desk, patch: pytest.MonkeyPatch) -> None:
    """Have the entries closed once a function of a module has returned."""
    module, function = f"dpsynth.{name}".rsplit(".", 1)
    call = getattr(import_module(module), function)

    def called(*given: Any, **more: Any) -> Any:
        found = call(*given, **more)
        desk.give_up()
        return found

    patch.setattr(import_module(module), function, called)


def given_up_at_the_first_draw(desk: Desk, patch: pytest.MonkeyPatch, reads: str) -> None:
    """Have them closed when noise is drawn, after rows were read."""
    module, function = f"dpsynth.{reads}".rsplit(".", 1)
    call, read = getattr(import_module(module), function), []

    def reading(*given: Any, **more: Any) -> Any:
        found = call(*given, **more)
        read.append(function)
        return found

    patch.setattr(import_module(module), function, reading)
    for name in NOISE:
        draw = getattr(OsEntropy, name)

        def drawn(*given: Any, _draw: Any = draw, **more: Any) -> Any:
            if read and not desk.given_up:
                desk.give_up()
            return _draw(*given, **more)

        patch.setattr(OsEntropy, name, drawn)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_nothing_is_drawn_once_it_was_given_up(
    verb: Verb, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up_after(VERBS[verb], desk, monkeypatch)
    with pytest.raises(ClosedEntryError, match="was closed by noether on .* was given up") as told:
        verb(desk)
    assert told.value.exit_code == 4
    assert desk.draws == [] and not desk.output.exists()
    assert all(entry.ended is not None for entry in desk.ledger.entries())


SLOW = {linked_fit: pytest.mark.long}


@pytest.mark.parametrize(
    "verb",
    [pytest.param(one, marks=SLOW.get(one, ()), id=one.__name__) for one in VERBS],
)
def test_what_was_drawn_by_then_is_discarded(
    verb: Verb, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up_at_the_first_draw(desk, monkeypatch, VERBS[verb])
    stopped = ClosedEntryError if verb is not quality else dpsynth.errors.BudgetError
    with pytest.raises(stopped):
        verb(desk)
    assert desk.draws and not desk.output.exists()
    assert not (desk.folder / "run" / "quality.json").exists()
    assert not list(desk.folder.glob("output*"))


@pytest.mark.parametrize(
    "verb", [fit, discovery, linked_discovery, quality], ids=lambda verb: verb.__name__
)
def test_the_broken_version_is_caught(
    verb: Verb, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the ledger before it begins, and never again."""
    given_up_after(VERBS[verb], desk, monkeypatch)
    for module in (charging, published_quality):
        monkeypatch.setattr(module, "require_open", lambda *_: None)
    with pytest.raises(dpsynth.errors.BudgetError):
        verb(desk)
    assert desk.draws


@pytest.mark.parametrize(
    ("verb", "module", "name"),
    [
        (discovery, readers, "find_codes"),
        (linked_discovery, readers, "find_codes_of_patients"),
    ],
    ids=["discovery", "linked_discovery"],
)
def test_a_search_that_asks_before_it_reads_is_caught(
    verb: Verb, module: Any, name: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large table takes hours; in them, the entry may be closed."""
    find = getattr(module, name)

    def too_early(*given: Any) -> Any:
        given[-1]()
        return find(*given[:-1])

    monkeypatch.setattr(module, name, too_early)
    given_up_after(VERBS[verb], desk, monkeypatch)
    with pytest.raises(ClosedEntryError):
        verb(desk)
    assert desk.draws


@pytest.mark.parametrize("verb", [fit, statistics], ids=lambda verb: verb.__name__)
def test_what_was_saved_in_the_same_moment_is_removed(
    verb: Verb, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed after the ledger was asked, and before the entry could be closed."""
    save = OutputClaim.save

    def saved(*given: Any) -> Any:
        found = save(*given)
        assert desk.output.is_dir()
        desk.give_up()
        return found

    monkeypatch.setattr(OutputClaim, "save", saved)
    with pytest.raises(ClosedEntryError):
        verb(desk)
    assert not desk.output.exists()


def test_of_two_registers_the_other_one_is_closed_as_well(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = import_module("dpsynth.stats.linking").read_pairs

    def reading(*given: Any) -> Any:
        found = read(*given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(actions, "at_work", lambda _: False)
            forfeit(desk.ledger, desk.ledger.entries()[0].id, "its machine is gone")
        return found

    monkeypatch.setattr("dpsynth.stats.linking.read_pairs", reading)
    with pytest.raises(ClosedEntryError):
        linkage(desk)
    assert [entry.status for entry in desk.ledger.entries()] == ["failed", "failed"]
    assert not desk.output.exists()


@pytest.mark.usefixtures("few_steps", "quick_plans")
def test_a_fit_with_checkpoints_keeps_none_once_it_was_given_up(stopping: Office) -> None:
    desk = Desk(stopping.folder, stopping.ledger)
    kept: list[bytes] = []

    def meanwhile(stage: str, fraction: float) -> None:
        if stage == "training" and fraction >= 3 / STEPS and not desk.given_up:
            kept.append(stopping.checkpoint.read_bytes())
            desk.give_up()

    with pytest.raises(ClosedEntryError):
        stopping.fit(meanwhile)
    assert [stopping.checkpoint.read_bytes()] == kept
    assert [path.name for path in stopping.checkpoint.parent.iterdir()] == [NAME]
    assert not (stopping.folder / "run").exists()
    assert [entry.status for entry in stopping.entries] == ["failed"]


def test_a_run_whose_entry_was_closed_for_it_meanwhile_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `ledger close`, or because the ledger's answer was lost: no warning, no loss."""
    charge = Ledger.charge

    def lost(self: Ledger, *given: Any, **more: Any) -> None:
        charge(self, *given, **more)
        raise dpsynth.errors.BudgetError("the connection was lost")

    monkeypatch.setattr(Ledger, "charge", lost)
    run = fit(desk)
    [entry] = desk.ledger.entries()
    assert (entry.status, entry.run) == ("charged", run.digest)
    assert desk.output.is_dir()


def test_every_verb_that_spends_is_tried_here() -> None:
    spending = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent == PACKAGE / "ledger":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SPEND:
                spending.add(path.stem)
    assert spending == TRIED
